//! Agreement of several providers, written once for all families.
//!
//! Every read goes to each provider on its own; the decoded answers are compared, and an answer
//! counts when `required` providers give it. Fewer is an error, never a fallback to fewer votes. A
//! provider that contradicts an agreed answer is set aside for a while: its votes do not count.
//! Which providers exist and how many must agree is the caller's decision.

mod seat;

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::time::{Instant, timeout_at};

pub use self::seat::Health;
use self::seat::{Seat, Weight};
use crate::{
    ChainReader, Provider, ReadError, StateReader,
    types::{Address, Block, Bytes, ChainId, Head, Transaction, TxRef, WithdrawalStatus},
};

/// How long a head waits for the remaining providers while the first ones are far apart.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long providers that were not needed are still heard.
const LATE: Duration = Duration::from_secs(15);
/// Heads this close to each other are one chain seen at different moments.
const CLOSE: u64 = 4;

/// See the module.
pub struct Quorum {
    chain: ChainId,
    seats: Vec<Arc<Seat>>,
    required: usize,
}

/// A number of votes that no list of providers can give, or that none would have to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{required} of {providers} providers cannot agree")]
pub struct Impossible {
    pub required: usize,
    pub providers: usize,
}

/// More than half of `providers`.
pub fn majority(providers: usize) -> usize {
    providers / 2 + 1
}

impl Quorum {
    /// `required` is between 1 and the number of providers. Providers of one name get numbers.
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
        let seats = providers
            .into_iter()
            .map(|mut provider| {
                let plain = provider.name.clone();
                for number in 2_u32.. {
                    if names.insert(provider.name.clone()) {
                        break;
                    }
                    provider.name = format!("{plain}#{number}").into();
                }
                Arc::new(Seat::new(chain, provider))
            })
            .collect();
        Ok(Self {
            chain: chain.clone(),
            seats,
            required,
        })
    }

    /// How many equal answers count.
    pub fn required(&self) -> usize {
        self.required
    }

    /// Where each provider stands, in the order of the list.
    pub fn health(&self) -> Vec<Health> {
        self.seats.iter().map(|seat| seat.health()).collect()
    }

    /// Whether enough providers' votes count and answered when last asked.
    pub fn ready(&self) -> bool {
        let well = |seat: &&Arc<Seat>| seat.health().well();
        self.seats.iter().filter(well).count() >= self.required
    }

    /// Asks every provider; the first answer that `required` of them give.
    async fn vote<T, F>(&self, what: &'static str, ask: F) -> Result<T, ReadError>
    where
        T: PartialEq + Clone + Send + Sync + 'static,
        F: Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>>,
    {
        let mut open = self.ask(ask)?;
        let mut groups: Vec<(T, Vec<Arc<Seat>>)> = Vec::new();
        let mut errors = Vec::new();
        while let Some((seat, answer)) = open.next().await {
            match answer {
                Ok(answer) => match groups.iter_mut().find(|(said, _)| *said == answer) {
                    Some((_, seats)) => seats.push(seat),
                    None => groups.push((answer, vec![seat])),
                },
                Err(error) => {
                    let doubtful = matches!(error, ReadError::Doubtful(_));
                    errors.push((seat, doubtful, error));
                }
            }
            if let Some(found) = groups.iter().position(|(_, s)| s.len() >= self.required) {
                let (agreed, _) = groups.swap_remove(found);
                for seat in groups.iter().flat_map(|(_, seats)| seats) {
                    seat.dispute(what, Weight::Contradiction);
                }
                for (seat, ..) in errors.iter().filter(|(_, doubtful, _)| *doubtful) {
                    seat.dispute(what, Weight::Doubt);
                }
                watch(what, agreed.clone(), open);
                return Ok(agreed);
            }
        }
        Err(self.disagreement(what, &groups, &errors))
    }

    fn ask<T, F>(&self, ask: F) -> Result<Open<T>, ReadError>
    where
        T: Send + 'static,
        F: Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>>,
    {
        let counted: Vec<_> = self.seats.iter().filter(|seat| seat.counts()).collect();
        if counted.len() < self.required {
            return Err(self.short(&format!(
                "{} providers are set aside",
                self.seats.len() - counted.len()
            )));
        }
        Ok(counted
            .into_iter()
            .map(|seat| {
                let answer = ask(&seat.provider);
                let seat = seat.clone();
                let vote: BoxFuture<'static, _> = Box::pin(async move {
                    let answer = answer.await;
                    seat.answered(&answer);
                    (seat, answer)
                });
                vote
            })
            .collect())
    }

    /// Nobody can tell who is wrong, so nobody is set aside; it is on record.
    fn disagreement<T>(
        &self,
        what: &'static str,
        groups: &[(T, Vec<Arc<Seat>>)],
        errors: &[(Arc<Seat>, bool, ReadError)],
    ) -> ReadError {
        if groups.len() > 1 {
            for seat in groups.iter().flat_map(|(_, seats)| seats) {
                seat.dispute(what, Weight::Unresolved);
            }
        }
        for (seat, ..) in errors.iter().filter(|(_, doubtful, _)| *doubtful) {
            seat.dispute(what, Weight::Unresolved);
        }
        let most = groups.iter().map(|(_, seats)| seats.len()).max();
        let causes: Vec<String> = errors
            .iter()
            .map(|(seat, _, error)| format!("{}: {error}", seat.provider.name))
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

    /// The `required`-th highest head that as many providers confirm.
    async fn agree(&self, fresh: bool) -> Result<Head, ReadError> {
        let mut open = self.ask(|provider| {
            let reader = provider.reader.clone();
            Box::pin(async move {
                if fresh {
                    reader.fresh_head().await
                } else {
                    reader.head().await
                }
            })
        })?;
        let mut heads: Vec<(Arc<Seat>, Head)> = Vec::new();
        loop {
            self.hear(&mut open, &mut heads).await;
            if let Some(head) = self.confirm(&mut heads).await {
                return Ok(head);
            }
            match open.next().await {
                Some((seat, head)) => heads.extend(head.ok().map(|head| (seat, head))),
                None => return Err(self.short(&format!("{} heads, none agreed", heads.len()))),
            }
        }
    }

    /// Collects heads until enough are there, and more while those are far apart.
    async fn hear(&self, open: &mut Open<Head>, heads: &mut Vec<(Arc<Seat>, Head)>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let next = if heads.len() < self.required {
                open.next().await
            } else if self.spread(heads) <= CLOSE {
                // Whoever answers at once is heard; nobody is waited for.
                open.next().now_or_never().flatten()
            } else {
                timeout_at(deadline, open.next()).await.ok().flatten()
            };
            match next {
                Some((seat, head)) => heads.extend(head.ok().map(|head| (seat, head))),
                None => return,
            }
        }
    }

    /// How far the agreed head is behind the highest.
    fn spread(&self, heads: &[(Arc<Seat>, Head)]) -> u64 {
        let mut numbers: Vec<u64> = heads.iter().map(|(_, head)| head.block.number).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers[0] - numbers[self.required - 1]
    }

    /// The highest of the heads that enough providers can know, if as many confirm it.
    async fn confirm(&self, heads: &mut [(Arc<Seat>, Head)]) -> Option<Head> {
        heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.block.number));
        let mut tags: Vec<u64> = heads.iter().filter_map(|(_, head)| head.tagged).collect();
        tags.sort_unstable_by(|a, b| b.cmp(a));
        let tagged = tags.get(self.required - 1).copied();
        let highest = heads.get(self.required - 1)?.1.block.number;
        let mut tried: Vec<&Block> = Vec::new();
        for (_, Head { block, .. }) in heads.iter() {
            if block.number > highest || tried.contains(&block) {
                continue;
            }
            if self.confirmed(block, heads).await {
                return Some(Head {
                    block: block.clone(),
                    tagged,
                });
            }
            tried.push(block);
        }
        None
    }

    async fn confirmed(&self, block: &Block, heads: &[(Arc<Seat>, Head)]) -> bool {
        let mut votes: FuturesUnordered<_> = heads
            .iter()
            .filter(|(_, head)| head.block.number >= block.number)
            .map(|(seat, head)| async move {
                if head.block == *block {
                    return (seat, Ok(true));
                }
                (seat, seat.provider.reader.contains(block).await)
            })
            .collect();
        let mut confirmations = 0;
        let mut others = Vec::new();
        while let Some((seat, confirmed)) = votes.next().await {
            match confirmed {
                Ok(true) => confirmations += 1,
                Ok(false) => others.push(seat),
                Err(_) => {}
            }
            if confirmations >= self.required {
                for seat in others {
                    seat.dispute("head", Weight::Unresolved);
                }
                return true;
            }
        }
        false
    }
}

type Open<T> = FuturesUnordered<BoxFuture<'static, (Arc<Seat>, Result<T, ReadError>)>>;

/// Hears the providers that were not needed, so that a lie is found even when it came late.
fn watch<T: PartialEq + Send + Sync + 'static>(what: &'static str, agreed: T, mut open: Open<T>) {
    if open.is_empty() {
        return;
    }
    let hear = async move {
        while let Some((seat, answer)) = open.next().await {
            match answer {
                Ok(answer) if answer != agreed => seat.dispute(what, Weight::Contradiction),
                Err(ReadError::Doubtful(_)) => seat.dispute(what, Weight::Doubt),
                _ => {}
            }
        }
    };
    tokio::spawn(tokio::time::timeout(LATE, hear));
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
        self.vote("block", |provider| {
            let (reader, block) = (provider.reader.clone(), block.clone());
            Box::pin(async move { reader.contains(&block).await })
        })
        .await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        self.vote("transaction", |provider| {
            let (reader, tx, head) = (provider.reader.clone(), tx.clone(), head.clone());
            Box::pin(async move { reader.transaction(&tx, &head).await })
        })
        .await
    }
}

#[async_trait]
impl StateReader for Quorum {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.vote("settled block", |provider| {
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
        self.vote("withdrawal", |provider| {
            let state = provider.state.clone();
            let (encoded, tx, block) = (encoded.clone(), tx.cloned(), block.clone());
            Box::pin(async move {
                let state = state.ok_or_else(no_state)?;
                state.withdrawal(&encoded, tx.as_ref(), &block).await
            })
        })
        .await
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        self.vote("state", |provider| {
            let state = provider.state.clone();
            let (to, data, block) = (to.clone(), data.clone(), block.clone());
            Box::pin(async move {
                let state = state.ok_or_else(no_state)?;
                state.view(&to, &data, &block).await
            })
        })
        .await
    }
}

fn no_state() -> ReadError {
    ReadError::Unavailable("this provider reads no state".into())
}

#[cfg(test)]
mod tests;
