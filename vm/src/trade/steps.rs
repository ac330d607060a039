//! What users sign on an origin, and what the solver sends on a destination. Pure.

use alloy::primitives::Keccak256;

use super::Revert;
use crate::{
    CodecError,
    types::{Address, Amount, B256, Bytes},
};

/// What a user signs on an origin chain. Pure. The order id stands where the family's decoder finds
/// it (guide: protocol 3.4).
pub trait StepBuilder: Send + Sync {
    /// Calls that put `terms.amount` into the depository: allowance first where one is needed.
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<StepCall>, CodecError>;
    /// A payment straight to `to`, naming the order behind its calldata.
    fn send(&self, terms: &PaymentTerms<'_>) -> Result<StepCall, CodecError>;
    /// Allowance of `amount` for `spender`, through zero first where `reset` says so.
    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        reset: bool,
    ) -> Result<Vec<StepCall>, CodecError>;
    /// Payments and calls of an order in one transaction of the solver's, through the fill router
    /// when there is more than one payment or any call; then tokens are paid through the proxy, which
    /// the solver must have allowed to take them.
    fn fill(&self, terms: &FillTerms<'_>) -> Result<Call, CodecError>;
    /// The error that a revert's data holds, readable.
    fn explain(&self, data: &[u8]) -> Revert;
}

/// Somebody's right to take money.
#[derive(Clone, Copy, Debug)]
pub struct Spend<'a> {
    pub spender: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
}

/// See [`StepBuilder::deposit`].
#[derive(Clone, Copy, Debug)]
pub struct DepositTerms<'a> {
    pub user: &'a Address,
    pub depository: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
    pub order: B256,
    /// Through the depository's own functions; otherwise a bare transfer that names the order.
    pub explicit: bool,
    /// What the user has allowed the depository already.
    pub allowance: Amount,
    /// The token wants its allowance set to zero before it is set anew.
    pub reset: bool,
}

/// See [`StepBuilder::send`].
#[derive(Clone, Copy, Debug)]
pub struct PaymentTerms<'a> {
    pub from: &'a Address,
    pub to: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
    pub order: B256,
}

/// See [`StepBuilder::fill`].
#[derive(Clone, Copy, Debug)]
pub struct FillTerms<'a> {
    pub solver: &'a Address,
    pub router: Option<&'a Address>,
    /// Takes its caller's tokens only. The router is everybody's tool: nobody may allow it anything.
    pub proxy: Option<&'a Address>,
    pub payments: &'a [Payout],
    pub calls: &'a [crate::OrderCall],
    pub order: B256,
}

/// One payment of an order's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    pub to: Address,
    pub currency: Address,
    pub amount: Amount,
}

/// One transaction of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCall {
    pub step: Step,
    pub call: Call,
}

/// What a step is called (guide: protocol 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Approve,
    Deposit,
    Swap,
    Send,
}

/// A call of `to` by `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub from: Address,
    pub to: Address,
    pub data: Bytes,
    pub value: Amount,
}

impl Call {
    /// An account's call of itself that does nothing.
    pub fn nothing(account: &Address) -> Self {
        Self {
            from: account.clone(),
            to: account.clone(),
            data: Bytes::new(),
            value: Amount::ZERO,
        }
    }

    /// What tells this call from any other: everything it holds, each part behind its length.
    pub fn digest(&self) -> B256 {
        let value = self.value.to_be_bytes::<32>();
        let parts: [&[u8]; 4] = [self.from.bytes(), self.to.bytes(), &value, &self.data];
        let mut hash = Keccak256::new();
        for part in parts {
            // Lengths fit: a part is in memory.
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        hash.finalize()
    }
}
