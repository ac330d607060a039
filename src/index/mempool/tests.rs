use std::{collections::HashMap, ops::Range, sync::Mutex};

use async_trait::async_trait;
use tokio::time::Instant;
use vm::{
    ChainReader, Head, Transaction,
    testing::{Answer, Answers, Script, said},
};

use super::*;
use crate::{
    index::{
        fixtures,
        submitted::{Network, Transactions},
    },
    request::{
        self,
        fact::Inclusion,
        status::{self, Status},
    },
    store::memory::MemoryStore,
};

const AT: u64 = 1_000;

/// A provider's memory pool.
#[derive(Default)]
struct Pool {
    /// What it lists; `None`: it does not answer.
    listed: Mutex<Option<Vec<WaitingTx>>>,
    /// What it has besides, because a crowd fills its list.
    besides: Mutex<Vec<WaitingTx>>,
    /// How many transactions it was asked for by name.
    named: Mutex<usize>,
}

#[async_trait]
impl Mempool for Pool {
    async fn waiting(&self, known: &[TxRef]) -> Result<Vec<WaitingTx>, ReadError> {
        *self.named.lock().unwrap() += known.len();
        let down = || ReadError::Unavailable("down".into());
        let listed = self.listed.lock().unwrap().clone().ok_or_else(down)?;
        let besides = self.besides.lock().unwrap().clone().into_iter();
        let besides = besides.filter(|one| known.contains(&one.transaction));
        Ok(listed.into_iter().chain(besides).collect())
    }
}

/// How a transaction is read.
type Read = for<'a> fn(&'a Script, &'a TxRef, &'a Head) -> Answer<'a, Transaction>;

/// Transaction 20 only.
fn picky<'a>(script: &'a Script, tx: &'a TxRef, head: &'a Head) -> Answer<'a, Transaction> {
    if *tx != fixtures::tx(20) {
        return said(Err(ReadError::TooLarge));
    }
    Box::pin(async move {
        let plain = script.plain();
        plain.transaction(tx, head).await
    })
}

struct Bench {
    script: Arc<Script>,
    pools: [Arc<Pool>; 2],
    requests: Requests,
    request: Request,
    watcher: Watcher,
}

impl Bench {
    async fn start() -> Self {
        let script = Script::at(AT);
        let requests = Requests::new(Arc::new(MemoryStore::new()));
        let request = request::fixtures::request(1);
        requests.insert(&request, Batch::new()).await.unwrap();
        let pools: [Arc<Pool>; 2] = Default::default();
        let bench = Self {
            watcher: watcher(&script, &pools, &requests),
            script,
            pools,
            requests,
            request,
        };
        bench.show(&[]);
        bench
    }

    /// A bench whose deposit was seen waiting and is in a block since, so that no provider lists it; and what they
    /// listed.
    async fn included() -> (Self, WaitingTx) {
        let mut bench = Self::start().await;
        let shown = waiting(1, bench.deposit());
        bench.show(std::slice::from_ref(&shown));
        bench.rounds(1).await;
        bench.include(1);
        bench.show(&[]);
        (bench, shown)
    }

    /// All providers show these.
    fn show(&self, waiting: &[WaitingTx]) {
        for pool in &self.pools {
            *pool.listed.lock().unwrap() = Some(waiting.to_vec());
        }
    }

    fn deposit(&self) -> vm::Deposit {
        fixtures::deposit(self.request.order_id, 0)
    }

    async fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.watcher.round(5).await.unwrap();
        }
    }

    /// Unix seconds since when a quorum has shown each deposit that waits.
    async fn since(&self) -> Vec<u64> {
        let facts = self.requests.facts(&self.request.id).await.unwrap();
        facts.waited.iter().map(|one| one.since).collect()
    }

    /// The transaction is in the newest block.
    fn include(&self, number: u64) {
        let receipt = vm::testing::receipt(self.script.block(AT));
        let found = Transaction::Succeeded(receipt);
        self.script.put(&fixtures::tx(number), found);
    }

    /// Another block takes its place, with what conflicts with the transaction.
    fn replace(&self, number: u64) {
        self.script.reorg(1);
        self.script.mine(1);
        self.script.put(&fixtures::tx(number), Transaction::Missing);
    }

    /// The watcher reads transactions so.
    fn reads(&mut self, read: Read) {
        let answers = Answers {
            transaction: Some(read),
            ..Answers::default()
        };
        let script = self.script.answering((), answers);
        self.watcher = watcher(&script, &self.pools, &self.requests);
    }

    /// Deposits of another request have been shown, and are not any more.
    async fn crowd(&mut self, numbers: Range<u64>) {
        let other = request::fixtures::request(2);
        self.requests.insert(&other, Batch::new()).await.unwrap();
        let deposit = fixtures::deposit(other.order_id, 0);
        let crowd = numbers.map(|number| waiting(number, deposit.clone()));
        self.show(&crowd.collect::<Vec<_>>());
        self.rounds(1).await;
        self.show(&[]);
    }

    /// Whether any transaction is looked for.
    async fn is_looked_for(&self) -> bool {
        let store = &**self.requests.store();
        let mut walk = Walk::under(store, TRANSACTION, vec![transaction::LOOKED_FOR]);
        walk.next().await.unwrap().is_some()
    }

    async fn status(&self) -> Status {
        let facts = self.requests.facts(&self.request.id).await.unwrap();
        status::of(&self.request, &facts).status
    }
}

fn watcher(script: &Arc<Script>, pools: &[Arc<Pool>; 2], requests: &Requests) -> Watcher {
    let chain = fixtures::chain("origin", script);
    let all = pools.iter().map(|pool| pool.clone() as Arc<dyn Mempool>);
    let pools = Pools {
        all: all.collect(),
        required: 2,
    };
    Watcher::new("origin", chain, pools, requests.clone())
}

fn waiting(number: u64, deposit: vm::Deposit) -> WaitingTx {
    WaitingTx {
        transaction: fixtures::tx(number),
        deposits: vec![deposit],
    }
}

#[tokio::test]
async fn a_request_is_pending_while_its_deposit_waits_and_waiting_when_it_is_replaced() {
    let mut bench = Bench::start().await;
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Waiting);
    bench.show(&[waiting(1, bench.deposit())]);
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Pending);
    // Seen again it is no news.
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    bench.rounds(5).await;
    assert_eq!(
        bench.requests.facts(&bench.request.id).await.unwrap(),
        facts
    );
    // A provider that does not answer may have it.
    bench.show(&[]);
    *bench.pools[1].listed.lock().unwrap() = None;
    bench.rounds(2 * MISSED).await;
    assert_eq!(bench.status().await, Status::Pending);
    bench.show(&[]);
    bench.rounds(MISSED).await;
    assert_eq!(bench.status().await, Status::Waiting);
    assert!(!bench.is_looked_for().await);
    // The replacement counts as the first one did.
    bench.show(&[waiting(2, bench.deposit())]);
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Pending);
}

#[tokio::test]
async fn what_would_not_pay_makes_nothing_pending() {
    let mut bench = Bench::start().await;
    let stranger = fixtures::address(request::fixtures::USDC);
    let changes: [fn(&mut vm::Deposit, vm::Address); 4] = [
        |one, stranger| one.depositor = stranger,
        |one, _| one.amount = vm::U256::from(1),
        |one, _| one.named_by_other = true,
        |one, _| one.id = B256::repeat_byte(9).to_string().into(),
    ];
    let deposits = changes.iter().zip(1..).map(|(change, number)| {
        let mut deposit = bench.deposit();
        change(&mut deposit, stranger.clone());
        waiting(number, deposit)
    });
    let all: Vec<_> = deposits.collect();
    bench.show(&all);
    bench.rounds(2).await;
    assert_eq!(bench.status().await, Status::Waiting);
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.version, 0);
}

#[tokio::test]
async fn a_waiting_deposit_outlives_the_process_and_ends_in_a_block() {
    let mut bench = Bench::start().await;
    bench.show(&[waiting(1, bench.deposit())]);
    bench.rounds(1).await;
    bench.watcher = watcher(&bench.script, &bench.pools, &bench.requests);
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Pending);
    // In a block it is the deposit's own matter.
    bench.include(1);
    bench.show(&[]);
    bench.rounds(MISSED).await;
    assert_eq!(bench.status().await, Status::Pending);
    let place = Inclusion::from(&bench.script.block(AT));
    let deposit = apply::deposit("origin", &fixtures::tx(1), &place, &bench.deposit());
    let seen = |facts: &mut Facts| apply::seen(facts, &deposit);
    let recorded = bench
        .requests
        .record(&bench.request.id, 6, Batch::new(), seen);
    let facts = recorded.await.unwrap();
    assert!(facts.own.is_empty() && facts.deposits.len() == 1);
    // What a provider's pool still has then is no news.
    bench.watcher = watcher(&bench.script, &bench.pools, &bench.requests);
    bench.show(&[waiting(1, bench.deposit())]);
    bench.rounds(1).await;
    let now = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(now, facts);
}

#[tokio::test]
async fn silence_of_all_providers_is_an_error_and_changes_nothing() {
    let mut bench = Bench::start().await;
    bench.show(&[waiting(1, bench.deposit())]);
    bench.rounds(1).await;
    for pool in &bench.pools {
        *pool.listed.lock().unwrap() = None;
    }
    assert!(bench.watcher.round(6).await.is_err());
    assert_eq!(bench.status().await, Status::Pending);
}

#[tokio::test]
async fn the_time_of_a_waiting_deposit_is_a_quorum_s_and_ends_with_it() {
    let mut bench = Bench::start().await;
    let shown = waiting(1, bench.deposit());
    // One provider may say twice what it likes.
    *bench.pools[0].listed.lock().unwrap() = Some(vec![shown.clone(), shown.clone()]);
    bench.watcher.round(5_000).await.unwrap();
    assert_eq!(bench.status().await, Status::Pending);
    assert_eq!(bench.since().await, [0; 0]);
    bench.show(std::slice::from_ref(&shown));
    bench.watcher.round(7_000).await.unwrap();
    bench.watcher.round(9_000).await.unwrap();
    assert_eq!(bench.since().await, [7]);
    // A restart keeps the first time.
    bench.watcher = watcher(&bench.script, &bench.pools, &bench.requests);
    bench.watcher.round(11_000).await.unwrap();
    assert_eq!(bench.since().await, [7]);
    // What went and comes back waits since it came back.
    bench.show(&[]);
    bench.rounds(MISSED).await;
    assert_eq!(bench.since().await, [0; 0]);
    bench.show(&[shown]);
    bench.watcher.round(20_000).await.unwrap();
    assert_eq!(bench.since().await, [20]);
}

/// Strangers who fill the list of a provider take nobody's waiting deposit away, and keep none from being agreed on.
#[tokio::test]
async fn a_deposit_waits_while_providers_have_it_though_they_do_not_list_it() {
    let mut bench = Bench::start().await;
    let shown = waiting(1, bench.deposit());
    *bench.pools[0].listed.lock().unwrap() = Some(vec![shown.clone()]);
    *bench.pools[1].besides.lock().unwrap() = vec![shown.clone()];
    bench.watcher.round(5_000).await.unwrap();
    bench.watcher.round(7_000).await.unwrap();
    assert_eq!(bench.since().await, [7]);
    bench.show(&[]);
    *bench.pools[0].besides.lock().unwrap() = vec![shown];
    bench.rounds(2 * MISSED).await;
    assert_eq!(bench.since().await, [7]);
    for pool in &bench.pools {
        pool.besides.lock().unwrap().clear();
    }
    bench.rounds(MISSED).await;
    assert_eq!(bench.since().await, [0; 0]);
}

/// What looks for transactions beside the watcher, in the network that it watches.
fn transactions(script: &Arc<Script>, requests: &Requests) -> Transactions {
    let network = Network {
        chain: fixtures::chain("origin", script),
        wakeup: Arc::default(),
        block_seconds: 600,
        pool_watched: true,
    };
    let networks = HashMap::from([("origin".to_owned(), network)]);
    Transactions::new(Arc::new(fixtures::market()), networks, requests.clone())
}

#[tokio::test]
async fn a_request_waits_again_when_the_block_of_its_deposit_has_left_the_chain() {
    let (mut bench, _) = Bench::included().await;
    let transactions = transactions(&bench.script, &bench.requests);
    bench.rounds(MISSED).await;
    assert_eq!(bench.status().await, Status::Pending);
    assert!(bench.is_looked_for().await);
    bench.replace(1);
    for round in 1..=INCLUDED + MISSED {
        transactions.round(u64::from(round) * 60_000).await.unwrap();
        bench.rounds(1).await;
    }
    assert_eq!(bench.status().await, Status::Waiting);
    assert!(!bench.is_looked_for().await);
}

/// The index has read the row, and waits for the quorum meanwhile.
#[tokio::test(start_paused = true)]
async fn a_deposit_that_is_taken_back_during_a_look_is_looked_for_no_more() {
    let mut bench = Bench::start().await;
    let transactions = transactions(&fixtures::slow(&bench.script), &bench.requests);
    bench.show(&[waiting(1, bench.deposit())]);
    bench.rounds(1).await;
    bench.show(&[]);
    let meanwhile = async {
        sleep(Duration::from_millis(1)).await;
        assert!(bench.is_looked_for().await);
        bench.rounds(MISSED).await;
        assert!(!bench.is_looked_for().await);
    };
    let (looked, ()) = tokio::join!(transactions.round(60_000), meanwhile);
    assert_eq!(looked, Ok(1));
    assert!(!bench.is_looked_for().await);
    assert_eq!(bench.status().await, Status::Waiting);
}

#[tokio::test]
async fn what_is_in_a_block_is_seldom_asked_for_by_name() {
    let (mut bench, shown) = Bench::included().await;
    bench.rounds(MISSED + INCLUDED - 1).await;
    let named = || *bench.pools[0].named.lock().unwrap();
    assert!((1..=4).contains(&named()), "{}", named());
    // Its block has left the chain, and providers do not list it, but have it.
    bench.replace(1);
    *bench.pools[0].besides.lock().unwrap() = vec![shown];
    bench.rounds(2 * MISSED).await;
    assert_eq!(bench.status().await, Status::Pending);
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.own.len(), 1);
}

#[tokio::test]
async fn what_waits_again_after_its_block_is_recorded_again() {
    let (mut bench, shown) = Bench::included().await;
    bench.rounds(MISSED).await;
    let place = Inclusion::from(&bench.script.block(AT));
    let deposit = apply::deposit("origin", &fixtures::tx(1), &place, &bench.deposit());
    let change = |facts: &mut Facts| {
        apply::seen(facts, &deposit);
        apply::gone(facts, deposit.onchain_id, place.hash);
    };
    let recorded = bench
        .requests
        .record(&bench.request.id, 6, Batch::new(), change);
    assert!(recorded.await.unwrap().own.is_empty());
    bench.replace(1);
    bench.show(&[shown]);
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Pending);
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.own.len(), 1);
}

/// Each look takes a second: one after the other they would take minutes.
#[tokio::test(start_paused = true)]
async fn deposits_in_a_block_keep_no_other_from_being_seen() {
    let mut bench = Bench::start().await;
    bench.reads(fixtures::read_slowly);
    bench.crowd(10..160).await;
    (10..160).for_each(|number| bench.include(number));
    for _ in 1..MISSED + INCLUDED {
        let begun = Instant::now();
        bench.rounds(1).await;
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    // In the next one they are looked for again.
    let (begun, shown) = (Instant::now(), waiting(1, bench.deposit()));
    let pools = bench.pools.clone();
    let listing = async {
        sleep(Duration::from_millis(1)).await;
        for pool in &pools {
            *pool.listed.lock().unwrap() = Some(vec![shown.clone()]);
        }
    };
    tokio::join!(bench.rounds(1), listing);
    bench.rounds(1).await;
    assert_eq!(bench.since().await, [0]);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_block_is_asked_for_once_for_all_that_it_has_until_it_is_final() {
    let mut bench = Bench::start().await;
    bench.crowd(10..160).await;
    (10..160).for_each(|number| bench.include(number));
    bench.rounds(MISSED + INCLUDED).await;
    let asked = bench.script.asked();
    bench.rounds(2 * INCLUDED).await;
    // Each time for the head and for the block.
    assert_eq!(bench.script.asked() - asked, 4);
    bench.script.set_head(AT + 10);
    bench.rounds(INCLUDED).await;
    assert!(bench.watcher.waiting.as_ref().unwrap().is_empty());
}

#[tokio::test]
async fn a_crowd_whose_block_has_left_the_chain_is_looked_for_a_few_at_a_time() {
    let mut bench = Bench::start().await;
    bench.crowd(10..40).await;
    (10..40).for_each(|number| bench.include(number));
    bench.rounds(MISSED + INCLUDED).await;
    (10..40).for_each(|number| {
        bench
            .script
            .put(&fixtures::tx(number), Transaction::Missing);
    });
    bench.replace(10);
    for _ in 0..INCLUDED + 2 * MISSED {
        let asked = bench.script.asked();
        bench.rounds(1).await;
        let asked = bench.script.asked() - asked;
        // The head, a block, and eight of thirty.
        assert!(asked <= 10, "{asked}");
    }
    assert!(bench.watcher.waiting.as_ref().unwrap().is_empty());
    assert!(!bench.is_looked_for().await);
}

/// As many as a round asks for cannot be read.
#[tokio::test]
async fn what_cannot_be_read_keeps_no_other_request_pending() {
    let mut bench = Bench::start().await;
    bench.reads(picky);
    bench.crowd(1..10).await;
    bench.show(&[waiting(20, bench.deposit())]);
    bench.rounds(1).await;
    assert_eq!(bench.status().await, Status::Pending);
    bench.show(&[]);
    let mut failed = 0;
    for _ in 0..2 * MISSED {
        failed += u32::from(bench.watcher.round(5).await.is_err());
    }
    assert!(failed > 0);
    assert_eq!(bench.status().await, Status::Waiting);
}
