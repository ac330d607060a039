use alloy::primitives::U256;

use super::*;
use crate::request::{fact::Place, scene};

const NOW: u64 = 1_700_000_000;
const PATIENCE: Patience = Patience {
    margin: 60,
    funds: 300,
};

fn id(number: u8) -> B256 {
    B256::repeat_byte(number)
}

fn deposit(number: u8, standing: Standing) -> Deposit {
    Deposit {
        onchain_id: id(number),
        network: "origin".into(),
        transaction: "0x1".into(),
        depository: scene::USER.into(),
        depositor: scene::USER.into(),
        currency: scene::USDC.to_uppercase().replacen("0X", "0x", 1),
        amount: U256::from(100_000_000),
        place: Place {
            number: 1,
            hash: id(1),
            time: NOW,
        },
        standing,
    }
}

fn leg(purpose: Purpose, deposit: u8, stage: Stage) -> Leg {
    Leg {
        purpose,
        deposit: id(deposit),
        reason: None,
        network: "destination".into(),
        nonce: 0,
        currency: scene::USDC.into(),
        amount: U256::ONE,
        transaction: None,
        stage,
    }
}

fn decide(facts: &[Deposit], legs: &[Leg], change: impl FnOnce(&mut Request, &mut Claim)) -> Next {
    at(NOW, facts, legs, change)
}

fn at(
    now: u64,
    deposits: &[Deposit],
    legs: &[Leg],
    change: impl FnOnce(&mut Request, &mut Claim),
) -> Next {
    let (mut request, mut claim) = (scene::request(1), Claim::default());
    claim.legs = legs.to_vec();
    change(&mut request, &mut claim);
    let facts = Facts {
        deposits: deposits.to_vec(),
        ..Facts::default()
    };
    let case = Case {
        request: &request,
        facts: &facts,
        claim: &claim,
        now,
        patience: PATIENCE,
    };
    next(&case, Funds::Enough)
}

use Purpose::{Fill, Refund};
use Stage::{Confirmed, Failed, Final, Open};
use Standing::{Included, Reorged};

const FUNDED: Standing = Standing::Final;

#[test]
fn only_final_deposits_are_acted_on() {
    let same = |_: &mut Request, _: &mut Claim| ();
    assert_eq!(decide(&[], &[], same), Next::Done);
    assert_eq!(decide(&[deposit(1, Included)], &[], same), Next::Wait);
    assert_eq!(decide(&[deposit(1, Reorged)], &[], same), Next::Done);
    let filled = Next::Fill { deposit: id(2) };
    let both = [deposit(1, Included), deposit(2, FUNDED)];
    assert_eq!(decide(&both, &[], same), filled);
    let user = |request: &mut Request, _: &mut Claim| request.execution = Execution::User;
    assert_eq!(decide(&both, &[], user), Next::Done);
}

#[test]
fn a_deposit_that_matches_is_chosen_over_one_that_does_not() {
    let mut low = deposit(1, FUNDED);
    low.amount -= U256::ONE;
    let both = [low.clone(), deposit(2, FUNDED)];
    assert_eq!(decide(&both, &[], |_, _| ()), Next::Fill { deposit: id(2) });
    let reason = FailReason::DepositedAmountTooLowToFill;
    let refund = Next::Refund {
        deposit: id(1),
        reason,
    };
    assert_eq!(decide(&[low], &[], |_, _| ()), refund);
}

#[test]
fn mismatches_have_their_reasons() {
    type Change = fn(&mut Deposit);
    let table: [(Option<FailReason>, Change); 5] = [
        (None, |_| ()),
        (None, |deposit| deposit.amount = U256::MAX),
        (Some(FailReason::DepositChainMismatch), |deposit| {
            deposit.network = "destination".into();
        }),
        (Some(FailReason::IncorrectDepositCurrency), |deposit| {
            deposit.currency = scene::USER.into();
        }),
        (Some(FailReason::DepositedAmountTooLowToFill), |deposit| {
            deposit.amount = U256::ZERO;
        }),
    ];
    for (reason, change) in table {
        let mut deposit = deposit(1, FUNDED);
        change(&mut deposit);
        assert_eq!(mismatch(&scene::request(1), &deposit), reason);
    }
    let mut request = scene::request(1);
    request.order.inputs.clear();
    let reason = mismatch(&request, &deposit(1, FUNDED));
    assert_eq!(reason, Some(FailReason::Unknown));
}

/// Every stage of a fill and of a refund of the same deposit: what follows, with and without a
/// second deposit. Whatever the stages are, nothing is begun while anything is open, nothing is
/// filled beside or after a refund, and a deposit that was used is not given back.
#[test]
fn nothing_illegal_follows_any_combination() {
    let stages = [None, Some(Open), Some(Confirmed), Some(Final), Some(Failed)];
    let failures = [None, Some(FailReason::TtlExpired)];
    for (fill, refund) in stages
        .iter()
        .flat_map(|f| stages.iter().map(move |r| (*f, *r)))
    {
        for (failure, deposits) in failures.iter().flat_map(|f| [(f, 1), (f, 2)]) {
            let legs: Vec<_> = [(Fill, fill), (Refund, refund)]
                .into_iter()
                .filter_map(|(purpose, stage)| Some(leg(purpose, 1, stage?)))
                .collect();
            let deposits: Vec<_> = (1..=deposits).map(|n| deposit(n, FUNDED)).collect();
            let next = decide(&deposits, &legs, |_, claim| {
                claim.failure = *failure;
                if fill == Some(Failed) || refund.is_some() {
                    claim.failure = claim.failure.or(Some(FailReason::Unknown));
                }
            });
            let any_open = fill == Some(Open) || refund == Some(Open);
            let paid = |stage| matches!(stage, Some(Confirmed | Final));
            let case = format!(
                "{fill:?} {refund:?} {failure:?} {}: {next:?}",
                deposits.len()
            );
            match next {
                Next::Fill { .. } => {
                    assert!(
                        fill.is_none() && refund.is_none() && failure.is_none(),
                        "{case}"
                    );
                }
                Next::Refund { deposit, reason } => {
                    assert!(!any_open, "{case}");
                    let used = deposit == id(1) && (paid(fill) || paid(refund));
                    assert!(!used, "{case}");
                    assert_eq!(reason == FailReason::DoubleSpend, paid(fill), "{case}");
                }
                Next::Wait => assert!(any_open || paid(fill) || paid(refund), "{case}"),
                Next::Settle => {
                    assert!(!any_open && (fill == Some(Final) || refund == Some(Final)));
                }
                Next::Done | Next::FailWithoutRefund { .. } => panic!("{case}"),
            }
        }
    }
}

#[test]
fn deadlines_and_force_come_before_the_fill() {
    let funded = [deposit(1, FUNDED)];
    let refund = |reason| Next::Refund {
        deposit: id(1),
        reason,
    };
    let fill = Next::Fill { deposit: id(1) };
    let ttl = |request: &mut Request, _: &mut Claim| request.expires_at = Some(NOW + 1);
    assert_eq!(at(NOW, &funded, &[], ttl), fill);
    assert_eq!(
        at(NOW + 1, &funded, &[], ttl),
        refund(FailReason::TtlExpired)
    );
    let due = |request: &mut Request, _: &mut Claim| {
        request.order.output.deadline = u32::try_from(NOW + 61).unwrap();
    };
    assert_eq!(at(NOW, &funded, &[], due), fill);
    assert_eq!(
        at(NOW + 1, &funded, &[], due),
        refund(FailReason::OrderExpired)
    );
    let force = |request: &mut Request, _: &mut Claim| {
        request.referrer = Some(FORCE_REFUND.into());
    };
    assert_eq!(
        decide(&funded, &[], force),
        refund(FailReason::ManualAdminRefund)
    );
}

#[test]
fn refunds_end_when_the_order_says_so_or_tries_run_out() {
    let funded = [deposit(1, FUNDED)];
    let manual = |reason| Next::FailWithoutRefund {
        deposit: id(1),
        reason,
        why: RefundFailReason::ManualRefundRequired,
    };
    let reason = FailReason::TtlExpired;
    let tried = vec![leg(Refund, 1, Failed); 3];
    let failed = |_: &mut Request, claim: &mut Claim| claim.failure = Some(reason);
    assert_eq!(decide(&funded, &tried, failed), manual(reason));
    let again = decide(&funded, &tried[1..], failed);
    assert_eq!(
        again,
        Next::Refund {
            deposit: id(1),
            reason
        }
    );
    assert_eq!(at(1_700_604_740, &funded, &[], failed), manual(reason));
    let foreign = |request: &mut Request, claim: &mut Claim| {
        request.order.inputs[0].refunds.clear();
        claim.failure = Some(reason);
    };
    assert_eq!(decide(&funded, &[], foreign), manual(reason));
    let given_up = |_: &mut Request, claim: &mut Claim| {
        claim.failure = Some(reason);
        claim.given_up = vec![id(1)];
    };
    assert_eq!(decide(&funded, &[], given_up), Next::Done);
}

#[test]
fn what_ended_is_settled_once() {
    let funded = [deposit(1, FUNDED)];
    for purpose in [Fill, Refund] {
        let end = |stage, settling| {
            decide(&funded, &[leg(purpose, 1, stage)], |_, claim| {
                claim.settling = settling;
            })
        };
        assert_eq!(end(Confirmed, false), Next::Wait);
        assert_eq!(end(Final, false), Next::Settle);
        assert_eq!(end(Final, true), Next::Done);
    }
}

#[test]
fn an_order_waits_for_funds_as_long_as_it_is_told() {
    let (request, claim) = (scene::request(1), Claim::default());
    let facts = Facts {
        deposits: vec![deposit(1, FUNDED)],
        ..Facts::default()
    };
    let short = |now| {
        let case = Case {
            request: &request,
            facts: &facts,
            claim: &claim,
            now,
            patience: PATIENCE,
        };
        next(&case, Funds::Short)
    };
    assert_eq!(short(NOW + 299), Next::Wait);
    let reason = FailReason::SolverBalanceTooLow;
    let refund = Next::Refund {
        deposit: id(1),
        reason,
    };
    assert_eq!(short(NOW + 300), refund);
}
