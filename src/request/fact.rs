//! What has been seen of a request. Facts are data: who saw them, and how, is not known here.

use alloy::primitives::{B256, U256};
use serde::{Deserialize, Serialize};
use vm::Block;

use super::reason::{FailReason, RefundFailReason};

/// Everything seen of one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Grows by one with every change.
    pub version: u64,
    /// Unix milliseconds of the last change.
    pub updated_at: u64,
    /// Every deposit that named the order, in the order in which they were first seen.
    pub deposits: Vec<Deposit>,
    /// The user's own transactions of a request that the user executes; of another request the deposits that wait for a
    /// block.
    pub own: Vec<Sent>,
    /// Which deposits a quorum showed waiting for a block, and since when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited: Vec<Waited>,
    /// What the solver sent for the order, first to last.
    pub attempts: Vec<Attempt>,
    /// Why the order will not be filled; set before a refund is begun, and never taken back while
    /// money has moved because of it.
    pub failure: Option<FailReason>,
    /// Why there will be no refund.
    pub refund_failure: Option<RefundFailReason>,
    /// How deposits end that fill nothing; each once.
    pub endings: Vec<Ending>,
    /// The hub's side, once the solver has been paid there.
    pub settlement: Option<Settlement>,
}

/// Where a transaction is included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inclusion {
    pub number: u64,
    pub hash: B256,
    /// Unix seconds.
    pub time: u64,
}

impl From<&Block> for Inclusion {
    fn from(block: &Block) -> Self {
        Self {
            number: block.number,
            hash: block.hash,
            time: block.time,
        }
    }
}

/// A deposit that named the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// The protocol's onchain id (guide: protocol 2.3).
    pub onchain_id: B256,
    pub network: String,
    /// As the chain's explorers spell it.
    pub transaction: String,
    pub depository: String,
    pub depositor: String,
    pub currency: String,
    pub amount: U256,
    pub place: Inclusion,
    pub standing: Standing,
    /// Deposits of its transaction that moved something, with itself: they are attested together. Known
    /// once it is final.
    pub together: u32,
    /// Its depositor gave it: anybody can deposit in another's name. Known once it is final.
    pub own: bool,
    /// Another than its payer says which order it is for: it pays for none. Known once it is final.
    pub named_by_other: bool,
}

/// What a quorum shows of a deposit that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub place: Inclusion,
    /// How many deposits of the transaction are attested together, as [`Deposit::together`].
    pub together: u32,
    /// Whether its depositor gave it, as [`Deposit::own`].
    pub own: bool,
    /// Whether another than its payer names its order, as [`Deposit::named_by_other`].
    pub named_by_other: bool,
}

/// How a deposit ends that fills nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The deposit's onchain id.
    pub deposit: B256,
    /// Why it fills nothing.
    pub reason: FailReason,
    /// Why it is not given back; `None`: it is.
    pub refused: Option<RefundFailReason>,
    /// It is worth nothing, or nobody knows what: it says nothing about the request.
    pub minor: bool,
}

/// How firmly something included stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// In a block that may still be reorged.
    Included,
    /// As deep as the chain's finality asks, by a quorum of providers.
    Final,
    /// Its block left the chain.
    Reorged,
}

/// A transaction of the user's that the API was told about or found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub network: String,
    pub transaction: String,
    pub state: State,
}

/// A deposit that waited for a block before a quorum's eyes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    pub network: String,
    pub transaction: String,
    /// Unix seconds.
    pub since: u64,
}

/// What the solver was trying to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    Fill,
    Refund,
    /// What a deposit was more than its order asked for, given back beside the fill.
    Excess,
}

/// A transaction of the solver's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub purpose: Purpose,
    /// The onchain id of the deposit that it uses up or gives back; older rows do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposit: Option<B256>,
    pub network: String,
    pub transaction: String,
    /// What reaches the recipient.
    pub currency: String,
    pub amount: U256,
    pub state: State,
}

/// How far a transaction has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Handed to the network.
    Broadcast,
    Included(Inclusion),
    /// Deep enough to be told as done.
    Confirmed(Inclusion),
    /// Included, and it failed.
    Reverted {
        place: Inclusion,
        reason: Option<String>,
    },
    /// Something else has used what it needs, or its time is over: it will never be included.
    Replaced,
}

/// The hub's side of a filled or refunded order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// The transaction at the hub that applied the deposits' executions.
    pub deposit: Option<Applied>,
    /// The one that applied the fill's or refund's execution.
    pub outcome: Option<Applied>,
}

/// An attested execution that the settlement contract took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The settlement chain as the API numbers it; older rows do not have it.
    #[serde(default)]
    pub chain: Option<u64>,
    pub transaction: String,
    /// The oracle's answer: `idempotencyKey`, `actions`, `signatures`.
    pub execution: serde_json::Value,
}

impl Applied {
    /// An execution that a transaction of the chain with this number had the contract take.
    pub fn on(chain: u64, transaction: String, execution: serde_json::Value) -> Self {
        Self {
            chain: Some(chain),
            transaction,
            execution,
        }
    }
}

impl State {
    /// Where the transaction is included, whatever came of it.
    pub fn place(&self) -> Option<&Inclusion> {
        match self {
            Self::Included(place) | Self::Confirmed(place) | Self::Reverted { place, .. } => {
                Some(place)
            }
            Self::Broadcast | Self::Replaced => None,
        }
    }

    /// Whether it may still do, or has done, what it was sent for.
    pub fn alive(&self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Included(_) | Self::Confirmed(_)
        )
    }
}

impl Facts {
    /// Unix seconds since when a quorum showed the deposit waiting for its block; `None`: nobody saw it wait.
    pub fn waited_since(&self, deposit: &Deposit) -> Option<u64> {
        let same = |one: &&Waited| {
            one.network == deposit.network && one.transaction == deposit.transaction
        };
        self.waited.iter().find(same).map(|one| one.since)
    }

    /// The deposits whose blocks are on the chain.
    pub fn standing(&self) -> impl Iterator<Item = &Deposit> {
        self.deposits
            .iter()
            .filter(|deposit| deposit.standing != Standing::Reorged)
    }

    /// Whether the deposit says nothing about the request.
    pub fn is_minor(&self, deposit: &Deposit) -> bool {
        let mut endings = self.endings.iter();
        endings.any(|ending| ending.minor && ending.deposit == deposit.onchain_id)
    }

    /// Whether it is told that the deposit is neither filled nor given back.
    pub fn is_refused(&self, deposit: &Deposit) -> bool {
        let mut endings = self.endings.iter();
        endings.any(|ending| ending.refused.is_some() && ending.deposit == deposit.onchain_id)
    }

    /// Whether the deposit is given back, or not even that, whatever becomes of the request.
    pub fn has_ended(&self, deposit: &Deposit) -> bool {
        let mut endings = self.endings.iter();
        endings.any(|ending| ending.deposit == deposit.onchain_id)
    }

    /// Stores how a deposit ends, in place of what was known of it.
    pub fn end(&mut self, ending: Ending) {
        self.endings.retain(|known| known.deposit != ending.deposit);
        self.endings.push(ending);
    }

    /// What the user and the solver sent, the user's first: network, transaction, and how far it has come.
    pub fn sent(&self) -> impl DoubleEndedIterator<Item = (&str, &str, &State)> {
        let own = self.own.iter();
        let own = own.map(|one| (&*one.network, &*one.transaction, &one.state));
        let attempts = self.attempts.iter();
        own.chain(attempts.map(|one| (&*one.network, &*one.transaction, &one.state)))
    }

    /// The transactions of deposits whose blocks are on the chain, and all that was [`Self::sent`]: network,
    /// transaction, and where it is included.
    pub fn placed(&self) -> impl Iterator<Item = (&str, &str, Option<&Inclusion>)> {
        let deposits = self.standing();
        let deposits = deposits.map(|one| (&*one.network, &*one.transaction, Some(&one.place)));
        deposits.chain(
            self.sent()
                .map(|(network, transaction, state)| (network, transaction, state.place())),
        )
    }

    /// The solver's transactions for `purpose` that may still count.
    pub fn alive(&self, purpose: Purpose) -> impl Iterator<Item = &Attempt> {
        self.attempts
            .iter()
            .filter(move |attempt| attempt.purpose == purpose && attempt.state.alive())
    }
}
