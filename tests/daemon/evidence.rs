//! Why statements were signed: `intentd explain`, `verify` and `attest` over the recorded world, as an operator runs
//! them beside the daemon.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use alloy::primitives::{B256, U256};
use devnet::account::Account;
use hyper::StatusCode;
use intentd::store::{
    Making, Range, Store,
    pair::{Directories, Pair},
    rows,
};
use jsonschema::Validator;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::description::{complaints, validator_of};
use crate::support::{
    chain::DEPOSITS,
    daemon::{Answer, Daemon, Setup, daemon},
    fixture,
    http::{Server, json as json_answer, serve},
    world,
};
use crate::tampered::Tampering;

/// Over the recorded world, for callers with keys.
pub fn setup(world: &Server) -> Setup {
    daemon()
        .recorded(world)
        .with("API_KEYS", "apikey1:int1;clientkey:client")
        .with("FORCE_API_KEYS", "int1;client")
}

/// Who signs with the daemons' key.
pub const SIGNER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// What the command line says beside a daemon, with this on its standard input; what it complains of is an error.
pub async fn intentd(
    setup: &Setup,
    daemon: &Daemon,
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let directory = TempDir::new().unwrap();
    let mut variables = setup.environment(directory.path());
    variables.insert("DATA_DIR".into(), daemon.data_dir().display().to_string());
    variables.remove("ECDSA_PRIVATE_KEY");
    said(variables, words, input).await
}

/// What it says to somebody who has the chains file and the hub file and, but for `more`, no provider, no key and no
/// caller.
pub async fn elsewhere(
    setup: &Setup,
    more: &[(&str, &str)],
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let directory = TempDir::new().unwrap();
    let mut variables = setup.environment(directory.path());
    let files = ["ENVIRONMENT", "CHAINS_FILE", "HUB_FILE"];
    variables.retain(|name, _| files.contains(&name.as_str()));
    let more = more.iter();
    variables.extend(more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    said(variables, words, input).await
}

async fn said(
    variables: BTreeMap<String, String>,
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_intentd"))
        .args(words)
        .env_clear()
        .envs(variables)
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

/// The recorded requests, by their files.
const TRANSCRIPTS: [&str; 7] = [
    "evm",
    "bitcoin",
    "solana",
    "withdrawals",
    "withdrawals-bitcoin",
    "withdrawals-solana",
    "messages",
];

/// What is signed for them at least: the file, and the kind of the statement.
const KINDS: [&str; 18] = [
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
    "withdrawals-bitcoin withdrawal",
    "withdrawals-solana withdrawal",
    "messages authorization",
    "messages inclusion",
    "messages mapping",
    "messages payload",
    "messages trigger",
    "messages withdraw-and-fill",
];

/// What a document looks like, as the command line prints it.
struct Described {
    document: Validator,
    oracle: Value,
    /// The oracle's answers, by their path.
    answers: BTreeMap<String, Validator>,
}

impl Described {
    async fn printed() -> Self {
        let printed = async |words: &[&str]| -> Value {
            let text = said(BTreeMap::new(), words, "").await.unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let schema = printed(&["explain", "--schema"]).await;
        Self {
            document: jsonschema::validator_for(&schema).unwrap(),
            oracle: printed(&["openapi", "oracle"]).await,
            answers: BTreeMap::new(),
        }
    }

    /// Checks a document, and the oracle's answer in it.
    fn check(&mut self, document: &Value) {
        let statement = &document["statement"];
        let wrong = complaints(&self.document, document);
        assert!(wrong.is_empty(), "{statement}: {wrong:?}\n{document}");
        let path = document["request"]["target"].as_str().unwrap();
        let oracle = &self.oracle;
        let answer = self.answers.entry(path.to_owned()).or_insert_with(|| {
            let found = &oracle["paths"][path]["post"]["responses"]["200"];
            let schema = &found["content"]["application/json"]["schema"];
            assert!(schema.is_object(), "{path}");
            validator_of(oracle, schema)
        });
        let wrong = complaints(answer, &document["answer"]);
        assert!(wrong.is_empty(), "{statement}: {wrong:?}\n{document}");
    }
}

/// A daemon that has signed what a file of recorded requests asks for, and the keys of its statements.
async fn signed(setup: &Setup, transcript: &str) -> (Daemon, Vec<String>) {
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
    (setup.start_in(directory).await, keys)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_statement_is_explained_and_proved_by_its_evidence_and_not_by_other() {
    let mut described = Described::printed().await;
    let world = world::world().await;
    let url = |path: &str| format!("http://{}/{path}", world.address);
    let setup = setup(&world)
        .with("AURORA_RPC_URL", url("aurora"))
        .with("BITCOIN_ESPLORA_COMPATIBLE_API_URL", url("esplora"));
    let mut tampering = Tampering::of(&setup);
    let mut seen = BTreeSet::new();
    for transcript in TRANSCRIPTS {
        let (daemon, keys) = signed(&setup, transcript).await;
        // Documents first: the world's blocks contradict each other, and after some seconds statements are void.
        let explained = async |words: &[&str]| intentd(&setup, &daemon, words, "").await.unwrap();
        let (mut documents, mut told) = (Vec::new(), Vec::new());
        for key in &keys {
            documents.push(explained(&["explain", "--json", key]).await);
        }
        for key in &keys {
            told.push(explained(&["explain", key]).await);
        }
        daemon.stop().await;
        for (key, (document, told)) in keys.iter().zip(documents.iter().zip(told)) {
            let read: Value = serde_json::from_str(document).unwrap();
            assert!(!read["answer"].is_null(), "{key}: {document}");
            described.check(&read);
            let words = ["verify", "--signer", SIGNER, "-"];
            let proved = elsewhere(&setup, &[], &words, document).await;
            let proved = proved.unwrap_or_else(|why| panic!("{key}: {why}\n{document}"));
            assert!(
                proved.starts_with(&format!("verified    {key}\n")),
                "{proved}"
            );
            for line in ["signed      20", "request     POST", "\nmessage     "] {
                assert!(told.contains(line), "{line}: {told}");
            }
            let met = ["\nrule        deadline: ", "\nrule        forced: "];
            let is_ruled = met.iter().any(|line| told.contains(line));
            assert_eq!(is_ruled, key.starts_with("outcome/"), "{told}");
            let kind = format!("{transcript} {}", key.split('/').next().unwrap());
            tampering.check(&kind, &read).await;
            seen.insert(kind);
        }
    }
    for kind in KINDS {
        assert!(seen.contains(kind), "{kind}: {seen:?}");
    }
    tampering.told(&setup).await;
}

/// A text in which hashes, long numbers, ports, times and the version are equal to all others.
pub fn masked(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').map(mask).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn mask(word: &str) -> String {
    if let Some(port) = word.strip_prefix("127.0.0.1:") {
        let number = port.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("127.0.0.1:PORT{number}");
    }
    if word.starts_with("20") && word.ends_with('Z') {
        return "TIME".to_owned();
    }
    if word.contains("+rules.") {
        return "VERSION,".to_owned();
    }
    let is_hex = |run: &str| run.chars().all(|c| c.is_ascii_hexdigit());
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '…';
    let mut all = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        let long = run.len() > 20 && is_hex(run.trim_start_matches("0x"));
        all += if long || run.contains('…') {
            "…"
        } else {
            run
        };
        let mut others = behind.chars();
        all.extend(others.next());
        rest = others.as_str();
    }
    all
}

#[test]
fn what_is_masked_is_equal_whether_it_is_shortened_or_not() {
    let (short, hash) = ("0x81a576ec…bc74", format!("0x{}", "5a".repeat(32)));
    for (one, other) in [
        (format!("a/{short}:"), format!("a/{hash}:")),
        ("75768216…8295".into(), "7".repeat(77)),
        ("127.0.0.1:28700#2:".into(), "127.0.0.1:9#2:".into()),
        (
            "2026-11-28T12:48:20.000Z".into(),
            "2031-01-01T00:00:00.000Z".into(),
        ),
        ("0.1.0+rules.2,".into(), "0.2.0+rules.3,".into()),
    ] {
        assert_eq!(masked(&one), masked(&other), "{one}");
    }
    for (one, other) in [
        ("123456789", "123456788"),
        ("127.0.0.1:28700#2:", "127.0.0.1:28700#3:"),
        ("rule  140 of 3", "rule  14 of 3"),
        ("executeAndWithdrawRequest", "genericMappingContract"),
        ("a b", "a  b"),
    ] {
        assert_ne!(masked(one), masked(other), "{one}");
    }
}

/// The request of a recorded answer of a route.
fn messages(path: &str) -> Value {
    let cases = fixture("recorded/messages.json");
    let mut cases = cases.as_array().unwrap().iter();
    let found = cases.find(|case| case["path"] == path && case["response"]["status"] == 200);
    found.unwrap()["body"].clone()
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_fill_and_a_mapping_are_explained_in_full() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let (fills, mappings) = (
        crate::support::chain::FILLS,
        "/attestations/signatures/nonce-mapping/v2",
    );
    let (fill, mapping) = (recorded(fills), messages(mappings));
    let answer = daemon.post(fills, "apikey1", &fill).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = daemon.post(mappings, "apikey1", &mapping).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let mut entry = answer.json()["genericMapping"].take();
    let signature = entry["signatures"][0].take();
    entry.as_object_mut().unwrap().remove("signatures");
    let directory = daemon.end().await;
    let keys = statements(&directory).await;
    let daemon = setup.start_in(directory).await;
    let explained = async |kind: &str| {
        let key = keys.iter().find(|key| key.starts_with(kind)).unwrap();
        intentd(&setup, &daemon, &["explain", key], "")
            .await
            .unwrap()
    };
    let head = |key: &str, path: &str, body: &Value| {
        format!(
            "statement   {key}\ndigest      …\nsigned      TIME by …\nversion     VERSION, rules …\n\
             request     POST {path} {}\ncaller      int1\n",
            masked(&body.to_string())
        )
    };
    let told = explained("mapping/").await;
    let shown = "message     genericMapping {\"data\":\"…\",\"id\":\"…\",\"nonce\":\"…\",\"user\":\"…\"}\n              \
                 for {\"genericMappingChainId\":\"31337\",\"genericMappingContract\":\"…\"}";
    let wanted = head("mapping/…/…", mappings, &mapping) + shown;
    assert_eq!(masked(&told), wanted, "{told}");
    let contract = &signature["genericMappingContract"];
    for line in [
        format!("message     genericMapping {entry}"),
        format!(
            "              for {{\"genericMappingChainId\":\"31337\",\"genericMappingContract\":{contract}}}"
        ),
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    let told = explained("outcome/").await;
    let wanted = head("outcome/…/…", fills, &fill)
        + "read        ethereum: head 150 …\n\
           \x20             required 1 of 1 providers\n\
           \x20             127.0.0.1:PORT: agrees, …\n\
           read        base: head 150 …\n\
           \x20             required 1 of 1 providers\n\
           \x20             127.0.0.1:PORT: agrees, …\n\
           read        ethereum: transaction …: block 28 … on …, 1 deposits, 1 payments\n\
           \x20             required 1 of 1 providers\n\
           \x20             127.0.0.1:PORT: agrees, …\n\
           rule        122 of 3 blocks deep, 2239999844 of 30 s old: final\n\
           read        base: transaction …: block 29 … on …, 0 deposits, 1 payments\n\
           \x20             required 1 of 1 providers\n\
           \x20             127.0.0.1:PORT: agrees, …\n\
           rule        121 of 10 blocks deep, 2239999832 of 60 s old: final\n\
           rule        input 0: 1000 deposited, 1000 ordered, at most 100 basis points less\n\
           rule        payment 0: 900 paid, at least 900\n\
           rule        deadline: block time 1760000348, at most 4294967295\n\
           message     execution {\"idempotencyKey\":\"…\"}\n\
           \x20             for {\"oracleChainId\":\"31337\",\"oracleContract\":\"…\"}\n\
           action      transfer 1000 of token … from … to …\n\
           action      transfer 10 of token … from … to …";
    // Two chains are read at the same time.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&masked(&told)), sorted(&wanted), "{told}");
    daemon.stop().await;
}

/// The blocks of a guide that show a command of the program: its words, and what it prints.
fn blocks(guide: &str) -> Vec<(Vec<String>, String)> {
    let blocks = guide.split("```text\n").skip(1).filter_map(|block| {
        let block = block.split("```").next()?;
        let (command, printed) = block.strip_prefix("$ intentd ")?.split_once('\n')?;
        let words = command.split(' ').map(str::to_owned);
        Some((words.collect(), printed.trim_end().to_owned()))
    });
    blocks.collect()
}

/// What was printed, masked. Whether the last provider that shows a head is late is left out: enough others had.
fn timeless(text: &str) -> String {
    let text = masked(text);
    let mut is_head = false;
    let lines = text.lines().map(|line| {
        if line.starts_with("read ") {
            is_head = line.contains(": head ");
        }
        match line.strip_suffix(": had not answered yet") {
            Some(provider) if is_head => format!("{provider}: agrees, …"),
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn only_who_is_late_with_a_head_is_told_as_who_is_not() {
    let said = |of: &str, said: &str| {
        let digest = "5a".repeat(32);
        let said = said.replace("DIGEST", &digest);
        timeless(&format!(
            "read        ethereum: {of}\n              127.0.0.1:28700#3: {said}"
        ))
    };
    let late = "had not answered yet";
    assert_eq!(
        said("head 150 0x12", late),
        said("head 150 0x12", "agrees, 0xDIGEST")
    );
    for (of, one, other) in [
        ("transaction 0x12: failed", late, "agrees, 0xDIGEST"),
        (
            "transaction 0x12: failed",
            "DIFFERS, 0xDIGEST",
            "agrees, 0xDIGEST",
        ),
        (
            "head 150 0x12",
            "has another tip, 0xDIGEST",
            "agrees, 0xDIGEST",
        ),
        (
            "head 150 0x12",
            "is set aside and was not asked",
            "agrees, 0xDIGEST",
        ),
    ] {
        assert_ne!(said(of, one), said(of, other), "{of}: {one}");
    }
}

/// What the deposit of the guide's samples is worth.
const DEPOSITED: u64 = 123_456_789;

/// The third of three providers lies about a deposit, and the evidence shows it.
#[tokio::test(flavor = "multi_thread")]
async fn the_guide_shows_what_is_printed() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/evidence.md");
    let blocks = blocks(&std::fs::read_to_string(guide).unwrap());
    let world = world::world().await;
    let one = daemon().recorded(&world);
    let contradicted = contradicted(&world, U256::from(DEPOSITED)).await;
    let providers = ["ethereum", "second", "third"];
    let providers = providers.map(|path| format!("http://{}/{path}", contradicted.address));
    let three = one.clone().with("ETHEREUM_RPC_URL", providers.join(","));
    let daemon = three.start().await;
    let claim = recorded(DEPOSITS);
    let answer = daemon.attest(DEPOSITS, &claim).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let (chain, transaction) = transactions(&claim).remove(0);
    let sound = document(&three, &daemon, &chain, &transaction).await;
    let mut unproved = sound.clone();
    for vote in unproved["reads"][1]["votes"].as_array_mut().unwrap() {
        vote["said"] = json!({"answer": format!("0x{}", "66".repeat(32))});
    }
    let (mut shown, nothing) = (Vec::new(), Value::Null);
    for (words, printed) in &blocks {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (setup, input) = match &words[..] {
            ["attest", ..] => (&one, &nothing),
            ["verify", "-"] => (&three, &unproved),
            _ => (&three, &sound),
        };
        let told = intentd(setup, &daemon, &words, &input.to_string()).await;
        let told = told.unwrap_or_else(|why| why);
        // The lines of `explain` follow those of `verify`.
        let most = match words[0] {
            "verify" => printed.lines().count(),
            _ => usize::MAX,
        };
        let lines: Vec<_> = told.lines().take(most).collect();
        let lines = lines.join("\n");
        match words[0] {
            "attest" => assert_eq!(masked(&lines), masked(printed), "{words:?}: {told}"),
            _ => assert_eq!(timeless(&lines), timeless(printed), "{words:?}: {told}"),
        }
        shown.push(words[0]);
    }
    assert_eq!(shown, ["explain", "verify", "verify", "attest"]);
    daemon.stop().await;
}

/// The first recorded request of a route that is answered with an execution.
pub fn recorded(path: &str) -> Value {
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

/// Has a document, and the answer in it, signed by somebody else.
fn sign_again(document: &mut Value, by: &Account) {
    let digest: B256 = document["digest"].as_str().unwrap().parse().unwrap();
    let signature = by.sign_digest(digest).unwrap().to_string();
    signed_as(document, format!("{:#x}", by.address()), signature);
}

fn signed_as(document: &mut Value, signer: String, signature: String) {
    let shown = &mut document["answer"]["execution"]["signatures"][0];
    shown["oracleSigner"] = json!(signer);
    shown["signature"] = json!(signature);
    document["signer"] = json!(signer);
    document["signature"] = json!(signature);
}

/// The signatures of the execution in a document's answer.
fn signatures_of(document: &mut Value) -> &mut Vec<Value> {
    let list = document["answer"]["execution"]["signatures"].as_array_mut();
    list.unwrap()
}

/// The only document about a transaction.
pub async fn document(setup: &Setup, daemon: &Daemon, chain: &str, transaction: &str) -> Value {
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
            "re-signed by another key",
            Box::new(|value| sign_again(value, &Account::named("stranger").unwrap())),
            "is not named by --signer",
        ),
        (
            "nobody's signature",
            Box::new(|value| {
                // No point of the curve has 5 as its x.
                let none = format!("0x{}05{}011b", "00".repeat(31), "00".repeat(31));
                signed_as(value, format!("0x{}", "00".repeat(20)), none);
            }),
            "signature: the signature cannot be read: no key made it",
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
            "version",
            set("/version".into(), json!("0.1.0")),
            "configuration: judged by rules of another version",
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
            "required",
            set(read(found, "required"), json!(2)),
            "2 are required by the document",
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
        (
            "domain's contract",
            set(
                "/answer/execution/signatures/0/oracleContract".into(),
                json!("0x00000000000000000000000000000000000000aa"),
            ),
            "answer/execution/signatures/0/oracleContract: ",
        ),
        (
            "domain's chain",
            set(
                "/answer/execution/signatures/0/oracleChainId".into(),
                json!("1"),
            ),
            "answer/execution/signatures/0/oracleChainId: ",
        ),
        (
            "another message",
            Box::new(|value| {
                let mut execution = value["answer"]["execution"].clone();
                execution["actions"] = json!(["0x00"]);
                execution["signatures"] = json!([]);
                value["answer"]["signatures"] = json!({"execution": execution});
            }),
            "answer/signatures: ",
        ),
        (
            "another message in a signature",
            Box::new(|value| {
                let execution = json!({"actions": ["0x00"], "signatures": []});
                signatures_of(value)[0]["execution"] = execution;
            }),
            "answer/execution/signatures/0/execution: ",
        ),
        (
            "a message in place of signatures",
            set(
                "/answer/execution/signatures".into(),
                json!({"execution": {"actions": ["0x00"], "signatures": []}}),
            ),
            "answer/execution/signatures: ",
        ),
        (
            "a domain without a signer in front",
            Box::new(|value| {
                let domain = json!({"oracleChainId": "1", "oracleContract": "0xaa"});
                signatures_of(value).insert(0, domain);
            }),
            "answer/execution/signatures/0: ",
        ),
        (
            "the signature twice",
            Box::new(|value| {
                let again = signatures_of(value)[0].clone();
                signatures_of(value).push(again);
            }),
            "answer/execution/signatures/1: ",
        ),
    ];
    let text = sound.to_string();
    let words = ["verify", "--signer", SIGNER, "-"];
    intentd(&setup, &daemon, &words, &text).await.unwrap();
    assert!(cases.len() >= 20);
    for (name, change, wanted) in cases {
        let mut changed = sound.clone();
        change(&mut changed);
        assert_ne!(changed, sound, "{name}");
        let why = intentd(&setup, &daemon, &words, &changed.to_string()).await;
        let why = why.expect_err(name);
        assert!(why.contains(wanted), "{name}: {why}");
    }
    let chains = intentd(&setup, &daemon, &["verify", "--chains", "-"], &text).await;
    assert!(chains.unwrap().starts_with("verified"));
    daemon.stop().await;
}

/// Whoever has the key can sign evidence that fits together and is not true: here with what a lying provider said.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_fits_together_and_is_not_true_is_refused_over_the_chains_only() {
    let world = world::world().await;
    let setup = setup(&world);
    let claim = recorded(DEPOSITS);
    let (chain, transaction) = transactions(&claim).remove(0);
    let daemon = setup.start().await;
    let signed = daemon.post(DEPOSITS, "apikey1", &claim).await.json();
    let sound = document(&setup, &daemon, &chain, &transaction).await;
    let amount = signed["messages"][0]["result"]["amount"].as_str().unwrap();
    let amount: U256 = amount.parse().unwrap();
    let liar = exaggerating(format!("http://{}/{chain}", world.address), amount).await;
    let misled = setup.clone().with(
        &format!("{}_RPC_URL", chain.to_uppercase()),
        format!("http://{}/", liar.address),
    );
    let other = misled.start().await;
    let lied = other.post(DEPOSITS, "apikey1", &claim).await;
    assert_eq!(lied.status, 200, "{}", lied.body);
    let forged = document(&misled, &other, &chain, &transaction).await;
    other.stop().await;
    for field in ["statement", "signer", "configuration"] {
        assert_eq!(forged[field], sound[field], "{field}");
    }
    let verify = async |document: &Value, more: &[&str]| {
        let words = [&["verify", "--signer", SIGNER][..], more, &["-"]].concat();
        intentd(&setup, &daemon, &words, &document.to_string()).await
    };
    for (document, more) in [(&sound, &["--chains"][..]), (&sound, &[]), (&forged, &[])] {
        let proved = verify(document, more).await.unwrap();
        assert!(proved.starts_with("verified"), "{proved}");
    }
    let why = verify(&forged, &["--chains"]).await.unwrap_err();
    let text = |document: &Value| document["digest"].as_str().unwrap().to_owned();
    let (found, wanted) = (text(&forged), text(&sound));
    let reason = format!("digest: {found}, judged again over the chains {wanted}");
    assert!(why.contains(&reason), "{why}");
    assert!(why.contains("answer/execution/actions/0: "), "{why}");
    assert!(!why.contains("over the evidence"), "{why}");
    daemon.stop().await;
}

/// A document about a deposit, with its chain; the daemon and its chains are gone.
async fn proof() -> (Setup, String, Value) {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let claim = recorded(DEPOSITS);
    assert_eq!(daemon.post(DEPOSITS, "apikey1", &claim).await.status, 200);
    let (chain, transaction) = transactions(&claim).remove(0);
    let document = document(&setup, &daemon, &chain, &transaction).await;
    daemon.stop().await;
    (setup, chain, document)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_verified_with_the_files_alone_and_not_by_another_finality() {
    let (setup, chain, document) = proof().await;
    let text = document.to_string();
    let proved = elsewhere(&setup, &[], &["verify", "-"], &text).await;
    let proved = proved.unwrap();
    for line in [
        format!("quorum      {chain}: agreed by 1 of 1 providers"),
        "rule        ".into(),
        "message     execution {".into(),
        "              for {\"oracleChainId\":\"31337\",".into(),
        "action      mint ".into(),
    ] {
        assert!(proved.contains(&line), "{line}: {proved}");
    }
    // The message is the one that was judged again, whether or not the document shows it and its signature.
    let (mut bare, mut unshown) = (document.clone(), document.clone());
    signatures_of(&mut bare).clear();
    unshown.as_object_mut().unwrap().remove("answer");
    for other in [bare, unshown] {
        let told = elsewhere(&setup, &[], &["verify", "-"], &other.to_string()).await;
        assert_eq!(told.unwrap(), proved);
    }
    let directory = TempDir::new().unwrap();
    let deeper = listed(setup.clone(), &directory, |chains, _| {
        let mut listed = chains.as_array_mut().unwrap().iter_mut();
        let entry = listed.find(|entry| entry["id"] == chain.as_str());
        entry.unwrap()["additionalData"]["finalizationBlocks"] = json!(1_000_000);
    });
    let why = elsewhere(&deeper, &[], &["verify", "-"], &text).await;
    let why = why.unwrap_err();
    assert!(why.contains("configuration: judged by rules 0x"), "{why}");
    let words = ["verify", "--other-rules", "-"];
    let why = elsewhere(&deeper, &[], &words, &text).await;
    let why = why.unwrap_err();
    assert!(!why.contains("configuration: "), "{why}");
    let refused = "judged again over the evidence, the claim is refused: ";
    assert!(why.contains(refused), "{why}");
    // What cannot be compared is no lie.
    let mut old = document;
    old["version"] = json!("0.1.0");
    let told = elsewhere(&setup, &[], &words, &old.to_string()).await;
    let told = told.unwrap();
    let remark = "remark      judged by rules of another version";
    assert!(told.contains(remark), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_counts_that_the_reader_names_and_without_a_name_the_reader_is_told() {
    let (setup, _, document) = proof().await;
    let stranger = Account::named("stranger").unwrap();
    let other = format!("{:#x}", stranger.address());
    let mut again = document.clone();
    sign_again(&mut again, &stranger);
    let [own, again] = [document.to_string(), again.to_string()];
    let verify = async |signers: &[&str], member: Option<&str>, text: &str| {
        let named = signers.iter().flat_map(|signer| ["--signer", *signer]);
        let words: Vec<&str> = ["verify", "-"].into_iter().chain(named).collect();
        let member = member.map(|member| ("ORACLE_SIGNERS", member));
        let more: Vec<_> = member.into_iter().collect();
        elsewhere(&setup, &more, &words, text).await
    };
    let unchecked = "remark      signer not checked: name it with --signer";
    for (text, signer) in [(&own, SIGNER), (&again, other.as_str())] {
        let told = verify(&[], None, text).await.unwrap();
        assert!(told.contains(unchecked), "{told}");
        assert!(told.contains(&format!("signed by {signer}")), "{told}");
    }
    type Case<'a> = (&'a [&'a str], Option<&'a str>, &'a str);
    let accepted: [Case<'_>; 4] = [
        (&[SIGNER], None, "--signer"),
        (&[&other, SIGNER], None, "--signer"),
        (&[], Some(SIGNER), "ORACLE_SIGNERS"),
        (&[SIGNER], Some(&other), "--signer"),
    ];
    for (signers, member, by) in accepted {
        let told = verify(signers, member, &own).await.unwrap();
        let checked = format!("remark      signer {SIGNER} is named by {by}");
        assert!(
            told.contains(&checked) && !told.contains(unchecked),
            "{told}"
        );
    }
    let refused: [Case<'_>; 3] = [
        (&[SIGNER], None, "--signer"),
        (&[], Some(SIGNER), "ORACLE_SIGNERS"),
        (&[SIGNER], Some(&other), "--signer"),
    ];
    for (signers, member, by) in refused {
        let why = verify(signers, member, &again).await.unwrap_err();
        let named = format!("signer: {other} is not named by {by}");
        assert!(why.contains(&named), "{why}");
    }
    assert!(verify(&["0x12"], None, &own).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_providers_requires_as_many_votes_as_of_his_own() {
    let (setup, chain, mut document) = proof().await;
    let url = format!("{}_RPC_URL", chain.to_uppercase());
    let two = [(&*url, "http://127.0.0.1:1,http://127.0.0.1:2")];
    let why = elsewhere(&setup, &two, &["verify", "-"], &document.to_string()).await;
    let why = why.unwrap_err();
    assert!(
        why.contains("2 are required by this configuration"),
        "{why}"
    );
    assert!(!why.contains("configuration: "), "{why}");
    for read in document["reads"].as_array_mut().unwrap() {
        let votes = read["votes"].as_array_mut().unwrap();
        let mut vote = votes[0].clone();
        vote["provider"] = json!("another");
        votes.push(vote);
    }
    let told = elsewhere(&setup, &two, &["verify", "-"], &document.to_string()).await;
    let told = told.unwrap();
    let line = format!(
        "quorum      {chain}: agreed by 2 of 2 providers, 1 had to; this configuration requires 2"
    );
    assert!(told.contains(&line), "{told}");
}

/// Route and body of a recorded claim that is forced.
fn forced() -> (String, Value) {
    let cases = fixture("recorded/evm.json");
    let mut cases = cases.as_array().unwrap().iter();
    let forced = cases.find(|case| {
        case["body"]["force"] == true
            && case["body"]["requestPeerSignatures"].is_null()
            && case["response"]["status"] == 200
    });
    let forced = forced.unwrap();
    let path = forced["path"].as_str().unwrap();
    (path.to_owned(), forced["body"].clone())
}

/// How many claims the daemon has answered from evidence.
async fn from_evidence(daemon: &Daemon) -> u64 {
    let metrics = daemon.metrics().await;
    let mut lines = metrics.lines();
    let line = lines.find_map(|line| line.strip_prefix("intentd_answers_from_evidence_total "));
    line.map_or(0, |count| count.parse().unwrap())
}

/// Asks the same until it is answered from evidence.
async fn until_from_evidence(daemon: &Daemon, (path, body): (&str, &Value)) {
    let before = from_evidence(daemon).await;
    for _ in 0..300 {
        daemon.post(path, "apikey1", body).await;
        if from_evidence(daemon).await > before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} is read from chains for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_claim_is_verified_without_the_callers_and_the_reader_is_told() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let (path, body) = forced();
    let answer = daemon.post(&path, "apikey1", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let directory = daemon.end().await;
    let key = statements(&directory).await.remove(0);
    let daemon = setup.start_in(directory).await;
    let words = ["explain", "--json", &key];
    let document = intentd(&setup, &daemon, &words, "").await.unwrap();
    let told = intentd(&setup, &daemon, &["explain", &key], "").await;
    let told = told.unwrap();
    assert!(told.contains("\ncaller      int1\n"), "{told}");
    daemon.stop().await;
    let told = elsewhere(&setup, &[], &["verify", "-"], &document).await;
    let told = told.unwrap();
    assert!(
        told.contains("remark      forced by the caller int1"),
        "{told}"
    );
    // Who names callers says who may.
    let callers = [("API_KEYS", "apikey1:int1")];
    let why = elsewhere(&setup, &callers, &["verify", "-"], &document).await;
    let why = why.unwrap_err();
    assert!(why.contains("FORCE_NOT_ALLOWED"), "{why}");
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
        told.starts_with(
            "no statement stands about this transaction; judged as a deposit:\nstatement   deposit/"
        ),
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

/// What only a caller with a key may claim is judged as of one by the key's label.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_judged_as_of_the_caller_who_is_named() {
    let (world, directory) = (world::world().await, TempDir::new().unwrap());
    let setup = setup(&world);
    let daemon = setup.start().await;
    let (path, body) = forced();
    let file = directory.path().join("claim.json");
    std::fs::write(&file, body.to_string()).unwrap();
    let file = file.display().to_string();
    let attest = async |key: Option<&str>| {
        let named = key.into_iter().flat_map(|key| ["--key", key]);
        let words = ["attest", "--route", &*path, "--body", &*file];
        let words: Vec<&str> = words.into_iter().chain(named).collect();
        intentd(&setup, &daemon, &words, "").await
    };
    let told = attest(None).await.unwrap();
    let refused = "signed      nothing would be: 400 FORCE_NOT_ALLOWED";
    assert!(
        told.starts_with(refused) && !told.contains("\ncaller "),
        "{told}"
    );
    let told = attest(Some("int1")).await.unwrap();
    for line in [
        "statement   outcome/",
        "signed      not yet",
        "\ncaller      int1\n",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // A key in place of its label is not repeated.
    let why = attest(Some("apikey1")).await.unwrap_err();
    assert!(
        why.contains("no key in API_KEYS has this label") && !why.contains("apikey1"),
        "{why}"
    );
    daemon.stop().await;
}

/// A caller without a key makes the journal keep no more than a little.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_large_request_is_not_kept() {
    let world = world::world().await;
    let setup = daemon().recorded(&world);
    for (query, padding) in [
        (String::new(), 100_000),
        (format!("?{}", "x".repeat(9_000)), 0),
    ] {
        let daemon = setup.start().await;
        let mut claim = recorded(DEPOSITS);
        claim["padding"] = json!("x".repeat(padding));
        let headers = [("content-type", "application/json")];
        let (target, body) = (DEPOSITS.to_owned() + &query, claim.to_string());
        let body = Some(body.into_bytes());
        let answer = daemon.ask("POST", &target, &headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let (chain, transaction) = transactions(&claim).remove(0);
        let read = document(&setup, &daemon, &chain, &transaction).await;
        let asked = &read["request"];
        assert_eq!(
            (&asked["target"], &asked["body"], &read["answer"]),
            (&json!(DEPOSITS), &json!(""), &Value::Null)
        );
        let why = intentd(&setup, &daemon, &["verify", "-"], &read.to_string()).await;
        assert!(why.unwrap_err().contains("too large to keep"));
        daemon.stop().await;
    }
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

/// A provider that forwards to `url`, and says one more wherever `amount` stands.
async fn exaggerating(url: String, amount: U256) -> Server {
    forwarding(url, move |text| Some(exaggerated(&text, amount))).await
}

fn exaggerated(text: &str, amount: U256) -> String {
    let word = |amount: U256| alloy::hex::encode(amount.to_be_bytes::<32>());
    text.replace(&word(amount), &word(amount + U256::from(1)))
}

/// How long after the lie the second honest provider tells the truth.
const AFTER: Duration = Duration::from_secs(2);

/// Three providers on one port that forward to `world`. The one at `/third` says one more wherever `amount` stands; the
/// one at `/second` tells of a transaction later, so that the lie is heard before two agree.
async fn contradicted(world: &Server, amount: U256) -> Server {
    let url = format!("http://{}/ethereum", world.address);
    let (client, lied) = (reqwest::Client::new(), Arc::new(AtomicBool::new(false)));
    serve(move |request| {
        let (client, url, lied) = (client.clone(), url.clone(), lied.clone());
        async move {
            let asked = String::from_utf8_lossy(&request.body).into_owned();
            let is_transaction = asked.contains("eth_getTransactionReceipt");
            let told = client.post(url).body(request.body).send().await.unwrap();
            let mut text = told.text().await.unwrap();
            if request.target == "/third" {
                text = exaggerated(&text, amount);
                lied.fetch_or(is_transaction, Ordering::SeqCst);
            }
            if request.target == "/second" && is_transaction {
                while !lied.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                tokio::time::sleep(AFTER).await;
            }
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
    let liar = exaggerating(format!("http://{}/{chain}", world.address), amount).await;
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
        for _ in 0..1_200 {
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
            let fields = line["fields"].as_array().unwrap();
            for path in ["/execution/actions/0", "/messages/0/result/amount"] {
                assert!(fields.contains(&json!(path)), "{path}: {line}");
            }
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

/// A setup in which the only provider of `chain` answers nothing while it is away; the provider, and whether it is.
async fn leaving(world: &Server, chain: &str) -> (Setup, Server, Arc<AtomicBool>) {
    let away = Arc::new(AtomicBool::new(false));
    let there = away.clone();
    let url = format!("http://{}/{chain}", world.address);
    let said = move |text| (!there.load(Ordering::SeqCst)).then_some(text);
    let provider = forwarding(url, said).await;
    let setup = setup(world).with(
        &format!("{}_RPC_URL", chain.to_uppercase()),
        format!("http://{}/", provider.address),
    );
    (setup, provider, away)
}

/// Claims deposits in this spelling; an empty key is none.
async fn spelled(daemon: &Daemon, key: &str, body: &str) -> Answer {
    let headers = [("content-type", "application/json"), ("x-api-key", key)];
    let body = Some(body.as_bytes().to_vec());
    daemon.ask("POST", DEPOSITS, &headers, body).await
}

/// A statement whose blocks are watched no longer is answered without its chain.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_long_ago_is_answered_from_its_evidence_when_its_chain_is_away() {
    let world = world::world().await;
    let claim = recorded(DEPOSITS);
    let (chain, _) = transactions(&claim).remove(0);
    let (setup, _provider, away) = leaving(&world, &chain).await;
    let daemon = setup.start().await;
    let first = daemon.post(DEPOSITS, "apikey1", &claim).await;
    assert_eq!(first.status, 200);
    // Other spellings of what is signed.
    let mut peers = claim.clone();
    peers["requestPeerSignatures"] = json!(false);
    let spellings = [claim.to_string(), format!("{claim} "), peers.to_string()];
    for body in &spellings {
        let other = spelled(&daemon, "apikey1", body).await;
        assert_eq!(other.status, 200, "{}", other.body);
    }
    until_from_evidence(&daemon, (DEPOSITS, &claim)).await;
    away.store(true, Ordering::SeqCst);
    // Nothing is kept over a restart: it is judged over the evidence, and given again as it is.
    let daemon = daemon.restart().await;
    for body in spellings.iter().chain(&spellings) {
        let again = spelled(&daemon, "apikey1", body).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    let headers = [("content-type", "text/plain"), ("x-api-key", "apikey1")];
    let body = claim.to_string().into_bytes();
    let plain = daemon.ask("POST", DEPOSITS, &headers, Some(body)).await;
    assert_eq!(plain.status, 400, "{}", plain.body);
    // So it is for whoever else may ask; a claim that was never signed needs the chain.
    let client = daemon.post(DEPOSITS, "clientkey", &claim).await;
    assert_eq!((client.status, &client.body), (first.status, &first.body));
    let stranger = daemon.attest(DEPOSITS, &claim).await;
    assert_eq!(stranger.status, 401, "{}", stranger.body);
    let mut fast = claim.clone();
    fast["mode"] = json!("fast");
    let unknown = daemon.post(DEPOSITS, "apikey1", &fast).await;
    assert_eq!(unknown.status, 503, "{}", unknown.body);
    // A spelling that nobody has sent before is another request.
    let other = spelled(&daemon, "apikey1", &format!(" {claim}")).await;
    assert_eq!(other.status, 503, "{}", other.body);
    daemon.stop().await;
}

/// Nor is it answered from its chain for ever, whoever claims first.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_padding_keeps_no_statement_from_being_explained_by_a_later_claim() {
    let world = world::world().await;
    let claim = recorded(DEPOSITS);
    let (chain, transaction) = transactions(&claim).remove(0);
    let (setup, _provider, away) = leaving(&world, &chain).await;
    let setup = setup.with("UNAUTHENTICATED_RATE_LIMIT_MAX", "1000");
    let daemon = setup.start().await;
    let padded = |spaces: usize| format!("{claim}{}", " ".repeat(spaces));
    let first = spelled(&daemon, "", &padded(9_000)).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let read = document(&setup, &daemon, &chain, &transaction).await;
    assert_eq!(read["request"]["body"], "");
    let keyed = spelled(&daemon, "apikey1", &padded(0)).await;
    assert_eq!((keyed.status, &keyed.body), (first.status, &first.body));
    let read = document(&setup, &daemon, &chain, &transaction).await;
    let asked = json!({ "target": DEPOSITS, "key": "int1", "body": padded(0) });
    assert_eq!(read["request"], asked);
    let words = ["verify", "--signer", SIGNER, "-"];
    let told = elsewhere(&setup, &[], &words, &read.to_string()).await;
    let told = told.unwrap();
    assert!(told.starts_with("verified    deposit/"), "{told}");
    // Whole evidence stays as it is.
    for spaces in [9_001, 1] {
        let other = spelled(&daemon, "", &padded(spaces)).await;
        assert_eq!(other.status, 200, "{}", other.body);
        let again = document(&setup, &daemon, &chain, &transaction).await;
        assert_eq!(again, read, "{spaces}");
    }
    until_from_evidence(&daemon, (DEPOSITS, &claim)).await;
    away.store(true, Ordering::SeqCst);
    let daemon = daemon.restart().await;
    // Of a stranger's spelling nothing is kept where the evidence was whole.
    for (key, spaces, status) in [("apikey1", 0, 200), ("", 0, 200), ("", 1, 503)] {
        let again = spelled(&daemon, key, &padded(spaces)).await;
        assert_eq!(again.status, status, "{key} {spaces}: {}", again.body);
    }
    daemon.stop().await;
}

/// Voids every statement in the journal of a daemon that has ended.
async fn void_all(directory: &TempDir) {
    let keys = statements(directory).await;
    let directories = Directories::new(directory.path().join("data"), None);
    let pair = Pair::open(&directories, Making::Refused).unwrap();
    let key = intentd::sign::raw::RawKey::parse(crate::support::daemon::KEY).unwrap();
    let journal = intentd::attest::journal::Journal::new(pair.journal.clone(), Arc::new(key));
    for key in keys {
        assert!(journal.void(&key, "gone", 9).await.unwrap(), "{key}");
    }
    drop(journal);
    pair.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_found_by_every_transaction_that_was_read_for_it_and_when_it_is_void() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let recovers = "/attestations/recover/v1";
    let fills = crate::support::chain::FILLS;
    let (fill, recover) = (recorded(fills), recorded(recovers));
    for (path, claim) in [(fills, &fill), (recovers, &recover)] {
        let answer = daemon.post(path, "apikey1", claim).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    // The deposit and the fill of an order, of which no deposit statement was signed, and a deposit that goes back.
    let mut cases: Vec<_> = transactions(&fill)
        .into_iter()
        .map(|named| (named, "statement   outcome/"))
        .collect();
    assert_eq!(cases.len(), 2);
    cases.push((transactions(&recover).remove(0), "statement   recover/"));
    let explained = async |daemon: &Daemon, (chain, transaction): &(String, String)| {
        let words = ["explain", chain, transaction];
        intentd(&setup, daemon, &words, "").await.unwrap()
    };
    for (named, kind) in &cases {
        let told = explained(&daemon, named).await;
        assert!(
            told.starts_with(kind) && !told.contains(", void: "),
            "{told}"
        );
    }
    let directory = daemon.end().await;
    void_all(&directory).await;
    let daemon = setup.start_in(directory).await;
    for (named, kind) in &cases {
        let told = explained(&daemon, named).await;
        assert!(
            told.starts_with(kind) && told.contains(", void: gone"),
            "{told}"
        );
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_statement_stands_about_is_judged_as_a_deposit_and_says_so() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let named = transactions(&recorded(crate::support::chain::FILLS));
    let [(origin, deposit), (destination, fill)] = &named[..] else {
        panic!("{named:?}");
    };
    let others = "intentd attest --route <route> --body <claim>";
    let words = ["explain", destination, fill];
    let told = intentd(&setup, &daemon, &words, "").await.unwrap();
    let nothing = "no statement stands about this transaction; judged as a deposit:\nsigned      nothing would be: ";
    assert!(
        told.starts_with(nothing) && told.ends_with(others),
        "{told}"
    );
    let key = format!("deposit/{origin}/{deposit}/slow/0x{}", "11".repeat(32));
    let told = intentd(&setup, &daemon, &["explain", &key], "")
        .await
        .unwrap();
    let would_be = format!(
        "no statement stands under this key; judged as a deposit:\nstatement   deposit/{origin}/{deposit}/"
    );
    assert!(
        told.starts_with(&would_be) && told.ends_with(others),
        "{told}"
    );
    let key = "outcome/0x1/0x2";
    let unknown = intentd(&setup, &daemon, &["explain", key], "").await;
    let why = unknown.unwrap_err();
    assert!(
        why.contains("nothing was signed under outcome/0x1/0x2"),
        "{why}"
    );
    daemon.stop().await;
}

/// The recorded world with other lists of chains and of the hub, in `directory`.
fn listed(setup: Setup, directory: &TempDir, change: impl Fn(&mut Value, &mut Value)) -> Setup {
    let mut chains = fixture("recorded/chains.json");
    let mut hub = fixture("recorded/hub.json");
    change(&mut chains, &mut hub);
    let file = |name: &str, value: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path.display().to_string()
    };
    setup
        .with("CHAINS_FILE", file("chains.json", &chains))
        .with("HUB_FILE", file("hub.json", &hub))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_deposit_is_explained_with_the_rule_of_its_tier() {
    let (world, directory) = (world::world().await, TempDir::new().unwrap());
    let native = "0x0000000000000000000000000000000000000000";
    let setup = listed(setup(&world), &directory, |chains, hub| {
        let tier = json!({"maxAmount": "1000000000000000000", "finalizationBlocks": 2});
        let settings = &mut chains[0]["additionalData"];
        settings["finalizationBlocks"] = json!(1_000);
        settings["fastMode"] = json!({"finalityTiers": {native: [tier]}});
        // Nothing answers there, which stops no attestation.
        hub["rateLimiter"] = json!({"address": format!("0x{}", "11".repeat(20))});
    });
    let daemon = setup.start().await;
    let mut claim = recorded(DEPOSITS);
    let (chain, transaction) = transactions(&claim).remove(0);
    assert_eq!(chain, "ethereum");
    let slow = daemon.post(DEPOSITS, "apikey1", &claim).await;
    assert_eq!(slow.code(), "TRANSACTION_NOT_FINALIZED", "{}", slow.body);
    claim["mode"] = json!("fast");
    let fast = daemon.post(DEPOSITS, "apikey1", &claim).await;
    assert_eq!(fast.status, 200, "{}", fast.body);
    let words = ["explain", &chain, &transaction];
    let told = intentd(&setup, &daemon, &words, "").await.unwrap();
    assert!(
        told.contains(" of 2 blocks deep, ") && told.contains(" of 30 s old, fast mode: final"),
        "{told}"
    );
    assert!(!told.contains("not final"), "{told}");
    let read = document(&setup, &daemon, &chain, &transaction).await;
    let finality = json!({"blocks": 2, "seconds": 30, "tag": null});
    let rule = json!({"chain": "ethereum", "finality": finality, "fast": true});
    assert_eq!(read["rules"], json!([rule]));
    let proved = intentd(&setup, &daemon, &["verify", "-"], &read.to_string()).await;
    assert!(proved.unwrap().contains("fast mode: final"));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_of_then_is_told_after_the_setting_was_changed() {
    let (world, directory) = (world::world().await, TempDir::new().unwrap());
    let setup = setup(&world);
    let daemon = setup.start().await;
    let claim = recorded(DEPOSITS);
    assert_eq!(daemon.post(DEPOSITS, "apikey1", &claim).await.status, 200);
    let (chain, transaction) = transactions(&claim).remove(0);
    let later = listed(setup.clone(), &directory, |chains, _| {
        chains[0]["additionalData"]["finalizationBlocks"] = json!(5);
    });
    let words = ["explain", &chain, &transaction];
    let told = intentd(&later, &daemon, &words, "").await.unwrap();
    assert!(
        told.contains(" of 3 blocks deep, ") && told.contains("(not those of now)"),
        "{told}"
    );
    let sound = document(&later, &daemon, &chain, &transaction).await;
    assert_eq!(sound["rules"][0]["finality"]["blocks"], 3);
    let text = sound.to_string();
    let why = intentd(&later, &daemon, &["verify", "-"], &text).await;
    let why = why.unwrap_err();
    let wanted = "rules/0: ethereum: 3 blocks, 30 s, judged again by ethereum: 5 blocks, 30 s";
    assert!(why.contains(wanted), "{why}");
    let words = ["verify", "--other-rules", "-"];
    let accepted = intentd(&later, &daemon, &words, &text).await.unwrap();
    assert!(accepted.contains(" of 3 blocks deep, "), "{accepted}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_was_changed_in_a_document_is_named() {
    let world = world::world().await;
    let setup = setup(&world);
    let daemon = setup.start().await;
    let claim = recorded(DEPOSITS);
    assert_eq!(daemon.post(DEPOSITS, "apikey1", &claim).await.status, 200);
    let (chain, transaction) = transactions(&claim).remove(0);
    let sound = document(&setup, &daemon, &chain, &transaction).await;
    let verified = async |document: &Value| {
        let text = document.to_string();
        intentd(&setup, &daemon, &["verify", "-"], &text).await
    };
    verified(&sound).await.unwrap();
    let second = json!({"chain": "base", "finality": sound["rules"][0]["finality"], "fast": false});
    type Change<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let cases: [Change<'_>; 5] = [
        (
            &|rules: &mut Value| rules[0]["finality"]["blocks"] = json!(1),
            "rules/0: ",
        ),
        (
            &|rules: &mut Value| rules[0]["finality"]["seconds"] = json!(0),
            "rules/0: ",
        ),
        (
            &|rules: &mut Value| rules[0]["fast"] = json!(true),
            "rules/0: ",
        ),
        (
            &|rules: &mut Value| rules[0]["chain"] = json!("base"),
            "rules/0: base: ",
        ),
        (
            &|rules: &mut Value| rules.as_array_mut().unwrap().push(second.clone()),
            "rules/1: base: ",
        ),
    ];
    for (change, wanted) in cases {
        let mut changed = sound.clone();
        change(&mut changed["rules"]);
        let why = verified(&changed).await.expect_err(wanted);
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
    // What an earlier version signed has no rules to compare.
    let mut older = sound.clone();
    older.as_object_mut().unwrap().remove("rules");
    let told = verified(&older).await.unwrap();
    assert!(
        told.contains("rule        not kept; by that of now "),
        "{told}"
    );
    daemon.stop().await;
}
