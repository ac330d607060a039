//! Providers that lie about heads, and providers that are only slow or behind (guide: protocol 12.1).

use std::sync::Mutex;

use super::*;

/// A provider whose heads are its own, above the answers of a script.
type Odd = Script<Own>;

#[derive(Default)]
struct Own(Mutex<Says>);

#[derive(Clone, Default)]
struct Says {
    /// This head instead of the script's.
    head: Option<Block>,
    /// How late its heads come.
    delay: Duration,
    /// Its answer about any block, instead of the script's.
    knows: Option<bool>,
    silent: bool,
}

impl Own {
    fn says(&self) -> Says {
        self.0.lock().unwrap().clone()
    }

    fn say(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.0.lock().unwrap());
    }
}

/// The head of an odd provider is block `number` until it says otherwise.
fn odd_at(number: u64, says: Says) -> Arc<Odd> {
    let answers = Answers {
        head: Some(|own: &Odd| {
            Box::pin(async move {
                let says = own.says();
                tokio::time::sleep(says.delay).await;
                let mut head = own.plain().head().await?;
                head.block = says.head.unwrap_or(head.block);
                Ok(head)
            })
        }),
        contains: Some(|own, block| {
            Box::pin(async move {
                let says = own.says();
                if says.silent {
                    std::future::pending::<()>().await;
                }
                match says.knows {
                    Some(knows) => Ok(knows),
                    None => own.plain().contains(block).await,
                }
            })
        }),
        ..Answers::default()
    };
    Script::at(number).answering(Own(Mutex::new(says)), answers)
}

/// An odd provider before honest ones at block 100; `required` of them must agree.
fn odd(honest: usize, required: usize) -> (Arc<Odd>, Vec<Arc<Script>>, Quorum) {
    let odd = odd_at(100, Says::default());
    let scripts: Vec<_> = (0..honest).map(|_| Script::at(100)).collect();
    for script in scripts.iter().chain([&odd.plain()]) {
        script.put(&tx(), super::honest());
    }
    let mut providers = vec![Provider {
        state: None,
        keys: None,
        ..odd.provider("odd")
    }];
    providers.extend(scripts.iter().map(|script| script.provider("node")));
    let quorum = Quorum::new(&ChainId::new("ethereum"), providers, required).unwrap();
    (odd, scripts, quorum)
}

/// Reads the head once a second and lets background tasks finish; returns the longest time of a read.
async fn watch(quorum: &Quorum, seconds: u64) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..seconds {
        let started = Instant::now();
        let head = quorum.head().await.unwrap();
        assert!(head.block == testing::block(head.block.number, 0));
        assert!((98..=102).contains(&head.block.number), "{head:?}");
        slowest = slowest.max(started.elapsed());
        settle().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        settle().await;
    }
    slowest
}

fn nobody_else(quorum: &Quorum) {
    assert!(disputes(quorum)[1..].iter().all(|disputes| *disputes == 0));
}

/// A liar's answers when it is asked to confirm a block.
#[derive(Clone, Copy)]
enum Knows {
    All,
    None,
    Own,
    /// Does not answer.
    Never,
}

fn lie(head: Block, knows: Knows, delay: u64) -> Says {
    Says {
        head: Some(head),
        delay: Duration::from_millis(delay),
        knows: match knows {
            Knows::All => Some(true),
            Knows::None => Some(false),
            _ => None,
        },
        silent: matches!(knows, Knows::Never),
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_head_is_added_to_the_evidence_and_waited_for_by_nobody() {
    let (odd, _, quorum) = odd(2, 2);
    odd.say(|own| own.delay = Duration::from_millis(500));
    let (reads, started) = (evidence::Recorder::default(), Instant::now());
    let head = evidence::during(&reads, quorum.head()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    let said = || reads.all()[0].votes[0].said.clone();
    assert_eq!(said(), Said::Late);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(said(), Said::Answer(evidence::digest(&head)));
}

#[tokio::test(start_paused = true)]
async fn a_head_is_recorded_with_its_own_digest() {
    let (scripts, quorum) = three();
    for mined in [[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        for (script, count) in scripts.iter().zip(mined) {
            script.mine(count);
        }
        let reads = evidence::Recorder::default();
        evidence::during(&reads, quorum.head()).await.unwrap();
        let mut answered = 0;
        for (script, vote) in scripts.iter().zip(&reads.all()[0].votes) {
            if let Said::Answer(digest) = vote.said {
                let head = script.provider("node").reader.head().await.unwrap();
                assert_eq!(digest, evidence::digest(&head));
                answered += 1;
            }
        }
        assert!(answered >= 2, "{mined:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn head_liars_are_found_and_delay_nobody() {
    use Knows::{All, Never, None, Own};
    let future = || testing::block(1100, 0);
    let fork = |number| testing::block(number, 7);
    let cases: [(&str, Says, u64); 11] = [
        ("another time, knows all", lie(dated(3_600), All, 0), 5),
        ("another time, knows its own", lie(dated(-90), Own, 0), 5),
        ("far ahead, knows all", lie(future(), All, 0), 65),
        ("far ahead, never confirms", lie(future(), Never, 0), 65),
        ("far ahead on its own chain", lie(future(), None, 0), 65),
        ("far ahead and late", lie(future(), All, 500), 70),
        ("fork at the tip", lie(fork(100), None, 0), 5),
        ("fork, knows all", lie(fork(100), All, 0), 5),
        ("fork, never confirms", lie(fork(100), Never, 0), 5),
        ("fork below the tip", lie(fork(60), Own, 0), 5),
        ("fork, late, never confirms", lie(fork(100), Never, 500), 5),
    ];
    for (name, says, seconds) in cases {
        let (odd, _, quorum) = odd(2, 2);
        odd.say(|own| *own = says);
        let slowest = watch(&quorum, seconds).await;
        assert_eq!(slowest, Duration::ZERO, "{name}");
        assert!(disputes(&quorum)[0] > 0, "{name}");
        assert!(quorum.health()[0].set_aside, "{name}");
        nobody_else(&quorum);
        assert_eq!(read(&quorum).await, Ok(honest()), "{name}");
    }
}

/// The block that honest providers have at the tip, so many seconds off.
fn dated(seconds: i64) -> Block {
    let mut block = testing::block(100, 0);
    block.time = block.time.saturating_add_signed(seconds);
    block
}

/// Two of three are left, and the first one has another time for the tip that both have.
#[tokio::test(start_paused = true)]
async fn one_provider_alone_dates_no_head() {
    use Knows::{All, None, Own};
    for seconds in [-3_600, -1, 1, 3_600] {
        for (knows, agreed) in [(All, true), (Own, true), (None, false)] {
            let (odd, scripts, quorum) = odd(2, 2);
            odd.say(|says| *says = lie(dated(seconds), knows, 0));
            scripts[1].fail(Some(ReadError::Unavailable("down".into())));
            let head = quorum.head().await;
            match agreed {
                // It confirms the honest one's block, too.
                true => assert_eq!(head.unwrap().block, testing::block(100, 0)),
                false => lost(head),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn head_far_ahead_costs_a_minute_the_first_time() {
    let (odd, _, quorum) = odd(2, 2);
    odd.say(|says| says.head = Some(testing::block(1100, 0)));
    watch(&quorum, 59).await;
    assert_eq!(disputes(&quorum), [0, 0, 0]);
    watch(&quorum, 4).await;
    assert_eq!(disputes(&quorum), [1, 0, 0]);
    tokio::time::advance(Duration::from_secs(50)).await;
    assert!(quorum.health()[0].set_aside);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!quorum.health()[0].set_aside);
}

#[tokio::test(start_paused = true)]
async fn honest_laggard_is_never_a_liar() {
    for behind in [1, 2, 3, 50] {
        for liar in [false, true] {
            let (odd, scripts, quorum) = odd(3, 2);
            odd.set_head(100 - behind);
            if liar {
                scripts[2].fork(90, 7);
            }
            watch(&quorum, 200).await;
            assert_eq!(disputes(&quorum)[..3], [0, 0, 0], "{behind}");
            assert!(quorum.health()[..3].iter().all(Health::well), "{behind}");
            assert_eq!(disputes(&quorum)[3] > 0, liar);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_laggards_and_their_leader_are_all_honest() {
    for ahead in [1, 2, 4] {
        let (odd, _, quorum) = odd(2, 2);
        odd.set_head(100 + ahead);
        watch(&quorum, 200).await;
        assert_eq!(disputes(&quorum), [0, 0, 0], "{ahead}");
    }
    // Further ahead, while the others get there within a minute.
    let (odd, scripts, quorum) = odd(2, 2);
    for block in 0..200 {
        odd.set_head(100 + block);
        for script in &scripts {
            script.set_head((100 + block).saturating_sub(40));
        }
        quorum.head().await.unwrap();
        settle().await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(disputes(&quorum), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn reorg_seen_by_one_for_a_moment_is_no_lie() {
    let (odd, _, quorum) = odd(2, 2);
    for _ in 0..10 {
        odd.fork(100, 7);
        watch(&quorum, 1).await;
        odd.fork(100, 0);
        watch(&quorum, 2).await;
    }
    assert_eq!(disputes(&quorum), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn reorg_seen_by_one_for_seconds_costs_seconds() {
    let (odd, _, quorum) = odd(2, 2);
    odd.fork(100, 7);
    watch(&quorum, 4).await;
    assert_eq!(disputes(&quorum), [1, 0, 0]);
    odd.fork(100, 0);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!quorum.health()[0].set_aside);
    watch(&quorum, 100).await;
    assert_eq!(disputes(&quorum), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn fork_that_lasts_is_a_contradiction() {
    let (odd, _, quorum) = odd(2, 2);
    odd.fork(100, 7);
    watch(&quorum, 30).await;
    assert_eq!(disputes(&quorum), [3, 0, 0]);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(quorum.health()[0].set_aside);
}

#[tokio::test(start_paused = true)]
async fn slow_confirmation_delays_by_its_own_short_timeout() {
    // Only the odd provider and one other are left, so no other can confirm.
    let (odd, scripts, quorum) = odd(2, 2);
    odd.set_head(101);
    odd.say(|says| says.silent = true);
    scripts[1].fail(Some(ReadError::Unavailable("down".into())));
    let started = Instant::now();
    lost(quorum.head().await);
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn later_head_is_heard_while_a_confirmation_hangs() {
    let (odd, scripts, quorum) = odd(2, 2);
    odd.say(|says| says.delay = Duration::from_millis(300));
    scripts[0].set_head(101);
    // The second provider cannot confirm 100 in time; the odd one can.
    let slow = odd_at(
        101,
        Says {
            silent: true,
            ..Says::default()
        },
    );
    let providers = vec![
        slow.provider("slow"),
        scripts[1].provider("node"),
        odd.provider("late"),
    ];
    drop(quorum);
    let quorum = Quorum::new(&ChainId::new("ethereum"), providers, 2).unwrap();
    let started = Instant::now();
    assert_eq!(quorum.head().await.unwrap().block, testing::block(100, 0));
    assert_eq!(started.elapsed(), Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn head_far_ahead_does_not_make_others_wait_for_the_slowest() {
    let (odd, scripts, quorum) = odd(4, 3);
    odd.say(|says| says.head = Some(testing::block(1100, 0)));
    scripts[3].hang(true);
    let started = Instant::now();
    assert_eq!(quorum.head().await.unwrap().block, testing::block(100, 0));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn late_liar_is_heard_after_the_agreement() {
    let (odd, _, quorum) = odd(2, 2);
    odd.say(|says| {
        says.delay = Duration::from_secs(1);
        says.head = Some(testing::block(100, 7));
    });
    for _ in 0..4 {
        quorum.head().await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert!(disputes(&quorum)[0] > 0);
    nobody_else(&quorum);
}

#[tokio::test(start_paused = true)]
async fn habit_of_late_heads_costs_the_vote_only_where_others_are_enough() {
    for (honest, aside) in [(2, true), (1, false)] {
        let (odd, _, quorum) = odd(honest, 2);
        odd.say(|says| says.delay = Duration::from_secs(4));
        let mut was_aside = false;
        for _ in 0..5 {
            quorum.head().await.unwrap();
            tokio::time::sleep(Duration::from_secs(5)).await;
            was_aside |= quorum.health()[0].set_aside;
        }
        assert_eq!(was_aside, aside);
        nobody_else(&quorum);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_once_is_no_habit_and_a_failing_provider_is_not_late() {
    let (odd, scripts, quorum) = odd(3, 2);
    scripts[2].fail(Some(ReadError::Unavailable("down".into())));
    for round in 0..12 {
        let delay = if round % 3 == 2 { 0 } else { 4 };
        odd.say(|says| says.delay = Duration::from_secs(delay));
        quorum.head().await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(disputes(&quorum), [0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_quickest_provider_lowers_no_tag() {
    let (odd, scripts, quorum) = odd(2, 2);
    let delay = |delay| odd.say(|says| says.delay = delay);
    let tagged = async || quorum.fresh_head().await.unwrap().tagged;
    odd.set_tagged(Some(90));
    scripts[1].set_tagged(Some(90));
    for lie in [Some(0), None] {
        scripts[0].set_tagged(lie);
        delay(Duration::from_millis(300));
        assert_eq!(tagged().await, Some(90), "{lie:?}");
        // A read does not wait long for missing providers.
        delay(Duration::from_secs(60));
        assert_eq!(tagged().await, lie);
    }
    // Nor at all where enough providers agree.
    scripts[0].set_tagged(Some(90));
    let before = tokio::time::Instant::now();
    assert_eq!(tagged().await, Some(90));
    assert_eq!(before.elapsed(), Duration::ZERO);
}
