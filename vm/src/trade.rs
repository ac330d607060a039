//! What trading needs of a chain besides the oracle's reads: finding deposits, reading accounts,
//! simulating and sending transactions. All of it comes from one provider at a time; whatever moves
//! money is read again through [`ChainReader`](crate::ChainReader) and its quorum before it is acted on.

mod failover;
mod transaction;
mod witness;

use std::{ops::RangeInclusive, sync::Arc};

use alloy::primitives::Keccak256;
use async_trait::async_trait;

use crate::{
    CodecError,
    family::{ChainSpec, Endpoint, ReadError, SpecError},
    types::{Address, Amount, B256, Block, Bytes, Deposit, Refusal, TxRef},
};

pub use self::{
    failover::{Cost, Failover, Ground},
    transaction::{Authorization, Draft, Limits, TransactionCodec, Unfit},
    witness::{Change, Diff, Witness, Witnesses},
};

/// See [`Family::trade`](crate::Family::trade).
pub type OpenTrade = fn(&Arc<ChainSpec>, &Endpoint) -> Result<Trade, SpecError>;

/// One provider of one chain, opened for trading.
#[derive(Clone)]
pub struct Trade {
    pub scanner: Arc<dyn Scanner>,
    pub accounts: Arc<dyn Accounts>,
    pub writer: Arc<dyn Writer>,
    pub rehearsal: Arc<dyn Rehearsal>,
    pub witnesses: Arc<dyn Witnesses>,
}

/// Finds deposits in ranges of blocks.
#[async_trait]
pub trait Scanner: Send + Sync {
    /// The newest block.
    async fn head(&self) -> Result<Block, ReadError>;
    /// The block at a height; `None` above the head.
    async fn block(&self, number: u64) -> Result<Option<Block>, ReadError>;
    /// Every transaction of the blocks that put something into a configured depository, in block
    /// order. A reverted transaction is never among them.
    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<Sighting>, ScanError>;
    /// What the chain itself says that `shown` leaves out of the blocks from `from` to `end`, where the
    /// family's blocks say what is in them; an error where the provider shows something else than its
    /// own blocks. It stands in for a second provider where there is none: what a provider forgets is
    /// found, what it forges with care is not.
    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[Sighting],
    ) -> Result<Vec<Sighting>, ScanError>;
}

/// A transaction with deposits, as one provider shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub transaction: TxRef,
    pub number: u64,
    pub hash: B256,
    /// Never empty.
    pub deposits: Vec<Deposit>,
    /// Why no quorum will attest them: they stand here as the transaction's records have them, so that
    /// somebody looks.
    pub doubt: Option<Refusal>,
}

/// Why a range was not scanned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The provider refuses so many blocks or results at once, or does not get done in time: ask
    /// for fewer. Never said of a single block.
    #[error("range too large: {0}")]
    TooLarge(String),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Balances, allowances and currencies at the head.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// What `owner` holds of a currency.
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError>;
    /// What `spender` may take of `owner`'s; without end for a native currency.
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError>;
    /// What a currency says of itself; `None` when there is no currency at the address. A native
    /// currency says nothing.
    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError>;
    /// Whether code lives at an address: it is no plain account. An EIP-7702 delegation is code.
    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError>;
    /// Read-only calls at the head, each by itself, in as few round trips as the node lets; as many
    /// answers in the same order.
    async fn calls(&self, calls: &[Call]) -> Vec<Called>;
}

/// What a read-only call answered. `Err` inside: it reverted.
pub type Called = Result<Result<Bytes, Revert>, ReadError>;

impl dyn Accounts {
    /// One read-only call at the head.
    pub async fn call(&self, call: &Call) -> Called {
        let answer = self.calls(std::slice::from_ref(call)).await.pop();
        answer.unwrap_or_else(|| Err(ReadError::Doubtful("an answer is missing".into())))
    }
}

/// See [`Accounts::currency`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyInfo {
    pub symbol: String,
    pub name: String,
    pub decimals: u8,
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

/// Why a call did not do what it was for (guide: protocol 11.17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revert {
    /// What the contract said, readable: an error string, `Panic(0x11)`, an error's selector; empty
    /// when it said nothing.
    pub reason: String,
    pub data: Bytes,
}

/// Sends transactions, and says what became of them.
#[async_trait]
pub trait Writer: Send + Sync {
    /// Gas units that a transaction would take now, by the provider's estimate. `Err` inside: it would
    /// revert. The authorizations and the state of the pending block count where the provider has them.
    async fn estimate(&self, intended: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError>;
    /// What gas costs now.
    async fn fees(&self) -> Result<Fees, ReadError>;
    /// The number of `owner`'s transactions in blocks, or with those that wait.
    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError>;
    /// Hands a signed transaction to the network.
    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError>;
    /// What became of a transaction, by this provider's head.
    async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError>;
}

/// A transaction that somebody means to send.
#[derive(Clone, Copy, Debug)]
pub struct Intended<'a> {
    pub call: &'a Call,
    pub authorizations: &'a [Authorization],
    /// What its sender would pay for gas: contracts can see it, and nodes hold it against the sender's
    /// balance. Unset for a sender that nobody knows to have any.
    pub fees: Option<Fees>,
    /// Gas units that it may take at most.
    pub most: Option<u64>,
}

impl<'a> Intended<'a> {
    /// A call whose sender need not have anything.
    pub const fn free(call: &'a Call) -> Self {
        Self {
            call,
            authorizations: &[],
            fees: None,
            most: None,
        }
    }
}

/// Tries transactions that need others before them.
#[async_trait]
pub trait Rehearsal: Send + Sync {
    /// Gas units that one transaction of the first call's sender would take at the head which makes all
    /// of `calls`, in order, each as its own sender. `Err` inside: one of them reverts, and this is what
    /// it says. Nothing is sent.
    async fn rehearse(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError>;
}

/// Wei per gas unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fees {
    /// The next block's base fee.
    pub base: u128,
    /// A tip that is included soon.
    pub priority: u128,
}

/// What a node said to a transaction. None of it is proof of inclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// It waits now, or waited already.
    Accepted,
    /// A transaction with this nonce is in a block.
    NonceUsed,
    /// Another transaction with this nonce waits, and this one pays too little to replace it.
    Underpriced,
    /// The account cannot pay for it.
    Unfunded,
    /// The node will never take it: what is wrong with it is in its bytes, or in whom it carries.
    Refused(String),
    /// Anything else the node holds against it.
    Rejected(String),
}

/// What its sender paid for a transaction that is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The gas that it used, at what that cost.
    pub gas: Amount,
    /// Its bytes besides; `None` where that is not told.
    pub data: Option<Amount>,
}

/// Where a transaction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The provider does not know it.
    Unknown,
    Waiting,
    /// In `block`, `depth` blocks below the head (0: in the head).
    Included {
        block: Block,
        depth: u64,
        success: bool,
        /// `None` where that is not told.
        spent: Option<Spent>,
    },
}

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
