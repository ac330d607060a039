//! Landing transactions: attempts of which at most one can land, and what one provider does for them.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{Authorization, Call, Failover, Intended, Revert, Signer, Unsigned};
use crate::{
    Chain, CodecError,
    oracle::ReadError,
    types::{Address, Amount, B256, Block, Bytes, Head, Transaction, U256},
};

/// What an account means to land.
#[derive(Clone, Debug)]
pub struct Intent {
    pub call: Call,
    pub authorizations: Vec<Authorization>,
    /// How much work it may take, in the family's own unit, as it was simulated.
    pub limit: u64,
    /// What it takes of currencies other than the native one.
    pub spends: Vec<(Address, Amount)>,
}

/// What an attempt is for.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    Land(&'a Intent),
    /// Nothing but that this resource is used up.
    UseUp(&'a [u8]),
}

/// Signed transactions of an account, of which at most one can land. What makes it so is the family's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// No other attempt of the account has it.
    pub id: Bytes,
    /// What it holds. Two attempts of an account that hold one resource are never both kept.
    pub resources: Vec<Bytes>,
    /// The most that it takes of each currency, the native one first.
    pub spends: Vec<(Address, Amount)>,
    /// Oldest first.
    pub signed: Vec<SignedTx>,
    /// The family's own; its first byte says how it is written.
    pub own: Bytes,
}

/// One signed transaction of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTx {
    /// As the chain spells it.
    pub id: String,
    /// It pays nobody: it only uses the resources up.
    pub cancels: bool,
}

/// An attempt that is ready to be kept and then sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub attempt: Attempt,
    /// What is known of the account from now on; `None`: what was.
    pub account: Option<Bytes>,
    /// Somebody else uses the key.
    pub jump: Option<Jump>,
}

/// The chain counts more of the account's transactions than were made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the account's nonce is {mined}, ours is {next}")]
pub struct Jump {
    pub next: u64,
    pub mined: u64,
}

/// Why there is no attempt, or no word of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The chain asks more for inclusion than the operator lets it.
    #[error("gas costs more than the operator's limit")]
    Dear,
    /// Further than is believed without the operator's word.
    #[error(transparent)]
    Jumped(#[from] Jump),
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Any of its transactions may land; whether a quorum of providers knows one.
    Waiting { known: bool },
    /// What it holds is used, and nobody says for good by what.
    Doubtful,
    /// Providers have one of them in a block.
    Included(Box<Included>),
    /// Something else has used what it holds, for good: none can land.
    Lost,
}

/// See [`Status::Included`].
#[derive(Clone, Debug, PartialEq)]
pub struct Included {
    /// Which of [`Attempt::signed`].
    pub signed: usize,
    pub block: Block,
    pub success: bool,
    /// What it cost although it paid nobody; `None` where it paid, or where nobody says it.
    pub wasted: Option<Amount>,
    /// The same as a quorum has it, and the head that it has it from; `None` where there is none.
    pub agreed: Option<(Transaction, Head)>,
}

/// Lands what an account means to land. Nothing is sent that is not kept first, and what an attempt holds is
/// kept with it: the caller commits both before [`Submitter::send`].
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Asks the chain for what an attempt at `goal` needs to know; `first`: nothing is known of the account.
    /// Nothing is taken yet.
    async fn look(&self, goal: Goal<'_>, first: bool) -> Result<Box<dyn Outlook>, SubmitError>;
    /// The attempt with one more signed transaction that takes the place of the newest, and pays no one if it
    /// `cancel`s; `None` where none is made. Once cancelled, an attempt stays so.
    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError>;
    /// Hands the newest transaction to the network. What nodes say is no proof of anything.
    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError>;
    /// What became of it, by agreement of providers.
    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError>;
    /// How far the chain is with the account, by agreement of providers, for [`Landing::standing`].
    async fn reached(&self) -> Result<Bytes, SubmitError>;
}

/// What the chain said for an attempt. See [`Submitter::look`].
#[async_trait]
pub trait Outlook: Send {
    /// Makes and signs the attempt, with what is stored of the account. Asks no provider.
    async fn prepare(self: Box<Self>, account: Option<&[u8]>) -> Result<Prepared, SubmitError>;
}

/// What landing costs.
#[async_trait]
pub trait Costs: Send + Sync {
    /// What one of an attempt's signed transactions costs now at most, in the native currency.
    async fn at_most(&self, attempt: &Attempt, signed: usize) -> Result<Amount, SubmitError>;
}

/// An account on one chain, as its family opened it.
#[derive(Clone)]
pub struct Account {
    pub address: Address,
    pub submitter: Arc<dyn Submitter>,
    pub costs: Arc<dyn Costs>,
}

/// Resources that an account's chain waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Waited for and held by no attempt: nothing behind them lands.
    pub gaps: Vec<Bytes>,
    /// Those of them that never had a payment of ours: they may be used up without asking.
    pub spare: Vec<Bytes>,
    /// What is known of the account once those are used up; `None`: the same.
    pub tidied: Option<Bytes>,
    /// What is known of it where the operator believes the chain; `None`: the same.
    pub believing: Option<Bytes>,
}

/// How a resource is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it is called.
    pub kind: &'static str,
    pub text: String,
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind, self.text)
    }
}

/// Landing as a family has it. But for [`Landing::open`] it is about bytes that are stored: pure.
pub trait Landing: Send + Sync {
    /// The account of a key. No transaction is made whose unit of work costs more than `most`.
    fn open(
        &self,
        chain: &Chain,
        providers: &Failover,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError>;
    /// What the account's next attempt holds.
    fn next(&self, account: &[u8]) -> Result<Bytes, CodecError>;
    /// Whether the account has come to an attempt.
    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError>;
    /// A resource, or how far the chain is, for people.
    fn label(&self, resource: &[u8]) -> Result<Label, CodecError>;
    /// Which resources the chain waits for that has `reached` so far, where open attempts hold `held`.
    fn standing(
        &self,
        account: &[u8],
        reached: &[u8],
        held: &[Bytes],
    ) -> Result<Standing, CodecError>;
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

/// Wei per gas unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fees {
    /// The next block's base fee.
    pub base: u128,
    /// A tip that is included soon.
    pub priority: u128,
}

impl Fees {
    /// What a unit costs that is included soon.
    pub const fn price(&self) -> u128 {
        self.base.saturating_add(self.priority)
    }

    /// What so many units cost.
    pub fn of(&self, units: u64) -> Amount {
        U256::from(self.price()).saturating_mul(U256::from(units))
    }
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
