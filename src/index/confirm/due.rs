//! Which deposits are to be confirmed, and in which order: those of open requests that are not final, by transaction.
//! What is known of a request is read again when its row among the open ones changes, and all of it now and then.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use vm::{B256, Block, Head};

use super::{Confirmer, Network, Pending, shelf::Pauses};
use crate::{
    index::{IndexError, apply},
    request::fact::{Deposit, Standing},
    store::{
        Batch, Key,
        rows::{OPEN, open},
        walk::Walk,
    },
};

/// Milliseconds after which everything that is known is read again.
const REFRESH: u64 = 60_000;

/// The deposits of one transaction that are not final.
pub struct Due {
    pub network: String,
    pub transaction: String,
    pub deposits: Vec<Pending>,
    /// Deposits that pay for their order come first and dust last; of the same kind the oldest comes first.
    rank: (u8, u64),
}

impl Due {
    /// A single deposit.
    #[cfg(test)]
    pub fn of(request: Arc<crate::request::Request>, deposit: Deposit) -> Self {
        Self {
            network: deposit.network.clone(),
            transaction: deposit.transaction.clone(),
            rank: (0, deposit.place.number),
            deposits: vec![(request, Arc::new(deposit))],
        }
    }

    /// Whether the block of one of them is old enough. Others cost little: nothing is read of them.
    pub fn is_old(&self, network: &Network, head: &Head) -> bool {
        let mut deposits = self.deposits.iter();
        deposits.any(|(_, deposit)| network.finality(deposit).met(&block(deposit), head))
    }
}

/// The block of a deposit; its parent is not needed.
pub fn block(deposit: &Deposit) -> Block {
    Block {
        number: deposit.place.number,
        hash: deposit.place.hash,
        parent: B256::ZERO,
        time: deposit.place.time,
    }
}

/// What was read of an open request.
struct Known {
    row: Vec<u8>,
    waiting: Vec<(u8, Pending)>,
}

/// The open requests as they were read last.
#[derive(Default)]
pub(super) struct Waiting(Mutex<(u64, HashMap<B256, Known>)>);

impl Waiting {
    /// Takes what is known; nothing when it is too old.
    fn take(&self, now: u64) -> (u64, HashMap<B256, Known>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, known) = std::mem::take(&mut *all);
        match now.saturating_sub(read) < REFRESH {
            true => (read, known),
            false => (now, HashMap::new()),
        }
    }

    fn put(&self, all: (u64, HashMap<B256, Known>)) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }
}

impl Confirmer {
    /// What is due by network, the most urgent first; an empty list for a network whose head has to be noted.
    pub(super) async fn due(&self, now: u64) -> Result<BTreeMap<String, Vec<Due>>, IndexError> {
        let (read, mut known) = self.waiting.take(now);
        let mut all = HashMap::new();
        let mut walk = Walk::of(&**self.requests.store(), OPEN);
        while let Some((key, row)) = walk.next().await? {
            let id = open::decode(&key, &row)?;
            let same = known.remove(&id).filter(|known| known.row == row);
            let found = match same {
                Some(known) => Some(known),
                None => self.read(&id, (&key, row.as_slice())).await?,
            };
            all.extend(found.map(|found| (id, found)));
        }
        let mut due = grouped(all.values(), &self.pauses, now);
        for network in self.unnoted(now) {
            due.entry(network.clone()).or_default();
        }
        self.waiting.put((read, all));
        Ok(due)
    }

    /// The deposits of an open request that are not final; `None` where there is no such request.
    async fn read(
        &self,
        id: &B256,
        (key, row): (&Key, &[u8]),
    ) -> Result<Option<Known>, IndexError> {
        let facts = self.requests.facts(id).await?;
        let is_included = |one: &Deposit| one.standing == Standing::Included;
        let mut waiting = Vec::new();
        if facts.deposits.iter().any(is_included) {
            let Some(request) = self.requests.by_id(id).await? else {
                self.orphaned(key, row).await?;
                return Ok(None);
            };
            let request = Arc::new(request);
            let deposits = facts.deposits.into_iter().filter(is_included);
            waiting.extend(deposits.map(|deposit| {
                let rank = apply::rank(&request, &deposit);
                (rank, (request.clone(), Arc::new(deposit)))
            }));
        }
        let row = row.to_vec();
        Ok(Some(Known { row, waiting }))
    }

    /// Deletes an open row whose request does not exist: nobody can do anything about it.
    async fn orphaned(&self, key: &Key, value: &[u8]) -> Result<(), IndexError> {
        tracing::error!(?key, "work of a request that is not there is dropped");
        metrics::counter!("intentd_index_orphans_total").increment(1);
        let batch = Batch::new().remove(key.clone(), value.to_vec());
        self.requests.store().commit(batch).await?;
        Ok(())
    }
}

/// The deposits that are not at rest, by network and transaction.
fn grouped<'a>(
    known: impl Iterator<Item = &'a Known>,
    pauses: &Pauses,
    now: u64,
) -> BTreeMap<String, Vec<Due>> {
    let mut groups: HashMap<(&str, &str), Due> = HashMap::new();
    for (rank, one) in known.flat_map(|known| &known.waiting) {
        let deposit = &one.1;
        let rank = (*rank, deposit.place.number);
        let group = groups.entry((deposit.network.as_str(), deposit.transaction.as_str()));
        let group = group.or_insert_with(|| Due {
            network: deposit.network.clone(),
            transaction: deposit.transaction.clone(),
            deposits: Vec::new(),
            rank,
        });
        group.rank = group.rank.min(rank);
        group.deposits.push(one.clone());
    }
    let mut due: BTreeMap<String, Vec<Due>> = BTreeMap::new();
    for group in groups.into_values() {
        if !pauses.rests(&group.network, &group.transaction, now) {
            due.entry(group.network.clone()).or_default().push(group);
        }
    }
    for groups in due.values_mut() {
        groups.sort_by(|a, b| (a.rank, &a.transaction).cmp(&(b.rank, &b.transaction)));
    }
    due
}
