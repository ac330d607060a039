//! What users sign on an origin, and what the solver sends on a destination. Pure.

use serde_json::Value;

use super::{Authorization, Draft, FeeRate};
use crate::{
    CodecError,
    types::{Address, Amount, B256},
};

/// What a user signs on an origin chain, and the solver on a destination. Pure. The order id stands where the
/// family's decoder finds it (guide: protocol 3.4).
pub trait StepBuilder: Send + Sync {
    /// Transactions that put `terms.amount` into the depository, with what must come before: `terms.before`, and rights.
    /// A family whose transactions do several things may make one of all.
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError>;
    /// A payment straight to `terms.to`, which names its order.
    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError>;
    /// The same transaction, which names an order besides.
    fn name(&self, draft: Draft, order: B256) -> Result<Draft, CodecError>;
    /// Payments and calls of an order in one transaction of the solver's.
    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError>;
    /// A step's data as the API shows it (guide: protocol 11.5).
    fn render(&self, draft: &Draft, shown: StepFee) -> Result<Value, CodecError>;
}

/// Rights to take what an account has. Pure.
pub trait ApprovalSteps: Send + Sync {
    /// Lets `spend.spender` take `spend.amount`, through zero first where `reset` says so.
    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        reset: bool,
    ) -> Result<Vec<Step>, CodecError>;
}

/// Somebody's right to take money.
#[derive(Clone, Copy, Debug)]
pub struct Spend<'a> {
    pub spender: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
}

/// What a caller wants of the user's transactions, on chains of families that let callers choose
/// ([`Family::choices`](crate::Family::choices)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Who pays for inclusion and for new accounts instead of the user, and signs, too.
    pub fee_payer: Option<Address>,
    /// The transaction itself limits the work that it takes.
    pub work_limit: bool,
    /// An exchange goes through accounts of its own wherever it would need new ones of the user's; `None`: as the
    /// exchange does on its own.
    pub shared_accounts: Option<bool>,
}

/// What a deposit is made of.
#[derive(Clone, Copy, Debug)]
pub struct DepositTerms<'a> {
    pub user: &'a Address,
    pub depository: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
    pub order: B256,
    /// Through the depository's own functions; otherwise a bare transfer that names the order.
    pub explicit: bool,
    /// What the depository may take of the user's already.
    pub approved: Amount,
    /// The token wants its approval set to zero before it is set anew.
    pub reset: bool,
    /// What [`Funding::fund`](super::Funding::fund) read for it; empty where the chain needs nothing.
    pub funds: &'a [u8],
    /// What the user does first: an exchange, with what it needs.
    pub before: &'a [Step],
    pub choices: &'a Choices,
}

/// What a payment straight to its recipient is made of.
#[derive(Clone, Copy, Debug)]
pub struct PaymentTerms<'a> {
    pub from: &'a Address,
    pub to: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
    pub order: B256,
}

/// What a fill is made of: the payments and calls of an order.
#[derive(Clone, Copy, Debug)]
pub struct FillTerms<'a> {
    pub solver: &'a Address,
    pub router: Option<&'a Address>,
    /// Takes its caller's tokens only. The router is everybody's tool: nobody may let it take anything.
    pub proxy: Option<&'a Address>,
    pub payments: &'a [Payout],
    pub calls: &'a [crate::OrderCall],
    pub authorizations: &'a [Authorization],
    pub order: B256,
}

/// A fill as it goes on chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    pub draft: Draft,
    /// It goes through the router.
    pub routed: bool,
    /// Who takes the solver's tokens for it, where it is not the solver itself: the proxy.
    pub spender: Option<Address>,
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
pub struct Step {
    pub kind: StepKind,
    pub draft: Draft,
}

/// What a step is called (guide: protocol 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    Approve,
    Deposit,
    Swap,
    Send,
}

/// What a step is shown to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFee {
    /// The chain's number.
    pub number: u64,
    pub work: u64,
    /// What the transaction may take, with room; `None` where nobody could estimate it.
    pub limit: Option<u64>,
    pub rate: FeeRate,
}
