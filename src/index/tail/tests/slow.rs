//! Second readings that take long, and transactions that one of two providers cannot read.

use super::*;

/// A provider that takes so many seconds for each block.
fn slow(world: &Script, seconds: u64) -> Arc<Script<u64>> {
    async fn deposits(
        own: &Script<u64>,
        heights: RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        let blocks = heights.end() - heights.start() + 1;
        let seconds = Duration::from_secs(**own * blocks);
        tokio::time::sleep(seconds).await;
        own.plain().deposits(heights).await
    }
    let answers = Answers {
        deposits: Some(|own, heights| Box::pin(deposits(own, heights))),
        ..Answers::default()
    };
    world.answering(seconds, answers)
}

#[tokio::test(start_paused = true)]
async fn a_second_reading_that_is_late_is_one_of_too_many_blocks() {
    let (world, bench, request) = eleven().await;
    let number = world.deposit(1, paid(&request));
    let scanners: Vec<Arc<dyn Scanner>> = vec![world.clone(), slow(&world, 6)];
    let mut tail = bench.tail_over(bench.rows.clone(), scanners);
    settle(&mut tail).await;
    assert_eq!(bench.cursor().await.next, number + 1);
    assert_eq!(
        bench.deposits(&request).await,
        [(number, Standing::Included)]
    );
}

/// One block is never too large: the next provider is asked.
#[tokio::test(start_paused = true)]
async fn a_second_reading_of_one_block_that_is_late_is_none() {
    let (world, bench, _) = eleven().await;
    let scanners: Vec<Arc<dyn Scanner>> = vec![world.clone(), slow(&world, 30)];
    let mut tail = bench.tail_over(bench.rows.clone(), scanners);
    let mut steps = 0;
    let failed = loop {
        match tail.step(NOW).await {
            Ok(Step::Again) if steps < 50 => steps += 1,
            other => break other,
        }
    };
    assert!(
        matches!(failed, Err(IndexError::Unconfirmed(_))),
        "{failed:?}"
    );
}

/// A provider that cannot read transactions.
fn unable(world: &Script) -> Arc<Script<()>> {
    async fn deposits(
        own: &Script<()>,
        heights: RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        let mut found = own.plain().deposits(heights).await?;
        for one in &mut found {
            one.doubt = Some(vm::Refusal("too large".into()));
            let depository = one.deposits[0].depository.clone();
            one.deposits[0].depositor = depository;
        }
        Ok(found)
    }
    let answers = Answers {
        deposits: Some(|own, heights| Box::pin(deposits(own, heights))),
        ..Answers::default()
    };
    world.answering((), answers)
}

#[tokio::test]
async fn a_transaction_that_one_provider_cannot_read_is_as_the_other_shows_it() {
    for first in [true, false] {
        let (world, bench, request) = eleven().await;
        let number = world.deposit(1, paid(&request));
        let mut scanners: Vec<Arc<dyn Scanner>> = vec![world.clone(), unable(&world)];
        if first {
            scanners.reverse();
        }
        settle(&mut bench.tail_over(bench.rows.clone(), scanners)).await;
        assert_eq!(bench.cursor().await.next, number + 1);
        let facts = bench.facts(&request).await;
        let [deposit] = &facts.deposits[..] else {
            panic!("{facts:?}");
        };
        assert_ne!(deposit.depositor, deposit.depository, "{first}");
    }
}
