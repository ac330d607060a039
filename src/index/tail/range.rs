//! The blocks of one provider during one step, and what a range of heights changes in the store.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

use futures::stream::{self, StreamExt, TryStreamExt};
use vm::{
    B256, Block, ReadError,
    trade::{DepositTx, ScanError, Scanner},
};

use super::{
    Mark, Tail,
    second::{Agreed, End, Word},
};
use crate::{
    index::{IndexError, apply, recorder::Entry},
    request::{Request, fact::Inclusion},
    store::{Batch, requests::unless_forgotten, rows::deposit_tx},
};

/// Orders that are looked up at the same time.
const LOOKUPS: usize = 16;

/// A deposit of a range.
struct Found<'a> {
    deposit_tx: &'a DepositTx,
    deposit: &'a vm::Deposit,
    request: Option<&'a Request>,
    /// It was not known in this block.
    news: bool,
    /// Whether the providers' word may change what is known of the deposit: [`Word::is_sure`].
    sure: bool,
}

/// The blocks of one provider; each height is asked for once.
pub struct Blocks<'a> {
    scanner: &'a dyn Scanner,
    head: Block,
    /// By the height that was asked for.
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

    /// The block that stands at a height, which is not above the head. The step asks the provider once for it.
    pub async fn at(&self, height: u64) -> Result<Block, ReadError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&height).cloned();
        if let Some(block) = found {
            return Ok(block);
        }
        let block = standing(self.scanner, height).await?;
        known().insert(height, block.clone());
        Ok(block)
    }

    /// Whether the chain has the block `hash`, with the number `number`; false where it skipped that height.
    pub async fn has(&self, number: u64, hash: B256) -> Result<bool, ReadError> {
        let block = self.at(number).await?;
        Ok((block.number, block.hash) == (number, hash))
    }

    /// What the blocks from height `from` to `end` contain that `shown` leaves out.
    pub async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        self.scanner.omitted(from, end, shown).await
    }

    /// Whether `block` stands at `height` now: the provider is asked again.
    pub async fn stands(&self, height: u64, block: &Block) -> Result<bool, ReadError> {
        Ok(standing(self.scanner, height).await?.hash == block.hash)
    }

    /// The newest mark whose block still stands at its height, when that is not so of a newer mark; `None` while it is
    /// so of all. Marks above the head are not compared: the provider may be late.
    ///
    /// A reorg that adds, removes or replaces a block up to the newest mark changes the block that stands at its height.
    /// That is so where a block comes into a skipped height, too: the mark's own block is still there, but below it.
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

    /// The hash of the block that stands at a height. Right below the head that is the head's parent, which is the
    /// newest block below the head whether or not the chain skipped heights between them.
    async fn hash(&self, height: u64) -> Result<B256, ReadError> {
        if height.checked_add(1) == Some(self.head.number) {
            return Ok(self.head.parent);
        }
        Ok(self.at(height).await?.hash)
    }
}

/// The block that stands at `height`, which is not above the provider's head.
pub async fn standing(scanner: &dyn Scanner, height: u64) -> Result<Block, ReadError> {
    let found = scanner.block(height).await?;
    let missing = || ReadError::Unavailable(format!("no block at {height}, below the head"));
    let block = found.ok_or_else(missing)?;
    match block.number <= height {
        true => Ok(block),
        false => Err(ReadError::Doubtful(format!(
            "block {} stands above {height}",
            block.number
        ))),
    }
}

impl Tail {
    /// Commits what the range of heights shows of requests, and returns what belongs into the cursor's commit. Sure
    /// deposits come first, then those that no provider shows any more, then those that one provider alone shows: they
    /// may be in another block now.
    pub(super) async fn record(
        &self,
        blocks: &Blocks<'_>,
        range: RangeInclusive<u64>,
        agreed: &Agreed,
        now: u64,
    ) -> Result<Batch, IndexError> {
        let mut before = self.sighted(&range).await?;
        let ours = self.ours(&agreed.deposit_txs).await?;
        let (mut sure, mut shown) = (Vec::new(), Vec::new());
        for deposit_tx in &agreed.deposit_txs {
            if !range.contains(&deposit_tx.number) {
                let what = format!("a deposit of block {} unasked", deposit_tx.number);
                return Err(ReadError::Doubtful(what).into());
            }
            for deposit in &deposit_tx.deposits {
                let name = &self.network.name;
                let id = apply::onchain_id(name, &deposit_tx.transaction.text, deposit.index);
                let row = before.remove(&(deposit_tx.number, id));
                let found = Found {
                    deposit_tx,
                    deposit,
                    request: apply::order(deposit).and_then(|order| ours.get(&order)),
                    news: row.is_none_or(|row| row.seen.hash != deposit_tx.hash),
                    sure: agreed.word.is_sure(deposit_tx, deposit),
                };
                let all = if found.sure { &mut sure } else { &mut shown };
                all.push((id, found));
            }
        }
        let batch = self.found(blocks, &sure, Batch::new(), now).await?;
        let last = match &agreed.end {
            End::At { height, .. } => Some(*height),
            End::Behind | End::Unread(_) => None,
        };
        let read = |row: &&deposit_tx::Row| Some(row.number) <= last;
        for row in before.values().filter(read) {
            self.missed(blocks, row, &agreed.word, now).await?;
        }
        self.found(blocks, &shown, batch, now).await
    }

    /// Records deposits, those of a request in one commit. Returns `batch` with the rows of deposits that belong to
    /// no request.
    async fn found(
        &self,
        blocks: &Blocks<'_>,
        all: &[(B256, Found<'_>)],
        mut batch: Batch,
        now: u64,
    ) -> Result<Batch, IndexError> {
        let mut by_request: BTreeMap<B256, Vec<&Found<'_>>> = BTreeMap::new();
        for (_, found) in all {
            if let Some(request) = found.request {
                by_request.entry(request.id).or_default().push(found);
            }
        }
        let mut known = HashSet::new();
        for (id, found) in &by_request {
            if self.deposited(blocks, found, now).await? {
                known.insert(*id);
            }
        }
        for (id, found) in all.iter().filter(|(_, found)| found.news) {
            let is_known = found.request.is_some_and(|it| known.contains(&it.id));
            self.count(if is_known { "known" } else { "unknown" });
            if is_known {
                continue;
            }
            let DepositTx { number, hash, .. } = *found.deposit_tx;
            let key = deposit_tx::key(&self.network.name, number, id);
            let request = None;
            batch = batch.put(
                key,
                deposit_tx::encode(&deposit_tx::Seen { hash, request })?,
            );
        }
        self.doubt(all);
        Ok(batch)
    }

    /// The requests whose orders the deposits name, by order. Most deposits name none. A request
    /// is stored before anybody knows its order, so an order without one is unknown for good.
    async fn ours(&self, deposit_txs: &[DepositTx]) -> Result<HashMap<B256, Request>, IndexError> {
        let deposits = deposit_txs
            .iter()
            .flat_map(|deposit_tx| &deposit_tx.deposits);
        let orders: HashSet<B256> = deposits.filter_map(apply::order).collect();
        let found = stream::iter(orders).map(|order| async move {
            let request = self.recorder.requests.by_order(&order).await?;
            Ok::<_, IndexError>(request.map(|request| (order, request)))
        });
        let found = found.buffer_unordered(LOOKUPS);
        found
            .try_filter_map(|found| async { Ok(found) })
            .try_collect()
            .await
    }

    /// Deposits of one request: its facts have them when this returns; false where the request was forgotten
    /// meanwhile.
    async fn deposited(
        &self,
        blocks: &Blocks<'_>,
        all: &[&Found<'_>],
        now: u64,
    ) -> Result<bool, IndexError> {
        let Some(request) = all.first().and_then(|found| found.request) else {
            return Ok(false);
        };
        let mut deposits = Vec::with_capacity(all.len());
        for found in all {
            let deposit_tx = found.deposit_tx;
            if !blocks.has(deposit_tx.number, deposit_tx.hash).await? {
                let what = format!("a deposit in another block {}", deposit_tx.number);
                return Err(ReadError::Doubtful(what).into());
            }
            let block = blocks.at(deposit_tx.number).await?;
            let (network, place) = (&self.network.name, Inclusion::from(&block));
            let transaction = &deposit_tx.transaction;
            deposits.push(apply::deposit(network, transaction, &place, found.deposit));
        }
        let entries = all.iter().zip(&deposits).map(|(found, deposit)| Entry {
            deposit,
            transaction: &found.deposit_tx.transaction.bytes,
            sure: found.sure,
        });
        let entries: Vec<_> = entries.collect();
        let recorded = self.recorder.seen(request, &entries, now).await;
        Ok(unless_forgotten(recorded)?.is_some())
    }

    /// Handles a deposit that was in a block of the range and is not among its deposit transactions.
    async fn missed(
        &self,
        blocks: &Blocks<'_>,
        row: &deposit_tx::Row,
        word: &Word,
        now: u64,
    ) -> Result<(), IndexError> {
        if blocks.has(row.number, row.seen.hash).await? {
            // The block is the same, so the deposit is in it, even though this provider left it out.
            self.count("omitted");
            return Ok(());
        }
        // A provider that lies about this block removes nothing.
        if !word.misses(row.number, row.seen.hash).await {
            self.count("disputed");
            return Ok(());
        }
        self.recorder.lost(&self.network.name, row, now).await?;
        self.count("reorged");
        Ok(())
    }

    /// The range's earlier deposit transactions, by block and onchain id.
    async fn sighted(
        &self,
        range: &RangeInclusive<u64>,
    ) -> Result<BTreeMap<(u64, B256), deposit_tx::Row>, IndexError> {
        let network = &self.network.name;
        let rows = deposit_tx::range(network, *range.start(), usize::MAX);
        let mut sighted = BTreeMap::new();
        for (key, value) in self.recorder.requests.store().scan(rows).await? {
            let row = deposit_tx::decode(network, &key, &value)?;
            if row.number > *range.end() {
                break;
            }
            sighted.insert((row.number, row.onchain_id), row);
        }
        Ok(sighted)
    }

    /// Counts new deposits that no quorum will attest, and logs their transactions for the operator.
    fn doubt(&self, all: &[(B256, Found<'_>)]) {
        for (deposit_tx, first, deposits) in doubtful(all) {
            (0..deposits).for_each(|_| self.count("unattributed"));
            let Some(why) = &deposit_tx.doubt else {
                continue;
            };
            let (network, transaction) = (&self.network.name, &deposit_tx.transaction.text);
            let (depositor, amount) = (first.depositor.text(), first.amount);
            let (currency, id) = (first.currency.text(), &first.id);
            tracing::error!(
                network, %transaction, deposits, depositor, currency, %amount, %id, %why,
                "deposits cannot be attributed; this line has the first of them"
            );
        }
    }

    pub(super) fn count(&self, kind: &'static str) {
        let chain = self.network.name.clone();
        metrics::counter!("intentd_index_events_total", "chain" => chain, "kind" => kind)
            .increment(1);
    }
}

/// The doubtful transactions with something new. Anybody can make a transaction of a thousand deposits, so each gets
/// one line of the log, with its first deposit and their number.
fn doubtful<'a>(all: &[(B256, Found<'a>)]) -> Vec<(&'a DepositTx, &'a vm::Deposit, usize)> {
    let mut firsts: BTreeMap<&[u8], (&DepositTx, &vm::Deposit, usize)> = BTreeMap::new();
    let new = all.iter().filter(|(_, found)| found.news);
    for (_, found) in new.filter(|(_, found)| found.deposit_tx.doubt.is_some()) {
        let transaction: &[u8] = &found.deposit_tx.transaction.bytes;
        let first = (found.deposit_tx, found.deposit, 0);
        firsts.entry(transaction).or_insert(first).2 += 1;
    }
    firsts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fixtures;

    #[test]
    fn a_transaction_that_is_doubtful_is_told_of_once() {
        let of = |number: u8, count: u32, doubt: Option<&str>| DepositTx {
            transaction: fixtures::tx(number.into()),
            number: 1,
            hash: B256::ZERO,
            deposits: (0..count)
                .map(|at| fixtures::deposit(B256::ZERO, at))
                .collect(),
            doubt: doubt.map(|why| vm::Refusal(why.into())),
        };
        let why = Some("two of them");
        let all = [of(1, 1_300, why), of(2, 1, why), of(3, 5, None)];
        let found = |news| {
            let each = all.iter().flat_map(move |deposit_tx| {
                deposit_tx.deposits.iter().map(move |deposit| Found {
                    deposit_tx,
                    deposit,
                    request: None,
                    news,
                    sure: true,
                })
            });
            each.map(|found| (B256::ZERO, found)).collect::<Vec<_>>()
        };
        let firsts = doubtful(&found(true));
        let firsts = firsts
            .iter()
            .map(|(one, first, count)| (*one, first.index, *count));
        assert_eq!(
            firsts.collect::<Vec<_>>(),
            [(&all[0], 0, 1_300), (&all[1], 0, 1)]
        );
        // What was logged once is not logged again.
        assert!(doubtful(&found(false)).is_empty());
    }
}
