//! Oracles sign what is so, and what strangers make up is found.

use super::*;
use crate::{bitcoin::FINAL, invariants::Ending, lived, quotes::passes, side::Kind};

/// What a deal is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// Seconds after which what strangers sent is final.
const SOON: u64 = 60;

fn plays(called: &str, play: impl AsyncFnOnce(&mut Machine) -> Vec<String>) {
    let pair = (Kind::Evm, Kind::Scripted);
    let made = async || Machine::new(pair, called, FINAL).await;
    passes(lived(1, made, play));
}

/// A deal that is filled, its deposit and its fill.
async fn filled(m: &mut Machine) -> (Deal, [Seen; 2]) {
    let deal = m.quote(Asset::Native, CENTS, false).await;
    m.deposit(&deal);
    assert_eq!(m.ends(&deal, Ending::Filled).await, Vec::<String>::new());
    let ends = both(m, deal.order);
    (deal, ends)
}

/// The deposit and the payment that name an order.
fn both(m: &Machine, order: B256) -> [Seen; 2] {
    let (deposits, payments) = seen(m);
    [deposits, payments].map(|all| {
        let mut all = all.into_iter();
        all.find(|one| one.order == Some(order)).unwrap()
    })
}

/// Whether an oracle signs a claim; whether it may.
async fn signs(m: &Machine, elsewhere: bool, claim: &Claim) -> (bool, bool) {
    let answer = m.claim(elsewhere, &claim.path, &claim.body).await.unwrap();
    (answer.0.is_success(), !claim.lie)
}

async fn claims_his_own(m: &mut Machine) -> Vec<String> {
    use ClaimKind::{Fill, Forced, GivenUp, Refund};
    let (deal, [deposit, fill]) = filled(m).await;
    let mut history = History::default();
    history.write(m, &mut Rng::with_seed(1), &deal).await;
    m.pass(SOON).await;
    let (victims, own) = (Promised::of(&deal), history.written.remove(0));
    let [own_deposit, own_fill] = both(m, own.id);
    for elsewhere in [false, true] {
        let id = onchain(m, elsewhere, &deposit).await;
        let own_id = onchain(m, elsewhere, &own_deposit).await;
        let (theirs, his) = ((&deposit, id), (&own_deposit, own_id));
        for (order, kind, deposit, payment, is_his) in [
            (&own, Fill, his, &own_fill, true),
            (&own, GivenUp, his, &own_fill, true),
            (&own, Fill, his, &fill, false),
            (&own, Fill, theirs, &own_fill, false),
            (&own, Refund, theirs, &fill, false),
            (&own, Forced, his, &own_fill, false),
            (&victims, Fill, theirs, &fill, false),
            (&victims, Refund, theirs, &own_fill, false),
            (&victims, Forced, theirs, &fill, false),
            (&victims, GivenUp, theirs, &fill, false),
        ] {
            let claim = order.claim(kind, deposit, payment).await;
            let found = signs(m, elsewhere, &claim).await;
            assert_eq!(found, (is_his, is_his), "{elsewhere} {claim:?}");
        }
    }
    unsigned(m, &Payments::of(m)).await
}

#[test]
fn strangers_claim_what_is_theirs_and_nothing_else() {
    plays("claims of his own", async |m: &mut Machine| {
        claims_his_own(m).await
    });
}

async fn lacks_a_word(m: &mut Machine) -> Vec<String> {
    let (_, [_, fill]) = filled(m).await;
    let mut claimed = m.claimed();
    assert_eq!(refused(m, &claimed, &[&fill]).await, Vec::<String>::new());
    for (_, body) in &mut claimed {
        body.as_object_mut().unwrap().remove("solverSignature");
    }
    let found = refused(m, &claimed, &[&fill]).await;
    assert!(found.len() == 2, "{found:?}");
    let found = refused(m, &[], &[&fill]).await;
    assert!(found.len() == 1, "{found:?}");
    Vec::new()
}

#[test]
fn payments_that_an_oracle_does_not_sign_are_found() {
    plays("lacks a word", async |m: &mut Machine| {
        lacks_a_word(m).await
    });
}

#[test]
fn lies_that_are_signed_are_found_and_refusals_are_no_fault() {
    let (good, bad) = (StatusCode::OK, StatusCode::BAD_REQUEST);
    let broken = StatusCode::INTERNAL_SERVER_ERROR;
    for (lie, status, is_fault) in [
        (true, good, true),
        (true, bad, false),
        (false, good, false),
        (false, bad, false),
        (true, broken, true),
        (false, broken, true),
    ] {
        let claim = Claim::at("recover", Value::Null, lie);
        let fault = claim.fault(&(status, Value::Null));
        assert_eq!(fault.is_some(), is_fault, "{lie} {status}");
    }
}
