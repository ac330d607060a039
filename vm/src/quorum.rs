//! Agreement of several providers, for all families.
//!
//! Every provider answers every read by itself. The quorum compares the decoded answers, and an answer counts when
//! `required` providers give it. Fewer is an error, never a fallback to fewer votes. A provider that contradicts an
//! agreed answer is set aside for a while: its votes do not count. The caller decides which providers exist and how
//! many must agree.

mod audit;
mod conduct;
mod dissent;
mod heads;
mod recorded;
mod seat;
mod votes;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures::{future::BoxFuture, stream::StreamExt};

pub use self::seat::Health;
use self::{
    dissent::{Agreed, Answer, Dissent, Open, Sight, is_same},
    seat::{Seat, Weight},
    votes::Votes,
};
use crate::{
    ChainReader, Kept, KeyReader, Provider, ReadError, StateReader, aside,
    evidence::{self, Question, Replay, Said, Vote},
    types::{Address, B256, Block, Bytes, ChainId, Head, Transaction, TxRef, WithdrawalStatus},
};

/// The providers of one chain, and how many of them must give the same answer.
pub struct Quorum {
    chain: ChainId,
    seats: Vec<Arc<Seat>>,
    required: usize,
    /// The last head of a provider that was recorded, with its digest.
    recorded_head: Mutex<Option<(Head, B256)>>,
}

/// A number of votes that the providers cannot reach, or that is zero.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{required} of {providers} providers cannot agree")]
pub struct Impossible {
    pub required: usize,
    pub providers: usize,
}

/// The smallest number above half of `providers`.
pub fn majority(providers: usize) -> usize {
    providers / 2 + 1
}

impl Quorum {
    /// `required` is between 1 and the number of providers. Providers with the same name get numbers.
    pub fn new(
        chain: &ChainId,
        providers: Vec<Provider>,
        required: usize,
    ) -> Result<Self, Impossible> {
        if required == 0 || required > providers.len() {
            return Err(Impossible {
                required,
                providers: providers.len(),
            });
        }
        let mut names = HashSet::new();
        let seats = (1..)
            .zip(providers)
            .map(|(position, mut provider)| {
                let plain = provider.name.clone();
                for number in 2_u32.. {
                    if names.insert(provider.name.clone()) {
                        break;
                    }
                    provider.name = format!("{plain}#{number}").into();
                }
                Arc::new(Seat::new(chain, position, provider))
            })
            .collect();
        Ok(Self {
            chain: chain.clone(),
            seats,
            required,
            recorded_head: Mutex::default(),
        })
    }

    /// The number of equal answers that count.
    pub fn required(&self) -> usize {
        self.required
    }

    /// The state of each provider, in the order of the list.
    pub fn health(&self) -> Vec<Health> {
        self.seats.iter().map(|seat| seat.health()).collect()
    }

    /// Whether enough providers' votes count and their last reads succeeded.
    pub fn ready(&self) -> bool {
        let well = |seat: &&Arc<Seat>| seat.health().well();
        self.seats.iter().filter(well).count() >= self.required
    }

    /// Asks every provider and returns the first answer that `required` of them give. An answer that is no proof
    /// counts only when all providers give it, those set aside included.
    ///
    /// Records the answer with the votes, where reads are recorded ([`evidence`]), and adds late answers; `question` is
    /// what was asked.
    async fn vote<T, F>(
        &self,
        what: &'static str,
        question: impl FnOnce() -> Question,
        ask: F,
    ) -> Result<T, ReadError>
    where
        T: Answer,
        F: Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>> + Send + Sync + 'static,
    {
        if let Some(replay) = Replay::current() {
            return self.replayed(&replay, &question());
        }
        let (_, mut open) = self.ask(&ask)?;
        let mut votes = Votes::new();
        while let Some(said) = open.next().await {
            votes.add(said);
            if let Some((answer, seats)) = votes.agreed(self.required, self.seats.len()) {
                let mut digest = B256::ZERO;
                let noted = evidence::note(|| {
                    let shown = aside(answer.is_large(), || answer.shown());
                    digest = shown.digest();
                    self.evidence(question(), shown, |seat| votes.said((digest, &seats), seat))
                });
                let copied = copy(&answer);
                let agreed = Agreed {
                    what,
                    answer,
                    seats,
                    ask: Arc::new(ask),
                    noted: noted.map(|noted| (noted, digest)),
                };
                agreed.settle(votes.each(), open);
                return Ok(copied);
            }
        }
        match votes.by_question(self.required) {
            Some(error) => Err(error.clone()),
            None => Err(self.disagreement(what, &votes)),
        }
    }

    /// The recorded answer to a question.
    fn replayed<T: Answer>(&self, replay: &Replay, question: &Question) -> Result<T, ReadError> {
        let read = replay.read(&self.chain, question)?;
        evidence::note(|| read.clone());
        T::of_evidence(read.answer).ok_or_else(|| replay.other(&self.chain))
    }

    /// A read of this quorum as evidence.
    fn evidence(
        &self,
        question: Question,
        answer: evidence::Answer,
        said: impl Fn(&Arc<Seat>) -> Said,
    ) -> evidence::Read {
        let vote = |seat: &Arc<Seat>| Vote {
            provider: seat.provider.name.clone(),
            said: said(seat),
        };
        evidence::Read {
            chain: self.chain.clone(),
            question,
            answer,
            required: u32::try_from(self.required).unwrap_or(u32::MAX),
            votes: self.seats.iter().map(vote).collect(),
        }
    }

    /// Asks the providers whose votes count; returns them with their pending answers.
    fn ask<T, F>(&self, ask: &F) -> Result<(Vec<Arc<Seat>>, Open<T>), ReadError>
    where
        T: Send + 'static,
        F: Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>>,
    {
        let counted = self.seats.iter().filter(|seat| seat.counts()).cloned();
        let counted: Vec<Arc<Seat>> = counted.collect();
        if counted.len() < self.required {
            return Err(self.short(&format!(
                "{} providers are set aside",
                self.seats.len() - counted.len()
            )));
        }
        let votes = counted.iter().map(|seat| {
            let answer = ask(&seat.provider);
            let seat = seat.clone();
            let vote: BoxFuture<'static, _> = Box::pin(async move {
                let answer = answer.await;
                seat.answered(&answer);
                (seat, answer)
            });
            vote
        });
        let votes = votes.collect();
        Ok((counted, votes))
    }

    /// Records a disagreement; it sets nobody aside, because nobody can tell who is wrong.
    fn disagreement<T: Answer>(&self, what: &'static str, votes: &Votes<T>) -> ReadError {
        let (groups, errors) = (&votes.groups, &votes.errors);
        for (said, seats) in groups {
            let mut others = groups.iter().filter(|(other, _)| !is_same(other, said));
            if others.any(|(other, _)| said.against(other) != Dissent::Honest) {
                seats
                    .iter()
                    .for_each(|seat| seat.dispute(what, Weight::Unresolved));
            }
        }
        for (seat, error) in errors {
            if matches!(error, ReadError::Doubtful(_)) {
                seat.dispute(what, Weight::Unresolved);
            }
        }
        let most = groups.iter().map(|(_, seats)| seats.len()).max();
        let causes: Vec<String> = errors
            .iter()
            .map(|(seat, error)| format!("{}: {error}", seat.provider.name))
            .collect();
        self.short(&format!(
            "{} equal answers about {what}; {}",
            most.unwrap_or(0),
            causes.join("; ")
        ))
    }

    fn short(&self, why: &str) -> ReadError {
        let (chain, required) = (&self.chain, self.required);
        tracing::warn!(%chain, required, why, "quorum unavailable");
        metrics::counter!("intentd_quorum_failures_total", "chain" => chain.to_string())
            .increment(1);
        ReadError::Quorum(format!("{chain} needs {required}: {why}"))
    }
}

#[async_trait]
impl ChainReader for Quorum {
    async fn head(&self) -> Result<Head, ReadError> {
        self.agree(false).await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.agree(true).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        let question = || Question::Contains(block.clone());
        let asked = block.clone();
        let sight = self.vote("block", question, move |provider| {
            let (reader, block) = (provider.reader.clone(), asked.clone());
            Box::pin(async move { Sight::of(&*reader, &block).await })
        });
        Ok(sight.await? == Sight::Holds)
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let question = || Question::transaction(tx, head);
        let (tx, head) = (tx.clone(), head.clone());
        self.vote("transaction", question, move |provider| {
            let (reader, tx, head) = (provider.reader.clone(), tx.clone(), head.clone());
            Box::pin(async move { reader.transaction(&tx, &head).await })
        })
        .await
    }
}

#[async_trait]
impl StateReader for Quorum {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        let question = || Question::settled(head);
        let head = head.clone();
        self.vote("settled block", question, move |provider| {
            let (state, head) = (provider.state.clone(), head.clone());
            Box::pin(async move { state.ok_or_else(no_state)?.settled(&head).await })
        })
        .await
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        tx: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let question = || Question::withdrawal(encoded, tx, block);
        let (encoded, tx, block) = (encoded.clone(), tx.cloned(), block.clone());
        self.vote("withdrawal", question, move |provider| {
            let state = provider.state.clone();
            let (encoded, tx, block) = (encoded.clone(), tx.clone(), block.clone());
            Box::pin(async move {
                let state = state.ok_or_else(no_state)?;
                state.withdrawal(&encoded, tx.as_ref(), &block).await
            })
        })
        .await
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let question = || Question::sequence(owner, block);
        let (owner, block) = (owner.clone(), block.clone());
        self.vote("sequence", question, move |provider| {
            let state = provider.state.clone();
            let (owner, block) = (owner.clone(), block.clone());
            Box::pin(async move { state.ok_or_else(no_state)?.sequence(&owner, &block).await })
        })
        .await
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        let question = || Question::view(to, data, block);
        let (to, data, block) = (to.clone(), data.clone(), block.clone());
        self.vote("state", question, move |provider| {
            let state = provider.state.clone();
            let (to, data, block) = (to.clone(), data.clone(), block.clone());
            Box::pin(async move {
                let state = state.ok_or_else(no_state)?;
                state.view(&to, &data, &block).await
            })
        })
        .await
    }

    async fn bears_out(&self, said: &Bytes) -> Result<bool, ReadError> {
        let question = || Question::outputs(said);
        let said = said.clone();
        self.vote("outputs", question, move |provider| {
            let (state, said) = (provider.state.clone(), said.clone());
            Box::pin(async move { state.ok_or_else(no_state)?.bears_out(&said).await })
        })
        .await
    }
}

#[async_trait]
impl KeyReader for Quorum {
    async fn owner_key(&self, owner: &Address) -> Result<Option<Bytes>, ReadError> {
        let question = || Question::owner_key(owner);
        let owner = owner.clone();
        self.vote("owner's key", question, move |provider| {
            let (keys, owner) = (provider.keys.clone(), owner.clone());
            Box::pin(async move { keys.ok_or_else(no_keys)?.owner_key(&owner).await })
        })
        .await
    }
}

/// Copies an answer; a large one on another thread.
fn copy<T: Answer>(answer: &Kept<T>) -> T {
    aside(answer.is_large(), || T::clone(answer))
}

fn no_state() -> ReadError {
    ReadError::Unavailable("this provider reads no state".into())
}

fn no_keys() -> ReadError {
    ReadError::Unavailable("this provider reads no keys of owners".into())
}

#[cfg(test)]
mod tests;
