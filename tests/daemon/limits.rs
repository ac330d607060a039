//! What a deposit's transaction may carry: as much as can be attested, transported and settled, and not a
//! deposit more.

use crate::support::chain::{DEPOSITS, finalize, oracle};
use alloy::{
    primitives::{Address, B256, U256},
    sol_types::SolCall,
};
use devnet::{
    claim,
    contracts::{FakeEmitter, Oracle, Wallet},
    node::Payload,
    proxy::{Lie, LyingProxy},
    world::{Devnet, Options},
};
use hyper::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use vm::protocol::limits;

/// `calls` in one transaction of a contract that anybody may use.
async fn run(world: &Devnet, wallet: Address, calls: Vec<Wallet::Call>) -> Value {
    let site = &world.origin;
    let value: U256 = calls.iter().map(|call| call.value).sum();
    let payload = Payload::call(wallet, &Wallet::runCall { calls }).value(value);
    let sent = site.node.transact(world.user.address(), payload).await;
    let hash = sent.unwrap().transaction_hash;
    finalize(world, site).await;
    claim::deposit(site, hash)
}

/// Deposits of one wei, each for an order of its own: every account at the hub is new.
fn deposits(world: &Devnet, count: usize) -> Vec<Wallet::Call> {
    let site = &world.origin;
    let deposit = |n: usize| Wallet::Call {
        to: site.depository,
        data: site.native_deposit(B256::from(U256::from(n))).data.into(),
        value: U256::from(1),
        allowFailure: false,
    };
    (1..=count).map(deposit).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_attested_fits_answer_transaction_and_block_and_one_deposit_more_is_refused() {
    let options = Options {
        threshold: 1,
        ..Options::default()
    };
    let world = Devnet::with(options).await.unwrap();
    let wallet = world.origin.deploy("Wallet", &[]).await.unwrap();
    let daemon = oracle(&world, 0).start().await;

    let most = run(&world, wallet, deposits(&world, limits::ACTIONS)).await;
    let answer = daemon.attest(DEPOSITS, &most).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer.body.len() < limits::ANSWER - limits::REQUEST,
        "{}",
        answer.body.len()
    );
    let execution = claim::execution(&answer.json()).unwrap();
    assert_eq!(execution.actions.len(), limits::ACTIONS);
    let call = Oracle::executeCall {
        idempotencyKey: execution.idempotency_key,
        actions: execution.actions.clone(),
        signatures: execution.signatures.clone(),
    };
    assert!(call.abi_encode().len() < limits::TRANSACTION / 2);
    let settled = world.hub.submit(execution).await.unwrap();
    assert!(settled.status(), "{settled:?}");
    assert!(settled.gas_used < 15_000_000, "{}", settled.gas_used);

    let over = run(&world, wallet, deposits(&world, limits::ACTIONS + 1)).await;
    let answer = daemon.attest(DEPOSITS, &over).await;
    assert_eq!(answer.code(), "EXECUTION_TOO_LARGE", "{}", answer.body);
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["retryable"]),
        (400, &json!(false))
    );
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_thousand_junk_logs_beside_a_deposit_change_nothing() {
    let world = Devnet::start().await.unwrap();
    let site = &world.origin;
    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let fake = site.deploy("FakeEmitter", &[]).await.unwrap();
    let say = FakeEmitter::noiseCall {
        count: U256::from(4_000),
    };
    let junk = Wallet::Call {
        to: fake,
        data: say.abi_encode().into(),
        value: U256::ZERO,
        allowFailure: false,
    };
    let mut calls = deposits(&world, 1);
    calls.push(junk);
    let body = run(&world, wallet, calls).await;
    let daemon = oracle(&world, 0).start().await;
    let answer = daemon.attest(DEPOSITS, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["messages"].as_array().unwrap().len(), 1);
    daemon.stop().await;
}

/// The receipt, almost 64 MiB.
fn padded() -> Lie {
    let padding = "x".repeat(63 << 20);
    Lie::patch(move |receipt| receipt["padding"] = padding.clone().into())
}

/// An answer that is larger than any that is read. It says so before its first byte, so that nobody waits
/// for the rest, however busy the machine is.
fn oversized() -> Lie {
    let body = vec![b' '; limits::PROVIDER_ANSWER + 1];
    Lie::Answer(StatusCode::OK, HeaderMap::new(), body.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_read_up_to_its_limit_and_a_larger_one_is_refused_for_good() {
    let world = Devnet::start().await.unwrap();
    let wallet = world.origin.deploy("Wallet", &[]).await.unwrap();
    let body = run(&world, wallet, deposits(&world, 1)).await;
    // As large as may be, one liar of three, and two.
    for (liars, lie, status, code) in [
        (3, padded(), 200, ""),
        (1, oversized(), 200, ""),
        (2, oversized(), 400, "TRANSACTION_TOO_LARGE"),
    ] {
        let mut proxies = Vec::new();
        for number in 0..3 {
            let proxy = LyingProxy::start(&world.origin.node.url).await.unwrap();
            if number < liars {
                let lie = lie.clone();
                let about = "eth_getTransactionReceipt";
                proxy.lie(devnet::proxy::on(about, move |_| lie.clone()));
            }
            proxies.push(proxy);
        }
        let urls: Vec<&str> = proxies.iter().map(|proxy| proxy.url.as_str()).collect();
        let daemon = oracle(&world, 0)
            .with("ORIGIN_RPC_URL", urls.join(","))
            .start()
            .await;
        let answer = daemon.attest(DEPOSITS, &body).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{liars} {status} {}",
            answer.body
        );
        assert_eq!(answer.code(), code);
        if status == 400 {
            assert_eq!(answer.json()["retryable"], false);
        }
        daemon.stop().await;
    }
}
