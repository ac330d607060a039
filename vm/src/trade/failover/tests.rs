//! One liar or laggard of three decides nothing, and nobody waits for one that hangs.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    fakes::{Says, block, draft, honest, providers, reverts},
    *,
};
use crate::{trade::FeeRate, types::U256};

fn included(fork: u8) -> Fate {
    Fate::Included {
        block: block(fork),
        depth: 0,
        success: true,
        spent: None,
    }
}

#[tokio::test]
async fn one_liar_of_three_makes_no_transaction_dear_or_cheap() {
    let cost = |gas: u64, data: Option<u64>| {
        Some(Spent {
            work: U256::from(gas),
            besides: data.map(U256::from),
        })
    };
    let with = |answer: Option<Spent>| {
        let mut fate = included(1);
        if let Fate::Included { spent, .. } = &mut fate {
            *spent = answer;
        }
        fate
    };
    let saying = |answer: [Option<Spent>; 3]| {
        let each = answer.map(|answer| Says {
            fate: with(answer),
            ..self::honest()
        });
        among(each.into(), 2)
    };
    let honest = cost(30, Some(4));
    for lie in [
        cost(0, Some(0)),
        cost(u64::MAX, Some(u64::MAX)),
        cost(30, None),
        None,
    ] {
        let said = saying([lie, honest, honest]).fate(&Bytes::new()).await;
        assert_eq!(said, Ok(with(honest)), "{lie:?}");
    }
    let said = saying([None, None, honest]).fate(&Bytes::new()).await;
    assert_eq!(said, Ok(with(None)));
}

/// Two honest ones and one that is changed.
fn three(change: impl FnOnce(&mut Says)) -> Failover {
    among(fakes::three(change), 2)
}

fn among(said: Vec<Says>, required: usize) -> Failover {
    Failover::new("chain", required, providers(said)).unwrap()
}

#[tokio::test]
async fn one_liar_of_three_moves_no_number() {
    for (base, priority) in [(0, 0), (10_000_000, 10_000_000), (30, 5_000), (30, 0)] {
        let failover = three(|odd| odd.rate = rate(base, priority));
        assert_eq!(failover.rate().await, Ok(honest().rate), "{base}");
    }
    for balance in [Amount::ZERO, Amount::MAX] {
        let failover = three(|odd| odd.balance = balance);
        let said = failover
            .balance(&fakes::account(1), &fakes::account(2))
            .await;
        assert_eq!(said, Ok(Amount::from(9)));
    }
    for gas in [0, 21_000, u64::MAX] {
        let failover = three(|odd| odd.estimate = Ok(gas));
        let said = failover.estimate(&Trial::free(&draft())).await;
        assert_eq!(said, Ok(Ok(50_000)));
    }
}

#[tokio::test]
async fn two_that_contradict_each_other_say_nothing_of_fees() {
    for base in [0, 6, 10_000] {
        let mut odd = honest();
        odd.rate.base = base;
        let said = among(vec![honest(), odd], 2).rate().await;
        assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    }
}

/// With the least of it a transaction would fail, with the greatest it would be too dear.
#[tokio::test]
async fn work_of_which_two_are_far_apart_is_none() {
    let estimated = async |said: &[u64], required: usize| {
        let each = said.iter().map(|units| Says {
            estimate: Ok(*units),
            ..honest()
        });
        let failover = among(each.collect(), required);
        failover.estimate(&Trial::free(&draft())).await
    };
    for lie in [0, 1, 24_999, 100_001, u64::MAX] {
        for said in [[lie, 50_000], [50_000, lie]] {
            let found = estimated(&said, 2).await;
            assert!(matches!(found, Err(ReadError::Quorum(_))), "{found:?}");
        }
        // One that is enough says what it says.
        assert_eq!(estimated(&[lie], 1).await, Ok(Ok(lie)));
    }
    for (near, agreed) in [(25_000, 25_000), (100_000, 50_000)] {
        assert_eq!(estimated(&[near, 50_000], 2).await, Ok(Ok(agreed)));
    }
}

#[tokio::test]
async fn yes_and_no_are_what_a_quorum_says() {
    let held = async |said: &[u64], required: usize| {
        let each = said.iter().map(|balance| Says {
            balance: Amount::from(*balance),
            ..honest()
        });
        let ask = |provider: TradingProvider| async move {
            let (owner, currency) = (fakes::account(1), fakes::account(2));
            let said = provider.accounts.balance(&owner, &currency);
            Ok(said.await? >= Amount::from(9))
        };
        among(each.collect(), required).holds("enough", ask).await
    };
    for (said, verdict) in [([9, 9, 0], true), ([0, 9, 0], false)] {
        assert_eq!(held(&said, 2).await, Ok(verdict), "{said:?}");
    }
    assert_eq!(held(&[0, 9], 1).await, Ok(true));
    let found = held(&[0, 9], 2).await;
    assert!(matches!(found, Err(ReadError::Quorum(_))), "{found:?}");
}

fn rate(base: u128, priority: u128) -> FeeRate {
    FeeRate::new(base, priority)
}

/// One that says so, and honest ones.
fn beside(rate: FeeRate, honest_ones: usize, required: usize) -> Failover {
    let mut said = vec![honest(); honest_ones];
    said.insert(0, Says { rate, ..honest() });
    among(said, required)
}

#[tokio::test]
async fn one_liar_of_two_adds_nothing_to_a_rate() {
    for (odd, agreed, above) in [(33, 30, 3), (8, 8, 22), (120, 30, 90)] {
        let said = beside(rate(odd, 2), 1, 2).rate().await.unwrap();
        let lower = FeeRate {
            above,
            ..rate(agreed, 2)
        };
        assert_eq!(said, lower, "{odd}");
        assert_eq!(said.expected(), agreed + 2, "what is charged: {odd}");
        assert!(said.high() >= 30, "what lands: {said:?}");
    }
    // Of three it is the middle one's.
    for odd in [8, 33, 120] {
        let said = beside(rate(odd, 2), 2, 2).rate().await;
        assert_eq!(said, Ok(rate(30, 2)), "{odd}");
    }
    // Also where the odd one is left out, and the others are apart.
    for (odd, agreed) in [(1, 10), (10_000, 40)] {
        let rates = [odd, 10, 40].map(|base| Says {
            rate: rate(base, 2),
            ..honest()
        });
        let said = among(rates.into(), 2).rate().await;
        assert_eq!(said, Ok(rate(agreed, 2)), "{odd}");
    }
}

#[tokio::test]
async fn how_far_apart_two_may_be_is_the_familys() {
    let said = |odd| beside(rate(odd, 2), 1, 2).with_spread(2);
    for (odd, agreed) in [(15, 15), (60, 30)] {
        let said = said(odd).rate().await.unwrap();
        assert_eq!((said.base, said.priority), (agreed, 2), "{odd}");
    }
    for odd in [14, 61] {
        let said = said(odd).rate().await;
        assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    }
}

#[tokio::test]
async fn where_one_is_enough_the_middle_one_of_three_counts() {
    for odd in [
        rate(0, 0),
        rate(10_000, 10_000),
        rate(30, 5_000),
        rate(90, 0),
    ] {
        let said = beside(odd, 2, 1);
        assert_eq!(said.rate().await, Ok(honest().rate), "{odd:?}");
        assert_eq!(said.unit_price().await, Ok(32), "{odd:?}");
    }
    // Of two that are far apart nobody knows who lies: the dearer one pays for both.
    for (odd, dearer) in [(0, 30), (10_000, 10_000)] {
        let said = beside(rate(odd, 2), 1, 1).rate().await;
        assert_eq!(said, Ok(rate(dearer, 2)), "{odd}");
    }
}

#[tokio::test]
async fn bids_that_are_far_apart_count_as_a_quorum_claims_them() {
    let two = |one: FeeRate, other: FeeRate| {
        let said = [one, other].map(|rate| Says { rate, ..honest() });
        among(said.into(), 2)
    };
    // Nodes know different memory pools.
    for (one, other) in [(100, 0), (100, 1), (10_000, 100)] {
        let apart = two(rate(0, one), rate(0, other));
        assert_eq!(apart.unit_price().await, Ok(other), "{one} {other}");
        assert_eq!(apart.rate().await, Ok(rate(0, other)), "{one} {other}");
    }
    let apart = two(rate(30, 2), rate(10_000, 2)).unit_price().await;
    assert!(matches!(apart, Err(ReadError::Quorum(_))), "{apart:?}");
    // One liar of three does not leave what the honest ones say.
    for (odd, price) in [
        (rate(0, 0), 10),
        (rate(0, 10_000), 100),
        (rate(10_000, 0), 10),
    ] {
        let said = [odd, rate(0, 100), rate(0, 10)].map(|rate| Says { rate, ..honest() });
        let said = among(said.into(), 2).unit_price().await;
        assert_eq!(said, Ok(price), "{odd:?}");
    }
    let near = two(rate(30, 2), rate(30, 0)).unit_price().await;
    assert_eq!(near, Ok(30));
    let odd = beside(rate(0, 0), 2, 2).unit_price().await;
    assert_eq!(odd, Ok(32));
}

#[tokio::test]
async fn a_revert_is_what_a_quorum_says() {
    let draft = draft();
    let trial = Trial::free(&draft);
    let lied = three(|odd| odd.estimate = reverts());
    assert_eq!(lied.estimate(&trial).await, Ok(Ok(50_000)));
    let mut odd = honest();
    odd.estimate = reverts();
    let two = among(vec![odd.clone(), odd.clone(), honest()], 2);
    let said = two.estimate(&trial).await.unwrap();
    assert_eq!(said.unwrap_err().reason, "no");
    let said = among(vec![odd, honest()], 2).estimate(&trial).await;
    assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
}

#[tokio::test]
async fn a_fate_is_what_a_quorum_has_seen() {
    let hash = Bytes::new();
    let lied = three(|odd| odd.fate = included(1)).fate(&hash).await;
    assert_eq!(lied, Ok(Fate::Waiting));
    let behind = |fork| {
        let mut one = honest();
        one.fate = included(fork);
        one
    };
    let agreed = among(vec![honest(), behind(1), behind(1)], 2);
    assert_eq!(agreed.fate(&hash).await, Ok(included(1)));
    let split = among(vec![behind(2), behind(1), honest()], 2);
    assert_eq!(split.fate(&hash).await, Ok(Fate::Waiting));
    // One that claims to know it keeps nobody from sending it again.
    let unknown = || Says {
        fate: Fate::Unknown,
        ..honest()
    };
    for lie in [Fate::Waiting, included(1)] {
        let odd = Says {
            fate: lie,
            ..honest()
        };
        let lied = among(vec![odd, unknown(), unknown()], 2);
        assert_eq!(lied.fate(&hash).await, Ok(Fate::Unknown));
    }
}

#[tokio::test]
async fn a_transaction_is_refused_by_a_quorum() {
    let raw = Bytes::new();
    let refused = || Broadcast::Refused("oversized data".into());
    let lied = three(|odd| odd.broadcast = refused()).broadcast(&raw).await;
    assert_eq!(lied, Ok(Broadcast::Accepted));
    let says = |said: &Broadcast| {
        let mut one = honest();
        one.broadcast = said.clone();
        one
    };
    let other = Broadcast::Underpriced;
    let agreed = among(vec![says(&other), says(&refused()), says(&refused())], 2);
    assert_eq!(agreed.broadcast(&raw).await, Ok(refused()));
    // One that takes what the others never will holds up nobody.
    let alone = among(vec![honest(), says(&refused()), says(&refused())], 2);
    assert_eq!(alone.broadcast(&raw).await, Ok(refused()));
    let taken = among(vec![honest(), says(&refused())], 1);
    assert_eq!(taken.broadcast(&raw).await, Ok(Broadcast::Accepted));
    let taken = among(vec![honest(), says(&other), says(&refused())], 2);
    assert_eq!(taken.broadcast(&raw).await, Ok(Broadcast::Accepted));
    let split = among(vec![says(&other), says(&refused())], 2);
    let said = split.broadcast(&raw).await.unwrap();
    assert!(matches!(said, Broadcast::Rejected(_)), "{said:?}");
}

/// Refusals end an attempt once there are enough of them: one provider alone makes none of what has only expired.
#[tokio::test]
async fn what_has_expired_is_refused_by_a_quorum_only() {
    let says = |said: Broadcast| {
        let mut one = honest();
        one.broadcast = said;
        one
    };
    let expired = || says(Broadcast::Expired);
    let rejected = || says(Broadcast::Rejected("no such block".into()));
    let refused = || says(Broadcast::Refused("oversized data".into()));
    for (said, ended) in [
        (vec![expired(), rejected()], false),
        (vec![rejected(), expired()], false),
        (vec![expired(), expired(), refused()], false),
        (vec![expired(), rejected(), rejected()], true),
        (vec![expired(), rejected(), refused()], true),
    ] {
        let said = among(said, 2).broadcast(&Bytes::new()).await.unwrap();
        match ended {
            true => assert!(matches!(said, Broadcast::Rejected(_)), "{said:?}"),
            false => assert_eq!(said, Broadcast::Expired),
        }
    }
}

async fn balance(failover: &Failover) -> Result<Amount, ReadError> {
    let owner = fakes::account(1);
    failover.balance(&owner, &owner).await
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_one_that_hangs() {
    let failover = three(|odd| odd.hangs = true);
    let started = Instant::now();
    assert_eq!(balance(&failover).await, Ok(Amount::from(9)));
    assert!(failover.rate().await.is_ok());
    assert!(failover.broadcast(&Bytes::new()).await.is_ok());
    let first = failover.first(|provider| async move { provider.scanner.head().await });
    assert_eq!(first.await, Ok(block(0)));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Two of three that hang are no quorum; that is known when their time is up.
    let mut odd = honest();
    odd.hangs = true;
    let failover = among(vec![odd.clone(), odd, honest()], 2);
    let started = Instant::now();
    let said = balance(&failover).await;
    assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
}
