//! Deposits that return through the hub.

use vm::protocol::limits;

use super::*;
use crate::{
    attest::{deposit, execution},
    request::{
        fact::Purpose,
        reason::{FailReason, RefundFailReason},
    },
    store::rows::{
        claim::{self, Claim, Leg, Stage},
        order,
        parked::{self, Parked},
    },
};

/// The refusal and the change that causes it.
type Case = (&'static str, fn(&mut Fixture, &mut RecoverClaim));

fn claim(fixture: &Fixture, with_order: bool) -> RecoverClaim {
    let order = (fixture.order.clone(), fixture.signature.clone());
    RecoverClaim {
        chain: "ethereum".into(),
        transaction: fixture.deposits[0].tx.text.to_string(),
        onchain_id: fixture.inputs[0].onchain_id.clone(),
        order: with_order.then_some(order),
        hints: None,
    }
}

/// A world in which the hub has minted the deposit to the order's account.
fn funded(fixture: &Fixture) -> World {
    let mut world = world().playing(fixture);
    world.mint(&fixture.deposits[0]);
    *world.hub.balance.lock().unwrap() = U256::from(1000);
    world.oracle.hub.settings.generic_mapping = Some(EvmAddress::repeat_byte(8));
    world
}

/// Eight days after the deposit.
fn late(world: &mut World) {
    world.oracle.clock = || fixtures::DEADLINE + 700_000;
}

async fn recovered(world: &World, claim: &RecoverClaim) -> &'static str {
    word(world.oracle.recover(claim, None).await)
}

/// The fixture with a deposit in another currency than its order's.
fn wrong_currency() -> Fixture {
    Fixture::new().with(|s| s.deposits[0].deposits()[0].currency = address(fixtures::TOKEN))
}

/// The fixture with a deposit whose payer did not send the data that names its order.
fn named_by_other() -> Fixture {
    Fixture::new().with(|s| s.deposits[0].deposits()[0].named_by_other = true)
}

/// The fixture with a deposit that names its order in capitals: claims compare the text.
fn in_capitals() -> Fixture {
    Fixture::new().with(|s| {
        let deposit = &mut s.deposits[0].deposits()[0];
        let capitals = deposit.id.to_uppercase().replace("0X", "0x");
        assert_ne!(*capitals, *deposit.id, "no letter in it");
        deposit.id = capitals.into();
    })
}

#[tokio::test]
async fn what_nobody_can_be_paid_from_goes_back_at_once_with_its_order() {
    for fixture in [wrong_currency(), named_by_other(), in_capitals()] {
        goes_back(&fixture).await;
    }
}

async fn goes_back(fixture: &Fixture) {
    let world = funded(fixture);
    let attested = world
        .oracle
        .recover(&claim(fixture, true), None)
        .await
        .unwrap();
    let key = vm::protocol::id::deterministic(&[&fixture.inputs[0].onchain_id, "recover"]);
    assert_eq!(attested.execution.idempotency_key, key);
    let action = vm::protocol::action::Action::decode(&attested.execution.actions[0]).unwrap();
    let vm::protocol::action::Action::Transfer { to, amount, .. } = action else {
        panic!("{action:?}");
    };
    let depositor = address(DEPOSITOR);
    let ethereum = vm::ChainId::new("ethereum");
    assert_eq!(to, vm::protocol::hub::alias(&ethereum, &depositor));
    assert_eq!(amount, U256::from(1000));
    let again = world
        .oracle
        .recover(&claim(fixture, true), None)
        .await
        .unwrap();
    assert_eq!(again, attested);
    // A young deposit without its order.
    assert_eq!(
        recovered(&world, &claim(fixture, false)).await,
        "ORDER_REQUIRED"
    );
    // It rests on the deposit's block, and on the hub's that shows the balance.
    let deposited = fixture.deposits[0].seen().receipt().unwrap().block.clone();
    for (chain, block) in [("ethereum", deposited), ("relay", fixtures::block(10))] {
        assert_eq!(world.watched(chain, "recover").await, [block], "{chain}");
        let (journal, halted) = (&world.oracle.journal, vm::ChainId::new(chain));
        journal.halt(&halted, "reorg", 1).await.unwrap();
        let held = recovered(&world, &claim(fixture, true)).await;
        assert_eq!(held, "journal", "{chain}");
        let id = journal.halted(&halted).await.unwrap().unwrap().id();
        assert!(journal.clear(&halted, &id).await.unwrap());
    }
    assert_eq!(recovered(&world, &claim(fixture, true)).await, "OK");
}

/// A reorg may still take it away.
#[tokio::test]
async fn a_deposit_that_is_not_final_does_not_return() {
    let fixture = wrong_currency();
    let world = funded(&fixture).early();
    let found = recovered(&world, &claim(&fixture, true)).await;
    assert_eq!(found, "TRANSACTION_NOT_FINALIZED");
    *world.ethereum.fresh.lock().unwrap() = fixture.deposits[0].head.clone();
    assert_eq!(recovered(&world, &claim(&fixture, true)).await, "OK");
}

#[tokio::test]
async fn what_a_fill_may_be_claimed_for_waits_for_the_solvers_word_or_seven_days() {
    let fixture = Fixture::new();
    let world = funded(&fixture);
    assert_eq!(
        recovered(&world, &claim(&fixture, true)).await,
        "ORDER_NOT_GIVEN_UP"
    );
    *world.hub.mapped.lock().unwrap() = true;
    assert_eq!(recovered(&world, &claim(&fixture, true)).await, "OK");
    // A hub without the contract has no statements.
    let mut silent = funded(&fixture);
    *silent.hub.mapped.lock().unwrap() = true;
    silent.oracle.hub.settings.generic_mapping = None;
    assert_eq!(
        recovered(&silent, &claim(&fixture, true)).await,
        "ORDER_NOT_GIVEN_UP"
    );
    late(&mut silent);
    assert_eq!(recovered(&silent, &claim(&fixture, false)).await, "OK");
}

/// Makes `count` deposits of the fixture's first one, all in its transaction.
fn crowd(fixture: &mut Fixture, count: usize) {
    let deposits = fixture.deposits[0].deposits();
    let first = deposits[0].index;
    for number in 1..count {
        let mut other = deposits[0].clone();
        other.index = first + number as u32;
        other.id = B256::from(U256::from(number)).to_string().into();
        other.amount = U256::from(1);
        deposits.push(other);
    }
}

#[tokio::test]
async fn what_others_deposit_in_the_same_transaction_keeps_nobody_from_his_own() {
    // Other oracles have settled the deposit, so the order's account has its balance.
    for count in [limits::ACTIONS, limits::ACTIONS + 1, 4_000] {
        let fixture = wrong_currency().with(|fixture| crowd(fixture, count));
        let world = funded(&fixture);
        let seen = fixture.deposits[0].seen();
        let together = deposit::settled(&seen).map_err(|refusal| refusal.code());
        let refused = (count > limits::ACTIONS).then_some("EXECUTION_TOO_LARGE");
        assert_eq!(together.err(), refused);
        let attested = world.oracle.recover(&claim(&fixture, true), None).await;
        assert_eq!(attested.unwrap().execution.actions.len(), 1, "{count}");
        // Without a settlement nothing returns, whatever other deposits the account holds.
        let unsettled = funded(&fixture);
        unsettled
            .hub
            .executed
            .lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .clear();
        let refused = recovered(&unsettled, &claim(&fixture, true)).await;
        assert_eq!(refused, "DEPOSIT_NOT_MINTED");
        *unsettled.hub.balance.lock().unwrap() = U256::ZERO;
        let refused = recovered(&unsettled, &claim(&fixture, true)).await;
        assert_eq!(refused, "ORDER_BALANCE_INSUFFICIENT");
    }
}

/// Another deposit for the fixture's order, of the same depositor and block, so that both share the order's account;
/// data that its payer did not send names the order.
fn beside(fixture: &Fixture, count: usize) -> Fixture {
    let mut second = fixture.clone();
    second.deposits[0].tx = fixtures::tx(0x77);
    second.deposits[0].deposits()[0].named_by_other = true;
    crowd(&mut second, count);
    let messages = |fixture: &Fixture| deposit::listed(&fixture.deposits[0].seen()).unwrap();
    let (mine, shared) = (messages(fixture), messages(&second));
    assert_eq!(
        execution::order_account(&mine[0]),
        execution::order_account(&shared[0])
    );
    second.inputs[0].onchain_id = shared[0].onchain_id.to_string();
    second
}

/// The first deposit is filled and minted; the second was never minted and would take the first one's balance.
#[tokio::test]
async fn a_deposit_that_was_never_minted_takes_nothing_of_another_ones() {
    let fixture = Fixture::new();
    for count in [1, limits::ACTIONS + 1] {
        let world = funded(&fixture);
        let second = beside(&fixture, count);
        world.ethereum.add(&second.deposits[0]);
        assert_eq!(
            recovered(&world, &claim(&second, true)).await,
            "DEPOSIT_NOT_MINTED"
        );
        assert!(Refusal::NotMinted.retryable());
        // Neither the solver's signature nor seven days change that.
        let mut later = funded(&fixture);
        late(&mut later);
        later.ethereum.add(&second.deposits[0]);
        *later.hub.mapped.lock().unwrap() = true;
        for with_order in [true, false] {
            assert_eq!(
                recovered(&later, &claim(&second, with_order)).await,
                "DEPOSIT_NOT_MINTED"
            );
        }
        assert_eq!(word(world.fill(&fixture).await), "OK");
        // Once minted, its own balance is there.
        world.mint(&second.deposits[0]);
        *world.hub.balance.lock().unwrap() = U256::from(2_000);
        assert_eq!(recovered(&world, &claim(&second, true)).await, "OK");
    }
}

/// What this oracle mints for any caller returns to the account when anybody claims it.
#[tokio::test]
async fn where_the_hub_does_not_say_what_it_minted_only_what_can_be_minted_goes_back() {
    let crowded = wrong_currency().with(|fixture| crowd(fixture, limits::ACTIONS + 1));
    for (fixture, expected) in [
        (wrong_currency(), "OK"),
        (crowded, "read"),
        (named_by_other(), "read"),
    ] {
        let world = funded(&fixture);
        *world.hub.executed.lock().unwrap() = None;
        assert_eq!(recovered(&world, &claim(&fixture, true)).await, expected);
    }
}

#[tokio::test]
async fn recovery_is_refused_for_what_is_not_the_depositors() {
    let cases: &[Case] = &[
        ("DEPOSIT_NOT_FOUND", |_, c| c.onchain_id = "0x00".into()),
        ("DEPOSIT_NOT_FOUND", |_, c| {
            c.onchain_id = B256::ZERO.to_string();
        }),
        ("DEPOSIT_WITHOUT_ORDER", |s, _| {
            s.deposits[0].deposits()[0].id = B256::ZERO.to_string().into();
        }),
        // The signer of an order is its solver.
        ("ORDER_MISMATCH", |_, c| {
            let other = Fixture::ordering(|order| order.salt = "2".into());
            c.order = Some((other.order, other.signature));
        }),
        ("ORDER_SIGNATURE_INVALID", |_, c| {
            c.order.as_mut().unwrap().1 = "0x".into();
        }),
        ("ORDER_BALANCE_INSUFFICIENT", |s, _| {
            s.deposits[0].deposits()[0].amount = U256::from(1001);
        }),
        ("TRANSACTION_REVERTED", |s, _| {
            s.deposits[0].found = fixtures::failed();
        }),
        ("CHAIN_NOT_AVAILABLE", |_, c| c.chain = "nochain".into()),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        let mut fixture = wrong_currency();
        let mut claim = claim(&fixture, true);
        change(&mut fixture, &mut claim);
        let world = funded(&fixture);
        assert_eq!(recovered(&world, &claim).await, *code, "{at}");
    }
    let world = funded(&wrong_currency());
    *world.hub.broken.lock().unwrap() = Some(ReadError::Quorum("two forks".into()));
    let unread = recovered(&world, &claim(&wrong_currency(), true)).await;
    assert_eq!(unread, "read");
}

#[tokio::test]
async fn deposit_ends_once_as_outcome_or_recovered() {
    let fixture = Fixture::new();
    let mut world = funded(&fixture);
    late(&mut world);
    assert_eq!(word(world.fill(&fixture).await), "OK");
    assert_eq!(recovered(&world, &claim(&fixture, false)).await, "conflict");
    let mut other = funded(&fixture);
    late(&mut other);
    assert_eq!(recovered(&other, &claim(&fixture, false)).await, "OK");
    assert_eq!(word(other.fill(&fixture).await), "conflict");
    assert_eq!(word(other.refund(&fixture).await), "conflict");
}

/// Records the order as known to this daemon's own solver.
pub(super) async fn known(world: &World, fixture: &Fixture, legs: Vec<Leg>) {
    let row = Claim {
        legs,
        ..Claim::default()
    };
    claimed(world, fixture, row).await;
}

/// The same, with all that the solver has decided.
async fn claimed(world: &World, fixture: &Fixture, row: Claim) {
    let mut request = crate::request::fixtures::request(1);
    (request.order_id, request.order) = (fixture.id(), fixture.order.clone());
    let requests = &world.oracle.requests;
    requests.insert(&request, Batch::new()).await.unwrap();
    let batch = Batch::new().put(claim::key(&request.id), row.encode().unwrap());
    requests.store().commit(batch).await.unwrap();
}

pub(super) fn leg(fixture: &Fixture, stage: Stage) -> Leg {
    Leg {
        deposit: fixture.inputs[0].onchain_id.parse().unwrap(),
        stage,
        purpose: Purpose::Refund,
        reason: None,
        network: "ethereum".into(),
        lane: "ethereum".into(),
        attempt: 1_u64.to_be_bytes().to_vec().into(),
        currency: NATIVE.into(),
        amount: U256::from(990),
        transaction: None,
        payments: Vec::new(),
        wasted: U256::ZERO,
        begun: 0,
    }
}

#[tokio::test]
async fn deposit_whose_payment_is_visible_is_never_handed_out() {
    for fixture in [Fixture::new(), wrong_currency()] {
        for stage in [Stage::Open, Stage::Confirmed, Stage::Final] {
            let mut world = funded(&fixture);
            late(&mut world);
            *world.hub.mapped.lock().unwrap() = true;
            known(&world, &fixture, vec![leg(&fixture, stage)]).await;
            for with_order in [true, false] {
                let code = recovered(&world, &claim(&fixture, with_order)).await;
                assert_eq!(code, "PAYMENT_VISIBLE", "{stage:?}");
            }
        }
        let mut world = funded(&fixture);
        late(&mut world);
        known(&world, &fixture, vec![leg(&fixture, Stage::Failed)]).await;
        assert_eq!(recovered(&world, &claim(&fixture, false)).await, "OK");
    }
}

/// Somebody else may have got what was paid: only the operator finds out, and releases the deposit.
#[tokio::test]
async fn deposit_whose_payment_paid_nobody_is_handed_out_once_it_is_released() {
    for fixture in [Fixture::new(), wrong_currency()] {
        let deposit: B256 = fixture.inputs[0].onchain_id.parse().unwrap();
        let failed = || vec![leg(&fixture, Stage::Failed)];
        let (parked, released) = (vec![deposit], vec![deposit]);
        let unpaid = Claim {
            legs: failed(),
            unpaid: parked.clone(),
            parked,
            ..Claim::default()
        };
        let decided = Claim {
            legs: failed(),
            released,
            ..Claim::default()
        };
        for (row, wanted) in [(unpaid, "PAYMENT_VISIBLE"), (decided, "OK")] {
            let mut world = funded(&fixture);
            late(&mut world);
            *world.hub.mapped.lock().unwrap() = true;
            claimed(&world, &fixture, row).await;
            let code = recovered(&world, &claim(&fixture, false)).await;
            assert_eq!(code, wanted);
        }
    }
}

/// Claims of older versions do not say it.
#[tokio::test]
async fn what_the_operators_list_says_paid_nobody_is_not_handed_out() {
    let fixture = Fixture::new();
    let deposit: B256 = fixture.inputs[0].onchain_id.parse().unwrap();
    let request = crate::request::fixtures::request(1).id;
    for (note, wanted) in [
        (
            "unpaid: 0x12 on base succeeded and paid nobody",
            "PAYMENT_VISIBLE",
        ),
        ("its refund would pay nothing", "OK"),
    ] {
        let mut world = funded(&fixture);
        late(&mut world);
        *world.hub.mapped.lock().unwrap() = true;
        let row = Claim {
            legs: vec![leg(&fixture, Stage::Failed)],
            parked: vec![deposit],
            ..Claim::default()
        };
        claimed(&world, &fixture, row).await;
        let listed = Parked {
            network: "ethereum".into(),
            transaction: fixture.deposits[0].tx.text.to_string(),
            depositor: DEPOSITOR.into(),
            currency: NATIVE.into(),
            amount: U256::from(1000),
            reason: FailReason::TooLittleReceived,
            why: RefundFailReason::ManualRefundRequired,
            note: note.into(),
            minor: false,
            since: 0,
        };
        let batch = Batch::new().put(parked::key(&request, &deposit), listed.encode().unwrap());
        world.oracle.requests.store().commit(batch).await.unwrap();
        let code = recovered(&world, &claim(&fixture, false)).await;
        assert_eq!(code, wanted);
    }
}

#[tokio::test]
async fn nothing_is_handed_out_while_the_solvers_rows_cannot_be_read() {
    let fixture = Fixture::new();
    let request = crate::request::fixtures::request(1).id;
    let deposit: B256 = fixture.inputs[0].onchain_id.parse().unwrap();
    for row in [
        order::key(&fixture.id()),
        claim::key(&request),
        parked::key(&request, &deposit),
    ] {
        let mut world = funded(&fixture);
        late(&mut world);
        known(&world, &fixture, Vec::new()).await;
        let store = world.oracle.requests.store();
        let unreadable = Batch::new().put(row, vec![0xff]);
        store.commit(unreadable).await.unwrap();
        let code = recovered(&world, &claim(&fixture, false)).await;
        assert_eq!(code, "journal");
    }
}

#[tokio::test]
async fn own_solvers_order_is_open_until_its_last_deadline_or_for_seven_days() {
    // First the order's last deadline is earlier, then the seven days are.
    for (more, until) in [
        (0, fixtures::REFUND_DEADLINE),
        (800_000, fixtures::block(10).time + 604_800),
    ] {
        let fixture = Fixture::ordering(|order| order.inputs[0].refunds[0].deadline += more);
        let mut world = funded(&fixture);
        known(&world, &fixture, Vec::new()).await;
        // A clock is a function without state.
        world.oracle.clock = match more {
            0 => || fixtures::REFUND_DEADLINE,
            _ => || fixtures::block(10).time + 604_800,
        };
        let refused = world.oracle.recover(&claim(&fixture, true), None).await;
        let Err(Error::Refused(Refusal::OrderOpen(open_until))) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(open_until, until);
        *world.hub.mapped.lock().unwrap() = true;
        assert_eq!(recovered(&world, &claim(&fixture, true)).await, "OK");
        let mut world = funded(&fixture);
        late(&mut world);
        known(&world, &fixture, Vec::new()).await;
        assert_eq!(recovered(&world, &claim(&fixture, false)).await, "OK");
    }
}
