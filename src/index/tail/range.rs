//! Blocks of one provider during one step, and what a range of them does to the book.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

use futures::stream::{self, StreamExt, TryStreamExt};
use vm::{
    B256, Block, ReadError,
    trade::{ScanError, Scanner, Sighting},
};

use super::{Mark, Tail};
use crate::{
    index::{IndexError, apply, book::Entry},
    request::Request,
    store::{Batch, requests::unless_forgotten, rows::sighting},
};

/// Orders that are looked for at the same time.
const LOOKUPS: usize = 16;

/// See the module. Blocks are asked for once.
pub struct Blocks<'a> {
    scanner: &'a dyn Scanner,
    head: Block,
    known: Mutex<HashMap<u64, Block>>,
}

impl<'a> Blocks<'a> {
    pub async fn of(scanner: &'a dyn Scanner) -> Result<Self, ReadError> {
        let head = scanner.head().await?;
        let known = Mutex::new(HashMap::from([(head.number, head.clone())]));
        Ok(Self {
            scanner,
            head,
            known,
        })
    }

    pub fn head(&self) -> &Block {
        &self.head
    }

    /// The block at a height that is not above the head.
    pub async fn at(&self, number: u64) -> Result<Block, ReadError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&number).cloned();
        if let Some(block) = found {
            return Ok(block);
        }
        let block = self.now(number).await?;
        known().insert(number, block.clone());
        Ok(block)
    }

    /// What the blocks up to `end` say that `shown` leaves out.
    pub async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[Sighting],
    ) -> Result<Vec<Sighting>, ScanError> {
        self.scanner.omitted(from, end, shown).await
    }

    /// Whether `block` is on the chain now.
    pub async fn is(&self, block: &Block) -> Result<bool, ReadError> {
        Ok(self.now(block.number).await?.hash == block.hash)
    }

    async fn now(&self, number: u64) -> Result<Block, ReadError> {
        let found = self.scanner.block(number).await?;
        let missing = || ReadError::Unavailable(format!("no block {number} below the head"));
        let block = found.ok_or_else(missing)?;
        match block.number == number {
            true => Ok(block),
            false => Err(ReadError::Doubtful(format!(
                "block {} for {number}",
                block.number
            ))),
        }
    }

    /// The newest mark that is on the chain, when a newer one is not; `None` while all stand. Marks
    /// above the head say nothing: the provider may be late.
    pub async fn fork(&self, marks: &[Mark]) -> Result<Option<usize>, IndexError> {
        let mut lost = None;
        for (at, mark) in marks.iter().enumerate().rev() {
            if mark.number > self.head.number {
                continue;
            }
            if self.hash(mark.number).await? == mark.hash {
                return Ok(lost.map(|_| at));
            }
            lost = Some(mark.number);
        }
        lost.map_or(Ok(None), |oldest| Err(IndexError::Foreign(oldest)))
    }

    async fn hash(&self, number: u64) -> Result<B256, ReadError> {
        if number.checked_add(1) == Some(self.head.number) {
            return Ok(self.head.parent);
        }
        Ok(self.at(number).await?.hash)
    }
}

impl Tail {
    /// Commits what the range shows of requests. Answers with what belongs into the cursor's commit.
    pub(super) async fn record(
        &self,
        blocks: &Blocks<'_>,
        range: RangeInclusive<u64>,
        sightings: &[Sighting],
        now: u64,
    ) -> Result<Batch, IndexError> {
        let mut before = self.sighted(&range).await?;
        let ours = self.ours(sightings).await?;
        let mut batch = Batch::new();
        for sighting in sightings {
            if !range.contains(&sighting.number) {
                let what = format!("a deposit of block {} unasked", sighting.number);
                return Err(ReadError::Doubtful(what).into());
            }
            for deposit in &sighting.deposits {
                let name = &self.network.name;
                let id = apply::onchain_id(name, &sighting.transaction.text, deposit.index);
                let row = before.remove(&(sighting.number, id));
                let news = row.is_none_or(|row| row.seen.hash != sighting.hash);
                let request = apply::order(deposit).and_then(|order| ours.get(&order));
                let known = match request {
                    None => false,
                    Some(request) => {
                        let entry = (sighting, deposit);
                        self.deposited(blocks, request, entry, now).await?
                    }
                };
                if news {
                    self.count(if known { "known" } else { "unknown" });
                    self.doubt(sighting, deposit);
                }
                if news && !known {
                    let key = sighting::key(name, sighting.number, &id);
                    let (hash, request) = (sighting.hash, None);
                    let seen = sighting::Seen { hash, request };
                    batch = batch.put(key, sighting::encode(&seen)?);
                }
            }
        }
        for row in before.values() {
            self.missed(blocks, row, now).await?;
        }
        Ok(batch)
    }

    /// The requests whose orders the sightings name, by order: most name none. Whoever deposits has
    /// been told of a request that was stored before.
    async fn ours(&self, sightings: &[Sighting]) -> Result<HashMap<B256, Request>, IndexError> {
        let deposits = sightings.iter().flat_map(|sighting| &sighting.deposits);
        let orders: HashSet<B256> = deposits.filter_map(apply::order).collect();
        let found = stream::iter(orders).map(|order| async move {
            let request = self.book.requests.by_order(&order).await?;
            Ok::<_, IndexError>(request.map(|request| (order, request)))
        });
        let found = found.buffer_unordered(LOOKUPS);
        found
            .try_filter_map(|found| async { Ok(found) })
            .try_collect()
            .await
    }

    /// A request's deposit: its facts tell of it when this returns; false where the request was forgotten
    /// meanwhile.
    async fn deposited(
        &self,
        blocks: &Blocks<'_>,
        request: &Request,
        (sighting, deposit): (&Sighting, &vm::Deposit),
        now: u64,
    ) -> Result<bool, IndexError> {
        let block = blocks.at(sighting.number).await?;
        if block.hash != sighting.hash {
            let what = format!("a deposit in another block {}", block.number);
            return Err(ReadError::Doubtful(what).into());
        }
        let (network, place) = (&self.network.name, apply::place(&block));
        let deposit = apply::deposit(network, &sighting.transaction, &place, deposit);
        let entry = Entry {
            request,
            deposit: &deposit,
            transaction: &sighting.transaction.bytes,
        };
        let recorded = self.book.seen(entry, now).await;
        Ok(unless_forgotten(recorded)?.is_some())
    }

    /// A deposit that was in a block of the range, and is not among its sightings.
    async fn missed(
        &self,
        blocks: &Blocks<'_>,
        row: &sighting::Row,
        now: u64,
    ) -> Result<(), IndexError> {
        if blocks.at(row.number).await?.hash == row.seen.hash {
            // The block is the same, so the deposit is in it, whatever this provider left out.
            self.count("omitted");
            return Ok(());
        }
        self.book.lost(&self.network.name, row, now).await?;
        self.count("reorged");
        Ok(())
    }

    /// The range's sightings of before, by block and onchain id.
    async fn sighted(
        &self,
        range: &RangeInclusive<u64>,
    ) -> Result<BTreeMap<(u64, B256), sighting::Row>, IndexError> {
        let network = &self.network.name;
        let rows = sighting::range(network, *range.start(), usize::MAX);
        let mut sighted = BTreeMap::new();
        for (key, value) in self.book.requests.store().scan(rows).await? {
            let row = sighting::decode(network, &key, &value)?;
            if row.number > *range.end() {
                break;
            }
            sighted.insert((row.number, row.onchain_id), row);
        }
        Ok(sighted)
    }

    /// Counts a deposit that no quorum will attest, and tells the operator of it.
    fn doubt(&self, sighting: &Sighting, deposit: &vm::Deposit) {
        let Some(why) = &sighting.doubt else { return };
        let (network, transaction) = (&self.network.name, &sighting.transaction.text);
        let (depositor, amount) = (deposit.depositor.text(), deposit.amount);
        let (currency, id) = (deposit.currency.text(), &deposit.id);
        tracing::error!(
            network, %transaction, depositor, currency, %amount, %id, %why,
            "a deposit cannot be attributed"
        );
        self.count("unattributed");
    }

    pub(super) fn count(&self, kind: &'static str) {
        let chain = self.network.name.clone();
        metrics::counter!("intentd_index_events_total", "chain" => chain, "kind" => kind)
            .increment(1);
    }
}
