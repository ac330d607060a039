//! Chains that skip heights, and providers that say so falsely.

use super::*;

/// The newest block below the skipped heights.
const LAST: u64 = 200;
/// The first block above them.
const FIRST: u64 = 251;
/// The highest block that is read as the past: the first range ends there, at a skipped height. What is read again
/// below the cursor does not reach down to [`LAST`].
const SETTLED: u64 = 240;
const HEAD: u64 = SETTLED + DEEP;
/// The first height that is read.
const FROM: u64 = 150;

/// A chain that skips the heights between [`LAST`] and [`FIRST`], and two requests with a deposit in each of these
/// blocks.
async fn gap() -> (Bench, [Request; 2]) {
    let world = Script::at(LAST - 1);
    let bench = Bench::new(world.clone(), Some(FROM));
    let requests = [bench.request(1).await, bench.request(2).await];
    let last = world.deposit(1, paid(&requests[0]));
    world.skip(FIRST - LAST - 1);
    let first = world.deposit(2, paid(&requests[1]));
    world.mine(HEAD - FIRST);
    assert_eq!((last, first, world.head_number()), (LAST, FIRST, HEAD));
    (bench, requests)
}

impl Bench {
    /// Follows the chain through so many providers that show it alike.
    fn tail_through(&self, providers: usize) -> Tail {
        let scanners = (0..providers).map(|_| self.world.clone() as Arc<dyn Scanner>);
        self.tail_over(self.rows.clone(), scanners.collect())
    }

    async fn put(&self, cursor: &Cursor) {
        let put = Batch::new().put(cursor::key("origin"), cursor.encode().unwrap());
        self.rows.commit(put).await.unwrap();
    }

    /// The mark of `height` on the chain as it is.
    fn mark(&self, height: u64) -> Mark {
        mark(height, &self.world.block(height))
    }

    /// Everything is read, in rising heights.
    async fn is_at_the_head(&self) {
        let cursor = self.cursor().await;
        let head = self.world.head_number();
        assert_eq!(cursor.next, head + 1);
        assert_eq!(cursor.marks.last(), Some(&self.mark(head)));
        assert!(cursor.marks.is_sorted_by(|a, b| a.number < b.number));
    }
}

/// Reads the past, up to the skipped height at [`SETTLED`].
async fn settled(tail: &mut Tail) {
    assert_eq!(tail.step(NOW).await, Ok(Step::Again));
    let (to, head) = (SETTLED, HEAD);
    assert_eq!(tail.step(NOW).await, Ok(Step::Moved { to, head }));
}

#[tokio::test]
async fn a_range_that_ends_at_a_skipped_height_is_passed_as_a_whole() {
    for providers in [1, 3] {
        let (bench, [before, after]) = gap().await;
        let mut tail = bench.tail_through(providers);
        settled(&mut tail).await;
        let cursor = bench.cursor().await;
        assert_eq!(cursor.next, SETTLED + 1);
        let hash = bench.world.block(LAST).hash;
        let number = SETTLED;
        assert_eq!(cursor.marks.last(), Some(&Mark { number, hash }));
        let included = |number| [(number, Standing::Included)];
        assert_eq!(bench.deposits(&before).await, included(LAST));
        assert_eq!(bench.deposits(&after).await, []);
        // The head's range begins at a skipped height.
        settle(&mut tail).await;
        assert_eq!(bench.deposits(&before).await, included(LAST));
        assert_eq!(bench.deposits(&after).await, included(FIRST));
        bench.is_at_the_head().await;
    }
}

#[tokio::test]
async fn ranges_of_skipped_heights_only_are_passed_once() {
    for providers in [1, 2] {
        let world = Script::at(LAST);
        let bench = Bench::new(world.clone(), Some(FROM));
        let request = bench.request(1).await;
        world.skip(1_000);
        let number = world.deposit(1, paid(&request));
        world.mine(DEEP + 10);
        world.limit(Some(100));
        let mut tail = bench.tail_through(providers);
        let mut passed = Vec::new();
        for _ in 0..200 {
            match tail.step(NOW).await.unwrap() {
                Step::Idle => break,
                Step::Moved { to, .. } => passed.push(to),
                Step::Again => {}
                Step::Rewound { .. } => panic!("nothing was reorged"),
            }
        }
        assert!(passed.is_sorted_by(|a, b| a < b), "{passed:?}");
        let skipped = passed.iter().filter(|to| (LAST + 1..number).contains(*to));
        assert!(skipped.count() > 5, "{passed:?}");
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Included)]
        );
        bench.is_at_the_head().await;
    }
}

/// The past may begin at a skipped height, and so may what the operator has read again.
#[tokio::test]
async fn the_index_begins_at_a_skipped_height() {
    let (mut bench, [before, after]) = gap().await;
    bench.index_from = Some(LAST + 20);
    let mut tail = bench.tail();
    tail.step(NOW).await.unwrap();
    let first = bench.cursor().await;
    assert_eq!(first.next, LAST + 20);
    assert_eq!(first.marks, [bench.mark(LAST + 19)]);
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&before).await, []);
    assert_eq!(bench.deposits(&after).await, [(FIRST, Standing::Included)]);
    bench.is_at_the_head().await;
    let wakeups = [("origin".to_owned(), Arc::default())].into();
    let handle = AdminHandle::new(bench.requests(), wakeups, Arc::default());
    handle.rewind("origin", LAST + 30).await.unwrap();
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&after).await, [(FIRST, Standing::Included)]);
    bench.is_at_the_head().await;
}

#[tokio::test]
async fn a_head_right_above_a_skipped_height_is_a_reorg_only_with_another_parent() {
    for filled in [false, true] {
        let world = Script::at(LAST);
        let bench = Bench::new(world.clone(), None);
        world.skip(FIRST - LAST - 1);
        world.mine(1);
        let marks = vec![bench.mark(LAST - 50), bench.mark(FIRST - 1)];
        let again = Again::default();
        let next = FIRST;
        bench.put(&Cursor { next, marks, again }).await;
        let request = bench.request(1).await;
        world.reorg(1);
        let (number, step) = match filled {
            // Far enough below the cursor, where nothing is read again without a reorg.
            true => {
                world.skip(5);
                let number = world.deposit(1, paid(&request));
                world.skip(FIRST - number - 1);
                world.mine(1);
                (number, Step::Rewound { to: LAST - 50 })
            }
            false => {
                world.skip(FIRST - LAST - 1);
                let number = world.deposit(1, paid(&request));
                let (to, head) = (FIRST, FIRST);
                (number, Step::Moved { to, head })
            }
        };
        assert_eq!(world.head_number(), FIRST);
        assert!(!filled || number < FIRST - AGAIN);
        let mut tail = bench.tail();
        assert_eq!(tail.step(NOW).await, Ok(step), "{filled}");
        settle(&mut tail).await;
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Included)]
        );
        bench.is_at_the_head().await;
    }
}

#[tokio::test]
async fn a_rewind_ends_at_a_skipped_height_and_what_stood_above_is_gone() {
    for providers in [1, 3] {
        let (bench, [before, after]) = gap().await;
        let mut tail = bench.tail_through(providers);
        settled(&mut tail).await;
        settle(&mut tail).await;
        // What a quorum calls gone is read again from the highest mark below it.
        let mut owed = bench.cursor().await;
        owed.again.owe(FIRST);
        bench.put(&owed).await;
        let back = Step::Rewound { to: SETTLED };
        assert_eq!(tail.step(NOW).await, Ok(back));
        settle(&mut tail).await;
        let included = |number| [(number, Standing::Included)];
        assert_eq!(bench.deposits(&after).await, included(FIRST));
        // The chain skips the deposit's height now.
        bench
            .world
            .reorg(usize::try_from(HEAD - FIRST + 1).unwrap());
        bench.world.skip(FIRST - LAST);
        bench.world.mine(HEAD - FIRST + 1);
        assert_eq!(tail.step(NOW).await, Ok(back));
        settle(&mut tail).await;
        assert_eq!(bench.deposits(&before).await, included(LAST));
        assert_eq!(bench.facts(&before).await.version, 1);
        assert_eq!(bench.deposits(&after).await, [(FIRST, Standing::Reorged)]);
        bench.is_at_the_head().await;
    }
}

/// Takes the blocks above the skipped heights away, and has a deposit in a block among these: its number.
fn fill(world: &Script, request: &Request) -> u64 {
    world.reorg(usize::try_from(HEAD - FIRST + 1).unwrap());
    world.skip(9);
    let number = world.deposit(7, paid(request));
    world.skip(FIRST - number - 1);
    world.mine(HEAD - FIRST + 3);
    // Nothing of it is read again without a reorg.
    assert!(number < SETTLED - AGAIN);
    number
}

#[tokio::test]
async fn a_block_that_comes_into_a_skipped_height_is_found_and_lost_with_it() {
    for (providers, late) in [(1, false), (3, false), (1, true), (3, true)] {
        let (bench, [before, after]) = gap().await;
        let mut tail = bench.tail_through(providers);
        settled(&mut tail).await;
        if late {
            settle(&mut tail).await;
        }
        let request = bench.request(3).await;
        let number = fill(&bench.world, &request);
        // The mark at the skipped height is not the chain's any more, although its block is.
        let back = Step::Rewound { to: FROM - 1 };
        assert_eq!(tail.step(NOW).await, Ok(back), "{providers} {late}");
        settle(&mut tail).await;
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Included)]
        );
        assert_eq!(bench.deposits(&before).await, [(LAST, Standing::Included)]);
        let gone = [(FIRST, Standing::Reorged)];
        assert_eq!(bench.deposits(&after).await, gone[..usize::from(late)]);
        bench.is_at_the_head().await;
        // The height is skipped again, and the past's last range ends above it at a height that is skipped, too.
        let above = HEAD - FIRST + 3;
        bench.world.reorg(usize::try_from(1 + above).unwrap());
        bench.world.skip(FIRST - LAST - 1);
        bench.world.mine(above + 1);
        assert_eq!(tail.step(NOW).await, Ok(back), "{providers} {late}");
        settle(&mut tail).await;
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Reorged)]
        );
        assert_eq!(bench.deposits(&before).await, [(LAST, Standing::Included)]);
        bench.is_at_the_head().await;
    }
}

/// In a deposit's block the first range ends; one provider answers with the block before, as for a skipped height.
#[tokio::test]
async fn the_cursor_passes_no_block_that_one_of_two_leaves_out() {
    for first in [false, true] {
        let bench = Bench::new(Script::at(LAST), Some(FROM));
        let request = bench.request(1).await;
        let number = bench.world.deposit(1, paid(&request));
        bench.world.mine(DEEP);
        let (liar, honest) = (other(&bench.world), other(&bench.world));
        liar.skips.store(number, Ordering::Relaxed);
        let mut scanners: Vec<Arc<dyn Scanner>> = vec![honest.clone(), liar.clone()];
        if first {
            scanners.reverse();
        }
        let mut tail = bench.tail_over(bench.rows.clone(), scanners.clone());
        tail.step(NOW).await.unwrap();
        for _ in 0..4 {
            let stepped = tail.step(NOW).await;
            assert!(
                matches!(stepped, Err(IndexError::Unconfirmed(_))),
                "{first}: {stepped:?}"
            );
        }
        assert_eq!(bench.cursor().await.next, FROM);
        assert_eq!(bench.deposits(&request).await, []);
        // A third one that has it is enough.
        scanners.push(honest);
        let mut three = bench.tail_over(bench.rows.clone(), scanners.clone());
        for _ in 0..4 {
            let _contradiction = three.step(NOW).await;
        }
        assert_eq!(
            bench.deposits(&request).await,
            [(number, Standing::Included)]
        );
        // So is its own word, once it has the block.
        liar.skips.store(u64::MAX, Ordering::Relaxed);
        scanners.pop();
        settle(&mut bench.tail_over(bench.rows.clone(), scanners)).await;
        bench.is_at_the_head().await;
    }
}

#[tokio::test]
async fn a_block_that_one_of_two_leaves_out_within_a_range_hides_no_deposit() {
    for first in [false, true] {
        let (bench, [before, after]) = gap().await;
        let (liar, honest) = (other(&bench.world), other(&bench.world));
        liar.skips.store(FIRST, Ordering::Relaxed);
        let mut scanners: Vec<Arc<dyn Scanner>> = vec![honest, liar];
        if first {
            scanners.reverse();
        }
        let mut tail = bench.tail_over(bench.rows.clone(), scanners);
        for _ in 0..8 {
            let _contradiction = tail.step(NOW).await;
        }
        assert_eq!(bench.deposits(&before).await, [(LAST, Standing::Included)]);
        assert_eq!(bench.deposits(&after).await, [(FIRST, Standing::Included)]);
        bench.is_at_the_head().await;
    }
}

/// A provider of the chain with these answers.
fn twisted(world: &Script, answers: Answers<()>) -> Arc<dyn Scanner> {
    world.answering((), answers)
}

/// Answers with the block above a height.
fn above() -> Answers<()> {
    Answers {
        block: Some(|own, height| {
            let there = *height < own.head_number();
            said(Ok(there.then(|| own.block(*height + 1))))
        }),
        ..Answers::default()
    }
}

/// Shows deposits one height above their block.
fn misplaced() -> Answers<()> {
    Answers {
        deposits: Some(|own, heights| {
            Box::pin(async move {
                let mut found = own.plain().deposits(heights).await?;
                found.iter_mut().for_each(|one| one.number += 1);
                Ok(found)
            })
        }),
        ..Answers::default()
    }
}

/// The first reading of a range ends with a reorg, which fills skipped heights for this request.
fn filling(world: &Script, request: Request) -> Arc<dyn Scanner> {
    let answers = Answers {
        deposits: Some(|own: &Script<(Request, AtomicBool)>, heights| {
            Box::pin(async move {
                let found = own.plain().deposits(heights).await?;
                if !own.1.swap(true, Ordering::Relaxed) {
                    fill(&own.plain(), &own.0);
                }
                Ok(found)
            })
        }),
        ..Answers::default()
    };
    world.answering((request, AtomicBool::default()), answers)
}

#[tokio::test]
async fn a_range_is_read_again_when_a_skipped_height_is_filled_meanwhile() {
    let (bench, [before, after]) = gap().await;
    let request = bench.request(3).await;
    let filling = filling(&bench.world, request.clone());
    let mut tail = bench.tail_over(bench.rows.clone(), vec![filling]);
    tail.step(NOW).await.unwrap();
    assert_eq!(tail.step(NOW).await, Ok(Step::Again));
    assert_eq!(bench.cursor().await.next, FROM);
    assert_eq!(bench.deposits(&before).await, []);
    settle(&mut tail).await;
    assert_eq!(bench.deposits(&before).await, [(LAST, Standing::Included)]);
    assert_eq!(
        bench.deposits(&request).await,
        [(LAST + 10, Standing::Included)]
    );
    assert_eq!(bench.deposits(&after).await, []);
    bench.is_at_the_head().await;
}

#[tokio::test]
async fn a_block_above_the_height_is_not_the_one_that_stands_there() {
    let bench = Bench::new(Script::at(LAST + DEEP), Some(FROM));
    let above = twisted(&bench.world, above());
    let mut alone = bench.tail_over(bench.rows.clone(), vec![above.clone()]);
    let doubted = alone.step(NOW).await;
    assert!(
        matches!(doubted, Err(IndexError::Read(ReadError::Doubtful(_)))),
        "{doubted:?}"
    );
    let scanners = vec![bench.world.clone() as Arc<dyn Scanner>, above];
    let mut second = bench.tail_over(bench.rows.clone(), scanners);
    second.step(NOW).await.unwrap();
    let unconfirmed = second.step(NOW).await;
    assert!(
        matches!(unconfirmed, Err(IndexError::Unconfirmed(_))),
        "{unconfirmed:?}"
    );
    assert_eq!(bench.cursor().await.next, FROM);
}

/// The block that stands at a skipped height has the deposit's hash, and another number.
#[tokio::test]
async fn a_deposit_at_a_skipped_height_is_not_recorded() {
    let (bench, [before, _]) = gap().await;
    let twisted = twisted(&bench.world, misplaced());
    let mut alone = bench.trusting();
    alone.scanners = vec![twisted.clone()];
    alone.step(NOW).await.unwrap();
    let doubted = alone.step(NOW).await;
    assert!(
        matches!(doubted, Err(IndexError::Read(ReadError::Doubtful(_)))),
        "{doubted:?}"
    );
    let deaf = other(&bench.world);
    deaf.deaf.store(true, Ordering::Relaxed);
    let mut second = bench.tail_over(bench.rows.clone(), vec![deaf, twisted]);
    let unconfirmed = second.step(NOW).await;
    assert!(
        matches!(unconfirmed, Err(IndexError::Unconfirmed(_))),
        "{unconfirmed:?}"
    );
    assert_eq!(bench.cursor().await.next, FROM);
    assert_eq!(bench.deposits(&before).await, []);
    settle(&mut bench.tail()).await;
    assert_eq!(bench.deposits(&before).await, [(LAST, Standing::Included)]);
}
