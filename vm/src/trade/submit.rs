//! Landing transactions: attempts of which at most one can land, and what one provider does for them.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{Draft, FeeRate, Unsigned};
use crate::{
    CodecError,
    oracle::ReadError,
    types::{Address, Amount, Block, Bytes, Head, Transaction},
};

/// What an account means to land.
#[derive(Clone, Debug)]
pub struct Intent {
    pub draft: Draft,
    /// How much work it may take, as it was simulated.
    pub work: u64,
    /// The most that the chain may charge for it besides its work, in the native currency, by what its user is charged;
    /// `None`: whatever it charges. A family whose transactions say what their payer pays for signs none that may cost
    /// more ([`SubmitError::Dearer`]). Where the chain says it later, nothing is refused here.
    pub besides: Option<Amount>,
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
#[error("the chain has {mined} transactions of the account, {next} were made here")]
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
    #[error("inclusion costs more than the operator's limit")]
    Dear,
    /// It has come to cost more besides its work than it may ([`Intent::besides`]).
    #[error("{asked} is charged besides its work, at most {most} may be")]
    Dearer { asked: Amount, most: Amount },
    /// What the account can spend now, besides what open attempts hold and what is kept ([`Known::keeps`]), does not pay
    /// for it; in the native currency.
    #[error("{available} can be spent now, {needed} are needed")]
    Short { available: Amount, needed: Amount },
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
    /// None of its transactions can land, for good: something else has used what it holds.
    Lost,
    /// None of them can land, for good: a quorum has final blocks behind the end of each, and none of them in a block.
    /// Nothing was paid, and what it holds is free.
    Expired,
}

/// A transaction of an attempt in a block, as providers have it.
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
    /// The attempt with one more signed transaction, which lands at most where the newest does not, and pays no one
    /// if it `cancel`s; `None` where none is made now. A family that cannot cancel by a transaction adds none and
    /// sends nothing more. Once cancelled, an attempt stays so.
    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError>;
    /// Hands the newest transaction to the network; `None` where nothing is left to be sent. What nodes say is no proof of
    /// anything.
    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError>;
    /// What became of it, by agreement of providers.
    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError>;
    /// How far the chain is with the account, by agreement of providers, for [`Landing::standing`].
    async fn reached(&self) -> Result<Bytes, SubmitError>;
}

/// What the chain said when [`Submitter::look`] asked it for an attempt.
#[async_trait]
pub trait Outlook: Send {
    /// Makes and signs the attempt of the goal that was looked at. Here the family chooses what the attempt holds: the
    /// payment is known, so that it may be chosen by amount. It takes nothing that `known` has as held, since the commit
    /// of such an attempt is refused. Asks no provider.
    async fn prepare(self: Box<Self>, known: Known<'_>) -> Result<Prepared, SubmitError>;
}

/// What the store has of an account when an attempt is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The family's own bytes ([`Prepared::account`]); `None` before the first attempt.
    pub account: Option<&'a [u8]>,
    /// The resources of its open attempts, in no order.
    pub held: &'a [Bytes],
    /// What the family wrote of each of those attempts ([`Attempt::own`]), in no order.
    pub attempts: &'a [Bytes],
    /// Whether the payment must leave some of what attempts hold to payments that matter more, where there is little of it;
    /// else [`SubmitError::Short`].
    pub keeps: bool,
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

/// What a family stores of accounts and attempts. Pure.
pub trait Landing: Send + Sync {
    /// The blocks in which a transaction that was sent may land although it is no longer wanted; 0 where another
    /// transaction cancels it.
    fn life(&self) -> u64 {
        0
    }
    /// What the account's next attempt holds, for people; `None` where the payment decides it. Nobody relies on it:
    /// what an attempt does hold, [`Outlook::prepare`] says.
    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError>;
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
    /// What a unit of work costs now.
    async fn rate(&self) -> Result<FeeRate, ReadError>;
    /// Hands a signed transaction to the network.
    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError>;
    /// What became of a transaction, by this provider's head. The id is as
    /// [`Codec::encode_transaction_id`](crate::Codec::encode_transaction_id) has it.
    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError>;
}

/// What a node said to a transaction. None of it is proof of inclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// It waits now, or waited already.
    Accepted,
    /// What it holds is used by a transaction that is in a block.
    Used,
    /// Another transaction that holds the same waits, and this one pays too little to replace it.
    Underpriced,
    /// The account cannot pay for it.
    Unfunded,
    /// By this node's head its time to land is over. That is no refusal, and a reorg may undo it: another transaction is
    /// made once it is final ([`Submitter::replace`]).
    Expired,
    /// The node will never take it: what is wrong with it is in its bytes, or in whom it carries.
    Refused(String),
    /// Anything else the node holds against it.
    Rejected(String),
}

/// What its sender paid for a transaction that is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The work that it took, at what that cost.
    pub work: Amount,
    /// What the chain charged besides; `None` where that is not told.
    pub besides: Option<Amount>,
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
