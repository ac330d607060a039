//! What an operator sees and what only he sees: readiness, metrics, which chains are served and on whose
//! word.

use crate::support::{
    chain::{DEPOSITS, INITIATION, RECIPIENT, done, finalize, finalize_hub, native, oracle},
    daemon::{Daemon, Setup, daemon},
    fixture, world,
};
use alloy::{hex, primitives::U256};
use devnet::{
    account::Account,
    claim,
    world::{Devnet, Withdrawal},
};
use serde_json::{Value, json};
use vm::protocol::owner::{Kind, Operation};

const AUTHORIZATIONS: &str = "/attestations/withdraw-request-authorization/v1";
const OWNED_INITIATION: &str = "/attestations/withdrawal-initiation/v2";
const INCLUSIONS: &str = "/attestations/withdraw-requests/v1";
const ZERO: &str = "0x0000000000000000000000000000000000000000";
const RECEIVER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const NOBODY: &str = "0x00000000000000000000000000000000000000000000000000000000000000ff";

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_readiness_stand_on_the_operators_listener_only() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).key("k").start().await;
    for path in ["/metrics", "/readyz"] {
        let public = daemon.ask("GET", path, &[("x-api-key", "k")], None).await;
        assert_eq!(
            (public.status.as_u16(), public.code().as_str()),
            (404, "ROUTE_NOT_FOUND")
        );
    }
    let alive = daemon.ask("GET", "/lives/v1", &[], None).await;
    assert_eq!(
        (alive.status.as_u16(), alive.body.as_str()),
        (200, r#"{"status":"ok"}"#)
    );
    assert!(
        daemon
            .metrics()
            .await
            .contains("intentd_http_requests_total")
    );
    let ready = daemon.ops("/readyz").await;
    assert!(ready.json()["chains"].is_array(), "{}", ready.body);
    assert_eq!(daemon.ops("/lives/v1").await.status, 200);
    assert_eq!(daemon.ops("/chains/v1").await.status, 404);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_tells_whether_to_come_again() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).key("k").start().await;
    let deposit =
        |chain: &str, transaction: &str| json!({"chainId": chain, "transactionId": transaction});
    for (key, body, status, code, again) in [
        (
            "k",
            deposit("base", NOBODY),
            400,
            "TRANSACTION_MISSING",
            true,
        ),
        (
            "k",
            deposit("nowhere", NOBODY),
            400,
            "CHAIN_NOT_AVAILABLE",
            false,
        ),
        ("k", json!({"chainId": "base"}), 400, "MISSING_FIELD", false),
        ("k", deposit("ton", NOBODY), 503, "CHAIN_UNAVAILABLE", true),
        ("x", deposit("base", NOBODY), 401, "", false),
    ] {
        let answer = daemon.post(DEPOSITS, key, &body).await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.code().as_str(),
                &answer.json()["retryable"]
            ),
            (status, code, &Value::from(again)),
            "{}",
            answer.body
        );
    }
    let missing = daemon.ask("GET", "/nope", &[], None).await;
    assert_eq!(missing.json()["retryable"], false, "{}", missing.body);
    daemon.stop().await;
}

/// A name for the node of `url` that is another host to whoever looks at names.
fn twice(url: &str) -> String {
    format!("{url},{}", url.replace("127.0.0.1", "localhost"))
}

/// A daemon where real money is at stake, over real chains.
fn mainnet(world: &Devnet) -> Setup {
    let (origin, hub) = (&world.origin.node.url, &world.hub.node.url);
    oracle(world, 0)
        .with("ENVIRONMENT", "devnet.mainnet")
        .with("CHAINS", "origin")
        .with("ORIGIN_RPC_URL", twice(origin.as_str()))
        .with("RELAY_RPC_URL", twice(hub.as_str()))
        .with("AURORA_RPC_URL", twice(hub.as_str()))
}

async fn reasons(daemon: &Daemon) -> (u16, Vec<(String, String)>) {
    let ready = daemon.ops("/readyz").await;
    let chains = ready.json()["chains"].as_array().cloned().unwrap();
    let reason = |chain: &Value| {
        let text = |field: &str| chain[field].as_str().map(str::to_owned);
        Some((text("id")?, text("reason")?))
    };
    (
        ready.status.as_u16(),
        chains.iter().filter_map(reason).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn one_provider_attests_nothing_where_real_money_is_at_stake() {
    let world = Devnet::start().await.unwrap();
    let site = &world.origin;
    let sent = site.deposit_native(&world.user, native(5).amount, alloy::primitives::B256::ZERO);
    let deposit = claim::deposit(site, done(sent.await).transaction_hash);
    finalize(&world, site).await;
    finalize_hub(&world).await;
    let (origin, hub) = (site.node.url.as_str(), world.hub.node.url.as_str());
    let whole = mainnet(&world);
    let cases = [
        (whole.clone(), None),
        (whole.clone().with("ORIGIN_RPC_URL", origin), Some("origin")),
        (whole.clone().with("RELAY_RPC_URL", hub), Some("hub")),
        (
            whole
                .clone()
                .with("ORIGIN_RPC_URL", origin)
                .with("ORIGIN_RPC_QUORUM", "1"),
            None,
        ),
        (
            whole
                .clone()
                .with("RELAY_RPC_URL", hub)
                .with("RELAY_RPC_QUORUM", "1"),
            None,
        ),
    ];
    for (setup, closed) in cases {
        let daemon = setup.start().await;
        let answer = daemon.attest(DEPOSITS, &deposit).await;
        let (status, reasons) = reasons(&daemon).await;
        match closed {
            None => {
                assert_eq!((answer.status.as_u16(), status), (200, 200), "{reasons:?}");
                assert!(reasons.is_empty(), "{reasons:?}");
            }
            Some(chain) => {
                assert_eq!(answer.code(), "PROVIDERS_INSUFFICIENT", "{}", answer.body);
                assert_eq!((answer.status.as_u16(), status), (503, 503));
                let [(id, why)] = &reasons[..] else {
                    panic!("{reasons:?}")
                };
                assert_eq!(id, chain);
                assert!(why.contains("RPC_QUORUM=1"), "{why}");
            }
        }
        if closed == Some("hub") {
            // Nor what reads nothing of any chain.
            let body = authorization("origin", [ZERO, RECEIVER], &Value::Null);
            let answer = daemon.attest(AUTHORIZATIONS, &body).await;
            assert_eq!(answer.code(), "PROVIDERS_INSUFFICIENT", "{}", answer.body);
        }
        daemon.stop().await;
    }
}

/// A withdrawer's signature is over account, amount and nonce; whoever sees it would withdraw to himself.
#[tokio::test(flavor = "multi_thread")]
async fn where_real_money_is_at_stake_a_withdrawal_is_bound_by_its_nonce() {
    let world = Devnet::start().await.unwrap();
    finalize_hub(&world).await;
    let free = Withdrawal {
        site: &world.origin,
        money: native(5),
        owner: &world.user,
        owner_chain: "origin",
        recipient: RECIPIENT,
        nonce: U256::from(7) << 128,
        expiration: U256::ZERO,
    };
    let bound = free.clone().bound().unwrap();
    let stolen = Withdrawal {
        recipient: world.solver.address(),
        ..bound.clone()
    };
    let unbound = "WITHDRAWAL_NONCE_UNBOUND";
    let poor = "BALANCE_INSUFFICIENT";
    for (setup, codes) in [
        (mainnet(&world), [unbound, unbound, poor]),
        (oracle(&world, 0), [poor, poor, poor]),
    ] {
        let daemon = setup.start().await;
        for (withdrawal, code) in [&free, &stolen, &bound].into_iter().zip(codes) {
            let body = withdrawal.initiation().unwrap();
            let answer = daemon.attest(INITIATION, &body).await;
            assert_eq!(answer.code(), code, "{}", answer.body);
        }
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_is_not_attested_and_keeps_nobody_waiting() {
    let world = Devnet::start().await.unwrap();
    finalize(&world, &world.origin).await;
    finalize(&world, &world.destination).await;
    finalize_hub(&world).await;
    let daemon = oracle(&world, 0).with("CHAINS", "origin").start().await;
    let foreign = json!({"chainId": "destination", "transactionId": NOBODY});
    let answer = daemon.attest(DEPOSITS, &foreign).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (503, "CHAIN_UNAVAILABLE")
    );
    let ready = daemon.ops("/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.body);
    assert!(!ready.body.contains("destination"), "{}", ready.body);
    daemon.stop().await;
    // A served chain that has no provider, and a hub without one, are told.
    let mut files = world.files();
    files
        .environment
        .retain(|(name, _)| name != "DESTINATION_RPC_URL" && name != "RELAY_RPC_URL");
    let files_of = &mut files.chains[1];
    files_of["httpRpcUrl"] = "$DESTINATION_RPC_URL".into();
    files.hub["httpRpcUrl"] = "$RELAY_RPC_URL".into();
    let setup = daemon_over(&world, &files).with("CHAINS", "origin,destination");
    let daemon = setup.start().await;
    let (status, mut told) = reasons(&daemon).await;
    told.retain(|(id, _)| id != "aurora");
    let told: Vec<_> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!((status, &told[..]), (503, &["destination", "hub"][..]));
    daemon.stop().await;
    let daemon = daemon_over(&world, &files)
        .with("CHAINS", ",")
        .start()
        .await;
    let nothing = daemon.ops("/readyz").await;
    assert_eq!(nothing.status, 503);
    assert!(nothing.json()["reason"].is_string(), "{}", nothing.body);
    daemon.stop().await;
}

/// A withdraw request to `chain` for this currency and receiver, signed by its owner.
fn authorization(chain: &str, [currency, receiver]: [&str; 2], additional: &Value) -> Value {
    let owner = Account::named("owner").unwrap();
    let address = owner.address().to_string();
    let nonce = alloy::primitives::keccak256(chain).to_string();
    let given = additional.is_object().then_some(additional);
    let operation = Operation {
        kind: Kind::Withdrawal,
        chain_id: chain,
        currency,
        amount: "5",
        owner_chain_id: "ethereum",
        owner: &address,
        recipient: receiver,
        nonce: &nonce,
        additional: given,
    };
    let signature = owner.sign_message(&operation.digest()).unwrap();
    let mut body = json!({
        "chainId": chain, "currency": currency, "amount": "5", "spenderChainId": "ethereum",
        "spender": address, "receiver": receiver, "nonce": nonce,
        "ownerSignature": hex::encode_prefixed(signature),
    });
    if let Some(additional) = given {
        body["additionalData"] = additional.clone();
    }
    body
}

/// The body by which the same owner asks that the balance is set apart.
fn initiation_of(authorization: &Value) -> Value {
    let mut body = authorization.clone();
    for (from, to) in [
        ("spenderChainId", "ownerChainId"),
        ("spender", "owner"),
        ("receiver", "recipient"),
    ] {
        body[to] = body[from].take();
        body.as_object_mut().unwrap().remove(from);
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn what_reads_nothing_of_a_chain_is_signed_without_its_providers() {
    let world = world::world().await;
    let setup = daemon().recorded(&world).with("CHAINS", "ethereum");
    let daemon = setup.start().await;
    let depositories = fixture("recorded/chains.json");
    let depository = |chain: &str| {
        let mut entries = depositories.as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["id"] == chain).unwrap();
        let family = vm::family(entry["vmType"].as_str().unwrap()).unwrap();
        let text = entry["depository"].as_str().unwrap();
        hex::encode_prefixed(family.account(text).unwrap().bytes())
    };
    let lighter = json!({ "lighter-vm": { "nonce": 1, "apiKeyIndex": 2, "usdcFee": 3 } });
    let ton = "0:90c11c111d29bc317cab83480500edb045e59f9b4ec7ba145343c7d83644c6ee";
    let tron = "TRNCo4hWodUNndQeGqvwh6QyfC6TUSCpx6";
    let native = |family: &str| vm::family(family).unwrap().codec.native();
    for (chain, currency, receiver, additional) in [
        ("lighter", native("lighter-vm"), "723072", &lighter),
        ("ton", native("ton-vm"), ton, &Value::Null),
        ("tron", native("tron-vm"), tron, &Value::Null),
        ("base", ZERO, RECEIVER, &Value::Null),
    ] {
        let body = authorization(chain, [currency, receiver], additional);
        let answer = daemon.attest(AUTHORIZATIONS, &body).await;
        assert_eq!(answer.status, 200, "{chain} {}", answer.body);
        let request = &answer.json()["withdrawRequest"];
        assert_eq!(request["chainId"], chain);
        assert_eq!(request["depository"], depository(chain), "{chain}");
        // Nothing here would end what this sets apart.
        let apart = daemon.attest(OWNED_INITIATION, &initiation_of(&body)).await;
        let found = (apart.status.as_u16(), apart.code());
        assert_eq!(found, (503, "CHAIN_UNAVAILABLE".into()), "{}", apart.body);
    }
    let body = authorization("nowhere", [ZERO, RECEIVER], &Value::Null);
    let answer = daemon.attest(AUTHORIZATIONS, &body).await;
    assert_eq!(answer.code(), "CHAIN_NOT_AVAILABLE", "{}", answer.body);
    // The hub is asked, which has no hash of theirs.
    let xrp = json!({ "xrp-vm": { "sequence": 1, "fee": 12, "lastLedgerSequence": 9 } });
    let perps = json!({ "hyperliquid-vm": { "nonce": 1 } });
    for (chain, currency, receiver, additional) in [
        (
            "xrp",
            native("xrp-vm"),
            "rwVkNZa3iHcwaHbiUPAFLJUHAwk8AupV1C",
            xrp,
        ),
        ("hyperliquid", native("hyperliquid-vm"), RECEIVER, perps),
    ] {
        let mut body = authorization(chain, [currency, receiver], &additional);
        body["hashIndexes"] = json!([0]);
        let answer = daemon.attest(INCLUSIONS, &body).await;
        assert_eq!(answer.code(), "HASH_TO_SIGN_NOT_SET", "{}", answer.body);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_to_which_nothing_is_authorized_is_named_before_a_signature_is_asked_for() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).start().await;
    let unsigned = |chain: &str| {
        let mut body = authorization(chain, [ZERO, RECEIVER], &Value::Null);
        body.as_object_mut().unwrap().remove("ownerSignature");
        body
    };
    let (unserved, unknown) = ("WITHDRAWALS_UNSUPPORTED", "CHAIN_NOT_AVAILABLE");
    // With neither a signature nor a returned deposit, and with a deposit of which nothing is said.
    for (chain, codes) in [
        ("hyperliquid", [unserved; 2]),
        ("xrp", [unserved; 2]),
        ("nowhere", [unknown; 2]),
        (
            "ethereum",
            ["OWNER_SIGNATURE_MISSING", "RECOVERY_INCOMPLETE"],
        ),
    ] {
        for (returned, code) in [false, true].into_iter().zip(codes) {
            let mut body = unsigned(chain);
            body["recoverMode"] = json!(returned);
            let answer = daemon.attest(AUTHORIZATIONS, &body).await;
            assert_eq!(answer.code(), code, "{chain} {}", answer.body);
        }
    }
    daemon.stop().await;
}

/// A key of one's own is all that a nonce mapping needs.
#[tokio::test(flavor = "multi_thread")]
async fn below_the_reserve_what_costs_a_stranger_nothing_is_signed_for_keys() {
    let world = world::world().await;
    let daemon = daemon()
        .recorded(&world)
        .key("k")
        .with("UNAUTHENTICATED_RATE_LIMIT_MAX", "100")
        .with("DISK_RESERVE", u64::MAX.to_string())
        .start()
        .await;
    let recorded = fixture("recorded/messages.json");
    let mut cases = recorded.as_array().unwrap().iter();
    let path = "/attestations/signatures/nonce-mapping/v2";
    let case = cases.find(|case| case["path"] == path && case["response"]["status"] == 200);
    let body = &case.unwrap()["body"];
    for (key, status, code) in [("", 503, "DISK_RESERVE"), ("k", 200, ""), ("", 200, "")] {
        let answer = daemon.post(path, key, body).await;
        let found = (answer.status.as_u16(), answer.code());
        assert_eq!(found, (status, code.to_owned()), "{key} {}", answer.body);
    }
    daemon.stop().await;
}

fn daemon_over(world: &Devnet, files: &devnet::world::Files) -> Setup {
    daemon().chains(files).signer(&world.oracles[0])
}
