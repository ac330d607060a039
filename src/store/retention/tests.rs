//! What retention deletes, and what it never deletes.

use super::*;
use crate::{
    request::{
        Request,
        fact::{Ending, Facts, Standing},
        fixtures, last_deadline,
        reason::{FailReason, RefundFailReason},
    },
    store::{
        check,
        listing::{Cut, Listing},
        memory::MemoryStore,
        requests::Requests,
        rows::candle::{Candle, Series, Step},
        rows::claim::Claim,
        rows::parked::Parked,
        rows::transaction::{Outcome as Fate, Tracked},
        rows::tx_details,
    },
};

const DAY: u64 = 24 * 60 * 60 * 1_000;

async fn all(sweep: &mut Sweep, store: &dyn Store, now: u64) -> Swept {
    let mut sum = Swept::default();
    while !sum.ended {
        let swept = sweep.step(store, now).await.unwrap();
        sum.quotes += swept.quotes;
        sum.transactions += swept.transactions;
        sum.candles += swept.candles;
        sum.dust += swept.dust;
        sum.ended = swept.ended;
    }
    sum
}

fn numbered(number: u64) -> Request {
    let mut request = fixtures::request(1);
    request.id = alloy::primitives::B256::left_padding_from(&(number + 1).to_be_bytes());
    request.order_id = alloy::primitives::B256::repeat_byte(9) ^ request.id;
    request
}

#[tokio::test]
async fn a_quote_is_one_row_in_no_list_and_gone_a_day_after_its_orders_last_deadline() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    for number in 0..1_200 {
        let request = numbered(number);
        let inserted = requests.insert(&request, Batch::new());
        inserted.await.unwrap();
    }
    let report = check::check(&*store).await.unwrap();
    assert_eq!(report.counts, [("order", 1_200), ("quote", 1_200)]);
    assert_eq!(report.defects, 0, "{report}");
    // Somebody acts on one at the last moment.
    let paid = |facts: &mut Facts| facts.deposits.push(fixtures::deposit(1, Standing::Final));
    let last = numbered(700).id;
    let recorded = requests.record(&last, 5, Batch::new(), paid);
    recorded.await.unwrap();
    let listing = Listing::open(store.clone()).await.unwrap();
    listing.complete().await.unwrap();
    let cut = Cut {
        limit: 50,
        continuation: None,
        total: true,
    };
    let page = listing.page(&Default::default(), cut).await.unwrap();
    assert_eq!((page.found.len(), page.total), (1, Some(1)));

    let end = (last_deadline(&numbered(0).order)) * 1_000 + DAY;
    let mut sweep = Sweep::default();
    assert_eq!(all(&mut sweep, &*store, end - 1).await.quotes, 0);
    assert_eq!(all(&mut sweep, &*store, end).await.quotes, 1_199);
    let left = report_counts(&*store).await;
    assert!(
        left.contains(&("order", 1)) && left.contains(&("request", 1)),
        "{left:?}"
    );
    assert!(requests.by_id(&numbered(3).id).await.unwrap().is_none());
    let order = numbered(3).order_id;
    assert!(requests.by_order(&order).await.unwrap().is_none());
    assert!(requests.by_id(&numbered(700).id).await.unwrap().is_some());
    assert_eq!(all(&mut sweep, &*store, end + DAY).await.quotes, 0);
}

async fn report_counts(store: &dyn Store) -> Vec<(&'static str, u64)> {
    let report = check::check(store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    report.counts
}

/// A request with one deposit that the solver parked as dust at `since` (unix milliseconds); all deposits are in one
/// transaction.
async fn dusted(requests: &Requests, number: u64, since: u64) -> Request {
    let request = numbered(number);
    requests.insert(&request, Batch::new()).await.unwrap();
    let mut deposit = fixtures::deposit(1, Standing::Final);
    deposit.onchain_id = alloy::primitives::B256::repeat_byte(3) ^ request.id;
    let parked = Parked {
        network: deposit.network.clone(),
        transaction: deposit.transaction.clone(),
        depositor: deposit.depositor.clone(),
        currency: deposit.currency.clone(),
        amount: deposit.amount,
        reason: FailReason::DepositChainMismatch,
        why: RefundFailReason::AmountTooLowToRefund,
        note: "dust".into(),
        minor: true,
        since,
    };
    let claim = Claim {
        parked: vec![deposit.onchain_id],
        ..Claim::default()
    };
    let key = parked::key(&request.id, &deposit.onchain_id);
    let with = Batch::new()
        .put(key, parked.encode().unwrap())
        .put(rows::claim::key(&request.id), claim.encode().unwrap());
    let dust = |facts: &mut Facts| {
        facts.deposits.push(deposit.clone());
        facts.end(Ending {
            deposit: deposit.onchain_id,
            reason: parked.reason,
            refused: Some(parked.why),
            minor: true,
        });
    };
    requests
        .record(&request.id, since, with, dust)
        .await
        .unwrap();
    request
}

/// Deletes the rows of other owners: events, and wanted transactions.
async fn aged(store: &dyn Store) {
    for kind in [rows::EVENT, rows::HISTORY, rows::WITNESS] {
        let range = Range {
            kind,
            prefix: Vec::new(),
            after: None,
            limit: 1_000,
            reverse: false,
        };
        let page = store.scan(range).await.unwrap();
        let gone = page.into_iter().map(|(key, _)| key);
        store
            .commit(gone.fold(Batch::new(), Batch::delete))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_request_of_dust_is_gone_thirty_days_after_its_orders_last_deadline() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    for number in 0..100 {
        dusted(&requests, number, 5).await;
    }
    let end = last_deadline(&numbered(0).order) * 1_000 + KNOWN;
    let mut sweep = Sweep::default();
    // An event may still be delivered, and the transaction is still wanted.
    assert_eq!(all(&mut sweep, &*store, end).await.dust, 0);
    aged(&*store).await;
    assert_eq!(all(&mut sweep, &*store, end - 1).await.dust, 0);
    let text = fixtures::deposit(1, Standing::Final).transaction;
    let seen = tx_details::seen("origin", &text);
    let tx_details = tx_details::encode_seen(&crate::store::fixtures::tx_details()).unwrap();
    store
        .commit(Batch::new().put(seen.clone(), tx_details))
        .await
        .unwrap();
    // One request was paid, too: the others share its transaction.
    let paid = numbered(70);
    let change = |facts: &mut Facts| facts.deposits.push(fixtures::deposit(9, Standing::Final));
    requests
        .record(&paid.id, 6, Batch::new(), change)
        .await
        .unwrap();
    aged_but(&*store, &seen).await;
    assert_eq!(all(&mut sweep, &*store, end).await.dust, 99);
    assert!(store.read(&seen).await.unwrap().is_some());
    let counts = report_counts(&*store).await;
    for kind in ["request", "facts", "order", "summary", "claim", "parked"] {
        assert!(counts.contains(&(kind, 1)), "{kind} {counts:?}");
    }
    assert!(requests.by_id(&paid.id).await.unwrap().is_some());
    assert!(
        requests
            .by_order(&numbered(3).order_id)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(all(&mut sweep, &*store, end + DAY).await.dust, 0);
}

/// As [`aged`], but leaves the row of `key`.
async fn aged_but(store: &dyn Store, key: &Key) {
    let kept = store.read(key).await.unwrap().unwrap();
    aged(store).await;
    store
        .commit(Batch::new().put(key.clone(), kept))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_request_that_anything_else_was_seen_of_stays() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    let end = last_deadline(&numbered(0).order) * 1_000 + KNOWN;
    let mut kept = Vec::new();
    for number in 0..6 {
        kept.push(dusted(&requests, number, if number == 5 { end } else { 5 }).await);
    }
    // The solver has sent something; the operator is asked; there is work; the claim is not the solver's; a deposit
    // has worth; one was just parked.
    let sent = |facts: &mut Facts| {
        let state = crate::request::fact::State::Broadcast;
        facts.attempts.push(fixtures::attempt(
            crate::request::fact::Purpose::Refund,
            state,
        ));
    };
    requests
        .record(&kept[0].id, 6, Batch::new(), sent)
        .await
        .unwrap();
    let listed = store.scan(parked::of(&kept[1].id, 1)).await.unwrap();
    let (key, bytes) = listed[0].clone();
    let real = Parked {
        minor: false,
        ..Parked::decode(&bytes).unwrap()
    };
    let open = rows::open::encode(6, &kept[2].id);
    let batch = Batch::new()
        .put(key, real.encode().unwrap())
        .put(rows::open::key(&kept[2].id), open)
        .delete(rows::claim::key(&kept[3].id));
    store.commit(batch).await.unwrap();
    let more = |facts: &mut Facts| facts.deposits.push(fixtures::deposit(9, Standing::Reorged));
    requests
        .record(&kept[4].id, 6, Batch::new(), more)
        .await
        .unwrap();
    aged(&*store).await;
    let mut sweep = Sweep::default();
    assert_eq!(all(&mut sweep, &*store, end + DAY).await.dust, 0);
    for request in &kept {
        assert!(requests.by_id(&request.id).await.unwrap().is_some());
    }
    assert_eq!(all(&mut sweep, &*store, end + KNOWN).await.dust, 1);
}

/// A token without a price may be worth much.
#[tokio::test]
async fn what_nobody_can_price_is_no_dust() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    let end = last_deadline(&numbered(0).order) * 1_000 + KNOWN;
    let (unpriced, dust) = (dusted(&requests, 0, 5).await, dusted(&requests, 1, 5).await);
    let listed = store.scan(parked::of(&unpriced.id, 1)).await.unwrap();
    let (key, bytes) = listed[0].clone();
    let row = Parked {
        why: RefundFailReason::ManualRefundRequired,
        note: "a token without a price".into(),
        ..Parked::decode(&bytes).unwrap()
    };
    let batch = Batch::new().put(key, row.encode().unwrap());
    store.commit(batch).await.unwrap();
    aged(&*store).await;
    assert_eq!(all(&mut Sweep::default(), &*store, end).await.dust, 1);
    assert!(requests.by_id(&unpriced.id).await.unwrap().is_some());
    assert!(requests.by_id(&dust.id).await.unwrap().is_none());
}

/// A request with deposits of one amount in one currency, parked as the index parks them: all that it ends, and those
/// beyond the request's limits.
async fn shelved(requests: &Requests, request: Request, of: (&str, u64), left_out: u64) -> B256 {
    requests.insert(&request, Batch::new()).await.unwrap();
    let deposit = |number: u64| crate::request::fact::Deposit {
        onchain_id: B256::left_padding_from(&(1_000 + number).to_be_bytes()) ^ request.id,
        currency: of.0.into(),
        amount: vm::Amount::from(of.1),
        ..fixtures::deposit(1, Standing::Final)
    };
    let why = RefundFailReason::ManualRefundRequired;
    let placed = if left_out > 0 { 64 } else { 1 };
    let (mut batch, mut claim) = (Batch::new(), Claim::default());
    for number in 0..placed + left_out {
        let one = deposit(number);
        // The solver has judged the deposits within the limits.
        let solver = request.execution == crate::request::Execution::Solver && number < placed;
        let why = match solver {
            true => RefundFailReason::AmountTooLowToRefund,
            false => why,
        };
        if solver {
            claim.parked.push(one.onchain_id);
        }
        let reasons = parked::Reasons {
            fill: FailReason::Unknown,
            refund: why,
        };
        let row = Parked::new(&one, reasons, "", true, 5);
        let key = parked::key(&request.id, &one.onchain_id);
        batch = batch.put(key, row.encode().unwrap());
    }
    if !claim.parked.is_empty() {
        batch = batch.put(rows::claim::key(&request.id), claim.encode().unwrap());
    }
    let seen = |facts: &mut Facts| {
        for one in (0..placed).map(deposit) {
            facts.end(Ending {
                deposit: one.onchain_id,
                reason: FailReason::Unknown,
                refused: Some(why),
                minor: true,
            });
            facts.deposits.push(one);
        }
    };
    let recorded = requests.record(&request.id, 5, batch, seen);
    recorded.await.unwrap();
    request.id
}

/// Where no solver has priced the dust, the quote's price applies.
#[tokio::test]
async fn dust_that_no_solver_has_judged_is_gone_and_nothing_that_may_be_worth_something() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    let by_user = |number| Request {
        execution: crate::request::Execution::User,
        ..numbered(number)
    };
    let (dust, worth, other) = (
        (fixtures::USDC, 50_000),
        (fixtures::USDC, 50_001),
        (fixtures::USER, 1),
    );
    let cases = [
        (fixtures::priced(by_user(0)), dust, 0, true),
        (fixtures::priced(numbered(1)), dust, 1, true),
        (fixtures::priced(by_user(2)), dust, 1, true),
        (fixtures::priced(by_user(3)), worth, 0, false),
        (fixtures::priced(numbered(4)), worth, 1, false),
        (fixtures::priced(by_user(5)), other, 0, false),
        (fixtures::priced(numbered(6)), other, 1, false),
        (by_user(7), dust, 0, false),
        (numbered(8), dust, 1, false),
        (
            fixtures::priced(by_user(9)),
            (fixtures::USDC, u64::MAX),
            0,
            false,
        ),
    ];
    let mut all_of = Vec::new();
    for (request, of, left_out, gone) in cases {
        let id = shelved(&requests, request, of, left_out).await;
        all_of.push((id, gone));
    }
    // A request whose deposit is not judged yet.
    let early = shelved(&requests, fixtures::priced(by_user(10)), dust, 0).await;
    let unjudged = |facts: &mut Facts| facts.endings.clear();
    let recorded = requests.record(&early, 6, Batch::new(), unjudged);
    recorded.await.unwrap();
    all_of.push((early, false));
    aged(&*store).await;
    let end = last_deadline(&numbered(0).order) * 1_000 + KNOWN;
    let mut sweep = Sweep::default();
    assert_eq!(all(&mut sweep, &*store, end - 1).await.dust, 0);
    all(&mut sweep, &*store, end).await;
    for (number, (id, gone)) in all_of.iter().enumerate() {
        let left = requests.by_id(id).await.unwrap().is_some();
        assert_eq!(left, !gone, "{number}");
        let rows = store.scan(parked::of(id, 99)).await.unwrap();
        assert_eq!(rows.is_empty(), *gone, "{number}");
    }
}

#[tokio::test]
async fn a_transaction_that_was_looked_for_is_known_for_thirty_days() {
    let store = MemoryStore::new();
    let tracked = Tracked {
        text: "0x1".into(),
        requests: Vec::new(),
        claimed: Some(alloy::primitives::B256::repeat_byte(7)),
        outcome: Fate::GivenUp,
        tries: 1,
        first: DAY,
        next: 0,
    };
    let row = tracked.encode().unwrap();
    let keys = [
        transaction::settled("origin", &[1]),
        transaction::looked_for("origin", &[2]),
    ];
    for key in &keys {
        let put = Batch::new().put(key.clone(), row.clone());
        store.commit(put).await.unwrap();
    }
    let mut sweep = Sweep::default();
    let early = all(&mut sweep, &store, 31 * DAY - 1).await;
    assert_eq!(early.transactions, 0);
    let late = all(&mut sweep, &store, 31 * DAY).await;
    assert_eq!(late.transactions, 1);
    assert_eq!(store.read(&keys[0]).await.unwrap(), None);
    assert!(
        store.read(&keys[1]).await.unwrap().is_some(),
        "still looked for"
    );
}

/// Candles of three steps of two currencies, one per page; the pages end at these unix seconds.
async fn charted(store: &dyn Store, ends: &[u64]) {
    let mut batch = Batch::new();
    for (network, end) in ["origin", "destination"]
        .into_iter()
        .flat_map(|network| ends.iter().map(move |end| (network, end)))
    {
        let series = Series {
            network,
            currency: fixtures::USDC,
        };
        for step in Step::ALL {
            let at = end - 1;
            let one = Candle {
                at,
                open: 1,
                high: 1,
                low: 1,
                close: 1,
            };
            let row = candle::encode(&[one]).unwrap();
            batch = batch.put(candle::key(step, series, at), row);
        }
    }
    store.commit(batch).await.unwrap();
}

#[tokio::test]
async fn candles_are_gone_when_their_time_is_over_each_step_by_its_own() {
    let seconds = DAY / 1_000;
    // Pages of all steps end at these times.
    let ends = [32 * 100 * seconds, 32 * 101 * seconds];
    let store = MemoryStore::new();
    charted(&store, &ends).await;
    let mut sweep = Sweep::default();
    let mut left = 12;
    for (step, kept) in [
        (Step::Minutes, 2 * seconds),
        (Step::Hour, 31 * seconds),
        (Step::Day, 5 * 365 * seconds),
    ] {
        assert_eq!(step.kept(), kept);
        // Before the second page is due, the first one of each currency is.
        let early = all(&mut sweep, &store, (ends[0] + kept) * 1_000 - 1).await;
        left -= early.candles;
        let before = left;
        let swept = all(&mut sweep, &store, (ends[0] + kept) * 1_000).await;
        left -= swept.candles;
        assert_eq!(before - left, 2, "{step:?}");
        let rows = store.scan(candle::range(None, 99)).await.unwrap();
        assert_eq!(rows.len() as u64, left, "{step:?}");
    }
}

#[tokio::test]
async fn the_last_candles_of_a_currency_stay_as_long_as_their_sum_would() {
    let seconds = DAY / 1_000;
    let end = 32 * 100 * seconds;
    let store = MemoryStore::new();
    charted(&store, &[end]).await;
    let mut sweep = Sweep::default();
    for (age, gone) in [
        (2 * seconds, 0),
        (31 * seconds - 1, 0),
        // Pages of minutes, and of hours.
        (31 * seconds, 2),
        (5 * 365 * seconds - 1, 0),
        // Pages of hours, and of days.
        (5 * 365 * seconds, 4),
    ] {
        let swept = all(&mut sweep, &store, (end + age) * 1_000).await;
        assert_eq!(swept.candles, gone, "{age}");
    }
}

#[tokio::test]
async fn candles_beyond_a_page_of_the_sweep_are_forgotten_too() {
    let store = MemoryStore::new();
    let ends: Vec<_> = (1..=700).map(|hour| hour * 3_600).collect();
    charted(&store, &ends).await;
    let rows = || store.scan(candle::range(None, 9_999));
    let before = rows().await.unwrap().len();
    let mut sweep = Sweep::default();
    let gone = all(&mut sweep, &store, 100 * 365 * DAY).await.candles;
    assert_eq!(gone as usize, before);
    assert!(before > 2 * PAGE, "{before}");
    assert!(rows().await.unwrap().is_empty());
}
