//! Integrators from the operator's command to the integrator's request: what keys open, how much of
//! it, how they end, and whose wallets are linked.

use std::{
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
};

use crate::support::daemon::{Daemon, KEY, Setup, daemon};
use alloy::signers::{SignerSync, local::PrivateKeySigner};
use devnet::world::Files;
use intentd::store::{Store, integrators::Integrators, sled::SledStore};
use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

const ORACLE: &str = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
/// A key of `API_KEYS`.
const FOREIGN: &str = "of-the-oracle";

/// A daemon with both listeners over one chain that nobody can read: enough to knock at its doors.
fn setup() -> Setup {
    let chain = json!({
        "id": "dark", "vmType": "ethereum-vm", "httpRpcUrl": "$DARK_RPC_URL", "hubChainId": "7",
        "depository": "0x5fbdb2315678afecb367f032d93f642f64180aa3",
    });
    let hub = json!({
        "id": "relay", "evmChainId": "31337", "oracleVersion": "2", "oracleAddress": ORACLE,
        "httpRpcUrl": "http://127.0.0.1:1/", "auroraAllocatorAddress": ORACLE,
        "auroraEvmChainId": "2", "auroraHttpRpcUrl": "http://127.0.0.1:1/",
    });
    let market = json!([{
        "name": "dark", "chainId": 7, "displayName": "Dark", "fillRouter": ORACLE,
        "approvalProxy": ORACLE, "fillConfirmations": 1, "blockSeconds": 1,
        "currencies": [{
            "address": "0x0000000000000000000000000000000000000000", "symbol": "ETH",
            "name": "Ether", "decimals": 18, "group": "eth", "class": "major", "solver": true,
            "prices": [{"kind": "peg", "usd": "1000"}],
        }],
    }]);
    daemon()
        .chains(&Files {
            chains: json!([chain]),
            hub,
            market,
            environment: Vec::new(),
        })
        .with("INTEGRATOR_HTTP_PORT", "0")
        .with("SOLVER_PRIVATE_KEY", KEY)
        .key(FOREIGN)
}

/// The command line, as an operator runs it on the daemon's machine, with this on its standard input.
async fn intentd(data_dir: &Path, words: &[&str], input: &str) -> Output {
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_intentd"))
        .arg("integrators")
        .args(words)
        .env_clear()
        .env("DATA_DIR", data_dir)
        .env("ENVIRONMENT", "test")
        .env("ECDSA_PRIVATE_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Who refuses its words reads nothing.
    let _unread = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

/// What it printed.
async fn done(data_dir: &Path, words: &[&str]) -> String {
    piped(data_dir, words, "").await
}

/// As [`done`], with this on its standard input.
async fn piped(data_dir: &Path, words: &[&str], input: &str) -> String {
    let output = intentd(data_dir, words, input).await;
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {why}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim_end().to_owned()
}

/// What it complained of.
async fn refused(data_dir: &Path, words: &[&str]) -> String {
    refused_of(data_dir, words, "").await
}

async fn refused_of(data_dir: &Path, words: &[&str], input: &str) -> String {
    let output = intentd(data_dir, words, input).await;
    assert!(!output.status.success(), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Asks for a quote that cannot be: 400 says that the gate was open.
async fn quote(daemon: &Daemon, key: &str) -> Response {
    let url = format!("{}/quote/v2", daemon.integrator_url());
    let request = reqwest::Client::new().post(url).header("x-api-key", key);
    request.json(&json!({})).send().await.unwrap()
}

async fn quote_status(daemon: &Daemon, key: &str) -> u16 {
    quote(daemon, key).await.status().as_u16()
}

async fn get(url: String, key: &str) -> Response {
    let request = reqwest::Client::new().get(url).header("x-api-key", key);
    request.send().await.unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    Some(response.headers().get(name)?.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_find_the_version_in_a_report_and_the_oracles_clients_where_it_was() {
    let daemon = setup().with("IMAGE_TAG", "v9").start().await;
    daemon.ask("GET", "/lives/v1", &[], None).await;
    let (apps, oracle) = (daemon.integrator_url(), daemon.url.as_str());
    let plain = r#"{"status":"ok"}"#;
    let reported = r#"{"status":"ok","version":"v9","report":{"version":"v9"}}"#;
    for (base, path, wanted) in [
        (apps, "/lives", plain),
        (apps, "/lives?withReport=true", reported),
        (apps, "/lives/v1?withReport=1", reported),
        (apps, "/lives?withReport=false", plain),
        (oracle, "/lives/v1", plain),
        (
            oracle,
            "/lives/v1?withReport=true",
            r#"{"status":"ok","version":"v9"}"#,
        ),
    ] {
        let answer = reqwest::get(format!("{base}{path}")).await.unwrap();
        assert_eq!(answer.text().await.unwrap(), wanted, "{base}{path}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_it_may_and_ends_when_it_is_revoked() {
    let daemon = setup().start().await;
    let data_dir = daemon.data_dir();
    daemon.ask("GET", "/lives/v1", &[], None).await;
    let key = done(&data_dir, &["add", "app"]).await;
    let answer = quote(&daemon, &key).await;
    assert_eq!(answer.status(), 400);
    let stands = ["ratelimit-limit", "ratelimit-remaining"].map(|name| header(&answer, name));
    assert_eq!(stands, [Some("50"), Some("49")]);
    // What the oracle knows, what is stored, and what is nothing.
    let listed = done(&data_dir, &["list"]).await;
    for unknown in [
        FOREIGN,
        "__proto__",
        "constructor",
        &key[..72],
        &key.to_uppercase(),
    ] {
        let answer = quote(&daemon, unknown).await;
        assert_eq!(answer.status(), 401, "{unknown}");
        assert_eq!(header(&answer, "ratelimit-limit"), Some("300"));
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["errorCode"], "UNAUTHORIZED", "{body}");
        assert!(body["message"].is_string());
        assert!(!listed.contains(unknown));
    }
    assert_eq!(quote_status(&daemon, "").await, 400);
    let chains = format!("{}/chains", daemon.integrator_url());
    let ignored = get(chains.clone(), FOREIGN).await;
    assert_eq!(
        (
            ignored.status().as_u16(),
            header(&ignored, "ratelimit-limit")
        ),
        (200, Some("300"))
    );
    let oracles = get(format!("{}/chains/v1", daemon.url), &key).await;
    assert_eq!(
        (oracles.status(), header(&oracles, "ratelimit-limit")),
        (401.try_into().unwrap(), None)
    );
    // Other scopes, then none.
    done(&data_dir, &["set", "app", "--scope", "requests:read"]).await;
    // It still has what needs no key, and counts there as none.
    let answer = quote(&daemon, &key).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(header(&answer, "ratelimit-limit"), Some("300"));
    done(&data_dir, &["set", "app", "--scope", "quote"]).await;
    let listing = format!("{}/requests/v3", daemon.integrator_url());
    let answer = get(listing, &key).await;
    assert_eq!(answer.status(), 403);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["errorCode"], "FORBIDDEN", "{body}");
    assert_eq!(get(chains.clone(), &key).await.status(), 200);
    let unsure = refused(&data_dir, &["revoke", "app"]).await;
    assert!(unsure.contains("--yes"), "{unsure}");
    done(&data_dir, &["revoke", "app", "--yes"]).await;
    assert_eq!(quote_status(&daemon, &key).await, 401);
    let after = get(chains, &key).await;
    assert_eq!(header(&after, "ratelimit-limit"), Some("300"));
    let daemon = daemon.restart().await;
    assert_eq!(quote_status(&daemon, &key).await, 401);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_gives_a_new_key_and_lets_the_old_one_live_for_a_while() {
    let daemon = setup().start().await;
    let first = daemon.integrator("app").await;
    let data_dir = daemon.data_dir();
    let second = done(&data_dir, &["rotate", "app"]).await;
    assert_eq!(quote_status(&daemon, &first).await, 400);
    assert_eq!(quote_status(&daemon, &second).await, 400);
    let listed = done(&data_dir, &["list"]).await;
    assert!(listed.contains("ends in 23h"), "{listed}");
    let daemon = daemon.restart().await;
    assert_eq!(quote_status(&daemon, &first).await, 400);
    let data_dir = daemon.data_dir();
    let third = done(&data_dir, &["rotate", "app", "--grace", "0"]).await;
    for (key, status) in [(&first, 401), (&second, 401), (&third, 400)] {
        assert_eq!(quote_status(&daemon, key).await, status);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_ask_as_much_as_its_tier_says() {
    let rates = "default.quotes=50/h,keyless.quotes=2/h";
    let daemon = setup().with("RATE_LIMITS", rates).start().await;
    daemon.ask("GET", "/lives/v1", &[], None).await;
    let data_dir = daemon.data_dir();
    let key = done(&data_dir, &["add", "app"]).await;
    let other = daemon.integrator("own").await;
    // Its own, and what its address has without it.
    for _ in 0..52 {
        assert_eq!(quote_status(&daemon, &key).await, 400);
    }
    let over = quote(&daemon, &key).await;
    assert_eq!(over.status(), 429);
    let wait: u64 = header(&over, "retry-after").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&wait), "{wait}");
    assert_eq!(
        header(&over, "ratelimit-reset"),
        header(&over, "retry-after")
    );
    let stands = ["ratelimit-limit", "ratelimit-remaining"].map(|name| header(&over, name));
    assert_eq!(stands, [Some("50"), Some("0")]);
    let body: Value = over.json().await.unwrap();
    assert!(body["message"].is_string(), "{body}");
    // `/price` is in the same bucket, the rest is not; nor are other keys.
    let price = format!("{}/price", daemon.integrator_url());
    let price = reqwest::Client::new().post(price).header("x-api-key", &key);
    assert_eq!(price.json(&json!({})).send().await.unwrap().status(), 429);
    let url = |path: &str| format!("{}{path}", daemon.integrator_url());
    let chains = get(url("/chains"), &key).await;
    assert_eq!(
        (chains.status().as_u16(), header(&chains, "ratelimit-limit")),
        (200, Some("200"))
    );
    let standing = get(url("/transactions/status"), &key).await;
    assert_eq!(header(&standing, "ratelimit-remaining"), Some("199"));
    let free = quote(&daemon, &other).await;
    assert_eq!(
        (free.status().as_u16(), header(&free, "ratelimit-limit")),
        (400, None)
    );
    done(&data_dir, &["set", "app", "--tier", "unlimited"]).await;
    assert_eq!(quote_status(&daemon, &key).await, 400);
    daemon.stop().await;
}

/// Several inputs, none of which can be quoted, by somebody without a key.
async fn several(daemon: &Daemon, count: usize) -> Response {
    let origin = json!({"chainId": 5, "currency": "0x12", "amount": "1"});
    let body = json!({
        "user": "0x12", "destinationChainId": 5, "destinationCurrency": "0x12",
        "tradeType": "EXACT_INPUT", "origins": vec![origin; count],
    });
    let url = format!("{}/execute/swap/multi-input", daemon.integrator_url());
    let request = reqwest::Client::new().post(url).json(&body);
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_several_inputs_counts_as_that_many_quotes() {
    let rates = "keyless.quotes=5/m";
    let daemon = setup().with("RATE_LIMITS", rates).start().await;
    daemon.ask("GET", "/lives/v1", &[], None).await;
    for (count, status, remaining) in [(3, 400, "2"), (3, 429, "1"), (1, 400, "0"), (1, 429, "0")] {
        let answer = several(&daemon, count).await;
        assert_eq!(answer.status(), status, "{count}");
        let stands = header(&answer, "ratelimit-remaining");
        assert_eq!(stands, Some(remaining), "{count}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["statusCode"], status, "{body}");
    }
    assert_eq!(quote_status(&daemon, "").await, 429);
    daemon.stop().await;
    // What can never fit takes the next minutes.
    let rates = "keyless.quotes=2/m";
    let daemon = setup().with("RATE_LIMITS", rates).start().await;
    daemon.ask("GET", "/lives/v1", &[], None).await;
    for (count, status) in [(4, 400), (4, 429), (1, 429)] {
        assert_eq!(several(&daemon, count).await.status(), status, "{count}");
    }
    daemon.stop().await;
}

/// What is refused where `app` is, and what is said then.
const REFUSED: &[(&[&str], &str)] = &[
    (&["add", "app"], "called app already"),
    (&["add", "a b"], "a label has"),
    (&["add", "b", "--scope", "all"], "expected one of quote"),
    (
        &["revoke", "nobody", "--yes"],
        "no integrator called nobody",
    ),
    (&["set", "app"], "nothing to set"),
    (&["rotate", "app", "--grace", "soon"], "such as 24h"),
    (
        &["webhook", "app", "--remove-header", "x-b"],
        "no header x-b",
    ),
    (&["webhook", "app"], "--url"),
    (&["wallet", "app", "--address", "0x12"], "invalid"),
    // Neither stands on a command line, whatever it looks like.
    (
        &["webhook", "app", "--url", "https://example.org/"],
        "--url -",
    ),
    (
        &["webhook", "app", "--url", "https://example.org/T0/B0/x"],
        "--url -",
    ),
    (&["webhook", "app", "--header", "x-auth: a"], "--header -"),
    (&["webhook", "app", "--header", "x-a: 1"], "--header -"),
];

/// What is refused of standard input.
const UNREAD: [(&[&str], &str, &str); 6] = [
    (&["--url", "-"], "http://example.org/\n", "https://"),
    (&["--url", "-"], "example.org\n", "--url"),
    (&["--url", "-"], "", "--url"),
    (
        &["--url", "-", "--header", "-"],
        "https://a/\nHost: b\n",
        "header host",
    ),
    (&["--header", "-"], "x-a: b\tc\rd\n", "header x-a"),
    (&["--header", "-"], "x-a: 1\nx-a: 2\n", "twice"),
];

#[tokio::test(flavor = "multi_thread")]
async fn without_a_daemon_the_command_has_the_store_to_itself() {
    let place = TempDir::new().unwrap();
    let data_dir = place.path().join("data");
    let why = refused(&data_dir, &["list"]).await;
    assert!(why.contains("there is no store"), "{why}");
    assert!(!data_dir.exists());
    let add = ["add", "app", "--tier", "elevated", "--scope", "quote"];
    let why = refused(&data_dir, &add).await;
    assert!(why.contains("--create"), "{why}");
    assert!(!data_dir.exists());
    let key = done(&data_dir, &[&add[..], &["--create"]].concat()).await;
    let hook = ["webhook", "app", "--url", "-", "--header", "-"];
    let secrets = "https://example.org/secret-path\nauthorization: Bearer hidden\n";
    piped(&data_dir, &hook, secrets).await;
    // What is not named stays: see what the store has.
    let header = ["webhook", "app", "--header", "-"];
    piped(&data_dir, &header, "x-a: 1\n").await;
    let store: Arc<dyn Store> = Arc::new(SledStore::open(&data_dir.join("store")).unwrap());
    let book = Integrators::open(store.clone()).await.unwrap().all();
    let kept = book["app"].webhook.clone().unwrap();
    assert_eq!(kept.url.path(), "/secret-path");
    assert_eq!(kept.headers["authorization"], "Bearer hidden");
    assert_eq!(kept.headers["x-a"], "1");
    store.close().await;
    drop(store);
    let list = done(&data_dir, &["list"]).await;
    let line = list.lines().nth(1).unwrap();
    for shown in ["app", "quote", "elevated", "example.org", "0s"] {
        assert!(line.contains(shown), "{list}");
    }
    for hidden in [&key, &key[..12], "secret-path", "hidden"] {
        assert!(!list.contains(hidden), "{list}");
    }
    for (words, wanted) in REFUSED {
        let why = refused(&data_dir, words).await;
        assert!(why.contains(wanted), "{words:?}: {why}");
    }
    for (words, input, wanted) in UNREAD {
        let words = [&["webhook", "app"], words].concat();
        let why = refused_of(&data_dir, &words, input).await;
        assert!(why.contains(wanted), "{words:?}: {why}");
    }
    // Who has the store without answering at the socket is not waited for.
    let store = SledStore::open(&data_dir.join("store")).unwrap();
    let output = intentd(&data_dir, &["list"], "").await;
    assert_eq!(output.status.code(), Some(75));
    drop(store);
    let daemon = setup().start_in(place).await;
    assert_eq!(quote_status(&daemon, &key).await, 400);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_linked_by_its_signature_alone() {
    let daemon = setup().start().await;
    daemon.integrator("app").await;
    daemon.integrator("other").await;
    let data_dir = daemon.data_dir();
    let wallet = PrivateKeySigner::from_slice(&[1; 32]).unwrap();
    let address = wallet.address().to_string();
    let said = done(&data_dir, &["wallet", "app", "--address", &address]).await;
    let (message, rest) = said.split_once("\n\nSign this text").unwrap();
    let signer = KEY.parse::<PrivateKeySigner>().unwrap().address();
    let service = format!("intentd test {signer:#x}");
    for named in [&service, "app", &address.to_lowercase()] {
        assert!(message.contains(named), "{message}");
    }
    let words: Vec<_> = rest.split(' ').collect();
    let time = words[words.iter().position(|word| *word == "--time").unwrap() + 1];
    let signature = wallet
        .sign_message_sync(message.as_bytes())
        .unwrap()
        .to_string();
    let link = |label, time| {
        [
            "wallet",
            label,
            "--address",
            &address,
            "--time",
            time,
            "--signature",
            &signature,
        ]
    };
    let why = refused(&data_dir, &link("other", time)).await;
    assert!(why.contains("has not signed"), "{why}");
    let why = refused(&data_dir, &link("app", "1700000000")).await;
    assert!(why.contains("last 5 minutes"), "{why}");
    done(&data_dir, &link("app", time)).await;
    let list = done(&data_dir, &["list"]).await;
    assert!(list.contains(&address.to_lowercase()), "{list}");
    done(&data_dir, &["wallet", "app", "--remove"]).await;
    // Also without the daemon a message links once.
    let place = daemon.end().await;
    let why = refused(&data_dir, &link("app", time)).await;
    assert!(why.contains("already"), "{why}");
    drop(place);
}
