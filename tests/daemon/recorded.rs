//! The recorded requests of this version's routes against the recorded world: every 200 is
//! byte-equal, every refusal has the recorded status and message, except where the table says why
//! not.

use std::time::Instant;

use crate::support::{
    daemon::{Answer, daemon},
    fixture,
    peer::Peers,
    world,
};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use vm::protocol::limits;

/// A case whose answer differs on purpose: name, our status, our code (our body where the status is 200), why.
type Deviation = (&'static str, u16, &'static str, &'static str);

const DEVIATIONS: &[Deviation] = &[
    (
        "chains no key",
        401,
        "",
        "keys are demanded where API_KEYS is set",
    ),
    (
        "fill force no key",
        401,
        "",
        "keys are demanded where API_KEYS is set",
    ),
    (
        "fill force wrong key",
        401,
        "",
        "keys are demanded where API_KEYS is set",
    ),
    (
        "refund force no key",
        401,
        "",
        "keys are demanded where API_KEYS is set",
    ),
    (
        "fill force no inputs",
        400,
        "DEPOSIT_MISSING",
        "rules 1 and 5: a forced claim moves nothing but what was deposited for it",
    ),
    (
        "fill force bad signature ok",
        400,
        "ORDER_SIGNATURE_INVALID",
        "rule 5: force trusts nobody about the order",
    ),
    (
        "deposit bad tx hash",
        400,
        "TRANSACTION_MISSING",
        "bad input is no fault of ours",
    ),
    (
        "fill bad salt",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
    (
        "fill float deadline",
        400,
        "INVALID_FIELD",
        "bad input is no fault of ours",
    ),
    (
        "v: missing transactionId",
        400,
        "MISSING_FIELD",
        "our words",
    ),
    ("v: empty body", 400, "MISSING_FIELD", "our words"),
    ("v: bad mode", 400, "INVALID_FIELD", "our words"),
    ("v: bad bool", 400, "INVALID_FIELD", "our words"),
    (
        "fill version v2 rejected",
        400,
        "INVALID_FIELD",
        "our words",
    ),
];

/// What differs, too, where all cases are asked of one journal, as an oracle has it: a fill or refund of these
/// deposits was signed before.
const ENDED: [Deviation; 2] = [
    (
        "recover old deposit",
        409,
        "CONFLICTING_STATEMENT",
        "rule 4: a deposit ends once",
    ),
    (
        "recover old peers",
        409,
        "CONFLICTING_STATEMENT",
        "rule 4: a deposit ends once",
    ),
];

/// The same of the Bitcoin node.
const BITCOIN: &[Deviation] = &[
    (
        "deposit btc_missingPrev",
        503,
        "QUORUM_UNAVAILABLE",
        "a node that contradicts itself",
    ),
    (
        "deposit bitcoin missing",
        400,
        "TRANSACTION_MISSING",
        "bad input is no fault of ours",
    ),
    (
        "deposit btc_unconfirmed",
        400,
        "TRANSACTION_MISSING",
        "a memory pool is no fact of the chain",
    ),
];

/// The same of the Solana node.
const SOLANA: &[Deviation] = &[
    (
        "deposit sol_failed",
        400,
        "TRANSACTION_REVERTED",
        "our words",
    ),
    (
        "deposit sol_fillNoMemo",
        200,
        r#"{"messages":[]}"#,
        "an instruction that is none deposits nothing",
    ),
    ("fill sol_late", 400, "AFTER_DEADLINE", "our words"),
    (
        "fill sol_calls",
        400,
        "CALLS_UNSUPPORTED",
        "bad input is no fault of ours",
    ),
];

/// The same of messages that are no executions.
const MESSAGES: &[Deviation] = &[
    (
        "withdrawal initiated balance mismatch",
        409,
        "CONFLICTING_STATEMENT",
        "an address may hold more than the amount, and has one payload: that of the case before",
    ),
    (
        "withdraw-requests empty",
        400,
        "INVALID_REQUEST",
        "our words",
    ),
    (
        "withdraw-requests negative",
        400,
        "INVALID_FIELD",
        "our words",
    ),
    (
        "withdraw-request-authorization bad nonce",
        400,
        "INVALID_REQUEST",
        "our words",
    ),
    (
        "withdraw-and-fill bad nonce",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
    (
        "withdraw-and-refund bad nonce",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
];

/// The same of what owners ask for, and of how withdrawals ended.
const WITHDRAWALS: &[Deviation] = &[
    (
        "withdrawal initiation negative",
        400,
        "INVALID_REQUEST",
        "our words",
    ),
    (
        "withdrawal initiation decimal",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
    (
        "transfer bad recipient",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
    (
        "withdrawal v3 bad nonce",
        400,
        "INVALID_REQUEST",
        "bad input is no fault of ours",
    ),
];

/// The same of the Bitcoin node and its index.
const BITCOIN_WITHDRAWALS: &[Deviation] = &[
    (
        "withdrawal v3 bitcoin not ours",
        400,
        "INVALID_REQUEST",
        "our words",
    ),
    (
        "withdrawal v3 bitcoin no op_return",
        200,
        r#"{"status":1}"#,
        "what spends the same and pays the same is the withdrawal, whatever its id is",
    ),
];

/// The same of callers over their limit.
const LIMITED: &[Deviation] = &[(
    "invalid body is answered first",
    429,
    "",
    "rate limits come before body work",
)];

/// The headers that are compared where a limit is replayed.
const TOLD: [&str; 5] = [
    "content-type",
    "retry-after",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// Seconds of a window where a limit is replayed.
const WINDOW: u64 = 600;

#[tokio::test(flavor = "multi_thread")]
async fn recorded_withdrawals_get_their_recorded_answers() {
    replay("recorded/withdrawals.json", WITHDRAWALS, Journal::OfEachEnd).await;
}

/// One nonce of an owner moves one amount.
#[tokio::test(flavor = "multi_thread")]
async fn one_journal_initiates_a_withdrawal_once_and_changes_nothing_else() {
    let again: Deviation = (
        "recover mode initiation",
        409,
        "CONFLICTING_STATEMENT",
        "another amount was set apart under the nonce",
    );
    let deviations = [WITHDRAWALS, &[again]].concat();
    replay("recorded/withdrawals.json", &deviations, Journal::Same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_solana_withdrawals_get_their_recorded_answers() {
    replay("recorded/withdrawals-solana.json", &[], Journal::Same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_bitcoin_withdrawals_get_their_recorded_answers_beside_an_index() {
    let index = world::world().await;
    let url = format!("http://{}/esplora", index.address);
    let more = [("BITCOIN_ESPLORA_COMPATIBLE_API_URL", url.as_str())];
    let world = "recorded/withdrawals-bitcoin.json";
    replay_with(world, BITCOIN_WITHDRAWALS, Journal::Same, &more).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_evm_requests_get_their_recorded_answers() {
    replay("recorded/evm.json", DEVIATIONS, Journal::OfEachEnd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_journal_ends_a_deposit_once_and_changes_nothing_else() {
    let deviations = [DEVIATIONS, &ENDED].concat();
    replay("recorded/evm.json", &deviations, Journal::Same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_bitcoin_requests_get_their_recorded_answers() {
    replay("recorded/bitcoin.json", BITCOIN, Journal::Same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_solana_requests_get_their_recorded_answers() {
    replay("recorded/solana.json", SOLANA, Journal::Same).await;
}

/// Messages that are no executions.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_messages_get_their_recorded_answers() {
    replay("recorded/messages.json", MESSAGES, Journal::OfEachEnd).await;
}

/// One nonce of a spender serves one withdrawal.
#[tokio::test(flavor = "multi_thread")]
async fn one_journal_authorizes_a_nonce_once_and_changes_nothing_else() {
    let again: Deviation = (
        "withdraw-request-authorization recover",
        409,
        "CONFLICTING_STATEMENT",
        "another withdrawal was authorized under the nonce",
    );
    let deviations = [MESSAGES, &[again]].concat();
    replay("recorded/messages.json", &deviations, Journal::Same).await;
}

/// The same where the index is asked, too, and both must agree.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_bitcoin_requests_are_answered_alike_beside_an_index() {
    let index = world::world().await;
    let url = format!("http://{}/esplora", index.address);
    let more = [("BITCOIN_ESPLORA_COMPATIBLE_API_URL", url.as_str())];
    let world = "recorded/bitcoin.json";
    replay_with(world, BITCOIN, Journal::Same, &more).await;
}

/// What the recorded key forces is refused where another one is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_forces_nothing_unless_it_is_named() {
    let world = world::world().await;
    let setup = daemon()
        .recorded(&world)
        .with("API_KEYS", "apikey1:int1;clientkey:client")
        .with("FORCE_API_KEYS", "int1");
    let daemon = setup.start().await;
    let cases = fixture("recorded/evm.json");
    let forced = |case: &&Value| case["body"]["force"] == true && case["response"]["status"] == 200;
    let mut refused = 0;
    for case in cases.as_array().unwrap().iter().filter(forced) {
        let headers = [
            ("content-type", "application/json"),
            ("x-api-key", "clientkey"),
        ];
        let path = case["path"].as_str().unwrap();
        let answer = daemon.ask("POST", path, &headers, body(case)).await;
        assert_eq!(answer.code(), "FORCE_NOT_ALLOWED", "{}", answer.body);
        refused += 1;
    }
    daemon.stop().await;
    assert_eq!(refused, 5);
}

/// Two requests without a key per window, which lasts longer than the recorded five seconds: it must not end before
/// the last request of a slow machine.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_over_a_limit_get_their_recorded_answers_and_headers() {
    let world = world::world().await;
    let setup = daemon()
        .recorded(&world)
        .with("API_KEYS", "apikey1:int1;clientkey:client")
        .with("UNAUTHENTICATED_RATE_LIMIT_MAX", "2")
        .with(
            "UNAUTHENTICATED_RATE_LIMIT_WINDOW_MS",
            (1_000 * WINDOW).to_string(),
        );
    let (daemon, client) = (setup.start().await, reqwest::Client::new());
    let (mut wrong, mut deviated) = (Vec::new(), 0);
    let cases = fixture("recorded/ratelimit.json");
    let cases = cases.as_array().unwrap();
    let begun = Instant::now();
    for case in cases {
        let text = |field: &str| case[field].as_str().unwrap();
        let (name, want) = (text("name"), &case["response"]);
        let url = format!("{}{}", daemon.url, text("path"));
        let mut request = client.request(text("method").parse().unwrap(), url);
        for (name, value) in case["headers"].as_object().unwrap() {
            request = request.header(name.as_str(), value.as_str().unwrap());
        }
        if let Some(body) = body(case) {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let headers = response.headers().clone();
        let answer = Answer {
            status: response.status(),
            signers: None,
            body: response.text().await.unwrap(),
        };
        if let Err(what) = compare(name, want, &answer, LIMITED) {
            wrong.push(format!("{name}: {what}"));
        }
        if LIMITED.iter().any(|row| row.0 == name) {
            deviated += 1;
            continue;
        }
        let spent = u64::try_from(begun.elapsed().as_millis()).unwrap() + 1;
        let least = (1_000 * WINDOW).saturating_sub(spent).div_ceil(1_000);
        let unlike = differing(&want["headers"], &headers, least);
        wrong.extend(unlike.into_iter().map(|what| format!("{name}: {what}")));
    }
    daemon.stop().await;
    assert_eq!((cases.len(), deviated), (14, LIMITED.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The headers of [`TOLD`] that are not as they were recorded. Where all of the recorded five seconds were left, no
/// fewer than `least` of [`WINDOW`] are by now.
fn differing(want: &Value, got: &HeaderMap, least: u64) -> Vec<String> {
    let different = |name: &&str| {
        let want = want[*name].as_str();
        let got = got.get(*name).map(|value| value.to_str().unwrap());
        let left = ["retry-after", "x-ratelimit-reset"].contains(name);
        let same = match (want, got) {
            (Some("5"), Some(got)) if left => {
                (least..=WINDOW).contains(&got.parse::<u64>().unwrap())
            }
            _ => want == got,
        };
        (!same).then(|| format!("{name}: want {want:?} got {got:?}"))
    };
    TOLD.iter().filter_map(different).collect()
}

/// The lists of claims about orders are as long as their description says, and no longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_longer_than_described_is_refused() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).start().await;
    let described = daemon.ask("GET", "/documentation/json", &[], None).await;
    let described = described.json();
    let cases = fixture("recorded/evm.json");
    for (name, lists) in [("fill native", 7), ("refund ok", 8)] {
        let mut cases = cases.as_array().unwrap().iter();
        let case = cases.find(|case| case["name"] == name).unwrap();
        let path = case["path"].as_str().unwrap();
        let body = &described["paths"][path]["post"]["requestBody"];
        let most = longest(&body["content"]["application/json"]["schema"]);
        assert_eq!(most, vec![json!(limits::ITEMS); lists], "{path}");
        for (hints, status, code) in [
            (limits::ITEMS, 200, ""),
            (limits::ITEMS + 1, 400, "TOO_MANY_ITEMS"),
        ] {
            let mut body = case["body"].clone();
            body["inputHints"] = vec![json!({"inputIndex": 7}); hints].into();
            let answer = daemon.attest(path, &body).await;
            assert_eq!(answer.status.as_u16(), status, "{name}: {}", answer.body);
            assert_eq!(answer.code(), code, "{name}");
        }
    }
    let messages = fixture("recorded/messages.json");
    for (path, list) in [
        ("/attestations/withdraw-requests/v1", "hashIndexes"),
        ("/attestations/deposit-address-triggers/v1", "currencies"),
        ("/attestations/deposit-address-triggers/v1", "prices"),
    ] {
        let mut cases = messages.as_array().unwrap().iter();
        let case = cases.find(|case| case["path"] == path).unwrap();
        for (items, refused) in [(limits::ITEMS, false), (limits::ITEMS + 1, true)] {
            let mut body = case["body"].clone();
            body[list] = match list {
                "hashIndexes" => (0..items).collect(),
                _ => vec![body[list][0].clone(); items].into(),
            };
            let answer = daemon.attest(path, &body).await;
            let code = answer.code();
            assert_eq!(code == "TOO_MANY_ITEMS", refused, "{list}: {code}");
        }
    }
    // No route has a list without a limit.
    let mut lists = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        let body = &methods["post"]["requestBody"];
        for most in longest(&body["content"]["application/json"]["schema"]) {
            assert_eq!(most, json!(limits::ITEMS), "{path}");
            lists += 1;
        }
    }
    assert!(lists > 20, "{lists} lists");
    daemon.stop().await;
}

/// The `maxItems` of every list in a schema; null where it has none.
fn longest(schema: &Value) -> Vec<Value> {
    let kind = &schema["type"];
    let is_list = *kind == "array" || *kind == json!(["array", "null"]);
    let own = is_list.then(|| schema["maxItems"].clone());
    let parts: Vec<&Value> = match schema {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    own.into_iter()
        .chain(parts.into_iter().flat_map(longest))
        .collect()
}

/// Which journal a case is asked of.
#[derive(PartialEq)]
enum Journal {
    /// One for all.
    Same,
    /// A fresh one for each that ends a deposit: another case may have taken the opposite side.
    OfEachEnd,
}

async fn replay(transcript: &str, deviations: &[Deviation], journal: Journal) {
    replay_with(transcript, deviations, journal, &[]).await;
}

async fn replay_with(
    transcript: &str,
    deviations: &[Deviation],
    journal: Journal,
    more: &[(&str, &str)],
) {
    let (world, peers) = (world::world().await, Peers::start().await);
    let setup = daemon()
        .recorded(&world)
        .with("AURORA_RPC_URL", format!("http://{}/aurora", world.address))
        .with("API_KEYS", "apikey1:int1;clientkey:client")
        .with("FORCE_API_KEYS", "int1;client")
        .with("PEERS", format!("{}|peerkey", peers.url("ok")));
    let more = more.iter();
    let setup = more.fold(setup, |setup, (name, value)| setup.with(name, *value));
    let mut wrong = Vec::new();
    let mut unused: Vec<&str> = deviations.iter().map(|row| row.0).collect();
    let mut daemon = setup.start().await;
    for case in fixture(transcript).as_array().unwrap() {
        let path = case["path"].as_str().unwrap();
        let ends = [
            "/solver",
            "/recover",
            "/withdrawal-initiation",
            "/withdraw-request-authorization",
        ];
        let ends = ends.iter().any(|part| path.contains(part));
        if journal == Journal::OfEachEnd && case["response"]["status"] == 200 && ends {
            daemon.stop().await;
            daemon = setup.start().await;
        }
        let headers: Vec<(&str, &str)> = case["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let text = |field: &str| case[field].as_str().unwrap();
        let answer = daemon
            .ask(text("method"), text("path"), &headers, body(case))
            .await;
        let name = text("name");
        unused.retain(|known| *known != name);
        if let Err(what) = compare(name, &case["response"], &answer, deviations) {
            wrong.push(format!("{name}: {what}"));
        }
    }
    daemon.stop().await;
    assert!(unused.is_empty(), "deviations of no case: {unused:?}");
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn body(case: &Value) -> Option<Vec<u8>> {
    if let Some(raw) = case["rawBody"].as_str() {
        return Some(raw.as_bytes().to_vec());
    }
    if let Some(fill) = case["bodyFill"].as_object() {
        let mut object = fill["object"].clone();
        let length = fill["length"].as_u64().unwrap() as usize;
        let text = |name: &str| fill[name].as_str().unwrap();
        object[text("field")] =
            (text("prefix").to_owned() + &text("character").repeat(length)).into();
        return Some(object.to_string().into_bytes());
    }
    case.get("body").map(|body| body.to_string().into_bytes())
}

fn compare(name: &str, want: &Value, got: &Answer, deviations: &[Deviation]) -> Result<(), String> {
    let recorded = want["body"].as_str().unwrap();
    let wrong = || {
        Err(format!(
            "want {} {recorded} got {} {}",
            want["status"], got.status, got.body
        ))
    };
    let json = got.json();
    if let Some((_, status, said, _)) = deviations.iter().find(|row| row.0 == name) {
        let found = match *status {
            200 => got.body.clone(),
            _ => got.code(),
        };
        let same = got.status == *status && found == *said;
        return if same { Ok(()) } else { wrong() };
    }
    if want["status"] != got.status.as_u16() {
        return wrong();
    }
    // A HEAD has no body.
    if got.status == StatusCode::OK || recorded.is_empty() {
        return if got.body == recorded {
            Ok(())
        } else {
            wrong()
        };
    }
    let theirs: Value = serde_json::from_str(recorded).unwrap();
    let differs = |(field, value): (&String, &Value)| json[field] != *value;
    if theirs.as_object().unwrap().iter().any(differs) {
        return wrong();
    }
    Ok(())
}
