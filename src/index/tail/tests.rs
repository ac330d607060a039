mod skipped;
mod slow;

use std::{
    collections::BTreeSet,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use vm::{
    B256,
    testing::{Answers, said},
    trade::DepositTx,
};

use super::*;
use crate::{
    index::{
        admin::AdminHandle,
        apply,
        fixtures::{self, Dying, Script},
    },
    request::{
        self, Request,
        fact::{Facts, Inclusion, Standing},
    },
    store::{
        Key, Outcome, Range, Store, StoreError,
        memory::MemoryStore,
        rows::{facts, open, order, quote, transaction},
    },
};

const NOW: u64 = 1_800_000_000_000;

struct Bench {
    rows: Arc<MemoryStore>,
    world: Arc<Script>,
    index_from: Option<u64>,
}

impl Bench {
    fn new(world: Arc<Script>, index_from: Option<u64>) -> Self {
        let rows = Arc::new(MemoryStore::new());
        Self {
            rows,
            world,
            index_from,
        }
    }

    fn requests(&self) -> Requests {
        Requests::new(self.rows.clone())
    }

    fn tail_over(&self, store: Arc<dyn Store>, scanners: Vec<Arc<dyn Scanner>>) -> Tail {
        let mut network = fixtures::market().by_name("origin").unwrap().clone();
        network.index_from = self.index_from;
        Tail::new(network, scanners, Requests::new(store), Arc::default())
    }

    fn tail(&self) -> Tail {
        self.tail_over(self.rows.clone(), vec![self.world.clone()])
    }

    /// One provider, of a chain whose blocks do not say what is in them.
    fn trusting(&self) -> Tail {
        let mut network = fixtures::market().by_name("origin").unwrap().clone();
        network.index_from = self.index_from;
        network.blooms = false;
        let scanners: Vec<Arc<dyn Scanner>> = vec![self.world.clone()];
        Tail::new(network, scanners, self.requests(), Arc::default())
    }

    async fn request(&self, number: u8) -> Request {
        let request = request::fixtures::request(number);
        self.requests()
            .insert(&request, Batch::new())
            .await
            .unwrap();
        request
    }

    async fn facts(&self, request: &Request) -> Facts {
        self.requests().facts(&request.id).await.unwrap()
    }

    async fn deposits(&self, request: &Request) -> Vec<(u64, Standing)> {
        let facts = self.facts(request).await;
        let deposits = facts.deposits.iter();
        deposits
            .map(|one| (one.place.number, one.standing))
            .collect()
    }

    async fn cursor(&self) -> Cursor {
        let bytes = self.rows.read(&cursor::key("origin")).await.unwrap();
        Cursor::decode(&bytes.unwrap()).unwrap()
    }

    async fn is_open(&self, request: &Request) -> bool {
        let row = self.rows.read(&open::key(&request.id)).await.unwrap();
        row.is_some()
    }
}

/// A whole deposit for the order.
fn paid(request: &Request) -> Vec<vm::Deposit> {
    vec![fixtures::deposit(request.order_id, 0)]
}

/// A chain of eleven blocks, which is read from its beginning, and an order on it.
async fn eleven() -> (Arc<Script>, Bench, Request) {
    let world = Script::at(10);
    let bench = Bench::new(world.clone(), Some(0));
    let request = bench.request(1).await;
    (world, bench, request)
}

/// Steps until there is nothing new.
async fn settle(tail: &mut Tail) {
    for _ in 0..1_000 {
        if tail.step(NOW).await.unwrap() == Step::Idle {
            return;
        }
    }
    panic!("it never comes to rest");
}

#[tokio::test]
async fn a_deposit_that_cannot_be_attributed_is_recorded_for_somebody_to_look() {
    let bench = Bench::new(Script::at(50), Some(0));
    let request = bench.request(1).await;
    let deposits = paid(&request);
    bench.world.deposit(1, deposits);
    bench.world.doubt("the depository called itself");
    settle(&mut bench.tail()).await;
    // Nothing is done because of it before a quorum agrees; the confirmer lists it after two days.
    let facts = bench.facts(&request).await;
    assert_eq!(facts.deposits[0].standing, Standing::Included);
    assert!(bench.is_open(&request).await);
}

#[tokio::test]
async fn a_first_start_begins_at_the_head() {
    let bench = Bench::new(Script::at(50), None);
    let old = bench.request(1).await;
    bench.world.deposit(1, paid(&old));
    bench.world.mine(DEEP);
    let mut tail = bench.tail();
    settle(&mut tail).await;
    let head = bench.world.head_number();
    assert_eq!(bench.cursor().await.next, head + 1);
    assert_eq!(bench.world.scanned(), [head - DEEP + 1..=head]);

    let request = bench.request(2).await;
    let number = bench
        .world
        .deposit(2, vec![fixtures::deposit(request.order_id, 7)]);
    settle(&mut tail).await;
    let facts = bench.facts(&request).await;
    let seen = &facts.deposits[0];
    assert_eq!(
        seen.onchain_id,
        apply::onchain_id("origin", &fixtures::tx(2).text, 7)
    );
    assert_eq!(
        (seen.place.number, seen.standing),
        (number, Standing::Included)
    );
    assert_eq!(seen.place.time, bench.world.block(number).time);
    assert_eq!(seen.depository, fixtures::DEPOSITORY);
    assert!(bench.is_open(&request).await);
    let key = transaction::settled("origin", &fixtures::tx(2).bytes);
    let row = bench.rows.read(&key).await.unwrap().unwrap();
    let tracked = transaction::Tracked::decode(&row).unwrap();
    assert_eq!(tracked.requests, [request.id]);
    assert_eq!(bench.facts(&old).await, Facts::default());
}

#[tokio::test]
async fn the_past_is_read_from_the_configured_block() {
    let world = Script::at(9);
    let bench = Bench::new(world.clone(), Some(10));
    let request = bench.request(1).await;
    world.deposit(1, paid(&request));
    world.mine(5_000);
    settle(&mut bench.tail()).await;
    assert_eq!(bench.deposits(&request).await, [(10, Standing::Included)]);
    let asked = world.scanned();
    assert_eq!(asked.first().map(|range| *range.start()), Some(10));
    assert!(asked.len() > 3, "{asked:?}");

    let later = Bench::new(world.clone(), Some(u64::MAX));
    settle(&mut later.tail()).await;
    assert_eq!(later.cursor().await.marks.len(), 2);
    let whole = Bench::new(world, Some(0));
    whole.request(1).await;
    settle(&mut whole.tail()).await;
    assert_eq!(whole.deposits(&request).await, [(10, Standing::Included)]);
}

#[tokio::test]
async fn ranges_adapt_to_the_provider_and_leave_no_gap() {
    let world = Script::at(0);
    let bench = Bench::new(world.clone(), Some(0));
    let mut requests = Vec::new();
    for number in 1..=20 {
        let request = bench.request(number).await;
        world.deposit(number.into(), paid(&request));
        world.mine(37);
        requests.push(request);
    }
    world.limit(Some(100));
    let mut tail = bench.tail();
    let mut refused = 0;
    loop {
        match tail.step(NOW).await.unwrap() {
            Step::Idle => break,
            Step::Again => refused += 1,
            Step::Moved { .. } => {}
            Step::Rewound { .. } => panic!("nothing was reorged"),
        }
    }
    assert!(refused > 3);
    let asked = world.scanned();
    let mut next = 1;
    for range in &asked {
        assert!(*range.start() <= next && range.end() - range.start() < 100);
        next = range.end() + 1;
    }
    assert_eq!(next, world.head_number() + 1);
    for request in &requests {
        assert_eq!(bench.deposits(request).await.len(), 1);
        assert_eq!(bench.facts(request).await.version, 1);
    }
    // Block by block as well.
    world.limit(Some(1));
    world.mine(3);
    settle(&mut bench.tail()).await;
    assert_eq!(bench.cursor().await.next, world.head_number() + 1);
    // No scanner may say of a single block that it is too large.
    world.limit(Some(0));
    world.mine(1);
    let mut tail = bench.tail();
    let stuck = async {
        for _ in 0..20 {
            if let Err(error) = tail.step(NOW).await {
                return error;
            }
        }
        panic!("a provider that takes no block at all was not told of");
    };
    assert!(matches!(stuck.await, IndexError::Read(_)));
}

#[tokio::test]
async fn where_blocks_are_asked_for_one_by_one_the_last_one_is_read_again() {
    let world = Script::at(300);
    let bench = Bench::new(world.clone(), None);
    let request = bench.request(1).await;
    world.limit(Some(1));
    let mut tail = bench.trusting();
    settle(&mut tail).await;
    // The provider knows a block before its logs.
    world.deafen(true);
    let number = world.deposit(1, paid(&request));
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&request).await, []);
    world.deafen(false);
    world.mine(1);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
    assert_eq!(bench.cursor().await.next, number + 2);
    assert!(
        world
            .scanned()
            .iter()
            .all(|range| range.start() == range.end())
    );
}

#[tokio::test]
async fn another_provider_is_asked_after_an_error() {
    let (world, down) = (Script::at(5), Script::at(5));
    down.fail(Some(ReadError::Unavailable("down".into())));
    let bench = Bench::new(world.clone(), Some(0));
    let request = bench.request(1).await;
    world.deposit(1, paid(&request));
    let mut tail = bench.tail_over(bench.rows.clone(), vec![down, world.clone(), world]);
    assert!(matches!(tail.step(NOW).await, Err(IndexError::Read(_))));
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&request).await, [(6, Standing::Included)]);
    let mut nobody = bench.tail_over(bench.rows.clone(), Vec::new());
    assert!(matches!(nobody.step(NOW).await, Err(IndexError::Read(_))));
}

#[tokio::test]
async fn a_provider_that_is_behind_undoes_nothing() {
    let (world, behind) = (Script::at(20), Script::at(5));
    let bench = Bench::new(world.clone(), Some(0));
    let request = bench.request(1).await;
    world.deposit(1, paid(&request));
    settle(&mut bench.tail()).await;
    let before = bench.cursor().await;
    let mut late = bench.tail_over(bench.rows.clone(), vec![behind]);
    assert_eq!(late.step(NOW).await, Ok(Step::Idle));
    assert_eq!(bench.cursor().await, before);
    assert_eq!(bench.deposits(&request).await, [(21, Standing::Included)]);
}

#[tokio::test]
async fn reorgs_of_every_depth_mark_what_they_took_and_find_it_again() {
    for depth in [1, 2, 3, 15, 16, 17, 33, 64] {
        let world = Script::at(10);
        let bench = Bench::new(world.clone(), Some(0));
        let mut tail = bench.tail();
        let deep = bench.request(1).await;
        world.deposit(1, paid(&deep));
        // Block by block, as when the head is followed.
        for _ in 0..70 {
            world.mine(1);
            settle(&mut tail).await;
        }
        let taken = bench.request(2).await;
        let moved = bench.request(3).await;
        world.mine(depth - 1);
        settle(&mut tail).await;
        world.reorg(usize::try_from(depth - 1).unwrap());
        // The oldest block of the reorg holds both deposits.
        let both = vec![
            fixtures::deposit(taken.order_id, 0),
            fixtures::deposit(moved.order_id, 1),
        ];
        let number = world.deposit(2, both);
        for _ in 1..depth {
            world.mine(1);
            settle(&mut tail).await;
        }
        settle(&mut tail).await;
        assert_eq!(bench.deposits(&taken).await, [(number, Standing::Included)]);

        world.reorg(usize::try_from(depth).unwrap());
        world.mine(depth);
        settle(&mut tail).await;
        for request in [&taken, &moved] {
            assert_eq!(
                bench.deposits(request).await,
                [(number, Standing::Reorged)],
                "depth {depth}"
            );
        }
        let again = world.deposit(
            2,
            vec![
                fixtures::deposit(taken.order_id, 0),
                fixtures::deposit(moved.order_id, 1),
            ],
        );
        settle(&mut tail).await;
        for request in [&taken, &moved] {
            assert_eq!(bench.deposits(request).await, [(again, Standing::Included)]);
        }
        assert_eq!(bench.deposits(&deep).await, [(11, Standing::Included)]);
    }
}

#[tokio::test]
async fn a_deposit_that_only_changes_its_block_is_never_undone() {
    let (world, bench, request) = eleven().await;
    let mut tail = bench.tail();
    settle(&mut tail).await;
    let deposits = || paid(&request);
    let first = world.deposit(1, deposits());
    settle(&mut tail).await;
    world.reorg(1);
    world.mine(1);
    let second = world.deposit(1, deposits());
    settle(&mut tail).await;
    assert_eq!((first, second), (11, 12));
    assert_eq!(bench.deposits(&request).await, [(12, Standing::Included)]);
    let facts = bench.facts(&request).await;
    assert_eq!(facts.version, 2);
    assert_eq!(facts.deposits[0].place.hash, world.block(12).hash);
}

#[tokio::test]
async fn final_deposits_are_doubted_by_a_provider_not_undone() {
    let (world, bench, request) = eleven().await;
    let mut tail = bench.tail();
    settle(&mut tail).await;
    let number = world.deposit(1, paid(&request));
    settle(&mut tail).await;
    let place = Inclusion::from(&world.block(number));
    let id = bench.facts(&request).await.deposits[0].onchain_id;
    bench
        .requests()
        .record(&request.id, NOW, Batch::new(), |facts| {
            apply::settled(facts, id, place.hash, &request::fixtures::agreed(&place));
        })
        .await
        .unwrap();
    world.reorg(1);
    world.mine(2);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
}

#[tokio::test]
async fn logs_that_come_late_are_found_and_logs_left_out_undo_nothing() {
    let (world, bench, request) = eleven().await;
    // The chain's blocks do not say what is in them.
    let mut tail = bench.trusting();
    settle(&mut tail).await;
    world.deafen(true);
    let number = world.deposit(1, paid(&request));
    settle(&mut tail).await;
    assert!(bench.deposits(&request).await.is_empty());
    world.deafen(false);
    world.mine(3);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
    world.deafen(true);
    world.mine(1);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
}

#[tokio::test]
async fn what_was_read_twice_opens_nothing_again() {
    let (world, bench, request) = eleven().await;
    let mut tail = bench.tail();
    world.deposit(1, paid(&request));
    settle(&mut tail).await;
    let done = Batch::new().delete(open::key(&request.id));
    bench.rows.commit(done).await.unwrap();
    for _ in 0..3 {
        world.mine(1);
        settle(&mut tail).await;
    }
    assert!(!bench.is_open(&request).await);
    // Another deposit for the order opens the request again.
    world.deposit(2, paid(&request));
    settle(&mut tail).await;
    assert!(bench.is_open(&request).await);
    assert_eq!(bench.deposits(&request).await.len(), 2);
}

#[tokio::test]
async fn deposits_of_nobody_are_remembered_and_disturb_nothing() {
    let world = Script::at(10);
    let bench = Bench::new(world.clone(), Some(0));
    world.deposit(1, vec![fixtures::deposit(B256::repeat_byte(9), 0)]);
    world.deposit(2, vec![fixtures::deposit(B256::ZERO, 0)]);
    let mut tail = bench.tail();
    settle(&mut tail).await;
    let rows = deposit_tx::range("origin", 0, 9);
    let rows = bench.rows.scan(rows).await.unwrap();
    let known = |(key, value): &(_, Vec<u8>)| {
        let row = deposit_tx::decode("origin", key, value).unwrap();
        (row.number, row.seen.request)
    };
    let rows: Vec<_> = rows.iter().map(known).collect();
    assert_eq!(rows, [(11, None), (12, None)]);
    world.reorg(1);
    world.mine(2);
    settle(&mut tail).await;
    let rows = bench.rows.scan(deposit_tx::range("origin", 0, 9)).await;
    assert_eq!(rows.unwrap().len(), 1);
}

#[tokio::test]
async fn a_chain_with_nothing_in_common_stops_the_tail() {
    let (world, other) = (Script::at(10), Script::at(19));
    other.fork(0, 1);
    let bench = Bench::new(world.clone(), Some(5));
    settle(&mut bench.tail()).await;
    let before = bench.cursor().await;
    let mut foreign = bench.tail_over(bench.rows.clone(), vec![other]);
    assert_eq!(foreign.step(NOW).await, Err(IndexError::Foreign(0)));
    assert_eq!(bench.cursor().await, before);
}

#[tokio::test]
async fn whatever_was_read_at_once_a_reorg_of_it_ends_at_a_mark() {
    for (head, index_from) in [(10, None), (10, Some(0)), (500, None), (5_000, Some(7))] {
        for depth in [1, 9, 64] {
            let world = Script::at(head);
            let bench = Bench::new(world.clone(), index_from);
            let mut tail = bench.tail();
            settle(&mut tail).await;
            let depth = depth.min(head);
            world.reorg(usize::try_from(depth).unwrap());
            world.mine(depth + 1);
            settle(&mut tail).await;
            assert_eq!(bench.cursor().await.next, head + 2);
        }
    }
}

#[tokio::test]
async fn marks_and_sightings_are_kept_as_far_as_a_rewind_reaches() {
    let (world, bench, request) = eleven().await;
    let mut tail = bench.tail();
    world.deposit(1, paid(&request));
    for _ in 0..MARKS + 20 {
        // Marks so far apart are all kept.
        world.mine(128);
        settle(&mut tail).await;
    }
    assert_eq!(bench.cursor().await.marks.len(), MARKS);
    let rows = bench.rows.scan(deposit_tx::range("origin", 0, 9)).await;
    assert!(rows.unwrap().is_empty());
    assert_eq!(bench.deposits(&request).await, [(11, Standing::Included)]);
}

/// Hundreds of blocks later, and after a stop of the process.
#[tokio::test]
async fn what_was_called_gone_is_read_again_however_many_blocks_came_since() {
    const LATER: u64 = NOW + 1_800_000;
    let (world, bench, request) = eleven().await;
    let mut tail = bench.tail();
    settle(&mut tail).await;
    let number = world.deposit(1, paid(&request));
    settle(&mut tail).await;
    world.mine(AGAIN + 1);
    settle(&mut tail).await;
    let mut cursor = bench.cursor().await;
    assert!(cursor.again.owe(number));
    cursor.again.next = LATER;
    let gone = |facts: &mut Facts| {
        let one = facts.deposits[0].clone();
        apply::gone(facts, one.onchain_id, one.place.hash);
    };
    let owed = Batch::new().put(cursor::key("origin"), cursor.encode().unwrap());
    let requests = bench.requests();
    let recorded = requests.record(&request.id, NOW, owed, gone);
    recorded.await.unwrap();
    for _ in 0..1_000 {
        world.mine(1);
        settle(&mut tail).await;
    }
    let deposits = bench.deposits(&request).await;
    assert_eq!(deposits, [(number, Standing::Reorged)]);
    let head = bench.cursor().await.next;
    drop(tail);
    let mut tail = bench.tail();
    assert_eq!(tail.step(LATER - 1).await, Ok(Step::Idle));
    let step = tail.step(LATER).await;
    assert!(matches!(step, Ok(Step::Rewound { to }) if to < number));
    settle(&mut tail).await;
    let deposits = bench.deposits(&request).await;
    assert_eq!(deposits, [(number, Standing::Included)]);
    let cursor = bench.cursor().await;
    assert_eq!((cursor.next, cursor.again.block), (head, None));
    assert!(cursor.again.next > LATER);
    // Of a block below all marks the operator is told, once; what is newer is read again.
    let mut lost = cursor.clone();
    lost.marks.drain(..lost.marks.len() - 2);
    let oldest = lost.marks[0].number;
    assert!(oldest < head - 1);
    lost.again.owe(5);
    let put = Batch::new().put(cursor::key("origin"), lost.encode().unwrap());
    bench.rows.commit(put).await.unwrap();
    let step = tail.step(2 * LATER).await;
    assert_eq!(step, Ok(Step::Rewound { to: oldest }));
    assert_eq!(bench.cursor().await.again.block, None);
    settle(&mut tail).await;
    // A block above the cursor is read anyway.
    let mut ahead = bench.cursor().await;
    ahead.again.owe(head + 3);
    let put = Batch::new().put(cursor::key("origin"), ahead.encode().unwrap());
    bench.rows.commit(put).await.unwrap();
    let step = tail.step(3 * LATER).await;
    assert_eq!(step, Ok(Step::Rewound { to: head - 1 }));
    assert_eq!(bench.cursor().await.next, head);
}

/// Plays a history with reorgs to tails, of which one has a store that fails at commit `kill`, before it is made or
/// after. Returns how many commits it took.
async fn history(bench: &Bench, requests: &[Request], kill: Option<(u64, bool)>) -> u64 {
    let world = &bench.world;
    let deposit = |request: usize, index| fixtures::deposit(requests[request].order_id, index);
    let mut counted = 0;
    let mut left = kill;
    for act in 0..6 {
        match act {
            0 => drop(world.deposit(1, vec![deposit(0, 0), deposit(1, 1)])),
            1 => drop(world.deposit(2, vec![deposit(2, 0)])),
            2 => {
                world.reorg(2);
                world.mine(1);
                world.deposit(1, vec![deposit(0, 0), deposit(1, 1)]);
            }
            3 => drop(world.deposit(3, vec![deposit(0, 3)])),
            4 => {
                world.reorg(1);
                world.mine(2);
            }
            _ => world.mine(3),
        }
        loop {
            let (commits, late) = left.unwrap_or((1_000, false));
            let store = Dying::after(bench.rows.clone(), commits, late);
            let mut tail = bench.tail_over(store.clone(), vec![world.clone()]);
            let mut alive = true;
            while alive {
                match tail.step(NOW).await {
                    Ok(Step::Idle) => break,
                    Ok(_) => {}
                    Err(IndexError::Requests(_)) => alive = false,
                    Err(error) => panic!("{error}"),
                }
            }
            let used = commits - store.left();
            counted += used;
            match alive {
                true => {
                    left = left.map(|(commits, late)| (commits - used, late));
                    break;
                }
                // The next tail's store does not fail.
                false => left = None,
            }
        }
    }
    counted
}

#[tokio::test]
async fn a_kill_at_any_commit_loses_and_repeats_nothing() {
    let play = async |kill| {
        let bench = Bench::new(Script::at(10), Some(0));
        let mut requests = Vec::new();
        for number in 1..=3 {
            requests.push(bench.request(number).await);
        }
        let commits = history(&bench, &requests, kill).await;
        let mut facts = Vec::new();
        for request in &requests {
            let mut all = bench.facts(request).await;
            all.deposits.sort_by_key(|one| one.onchain_id);
            // A stop between two commits may add versions.
            all.version = 0;
            facts.push(all);
            assert!(bench.is_open(request).await);
        }
        let rows = bench.rows.scan(deposit_tx::range("origin", 0, 99)).await;
        (facts, rows.unwrap(), bench.cursor().await.next, commits)
    };
    let (facts, rows, next, commits) = play(None).await;
    let standing: BTreeSet<_> = facts
        .iter()
        .flat_map(|facts| &facts.deposits)
        .map(|one| format!("{} {:?}", one.place.number, one.standing))
        .collect();
    assert_eq!(
        standing.into_iter().collect::<Vec<_>>(),
        ["12 Included", "12 Reorged", "13 Reorged"]
    );
    assert!(commits > 10, "{commits}");
    for kill in 0..commits {
        for late in [false, true] {
            let again = play(Some((kill, late))).await;
            assert_eq!(again.0, facts, "killed at {kill}, late {late}");
            assert_eq!((again.1, again.2), (rows.clone(), next));
        }
    }
}

#[tokio::test]
async fn it_runs_until_it_is_told_to_stop_and_looks_when_it_is_told_to() {
    let world = Script::at(10);
    let bench = Bench::new(world.clone(), None);
    let mut network = fixtures::market().by_name("origin").unwrap().clone();
    network.block_seconds = u64::MAX;
    let requests = bench.requests();
    let wakeup: Arc<Wakeup> = Arc::default();
    let tail = Tail::new(
        network,
        vec![world.clone()],
        requests.clone(),
        wakeup.clone(),
    );
    let shutdown = CancellationToken::new();
    let mut changes = requests.changes();
    let running = tokio::spawn(tail.run(|| NOW, shutdown.clone()));
    // The first step stores the cursor.
    while bench
        .rows
        .read(&cursor::key("origin"))
        .await
        .unwrap()
        .is_none()
    {
        tokio::task::yield_now().await;
    }
    let request = bench.request(1).await;
    world.deposit(1, paid(&request));
    wakeup.wake();
    changes.changed().await.unwrap();
    assert_eq!(bench.deposits(&request).await, [(11, Standing::Included)]);
    world.fail(Some(ReadError::Unavailable("down".into())));
    wakeup.wake();
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn network_has_one_tail_and_who_was_taken_for_dead_is_told() {
    let bench = Bench::new(Script::at(10), None);
    let (mut first, mut second) = (bench.tail(), bench.tail());
    first.step(NOW).await.unwrap();
    second.step(NOW).await.unwrap();
    let before = bench.cursor().await;
    assert_eq!(first.step(NOW).await, Err(IndexError::Fenced));
    assert_eq!(bench.cursor().await, before);
    let ended = first.run(|| NOW, CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
    assert!(ended.is_ok(), "it went on");
    assert!(second.step(NOW).await.is_ok());
}

/// A provider of the same chain, with faults that a test sets.
type Other = Script<Faults>;

struct Faults {
    /// Shows no deposits.
    deaf: AtomicBool,
    /// Shows the first deposit of a transaction only.
    partial: AtomicBool,
    /// Blocks that it is behind.
    behind: AtomicU64,
    /// Shows deposits of another amount.
    forging: AtomicBool,
    dead: AtomicBool,
    /// Blocks of its own above the head.
    ahead: AtomicU64,
    /// A block of which it shows another, without deposits.
    denies: AtomicU64,
    /// A block that it leaves out with its deposits, as if the chain skipped the height.
    skips: AtomicU64,
    scans: AtomicU64,
}

fn other(world: &Script) -> Arc<Other> {
    let faults = Faults {
        deaf: AtomicBool::default(),
        partial: AtomicBool::default(),
        behind: AtomicU64::default(),
        forging: AtomicBool::default(),
        dead: AtomicBool::default(),
        ahead: AtomicU64::default(),
        denies: AtomicU64::new(u64::MAX),
        skips: AtomicU64::new(u64::MAX),
        scans: AtomicU64::default(),
    };
    let answers = Answers {
        tip: Some(|own| said(faulty_tip(own))),
        block: Some(|own, number| said(faulty_block(own, *number))),
        deposits: Some(|own, heights| Box::pin(faulty_deposits(own, heights))),
        ..Answers::default()
    };
    world.answering(faults, answers)
}

/// A block that nobody else has.
fn foreign(world: &Other, number: u64) -> Block {
    let known = world.head_number().min(number - 1);
    Block {
        hash: B256::repeat_byte(0xee),
        parent: world.block(known).hash,
        ..vm::testing::block(number, 0)
    }
}

impl Faults {
    fn alive(&self) -> Result<(), ReadError> {
        match self.dead.load(Ordering::Relaxed) {
            true => Err(ReadError::Unavailable("down".into())),
            false => Ok(()),
        }
    }
}

fn faulty_tip(own: &Other) -> Result<Block, ReadError> {
    own.alive()?;
    let head = own.head_number();
    Ok(match own.ahead.load(Ordering::Relaxed) {
        0 => own.block(head - own.behind.load(Ordering::Relaxed)),
        ahead => foreign(own, head + ahead),
    })
}

fn faulty_block(own: &Other, number: u64) -> Result<Option<Block>, ReadError> {
    own.alive()?;
    let above = number > own.head_number();
    if number == own.denies.load(Ordering::Relaxed)
        || above && own.ahead.load(Ordering::Relaxed) > 0
    {
        return Ok(Some(foreign(own, number)));
    }
    let found = own.block(number);
    let skips = found.number == own.skips.load(Ordering::Relaxed);
    let found = match skips {
        true => own.block(found.number - 1),
        false => found,
    };
    Ok((!above).then_some(found))
}

async fn faulty_deposits(
    own: &Other,
    heights: RangeInclusive<u64>,
) -> Result<Vec<DepositTx>, ScanError> {
    own.alive()?;
    own.scans.fetch_add(1, Ordering::Relaxed);
    let mut found = own.plain().deposits(heights).await?;
    if own.deaf.load(Ordering::Relaxed) {
        found.clear();
    }
    if own.partial.load(Ordering::Relaxed) {
        for deposit_tx in &mut found {
            deposit_tx.deposits.truncate(1);
        }
    }
    found.retain(|one| one.number != own.denies.load(Ordering::Relaxed));
    found.retain(|one| one.number != own.skips.load(Ordering::Relaxed));
    if own.forging.load(Ordering::Relaxed) {
        for deposit in found.iter_mut().flat_map(|one| &mut one.deposits) {
            deposit.amount += vm::U256::from(1);
        }
    }
    Ok(found)
}

/// Three providers of one chain and the tail over them.
async fn three(from: Option<u64>) -> (Bench, Vec<Arc<Other>>, Tail) {
    let bench = Bench::new(Script::at(200), from);
    let others: Vec<_> = (0..3).map(|_| other(&bench.world)).collect();
    let scanners = others.iter().map(|one| one.clone() as Arc<dyn Scanner>);
    let tail = bench.tail_over(bench.rows.clone(), scanners.collect());
    (bench, others, tail)
}

#[tokio::test]
async fn a_provider_that_leaves_deposits_out_hides_none() {
    for (deaf, past) in [(0, false), (1, false), (2, false), (0, true), (1, true)] {
        let (bench, others, mut tail) = three(past.then_some(1)).await;
        if !past {
            settle(&mut tail).await;
        }
        others[deaf].deaf.store(true, Ordering::Relaxed);
        let request = bench.request(1).await;
        let number = bench.world.deposit(1, paid(&request));
        bench.world.mine(DEEP + AGAIN + 1);
        settle(&mut tail).await;
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Included)],
            "{deaf} {past}"
        );
        assert_eq!(bench.cursor().await.next, bench.world.head_number() + 1);
    }
}

#[tokio::test]
async fn one_provider_alone_records_and_does_not_pass() {
    let (bench, others, mut tail) = three(None).await;
    settle(&mut tail).await;
    let before = bench.cursor().await;
    let request = bench.request(1).await;
    let number = bench.world.deposit(1, paid(&request));
    for other in &others[1..] {
        other.dead.store(true, Ordering::Relaxed);
    }
    let unconfirmed = tail.step(NOW).await;
    assert!(
        matches!(unconfirmed, Err(IndexError::Unconfirmed(_))),
        "{unconfirmed:?}"
    );
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
    assert_eq!(bench.cursor().await, before);
    // One of the others is enough, whichever of them is asked first.
    others[2].dead.store(false, Ordering::Relaxed);
    for _ in 0..4 {
        let _error = tail.step(NOW).await;
    }
    assert_eq!(bench.cursor().await.next, number + 1);
    // Where the operator says so, one is enough.
    let mut alone = bench
        .tail_over(
            bench.rows.clone(),
            vec![others[0].clone(), others[1].clone()],
        )
        .alone(true);
    bench.world.mine(1);
    assert!(matches!(alone.step(NOW).await, Ok(Step::Moved { .. })));
}

#[tokio::test]
async fn the_cursor_waits_for_a_second_provider_that_is_behind() {
    let (bench, others, mut tail) = three(None).await;
    settle(&mut tail).await;
    let head = bench.world.head_number();
    for other in &others[1..] {
        other.behind.store(3, Ordering::Relaxed);
    }
    bench.world.mine(5);
    assert_eq!(
        tail.step(NOW).await,
        Ok(Step::Moved {
            to: head + 2,
            head: head + 5
        })
    );
    assert_eq!(tail.step(NOW).await, Ok(Step::Idle));
    assert_eq!(bench.cursor().await.next, head + 3);
    others[1].behind.store(0, Ordering::Relaxed);
    settle(&mut tail).await;
    assert_eq!(bench.cursor().await.next, head + 6);
}

#[tokio::test]
async fn a_forged_deposit_moves_no_cursor_and_the_others_go_on() {
    for forging in 0..3 {
        let (bench, others, mut tail) = three(None).await;
        settle(&mut tail).await;
        others[forging].forging.store(true, Ordering::Relaxed);
        let request = bench.request(1).await;
        let number = bench.world.deposit(1, paid(&request));
        for _ in 0..6 {
            let _contradiction = tail.step(NOW).await;
        }
        assert_eq!(bench.cursor().await.next, number + 1, "{forging}");
        let facts = bench.facts(&request).await;
        assert_eq!(facts.deposits.len(), 1, "{forging}");
        assert_eq!(facts.deposits[0].amount, vm::U256::from(100_000_000));
    }
}

#[tokio::test]
async fn a_head_that_stands_still_is_not_the_last_word() {
    let (bench, others, mut tail) = three(None).await;
    settle(&mut tail).await;
    bench.world.mine(5);
    others[0].behind.store(5, Ordering::Relaxed);
    for _ in 0..second::QUIET + 3 {
        let _waits = tail.step(NOW).await;
    }
    settle(&mut tail).await;
    assert_eq!(bench.cursor().await.next, bench.world.head_number() + 1);
}

#[tokio::test]
async fn a_reorg_below_all_marks_is_told_and_taken_back_by_the_operator() {
    let bench = Bench::new(Script::at(300), None);
    let tail_states = Arc::<TailStates>::default();
    let mut tail = bench.tail().with_states(tail_states.clone());
    settle(&mut tail).await;
    let request = bench.request(1).await;
    bench.world.reorg(250);
    bench.world.deposit(1, paid(&request));
    bench.world.mine(300);
    for errors in 1..=4 {
        let stepped = tail.step(NOW).await;
        assert!(
            matches!(stepped, Err(IndexError::Foreign(_))),
            "{stepped:?}"
        );
        tail.troubled(errors, &stepped);
    }
    let why = tail_states.trouble("origin").unwrap();
    assert!(why.contains("intentd index rewind"), "{why}");
    let wakeups = [("origin".to_owned(), Arc::default())].into();
    let handle = AdminHandle::new(bench.requests(), wakeups, tail_states.clone());
    let shown = handle.standings().await.unwrap();
    assert_eq!(shown[0].trouble.as_ref(), Some(&why));
    handle.rewind("origin", 40).await.unwrap();
    settle(&mut tail).await;
    tail.troubled(0, &Ok(Step::Idle));
    assert_eq!(tail_states.trouble("origin"), None);
    assert_eq!(bench.deposits(&request).await.len(), 1);
    assert_eq!(bench.cursor().await.next, bench.world.head_number() + 1);
}

#[tokio::test(start_paused = true)]
async fn a_tail_that_does_not_come_further_says_so() {
    let bench = Bench::new(Script::at(300), None);
    let tail_states = Arc::<TailStates>::default();
    let mut tail = bench.tail().with_states(tail_states.clone());
    settle(&mut tail).await;
    bench.world.reorg(250);
    bench.world.mine(300);
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(tail.run(|| NOW, shutdown.clone()));
    let reported = async {
        while tail_states.trouble("origin").is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let reported = tokio::time::timeout(Duration::from_secs(600), reported).await;
    assert!(reported.is_ok(), "nobody is told");
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn where_there_is_one_provider_its_own_blocks_bear_it_out() {
    for past in [false, true] {
        let bench = Bench::new(Script::at(200), past.then_some(1));
        let mut tail = bench.tail();
        if !past {
            settle(&mut tail).await;
        }
        let request = bench.request(1).await;
        let number = bench.world.deposit(1, paid(&request));
        bench.world.mine(DEEP + AGAIN + 1);
        bench.world.deafen(true);
        settle(&mut tail).await;
        let deposits = bench.deposits(&request).await;
        assert_eq!(deposits, [(number, Standing::Included)], "{past}");
        // Where it shows something else than its blocks, the cursor does not move.
        let before = bench.cursor().await;
        bench.world.forge(true);
        bench.world.mine(1);
        let stepped = tail.step(NOW).await;
        assert!(
            matches!(stepped, Err(IndexError::Unconfirmed(_))),
            "{stepped:?}"
        );
        assert_eq!(bench.cursor().await, before);
    }
}

/// A provider that shows the first deposit only of a transaction with several, without the log that names its order,
/// so that the deposit reads as `misread`'s.
fn partly(world: &Script, misread: B256) -> Arc<Script<B256>> {
    async fn deposits(
        own: &Script<B256>,
        heights: RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        let mut found = own.plain().deposits(heights).await?;
        for deposit_tx in found.iter_mut().filter(|one| one.deposits.len() > 1) {
            deposit_tx.deposits.truncate(1);
            deposit_tx.deposits[0].id = B256::to_string(own).into();
        }
        Ok(found)
    }
    let answers = Answers {
        deposits: Some(|own, heights| Box::pin(deposits(own, heights))),
        ..Answers::default()
    };
    world.answering(misread, answers)
}

/// Four requests, and the block of a transaction with deposits for the second and the third, which [`partly`] shows in
/// part and as the first's. The fourth's deposit is in the next block, in a transaction of its own.
async fn in_part(bench: &Bench) -> ([Request; 4], u64) {
    let requests = [
        bench.request(1).await,
        bench.request(2).await,
        bench.request(3).await,
        bench.request(4).await,
    ];
    let [_, first, second, alone] = requests.each_ref().map(|one| one.order_id);
    let both = vec![fixtures::deposit(first, 0), fixtures::deposit(second, 1)];
    let number = bench.world.deposit(1, both);
    bench.world.deposit(2, vec![fixtures::deposit(alone, 0)]);
    (requests, number)
}

#[tokio::test]
async fn a_transaction_that_the_only_provider_shows_in_part_is_what_its_block_has() {
    let bench = Bench::new(Script::at(200), None);
    settle(&mut bench.tail()).await;
    let ([misread, first, second, alone], number) = in_part(&bench).await;
    let partly = partly(&bench.world, misread.order_id);
    settle(&mut bench.tail_over(bench.rows.clone(), vec![partly])).await;
    // The part that is shown is not recorded, not even besides the whole.
    assert_eq!(bench.deposits(&misread).await, []);
    assert!(!bench.is_open(&misread).await);
    for request in [&first, &second] {
        assert_eq!(
            bench.deposits(request).await,
            [(number, Standing::Included)]
        );
        assert_eq!(bench.facts(request).await.version, 1);
    }
    // A transaction that is shown whole is recorded as always.
    assert_eq!(
        bench.deposits(&alone).await,
        [(number + 1, Standing::Included)]
    );
    assert_eq!(bench.cursor().await.next, number + 2);
}

#[tokio::test]
async fn a_transaction_that_one_of_three_shows_in_part_hides_no_deposit() {
    for at in 0..3 {
        let (bench, others, mut tail) = three(None).await;
        settle(&mut tail).await;
        others[at].partial.store(true, Ordering::Relaxed);
        let (requests, number) = in_part(&bench).await;
        bench.world.mine(AGAIN + 1);
        settle(&mut tail).await;
        for request in &requests[1..3] {
            let deposits = bench.deposits(request).await;
            assert_eq!(deposits, [(number, Standing::Included)], "{at}");
        }
        let deposits = bench.deposits(&requests[3]).await;
        assert_eq!(deposits, [(number + 1, Standing::Included)], "{at}");
        assert_eq!(bench.cursor().await.next, bench.world.head_number() + 1);
    }
}

#[tokio::test]
async fn a_chain_whose_blocks_say_nothing_is_followed_at_its_providers_word() {
    let bench = Bench::new(Script::at(200), None);
    let mut tail = bench.trusting();
    settle(&mut tail).await;
    bench.world.forge(true);
    bench.world.mine(3);
    settle(&mut tail).await;
    assert_eq!(bench.cursor().await.next, bench.world.head_number() + 1);
}

/// A store that forgets a quote just before its deposit is recorded.
struct Sweeping {
    rows: Arc<MemoryStore>,
    request: Request,
}

#[async_trait::async_trait]
impl Store for Sweeping {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        self.rows.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        if *key == facts::key(&self.request.id) {
            let gone = Batch::new()
                .delete(quote::key(&self.request.id))
                .delete(order::key(&self.request.order_id));
            self.rows.commit(gone).await?;
        }
        self.rows.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.rows.scan(range).await
    }

    async fn close(&self) {
        self.rows.close().await;
    }
}

#[tokio::test]
async fn a_deposit_for_a_quote_that_is_just_forgotten_is_nobodys_and_the_tail_goes_on() {
    let bench = Bench::new(Script::at(50), None);
    settle(&mut bench.tail()).await;
    let request = bench.request(1).await;
    let store = Sweeping {
        rows: bench.rows.clone(),
        request: request.clone(),
    };
    let deposits = paid(&request);
    let number = bench.world.deposit(1, deposits);
    let mut tail = bench.tail_over(Arc::new(store), vec![bench.world.clone()]);
    settle(&mut tail).await;
    assert_eq!(bench.cursor().await.next, number + 1);
    assert!(!bench.is_open(&request).await);
    assert_eq!(bench.facts(&request).await, Facts::default());
    let rows = bench
        .rows
        .scan(deposit_tx::range("origin", number, 9))
        .await;
    let rows = rows.unwrap();
    let row = deposit_tx::decode("origin", &rows[0].0, &rows[0].1).unwrap();
    assert_eq!((rows.len(), row.seen.request), (1, None));
}

#[tokio::test]
async fn one_provider_of_three_makes_no_deposit_unseen() {
    let (bench, others, mut tail) = three(None).await;
    settle(&mut tail).await;
    let request = bench.request(1).await;
    let number = bench.world.deposit(1, paid(&request));
    bench.world.mine(1);
    settle(&mut tail).await;
    let included = [(number, Standing::Included)];
    assert_eq!(bench.deposits(&request).await, included);
    // The first provider is a block ahead of the others, and shows another block in place of the deposit's.
    others[0].denies.store(number, Ordering::Relaxed);
    others[0].ahead.store(1, Ordering::Relaxed);
    tail.step(NOW).await.unwrap();
    assert_eq!(bench.deposits(&request).await, included, "on one's word");
    // A head far above does not keep what is below the cursor from being read again.
    others[0].ahead.store(1_000, Ordering::Relaxed);
    bench.world.mine(1);
    let next = bench.cursor().await.next;
    tail.step(NOW).await.unwrap_err();
    let asked = bench.world.scanned();
    assert!(
        asked
            .iter()
            .rev()
            .take(2)
            .all(|range| *range.start() <= next - AGAIN)
    );
    for _ in 0..20 {
        bench.world.mine(1);
        let _contradiction = tail.step(NOW).await;
        assert_eq!(bench.deposits(&request).await, included);
    }
    others[0].denies.store(u64::MAX, Ordering::Relaxed);
    others[0].ahead.store(0, Ordering::Relaxed);
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&request).await, included);
}

#[tokio::test]
async fn a_block_is_gone_when_the_second_provider_says_so_too() {
    let (bench, others, mut tail) = three(None).await;
    settle(&mut tail).await;
    let request = bench.request(1).await;
    let number = bench.world.deposit(1, paid(&request));
    settle(&mut tail).await;
    // The second shows no deposits, so that nothing contradicts the first.
    others[0].denies.store(number, Ordering::Relaxed);
    others[1].deaf.store(true, Ordering::Relaxed);
    bench.world.mine(2);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
    for other in &others {
        other.denies.store(u64::MAX, Ordering::Relaxed);
    }
    bench.world.reorg(3);
    bench.world.mine(5);
    settle(&mut tail).await;
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Reorged)]
    );
}
