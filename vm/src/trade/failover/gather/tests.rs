//! Who is quick decides no more than who is slow, and who hangs is waited for only where the others contradict each other.

use super::*;
use crate::{
    testing::{Answers, Script},
    trade::{
        FeeRate, Trial,
        failover::fakes::{Says, account, draft, honest},
    },
    types::Amount,
};

/// Milliseconds.
const HANGS: u64 = 3_600_000;

/// Says this after a while.
struct Late(Duration, Says);

impl Late {
    async fn told<T>(&self, part: fn(&Says) -> T) -> Result<T, ReadError> {
        tokio::time::sleep(self.0).await;
        Ok(part(&self.1))
    }
}

fn answers() -> Answers<Late> {
    Answers {
        balance: Some(|own, _, _| Box::pin(own.told(|says| says.balance))),
        rate: Some(|own| Box::pin(own.told(|says| says.rate))),
        estimate: Some(|own, _| Box::pin(own.told(|says| says.estimate.clone()))),
        ..Answers::default()
    }
}

/// Three of which two must agree: the first one is changed, and each answers after so many milliseconds.
fn three(change: impl FnOnce(&mut Says), after: [u64; 3]) -> Failover {
    let mut odd = honest();
    change(&mut odd);
    let each = [odd, honest(), honest()].into_iter().zip(after);
    let each = each.map(|(says, after)| {
        let own = Late(Duration::from_millis(after), says);
        Script::at(1).answering(own, answers()).trading()
    });
    Failover::new("chain", 2, each.collect()).unwrap()
}

async fn balance(failover: &Failover) -> Result<Amount, ReadError> {
    failover.balance(&account(1), &account(2)).await
}

/// What a quorum says of a balance in the same words.
async fn agreed(failover: &Failover) -> Result<Amount, ReadError> {
    let ask = |provider: TradingProvider| async move {
        provider.accounts.balance(&account(1), &account(2)).await
    };
    failover.agree("balance", ask).await
}

#[tokio::test(start_paused = true)]
async fn a_quick_liar_and_a_slow_honest_one_are_three_all_the_same() {
    let slow = [10, 20, 200];
    for lie in [Amount::ZERO, Amount::MAX] {
        let failover = three(|odd| odd.balance = lie, slow);
        assert_eq!(balance(&failover).await, Ok(Amount::from(9)));
        assert_eq!(agreed(&failover).await, Ok(Amount::from(9)));
    }
    for (base, priority) in [(30, 0), (8, 2), (0, 0), (100, 2)] {
        let failover = three(|odd| odd.rate = FeeRate::new(base, priority), slow);
        assert_eq!(failover.rate().await, Ok(honest().rate), "{base}");
    }
    for work in [0, 21_000, u64::MAX] {
        let failover = three(|odd| odd.estimate = Ok(work), slow);
        let said = failover.estimate(&Trial::free(&draft())).await;
        assert_eq!(said, Ok(Ok(50_000)), "{work}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_hangs_is_waited_for_only_where_the_others_are_not_alike() {
    let hanging = [10, 20, HANGS];
    let near = |odd: &mut Says| {
        odd.rate = FeeRate::new(27, 3);
        odd.estimate = Ok(51_000);
    };
    let failover = three(near, hanging);
    let started = Instant::now();
    assert_eq!(balance(&failover).await, Ok(Amount::from(9)));
    assert_eq!(agreed(&failover).await, Ok(Amount::from(9)));
    let said = failover.estimate(&Trial::free(&draft())).await;
    assert_eq!(said, Ok(Ok(50_000)));
    let said = failover.rate().await.unwrap();
    assert_eq!((said.base, said.high()), (27, 30));
    let took = started.elapsed();
    assert!(took < Duration::from_millis(4 * 80), "{took:?}");

    // Bids that are far apart leave the others less time than base rates.
    for (base, priority, wait) in [(30, 6, GRACE.1), (27, 0, GRACE.1), (20, 2, DOUBT)] {
        let failover = three(|odd| odd.rate = FeeRate::new(base, priority), hanging);
        let started = Instant::now();
        let said = failover.rate().await.unwrap();
        assert_eq!((said.base, said.priority), (base, priority.min(2)));
        let took = started.elapsed();
        let most = wait + Duration::from_millis(30);
        assert!((wait..most).contains(&took), "{base} {priority}: {took:?}");
    }

    let failover = three(|odd| odd.balance = Amount::ZERO, hanging);
    let started = Instant::now();
    assert_eq!(balance(&failover).await, Ok(Amount::ZERO));
    let took = started.elapsed();
    assert!(took >= DOUBT && took < DOUBT + GRACE.1, "{took:?}");
}
