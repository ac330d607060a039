use std::{cell::Cell, time::Duration};

use futures::future::{join, join_all};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use vm::{Failure, Receipt, Transaction, testing::Script};

use super::{
    permits::{A_SECOND, AT_ONCE, PATIENCE},
    *,
};
use crate::{
    chains::asking,
    index::{IndexError, fixtures},
    request::{
        self,
        fact::{Sent, Standing, State},
        status,
    },
    store::{self, Key, Range, Store, memory::MemoryStore, rows},
};

const NOW: u64 = 1_800_000_000_000;
/// The block of every transaction.
const AT: u64 = 1_000;
const ORIGIN: u64 = 31_001;
/// The users' own call, as their quotes have it.
const OWN: B256 = B256::repeat_byte(0x0c);

struct Bench {
    script: Arc<Script>,
    rows: Arc<MemoryStore>,
    requests: Requests,
    transactions: Transactions,
}

fn bench() -> Bench {
    let script = Script::at(AT);
    let rows = Arc::new(MemoryStore::new());
    over(script, rows, false)
}

fn over(script: Arc<Script>, rows: Arc<MemoryStore>, pool_watched: bool) -> Bench {
    let requests = Requests::new(rows.clone());
    let network = Network {
        chain: fixtures::chain("origin", &script),
        wakeup: Arc::default(),
        block_seconds: 2,
        pool_watched,
    };
    let dark = Script::at(AT);
    dark.hang(true);
    let other = Network {
        chain: fixtures::chain("dark", &dark),
        wakeup: Arc::default(),
        block_seconds: 2,
        pool_watched,
    };
    let networks = HashMap::from([("origin".to_owned(), network), ("dark".to_owned(), other)]);
    let market = Arc::new(fixtures::market());
    Bench {
        transactions: Transactions::new(market, networks, requests.clone()),
        script,
        rows,
        requests,
    }
}

fn hash(number: u64) -> String {
    fixtures::tx(number).text.to_string()
}

impl Bench {
    async fn request(&self, number: u8, execution: Execution) -> Request {
        let mut request = request::fixtures::request(number);
        request.own_call = (execution == Execution::User).then_some(OWN);
        request.execution = execution;
        self.requests.insert(&request, Batch::new()).await.unwrap();
        request
    }

    fn receipt(&self, change: impl FnOnce(&mut Receipt)) {
        let mut receipt = vm::testing::receipt(self.script.block(AT));
        change(&mut receipt);
        self.script
            .put(&fixtures::tx(1), Transaction::Succeeded(receipt));
    }

    /// The transaction is the own one of `request`.
    fn own(&self, request: &Request) {
        self.receipt(|receipt| {
            receipt.references = vec![request.order_id.to_string().into()];
            receipt.outer_call = Some(OWN);
        });
    }

    /// The same, and it failed.
    fn own_failed(&self, request: &Request, outer_call: B256) {
        let failure = Failure {
            block: self.script.block(AT),
            references: vec![request.order_id.to_string().into()],
            outer_call: Some(outer_call),
        };
        self.script
            .put(&fixtures::tx(1), Transaction::Failed(failure));
    }

    async fn submitted(&self) -> usize {
        self.requests.events(0, 100).await.unwrap().len()
    }

    async fn index(&self, number: u64, request: Option<&Request>) -> Result<(), SubmittedError> {
        self.index_at(number, request, 0).await
    }

    /// So many milliseconds later.
    async fn index_at(
        &self,
        number: u64,
        request: Option<&Request>,
        later: u64,
    ) -> Result<(), SubmittedError> {
        let submission = Submission {
            chain: ORIGIN,
            transaction: &hash(number),
            request: request.map(|request| request.id),
        };
        self.transactions.index(submission, NOW + later).await
    }

    async fn round(&self, later: u64) -> usize {
        self.transactions.round(NOW + later).await.unwrap()
    }

    async fn facts(&self, request: &Request) -> Facts {
        self.requests.facts(&request.id).await.unwrap()
    }

    async fn status(&self, request: &Request) -> &'static str {
        let facts = self.facts(request).await;
        status::of(request, &facts).status.text()
    }

    async fn known(&self) -> Result<Known, SubmittedError> {
        self.transactions.status(&hash(1), Some(ORIGIN)).await
    }
}

#[tokio::test]
async fn a_fresh_transaction_is_taken_and_found_when_it_is_in_a_block() {
    let bench = bench();
    let request = bench.request(1, Execution::Solver).await;
    bench.index(1, Some(&request)).await.unwrap();
    let waiting = bench.known().await.unwrap();
    assert_eq!(waiting.outcome, Outcome::Waiting);
    assert!(waiting.request.is_none(), "anybody may say whose it is");
    assert_eq!(bench.round(0).await, 1);
    assert_eq!(bench.status(&request).await, "waiting");

    // Nobody asks again before it is due, and another daemon goes on with it.
    bench.receipt(|receipt| receipt.deposits = Ok(vec![fixtures::deposit(request.order_id, 3)]));
    assert_eq!(bench.round(999).await, 1);
    assert!(bench.facts(&request).await.deposits.is_empty());
    let bench = over(bench.script, bench.rows, false);
    assert_eq!(bench.round(1_000).await, 1);
    let facts = bench.facts(&request).await;
    let (place, standing) = (&facts.deposits[0].place, facts.deposits[0].standing);
    assert_eq!((place.number, standing), (AT, Standing::Included));
    assert_eq!(bench.status(&request).await, "pending");
    assert_eq!(bench.round(9_000).await, 0);
    assert_eq!(bench.known().await.unwrap().outcome, Outcome::Included);

    // Told again, it is the same deposit.
    bench.index_at(1, None, 60_000).await.unwrap();
    assert_eq!(bench.round(60_000).await, 1);
    assert_eq!(bench.facts(&request).await, facts);
    assert_eq!(bench.round(60_000).await, 0);
}

#[tokio::test]
async fn a_transaction_whose_deposits_left_the_chain_has_failed_until_it_is_back() {
    let bench = bench();
    let request = bench.request(1, Execution::Solver).await;
    bench.receipt(|receipt| {
        receipt.deposits = Ok(vec![
            fixtures::deposit(request.order_id, 3),
            fixtures::deposit(request.order_id, 4),
        ]);
    });
    bench.index(1, None).await.unwrap();
    bench.round(0).await;
    let deposits = bench.facts(&request).await.deposits;
    let outcome = async || bench.known().await.unwrap().outcome;
    for (deposit, wanted) in deposits.iter().zip([Outcome::Included, Outcome::Failed]) {
        assert_eq!(outcome().await, Outcome::Included);
        let change = |facts: &mut Facts| apply::lost(facts, deposit.onchain_id, deposit.place.hash);
        let recorded = bench
            .requests
            .record(&request.id, NOW, Batch::new(), change);
        recorded.await.unwrap();
        assert_eq!(outcome().await, wanted);
    }
    let change = |facts: &mut Facts| apply::seen(facts, &deposits[0]);
    let recorded = bench
        .requests
        .record(&request.id, NOW, Batch::new(), change);
    recorded.await.unwrap();
    assert_eq!(outcome().await, Outcome::Included);
}

#[tokio::test]
async fn what_cannot_be_looked_for_is_refused() {
    let bench = bench();
    let stranger = request::fixtures::request(9);
    let submission = |chain, transaction| Submission {
        chain,
        transaction,
        request: None,
    };
    let (good, long) = (hash(1), format!("0x{}", "ab".repeat(65)));
    for (chain, text) in [
        (ORIGIN, "0x12"),
        (ORIGIN, "no"),
        (ORIGIN, ""),
        (ORIGIN, &long),
    ] {
        let refused = bench.transactions.index(submission(chain, text), NOW).await;
        assert!(matches!(refused, Err(SubmittedError::BadHash(_))), "{text}");
    }
    // Unlisted, and listed without a provider.
    for chain in [1, 31_002] {
        let refused = bench
            .transactions
            .index(submission(chain, &good), NOW)
            .await;
        assert_eq!(
            refused,
            Err(SubmittedError::UnknownChain(chain.to_string()))
        );
    }
    let refused = bench.index(1, Some(&stranger)).await;
    assert_eq!(refused, Err(SubmittedError::UnknownRequest(stranger.id)));
    assert_eq!(bench.round(0).await, 0);
    let unknown = Err(SubmittedError::UnknownTransaction(good.clone()));
    assert_eq!(bench.transactions.status(&good, None).await, unknown);
    let bad = bench.transactions.status("0x12", None).await;
    assert!(matches!(bad, Err(SubmittedError::BadHash(_))));
    bench
        .transactions
        .waiting
        .store(2 * MOST, Ordering::Relaxed);
    assert_eq!(bench.index(1, None).await, Err(SubmittedError::Busy));
}

#[tokio::test]
async fn a_network_of_blocks_only_is_looked_at_once() {
    let bench = over(Script::at(AT), Arc::new(MemoryStore::new()), true);
    let request = bench.request(1, Execution::Solver).await;
    let missing = Err(SubmittedError::NotIncluded(hash(1)));
    assert_eq!(bench.index(1, None).await, missing);
    bench.receipt(|receipt| receipt.deposits = Ok(vec![fixtures::deposit(request.order_id, 3)]));
    let asked = bench.script.asked();
    assert_eq!(bench.index_at(1, None, 2_999).await, missing);
    assert_eq!(bench.script.asked(), asked, "nobody is asked so soon");
    assert_eq!(bench.index_at(1, None, 3_000).await, Ok(()));
    assert_eq!(bench.facts(&request).await.deposits.len(), 1);
    assert_eq!(bench.round(3_000).await, 0);
    bench
        .script
        .fail(Some(vm::ReadError::Unavailable("down".into())));
    let again = bench.index_at(1, None, 32_999).await;
    assert_eq!(again, Ok(()), "nobody is asked again");
    let refused = bench.index_at(1, None, 33_000).await;
    assert!(matches!(
        refused,
        Err(SubmittedError::Index(IndexError::Read(_)))
    ));
}

/// The providers are those that confirm everybody's deposits.
#[tokio::test]
async fn what_callers_wait_for_is_asked_so_often_a_second_and_no_more() {
    let bench = over(Script::at(AT), Arc::new(MemoryStore::new()), true);
    let submit = async |numbers: std::ops::Range<u64>, later: u64| {
        let (asked, mut busy) = (bench.script.asked(), 0);
        for number in numbers {
            match bench.index_at(number, None, later).await {
                Err(SubmittedError::NotIncluded(_)) => {}
                Err(SubmittedError::Busy) => busy += 1,
                other => panic!("{number}: {other:?}"),
            }
        }
        (bench.script.asked() - asked, busy)
    };
    let half = u64::from(A_SECOND / 2);
    // A look asks for the head and for the transaction.
    assert_eq!(submit(10..110, 0).await, (2 * half, 100 - half));
    assert_eq!(submit(10..20, 999).await, (0, 0), "missing just now");
    // The other half is for callers with a key.
    let keyed = asking::by(true, submit(110..210, 999)).await;
    assert_eq!(keyed, (2 * half, 100 - half));
    assert_eq!(submit(210..211, 999).await, (0, 1));
    // Keys take of the strangers' half what is left of it.
    let keyed = asking::by(true, submit(210..310, 1_000)).await;
    assert_eq!(keyed, (4 * half, 100 - 2 * half));
    assert_eq!(submit(310..410, 2_000).await, (2 * half, 100 - half));
    // What was found costs nothing.
    bench.receipt(|_| {});
    assert_eq!(bench.index_at(1, None, 3_000).await, Ok(()));
    assert_eq!(submit(410..510, 3_000).await.1, 100 - half + 1);
    assert_eq!(bench.index_at(1, None, 3_000).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn callers_who_wait_leave_half_of_the_permits_to_keys_and_wait_shortly() {
    let bench = over(Script::at(AT), Arc::new(MemoryStore::new()), true);
    bench.script.hang(true);
    let busy = Cell::new(0);
    let submit = |number: u64| {
        let (bench, busy) = (&bench, &busy);
        async move {
            let submitted = bench.index(number, None).await;
            assert_eq!(submitted, Err(SubmittedError::Busy));
            busy.set(busy.get() + 1);
        }
    };
    let strangers = join_all((10..26).map(submit));
    let keys = join_all((26..42).map(|number| asking::by(true, submit(number))));
    let ended = timeout(2 * PATIENCE, join(strangers, keys)).await;
    assert!(ended.is_err(), "some are looked for");
    assert_eq!(bench.script.asked(), AT_ONCE as u64);
    assert_eq!(busy.get(), 32 - AT_ONCE);
    // Who went away has no permit any more.
    bench.script.hang(false);
    let missing = Err(SubmittedError::NotIncluded(hash(50)));
    assert_eq!(bench.index_at(50, None, 1_000).await, missing);
}

#[tokio::test]
async fn the_users_own_transaction_is_followed_to_its_end() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    let spelled = serde_json::json!({ "from": "0x", "txHash": hash(1) }).to_string();
    let single = bench.transactions.single(request.id, ORIGIN, &spelled, NOW);
    single.await.unwrap();
    assert_eq!(bench.status(&request).await, "waiting");
    bench.own(&request);
    bench.round(0).await;
    assert_eq!(bench.status(&request).await, "success");
    assert_eq!(bench.known().await.unwrap().request.unwrap().0, request);
    // Reorged before it is final: it is on its way again.
    bench.script.put(&fixtures::tx(1), Transaction::Missing);
    bench.round(2_000).await;
    assert_eq!(bench.status(&request).await, "pending");
    bench.own(&request);
    bench.script.set_head(AT + 10);
    assert_eq!(bench.round(60_000).await, 1);
    let facts = bench.facts(&request).await;
    assert!(matches!(facts.own[0].state, State::Confirmed(_)));
    assert_eq!(bench.round(120_000).await, 0);
}

#[tokio::test]
async fn only_the_users_own_call_is_the_users_own_transaction() {
    let other = B256::repeat_byte(0x0d);
    for outer_call in [Some(other), None] {
        let bench = bench();
        let request = bench.request(1, Execution::User).await;
        // A stranger tells of an unknown transaction, which then fails, and then succeeds.
        bench.index(1, Some(&request)).await.unwrap();
        let unsaid = async |step: &str| {
            assert_eq!(bench.facts(&request).await, Facts::default(), "{step}");
            assert_eq!(bench.status(&request).await, "waiting", "{step}");
            assert_eq!(bench.submitted().await, 0, "{step}");
            let known = bench.known().await;
            assert!(known.is_err() || known.unwrap().request.is_none(), "{step}");
        };
        bench.round(0).await;
        unsaid("unknown").await;
        bench.own_failed(&request, other);
        bench.round(2_000).await;
        unsaid("failed").await;
        bench.own(&request);
        bench.receipt(|receipt| {
            receipt.references = vec![request.order_id.to_string().into()];
            receipt.outer_call = outer_call;
        });
        bench.index_at(1, Some(&request), 60_000).await.unwrap();
        assert_eq!(bench.round(60_000).await, 1);
        unsaid("successful").await;
    }
}

#[tokio::test]
async fn a_replacement_that_a_stranger_tells_of_takes_no_ones_place() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    bench.own(&request);
    bench.index(1, Some(&request)).await.unwrap();
    bench.round(0).await;
    bench.script.put(&fixtures::tx(1), Transaction::Missing);
    bench.round(2_000).await;
    let before = bench.facts(&request).await;
    let spelled =
        serde_json::json!({ "txHash": hash(1), "replacementTxHash": hash(2) }).to_string();
    let single = bench.transactions.single(request.id, ORIGIN, &spelled, NOW);
    single.await.unwrap();
    assert_eq!(bench.facts(&request).await, before);
}

#[tokio::test]
async fn a_strangers_deposit_is_left_to_the_tail() {
    let bench = bench();
    let request = bench.request(1, Execution::Solver).await;
    let mut deposit = fixtures::deposit(request.order_id, 3);
    deposit.depositor = fixtures::address(fixtures::DEPOSITORY);
    bench.receipt(|receipt| receipt.deposits = Ok(vec![deposit]));
    bench.index(1, Some(&request)).await.unwrap();
    bench.round(0).await;
    assert_eq!(bench.facts(&request).await, Facts::default());
    assert_eq!(bench.submitted().await, 0);
}

#[tokio::test]
async fn a_transaction_that_names_the_order_needs_nobody_to_claim_it() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    bench.own(&request);
    bench.index(1, None).await.unwrap();
    bench.round(0).await;
    assert_eq!(bench.status(&request).await, "success");
    bench.script.put(&fixtures::tx(1), Transaction::Missing);
    bench.round(2_000).await;
    assert_eq!(bench.status(&request).await, "pending");
}

#[tokio::test]
async fn a_failed_transaction_is_a_failure() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    bench.index(1, Some(&request)).await.unwrap();
    bench.own_failed(&request, OWN);
    bench.round(0).await;
    assert_eq!(bench.status(&request).await, "failure");
    bench.script.set_head(AT + 10);
    bench.round(2_000).await;
    assert_eq!(bench.round(9_000).await, 0);
    assert_eq!(bench.known().await.unwrap().outcome, Outcome::Failed);
}

#[tokio::test]
async fn anothers_transaction_is_nobodys_success() {
    let bench = bench();
    let claimed = bench.request(1, Execution::User).await;
    let solved = bench.request(2, Execution::Solver).await;
    bench.index(1, Some(&claimed)).await.unwrap();
    bench.index(1, Some(&solved)).await.unwrap();
    // It names the order of a request that a solver fills, and not the claimed one.
    bench.receipt(|receipt| receipt.references = vec![solved.order_id.to_string().into()]);
    bench.round(0).await;
    assert_eq!(bench.status(&claimed).await, "waiting");
    assert_eq!(bench.status(&solved).await, "waiting");
    assert!(bench.facts(&claimed).await.own.is_empty());
    assert_eq!(bench.round(9_000).await, 0);
}

#[tokio::test]
async fn a_replacement_is_looked_for() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    let spelled =
        serde_json::json!({ "txHash": hash(2), "replacementTxHash": hash(1) }).to_string();
    let single = bench.transactions.single(request.id, ORIGIN, &spelled, NOW);
    single.await.unwrap();
    bench.own(&request);
    bench.round(0).await;
    assert_eq!(bench.status(&request).await, "success");
    for bad in ["", "[]", "{}", "{\"txHash\":1}"] {
        let refused = bench
            .transactions
            .single(request.id, ORIGIN, bad, NOW)
            .await;
        assert!(
            matches!(refused, Err(SubmittedError::BadTransaction(_))),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn junk_takes_no_place_from_what_is_told_later() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    for number in 0..MOST as u64 + 10 {
        let text = hash(10 + number);
        let submission = Submission {
            chain: ORIGIN,
            transaction: &text,
            request: None,
        };
        let at = if number < 10 { NOW - 2 } else { NOW - 1 };
        bench.transactions.index(submission, at).await.unwrap();
    }
    bench.own(&request);
    bench.index(1, Some(&request)).await.unwrap();
    // The youngest first, and no more than are kept.
    assert_eq!(bench.round(0).await, MOST + 11);
    assert_eq!(bench.status(&request).await, "success");
    assert_eq!(bench.round(0).await, MOST);
    // What nobody has seen for longest is forgotten.
    for number in 0..10 {
        let known = bench.transactions.status(&hash(10 + number), None).await;
        assert!(known.is_err(), "{number}");
    }
}

/// A user tells of his transaction before a block has it.
#[tokio::test]
async fn junk_takes_no_place_from_what_a_request_claims_and_nobody_saw_yet() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    bench.index(1, Some(&request)).await.unwrap();
    bench.round(0).await;
    for number in 0..MOST as u64 + 10 {
        bench.index(10 + number, None).await.unwrap();
    }
    bench.round(0).await;
    bench.own(&request);
    for later in 1..=120 {
        bench.round(later * 1_000).await;
        if bench.status(&request).await == "success" {
            return;
        }
    }
    panic!("{}", bench.status(&request).await);
}

#[tokio::test]
async fn junk_in_a_requests_name_takes_no_place_from_what_is_told_later() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    let paid = bench.request(2, Execution::Solver).await;
    for number in 0..MOST as u64 + 10 {
        let junk = bench.index(10 + number, Some(&request)).await;
        junk.unwrap();
    }
    bench.receipt(|receipt| receipt.deposits = Ok(vec![fixtures::deposit(paid.order_id, 3)]));
    bench.index_at(1, None, 1).await.unwrap();
    assert_eq!(bench.round(1).await, MOST + 11);
    assert_eq!(bench.facts(&paid).await.deposits.len(), 1);
    assert_eq!(bench.status(&paid).await, "pending");
}

#[tokio::test]
async fn what_never_comes_is_asked_for_so_often_and_no_more() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    for number in 0..100 {
        bench.index(10 + number, Some(&request)).await.unwrap();
    }
    let mut most = 0;
    for later in (0..6 * 3_600_000).step_by(10_000) {
        let before = bench.script.asked();
        bench.round(later).await;
        most = most.max(bench.script.asked() - before);
    }
    // One round asks for so many, and each asks a few questions.
    assert!(most <= 3 * 40, "{most}");
    let asked = bench.script.asked();
    assert!((500..5_000).contains(&asked), "{asked}");
    // The user's own is found all the same, whenever it comes.
    bench.own(&request);
    bench
        .index_at(1, Some(&request), 6 * 3_600_000)
        .await
        .unwrap();
    bench.round(6 * 3_600_000).await;
    assert_eq!(bench.status(&request).await, "success");
}

#[tokio::test]
async fn telling_again_of_what_was_found_asks_nobody() {
    let bench = bench();
    bench.receipt(|_| {});
    bench.index(1, None).await.unwrap();
    assert_eq!(bench.round(0).await, 1);
    let asked = bench.script.asked();
    for later in [0, 29_999] {
        bench.index_at(1, None, later).await.unwrap();
        assert_eq!(bench.round(later).await, 0);
    }
    assert_eq!(bench.script.asked(), asked);
    // A reorg may have changed it by now.
    bench.index_at(1, None, 30_000).await.unwrap();
    assert_eq!(bench.round(30_000).await, 1);
    assert!(bench.script.asked() > asked);
    // What is final stays nobody's for longer.
    bench.script.set_head(AT + 10);
    bench.index_at(1, None, 60_000).await.unwrap();
    assert_eq!(bench.round(60_000).await, 1);
    bench.index_at(1, None, 659_999).await.unwrap();
    assert_eq!(bench.round(659_999).await, 0);
    bench.index_at(1, None, 660_000).await.unwrap();
    assert_eq!(bench.round(660_000).await, 1);
    // What no block has is looked for each time.
    bench.script.put(&fixtures::tx(2), Transaction::Missing);
    for later in [0, 1_000] {
        let asked = bench.script.asked();
        bench.index_at(2, None, later).await.unwrap();
        assert_eq!(bench.round(later).await, 1);
        assert!(bench.script.asked() > asked);
    }
}

/// Who watches the memory pools ends it: a cheap one may wait for days.
#[tokio::test]
async fn what_waits_in_a_watched_memory_pool_is_not_given_up_for_its_age() {
    for (pool_watched, status) in [(true, "pending"), (false, "waiting")] {
        let bench = over(Script::at(AT), Arc::new(MemoryStore::new()), pool_watched);
        let request = bench.request(1, Execution::Solver).await;
        let tracked = Tracked {
            text: hash(1),
            requests: vec![request.id],
            claimed: None,
            outcome: Outcome::Waiting,
            tries: 0,
            first: NOW,
            next: NOW,
        };
        let key = transaction::looked_for("origin", &fixtures::tx(1).bytes);
        let row = Batch::new().put(key, tracked.encode().unwrap());
        let sent = Sent {
            network: "origin".to_owned(),
            transaction: hash(1),
            state: State::Broadcast,
        };
        let change = |facts: &mut Facts| apply::own(facts, &sent);
        let recorded = bench.requests.record(&request.id, NOW, row, change);
        recorded.await.unwrap();
        assert_eq!(bench.status(&request).await, "pending");
        for hours in [1, 7, 100] {
            bench.round(hours * 3_600_000).await;
        }
        assert_eq!(bench.status(&request).await, status);
    }
}

#[tokio::test]
async fn what_never_comes_is_given_up() {
    let bench = bench();
    let request = bench.request(1, Execution::User).await;
    bench.index(1, Some(&request)).await.unwrap();
    bench.index(2, None).await.unwrap();
    let mut looks = 0;
    for second in 0..=700 {
        let before = bench.script.asked();
        bench.round(second * 1_000).await;
        looks += bench.script.asked() - before;
    }
    assert!((20..100).contains(&looks), "{looks}");
    assert_eq!(bench.round(701_000).await, 1, "one is claimed");
    assert_eq!(bench.status(&request).await, "waiting");
    bench.round(6 * 3_600_000).await;
    assert_eq!(bench.status(&request).await, "waiting");
    for number in [1, 2] {
        let forgotten = bench.transactions.status(&hash(number), None).await;
        assert!(matches!(
            forgotten,
            Err(SubmittedError::UnknownTransaction(_))
        ));
    }
    // Whoever is asked and does not answer says nothing.
    bench.index(1, Some(&request)).await.unwrap();
    bench
        .script
        .fail(Some(vm::ReadError::Unavailable("down".into())));
    bench.round(0).await;
    assert_eq!(bench.round(0).await, 1);
}

/// A round has read the row, and waits for the quorum meanwhile. Then it would look again later, or give up.
#[tokio::test(start_paused = true)]
async fn what_a_request_claims_during_a_look_stays_claimed() {
    for later in [0, 600_000] {
        let script = fixtures::slow(&Script::at(AT));
        let bench = over(script, Arc::new(MemoryStore::new()), false);
        let request = bench.request(1, Execution::User).await;
        bench.index(1, None).await.unwrap();
        let claiming = async {
            sleep(Duration::from_millis(1)).await;
            bench.index_at(1, Some(&request), later + 1).await
        };
        let looked = join(bench.round(later), claiming).await;
        assert_eq!(looked, (1, Ok(())), "{later}");
        let key = transaction::looked_for("origin", &fixtures::tx(1).bytes);
        let row = bench.rows.read(&key).await.unwrap().unwrap();
        let claimed = Tracked::decode(&row).unwrap().claimed;
        assert_eq!(claimed, Some(request.id), "{later}");
        // The next round looks for it as if it were new.
        bench.own(&request);
        assert_eq!(bench.round(later + 1).await, 1, "{later}");
        assert_eq!(bench.status(&request).await, "success", "{later}");
    }
}

#[tokio::test]
async fn it_looks_as_soon_as_it_is_told_and_stops_when_it_is_told_to() {
    let bench = bench();
    let request = bench.request(1, Execution::Solver).await;
    bench.receipt(|receipt| receipt.deposits = Ok(vec![fixtures::deposit(request.order_id, 3)]));
    let shutdown = CancellationToken::new();
    let transactions = Arc::new(bench.transactions);
    let running = tokio::spawn(transactions.clone().run(|| NOW, shutdown.clone()));
    let mut changes = bench.requests.changes();
    let submission = Submission {
        chain: ORIGIN,
        transaction: &hash(1),
        request: None,
    };
    transactions.index(submission, NOW).await.unwrap();
    changes.changed().await.unwrap();
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_network_that_does_not_answer_holds_up_no_other() {
    let bench = bench();
    let dark = Tracked {
        text: hash(9),
        requests: Vec::new(),
        claimed: None,
        outcome: Outcome::Waiting,
        tries: 0,
        first: NOW,
        next: NOW,
    };
    let key = transaction::looked_for("dark", &fixtures::tx(9).bytes);
    let row = Batch::new().put(key, dark.encode().unwrap());
    bench.requests.store().commit(row).await.unwrap();
    let shutdown = CancellationToken::new();
    let transactions = Arc::new(bench.transactions);
    let running = tokio::spawn(transactions.clone().run(|| NOW, shutdown.clone()));
    let mut changes = bench.requests.changes();
    // The second comes when the dark one has been asked already.
    for number in [1, 2] {
        let mut request = request::fixtures::request(number);
        request.execution = Execution::User;
        request.own_call = Some(OWN);
        let requests = &bench.requests;
        requests.insert(&request, Batch::new()).await.unwrap();
        let mut receipt = vm::testing::receipt(bench.script.block(AT));
        receipt.references = vec![request.order_id.to_string().into()];
        receipt.outer_call = Some(OWN);
        let found = Transaction::Succeeded(receipt);
        bench.script.put(&fixtures::tx(number.into()), found);
        let submission = Submission {
            chain: ORIGIN,
            transaction: &hash(number.into()),
            request: None,
        };
        transactions.index(submission, NOW).await.unwrap();
        while requests.facts(&request.id).await.unwrap().own.is_empty() {
            changes.changed().await.unwrap();
        }
    }
    shutdown.cancel();
    running.await.unwrap();
}

/// A store in which a transaction that is looked for is settled right after the first read of one.
struct Settling(MemoryStore);

#[async_trait::async_trait]
impl Store for Settling {
    async fn commit(&self, batch: Batch) -> Result<store::Outcome, StoreError> {
        self.0.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.0.read(key).await?;
        let tx = fixtures::tx(1);
        let looked_for = transaction::looked_for("origin", &tx.bytes);
        if key.kind == rows::TRANSACTION
            && let Some(row) = self.0.read(&looked_for).await?
        {
            let settled = transaction::settled("origin", &tx.bytes);
            let batch = Batch::new().delete(looked_for).put(settled, row);
            self.0.commit(batch).await?;
        }
        Ok(found)
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.0.scan(range).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn what_is_settled_during_the_question_is_known() {
    let tracked = Tracked {
        text: hash(1),
        requests: Vec::new(),
        claimed: None,
        outcome: Outcome::Included,
        tries: 0,
        first: NOW,
        next: NOW,
    };
    let rows = MemoryStore::new();
    let key = transaction::looked_for("origin", &fixtures::tx(1).bytes);
    let row = Batch::new().put(key, tracked.encode().unwrap());
    rows.commit(row).await.unwrap();
    let network = Network {
        chain: fixtures::chain("origin", &Script::at(AT)),
        wakeup: Arc::default(),
        block_seconds: 2,
        pool_watched: false,
    };
    let networks = HashMap::from([("origin".to_owned(), network)]);
    let requests = Requests::new(Arc::new(Settling(rows)));
    let transactions = Transactions::new(Arc::new(fixtures::market()), networks, requests);
    for _ in 0..2 {
        let known = transactions.status(&hash(1), Some(ORIGIN)).await.unwrap();
        assert_eq!(
            (known.transaction, known.outcome),
            (hash(1), Outcome::Included)
        );
    }
}
