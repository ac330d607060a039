use alloy::primitives::U256;

use super::*;

fn leg(purpose: Purpose, deposit: u8, stage: Stage) -> Leg {
    Leg {
        purpose,
        deposit: B256::repeat_byte(deposit),
        reason: Some(FailReason::TtlExpired),
        network: "n".into(),
        lane: "n".into(),
        attempt: Default::default(),
        currency: "c".into(),
        amount: U256::ONE,
        payments: Vec::new(),
        transaction: None,
        stage,
        wasted: U256::ZERO,
        begun: 0,
    }
}

fn claim(legs: &[Leg]) -> Claim {
    Claim {
        legs: legs.to_vec(),
        ..Claim::default()
    }
}

use Purpose::{Excess, Fill, Refund};
use Stage::{Confirmed, Failed, Final, Open};

#[test]
fn an_order_has_one_fill_and_a_deposit_one_payment() {
    for stage in [Open, Confirmed, Final] {
        let filled = claim(&[leg(Fill, 1, stage)]);
        assert_eq!(fill(&filled, leg(Fill, 2, Open)), Err(ClaimError::Filled));
        assert_eq!(refund(&filled, leg(Refund, 1, Open)), Err(ClaimError::Used));
        // Another deposit goes its own way meanwhile.
        assert!(refund(&filled, leg(Refund, 2, Open)).is_ok());
        let returned = claim(&[leg(Refund, 1, stage)]);
        assert_eq!(fill(&returned, leg(Fill, 1, Open)), Err(ClaimError::Used));
        assert_eq!(
            refund(&returned, leg(Refund, 1, Open)),
            Err(ClaimError::Used)
        );
        let both = fill(&returned, leg(Fill, 2, Open)).unwrap();
        assert_eq!((both.legs.len(), both.failure), (2, None));
    }
    let over = claim(&[leg(Fill, 1, Failed), leg(Refund, 1, Failed)]);
    assert!(fill(&over, leg(Fill, 1, Open)).is_ok());
    assert!(refund(&over, leg(Refund, 1, Open)).is_ok());
}

#[test]
fn failed_orders_are_never_filled_and_parked_deposits_stay() {
    let failed = failed(&Claim::default(), FailReason::OrderExpired);
    assert_eq!(fill(&failed, leg(Fill, 1, Open)), Err(ClaimError::Failed));
    let (one, two) = (B256::repeat_byte(1), B256::repeat_byte(2));
    let paused = pause(
        &Claim::default(),
        one,
        RefundFailReason::ManualRefundRequired,
        5,
    );
    let kept = park(&paused, &[one, two]).unwrap();
    assert_eq!((kept.parked.len(), kept.pauses.len()), (2, 0));
    assert_eq!(refund(&kept, leg(Refund, 1, Open)), Err(ClaimError::Used));
    assert_eq!(fill(&kept, leg(Fill, 2, Open)), Err(ClaimError::Used));
    assert_eq!(park(&kept, &[two]), Err(ClaimError::Used));
    let used = claim(&[leg(Refund, 1, Open)]);
    assert_eq!(park(&used, &[one]), Err(ClaimError::Used));
}

#[test]
fn deposit_whose_payment_paid_nobody_is_parked_until_it_is_released() {
    let (one, two) = (B256::repeat_byte(1), B256::repeat_byte(2));
    let parked = park(&claim(&[leg(Refund, 1, Failed)]), &[two]).unwrap();
    let kept = unpaid(&parked, one).unwrap();
    assert_eq!((kept.parked.len(), &kept.unpaid), (2, &vec![one]));
    assert_eq!(unpaid(&kept, one), Err(ClaimError::Used));
    assert_eq!(release(&kept, two).unpaid, [one]);
    let released = release(&kept, one);
    assert_eq!((released.parked, released.unpaid), (vec![two], Vec::new()));
}

#[test]
fn what_exceeds_an_order_goes_back_once_after_its_final_fill() {
    for stage in [Open, Confirmed, Failed] {
        let early = excess(&claim(&[leg(Fill, 1, stage)]), leg(Excess, 1, Open));
        assert_eq!(early, Err(ClaimError::Unfilled));
    }
    let filled = claim(&[leg(Fill, 1, Final)]);
    let other = excess(&filled, leg(Excess, 2, Open));
    assert_eq!(other, Err(ClaimError::Unfilled));
    let begun = excess(&filled, leg(Excess, 1, Open)).unwrap();
    assert_eq!(excess(&begun, leg(Excess, 1, Open)), Err(ClaimError::Used));
    let again = claim(&[leg(Fill, 1, Final), leg(Excess, 1, Failed)]);
    assert!(excess(&again, leg(Excess, 1, Open)).is_ok());
}

#[test]
fn pauses_double_up_to_the_longest_and_are_one_for_each_deposit() {
    let why = RefundFailReason::AmountTooLowToRefund;
    let mut claim = Claim::default();
    let mut lengths = Vec::new();
    for _ in 0..12 {
        claim = pause(&claim, B256::repeat_byte(1), why, 1_000);
        lengths.push(claim.pauses[0].until - 1_000);
    }
    assert_eq!((claim.pauses.len(), claim.pauses[0].tries), (1, 12));
    assert_eq!(lengths[..3], [60, 120, 240]);
    assert_eq!(lengths[11], LONGEST_PAUSE);
    let other = pause(&claim, B256::repeat_byte(2), why, 1_000);
    assert_eq!(other.pauses.len(), 2);
}

#[test]
fn the_first_reason_of_a_failure_stays() {
    let first = failed(&Claim::default(), FailReason::OrderExpired);
    let second = failed(&first, FailReason::TtlExpired);
    assert_eq!(second.failure, Some(FailReason::OrderExpired));
    let filled = claim(&[leg(Fill, 1, Final)]);
    assert_eq!(failed(&filled, FailReason::TtlExpired).failure, None);
}
