use vm::Family;

use super::*;
use crate::{
    request::{fact::Inclusion, fixtures, reason::RefundFailReason},
    store::rows::claim::Pause,
};

const NOW: u64 = 1_700_000_000;
const PATIENCE: Patience = Patience {
    funds: 300,
    forced_by_all: true,
};

fn id(number: u8) -> B256 {
    B256::repeat_byte(number)
}

fn deposit(number: u8, standing: Standing) -> Deposit {
    Deposit {
        onchain_id: id(number),
        network: "origin".into(),
        transaction: "0x1".into(),
        depository: fixtures::USER.into(),
        depositor: fixtures::USER.into(),
        currency: fixtures::USDC.to_uppercase().replacen("0X", "0x", 1),
        amount: U256::from(100_000_000),
        place: Inclusion {
            number: 1,
            hash: id(1),
            time: NOW,
        },
        standing,
        together: 1,
        own: true,
        named_by_other: false,
    }
}

/// A final deposit of one unit less than the order asks for.
fn low(number: u8) -> Deposit {
    let mut low = deposit(number, FUNDED);
    low.amount -= U256::ONE;
    low
}

fn leg(purpose: Purpose, deposit: u8, stage: Stage) -> Leg {
    Leg {
        purpose,
        deposit: id(deposit),
        reason: None,
        network: "destination".into(),
        lane: "destination".into(),
        attempt: Default::default(),
        currency: fixtures::USDC.into(),
        amount: U256::ONE,
        payments: Vec::new(),
        transaction: None,
        stage,
        wasted: U256::ZERO,
        begun: 0,
    }
}

fn family(_: &str) -> Option<&'static Family> {
    Some(vm::SETTLEMENT)
}

/// What there is, and what it is worth to whoever gives it back.
struct Fixture {
    request: Request,
    facts: Facts,
    claim: Claim,
    worths: HashMap<B256, Worth>,
    barred: HashSet<B256>,
    closed: HashSet<B256>,
    families: fn(&str) -> Option<&'static Family>,
    patience: Patience,
    margins: fn(&str) -> u64,
}

impl Fixture {
    fn new(deposits: &[Deposit], legs: &[Leg]) -> Self {
        let worths = deposits
            .iter()
            .map(|one| (one.onchain_id, Worth::Something));
        let mut request = fixtures::request(1);
        request.order.solver = "0x00000000000000000000000000000000000000a1".into();
        Self {
            request,
            worths: worths.collect(),
            facts: Facts {
                deposits: deposits.to_vec(),
                ..Facts::default()
            },
            claim: Claim {
                legs: legs.to_vec(),
                ..Claim::default()
            },
            barred: HashSet::new(),
            closed: HashSet::new(),
            families: family,
            patience: PATIENCE,
            margins: |_| 60,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn case(&self, now: u64) -> Case<'_> {
        Case {
            request: &self.request,
            facts: &self.facts,
            claim: &self.claim,
            now,
            patience: self.patience,
            margins: &self.margins,
            worths: &self.worths,
            barred: &self.barred,
            closed: &self.closed,
            families: &self.families,
        }
    }

    fn at(&self, now: u64) -> (Vec<Step>, Next) {
        let Plan { steps, next } = plan(&self.case(now));
        (steps, next)
    }

    fn plan(&self) -> (Vec<Step>, Next) {
        self.at(NOW)
    }
}

fn rest(next: Next) -> (Vec<Step>, Next) {
    (Vec::new(), next)
}

fn one(step: Step) -> (Vec<Step>, Next) {
    (vec![step], Next::Wait)
}

fn fund(number: u8) -> Step {
    let deposit = id(number);
    Step::Fund { deposit }
}

fn fail(reason: FailReason) -> Step {
    let deposit = id(1);
    Step::Fail { deposit, reason }
}

fn refund(number: u8, reason: FailReason) -> Step {
    Step::Refund {
        deposit: id(number),
        reason,
        minimum: U256::ZERO,
    }
}

/// The deposits that are parked: number, why, whether they count for nothing.
fn parks(steps: &[Step]) -> Vec<(B256, RefundFailReason, bool)> {
    let parked = steps.iter().flat_map(|step| match step {
        Step::Park(parked) => parked.as_slice(),
        _ => &[],
    });
    parked
        .map(|one| (one.deposit, one.why, one.minor))
        .collect()
}

use FailReason::{
    DepositChainMismatch, DepositedAmountTooLowToFill, DoubleSpend, IncorrectDepositCurrency,
    ManualAdminRefund, OrderExpired, SolverBalanceTooLow, SolverCapacityExceeded, TtlExpired,
};
use Purpose::{Excess, Fill, Refund};
use RefundFailReason::{AmountTooLowToRefund, ManualRefundRequired};
use Stage::{Confirmed, Failed, Final, Open};
use Standing::{Included, Reorged};

const FUNDED: Standing = Standing::Final;

#[test]
fn only_final_deposits_are_acted_on() {
    assert_eq!(Fixture::new(&[], &[]).plan(), rest(Next::Done));
    let early = Fixture::new(&[deposit(1, Included)], &[]);
    assert_eq!(early.plan(), rest(Next::Wait));
    let gone = Fixture::new(&[deposit(1, Reorged)], &[]);
    assert_eq!(gone.plan(), rest(Next::Done));
    let both = [deposit(1, Included), deposit(2, FUNDED)];
    assert_eq!(Fixture::new(&both, &[]).plan(), one(fund(2)));
    let user = |fixture: &mut Fixture| fixture.request.execution = Execution::User;
    // Nobody is paid where the user acts by himself; what is not final yet is not forgotten.
    assert_eq!(Fixture::new(&both, &[]).with(user).plan(), rest(Next::Wait));
    let last = Fixture::new(&both[1..], &[]);
    assert_eq!(last.with(user).plan(), rest(Next::Done));
}

#[test]
fn the_matching_deposit_decides_whatever_else_was_deposited_and_when() {
    let mut elsewhere = deposit(2, FUNDED);
    elsewhere.network = "destination".into();
    let mut foreign = deposit(3, FUNDED);
    foreign.currency = vm::SETTLEMENT.codec.native().into();
    let others = [low(1), elsewhere, foreign];
    for at in 0..=others.len() {
        let mut all = others.to_vec();
        all.insert(at, deposit(9, FUNDED));
        let (steps, next) = Fixture::new(&all, &[]).plan();
        assert_eq!(steps[0], fund(9), "{at}");
        assert_eq!(next, Next::Wait);
        assert!(steps.contains(&refund(1, DepositedAmountTooLowToFill)));
        let parked = parks(&steps);
        let listed = |number| (id(number), ManualRefundRequired, false);
        assert_eq!(parked, [listed(2), listed(3)], "{at}");
    }
    // Without it they end all the same, and the order can still be filled.
    let (steps, _) = Fixture::new(&others, &[]).plan();
    let filled = steps
        .iter()
        .any(|step| matches!(step, Step::Fund { .. } | Step::Fail { .. }));
    assert!(!filled && steps.len() == 2, "{steps:?}");
}

#[test]
fn mismatches_have_their_reasons() {
    type Change = fn(&mut Deposit);
    let table: [(Option<FailReason>, Change); 5] = [
        (None, |_| ()),
        (None, |deposit| deposit.amount = U256::MAX),
        (Some(DepositChainMismatch), |deposit| {
            deposit.network = "destination".into();
        }),
        (Some(IncorrectDepositCurrency), |deposit| {
            deposit.currency = fixtures::USER.into();
        }),
        (Some(DepositedAmountTooLowToFill), |deposit| {
            deposit.amount = U256::ZERO;
        }),
    ];
    for (reason, change) in table {
        let mut deposit = deposit(1, FUNDED);
        change(&mut deposit);
        assert_eq!(mismatch(&fixtures::request(1), &deposit), reason);
    }
    let mut request = fixtures::request(1);
    request.order.inputs.clear();
    let reason = mismatch(&request, &deposit(1, FUNDED));
    assert_eq!(reason, Some(FailReason::Unknown));
}

/// Every stage of a fill and of a refund, of one deposit or of two: whatever they are, no deposit is
/// used twice, nothing is filled beside or after a fill or a failure, and what is open is waited for.
#[test]
fn nothing_illegal_follows_any_combination() {
    let stages = [None, Some(Open), Some(Confirmed), Some(Final), Some(Failed)];
    let pairs = stages
        .iter()
        .flat_map(|fill| stages.iter().map(move |refund| (*fill, *refund)));
    for (fill, refund) in pairs {
        for (failure, count) in [None, Some(TtlExpired)]
            .iter()
            .flat_map(|f| [(f, 1), (f, 2)])
        {
            let legs: Vec<_> = [(Fill, fill), (Refund, refund)]
                .into_iter()
                .filter_map(|(purpose, stage)| Some(leg(purpose, 1, stage?)))
                .collect();
            let deposits: Vec<_> = (1..=count).map(|n| deposit(n, FUNDED)).collect();
            let fixture = Fixture::new(&deposits, &legs).with(|fixture| {
                fixture.claim.failure = *failure;
                if fill == Some(Failed) || refund.is_some() {
                    fixture.claim.failure = failure.or(Some(FailReason::Unknown));
                }
            });
            let (steps, next) = fixture.plan();
            let case = format!("{fill:?} {refund:?} {failure:?} {count}: {steps:?} {next:?}");
            let live = |stage: Option<Stage>| stage.is_some_and(|stage| stage != Failed);
            let paid = |stage| matches!(stage, Some(Confirmed | Final));
            let used = |deposit: &B256| *deposit == id(1) && (live(fill) || live(refund));
            for step in &steps {
                match step {
                    Step::Fund { deposit } => {
                        assert!(!live(fill) && fixture.claim.failure.is_none(), "{case}");
                        assert!(!used(deposit), "{case}");
                    }
                    Step::Refund {
                        deposit, reason, ..
                    } => {
                        assert!(!used(deposit) && fill != Some(Open), "{case}");
                        assert_eq!(*reason == DoubleSpend, paid(fill), "{case}");
                    }
                    _ => panic!("{case}"),
                }
            }
            let moving = |stage| matches!(stage, Some(Open | Confirmed));
            let waits = moving(fill) || moving(refund) || !steps.is_empty();
            assert_eq!(next == Next::Wait, waits, "{case}");
        }
    }
}

#[test]
fn each_deadline_has_its_own_end() {
    let funded = || Fixture::new(&[deposit(1, FUNDED)], &[]);
    let ttl = funded().with(|fixture| fixture.request.expires_at = Some(NOW + 1));
    assert_eq!(ttl.at(NOW), one(fund(1)));
    assert_eq!(ttl.at(NOW + 1), one(fail(TtlExpired)));
    // The fill's deadline alone has passed: what was deposited goes back.
    let due = funded().with(|fixture| {
        fixture.request.order.output.deadline = u32::try_from(NOW + 61).unwrap();
    });
    assert_eq!(due.at(NOW), one(fund(1)));
    assert_eq!(due.at(NOW + 1), one(fail(OrderExpired)));
    let failed = due.with(|fixture| fixture.claim.failure = Some(OrderExpired));
    assert_eq!(failed.at(NOW + 1), one(refund(1, OrderExpired)));
    // Both have: nothing that is paid would be attested.
    let refund_by = claimable::until(&deposit(1, FUNDED));
    assert_eq!(failed.at(refund_by - 61), one(refund(1, OrderExpired)));
    let (steps, _) = failed.at(refund_by - 60);
    assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
    // What its depositor can take back is not paid for, whatever the order's deadlines say.
    let whole = funded();
    let kept = claimable::until(&deposit(1, FUNDED));
    assert_eq!(kept, NOW + 604_800 - 21_600);
    let day = 86_400;
    assert_eq!(whole.at(kept - day - 61), one(fund(1)));
    assert_eq!(whole.at(kept - day - 60), one(fail(OrderExpired)));
    // What is not filled any more is given back for a day.
    let unfilled = whole.with(|fixture| fixture.claim.failure = Some(OrderExpired));
    assert_eq!(unfilled.at(kept - day - 60), one(refund(1, OrderExpired)));
    assert_eq!(unfilled.at(kept - 61), one(refund(1, OrderExpired)));
    // The refund's alone: the order can still be filled.
    let early = funded().with(|fixture| {
        fixture.request.order.inputs[0].refunds[0].deadline = u32::try_from(NOW).unwrap();
    });
    assert_eq!(early.at(NOW), one(fund(1)));
}

/// Blocks of the chain that pays may be rare: a payment that lands behind its deadline is nobody's but the solver's.
#[test]
fn deadline_is_as_near_as_blocks_of_the_chain_that_pays_are_rare() {
    let hours = 14_400;
    let until = |deadline: u64, margins: fn(&str) -> u64| {
        Fixture::new(&[deposit(1, FUNDED)], &[]).with(|fixture| {
            fixture.request.order.output.deadline = u32::try_from(NOW + deadline).unwrap();
            fixture.margins = margins;
        })
    };
    // Nine minutes and one minute before the deadline, and as late as it may be.
    let slow = |network: &str| if network == "destination" { 14_400 } else { 60 };
    for deadline in [60, 540, hours] {
        assert_eq!(
            until(deadline, slow).plan(),
            one(fail(OrderExpired)),
            "{deadline}"
        );
    }
    assert_eq!(until(hours + 1, slow).plan(), one(fund(1)));
    // The origin's blocks say nothing of a fill, and the destination's nothing of a refund.
    let rare = |network: &str| if network == "origin" { 14_400 } else { 60 };
    assert_eq!(until(61, rare).plan(), one(fund(1)));
    let failed = |margins: fn(&str) -> u64| {
        until(0, margins).with(|fixture| fixture.claim.failure = Some(OrderExpired))
    };
    let refund_by = claimable::until(&deposit(1, FUNDED));
    let refunded = one(refund(1, OrderExpired));
    assert_eq!(failed(slow).at(refund_by - 61), refunded);
    assert_eq!(failed(rare).at(refund_by - hours - 1), refunded);
    let (steps, _) = failed(rare).at(refund_by - hours);
    assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
}

#[test]
fn the_refund_path_is_for_keys_where_it_is_not_for_all() {
    let force = || {
        Fixture::new(&[deposit(1, FUNDED)], &[]).with(|fixture| {
            fixture.request.referrer = Some(FORCE_REFUND.into());
        })
    };
    assert_eq!(force().plan(), one(fail(ManualAdminRefund)));
    let stranger = force().with(|fixture| fixture.patience.forced_by_all = false);
    assert_eq!(stranger.plan(), one(fund(1)));
    let known = stranger.with(|fixture| fixture.request.api_key = Some("app".into()));
    assert_eq!(known.plan(), one(fail(ManualAdminRefund)));
}

#[test]
fn refunds_that_fail_are_tried_again_until_their_deadline() {
    let paused = |tries: usize, until| {
        Fixture::new(&[deposit(1, FUNDED)], &vec![leg(Refund, 1, Failed); tries]).with(|fixture| {
            fixture.claim.failure = Some(TtlExpired);
            fixture.claim.pauses = vec![Pause {
                deposit: id(1),
                tries: 4,
                until,
                why: AmountTooLowToRefund,
            }];
        })
    };
    assert_eq!(paused(7, NOW + 1).plan(), rest(Next::Until(NOW + 1)));
    assert_eq!(paused(7, NOW).plan(), one(refund(1, TtlExpired)));
    let (steps, _) = paused(0, NOW + 1).at(claimable::until(&deposit(1, FUNDED)) - 60);
    assert_eq!(parks(&steps), [(id(1), AmountTooLowToRefund, false)]);
    let (steps, _) = paused(8, NOW).plan();
    assert_eq!(parks(&steps), [(id(1), AmountTooLowToRefund, false)]);
    let gone = paused(0, NOW).with(|fixture| fixture.request.order.inputs[0].refunds.clear());
    assert_eq!(
        parks(&gone.plan().0),
        [(id(1), ManualRefundRequired, false)]
    );
    let parked = paused(0, NOW).with(|fixture| fixture.claim.parked = vec![id(1)]);
    assert_eq!(parked.plan(), rest(Next::Done));
}

#[test]
fn dust_and_unknown_tokens_are_parked_and_say_nothing() {
    for (worth, why) in [
        (Worth::Dust, AmountTooLowToRefund),
        (Worth::Unknown, ManualRefundRequired),
    ] {
        let fixture = Fixture::new(&[low(1)], &[]).with(|fixture| {
            fixture.worths.insert(id(1), worth);
        });
        assert_eq!(parks(&fixture.plan().0), [(id(1), why, true)]);
    }
    // Without a price nothing is decided about it, and nothing else waits for that.
    let both = [low(1), deposit(2, FUNDED)];
    let fixture = Fixture::new(&both, &[]).with(|fixture| fixture.worths.clear());
    assert_eq!(fixture.plan(), one(fund(2)));
    // What the order asked for is given back whatever it is worth by now.
    let fallen = Fixture::new(&[deposit(1, FUNDED)], &[]).with(|fixture| {
        fixture.worths.insert(id(1), Worth::Dust);
        fixture.claim.failure = Some(TtlExpired);
    });
    assert_eq!(fallen.plan(), one(refund(1, TtlExpired)));
}

#[test]
fn what_has_no_price_is_parked_when_it_could_not_be_given_back_any_more() {
    let until = claimable::until(&deposit(1, FUNDED));
    let mut foreign = deposit(1, FUNDED);
    foreign.currency = vm::SETTLEMENT.codec.native().into();
    let mut much = deposit(1, FUNDED);
    much.amount += U256::from(7);
    let filled = vec![leg(Fill, 1, Final)];
    for (deposit, legs) in [(low(1), vec![]), (foreign, vec![]), (much, filled)] {
        let fixture = Fixture::new(&[deposit], &legs).with(|fixture| fixture.worths.clear());
        assert_eq!(fixture.plan(), rest(Next::Until(NOW + 600)));
        assert_eq!(fixture.at(until - 61), rest(Next::Until(until + 539)));
        let (steps, _) = fixture.at(until - 60);
        assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
    }
}

#[test]
fn what_a_network_that_is_not_opened_owes_or_holds_waits_until_it_is_too_late() {
    let closed = |fixture: &mut Fixture| {
        fixture.closed.insert(id(1));
    };
    let nowhere = |fixture: &mut Fixture| {
        fixture.families = |network| (network != "destination").then_some(vm::SETTLEMENT);
    };
    let until = claimable::until(&deposit(1, FUNDED));
    let listed = vec![(id(1), ManualRefundRequired, false)];
    for missing in [&closed as &dyn Fn(&mut Fixture), &nowhere] {
        let fixture = |deposit: Deposit| Fixture::new(&[deposit], &[]).with(missing);
        let funded = fixture(deposit(1, FUNDED));
        assert_eq!(funded.plan(), rest(Next::Until(NOW + 600)));
        assert_eq!(funded.at(until - 86_460), one(fail(OrderExpired)));
        let failed = funded.with(|fixture| fixture.claim.failure = Some(OrderExpired));
        for fixture in [failed, fixture(low(1))] {
            assert_eq!(fixture.plan(), rest(Next::Until(NOW + 600)));
            assert_eq!(fixture.at(until - 61), rest(Next::Until(until + 539)));
            assert_eq!(parks(&fixture.at(until - 60).0), listed);
        }
    }
    // Another deposit, and an order that is never attested, wait for no start.
    let both = Fixture::new(&[low(1), deposit(2, FUNDED)], &[]).with(closed);
    assert_eq!(both.plan(), one(fund(2)));
    let broken = Fixture::new(&[deposit(1, FUNDED)], &[]).with(|fixture| {
        fixture.request.order.output.payments[0].currency = "x".into();
    });
    assert_eq!(broken.plan(), one(fail(FailReason::Unknown)));
}

#[test]
fn parts_that_double_get_no_more_turns_of_one_depositor() {
    let mut parts: Vec<_> = (1..=4).map(low).collect();
    for (part, amount) in parts.iter_mut().zip([1, 1, 1, 4]) {
        part.amount = U256::from(amount);
    }
    let legs: Vec<_> = (1..=3).map(|n| leg(Refund, n, Final)).collect();
    let (steps, _) = Fixture::new(&parts, &legs).plan();
    assert_eq!(parks(&steps), [(id(4), ManualRefundRequired, false)]);
}

#[test]
fn a_few_deposits_of_an_order_are_given_back_and_the_rest_is_parked() {
    let lows: Vec<_> = (1..=20).map(low).collect();
    let begun = |count: u8| -> Vec<_> { (1..=count).map(|n| leg(Refund, n, Final)).collect() };
    let reason = DepositedAmountTooLowToFill;
    let (steps, _) = Fixture::new(&lows[..3], &begun(2)).plan();
    assert_eq!(steps, [refund(3, reason)]);
    let (steps, _) = Fixture::new(&lows[..4], &begun(3)).plan();
    assert_eq!(parks(&steps), [(id(4), ManualRefundRequired, false)]);
    // Depositors by the dozen are no way around it.
    let mut many = lows.clone();
    for (number, deposit) in (1_u8..).zip(&mut many) {
        deposit.depositor = format!("0x{}", format!("{number:02x}").repeat(20));
    }
    let (steps, _) = Fixture::new(&many[..12], &begun(11)).plan();
    assert_eq!(steps, [refund(12, reason)]);
    let (steps, _) = Fixture::new(&many[..13], &begun(12)).plan();
    assert_eq!(parks(&steps), [(id(13), ManualRefundRequired, false)]);
    // The deposit that paid for the order has its turn whatever strangers did.
    many.truncate(12);
    many.push(deposit(99, FUNDED));
    let fixture = Fixture::new(&many, &begun(12)).with(|fixture| {
        fixture.claim.failure = Some(TtlExpired);
    });
    assert_eq!(fixture.plan(), one(refund(99, TtlExpired)));
}

#[test]
fn strangers_small_deposits_take_nobodys_turn() {
    // A part of what the user deposits a second time, in their own names and in the user's.
    let small = |number: u8, own_name: bool| {
        let mut small = deposit(number, FUNDED);
        small.amount = U256::from(1_000_000);
        small.own = false;
        if !own_name {
            small.depositor = format!("0x{}", format!("{number:02x}").repeat(20));
        }
        small
    };
    for own_name in [false, true] {
        let mut all = vec![deposit(1, FUNDED)];
        all.extend((2..=13).map(|number| small(number, own_name)));
        all.push(deposit(99, FUNDED));
        let mut legs = vec![leg(Fill, 1, Final)];
        legs.extend((2..=13).map(|number| leg(Refund, number, Final)));
        let fixture = Fixture::new(&all, &legs);
        assert_eq!(fixture.plan(), one(refund(99, DoubleSpend)), "{own_name}");
        // Of their own they have had enough.
        all.push(small(14, own_name));
        let (steps, _) = Fixture::new(&all, &legs).plan();
        assert_eq!(parks(&steps), [(id(14), ManualRefundRequired, false)]);
    }
    // As much from a dozen strangers takes each other's turn, and not the user's.
    let mut all = vec![deposit(1, FUNDED)];
    for number in 2..=14 {
        let mut other = deposit(number, FUNDED);
        other.depositor = format!("0x{}", format!("{number:02x}").repeat(20));
        all.push(other);
    }
    all.push(deposit(99, FUNDED));
    let mut legs = vec![leg(Fill, 1, Final)];
    legs.extend((2..=13).map(|number| leg(Refund, number, Final)));
    let (steps, _) = Fixture::new(&all, &legs).plan();
    assert_eq!(steps[0], refund(99, DoubleSpend));
    assert_eq!(parks(&steps), [(id(14), ManualRefundRequired, false)]);
}

#[test]
fn a_matching_deposit_that_nobody_attests_ends_by_itself_and_the_next_one_decides() {
    let crowded = || {
        let mut crowded = deposit(1, FUNDED);
        crowded.together = 1 + vm::protocol::limits::ACTIONS as u32;
        crowded
    };
    let (steps, _) = Fixture::new(&[crowded(), deposit(2, FUNDED)], &[]).plan();
    assert_eq!(steps[0], fund(2));
    assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
    // Alone it fails no order, either: its user may still deposit.
    let (steps, _) = Fixture::new(&[crowded()], &[]).plan();
    assert_eq!(steps.len(), 1);
    assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
}

#[test]
fn a_deposit_whose_order_another_names_is_parked_and_the_payers_own_decides() {
    let named = |number, named_by_other| Deposit {
        named_by_other,
        ..deposit(number, FUNDED)
    };
    let parked = [(id(1), ManualRefundRequired, false)];
    let (steps, _) = Fixture::new(&[named(1, true), named(2, false)], &[]).plan();
    assert_eq!(steps[0], fund(2));
    assert_eq!(parks(&steps), parked);
    let (steps, _) = Fixture::new(&[named(1, true)], &[]).plan();
    assert_eq!((steps.len(), parks(&steps)), (1, parked.to_vec()));
    let (steps, _) = Fixture::new(&[named(1, false)], &[]).plan();
    assert_eq!(steps, [fund(1)]);
}

#[test]
fn one_refund_on_its_way_holds_up_no_fill_and_no_other_refund() {
    let all = [low(1), deposit(2, FUNDED), low(3)];
    let (steps, _) = Fixture::new(&all, &[leg(Refund, 1, Open)]).plan();
    assert_eq!(steps, [fund(2), refund(3, DepositedAmountTooLowToFill)]);
    let legs = [leg(Refund, 1, Open), leg(Fill, 2, Open)];
    let (steps, _) = Fixture::new(&all, &legs).plan();
    assert_eq!(steps, [refund(3, DepositedAmountTooLowToFill)]);
}

#[test]
fn what_exceeds_an_order_goes_back_when_its_fill_is_final() {
    let mut much = deposit(1, FUNDED);
    much.amount += U256::from(7);
    let fixture = |legs: &[Leg]| Fixture::new(std::slice::from_ref(&much), legs);
    for stage in [Open, Confirmed] {
        assert_eq!(fixture(&[leg(Fill, 1, stage)]).plan(), rest(Next::Wait));
    }
    let filled = || fixture(&[leg(Fill, 1, Final)]);
    let back = Step::Excess {
        deposit: id(1),
        amount: U256::from(7),
    };
    assert_eq!(filled().plan(), one(back));
    let dust = filled().with(|fixture| {
        fixture.worths.insert(id(1), Worth::Dust);
    });
    assert_eq!(dust.plan(), rest(Next::Done));
    let unknown = filled().with(|fixture| fixture.worths.clear());
    assert_eq!(unknown.plan(), rest(Next::Until(NOW + 600)));
    for stage in [Open, Confirmed] {
        let begun = fixture(&[leg(Fill, 1, Final), leg(Excess, 1, stage)]);
        assert_eq!(begun.plan(), rest(Next::Wait));
    }
    let done = fixture(&[leg(Fill, 1, Final), leg(Excess, 1, Final)]);
    assert_eq!(done.plan(), rest(Next::Done));
    // What cannot be given back is the operator's: at the deadline, and when it fails in every block.
    let (steps, _) = filled().at(claimable::until(&deposit(1, FUNDED)) - 60);
    assert_eq!(parks(&steps), [(id(1), ManualRefundRequired, false)]);
    let lost = vec![leg(Excess, 1, Failed); 8];
    let failing = filled().with(|fixture| fixture.claim.legs.extend(lost));
    let Step::Park(parked) = &failing.plan().0[0] else {
        panic!("{:?}", failing.plan());
    };
    assert_eq!(parked[0].amount, U256::from(7));
    let parked = failing.with(|fixture| fixture.claim.parked = vec![id(1)]);
    assert_eq!(parked.plan(), rest(Next::Done));
    let again = parked.with(|fixture| {
        fixture.claim.parked.clear();
        fixture.claim.released = vec![id(1)];
    });
    assert!(matches!(again.plan().0[..], [Step::Excess { .. }]));
    // Of an order that fails everything goes back at once.
    let failed = fixture(&[leg(Fill, 1, Failed)]).with(|fixture| {
        fixture.claim.failure = Some(TtlExpired);
    });
    assert_eq!(failed.plan(), one(refund(1, TtlExpired)));
}

#[test]
fn an_offer_says_what_becomes_of_the_deposit_that_decides() {
    let fixture = Fixture::new(&[deposit(1, FUNDED)], &[]);
    // However long its chain took: it waits from the first look on.
    for offer in [Offer::Short, Offer::Away, Offer::Reverts] {
        assert_eq!(
            super::fund(&fixture.case(NOW + 9_999), &id(1), &offer),
            Funding::Wait
        );
    }
    let waiting =
        |fixture: &mut Fixture| fixture.claim = claim::wait(&fixture.claim, id(1), NOW).unwrap();
    let fixture = fixture.with(waiting);
    let judged = |offer: &Offer, now| super::fund(&fixture.case(now), &id(1), offer);
    let amounts = vec![U256::from(5)];
    for besides in [None, Some(U256::from(7))] {
        assert_eq!(
            judged(&Offer::Pay(amounts.clone(), besides), NOW),
            Funding::Pay(amounts.clone(), besides)
        );
    }
    let refused = judged(&Offer::Refuse(FailReason::Slippage), NOW);
    assert_eq!(refused, Funding::Fail(FailReason::Slippage));
    for (offer, reason) in [
        (Offer::Short, SolverBalanceTooLow),
        (Offer::Held, SolverCapacityExceeded),
        (Offer::Reverts, FailReason::ExecutionReverted),
    ] {
        assert_eq!(judged(&offer, NOW + 299), Funding::Wait);
        assert_eq!(judged(&offer, NOW + 300), Funding::Fail(reason));
    }
    assert_eq!(judged(&Offer::Away, NOW + 86_399), Funding::Wait);
    let away = judged(&Offer::Away, NOW + 86_400);
    assert_eq!(away, Funding::Fail(FailReason::NoQuotes));
    // What another deposit has waited for does not count.
    let waiting =
        |fixture: &mut Fixture| fixture.claim = claim::wait(&fixture.claim, id(2), NOW).unwrap();
    let other = Fixture::new(&[deposit(1, FUNDED)], &[]).with(waiting);
    let judged = |number| super::fund(&other.case(NOW + 300), &id(number), &Offer::Short);
    assert_eq!(judged(1), Funding::Wait);
    assert_eq!(judged(2), Funding::Fail(FailReason::SolverBalanceTooLow));
}

#[test]
fn whose_orders_are_not_tried_decides_nobody_elses() {
    let deposits = [deposit(1, FUNDED), deposit(2, FUNDED)];
    let barred = |fixture: &mut Fixture| {
        fixture.barred.insert(id(1));
    };
    assert_eq!(Fixture::new(&deposits, &[]).plan().0, [fund(1)]);
    let (steps, _) = Fixture::new(&deposits, &[]).with(barred).plan();
    assert_eq!(steps, [fund(2), refund(1, SolverCapacityExceeded)]);
    // Alone it goes back at once, and has not failed the order.
    let alone = Fixture::new(&deposits[..1], &[]).with(barred);
    assert_eq!(alone.plan(), one(refund(1, SolverCapacityExceeded)));
    let (steps, _) = Fixture::new(&deposits, &[leg(Refund, 1, Final)])
        .with(barred)
        .plan();
    assert_eq!(steps, [fund(2)]);
    // What another has filled goes back.
    let filled = Fixture::new(&deposits, &[leg(Fill, 2, Final)]).with(barred);
    let (steps, _) = filled.plan();
    assert_eq!(steps, [refund(1, FailReason::DoubleSpend)]);
}

#[test]
fn the_users_own_deposit_decides_and_others_fail_no_order() {
    let mut deposits = [deposit(1, FUNDED), deposit(2, FUNDED)];
    deposits[0].depositor = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc".into();
    assert_eq!(Fixture::new(&deposits, &[]).plan().0, [fund(2)]);
    // In his name is not his.
    deposits[0].depositor = fixtures::USER.into();
    deposits[0].own = false;
    assert_eq!(Fixture::new(&deposits, &[]).plan().0, [fund(2)]);
    // Another's decides as long as there is no other one; of two whichever can be paid for.
    assert_eq!(Fixture::new(&deposits[..1], &[]).plan(), one(fund(1)));
    deposits[1].own = false;
    assert_eq!(Fixture::new(&deposits, &[]).plan().0, [fund(1), fund(2)]);
    deposits[1].own = true;
    let refused = |fixture: &mut Fixture| {
        fixture.claim = claim::refuse(&fixture.claim, id(1), FailReason::Slippage);
    };
    let alone = Fixture::new(&deposits[..1], &[]).with(refused);
    assert_eq!(alone.plan(), one(refund(1, FailReason::Slippage)));
    let (steps, _) = Fixture::new(&deposits, &[]).with(refused).plan();
    assert_eq!(steps, [fund(2), refund(1, FailReason::Slippage)]);
}
