//! Why statements were signed: `intentd explain`, `verify` and `attest` over the recorded world, as an operator runs
//! them beside the daemon.

use std::{
    collections::BTreeSet,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use alloy::primitives::U256;
use hyper::StatusCode;
use intentd::store::{
    Making, Range, Store,
    pair::{Directories, Pair},
    rows,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::support::{
    chain::DEPOSITS,
    daemon::{Daemon, Setup, daemon},
    fixture,
    http::{Server, json as json_answer, serve},
    world,
};

fn setup(world: &Server) -> Setup {
    daemon()
        .recorded(world)
        .with("API_KEYS", "apikey1:int1;clientkey:client")
        .with("FORCE_API_KEYS", "int1;client")
}

/// What the command line says, with this on its standard input; what it complains of is an error.
pub async fn intentd(
    setup: &Setup,
    daemon: &Daemon,
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let directory = TempDir::new().unwrap();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_intentd"))
        .args(words)
        .env_clear()
        .envs(setup.environment(directory.path()))
        .env("DATA_DIR", daemon.data_dir())
        .env_remove("ECDSA_PRIVATE_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _unread = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

/// The transactions that a body names, with their chains.
fn transactions(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut found = vec![(text(&body["chainId"]), text(&body["transactionId"]))];
    for input in body["inputs"].as_array().into_iter().flatten() {
        let at = input["inputIndex"].as_u64().unwrap_or_default() as usize;
        let chain = text(&body["order"]["inputs"][at]["payment"]["chainId"]);
        found.push((chain, text(&input["transactionId"])));
    }
    let output = text(&body["order"]["output"]["chainId"]);
    found.push((output, text(&body["fill"]["transactionId"])));
    let pairs = found.into_iter();
    pairs
        .filter_map(|(chain, transaction)| chain.zip(transaction))
        .collect()
}

/// The keys of all statements in the journal of a daemon that has ended.
pub async fn statements(directory: &TempDir) -> Vec<String> {
    let directories = Directories::new(directory.path().join("data"), None);
    let pair = Pair::open(&directories, Making::Refused).unwrap();
    let all = Range::new(rows::ENTRY, &[], None, usize::MAX);
    let found = pair.journal.scan(all).await.unwrap();
    pair.close().await;
    let names = found.into_iter().map(|(key, _)| key.name);
    names
        .map(|name| String::from_utf8(name.to_vec()).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_statement_is_explained_and_proved_by_its_evidence() {
    let world = world::world().await;
    let setup = setup(&world);
    let mut seen = BTreeSet::new();
    for transcript in ["evm", "bitcoin", "solana", "withdrawals", "messages"] {
        let daemon = setup.start().await;
        for case in fixture(&format!("recorded/{transcript}.json"))
            .as_array()
            .unwrap()
        {
            if case["method"] == "POST" && case["response"]["status"] == 200 {
                let path = case["path"].as_str().unwrap();
                daemon.post(path, "apikey1", &case["body"]).await;
            }
        }
        let directory = daemon.end().await;
        let keys = statements(&directory).await;
        let daemon = setup.start_in(directory).await;
        for key in keys {
            let words = ["explain", "--json", &key];
            let document = intentd(&setup, &daemon, &words, "").await.unwrap();
            let read: Value = serde_json::from_str(&document).unwrap();
            assert!(!read["answer"].is_null(), "{key}: {document}");
            let proved = intentd(&setup, &daemon, &["verify", "-"], &document).await;
            let proved = proved.unwrap_or_else(|why| panic!("{key}: {why}\n{document}"));
            assert!(
                proved.starts_with(&format!("verified    {key}\n")),
                "{proved}"
            );
            let told = intentd(&setup, &daemon, &["explain", &key], "")
                .await
                .unwrap();
            assert!(
                told.contains("signed      20") && told.contains("request     POST"),
                "{told}"
            );
            seen.insert(format!("{transcript} {}", key.split('/').next().unwrap()));
        }
        daemon.stop().await;
    }
    for kind in [
        "bitcoin deposit",
        "bitcoin outcome",
        "evm deposit",
        "evm outcome",
        "evm recover",
        "solana deposit",
        "solana outcome",
        "withdrawals initiation",
        "withdrawals transfer",
        "withdrawals withdrawal",
        "messages authorization",
        "messages inclusion",
        "messages mapping",
        "messages payload",
        "messages trigger",
        "messages withdraw-and-fill",
    ] {
        assert!(seen.contains(kind), "{kind}: {seen:?}");
    }
}

/// The first recorded request of a route that is answered with an execution.
fn recorded(path: &str) -> Value {
    let cases = fixture("recorded/evm.json");
    let answered = |case: &&Value| {
        let text = case["response"]["body"].as_str().unwrap_or_default();
        let plain =
            case["body"]["force"].is_null() && case["body"]["requestPeerSignatures"].is_null();
        case["path"] == path
            && plain
            && case["response"]["status"] == 200
            && text.contains("\"execution\"")
    };
    let found = cases.as_array().unwrap().iter().find(answered);
    found.unwrap()["body"].clone()
}

/// The only document about a transaction.
async fn document(setup: &Setup, daemon: &Daemon, chain: &str, transaction: &str) -> Value {
    let words = ["explain", "--json", chain, transaction];
    let document = intentd(setup, daemon, &words, "").await.unwrap();
    serde_json::from_str(&document).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_document_that_was_changed_is_refused_with_the_reason() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let claim = recorded(DEPOSITS);
    assert_eq!(daemon.post(DEPOSITS, "apikey1", &claim).await.status, 200);
    let (chain, transaction) = transactions(&claim).remove(0);
    let sound = document(&setup, &daemon, &chain, &transaction).await;
    let of = |kind: &str| {
        let reads = sound["reads"].as_array().unwrap();
        let found = reads
            .iter()
            .position(|read| read["question"].get(kind).is_some());
        found.unwrap()
    };
    let (head, found) = (of("head"), of("transaction"));
    let hash = |byte: &str| format!("0x{}", byte.repeat(32));
    type Change<'a> = (&'a str, Box<dyn Fn(&mut Value) + 'a>, &'a str);
    let set = |pointer: String, to: Value| -> Box<dyn Fn(&mut Value)> {
        Box::new(move |value| *value.pointer_mut(&pointer).unwrap() = to.clone())
    };
    let read = |at: usize, rest: &str| format!("/reads/{at}/{rest}");
    let body = |change: &dyn Fn(&mut Value)| {
        let mut body: Value =
            serde_json::from_str(sound["request"]["body"].as_str().unwrap()).unwrap();
        change(&mut body);
        Value::from(body.to_string())
    };
    let receipt = read(found, "answer/transaction/succeeded");
    let cases: Vec<Change<'_>> = vec![
        (
            "format",
            set("/format".into(), json!("intentd-attestation/9")),
            "format",
        ),
        (
            "no digest",
            Box::new(|value| {
                value.as_object_mut().unwrap().remove("digest");
            }),
            "digest",
        ),
        (
            "unknown field",
            Box::new(|value| value["trust"] = json!(true)),
            "trust",
        ),
        (
            "digest",
            set("/digest".into(), json!(hash("11"))),
            "digest: ",
        ),
        (
            "signer",
            set(
                "/signer".into(),
                json!("0x00000000000000000000000000000000000000aa"),
            ),
            "not of 0x00000000000000000000000000000000000000aa",
        ),
        (
            "signature",
            set(
                "/signature".into(),
                json!(format!("0x{}1b", "11".repeat(64))),
            ),
            "signature",
        ),
        (
            "short signature",
            set("/signature".into(), json!("0x1234")),
            "signature cannot be read",
        ),
        (
            "no signature",
            Box::new(|value| {
                value.as_object_mut().unwrap().remove("signature");
            }),
            "no signature",
        ),
        (
            "statement",
            set("/statement".into(), json!("deposit/base/0x1/slow/0x2")),
            "statement: ",
        ),
        (
            "configuration",
            set("/configuration".into(), json!(hash("22"))),
            "configuration: ",
        ),
        (
            "route",
            set("/request/target".into(), json!("/attestations/no-such/v1")),
            "no route",
        ),
        (
            "other transaction",
            set(
                "/request/body".into(),
                body(&|body| body["transactionId"] = json!(hash("33"))),
            ),
            "no answer about the transaction",
        ),
        (
            "no claim",
            set("/request/body".into(), json!("")),
            "too large to keep",
        ),
        (
            "amount",
            set(format!("{receipt}/deposits/Ok/0/amount"), json!("0x1")),
            "agree about the transaction",
        ),
        (
            "depositor",
            set(
                format!("{receipt}/deposits/Ok/0/depositor/bytes"),
                json!(format!("0x{}", "44".repeat(20))),
            ),
            "agree about the transaction",
        ),
        (
            "block",
            set(format!("{receipt}/block/hash"), json!(hash("55"))),
            "agree about the transaction",
        ),
        (
            "vote",
            set(read(found, "votes/0/said"), json!({"answer": hash("66")})),
            "agree about the transaction",
        ),
        (
            "no votes",
            set(read(found, "votes"), json!([])),
            "nobody's word for the transaction",
        ),
        (
            "two votes",
            Box::new(|value| {
                let votes = value
                    .pointer_mut(&read(found, "votes"))
                    .unwrap()
                    .as_array_mut()
                    .unwrap();
                votes.push(votes[0].clone());
            }),
            "has two votes",
        ),
        (
            "no head",
            Box::new(|value| {
                value["reads"].as_array_mut().unwrap().remove(head);
            }),
            "no answer about the head",
        ),
        (
            "young head",
            Box::new(|value| {
                let block = value.pointer(&format!("{receipt}/block")).unwrap().clone();
                let head = value.pointer_mut(&read(head, "answer/head/block")).unwrap();
                let hash = head["hash"].clone();
                *head = block;
                head["hash"] = hash;
            }),
            "judged again over the evidence, the claim is refused",
        ),
        (
            "chain",
            set(read(found, "chain"), json!("elsewhere")),
            "chain elsewhere is not configured",
        ),
        (
            "action",
            set("/answer/execution/actions/0".into(), json!("0x00")),
            "answer/execution/actions/0: ",
        ),
        (
            "idempotency",
            set("/answer/execution/idempotencyKey".into(), json!(hash("77"))),
            "answer/execution/idempotencyKey: ",
        ),
        (
            "message",
            set("/answer/messages/0/result/amount".into(), json!("1")),
            "answer/messages/0/result/amount: ",
        ),
        (
            "answer's signature",
            set(
                "/answer/execution/signatures/0/signature".into(),
                json!(format!("0x{}1b", "11".repeat(64))),
            ),
            "answer/execution/signatures/0",
        ),
    ];
    let text = sound.to_string();
    intentd(&setup, &daemon, &["verify", "-"], &text)
        .await
        .unwrap();
    assert!(cases.len() >= 20);
    for (name, change, wanted) in cases {
        let mut changed = sound.clone();
        change(&mut changed);
        assert_ne!(changed, sound, "{name}");
        let why = intentd(&setup, &daemon, &["verify", "-"], &changed.to_string()).await;
        let why = why.expect_err(name);
        assert!(why.contains(wanted), "{name}: {why}");
    }
    let chains = intentd(&setup, &daemon, &["verify", "--chains", "-"], &text).await;
    assert!(chains.unwrap().starts_with("verified"));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_signed_is_told_and_nothing_is_recorded() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let claim = recorded(DEPOSITS);
    let (chain, transaction) = transactions(&claim).remove(0);
    let words = ["attest", &chain, &transaction];
    let told = intentd(&setup, &daemon, &words, "").await.unwrap();
    for line in [
        "statement   deposit/",
        "not yet",
        "agrees",
        "rule        ",
        ": final",
        "action      mint ",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let whole = intentd(
        &setup,
        &daemon,
        &["attest", "--json", &chain, &transaction],
        "",
    )
    .await;
    let whole: Value = serde_json::from_str(&whole.unwrap()).unwrap();
    let signed = daemon.post(DEPOSITS, "apikey1", &claim);
    // The daemon had recorded nothing, and signs the same.
    let words = ["explain", &chain, &transaction];
    let told = intentd(&setup, &daemon, &words, "").await.unwrap();
    assert!(
        told.starts_with("nothing was signed about it\nstatement   deposit/"),
        "{told}"
    );
    let signed = signed.await.json();
    assert_eq!(
        whole["answer"]["execution"]["actions"],
        signed["execution"]["actions"]
    );
    let read = document(&setup, &daemon, &chain, &transaction).await;
    assert_eq!(read["digest"], whole["statements"][0]["digest"]);
    let nobody = format!("0x{}", "00".repeat(31) + "ff");
    let refused = intentd(&setup, &daemon, &["attest", "base", &nobody], "")
        .await
        .unwrap();
    assert!(
        refused.starts_with("signed      nothing would be: 400 TRANSACTION_MISSING"),
        "{refused}"
    );
    let unknown = intentd(&setup, &daemon, &["explain", "deposit/base/0x1"], "").await;
    assert!(
        unknown
            .unwrap_err()
            .contains("nothing was signed under deposit/base/0x1")
    );
    daemon.stop().await;
}

/// A caller without a key makes the journal keep no more than a little.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_large_request_is_not_kept() {
    let world = world::world().await;
    let setup = daemon().recorded(&world);
    let daemon = setup.start().await;
    let mut claim = recorded(DEPOSITS);
    claim["padding"] = json!("x".repeat(100_000));
    let headers = [("content-type", "application/json")];
    let body = claim.to_string().into_bytes();
    assert_eq!(
        daemon
            .ask("POST", DEPOSITS, &headers, Some(body))
            .await
            .status,
        200
    );
    let (chain, transaction) = transactions(&claim).remove(0);
    let read = document(&setup, &daemon, &chain, &transaction).await;
    assert_eq!(
        (&read["request"]["body"], &read["answer"]),
        (&json!(""), &Value::Null)
    );
    let why = intentd(&setup, &daemon, &["verify", "-"], &read.to_string()).await;
    assert!(why.unwrap_err().contains("too large to keep"));
    daemon.stop().await;
}

/// A provider that forwards to `url`, each answer as `said` has it; `None` closes the connection.
async fn forwarding(
    url: String,
    said: impl Fn(String) -> Option<String> + Send + Sync + 'static,
) -> Server {
    let (client, said) = (reqwest::Client::new(), Arc::new(said));
    serve(move |request| {
        let (client, url, said) = (client.clone(), url.clone(), said.clone());
        async move {
            let asked = client.post(url).body(request.body).send().await.unwrap();
            let text = said(asked.text().await.unwrap())?;
            Some(json_answer(StatusCode::OK, text.into_bytes()))
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_lets_no_signature_out_and_reports_what_the_other_oracle_answers_otherwise() {
    let world = world::world().await;
    let claim = recorded(DEPOSITS);
    let (chain, transaction) = transactions(&claim).remove(0);
    let other = setup(&world).start().await;
    let signed = other.post(DEPOSITS, "apikey1", &claim).await.json();
    let amount: U256 = signed["messages"][0]["result"]["amount"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let word = |amount: U256| alloy::hex::encode(amount.to_be_bytes::<32>());
    let url = format!("http://{}/{chain}", world.address);
    let (truth, lie) = (word(amount), word(amount + U256::from(1)));
    let liar = forwarding(url, move |text| Some(text.replace(&truth, &lie))).await;
    let honest = setup(&world);
    let misled = honest.clone().with(
        &format!("{}_RPC_URL", chain.to_uppercase()),
        format!("http://{}/", liar.address),
    );
    for (setup, differs) in [(honest, false), (misled, true)] {
        let setup = setup
            .with("SHADOW", "1")
            .with("SHADOW_OF", other.url.clone());
        let shadow = setup.start().await;
        let mut answer = shadow.post(DEPOSITS, "apikey1", &claim).await.json();
        assert_eq!(answer["execution"]["signatures"], json!([]), "{answer}");
        let counted = if differs { "differs" } else { "same" };
        let counter = format!("intentd_shadow_answers_total{{result=\"{counted}\"}} 1");
        for _ in 0..100 {
            if shadow.metrics().await.contains(&counter) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(shadow.metrics().await.contains(&counter), "{differs}");
        let report = std::fs::read_to_string(shadow.data_dir().join("shadow.jsonl"));
        if differs {
            let report = report.unwrap();
            let line: Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
            assert_eq!(line["target"], DEPOSITS);
            assert_eq!(
                (&line["ours"]["status"], &line["theirs"]["status"]),
                (&json!(200), &json!(200))
            );
            assert_eq!(line["field"], "/execution/actions/0");
            assert!(!report.contains("oracleSigner"), "{report}");
        } else {
            assert!(report.is_err());
            // What a shadow records is what the other signed.
            let read = document(&setup, &shadow, &chain, &transaction).await;
            let theirs = document(&setup, &other, &chain, &transaction).await;
            assert_eq!(read["digest"], theirs["digest"]);
            assert_ne!(read["signer"], theirs["signer"]);
            answer["execution"]["signatures"] = signed["execution"]["signatures"].clone();
            assert_eq!(answer, signed);
        }
        shadow.stop().await;
    }
    other.stop().await;
}

/// A statement whose blocks are watched no longer is answered without its chain.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_long_ago_is_answered_from_its_evidence_when_its_chain_is_away() {
    let world = world::world().await;
    let claim = recorded(DEPOSITS);
    let (chain, _) = transactions(&claim).remove(0);
    let away = Arc::new(AtomicBool::new(false));
    let there = away.clone();
    let url = format!("http://{}/{chain}", world.address);
    let said = move |text| (!there.load(Ordering::SeqCst)).then_some(text);
    let provider = forwarding(url, said).await;
    let setup = setup(&world).with(
        &format!("{}_RPC_URL", chain.to_uppercase()),
        format!("http://{}/", provider.address),
    );
    let daemon = setup.start().await;
    let first = daemon.post(DEPOSITS, "apikey1", &claim).await;
    assert_eq!(first.status, 200);
    let counter = "intentd_answers_from_evidence_total";
    for _ in 0..300 {
        daemon.post(DEPOSITS, "apikey1", &claim).await;
        if daemon.metrics().await.contains(counter) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(daemon.metrics().await.contains(counter));
    away.store(true, Ordering::SeqCst);
    // Nothing is kept over a restart: it is judged over the evidence, and given again as it is.
    let daemon = daemon.restart().await;
    for _ in 0..2 {
        let again = daemon.post(DEPOSITS, "apikey1", &claim).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    let headers = [("content-type", "text/plain"), ("x-api-key", "apikey1")];
    let body = claim.to_string().into_bytes();
    let plain = daemon.ask("POST", DEPOSITS, &headers, Some(body)).await;
    assert_eq!(plain.status, 400, "{}", plain.body);
    // Another caller needs the chain.
    let other = daemon.post(DEPOSITS, "clientkey", &claim).await;
    assert_eq!(other.status, 503, "{}", other.body);
    daemon.stop().await;
}
