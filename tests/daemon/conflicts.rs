//! Claims that cannot both be true, each of them shown with real transactions: one is signed, the
//! others are refused, whoever comes first.

use crate::support::{
    chain::{DEPOSITS, Deal, FILLS, RECIPIENT, REFUNDS, done, finalize, native, oracle},
    daemon::{Answer, Daemon},
};
use alloy::primitives::{B256, U256};
use devnet::{claim, node::Payload, world::Devnet};
use futures::future::join_all;
use serde_json::Value;

const CONFLICT: (u16, &str) = (409, "CONFLICTING_STATEMENT");

async fn fixture() -> (Devnet, Daemon) {
    let world = Devnet::start().await.unwrap();
    let daemon = oracle(&world, 0).start().await;
    (world, daemon)
}

async fn deal(world: &Devnet, salt: u64) -> Deal<'_> {
    Deal::new(world, native(1_000), native(900), salt).await
}

fn status_and_code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.code())
}

fn refused(answer: &Answer, why: (u16, &str)) {
    assert_eq!(
        status_and_code(answer),
        (why.0, why.1.to_owned()),
        "{}",
        answer.body
    );
    assert!(!answer.body.contains("signature\":\"0x"), "{}", answer.body);
}

/// Asks everything at the same time, `times` times, and returns the answers by question.
async fn raced(daemon: &Daemon, claims: &[(&str, &Value)], times: usize) -> Vec<Vec<Answer>> {
    let asked = (0..times)
        .flat_map(|_| claims)
        .map(|(route, body)| daemon.attest(route, body));
    let mut by_claim: Vec<Vec<Answer>> = claims.iter().map(|_| Vec::new()).collect();
    for (at, answer) in join_all(asked).await.into_iter().enumerate() {
        by_claim[at % claims.len()].push(answer);
    }
    by_claim
}

/// Exactly one of the claims was signed, always the same way; every other answer is a conflict.
fn one_won(answers: &[Vec<Answer>]) -> usize {
    let signed = |answers: &Vec<Answer>| answers.iter().any(|answer| answer.status == 200);
    let winners: Vec<usize> = (0..answers.len())
        .filter(|at| signed(&answers[*at]))
        .collect();
    let [winner] = winners[..] else {
        panic!("{winners:?} were signed: {answers:?}");
    };
    for (at, answers) in answers.iter().enumerate() {
        for answer in answers {
            match at == winner {
                true => assert_eq!(
                    (answer.status.as_u16(), &answer.body),
                    (200, &answers[0].body)
                ),
                false => refused(answer, CONFLICT),
            }
        }
    }
    winner
}

#[tokio::test(flavor = "multi_thread")]
async fn order_is_filled_or_refunded() {
    let (world, daemon) = fixture().await;
    for (salt, filled) in [(1, true), (2, false)] {
        let deal = deal(&world, salt).await;
        let deposits = [deal.deposit().await];
        let fill = claim::fill(&deal.order, &deposits, deal.fill().await);
        let refund = claim::refund(&deal.order, &deposits, &[deal.refund().await]);
        let (mut first, mut second) = ((FILLS, &fill), (REFUNDS, &refund));
        if !filled {
            std::mem::swap(&mut first, &mut second);
        }
        let signed = daemon.attest(first.0, first.1).await;
        assert_eq!(signed.status, 200, "{}", signed.body);
        refused(&daemon.attest(second.0, second.1).await, CONFLICT);
        let again = daemon.attest(first.0, first.1).await;
        assert_eq!(again.body, signed.body);
    }
    let metrics = daemon.metrics().await;
    assert!(metrics.contains("intentd_conflicting_statements_total{kind=\"outcome\"}"));
    daemon.stop().await;
}

/// How much less than its order asks for a deposit may bring is the operator's to say.
#[tokio::test(flavor = "multi_thread")]
async fn operator_says_how_short_a_claim_may_be() {
    let world = Devnet::start().await.unwrap();
    let deal = deal(&world, 1).await;
    let (site, user) = (&world.origin, &world.user);
    let sent = site
        .deposit_native(user, U256::from(950), deal.order.id)
        .await;
    let deposit = site.deposited(&done(sent)).await.unwrap();
    finalize(&world, site).await;
    let fill = claim::fill(&deal.order, &[deposit], deal.fill().await);
    for (tolerance, wanted) in [
        ("499", (400, "SOLVER_SIGNATURE_REQUIRED")),
        ("500", (200, "")),
    ] {
        let daemon = oracle(&world, 0).with("SHORT_CLAIM_TOLERANCE_BPS", tolerance);
        let daemon = daemon.start().await;
        let answer = daemon.attest(FILLS, &fill).await;
        assert_eq!(
            status_and_code(&answer),
            (wanted.0, wanted.1.to_owned()),
            "{}",
            answer.body
        );
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflict_outlives_a_restart() {
    let (world, daemon) = fixture().await;
    let deal = deal(&world, 1).await;
    let deposits = [deal.deposit().await];
    let fill = claim::fill(&deal.order, &deposits, deal.fill().await);
    let refund = claim::refund(&deal.order, &deposits, &[deal.refund().await]);
    let signed = daemon.attest(FILLS, &fill).await;
    let daemon = daemon.restart().await;
    refused(&daemon.attest(REFUNDS, &refund).await, CONFLICT);
    let again = daemon.attest(FILLS, &fill).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &signed.body));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fill_and_refund_that_race_give_one_signature() {
    let (world, daemon) = fixture().await;
    for salt in 1..=4 {
        let deal = deal(&world, salt).await;
        let deposits = [deal.deposit().await];
        let fill = claim::fill(&deal.order, &deposits, deal.fill().await);
        let refund = claim::refund(&deal.order, &deposits, &[deal.refund().await]);
        let answers = raced(&daemon, &[(FILLS, &fill), (REFUNDS, &refund)], 6).await;
        one_won(&answers);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_payment_serves_one_of_two_deposits_of_an_order() {
    let (world, daemon) = fixture().await;
    for racing in [false, true] {
        let deal = deal(&world, 1 + u64::from(racing)).await;
        let (one, two) = (deal.deposit().await, deal.deposit().await);
        assert_ne!(one.onchain_id, two.onchain_id);
        let paid = deal.fill().await;
        let first = claim::fill(&deal.order, &[one], paid);
        let second = claim::fill(&deal.order, std::slice::from_ref(&two), paid);
        if racing {
            one_won(&raced(&daemon, &[(FILLS, &first), (FILLS, &second)], 6).await);
            continue;
        }
        assert_eq!(daemon.attest(FILLS, &first).await.status, 200);
        refused(&daemon.attest(FILLS, &second).await, CONFLICT);
        // A payment of its own is another thing.
        let body = claim::fill(&deal.order, &[two], deal.fill().await);
        let answer = daemon.attest(FILLS, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_was_filled_is_not_filled_or_refunded_by_another_payment() {
    let (world, daemon) = fixture().await;
    let deal = deal(&world, 1).await;
    let deposits = [deal.deposit().await];
    let first = claim::fill(&deal.order, &deposits, deal.fill().await);
    let signed = daemon.attest(FILLS, &first).await;
    assert_eq!(signed.status, 200, "{}", signed.body);
    // Another payment for the same outcome: the statement is the same, and so is the signature.
    let second = claim::fill(&deal.order, &deposits, deal.fill().await);
    let again = daemon.attest(FILLS, &second).await;
    assert_eq!(again.json()["execution"], signed.json()["execution"]);
    let back = claim::refund(&deal.order, &deposits, &[deal.refund().await]);
    refused(&daemon.attest(REFUNDS, &back).await, CONFLICT);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_that_names_two_orders_serves_neither() {
    let (world, daemon) = fixture().await;
    let (one, two) = (deal(&world, 1).await, deal(&world, 2).await);
    let deposits = [one.deposit().await, two.deposit().await];
    let site = &world.destination;
    let payment = Payload::pay(RECIPIENT, native(900).amount)
        .suffix(one.order.id)
        .suffix(two.order.id);
    let sent = site.node.send(world.solver.address(), payment).await;
    let paid = done(sent).transaction_hash;
    finalize(&world, site).await;
    let bodies: Vec<Value> = [&one, &two]
        .iter()
        .zip(&deposits)
        .map(|(deal, deposit)| claim::fill(&deal.order, std::slice::from_ref(deposit), paid))
        .collect();
    for body in &bodies {
        let answer = daemon.attest(FILLS, body).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_and_deposit_of_one_order_are_nothing_to_another() {
    let (world, daemon) = fixture().await;
    let (one, two) = (deal(&world, 1).await, deal(&world, 2).await);
    let deposits = [one.deposit().await, two.deposit().await];
    let paid = one.fill().await;
    let stolen = claim::fill(&two.order, &deposits[1..], paid);
    refused(
        &daemon.attest(FILLS, &stolen).await,
        (400, "ORDER_NOT_REFERENCED"),
    );
    let foreign = claim::fill(&one.order, &deposits[1..], paid);
    refused(
        &daemon.attest(FILLS, &foreign).await,
        (400, "INPUT_INVALID"),
    );
    let honest = claim::fill(&one.order, &deposits[..1], paid);
    let answer = daemon.attest(FILLS, &honest).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_asked_for_at_the_same_time_has_one_signature() {
    let (world, daemon) = fixture().await;
    let deal = deal(&world, 1).await;
    let deposit = deal.deposit().await;
    let body = claim::deposit(&world.origin, deposit.transaction);
    // Spellings are no second statement either.
    let mut shouted = body.clone();
    let hash = B256::to_string(&deposit.transaction);
    shouted["transactionId"] = format!("0x{}", hash[2..].to_uppercase()).into();
    let answers = raced(&daemon, &[(DEPOSITS, &body), (DEPOSITS, &shouted)], 8).await;
    let first = &answers[0][0];
    assert_eq!(first.status, 200, "{}", first.body);
    for answer in &answers[0] {
        assert_eq!(answer.body, first.body);
    }
    for answer in &answers[1] {
        let same = answer.json()["execution"] == first.json()["execution"];
        assert!(same || answer.status != 200, "{}", answer.body);
    }
    daemon.stop().await;
}
