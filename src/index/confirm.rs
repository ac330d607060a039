//! Asks each network's quorum about deposits that single providers have shown. Only what it finds
//! here is final, and only what a quorum misses for as long as finality takes is gone. What nobody
//! agrees about for days is listed for the operator: [`shelf`].

mod shelf;
#[cfg(test)]
mod tests;
mod verdict;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use vm::{B256, Block, Chain, Kept, Large, ReadError, Seen, aside};

use self::verdict::{Verdict, judge};
use super::{Bell, IndexError, apply, book::opened, looks::Looks, tail::rewound};
use crate::{
    request::{
        Request,
        fact::{Agreed, Deposit, Facts, Standing},
    },
    store::{
        Batch, Expect, Key,
        requests::{Requests, RequestsError},
        rows::{
            cursor::{self, Cursor},
            open, parked,
        },
    },
};

/// Open requests read at a time.
const PAGE: usize = 256;
/// Deposits asked about at the same time.
const AT_ONCE: usize = 8;
/// Between two looks while no facts change; heads move meanwhile.
const POLL: Duration = Duration::from_secs(1);

/// A network as the confirmer knows it.
#[derive(Clone)]
pub struct Network {
    pub chain: Chain,
    /// Rings when the network's tail has to read something again.
    pub bell: Arc<Bell>,
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Deposits that are final now.
    pub confirmed: usize,
    /// Deposits that are not there.
    pub gone: usize,
    /// Deposits that it is too early to tell about.
    pub early: usize,
    /// Deposits that nobody answered about.
    pub unanswered: usize,
}

/// A deposit that is not final, with its request.
type Pending = (Request, Deposit);

/// See the module.
pub struct Confirmer {
    requests: Requests,
    networks: HashMap<String, Network>,
    /// Unix milliseconds before which a deposit (its onchain id) is not looked at.
    pauses: Mutex<HashMap<B256, u64>>,
}

impl Confirmer {
    /// `networks` by the name that orders use.
    pub fn new(requests: Requests, networks: HashMap<String, Network>) -> Self {
        Self {
            requests,
            networks,
            pauses: Mutex::default(),
        }
    }

    /// Looks again and again until `shutdown`, at each network on its own: one that does not answer
    /// holds up no other. `clock` gives unix milliseconds.
    pub async fn run(self, clock: fn() -> u64, shutdown: CancellationToken) {
        let confirmer = Arc::new(self);
        let mut changes = confirmer.requests.changes();
        let mut looks = Looks::default();
        loop {
            changes.mark_unchanged();
            if let Err(error) = confirmer.begin(&mut looks, clock).await {
                tracing::error!(%error, "deposits not confirmed");
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                Ok(()) = changes.changed() => {}
                () = sleep(POLL) => {}
            }
        }
    }

    /// Begins a look at every network that none is under way at.
    async fn begin(
        self: &Arc<Self>,
        looks: &mut Looks,
        clock: fn() -> u64,
    ) -> Result<(), IndexError> {
        looks.reap();
        let mut pending: BTreeMap<String, Vec<Pending>> = BTreeMap::new();
        for one in self.pending(clock()).await? {
            pending.entry(one.1.network.clone()).or_default().push(one);
        }
        for (network, deposits) in pending {
            let confirmer = self.clone();
            looks.begin(network, async move {
                confirmer.report(&deposits, clock()).await;
            });
        }
        Ok(())
    }

    async fn report(&self, deposits: &[Pending], now: u64) {
        match self.look_at_all(deposits, now).await {
            Ok(look) if look.unanswered > 0 => {
                tracing::warn!(deposits = look.unanswered, "deposits without an answer");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "deposits not confirmed"),
        }
    }

    /// Looks once at every deposit of an open request that is not final. `now` in unix milliseconds.
    pub async fn look(&self, now: u64) -> Result<Look, IndexError> {
        let pending = self.pending(now).await?;
        self.look_at_all(&pending, now).await
    }

    async fn look_at_all(&self, pending: &[Pending], now: u64) -> Result<Look, IndexError> {
        let mut all = Look::default();
        for some in pending.chunks(AT_ONCE) {
            let looks = some.iter().map(|one| self.look_at(one, now));
            let looks: Vec<_> = looks.collect();
            for look in join_all(looks).await {
                let look = look?;
                all.confirmed += look.confirmed;
                all.gone += look.gone;
                all.early += look.early;
                all.unanswered += look.unanswered;
            }
        }
        Ok(all)
    }

    async fn look_at(&self, one: &Pending, now: u64) -> Result<Look, IndexError> {
        let (request, deposit) = one;
        match self.verdict(request, deposit).await {
            Ok(verdict) => self.settle(one, &verdict, now).await,
            Err(error) => {
                self.shelve(one, &error.to_string(), now).await?;
                Ok(Look {
                    unanswered: 1,
                    ..Look::default()
                })
            }
        }
    }

    async fn pending(&self, now: u64) -> Result<Vec<Pending>, IndexError> {
        let mut pending = Vec::new();
        let mut after = None;
        loop {
            let range = open::range(after.as_ref(), PAGE);
            let page = self.requests.store().scan(range).await?;
            for (key, value) in &page {
                let id = open::decode(key, value)?;
                let facts = self.requests.facts(&id).await?;
                let due = |one: &Deposit| is_included(one) && !self.rests(one, now);
                let mut waiting = facts.deposits.into_iter().filter(due).peekable();
                if waiting.peek().is_none() {
                    continue;
                }
                match self.requests.by_id(&id).await? {
                    None => self.orphaned(key, value).await?,
                    Some(request) => {
                        pending.extend(waiting.map(|deposit| (request.clone(), deposit)));
                    }
                }
            }
            if page.len() < PAGE {
                return Ok(pending);
            }
            after = page.last().map(|(key, _)| key.clone());
        }
    }

    /// An open row without its request: nobody can do anything about it.
    async fn orphaned(&self, key: &Key, value: &[u8]) -> Result<(), IndexError> {
        tracing::error!(?key, "work of a request that is not there is dropped");
        metrics::counter!("intentd_index_orphans_total").increment(1);
        let before = Expect::Equals(value.to_vec());
        let batch = Batch::new().expect(key.clone(), before).delete(key.clone());
        self.requests.store().commit(batch).await?;
        Ok(())
    }

    async fn verdict(&self, request: &Request, deposit: &Deposit) -> Result<Verdict, ReadError> {
        let Some(network) = self.networks.get(&deposit.network) else {
            return Ok(Verdict::Doubtful("its network is not indexed".into()));
        };
        let chain = &network.chain;
        let head = chain.reader.head().await?;
        let block = Block {
            number: deposit.place.number,
            hash: deposit.place.hash,
            parent: B256::ZERO,
            time: deposit.place.time,
        };
        // Nothing is decided before, so nothing needs to be read.
        if !chain.spec.finality.met(&block, &head) {
            return Ok(Verdict::Early);
        }
        let family = chain.spec.family;
        let Ok(transaction) = family.tx(&deposit.transaction, None) else {
            return Ok(Verdict::Doubtful("no transaction of its network".into()));
        };
        let found = match chain.reader.transaction(&transaction, &head).await {
            Err(error @ ReadError::TooLarge) => return Ok(Verdict::Doubtful(error.to_string())),
            found => Kept::new(found?),
        };
        let seen = Seen {
            spec: &chain.spec,
            transaction: &transaction,
            head: &head,
            found: &found,
        };
        let judged = aside(found.is_large(), || judge(&seen, request, deposit));
        Ok(judged)
    }

    async fn settle(&self, one: &Pending, verdict: &Verdict, now: u64) -> Result<Look, IndexError> {
        let (request, deposit) = one;
        let mut look = Look::default();
        let (id, hash) = (deposit.onchain_id, deposit.place.hash);
        let batch = opened(Batch::new(), request.id, id, now);
        match verdict {
            Verdict::Early => {
                self.shelve(one, "its block is not final", now).await?;
                look.early = 1;
            }
            Verdict::Doubtful(why) => {
                self.count(deposit, "doubtful");
                self.rest(deposit, now);
                self.shelve(one, why, now).await?;
                look.early = 1;
            }
            Verdict::Final(agreed) => {
                self.agreed(batch, one, agreed, now).await?;
                self.count(deposit, "confirmed");
                look.confirmed = 1;
            }
            Verdict::Gone => {
                let batch = self.reread(batch, deposit).await?;
                let (batch, shelved) = self.unshelve(batch, &request.id, deposit).await?;
                let change = |facts: &mut Facts| {
                    apply::gone(facts, id, hash);
                    if shelved {
                        shelf::forget(facts, &id);
                    }
                };
                match self.requests.record(&request.id, now, batch, change).await {
                    Ok(_) => look.gone = 1,
                    // The tail moved its cursor meanwhile: next time.
                    Err(RequestsError::Refused) => look.early = 1,
                    Err(error) => return Err(error.into()),
                }
                self.count(deposit, "gone");
                if let Some(network) = self.networks.get(&deposit.network) {
                    network.bell.ring();
                }
            }
        }
        Ok(look)
    }

    /// Records that a deposit is final.
    async fn agreed(
        &self,
        batch: Batch,
        one: &Pending,
        agreed: &Agreed,
        now: u64,
    ) -> Result<(), IndexError> {
        let (request, deposit) = one;
        let (id, hash) = (deposit.onchain_id, deposit.place.hash);
        let unpaid = shelf::unpaid(one, agreed, now);
        let (batch, shelved) = match &unpaid {
            Some((row, _)) if self.is_listed(&request.id, row).await? => {
                let key = parked::key(&request.id, &id);
                (batch.put(key, row.encode()?), false)
            }
            Some(_) => (batch, false),
            None => self.unshelve(batch, &request.id, deposit).await?,
        };
        let change = |facts: &mut Facts| {
            apply::settled(facts, id, hash, agreed);
            if shelved {
                shelf::forget(facts, &id);
            }
            if let Some((_, ending)) = &unpaid {
                facts.end(ending.clone());
            }
        };
        let recorded = self.requests.record(&request.id, now, batch, change);
        recorded.await?;
        Ok(())
    }

    /// `batch`, and the network's cursor before the block of a deposit that is not there: whoever
    /// showed it may have left out others.
    async fn reread(&self, batch: Batch, deposit: &Deposit) -> Result<Batch, IndexError> {
        let key = cursor::key(&deposit.network);
        let Some(bytes) = self.requests.store().read(&key).await? else {
            return Ok(batch);
        };
        let cursor = Cursor::decode(&bytes)?;
        let below = |mark: &cursor::Mark| mark.number < deposit.place.number;
        let Some(kept) = cursor.marks.iter().rposition(below) else {
            return Ok(batch);
        };
        let back = rewound(&cursor, kept).encode()?;
        Ok(batch
            .expect(key.clone(), Expect::Equals(bytes))
            .put(key, back))
    }

    fn count(&self, deposit: &Deposit, verdict: &'static str) {
        let chain = deposit.network.clone();
        metrics::counter!("intentd_index_verdicts_total", "chain" => chain, "verdict" => verdict)
            .increment(1);
    }
}

fn is_included(deposit: &Deposit) -> bool {
    deposit.standing == Standing::Included
}
