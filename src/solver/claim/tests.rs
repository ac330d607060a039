use alloy::primitives::U256;

use super::*;

fn leg(purpose: Purpose, deposit: u8, stage: Stage) -> Leg {
    Leg {
        purpose,
        deposit: B256::repeat_byte(deposit),
        reason: Some(FailReason::TtlExpired),
        network: "n".into(),
        nonce: 0,
        currency: "c".into(),
        amount: U256::ONE,
        transaction: None,
        stage,
    }
}

fn claim(legs: &[Leg]) -> Claim {
    Claim {
        legs: legs.to_vec(),
        ..Claim::default()
    }
}

#[test]
fn payments_follow_only_what_they_may() {
    use Purpose::{Fill, Refund};
    use Stage::{Confirmed, Failed, Final, Open};
    let purposes = [Fill, Refund];
    for before in purposes {
        let open = claim(&[leg(before, 1, Open)]);
        for next in purposes {
            let begin = if next == Fill { fill } else { refund };
            for deposit in [1, 2] {
                let begun = begin(&open, leg(next, deposit, Open));
                assert_eq!(begun, Err(ClaimError::Open));
            }
        }
        for stage in [Confirmed, Final] {
            let paid = claim(&[leg(before, 1, stage)]);
            let expected = if before == Fill {
                ClaimError::Filled
            } else {
                ClaimError::Failed
            };
            assert_eq!(fill(&paid, leg(Fill, 2, Open)), Err(expected));
            let used = refund(&paid, leg(Refund, 1, Open));
            assert_eq!(used, Err(ClaimError::Used));
            let other = refund(&paid, leg(Refund, 2, Open)).unwrap();
            assert_eq!(other.failure.is_none(), before == Fill);
        }
        let over = claim(&[leg(before, 1, Failed)]);
        assert_eq!(fill(&over, leg(Fill, 2, Open)).is_ok(), before == Fill);
        assert!(refund(&over, leg(Refund, 1, Open)).is_ok());
    }
}

#[test]
fn failed_orders_are_never_filled_and_given_up_deposits_stay() {
    let failed = failed(&Claim::default(), FailReason::OrderExpired);
    let refused = fill(&failed, leg(Purpose::Fill, 1, Stage::Open));
    assert_eq!(refused, Err(ClaimError::Failed));
    let deposit = B256::repeat_byte(1);
    let kept = give_up(&Claim::default(), deposit, FailReason::TtlExpired).unwrap();
    assert_eq!(kept.failure, Some(FailReason::TtlExpired));
    let refused = refund(&kept, leg(Purpose::Refund, 1, Stage::Open));
    assert_eq!(refused, Err(ClaimError::Used));
    let again = give_up(&kept, deposit, FailReason::TtlExpired);
    assert_eq!(again, Err(ClaimError::Used));
}

#[test]
fn the_first_reason_of_a_failure_stays() {
    let first = failed(&Claim::default(), FailReason::OrderExpired);
    let second = failed(&first, FailReason::TtlExpired);
    assert_eq!(second.failure, Some(FailReason::OrderExpired));
    let filled = claim(&[leg(Purpose::Fill, 1, Stage::Final)]);
    assert_eq!(failed(&filled, FailReason::TtlExpired).failure, None);
}
