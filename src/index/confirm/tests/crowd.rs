//! What many deposits of strangers cost, and whom they hold up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use vm::{
    ChainReader,
    testing::{Answers, said},
};

use super::*;
use crate::store::{Key, Outcome, Range, StoreError};

/// A store that counts the facts that are read, and refuses some commits of the confirmer.
#[derive(Default)]
struct Watched {
    rows: MemoryStore,
    facts: AtomicU64,
    refuses: AtomicU64,
}

#[async_trait]
impl Store for Watched {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let left = self.refuses.load(Relaxed);
        if left > 0 && batch.kinds().any(|kind| kind == rows::OPEN) {
            self.refuses.store(left - 1, Relaxed);
            let (key, found) = (open::key(&B256::ZERO), None);
            return Ok(Outcome::Refused { key, found });
        }
        self.rows.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.facts
            .fetch_add(u64::from(key.kind == rows::FACTS), Relaxed);
        self.rows.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.rows.scan(range).await
    }

    async fn close(&self) {
        self.rows.close().await;
    }
}

/// The amount of a deposit: dust, a part of what the orders ask for, all of it.
const DUST: u64 = 1;
const PART: u64 = 60_000_000;
const WHOLE: u64 = 100_000_000;

impl Bench {
    /// A bench over this store, whose own deposit is judged already.
    async fn over(store: Arc<dyn Store>) -> Self {
        let mut bench = bench().await;
        bench.requests = Requests::new(store);
        let networks = std::mem::take(&mut bench.confirmer.networks);
        bench.confirmer = Confirmer::new(bench.requests.clone(), networks);
        bench.script.set_head(AT + 10);
        bench
    }

    /// A request for which `amount` was deposited at these places of transactions.
    async fn paid(&self, number: u8, amount: u64, positions: &[(u64, u32)]) -> Request {
        let request = request::fixtures::request(number);
        let insert = self.requests.insert(&request, Batch::new());
        insert.await.unwrap();
        let place = Inclusion::from(&vm::testing::block(AT, 0));
        let mut seen = Vec::new();
        for (transaction, index) in positions {
            let mut deposit = fixtures::deposit(request.order_id, *index);
            deposit.amount = U256::from(amount);
            let tx = fixtures::tx(*transaction);
            seen.push(apply::deposit("origin", &tx, &place, &deposit));
            let mut receipt = vm::testing::receipt(self.script.block(AT));
            let head = self.script.head().await.unwrap();
            if let Ok(Transaction::Succeeded(known)) = self.script.transaction(&tx, &head).await {
                receipt = known;
            }
            receipt.deposits.as_mut().unwrap().push(deposit);
            self.script.put(&tx, Transaction::Succeeded(receipt));
        }
        let batch = opened(Batch::new(), request.id, seen[0].onchain_id, NOW);
        let change = |facts: &mut Facts| seen.iter().for_each(|one| apply::seen(facts, one));
        let recorded = self.requests.record(&request.id, NOW, batch, change);
        recorded.await.unwrap();
        request
    }

    async fn finals(&self, request: &Request) -> usize {
        let facts = self.requests.facts(&request.id).await.unwrap();
        let mut deposits = facts.deposits.iter();
        let others = deposits.position(|one| one.standing != Standing::Final);
        others.unwrap_or(facts.deposits.len())
    }
}

#[tokio::test]
async fn a_transaction_full_of_dust_is_read_once_and_recorded_once_for_each_order() {
    let bench = Bench::over(Arc::new(MemoryStore::new())).await;
    let mut dusted = Vec::new();
    for number in 0..10_u8 {
        let first = u32::from(number) * 128;
        let positions: Vec<_> = (first..first + 128).map(|index| (500, index)).collect();
        dusted.push(bench.paid(2 + number, DUST, &positions).await);
    }
    let honest = bench.paid(200, WHOLE, &[(200, 3)]).await;
    let asked = bench.script.asked();
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!(look.confirmed, 1_281);
    // The head, and two transactions.
    assert_eq!(bench.script.asked() - asked, 3);
    assert_eq!(bench.finals(&honest).await, 1);
    for request in &dusted {
        let facts = bench.requests.facts(&request.id).await.unwrap();
        assert_eq!((facts.version, bench.finals(request).await), (2, 128));
        assert_eq!(facts.deposits[7].together, 1_280);
    }
}

#[tokio::test]
async fn what_pays_for_its_order_is_confirmed_before_parts_and_dust() {
    let bench = Bench::over(Arc::new(MemoryStore::new())).await;
    let positions: Vec<_> = (500..600).map(|transaction| (transaction, 1)).collect();
    let dust = bench.paid(2, DUST, &positions).await;
    let part = bench.paid(199, PART, &[(800, 3)]).await;
    let honest = bench.paid(200, WHOLE, &[(900, 3)]).await;
    let asked = bench.script.asked();
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!(look.confirmed, A_PASS);
    assert_eq!(bench.script.asked() - asked, 1 + A_PASS as u64);
    assert_eq!(bench.finals(&honest).await, 1);
    assert_eq!(bench.finals(&part).await, 1);
    // What comes meanwhile goes before the rest.
    let late = bench.paid(201, WHOLE, &[(901, 3)]).await;
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!((bench.finals(&late).await, look.confirmed), (1, 39));
    assert_eq!(bench.finals(&dust).await, 100);
}

#[tokio::test]
async fn what_is_not_final_yet_takes_no_place_from_what_is() {
    let bench = Bench::over(Arc::new(MemoryStore::new())).await;
    let positions: Vec<_> = (500..600).map(|transaction| (transaction, 1)).collect();
    let early = bench.paid(2, WHOLE, &positions).await;
    // Their block is young, and they are first by kind.
    let young = |facts: &mut Facts| {
        for deposit in &mut facts.deposits {
            deposit.place = Inclusion::from(&vm::testing::block(AT + 9, 0));
        }
    };
    let batch = opened(Batch::new(), early.id, early.id, NOW);
    let moved = bench.requests.record(&early.id, NOW, batch, young);
    moved.await.unwrap();
    let dust = bench.paid(200, DUST, &[(200, 3)]).await;
    let asked = bench.script.asked();
    let look = bench.confirmer.look(Bench::aged(300)).await.unwrap();
    assert_eq!((look.early, look.confirmed), (100, 1));
    assert_eq!(bench.script.asked() - asked, 2);
    assert_eq!(bench.finals(&dust).await, 1);
}

#[tokio::test]
async fn facts_are_read_when_their_request_has_news() {
    let store = Arc::new(Watched::default());
    let bench = Bench::over(store.clone()).await;
    for number in 2..52 {
        bench.paid(number, WHOLE, &[(number.into(), 3)]).await;
    }
    bench.script.set_head(AT + 5);
    let now = Bench::aged(300);
    let read = async |now: u64| {
        let before = store.facts.load(Relaxed);
        bench.confirmer.look(now).await.unwrap();
        store.facts.load(Relaxed) - before
    };
    assert_eq!(read(now).await, 50);
    assert_eq!(read(now + 1_000).await, 0);
    // One is seen again, at the same moment: its row is another all the same.
    let batch = opened(Batch::new(), B256::repeat_byte(7), B256::ZERO, NOW);
    store.commit(batch).await.unwrap();
    assert_eq!(read(now + 2_000).await, 1);
    let batch = opened(Batch::new(), B256::repeat_byte(7), B256::ZERO, NOW);
    store.commit(batch).await.unwrap();
    assert_eq!(read(now + 2_000).await, 1);
    // Whatever came another way is found a little later.
    assert_eq!(read(now + 60_000).await, 50);
    bench.script.set_head(AT + 10);
    let look = bench.confirmer.look(now + 61_000).await.unwrap();
    assert_eq!(look.confirmed, 50);
    assert_eq!(read(now + 62_000).await, 50);
    assert_eq!(read(now + 63_000).await, 0);
}

#[tokio::test]
async fn a_commit_that_is_refused_keeps_no_other_from_being_made() {
    let store = Arc::new(Watched::default());
    let bench = Bench::over(store.clone()).await;
    let mut requests = Vec::new();
    for number in 2..5 {
        requests.push(bench.paid(number, WHOLE, &[(number.into(), 3)]).await);
    }
    store.refuses.store(1, Relaxed);
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!((look.confirmed, look.refused), (2, 1));
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!((look.confirmed, look.refused), (1, 0));
    for request in &requests {
        assert_eq!(bench.finals(request).await, 1);
    }
}

#[tokio::test]
async fn what_nobody_answers_about_is_asked_again_after_a_pause() {
    let bench = bench().await;
    bench.script.set_head(AT + 20);
    // Tells its head and nothing of transactions.
    let answers = Answers {
        transaction: Some(|own: &Script<AtomicU64>, _, _| {
            own.fetch_add(1, Relaxed);
            said(Err(ReadError::Quorum("one of three".into())))
        }),
        ..Answers::default()
    };
    let mute = bench.script.answering(AtomicU64::new(0), answers);
    let mut chain = fixtures::chain("origin", &bench.script);
    chain.reader = mute.clone();
    let network = Network {
        chain,
        wakeup: Arc::default(),
        listed: None,
    };
    let networks = HashMap::from([("origin".to_owned(), network)]);
    let confirmer = Confirmer::new(bench.requests.clone(), networks);
    let look = confirmer.look(Bench::aged(300)).await.unwrap();
    assert_eq!((look.unanswered, mute.load(Relaxed)), (1, 1));
    // Once a second for a day: a part of its age, and a minute at most.
    for age in 301..86_400 {
        confirmer.look(Bench::aged(age)).await.unwrap();
    }
    let asked = mute.load(Relaxed);
    assert!((1_400..1_500).contains(&asked), "{asked}");
}
