//! The oracle's service: it reads a claim's transactions, judges the claim and signs it through the journal, while it
//! asks peers. The number of inputs and peers does not add sequential waits: there are two.

mod authorization;
mod deposit;
mod exchange;
mod initiation;
mod mapping;
mod outcome;
mod owner;
mod payload;
mod recover;
mod request;
mod standing;
mod transfer;
mod trigger;
mod withdrawal;

use std::{collections::HashMap, sync::Arc};

use futures::future::try_join_all;
use serde_json::Value;
use vm::{
    B256, Chain, ChainSpec, Family, LARGE_EVENTS, OwnerKeys, ReadError, TxRef, U256,
    protocol::{
        message::{Execution, TypedMessage},
        signature::Signature,
    },
};

pub use authorization::{AuthorizationAnswer, InclusionAnswer};
pub use deposit::{DepositAnswer, DepositClaim};
pub use exchange::{ExchangeAnswer, ExchangeClaim};
pub use initiation::{InitiatedAnswer, InitiationAnswer, InitiationClaim, OwnedClaim};
pub use mapping::MappingAnswer;
pub use outcome::{FillClaim, InputClaim, OrderClaim, OutcomeAnswer, RefundClaim, RefundPayment};
pub use owner::{Permit, Proof, ReturnClaim, Returned};
pub use payload::PayloadAnswer;
pub use recover::RecoverClaim;
pub use request::RequestClaim;
pub use transfer::TransferClaim;
pub use trigger::TriggerAnswer;
pub use withdrawal::{
    AddressClaim, EndedAnswer, OwnedWithdrawalClaim, WithdrawalAnswer, WithdrawalClaim,
};

use super::{
    Refusal,
    backing::Tolerance,
    basis,
    claim::malformed,
    journal::{Journal, JournalError},
    peers::{
        Asked, Peers, Question,
        answer::{Corroborated, Spelled},
    },
    read::{Found, Unread, Wanted},
    statement::Statement,
};
use crate::{
    chains::{Closed, asking},
    hub::Hub,
    store::{requests::Requests, reserve::Reserve},
};

/// A configured chain of the oracle.
pub struct Reachable {
    /// `None` for a family that this build lacks.
    pub family: Option<&'static Family>,
    /// The chain's number at the hub, as configured.
    pub hub_chain_id: Option<U256>,
    /// What a claim is judged by that reads nothing of the chain, whether anybody reads it or not. `None`: what the
    /// opened chain is judged by.
    pub spec: Option<Arc<ChainSpec>>,
    /// The opened chain, or why the oracle attests nothing that it would read there.
    pub chain: Result<Chain, Closed>,
    /// Who says which keys owners sign with there, or why nobody's word is taken. `None` for a family whose signatures
    /// are verified without the chain.
    pub keys: Option<Result<OwnerKeys, Closed>>,
}

/// The oracle's service and its parts.
pub struct Attestor {
    /// By network name.
    pub chains: HashMap<String, Reachable>,
    pub hub: Hub,
    pub journal: Arc<Journal>,
    pub peers: Peers,
    /// The requests of this daemon's own solver, where it has one.
    pub requests: Requests,
    /// How far a deposit may fall short without its solver's signature.
    pub tolerance: Tolerance,
    /// Whether initiations require a withdrawal nonce that commits to the withdrawal.
    pub bound_nonces: bool,
    /// Whether a returned deposit allows nothing where the hub does not answer whether it applied the recovery.
    pub shown_recoveries: bool,
    /// Returns the current unix second.
    pub clock: fn() -> u64,
}

/// Why there is no attestation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The chain is configured but has no providers, or too few.
    #[error("the oracle attests nothing about chain {chain}: {why}")]
    Closed { chain: String, why: Closed },
    /// No provider can tell whether the allocator recorded a withdrawal.
    #[error("the oracle cannot read the allocator: {0}")]
    NoAllocator(String),
    /// The remaining disk space is reserved.
    #[error("the disk is nearly full")]
    NoRoom,
    /// The operator's settings are inconsistent.
    #[error("{0}")]
    Setup(String),
}

impl From<Unread> for Error {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Read(error) => error.into(),
            Unread::Refused(refusal) => refusal.into(),
        }
    }
}

/// Whether judging takes so long that other requests should run meanwhile.
fn is_long(found: &[Found]) -> bool {
    found.iter().map(Found::events).sum::<usize>() > LARGE_EVENTS
}

/// An execution with its signatures, ours first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attested {
    pub execution: Execution,
    pub signatures: Vec<Corroborated>,
}

impl Attestor {
    /// Signs nothing new that costs a caller without a key next to nothing, while `reserve` is low.
    #[must_use]
    pub fn with_reserve(self, reserve: Arc<Reserve>) -> Self {
        Self {
            requests: self.requests.with_reserve(reserve),
            ..self
        }
    }

    /// The family of a configured chain.
    pub fn family(&self, chain: &str) -> Option<&'static Family> {
        self.chains.get(chain)?.family
    }

    fn chain(&self, name: &str) -> Result<&Chain, Error> {
        let missing = || Refusal::ChainNotAvailable(name.into());
        let known = self.chains.get(name).ok_or_else(missing)?;
        known.chain.as_ref().map_err(|why| Error::Closed {
            chain: name.to_owned(),
            why: why.clone(),
        })
    }

    /// What a configured chain is judged by, whether this oracle reads it or not: for claims that read nothing of it,
    /// and set nothing apart that only a read of it would end.
    fn spec(&self, name: &str) -> Result<&Arc<ChainSpec>, Error> {
        match self.chains.get(name).and_then(|known| known.spec.as_ref()) {
            Some(spec) => Ok(spec),
            None => Ok(&self.chain(name)?.spec),
        }
    }

    /// `transaction` of `chain`; `hints` maps each family's name to that family's hint.
    fn wanted(
        &self,
        chain: &str,
        transaction: &str,
        hints: Option<&Value>,
        path: &str,
    ) -> Result<Wanted, Error> {
        let chain = self.chain(chain)?.clone();
        let transaction = named(&chain, transaction, hints, path)?;
        Ok(Wanted { chain, transaction })
    }

    /// For a statement that costs its caller next to nothing, and whose rows live for ever: refuses it to a caller
    /// without a key while the disk is low, unless it stands already.
    async fn check_room(&self, statement: &Statement) -> Result<(), Error> {
        if asking::is_stranger() && self.requests.room().is_err() {
            let known = self.journal.entry(&statement.key).await?;
            known.ok_or(Error::NoRoom)?;
        }
        Ok(())
    }

    fn ask(&self, question: Option<&Question>) -> Option<Asked> {
        question.map(|question| self.peers.ask(question))
    }

    fn digest(&self, execution: &Execution) -> B256 {
        execution.digest(&self.hub.settings.domain)
    }

    /// Signs `statement`, which is about `execution`, while peers answer.
    async fn seal(
        &self,
        execution: Execution,
        statement: &Statement,
        asked: Option<Asked>,
    ) -> Result<Attested, Error> {
        let spelled = Spelled::execution(&execution, statement.digest, &self.hub.settings);
        let [signatures] = self.signed([(spelled, statement)], asked).await?;
        Ok(Attested {
            execution,
            signatures,
        })
    }

    /// Signs messages, each with its statement, while peers answer with all of them. For each message, its
    /// signatures, ours first.
    async fn signed<const N: usize>(
        &self,
        messages: [(Spelled, &Statement); N],
        asked: Option<Asked>,
    ) -> Result<[Vec<Corroborated>; N], Error> {
        let statements = messages.each_ref().map(|(_, statement)| *statement);
        let messages = messages.map(|(spelled, _)| spelled);
        if asked.is_some() {
            // What peers answer is in no row.
            basis::not_only_rows();
        }
        let own = self.journal.signer();
        let ours = try_join_all(statements.map(|statement| self.sign(statement)));
        let theirs = async {
            Ok(match asked {
                Some(asked) => asked.collect(&messages, own).await,
                None => Vec::new(),
            })
        };
        let (ours, theirs) = tokio::try_join!(ours, theirs)?;
        let mut theirs = theirs.into_iter();
        let mut ours = messages.iter().zip(ours);
        Ok([(); N].map(|()| {
            let own = ours.next().map(|(message, by)| message.by(own, by));
            let theirs = theirs.next().unwrap_or_default();
            own.into_iter().chain(theirs).collect()
        }))
    }

    /// Signs through the journal. When the same was signed as of another block, and that block is gone, the journal
    /// voids the old statement, and halts the chain unless that block was taken early: two quorums agree, this read
    /// and the one of the transaction. When that block is still there, the providers show two forks, and the call
    /// fails.
    async fn sign(&self, statement: &Statement) -> Result<Signature, Error> {
        let now = (self.clock)();
        match self.journal.sign(statement, now).await {
            Err(JournalError::OtherBlock { key, block, chain }) => {
                let reader = &self.chain(chain.as_str())?.reader;
                if reader.contains(&block).await? {
                    let what = format!("{key} stands, and {} claims another block", statement.key);
                    return Err(ReadError::Doubtful(what).into());
                }
                self.journal.reorged(&key, &chain, &block, now).await?;
                Ok(self.journal.sign(statement, now).await?)
            }
            signed => Ok(signed?),
        }
    }
}

/// Parses `text` as a transaction id of `chain`, with the hint of its family.
fn named(chain: &Chain, text: &str, hints: Option<&Value>, path: &str) -> Result<TxRef, Refusal> {
    let family = chain.spec.family;
    let hint = hints.and_then(|hints| hints.get(family.name));
    family.tx(text, hint).map_err(|why| malformed(path, why))
}

#[cfg(test)]
mod tests;
