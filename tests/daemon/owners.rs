//! Owners whose keys only their chains know: wallets on TON and accounts on Lighter.

use std::sync::{Arc, Mutex};

use alloy::hex;
use devnet::account::Account;
use ed25519_dalek::{Signer, SigningKey};
use hyper::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use vm::protocol::owner::{Kind, Operation};

use crate::{
    evidence::{intentd, statements},
    support::{
        daemon::{Answer, Daemon, Setup, daemon},
        fixture,
        http::{Server, json as answer, serve},
        world,
    },
};

const AUTHORIZATIONS: &str = "/attestations/withdraw-request-authorization/v1";
const WALLET: &str = "0:f37b9f6fd97ece249cb48d9aa5d0202570ad130b7b7d4ce4dd0f4cd551b3d9bd";
const ACCOUNT: &str = "722011";
const NATIVE: &str = "0x0000000000000000000000000000000000000000";
const RECEIVER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";

/// What a provider of both chains says.
#[derive(Clone)]
struct Says {
    /// The result of a wallet's getter.
    getter: Value,
    /// The answer about an account.
    account: (u16, Value),
    genesis: &'static str,
    contract: &'static str,
    /// What it was asked: methods, and paths.
    asked: Vec<String>,
}

const GENESIS: &str = "F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=";
const CONTRACT: &str = "0x3B4D794a66304F130a4Db8F2551B0070dfCf5ca7";

/// A provider, and what may be changed about it.
async fn provider(says: Says) -> (Server, Arc<Mutex<Says>>) {
    let says = Arc::new(Mutex::new(says));
    let told = says.clone();
    let server = serve(move |asked| {
        let mut says = told.lock().unwrap();
        let (what, (status, body)) = match serde_json::from_slice::<Value>(&asked.body) {
            Ok(question) => {
                assert_eq!(question["id"], "1");
                let method = question["method"].as_str().unwrap().to_owned();
                let wanted = json!({ "address": WALLET, "method": "get_public_key", "stack": [] });
                let result = match method.as_str() {
                    "runGetMethod" if question["params"] == wanted => says.getter.clone(),
                    "getMasterchainInfo" => json!({ "init": { "root_hash": says.genesis } }),
                    _ => panic!("{question}"),
                };
                let body = json!({ "ok": true, "result": result, "id": "1", "jsonrpc": "2.0" });
                (method, (200, body))
            }
            Err(_) => match asked.target.as_str() {
                "/api/v1/account?by=index&value=722011" => (asked.target, says.account.clone()),
                "/info" => (
                    asked.target,
                    (200, json!({ "contract_address": says.contract })),
                ),
                other => panic!("{other}"),
            },
        };
        says.asked.push(what);
        let status = StatusCode::from_u16(status).unwrap();
        async move { Some(answer(status, body.to_string().into_bytes())) }
    });
    (server.await, says)
}

fn wallet() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// The account on Ethereum of the Lighter account.
fn account() -> Account {
    Account::named("lighter owner").unwrap()
}

fn getter(key: [u8; 32]) -> Value {
    let number = format!("0x{}", hex::encode(key).trim_start_matches('0'));
    json!({ "@type": "smc.runResult", "gas_used": 549, "exit_code": 0, "stack": [["num", number]] })
}

fn truth() -> Says {
    let accounts = json!([{ "index": 722_011, "l1_address": account().address().to_string() }]);
    Says {
        getter: getter(wallet().verifying_key().to_bytes()),
        account: (
            200,
            json!({ "code": 200, "total": 1, "accounts": accounts }),
        ),
        genesis: GENESIS,
        contract: CONTRACT,
        asked: Vec::new(),
    }
}

/// What the owner signs.
fn digest(chain: &str, owner: &str, amount: &str) -> [u8; 32] {
    let operation = Operation {
        kind: Kind::Withdrawal,
        chain_id: "ethereum",
        currency: NATIVE,
        amount,
        owner_chain_id: chain,
        owner,
        recipient: RECEIVER,
        nonce: &nonce(),
        additional: None,
    };
    operation.digest()
}

fn nonce() -> String {
    format!("0x{}", "0b".repeat(32))
}

fn body(chain: &str, owner: &str, signature: String) -> Value {
    json!({
        "chainId": "ethereum", "currency": NATIVE, "amount": "5", "spenderChainId": chain,
        "spender": owner, "receiver": RECEIVER, "nonce": nonce(), "ownerSignature": signature,
    })
}

fn by_wallet() -> Value {
    let account = hex::decode(&WALLET[2..]).unwrap();
    let text = hex::encode(digest("ton", WALLET, "5"));
    let account = account[..].try_into().unwrap();
    let hash = vm::ton::owner::sign_data_hash(account, "app.relay.link", 1_764_000_000, &text);
    let signature = wallet().sign(&hash).to_bytes();
    let mut body = body("ton", WALLET, hex::encode_prefixed(signature));
    body["signatureMetadata"] =
        json!({ "ton-vm": { "timestamp": 1_764_000_000, "domain": "app.relay.link" } });
    body
}

fn by_account() -> Value {
    let signature = account()
        .sign_message(&digest("lighter", ACCOUNT, "5"))
        .unwrap();
    body("lighter", ACCOUNT, hex::encode_prefixed(signature))
}

fn setup(world: &Server, providers: [&Server; 2]) -> Setup {
    let urls = providers
        .map(|provider| format!("http://{}", provider.address))
        .join(",");
    daemon()
        .recorded(world)
        .with("TON_RPC_URL", urls.clone())
        .with("LIGHTER_RPC_URL", urls)
}

impl Daemon {
    async fn authorized(&self, body: &Value) -> Answer {
        self.post(AUTHORIZATIONS, "", body).await
    }
}

fn refused(answer: &Answer, code: &str, why: &str) {
    let body = answer.json();
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (400, code),
        "{body}"
    );
    assert_eq!(body["message"], why);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_on_ton_or_lighter_signs_with_the_key_that_its_providers_agree_on() {
    let world = world::world().await;
    let ((one, _), (two, told)) = (provider(truth()).await, provider(truth()).await);
    let daemon = setup(&world, [&one, &two]).start().await;
    for claim in [by_wallet(), by_account()] {
        let answer = daemon.authorized(&claim).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        assert_eq!(answer.json()["withdrawRequest"]["amount"], "5");
    }
    // Another amount, domain or time than was signed.
    for (pointer, value) in [
        ("/amount", json!("6")),
        ("/signatureMetadata/ton-vm/domain", json!("relay.link")),
        ("/signatureMetadata/ton-vm/timestamp", json!(1)),
    ] {
        let mut claim = by_wallet();
        *claim.pointer_mut(pointer).unwrap() = value;
        let answer = daemon.authorized(&claim).await;
        refused(&answer, "OWNER_SIGNATURE_INVALID", "Invalid signature");
    }
    let mut claim = by_wallet();
    claim["signatureMetadata"]["ton-vm"]["domain"] = json!("relay.link.example");
    let why = "Signature domain relay.link.example is not allowed";
    refused(
        &daemon.authorized(&claim).await,
        "OWNER_SIGNATURE_INVALID",
        why,
    );
    claim.as_object_mut().unwrap().remove("signatureMetadata");
    let why = "Missing timestamp of the TON signature";
    refused(
        &daemon.authorized(&claim).await,
        "OWNER_SIGNATURE_INVALID",
        why,
    );

    // One provider of two says something else.
    let mut other = truth();
    other.getter = getter([9; 32]);
    other.account.1["accounts"][0]["l1_address"] = json!(RECEIVER);
    *told.lock().unwrap() = other;
    for mut claim in [by_wallet(), by_account()] {
        claim["nonce"] = json!(format!("0x{}", "0c".repeat(32)));
        let answer = daemon.authorized(&claim).await;
        assert_eq!(answer.status, 503, "{}", answer.json());
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_wallets_signature_is_a_whole_number_however_it_is_written() {
    let world = world::world().await;
    let ((one, _), (two, told)) = (provider(truth()).await, provider(truth()).await);
    let daemon = setup(&world, [&one, &two]).start().await;
    let at = |timestamp: &Value| {
        let mut claim = by_wallet();
        claim["signatureMetadata"]["ton-vm"]["timestamp"] = timestamp.clone();
        claim
    };
    for timestamp in [
        json!(1_764_000_000.5),
        json!("1764000000.5"),
        json!("soon"),
        json!(""),
        json!(-1),
    ] {
        let answer = daemon.authorized(&at(&timestamp)).await;
        let why = "Invalid timestamp of the TON signature";
        refused(&answer, "OWNER_SIGNATURE_INVALID", why);
    }
    assert!(told.lock().unwrap().asked.is_empty());
    for timestamp in [
        json!("1764000000"),
        json!("0x69248100"),
        json!(1_764_000_000.0),
    ] {
        let answer = daemon.authorized(&at(&timestamp)).await;
        assert_eq!(answer.status, 200, "{timestamp}: {}", answer.json());
    }
    let answer = daemon.authorized(&at(&json!("1764000001"))).await;
    refused(&answer, "OWNER_SIGNATURE_INVALID", "Invalid signature");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_without_a_key_signs_nothing_and_unknown_chains_are_named() {
    let nobody = Says {
        getter: json!({ "@type": "smc.runResult", "gas_used": 1, "exit_code": 11, "stack": [] }),
        account: (
            400,
            json!({ "code": 21_100, "message": "account not found" }),
        ),
        ..truth()
    };
    let world = world::world().await;
    let ((one, _), (two, _)) = (provider(nobody.clone()).await, provider(nobody).await);
    let bare = daemon().recorded(&world);
    let daemon = setup(&world, [&one, &two]).start().await;
    let why = format!("TON account {WALLET} has no public key");
    refused(
        &daemon.authorized(&by_wallet()).await,
        "OWNER_SIGNATURE_INVALID",
        &why,
    );
    let why = format!("Lighter account {ACCOUNT} has no l1_address");
    refused(
        &daemon.authorized(&by_account()).await,
        "OWNER_SIGNATURE_INVALID",
        &why,
    );
    daemon.stop().await;

    let daemon = bare.start().await;
    for claim in [by_wallet(), by_account()] {
        let answer = daemon.authorized(&claim).await;
        let told = (answer.status.as_u16(), answer.code());
        assert_eq!(told, (503, "CHAIN_UNAVAILABLE".into()), "{}", answer.json());
    }
    daemon.stop().await;
}

/// What no key makes good is refused before anybody is asked for one.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_key_makes_good_costs_no_call() {
    let world = world::world().await;
    let ((one, told), (two, _)) = (provider(truth()).await, provider(truth()).await);
    let daemon = setup(&world, [&one, &two]).start().await;
    for (mut claim, pointer, value) in [
        (by_wallet(), "/ownerSignature", json!("0x")),
        (
            by_wallet(),
            "/ownerSignature",
            json!(format!("0x{}", "11".repeat(65))),
        ),
        (by_wallet(), "/signatureMetadata", json!({ "tron-vm": {} })),
        (
            by_wallet(),
            "/signatureMetadata/ton-vm/domain",
            json!("else.where"),
        ),
        (by_account(), "/ownerSignature", json!("0x12")),
        (
            by_account(),
            "/ownerSignature",
            json!(format!("0x{}", "ff".repeat(65))),
        ),
    ] {
        *claim.pointer_mut(pointer).unwrap() = value;
        let answer = daemon.authorized(&claim).await;
        assert_eq!(answer.code(), "OWNER_SIGNATURE_INVALID", "{claim}");
    }
    assert!(told.lock().unwrap().asked.is_empty());
    assert_eq!(daemon.authorized(&by_account()).await.status, 200);
    assert_eq!(told.lock().unwrap().asked.len(), 1);
    daemon.stop().await;
}

/// Indexes of accounts are given out anew on every network, and wallets may have had other keys there.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_another_network_is_not_believed() {
    let mut chains = fixture("recorded/chains.json");
    for entry in chains.as_array_mut().unwrap() {
        if entry["id"] == "ton" {
            entry["additionalData"]["genesisHash"] = json!(GENESIS);
        }
        if entry["id"] == "lighter" {
            entry["additionalData"]["contractAddress"] = json!(CONTRACT);
        }
    }
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("chains.json");
    std::fs::write(&file, chains.to_string()).unwrap();
    let world = world::world().await;
    let ((one, _), (two, told)) = (provider(truth()).await, provider(truth()).await);
    {
        let mut says = told.lock().unwrap();
        says.genesis = "gj+B8wb/AmlPk1z1AhVI484rhrUpgSr2oSFIh56VoSg=";
        says.contract = RECEIVER;
    }
    let setup = setup(&world, [&one, &two]).with("CHAINS_FILE", file.display().to_string());
    let daemon = setup.start().await;
    for claim in [by_wallet(), by_account()] {
        let answer = daemon.authorized(&claim).await;
        assert_eq!(answer.status, 503, "{}", answer.json());
    }
    {
        let mut says = told.lock().unwrap();
        assert_eq!(says.asked, ["getMasterchainInfo", "/info"]);
        (says.genesis, says.contract) = (GENESIS, CONTRACT);
    }
    for claim in [by_wallet(), by_account()] {
        assert_eq!(daemon.authorized(&claim).await.status, 200);
        assert_eq!(daemon.authorized(&claim).await.status, 200);
    }
    // A provider shows its network once.
    let asked = told.lock().unwrap().asked.clone();
    let shown = asked
        .iter()
        .filter(|what| *what == "/info" || *what == "getMasterchainInfo");
    assert_eq!(shown.count(), 4);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_evidence() {
    let world = world::world().await;
    let ((one, _), (two, _)) = (provider(truth()).await, provider(truth()).await);
    let setup = setup(&world, [&one, &two]);
    let daemon = setup.start().await;
    assert_eq!(daemon.authorized(&by_wallet()).await.status, 200);
    let directory = daemon.end().await;
    let keys = statements(&directory).await;
    let [key] = &keys[..] else {
        panic!("{keys:?}");
    };
    let daemon = setup.start_in(directory).await;
    let told = intentd(&setup, &daemon, &["explain", key], "")
        .await
        .unwrap();
    assert!(
        told.contains(&format!("the owner's key of {WALLET}: 0x")),
        "{told}"
    );
    let document = intentd(&setup, &daemon, &["explain", "--json", key], "")
        .await
        .unwrap();
    let verify = async |document: &str| intentd(&setup, &daemon, &["verify", "-"], document).await;
    verify(&document).await.unwrap();
    let known = hex::encode(wallet().verifying_key().to_bytes());
    assert!(document.contains(&known), "{document}");
    let changed = document.replace(&known, &"09".repeat(32));
    let why = verify(&changed).await.unwrap_err();
    assert!(why.contains("agree about the owner's key"), "{why}");
    daemon.stop().await;
}
