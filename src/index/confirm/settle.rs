//! What a look found, recorded: in one commit for each request and transaction. A commit that the store
//! refuses is made with the next look; it keeps no other from being made.

use std::collections::BTreeMap;

use vm::B256;

use super::{Confirmer, Due, Look, Pending, shelf, verdict::Verdict};
use crate::{
    index::{IndexError, apply, book::opened},
    request::fact::{Agreed, Deposit, Facts},
    store::{Batch, rows::parked},
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

    /// Lists a deposit that nobody has agreed about for long.
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
        let (mut paid, mut rows, mut endings) = (Vec::new(), Vec::new(), Vec::new());
        for (one, agreed) in some {
            let deposit = &*one.1;
            match shelf::unpaid(one, agreed, now) {
                None => paid.push(deposit),
                Some((row, ending)) => {
                    if self.is_listed(&request.id, &row, &rows).await? {
                        let key = parked::key(&request.id, &deposit.onchain_id);
                        batch = batch.put(key, row.encode()?);
                        rows.push(row);
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

    /// Records that deposits of a request are not there. Whoever showed them may have left out others: the
    /// network is read again from there.
    async fn gone(&self, some: &[&Pending], now: u64) -> Result<(), IndexError> {
        let Some((request, first)) = some.first() else {
            return Ok(());
        };
        let batch = opened(Batch::new(), request.id, first.onchain_id, now);
        let deposits: Vec<&Deposit> = some.iter().map(|(_, deposit)| &**deposit).collect();
        let (batch, shelved) = self.unshelve(batch, &request.id, &deposits).await?;
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
            self.again.owe(&deposit.network, deposit.place.number);
        }
        Ok(())
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
