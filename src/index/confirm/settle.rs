//! Records what a look found, in one commit for each request and transaction. A commit that the store refuses is made
//! with the next look; it does not hold up other commits.

use std::collections::BTreeMap;

use vm::B256;

use super::{Confirmer, Due, Look, Pending, shelf, verdict::Verdict};
use crate::{
    index::{IndexError, apply, listed::Listed, recorder::opened},
    request::{
        Execution,
        fact::{Agreed, Deposit, Facts},
    },
    store::{
        Batch, Expect,
        rows::{
            cursor::{self, Cursor},
            parked,
        },
    },
};

impl Confirmer {
    /// Records what was found out about the deposits of a transaction, in their order. `now` in unix
    /// milliseconds.
    pub(super) async fn settle(&self, due: &Due, verdicts: &[Verdict], now: u64) -> Look {
        let mut look = Look::default();
        let mut finals: BTreeMap<B256, Vec<(&Pending, &Agreed)>> = BTreeMap::new();
        let mut gone: BTreeMap<B256, Vec<&Pending>> = BTreeMap::new();
        for (one, verdict) in due.deposits.iter().zip(verdicts) {
            let (request, deposit) = one;
            match verdict {
                Verdict::Early => {
                    self.listed(one, "its block is not final", now).await;
                    look.early += 1;
                }
                Verdict::Doubtful(why) => {
                    self.count(deposit, "doubtful");
                    self.pauses.doubt(due, now);
                    self.listed(one, why, now).await;
                    look.early += 1;
                }
                Verdict::Final(agreed) => {
                    finals.entry(request.id).or_default().push((one, agreed));
                }
                Verdict::Gone => gone.entry(request.id).or_default().push(one),
            }
        }
        for some in finals.values() {
            match self.agreed(some, now).await {
                Ok(()) => look.confirmed += some.len(),
                Err(error) => look.refused += refused(&error, due, some.len()),
            }
        }
        for some in gone.values() {
            match self.gone(some, now).await {
                Ok(()) => look.gone += some.len(),
                Err(error) => look.refused += refused(&error, due, some.len()),
            }
        }
        look
    }

    /// Lists a deposit that no quorum has agreed about for long.
    pub(super) async fn listed(&self, one: &Pending, why: &str, now: u64) {
        if let Err(error) = self.shelve(one, why, now).await {
            tracing::error!(%error, "a deposit is not listed");
        }
    }

    /// Records that deposits of a request are final.
    async fn agreed(&self, some: &[(&Pending, &Agreed)], now: u64) -> Result<(), IndexError> {
        let Some(((request, first), _)) = some.first() else {
            return Ok(());
        };
        let mut batch = opened(Batch::new(), request.id, first.onchain_id, now);
        // A deposit that a solver decides about is not listed here.
        let mut listed = match request.execution {
            Execution::Solver => Listed::default(),
            Execution::User => Listed::of(&**self.requests.store(), &request.id).await?,
        };
        let (mut paid, mut endings) = (Vec::new(), Vec::new());
        for (one, agreed) in some {
            let deposit = &*one.1;
            match shelf::unpaid(one, agreed, now) {
                None => paid.push(deposit),
                Some((row, ending)) => {
                    if listed.takes(&row) {
                        let key = parked::key(&request.id, &deposit.onchain_id);
                        batch = batch.put(key, row.encode()?);
                    }
                    endings.push(ending);
                }
            }
        }
        let (batch, shelved) = self.unshelve(batch, &request.id, &paid).await?;
        let change = |facts: &mut Facts| {
            for ((_, deposit), agreed) in some {
                apply::settled(facts, deposit.onchain_id, deposit.place.hash, agreed);
            }
            shelf::forget(facts, &shelved);
            for ending in &endings {
                facts.end(ending.clone());
            }
        };
        let recorded = self.requests.record(&request.id, now, batch, change);
        recorded.await?;
        some.iter()
            .for_each(|(one, _)| self.count(&one.1, "confirmed"));
        Ok(())
    }

    /// Records that deposits of a request do not exist. The provider that showed them may have left out others, so
    /// the same commit notes that the network has to be read again from there.
    async fn gone(&self, some: &[&Pending], now: u64) -> Result<(), IndexError> {
        let Some((request, first)) = some.first() else {
            return Ok(());
        };
        let batch = opened(Batch::new(), request.id, first.onchain_id, now);
        let deposits: Vec<&Deposit> = some.iter().map(|(_, deposit)| &**deposit).collect();
        let (batch, shelved) = self.unshelve(batch, &request.id, &deposits).await?;
        let batch = self.owed(batch, &deposits).await?;
        let change = |facts: &mut Facts| {
            for deposit in &deposits {
                apply::gone(facts, deposit.onchain_id, deposit.place.hash);
            }
            shelf::forget(facts, &shelved);
        };
        let recorded = self.requests.record(&request.id, now, batch, change);
        recorded.await?;
        for deposit in deposits {
            self.count(deposit, "gone");
        }
        if let Some(network) = self.networks.get(&first.network) {
            network.wakeup.wake();
        }
        Ok(())
    }

    /// `batch`, and a note in the cursor's row that the network is to be read again from the lowest of the deposits
    /// on.
    async fn owed(&self, batch: Batch, deposits: &[&Deposit]) -> Result<Batch, IndexError> {
        let lowest = deposits.iter().min_by_key(|deposit| deposit.place.number);
        let Some(Deposit { network, place, .. }) = lowest else {
            return Ok(batch);
        };
        let key = cursor::key(network);
        let Some(bytes) = self.requests.store().read(&key).await? else {
            return Ok(batch);
        };
        let mut cursor = Cursor::decode(&bytes)?;
        // The row is written even where that is noted already: the tail may be reading it again now.
        let batch = batch.expect(key.clone(), Expect::Equals(bytes));
        Ok(match cursor.again.owe(place.number) {
            true => batch.put(key, cursor.encode()?),
            false => batch,
        })
    }

    pub(super) fn count(&self, deposit: &Deposit, verdict: &'static str) {
        let chain = deposit.network.clone();
        metrics::counter!("intentd_index_verdicts_total", "chain" => chain, "verdict" => verdict)
            .increment(1);
    }
}

fn refused(error: &IndexError, due: &Due, deposits: usize) -> usize {
    let (network, transaction) = (&due.network, &due.transaction);
    tracing::error!(%error, %network, %transaction, deposits, "not confirmed yet");
    deposits
}
