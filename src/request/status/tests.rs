use super::*;
use crate::request::{
    fact::{Attempt, Deposit, Ending, Standing},
    fixtures::{self, place, sent},
    render,
};

const FILL: Purpose = Purpose::Fill;
const REFUND: Purpose = Purpose::Refund;

fn facts(deposits: &[Standing], attempts: &[(Purpose, State)]) -> Facts {
    let deposits = deposits.iter().zip(1..);
    let deposit = |(standing, number): (&Standing, u8)| fixtures::deposit(number, *standing);
    let attempt = |(purpose, state): &(Purpose, State)| fixtures::attempt(*purpose, state.clone());
    Facts {
        deposits: deposits.map(deposit).collect::<Vec<Deposit>>(),
        attempts: attempts.iter().map(attempt).collect::<Vec<Attempt>>(),
        ..Facts::default()
    }
}

fn failing(mut facts: Facts, failure: FailReason) -> Facts {
    facts.failure = Some(failure);
    facts
}

fn judged(facts: &Facts) -> (Status, Option<FailReason>) {
    let verdict = of(&fixtures::request(1), facts);
    (verdict.status, verdict.fail_reason)
}

fn broadcast() -> State {
    State::Broadcast
}

fn included() -> State {
    State::Included(place(9))
}

fn confirmed() -> State {
    State::Confirmed(place(9))
}

fn reverted() -> State {
    State::Reverted {
        place: place(9),
        reason: None,
    }
}

fn check(cases: Vec<(Facts, (Status, Option<FailReason>))>) {
    for (row, (facts, wanted)) in cases.into_iter().enumerate() {
        assert_eq!(judged(&facts), wanted, "row {row}: {facts:?}");
    }
}

fn plain(status: Status) -> (Status, Option<FailReason>) {
    (status, None)
}

#[test]
fn deposits_and_fills_are_where_a_request_stands() {
    use Standing::{Final, Included, Reorged};
    use Status::{Pending, Submitted, Success, Waiting};
    check(vec![
        // Nothing, or nothing any more.
        (facts(&[], &[]), plain(Waiting)),
        (facts(&[Reorged], &[]), plain(Waiting)),
        // A deposit that was indexed, wherever it is.
        (facts(&[Included], &[]), plain(Pending)),
        (facts(&[Final], &[]), plain(Pending)),
        (facts(&[Reorged, Included], &[]), plain(Pending)),
        // A fill on its way, and what comes of it.
        (facts(&[Final], &[(FILL, broadcast())]), plain(Submitted)),
        (facts(&[Final], &[(FILL, included())]), plain(Submitted)),
        (facts(&[Final], &[(FILL, confirmed())]), plain(Success)),
        (facts(&[Final], &[(FILL, reverted())]), plain(Pending)),
        (facts(&[Final], &[(FILL, State::Replaced)]), plain(Pending)),
        (
            facts(&[Final], &[(FILL, State::Replaced), (FILL, broadcast())]),
            plain(Submitted),
        ),
        (
            facts(&[Final], &[(FILL, reverted()), (FILL, confirmed())]),
            plain(Success),
        ),
        // A fill ahead of its deposit.
        (facts(&[], &[(FILL, broadcast())]), plain(Submitted)),
        (facts(&[], &[(FILL, confirmed())]), plain(Success)),
    ]);
}

#[test]
fn reorgs_are_where_a_request_stands() {
    use FailReason::{DepositReorged, Slippage};
    use Standing::{Final, Reorged};
    use Status::{Failure, Refund, Success, Waiting};
    check(vec![
        // The deposit is reorged under a fill that was sent: told at once, until it comes back.
        (
            facts(&[Reorged], &[(FILL, broadcast())]),
            (Failure, Some(DepositReorged)),
        ),
        (
            facts(&[Reorged], &[(FILL, included())]),
            (Failure, Some(DepositReorged)),
        ),
        (facts(&[Reorged], &[(FILL, reverted())]), plain(Waiting)),
        (
            facts(&[Reorged], &[(FILL, confirmed())]),
            (Failure, Some(DepositReorged)),
        ),
        (
            facts(&[Reorged, Final], &[(FILL, confirmed())]),
            plain(Success),
        ),
        // A refund that was paid stays one.
        (
            failing(facts(&[Reorged], &[(REFUND, confirmed())]), Slippage),
            (Refund, Some(Slippage)),
        ),
        // What is gone cannot be refunded; without a reason it may still come back.
        (
            failing(facts(&[Reorged], &[]), Slippage),
            (Failure, Some(Slippage)),
        ),
    ]);
}

#[test]
fn refunds_are_where_a_request_stands() {
    use FailReason::{DoubleSpend, Slippage, Unknown};
    use Standing::Final;
    use Status::{Pending, Refund, Success, Waiting};
    check(vec![
        // A refund in progress is no failure.
        (
            failing(facts(&[Final], &[(FILL, reverted())]), Slippage),
            plain(Pending),
        ),
        (
            failing(facts(&[Final], &[(REFUND, broadcast())]), Slippage),
            plain(Pending),
        ),
        (
            failing(facts(&[Final], &[(REFUND, included())]), Slippage),
            plain(Pending),
        ),
        (
            failing(facts(&[Final], &[(REFUND, reverted())]), Slippage),
            plain(Pending),
        ),
        (
            failing(facts(&[Final], &[(REFUND, confirmed())]), Slippage),
            (Refund, Some(Slippage)),
        ),
        // What decides the order is still there: another deposit was given back.
        (facts(&[Final], &[(REFUND, confirmed())]), plain(Pending)),
        (
            facts(&[], &[(REFUND, confirmed())]),
            (Refund, Some(Unknown)),
        ),
        // A second deposit goes back; the first was filled.
        (
            failing(
                facts(
                    &[Final, Final],
                    &[(FILL, confirmed()), (REFUND, confirmed())],
                ),
                DoubleSpend,
            ),
            plain(Success),
        ),
        // A reason alone is none: nothing was deposited.
        (failing(facts(&[], &[]), Slippage), plain(Waiting)),
    ]);
}

#[test]
fn a_failure_is_told_when_no_refund_will_come() {
    let mut facts = failing(facts(&[Standing::Final], &[]), FailReason::Slippage);
    facts.refund_failure = Some(RefundFailReason::AmountTooLowToRefund);
    let verdict = of(&fixtures::request(1), &facts);
    assert_eq!(verdict.status, Status::Failure);
    assert_eq!(verdict.fail_reason, Some(FailReason::Slippage));
    assert_eq!(
        verdict.refund_fail_reason,
        Some(RefundFailReason::AmountTooLowToRefund)
    );
    // One that is on its way after all is waited for.
    facts.attempts = vec![fixtures::attempt(REFUND, broadcast())];
    assert_eq!(judged(&facts), (Status::Pending, None));
}

#[test]
fn deposits_that_pay_for_nothing_speak_only_while_none_pays() {
    use FailReason::IncorrectDepositCurrency;
    use RefundFailReason::ManualRefundRequired;
    use Status::{Failure, Pending, Refund, Submitted, Success, Waiting};
    let with = |ends: &[(u8, bool, bool)], deposits: &[(u8, Standing)], attempts: &[_]| {
        let mut facts = facts(&[], attempts);
        for (number, standing) in deposits {
            let mut deposit = fixtures::deposit(*number, *standing);
            if *number < 9 {
                deposit.currency = fixtures::USER.into();
            }
            facts.deposits.push(deposit);
        }
        for (number, back, minor) in ends {
            facts.end(Ending {
                deposit: fixtures::deposit(*number, Standing::Final).onchain_id,
                reason: IncorrectDepositCurrency,
                refused: (!back).then_some(ManualRefundRequired),
                minor: *minor,
            });
        }
        judged(&facts)
    };
    let (one, two) = ((1, Standing::Final), (2, Standing::Final));
    let paying = (9, Standing::Included);
    let failed = (Failure, Some(IncorrectDepositCurrency));
    // Undecided, parked, and parked as worth nothing.
    assert_eq!(with(&[], &[one], &[]), plain(Pending));
    assert_eq!(with(&[(1, false, false)], &[one], &[]), failed);
    assert_eq!(with(&[(1, false, true)], &[one], &[]), plain(Waiting));
    let both = [(1, false, true), (2, false, false)];
    assert_eq!(with(&both, &[one, two], &[]), failed);
    // Given back.
    let back = [(1, true, false)];
    assert_eq!(
        with(&back, &[one], &[(REFUND, broadcast())]),
        plain(Pending)
    );
    let refunded = (Refund, Some(IncorrectDepositCurrency));
    assert_eq!(with(&back, &[one], &[(REFUND, confirmed())]), refunded);
    // A deposit that pays ends all that, as if the others were not there.
    for ends in [&both[..], &back[..]] {
        let sent = |state| [(REFUND, confirmed()), (FILL, state)];
        let all = [one, two, paying];
        assert_eq!(with(ends, &all, &[(REFUND, confirmed())]), plain(Pending));
        assert_eq!(with(ends, &all, &sent(broadcast())), plain(Submitted));
        assert_eq!(with(ends, &all, &sent(confirmed())), plain(Success));
    }
    // Nor do they hide that it is gone.
    let gone = [one, (9, Standing::Reorged)];
    let reorged = (Failure, Some(FailReason::DepositReorged));
    assert_eq!(with(&[], &gone, &[(FILL, confirmed())]), reorged);
}

/// Whatever others deposit under its order's id, and however that ends.
#[test]
fn deposits_of_others_say_nothing_unless_they_pay() {
    let request = fixtures::request(1);
    let judged_of = |change: fn(&mut Deposit), refused, attempts: &[(Purpose, State)]| {
        let mut facts = facts(&[Standing::Final], attempts);
        let deposit = &mut facts.deposits[0];
        deposit.depositor = fixtures::USDC.into();
        change(deposit);
        let ending = Ending {
            deposit: deposit.onchain_id,
            reason: FailReason::DepositChainMismatch,
            refused,
            minor: false,
        };
        let before = judged(&facts);
        facts.end(ending);
        let after = judged(&facts);
        (before, after, render::v3(&request, &facts))
    };
    let refused = Some(RefundFailReason::ManualRefundRequired);
    let waiting = plain(Status::Waiting);
    let cases: [fn(&mut Deposit); 3] = [
        |one| one.amount = alloy::primitives::U256::from(1_000_000),
        |one| one.network = "destination".into(),
        |one| one.currency = fixtures::USER.into(),
    ];
    for change in cases {
        let (before, after, shown) = judged_of(change, refused, &[]);
        assert_eq!((before, after), (waiting, waiting));
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(shown["inTxHashes"], serde_json::json!([]));
        for state in [broadcast(), confirmed()] {
            assert_eq!(judged_of(change, None, &[(REFUND, state)]).1, waiting);
        }
    }
    // Who pays for it pays for it.
    assert_eq!(judged_of(|_| (), None, &[]).0, plain(Status::Pending));
}

/// Anybody can deposit in the user's name, and what he gives goes back to the user.
#[test]
fn what_strangers_deposit_in_the_users_name_changes_no_status() {
    let request = fixtures::request(1);
    let judged_of = |own: bool, standing, attempts: &[(Purpose, State)]| {
        let mut facts = facts(&[standing], attempts);
        let deposit = &mut facts.deposits[0];
        (deposit.own, deposit.amount) = (own, alloy::primitives::U256::from(1_000_000));
        let mut before = facts.clone();
        before.attempts.clear();
        facts.end(Ending {
            deposit: facts.deposits[0].onchain_id,
            reason: FailReason::DepositedAmountTooLowToFill,
            refused: None,
            minor: false,
        });
        let event = crate::request::event::of(&request, &Facts::default(), &facts);
        (judged(&before), judged(&facts), event.is_some())
    };
    let waiting = plain(Status::Waiting);
    for standing in [Standing::Included, Standing::Final] {
        for attempts in [&[][..], &[(REFUND, broadcast())], &[(REFUND, confirmed())]] {
            let silent = (waiting, waiting, false);
            assert_eq!(judged_of(false, standing, attempts), silent, "{attempts:?}");
        }
    }
    // What the user gave speaks.
    let (before, after, event) = judged_of(true, Standing::Final, &[(REFUND, confirmed())]);
    let low = Some(FailReason::DepositedAmountTooLowToFill);
    assert_eq!(before, plain(Status::Pending));
    assert_eq!((after, event), ((Status::Refund, low), true));
}

#[test]
fn a_filled_request_fails_with_its_deposit_and_recovers_with_it() {
    let mut facts = facts(&[Standing::Final], &[(FILL, confirmed())]);
    let mut judged_of = vec![judged(&facts)];
    for standing in [Standing::Reorged, Standing::Included, Standing::Final] {
        facts.deposits[0].standing = standing;
        judged_of.push(judged(&facts));
    }
    let success = (Status::Success, None);
    let reorged = (Status::Failure, Some(FailReason::DepositReorged));
    assert_eq!(judged_of, [success, reorged, success, success]);
}

#[test]
fn transactions_of_the_users_own_speak_for_themselves() {
    use Status::{Failure, Pending, Success, Waiting};
    let mut request = fixtures::request(1);
    request.execution = Execution::User;
    let cases = [
        (vec![], Waiting),
        (vec![broadcast()], Pending),
        (vec![included()], Success),
        (vec![confirmed()], Success),
        (vec![reverted()], Failure),
        (vec![State::Replaced], Waiting),
        (vec![State::Replaced, broadcast()], Pending),
        (vec![reverted(), broadcast()], Pending),
        (vec![reverted(), confirmed()], Success),
        // Who names another's failed transaction undoes nothing.
        (vec![confirmed(), reverted()], Success),
    ];
    for (states, status) in cases {
        let own = states.iter().map(|state| sent("0x1", state.clone()));
        let facts = Facts {
            own: own.collect(),
            ..Facts::default()
        };
        let verdict = of(&request, &facts);
        assert_eq!(verdict.status, status, "{states:?}");
        let failed = (status == Failure).then_some(FailReason::TransactionReverted);
        assert_eq!(verdict.fail_reason, failed);
    }
}

/// What can become of each fact in one step.
fn steps<T: PartialEq + Clone>(from: &T, edges: &[(T, Vec<T>)]) -> Vec<T> {
    let found = edges.iter().find(|(at, _)| at == from);
    found.map(|(_, to)| to.clone()).unwrap_or_default()
}

type World = (
    Option<Standing>,
    Option<State>,
    Option<State>,
    Option<FailReason>,
);

fn world(world: &World) -> Facts {
    let (deposit, fill, refund, failure) = world.clone();
    let attempts = [(FILL, fill), (REFUND, refund)];
    let attempts: Vec<_> = attempts
        .into_iter()
        .filter_map(|(purpose, state)| Some((purpose, state?)))
        .collect();
    let mut facts = facts(deposit.as_slice(), &attempts);
    facts.failure = failure;
    facts
}

fn next(at: &World) -> Vec<World> {
    use Standing::{Final, Included, Reorged};
    let deposits = [
        (None, vec![Some(Included)]),
        (Some(Included), vec![Some(Final), Some(Reorged)]),
        (Some(Final), vec![Some(Included), Some(Reorged)]),
        (Some(Reorged), vec![Some(Included)]),
    ];
    let states = [
        (None, vec![Some(broadcast())]),
        (
            Some(broadcast()),
            vec![Some(included()), Some(reverted()), Some(State::Replaced)],
        ),
        (Some(included()), vec![Some(confirmed()), Some(broadcast())]),
        (Some(reverted()), vec![Some(broadcast())]),
        (Some(State::Replaced), vec![Some(broadcast())]),
    ];
    let (deposit, fill, refund, failure) = at;
    let dead = |state: &Option<State>| state.as_ref().is_none_or(|state| !state.alive());
    let mut all: Vec<World> = Vec::new();
    for to in steps(deposit, &deposits) {
        all.push((to, fill.clone(), refund.clone(), *failure));
    }
    // The solver sends only on a final deposit, and never one thing while the other lives.
    let funded = *deposit == Some(Final);
    for to in steps(fill, &states) {
        let begins = to == Some(State::Broadcast) && dead(fill);
        if !begins || (funded && failure.is_none() && dead(refund)) {
            all.push((*deposit, to, refund.clone(), *failure));
        }
    }
    for to in steps(refund, &states) {
        let begins = to == Some(State::Broadcast) && dead(refund);
        if !begins || (funded && failure.is_some() && dead(fill)) {
            all.push((*deposit, fill.clone(), to, *failure));
        }
    }
    if failure.is_none() && funded && dead(fill) {
        let failed = Some(FailReason::Slippage);
        all.push((*deposit, fill.clone(), refund.clone(), failed));
    }
    all
}

#[test]
fn no_step_leads_where_the_lifecycle_does_not() {
    use Status::{Failure, Pending, Refund, Submitted, Success, Waiting};
    // (from, to, only where the deposit is or was reorged)
    let legal = [
        (Waiting, Pending, false),
        (Pending, Submitted, false),
        (Submitted, Success, false),
        (Submitted, Pending, false),
        (Pending, Refund, false),
        (Pending, Waiting, true),
        (Pending, Failure, true),
        (Submitted, Failure, true),
        (Failure, Submitted, true),
        (Failure, Waiting, true),
        (Success, Failure, true),
        (Failure, Success, true),
        (Failure, Pending, true),
    ];
    let mut seen: Vec<World> = vec![(None, None, None, None)];
    let mut used = Vec::new();
    let mut at = 0;
    while let Some(here) = seen.get(at).cloned() {
        at += 1;
        let (from, _) = judged(&world(&here));
        for there in next(&here) {
            let (to, _) = judged(&world(&there));
            let reorg = [here.0, there.0].contains(&Some(Standing::Reorged));
            let found = legal
                .iter()
                .find(|(a, b, only)| *a == from && *b == to && (reorg || !only));
            assert!(
                from == to || found.is_some(),
                "{from:?} to {to:?}: {here:?} to {there:?}"
            );
            used.push((from, to));
            if !seen.contains(&there) {
                seen.push(there);
            }
        }
    }
    for (from, to, _) in legal {
        assert!(
            used.contains(&(from, to)),
            "{from:?} to {to:?} never happens"
        );
    }
}
