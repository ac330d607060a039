//! Orders that end at the hub.

use vm::protocol::message::Domain;

use super::{
    owned::{given_back, returning},
    recover::{known, leg},
    *,
};
use crate::{attest::statement::Outcome, store::rows::claim::Stage};

/// A salt that requires the solver's signature in every claim.
const OURS: &str = "0xb7064203155a802ad4966746909a304700000000000000000000000000000001";
pub(super) const EXECUTOR: EvmAddress = EvmAddress::repeat_byte(6);

pub(super) fn exchanging(fixture: &Fixture) -> World {
    with_executor(world().playing(fixture))
}

fn with_executor(mut world: World) -> World {
    world.oracle.hub.settings.executor = Some(EXECUTOR);
    world
}

pub(super) fn asked(fixture: &Fixture, outcome: Outcome) -> ExchangeClaim {
    ExchangeClaim {
        outcome,
        chain: "ethereum".into(),
        transaction: fixture.deposits[0].tx.text.to_string(),
        onchain_id: fixture.inputs[0].onchain_id.clone(),
        order: fixture.order.clone(),
        signature: fixture.signature.clone(),
        solver_signature: None,
        nonce: B256::with_last_byte(9).to_string(),
        hints: None,
    }
}

async fn exchanged(world: &World, claim: &ExchangeClaim) -> &'static str {
    word(world.oracle.exchange(claim, None).await)
}

#[tokio::test]
async fn deposit_and_request_are_signed_together() {
    let fixture = Fixture::new();
    let world = exchanging(&fixture);
    for outcome in [Outcome::Fill, Outcome::Refund] {
        let claim = asked(&fixture, outcome);
        let first = world.oracle.exchange(&claim, None).await.unwrap();
        let domain = Domain::executor(U256::from(31337), EXECUTOR);
        let [ours] = &first.signatures[..] else {
            panic!("{first:?}");
        };
        let own = world.oracle.journal.signer();
        assert_eq!(
            ours.signature.recover(&first.request.digest(&domain)),
            Ok(own)
        );
        let again = world.oracle.exchange(&claim, None).await.unwrap();
        assert_eq!(again.signatures, first.signatures);
        // The request rests on the deposit's block, too.
        let deposited = fixture.deposits[0].seen().receipt().unwrap().block.clone();
        let kind = format!("withdraw-and-{outcome}");
        assert_eq!(world.watched("ethereum", &kind).await, [deposited]);
        // The execution is that of the deposit's own route.
        let deposit = deposit_claim(&fixture.deposits[0]);
        let deposit = world.oracle.deposit(&deposit, None).await.unwrap();
        assert_eq!(deposit.attested, Some(first.attested));
    }
}

#[tokio::test]
async fn a_request_that_nobody_executes_keeps_a_deposit_from_nobody() {
    let fixture = Fixture::new();
    let world = exchanging(&fixture);
    assert_eq!(
        exchanged(&world, &asked(&fixture, Outcome::Refund)).await,
        "OK"
    );
    assert_eq!(word(world.fill(&fixture).await), "OK");
}

#[tokio::test]
async fn nothing_is_signed_once_the_deposit_is_its_solvers() {
    let fixture = Fixture::new();
    let world = exchanging(&fixture);
    let before = asked(&fixture, Outcome::Fill);
    assert_eq!(exchanged(&world, &before).await, "OK");
    assert_eq!(word(world.fill(&fixture).await), "OK");
    for outcome in [Outcome::Fill, Outcome::Refund] {
        let mut claim = asked(&fixture, outcome);
        claim.nonce = B256::with_last_byte(10).to_string();
        assert_eq!(exchanged(&world, &claim).await, "conflict");
    }
    // What was signed before is still answered.
    assert_eq!(exchanged(&world, &before).await, "OK");
}

#[tokio::test]
async fn nothing_is_signed_once_the_deposit_has_gone_back() {
    let fixture = Fixture::new();
    let world = with_executor(given_back(&fixture));
    assert_eq!(world.initiated(&returning(&fixture)).await, "OK");
    for outcome in [Outcome::Fill, Outcome::Refund] {
        let found = exchanged(&world, &asked(&fixture, outcome)).await;
        assert_eq!(found, "conflict", "{outcome}");
    }
}

#[tokio::test]
async fn what_the_solver_of_this_daemon_may_have_paid_is_not_exchanged() {
    let fixture = Fixture::new();
    for stage in [Stage::Open, Stage::Confirmed, Stage::Final] {
        let world = exchanging(&fixture);
        known(&world, &fixture, vec![leg(&fixture, stage)]).await;
        for outcome in [Outcome::Fill, Outcome::Refund] {
            let found = exchanged(&world, &asked(&fixture, outcome)).await;
            assert_eq!(found, "PAYMENT_VISIBLE", "{stage:?}");
        }
    }
    let world = exchanging(&fixture);
    known(&world, &fixture, Vec::new()).await;
    let found = exchanged(&world, &asked(&fixture, Outcome::Refund)).await;
    assert_eq!(found, "ORDER_OPEN");
}

/// Each nonce is a row for ever, and one deposit has as many as somebody thinks of.
#[tokio::test]
async fn below_the_reserve_a_stranger_has_no_new_request_for_an_order_signed() {
    let fixture = Fixture::new();
    let low = full(exchanging(&fixture));
    let claim = asked(&fixture, Outcome::Refund);
    for (keyed, expected) in [(false, "room"), (true, "OK"), (false, "OK")] {
        let found = asking::by(keyed, exchanged(&low, &claim)).await;
        assert_eq!(found, expected, "{keyed}");
    }
}

/// The order and its signature are everybody's who got a quote.
#[tokio::test]
async fn an_order_that_asks_for_its_solvers_signature_gets_it_for_this_claim() {
    let fixture = Fixture::ordering(|order| order.salt = OURS.into());
    let (terms, funded) = fixture.funded().unwrap();
    let ids = [funded[0].onchain_id];
    let signed = |kind: &str| Some(fixtures::sign(id::claim(kind, &ids, terms.id)));
    for (outcome, kind, other) in [
        (Outcome::Fill, "withdraw-and-fill", "withdraw-and-refund"),
        (Outcome::Refund, "withdraw-and-refund", "withdraw-and-fill"),
    ] {
        let world = exchanging(&fixture);
        let claim = |solver_signature| ExchangeClaim {
            solver_signature,
            ..asked(&fixture, outcome)
        };
        let found = exchanged(&world, &claim(None)).await;
        assert_eq!(found, "SOLVER_SIGNATURE_REQUIRED");
        for wrong in [other, "fill", "refund"] {
            let found = exchanged(&world, &claim(signed(wrong))).await;
            assert_eq!(found, "SOLVER_SIGNATURE_INVALID", "{wrong}");
        }
        assert_eq!(exchanged(&world, &claim(signed(kind))).await, "OK");
    }
}

#[tokio::test]
async fn what_cannot_end_at_the_hub_is_refused() {
    type Change = fn(&mut ExchangeClaim);
    let changes: &[(&str, Change)] = &[
        ("ORDER_SIGNATURE_INVALID", |claim| {
            claim.signature = "0x00".into();
        }),
        ("DEPOSIT_NOT_FOUND", |claim| claim.onchain_id = "0x".into()),
        ("INVALID_REQUEST", |claim| claim.nonce = "1".into()),
        ("TRANSACTION_MISSING", |claim| {
            claim.transaction = B256::repeat_byte(0x77).to_string();
        }),
        ("CHAIN_NOT_AVAILABLE", |claim| claim.chain = "q".into()),
    ];
    let fixture = Fixture::new();
    for (code, change) in changes {
        let mut claim = asked(&fixture, Outcome::Fill);
        change(&mut claim);
        assert_eq!(exchanged(&exchanging(&fixture), &claim).await, *code);
    }
    let mut without = exchanging(&fixture);
    without.oracle.hub.settings.executor = None;
    let refused = asked(&fixture, Outcome::Fill);
    let refused = without.oracle.exchange(&refused, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "Missing executor config");
    let several = Fixture::ordering(|order| {
        let payment = order.output.payments[0].clone();
        order.output.payments.push(payment);
    });
    let found = exchanged(&exchanging(&several), &asked(&several, Outcome::Fill)).await;
    assert_eq!(found, "ORDER_NOT_AT_HUB");
}

#[tokio::test]
async fn a_deposit_that_is_not_final_is_not_exchanged() {
    let fixture = Fixture::new().with(|s| s.deposits[0].head.block = fixtures::block(15));
    let world = exchanging(&fixture);
    *world.ethereum.head.lock().unwrap() = fixture.deposits[0].head.clone();
    *world.ethereum.fresh.lock().unwrap() = fixture.deposits[0].head.clone();
    let found = exchanged(&world, &asked(&fixture, Outcome::Fill)).await;
    assert_eq!(found, "TRANSACTION_NOT_FINALIZED");
}
