//! Loads the requests of a page in full. It reads and parses each row once. A page reads a bounded number of
//! transactions and bytes, however many payments strangers make to a request's order.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{Listing, ListingError};
use crate::{
    request::{
        Request,
        fact::Facts,
        listing::TxDetailsMap,
        summary::Summary,
        tx_details::{TxDetails, shown},
    },
    store::{Store, rows},
};

/// The first round: this many transactions of each record come before any further one of the page.
const AT_FIRST: usize = 4;
/// The transactions per read.
const AT_A_TIME: usize = 8;
/// The most bytes of the transactions of one record, and of a page, apart from the last read; the page omits further
/// ones.
const RECORD_BYTES: usize = 256 << 10;
/// The same for a page: room for one transaction (72 KB) of each of fifty records.
const PAGE_BYTES: usize = 4 << 20;

/// A request with everything stored about it.
pub struct Record {
    pub request: Request,
    pub facts: Facts,
    pub tx_details: TxDetailsMap,
}

impl Listing {
    /// The current state of the requests of a page, in the page's order.
    pub async fn records(&self, found: &[Summary]) -> Result<Vec<Record>, ListingError> {
        // A quote becomes a request, so reading quotes first finds one of the two.
        let quotes = found.iter().map(|one| rows::quote::key(&one.id));
        let requests = found.iter().map(|one| rows::request::key(&one.id));
        let facts = found.iter().map(|one| rows::facts::key(&one.id));
        let keys: Vec<_> = quotes.chain(requests).chain(facts).collect();
        let rows = self.store.read_all(&keys).await?;
        let (kept, facts) = rows.split_at(2 * found.len());
        let (quotes, requests) = kept.split_at(found.len());
        let mut records = Vec::with_capacity(found.len());
        for ((quote, request), facts) in quotes.iter().zip(requests).zip(facts) {
            let request = match (request, quote) {
                (Some(bytes), _) => rows::request::decode(bytes)?,
                (None, Some(bytes)) => rows::quote::decode(bytes)?,
                (None, None) => continue,
            };
            let facts = facts.as_deref().map(rows::facts::decode).transpose()?;
            tokio::task::yield_now().await;
            records.push(Record {
                request,
                facts: facts.unwrap_or_default(),
                tx_details: TxDetailsMap::new(),
            });
        }
        self.tx_details(&mut records).await?;
        Ok(records)
    }

    /// Adds the stored transactions of the records; reads each row once.
    async fn tx_details(&self, records: &mut [Record]) -> Result<(), ListingError> {
        let mut known = Known::new(&*self.store);
        let shown: Vec<Vec<Named>> = records.iter().map(named).collect();
        let mut left = PAGE_BYTES;
        for round in 0..AT_FIRST {
            let names: Vec<_> = shown.iter().filter_map(|names| names.get(round)).collect();
            for some in names.chunks(AT_A_TIME) {
                if left > 0 {
                    let read = known.read(some).await?;
                    left = left.saturating_sub(read);
                }
            }
        }
        for (record, names) in records.iter_mut().zip(&shown) {
            let (first, others) = names.split_at(AT_FIRST.min(names.len()));
            let mut bytes = known.give(record, first);
            for some in others.chunks(AT_A_TIME) {
                if bytes >= RECORD_BYTES || left == 0 {
                    break;
                }
                let read = known.read(&some.iter().collect::<Vec<_>>()).await?;
                left = left.saturating_sub(read);
                bytes += known.give(record, some);
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// A network and a transaction of it.
type Named = (String, String);

/// The transactions read so far.
struct Known<'a> {
    store: &'a dyn Store,
    /// The transactions with the bytes of their rows; `None` where none is stored.
    rows: HashMap<Named, Option<(Arc<TxDetails>, usize)>>,
}

impl<'a> Known<'a> {
    fn new(store: &'a dyn Store) -> Self {
        let rows = HashMap::new();
        Self { store, rows }
    }

    /// Adds the transactions `names` to `record` as far as they were read; returns their bytes.
    fn give(&self, record: &mut Record, names: &[Named]) -> usize {
        let mut bytes = 0;
        for name in names {
            if let Some((seen, size)) = self.rows.get(name).and_then(Option::as_ref) {
                bytes += size;
                record.tx_details.insert(name.clone(), seen.clone());
            }
        }
        bytes
    }

    /// Reads the transactions of `names` that are still unknown; returns their bytes.
    async fn read(&mut self, names: &[&Named]) -> Result<usize, ListingError> {
        let mut once = BTreeSet::new();
        let new = |name: &&&Named| !self.rows.contains_key(**name);
        let names: Vec<&Named> = names.iter().filter(new).copied().collect();
        let names: Vec<&Named> = names
            .into_iter()
            .filter(|name| once.insert(*name))
            .collect();
        if names.is_empty() {
            return Ok(0);
        }
        let keys = names
            .iter()
            .map(|(network, text)| rows::tx_details::seen(network, text));
        let read = self.store.read_all(&keys.collect::<Vec<_>>()).await?;
        let mut all = 0;
        for (name, bytes) in names.into_iter().zip(read) {
            let seen = bytes.and_then(|bytes| {
                all += bytes.len();
                // An unreadable row is omitted; the check of the store reports it.
                let seen = rows::tx_details::decode_seen(&bytes).ok()?;
                Some((Arc::new(seen), bytes.len()))
            });
            self.rows.insert(name.clone(), seen);
        }
        Ok(all)
    }
}

fn named(record: &Record) -> Vec<Named> {
    let shown = shown(&record.request, &record.facts).into_iter();
    shown
        .map(|one| (one.network.to_owned(), one.transaction.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use alloy::primitives::{B256, U256};
    use async_trait::async_trait;

    use super::*;
    use crate::{
        request::{
            fact::{Deposit, Standing},
            fixtures,
            tx_details::{Change, SHOWN},
        },
        store::{
            Batch, Key, Outcome, Range, StoreError, memory::MemoryStore, requests::Requests,
            rows::WITNESS,
        },
    };

    /// A store that counts reads of transactions.
    #[derive(Default)]
    struct Counting {
        rows: MemoryStore,
        read: AtomicUsize,
    }

    #[async_trait]
    impl Store for Counting {
        async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
            self.rows.commit(batch).await
        }

        async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
            if key.kind == WITNESS {
                self.read.fetch_add(1, Ordering::Relaxed);
            }
            self.rows.read(key).await
        }

        async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
            self.rows.scan(range).await
        }

        async fn close(&self) {}
    }

    fn tx_details(transaction: &str, changes: usize) -> Batch {
        let place = fixtures::place(1);
        let change = Change {
            address: fixtures::USER.into(),
            currency: fixtures::USDC.into(),
            negative: false,
            amount: U256::MAX,
        };
        let seen = TxDetails {
            from: fixtures::USER.into(),
            to: None,
            data: None,
            value: U256::ZERO,
            fee: U256::ZERO,
            place,
            success: true,
            changes: vec![change; changes],
            prices: Vec::new(),
        };
        let key = rows::tx_details::seen("origin", transaction);
        Batch::new().put(key, rows::tx_details::encode_seen(&seen).unwrap())
    }

    fn dust(number: u64, transaction: &str) -> Deposit {
        let mut dust = fixtures::deposit(1, Standing::Included);
        dust.onchain_id = B256::from(U256::from(number));
        dust.transaction = transaction.into();
        dust.amount = U256::from(1);
        dust.place = fixtures::place(1);
        dust
    }

    /// Requests with these deposits, as a page of the listing.
    async fn page(
        store: &Arc<Counting>,
        deposits: impl Fn(u8) -> Vec<Deposit> + Sync,
        requests: u8,
    ) -> Vec<Record> {
        let all = Requests::new(store.clone());
        let mut found = Vec::new();
        for number in 1..=requests {
            let request = fixtures::request(number);
            all.insert(&request, Batch::new()).await.unwrap();
            let change = |facts: &mut Facts| facts.deposits = deposits(number);
            let recorded = all.record(&request.id, 5, Batch::new(), change);
            let facts = recorded.await.unwrap();
            found.push(Summary::of(&request, &facts));
        }
        let listing = Listing::open(store.clone()).await.unwrap();
        listing.records(&found).await.unwrap()
    }

    #[tokio::test]
    async fn a_transaction_of_many_deposits_is_read_once_a_page() {
        let store = Arc::<Counting>::default();
        let text = format!("0x{:064x}", 7);
        store.commit(tx_details(&text, 256)).await.unwrap();
        let deposits = |_| (0..256).map(|number| dust(number, &text)).collect();
        let records = page(&store, deposits, 50).await;
        assert_eq!(store.read.load(Ordering::Relaxed), 1);
        let name = ("origin".to_owned(), text.clone());
        assert!(
            records
                .iter()
                .all(|record| record.tx_details.contains_key(&name))
        );
    }

    #[tokio::test]
    async fn transactions_and_bytes_of_records_and_pages_are_bounded() {
        let store = Arc::<Counting>::default();
        let text = |request: u8, number: u64| format!("0x{request:032x}{number:032x}");
        for request in 1..=50 {
            for number in 0..200 {
                store
                    .commit(tx_details(&text(request, number), 32))
                    .await
                    .unwrap();
            }
        }
        let row = rows::tx_details::seen("origin", &text(1, 1));
        let row = store.rows.read(&row).await.unwrap().unwrap().len();
        let deposits = |request| {
            let all = (0..200).map(|number| dust(number, &text(request, number)));
            all.collect()
        };
        let records = page(&store, deposits, 50).await;
        let read = store.read.load(Ordering::Relaxed);
        let most = PAGE_BYTES + AT_A_TIME * row;
        assert!(read * row < most, "{read} rows of {row} bytes");
        for record in &records {
            let shown = record.tx_details.len();
            assert!((AT_FIRST..SHOWN).contains(&shown), "{shown}");
            assert!(shown * row < RECORD_BYTES + AT_A_TIME * row, "{shown}");
        }
    }

    #[tokio::test]
    async fn a_page_of_the_largest_transactions_is_no_larger_and_tells_of_each_record() {
        let store = Arc::<Counting>::default();
        let text = |request: u8, number: u64| format!("0x{request:032x}{number:032x}");
        let mut row = 0;
        for request in 1..=50 {
            for number in 0..6 {
                let batch = tx_details(&text(request, number), 256);
                store.commit(batch).await.unwrap();
            }
            let key = rows::tx_details::seen("origin", &text(request, 0));
            row = store.rows.read(&key).await.unwrap().unwrap().len();
        }
        assert!(50 * AT_FIRST * row > PAGE_BYTES + AT_A_TIME * row, "{row}");
        let deposits = |request| {
            let all = (0..6).map(|number| dust(number, &text(request, number)));
            all.collect()
        };
        let records = page(&store, deposits, 50).await;
        let read = store.read.load(Ordering::Relaxed);
        let most = PAGE_BYTES + AT_A_TIME * row;
        assert!(read * row < most, "{read} rows of {row} bytes");
        assert!(records.iter().all(|record| !record.tx_details.is_empty()));
    }
}
