//! The aggregator against recorded answers of its service, and answers that no honest service gives.

use std::{convert::Infallible, num::NonZero, sync::Mutex};

use base64::{Engine, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

use super::*;
use crate::{
    solana::{
        FAMILY,
        programs::{ASSOCIATED, TOKEN, associated},
        trade::fixtures::{key as place, old},
    },
    trade::{Choices, HeadCalls, SwapContracts},
    types::U256,
};

const SOL: &str = "11111111111111111111111111111111";
const USDC: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
/// Whose instructions were recorded.
const USER: &str = "Cm7vjoV12JuVqCduW6rkGGcgN77NPkzqZr66pkVTzb5b";
/// What the recorded instructions exchange.
const INPUT: u64 = 51_586_500;
const OUTPUT: u64 = 10_001_081;

/// A question: what follows the service's own path, and its query or body.
type Question = (String, Value);
type Answers = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;

/// A service in this process.
struct Service {
    url: url::Url,
    asked: Arc<Mutex<Vec<Question>>>,
    keys: Arc<Mutex<Vec<Option<String>>>>,
    task: JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Service {
    async fn start(answers: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers: Arc<Answers> = Arc::new(answers);
        let asked = Arc::<Mutex<Vec<Question>>>::default();
        let keys = Arc::<Mutex<Vec<Option<String>>>>::default();
        let shared = (asked.clone(), keys.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answers, shared) = (answers.clone(), shared.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answers, (asked, keys)) = (answers.clone(), shared.clone());
                    async move {
                        let key = request.headers().get("x-api-key");
                        let key = key.map(|key| key.to_str().unwrap().to_owned());
                        keys.lock().unwrap().push(key);
                        let (path, question) = question(request).await;
                        let (status, answer) = answers(&path, &question);
                        asked.lock().unwrap().push((path, question));
                        let response = Response::builder().status(status);
                        let body = Full::new(Bytes::from(answer.to_string()));
                        Ok::<_, Infallible>(response.body(body).unwrap())
                    }
                });
                tokio::spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let url = format!("http://127.0.0.1:{port}/swap/v1").parse().unwrap();
        Self {
            url,
            asked,
            keys,
            task,
        }
    }

    /// The exchange of a chain that names this service.
    fn venue(&self) -> Arc<dyn SwapVenue> {
        let service = SwapService {
            url: self.url.clone(),
            api_key: Some("secret".into()),
        };
        opened(vec![service]).unwrap().first.remove(0)
    }

    fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }
}

async fn question(request: Request<Incoming>) -> Question {
    let url: url::Url = format!("http://h{}", request.uri()).parse().unwrap();
    let path = url.path().strip_prefix("/swap/v1/").unwrap().to_owned();
    let query = url.query_pairs();
    let query = query.map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())));
    let query: serde_json::Map<_, _> = query.collect();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question = match body.is_empty() {
        true => Value::Object(query),
        false => serde_json::from_slice(&body).unwrap(),
    };
    (path, question)
}

fn access() -> SwapAccess {
    SwapAccess {
        head_calls: HeadCalls {
            family: &FAMILY,
            contracts: Vec::new(),
        },
        keyed: || false,
    }
}

fn opened(services: Vec<SwapService>) -> Result<SwapVenues, SpecError> {
    let spec = SwapSpec {
        network: "solana".into(),
        services,
        ..SwapSpec::default()
    };
    open(&spec, &access())
}

fn recorded(part: &str) -> Value {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/recorded/jupiter.json"
    ));
    let all: Value = serde_json::from_str(text).unwrap();
    all[part].clone()
}

/// The recorded quote with the amounts of the recorded instructions.
fn quote() -> Value {
    let mut quote = recorded("quote");
    quote["inAmount"] = INPUT.to_string().into();
    quote["outAmount"] = OUTPUT.to_string().into();
    quote
}

fn terms(from: &str, to: &str, amount: u64) -> SwapTerms {
    let currency = |text: &str| FAMILY.currency(text).unwrap();
    SwapTerms {
        network: "solana".into(),
        input: currency(from),
        output: currency(to),
        amount: U256::from(amount),
        exact_input: true,
        most_pools: None,
    }
}

fn order(limit: u64) -> SwapOrder {
    let user = FAMILY.account(USER).unwrap();
    SwapOrder {
        payer: user.clone(),
        recipient: user,
        limit: U256::from(limit),
        deadline: 0,
        choices: Choices::default(),
    }
}

fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, SwapError>) -> bool {
    matches!(answer, Err(SwapError::Unavailable(_)))
}

#[tokio::test]
async fn recorded_quote_is_an_offer() {
    let service = Service::start(|_, _| (200, recorded("quote"))).await;
    let venue = service.venue();
    let terms = terms(SOL, USDC, 52_003_323);
    let offer = venue.offer(&terms).await.unwrap();
    assert_eq!((offer.source, venue.name()), ("jupiter", "jupiter"));
    assert_eq!(offer.terms, terms);
    assert_eq!(offer.input, U256::from(52_003_323));
    assert_eq!(offer.output, U256::from(10_059_512));
    assert_eq!(offer.work, WORK + WORK_OF_POOL);
    let note: Value = serde_json::from_slice(&offer.route).unwrap();
    assert_eq!(note, recorded("quote"));
    let wanted = json!({
        "inputMint": WRAPPED[0].to_string(), "outputMint": USDC, "amount": "52003323", "swapMode": "ExactIn",
        "restrictIntermediateTokens": "true", "instructionVersion": "V1", "maxAccounts": "64",
        "onlyDirectRoutes": "false",
    });
    assert_eq!(service.asked(), [("quote".to_owned(), wanted)]);
    assert_eq!(*service.keys.lock().unwrap(), [Some("secret".to_owned())]);
}

#[tokio::test]
async fn what_the_service_has_no_way_for_is_no_offer() {
    let amount = 52_003_323;
    let offered = async |status: u16, answer: Value, terms: SwapTerms| {
        let service = Service::start(move |_, _| (status, answer.clone())).await;
        let offer = service.venue().offer(&terms).await;
        (offer, service.asked().len())
    };
    let sound = || terms(SOL, USDC, amount);
    let (refused, _) = offered(400, recorded("refusal"), sound()).await;
    assert_eq!(refused, Err(SwapError::NoRoute));
    for (status, answer) in [
        (400, json!({"error": "x", "errorCode": "INVALID_REQUEST"})),
        (429, json!({})),
        (500, recorded("refusal")["nothing"].clone()),
        (200, json!({})),
        (200, json!("quote")),
    ] {
        let (offer, _) = offered(status, answer.clone(), sound()).await;
        assert!(is_unavailable(&offer), "{status} {answer}: {offer:?}");
    }
    for (field, value) in [
        ("inAmount", json!("52003324")),
        ("inAmount", json!(52_003_323)),
        ("outAmount", json!("0")),
        ("outAmount", json!("-1")),
        ("inputMint", json!(USDC)),
        ("outputMint", json!(USER)),
        ("swapMode", json!("ExactOut")),
        ("routePlan", json!([])),
    ] {
        let mut changed = recorded("quote");
        changed[field] = value.clone();
        let (offer, _) = offered(200, changed, sound()).await;
        assert!(is_unavailable(&offer), "{field} {value}: {offer:?}");
    }
    // Nobody is asked for nothing, for too much, or how lamports are wrapped.
    let wrapped = WRAPPED[0].to_string();
    let beyond = SwapTerms {
        amount: U256::from(u64::MAX) + U256::ONE,
        ..sound()
    };
    for terms in [
        terms(SOL, USDC, 0),
        terms(SOL, &wrapped, 5),
        terms(USDC, USDC, 5),
        beyond,
    ] {
        let offered = offered(200, recorded("quote"), terms).await;
        assert_eq!(offered, (Err(SwapError::NoRoute), 0));
    }
}

#[tokio::test]
async fn caller_limits_the_pools_of_a_way() {
    let of_pools = |pools: usize| {
        let mut quote = recorded("quote");
        let plan = quote["routePlan"][0].clone();
        quote["routePlan"] = vec![plan; pools].into();
        quote
    };
    // The service finds ways of three pools; of one where it is told so, if `direct`.
    for (most, direct, pools, asked) in [
        (None, true, Some(3_u64), vec!["64 false"]),
        (Some(4), true, Some(3), vec!["56 false"]),
        (Some(3), true, Some(3), vec!["42 false"]),
        (Some(2), true, Some(1), vec!["28 false", "28 true"]),
        (Some(2), false, None, vec!["28 false", "28 true"]),
        (Some(1), true, Some(1), vec!["14 true"]),
        (Some(1), false, None, vec!["14 true"]),
    ] {
        let service = Service::start(move |_, question| {
            match (question["onlyDirectRoutes"] == "true", direct) {
                (false, _) => (200, of_pools(3)),
                (true, true) => (200, of_pools(1)),
                (true, false) => (400, recorded("refusal")),
            }
        });
        let service = service.await;
        let terms = SwapTerms {
            most_pools: most.and_then(NonZero::new),
            ..terms(SOL, USDC, 52_003_323)
        };
        let offer = service.venue().offer(&terms).await;
        let work = offer.map(|offer| offer.work).ok();
        let wanted = pools.map(|pools| WORK + pools * WORK_OF_POOL);
        assert_eq!(work, wanted, "{most:?} {direct}");
        let said = service.asked().into_iter();
        let said = said.map(|(_, asked)| {
            let text = |name: &str| asked[name].as_str().unwrap().to_owned();
            format!("{} {}", text("maxAccounts"), text("onlyDirectRoutes"))
        });
        assert_eq!(said.collect::<Vec<_>>(), asked, "{most:?} {direct}");
    }
}

/// The draft of the recorded exchange with other instructions, and what was asked for them.
async fn built(
    instructions: Value,
    order: SwapOrder,
) -> (Result<SwapDraft, SwapError>, Option<Value>) {
    let service = Service::start(move |path, _| match path {
        "quote" => (200, quote()),
        _ => (200, instructions.clone()),
    });
    let service = service.await;
    let venue = service.venue();
    let offer = venue.offer(&terms(SOL, USDC, INPUT)).await.unwrap();
    let built = venue.build(&offer, &order).await;
    let asked = service.asked().into_iter().nth(1);
    (built, asked.map(|(_, asked)| asked))
}

#[tokio::test]
async fn recorded_instructions_are_the_exchange() {
    let (swap, asked) = built(recorded("instructions"), order(OUTPUT)).await;
    let SwapDraft { spender, draft } = swap.unwrap();
    assert_eq!((spender, draft.value), (None, U256::from(INPUT)));
    assert_eq!(draft.from.text(), USER);
    let Content::Instructions(own) = Content::of(&draft).unwrap() else {
        panic!("{draft:?}");
    };
    let programs = own
        .list
        .iter()
        .map(|one| Pubkey::new_from_array(one.program));
    assert_eq!(
        programs.collect::<Vec<_>>(),
        [SYSTEM, TOKEN, PROGRAM, TOKEN]
    );
    let table = "9AKCoNoAGYLW71TwTHY9e7KrZUWWL3c7VtHKb66NT3EV";
    assert_eq!(own.tables, [table.parse::<Pubkey>().unwrap().to_bytes()]);
    assert_eq!((own.fee_payer, own.work_limit), (None, false));
    let asked = asked.unwrap();
    let mut quote = quote();
    quote["slippageBps"] = 0.into();
    quote["otherAmountThreshold"] = OUTPUT.to_string().into();
    let wanted = json!({"quoteResponse": quote, "userPublicKey": USER, "wrapAndUnwrapSol": true});
    assert_eq!(asked, wanted);
}

#[tokio::test]
async fn callers_choices_reach_the_service() {
    let payer = place(0x44);
    let chosen = SwapOrder {
        choices: Choices {
            fee_payer: Some(super::super::body::address(&payer)),
            work_limit: true,
            shared_accounts: Some(false),
        },
        ..order(OUTPUT)
    };
    let (swap, asked) = built(recorded("instructions"), chosen).await;
    let asked = asked.unwrap();
    assert_eq!(asked["payer"], payer.to_string());
    assert_eq!(asked["useSharedAccounts"], false);
    let Content::Instructions(own) = Content::of(&swap.unwrap().draft).unwrap() else {
        panic!("no instructions");
    };
    assert_eq!(own.fee_payer, Some(payer.to_bytes()));
    assert!(own.work_limit);
}

/// The user's transfer of lamports.
fn transfer(to: &str, amount: u64) -> Value {
    let data = [&[2, 0, 0, 0][..], &amount.to_le_bytes()].concat();
    let accounts = [
        json!({"pubkey": USER, "isSigner": true, "isWritable": true}),
        json!({"pubkey": to, "isSigner": false, "isWritable": true}),
    ];
    json!({"programId": SOL, "accounts": accounts, "data": BASE64_STANDARD.encode(data)})
}

#[tokio::test]
async fn what_the_user_must_not_sign_is_not_built() {
    let other = place(0x77).to_string();
    let purse = associated(&USER.parse().unwrap(), &WRAPPED[0], &TOKEN).unwrap();
    let data = |change: fn(&mut Vec<u8>)| {
        let text = recorded("instructions")["swapInstruction"]["data"].clone();
        let mut data = BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap();
        change(&mut data);
        json!(BASE64_STANDARD.encode(data))
    };
    let made_for = |owner: &str| {
        let account = |key: &str| json!({"pubkey": key, "isSigner": false, "isWritable": true});
        let accounts = [account(USER), account(USDC), account(owner)];
        json!({"programId": ASSOCIATED.to_string(), "accounts": accounts, "data": "AQ=="})
    };
    for (pointer, value) in [
        ("/otherInstructions", json!([transfer(&other, 1)])),
        ("/tokenLedgerInstruction", transfer(&other, 1)),
        // Lamports to somebody else, or more than the order takes.
        ("/setupInstructions/0", transfer(&other, 1)),
        (
            "/setupInstructions/0",
            transfer(&purse.to_string(), INPUT + 1),
        ),
        ("/setupInstructions/0/accounts/0/pubkey", json!(other)),
        ("/setupInstructions/0/programId", json!(other)),
        ("/setupInstructions/1/data", json!("Aw==")),
        ("/setupInstructions/1", made_for(&other)),
        ("/swapInstruction/programId", json!(other)),
        ("/swapInstruction/accounts/3/isSigner", json!(true)),
        ("/swapInstruction/data", json!("?")),
        // Another function; other amounts, another limit, a fee; too short.
        ("/swapInstruction/data", data(|data| data[0] ^= 1)),
        ("/swapInstruction/data", data(|data| data[17] ^= 1)),
        ("/swapInstruction/data", data(|data| data[25] ^= 1)),
        (
            "/swapInstruction/data",
            data(|data| *data.iter_mut().nth_back(2).unwrap() = 1),
        ),
        (
            "/swapInstruction/data",
            data(|data| *data.iter_mut().nth_back(0).unwrap() = 1),
        ),
        ("/swapInstruction/data", data(|data| data.truncate(20))),
        // The lamports that are left, to somebody else.
        ("/cleanupInstruction/accounts/1/pubkey", json!(other)),
        ("/cleanupInstruction/accounts/0/pubkey", json!(other)),
        ("/cleanupInstruction/data", json!("Aw==")),
        ("/cleanupInstruction/programId", json!(other)),
        ("/addressLookupTableAddresses", json!(["x"])),
    ] {
        let mut changed = recorded("instructions");
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        let (swap, _) = built(changed, order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{pointer} {value}: {swap:?}");
    }
    // An account of the user's is made, and nothing need be left over.
    let mut changed = recorded("instructions");
    changed["setupInstructions"][1] = made_for(USER);
    changed["cleanupInstruction"] = Value::Null;
    let (swap, _) = built(changed, order(OUTPUT)).await;
    assert!(swap.is_ok(), "{swap:?}");
    // Beyond the offer.
    let (swap, asked) = built(recorded("instructions"), order(OUTPUT + 1)).await;
    assert!(is_unavailable(&swap) && asked.is_none());
    // The limit that was recorded is tighter than this order's.
    let (swap, asked) = built(recorded("instructions"), order(OUTPUT / 2)).await;
    assert!(is_unavailable(&swap) && asked.is_some());
}

/// An exchange of tokens for another's account.
#[tokio::test]
async fn account_of_another_recipient_is_made_first() {
    let (mint, recipient) = (place(0x91), place(0x92));
    Mint::read(&mint, &old(6)).unwrap();
    let mut said = quote();
    said["inputMint"] = json!(USDC);
    said["outputMint"] = json!(mint.to_string());
    let mut instructions = recorded("instructions");
    instructions["setupInstructions"] = json!([]);
    instructions["cleanupInstruction"] = Value::Null;
    let service = Service::start(move |path, _| match path {
        "quote" => (200, said.clone()),
        _ => (200, instructions.clone()),
    });
    let service = service.await;
    let venue = service.venue();
    let wanted = terms(USDC, &mint.to_string(), INPUT);
    let offer = venue.offer(&wanted).await.unwrap();
    let order = SwapOrder {
        recipient: super::super::body::address(&recipient),
        ..order(OUTPUT)
    };
    let swap = venue.build(&offer, &order).await.unwrap();
    assert_eq!(swap.draft.value, U256::ZERO);
    let Content::Instructions(own) = Content::of(&swap.draft).unwrap() else {
        panic!("no instructions");
    };
    let account = associated(&recipient, &mint, &TOKEN).unwrap();
    assert_eq!(own.list[0].program, ASSOCIATED.to_bytes());
    assert_eq!(own.list[0].accounts[1].key, account.to_bytes());
    let asked = service.asked().remove(1).1;
    assert_eq!(asked["destinationTokenAccount"], account.to_string());
    assert_eq!(asked["wrapAndUnwrapSol"], false);
}

#[test]
fn limits_are_rounded_for_the_user() {
    for exact_input in [true, false] {
        let mut said = quote();
        said["swapMode"] = mode(exact_input).into();
        let note = said.to_string().into_bytes();
        let limited = |limit: u64| Quote::noted(&note).unwrap().limited(U256::from(limit));
        let whole = if exact_input { OUTPUT } else { INPUT };
        for lost in [
            0,
            1,
            999,
            1_000,
            1_001,
            50_000,
            777_777,
            whole / 2,
            whole - 1,
        ] {
            let limit = if exact_input {
                whole - lost
            } else {
                whole + lost
            };
            let (quote, slippage) = limited(limit).unwrap();
            let threshold: u64 = quote["otherAmountThreshold"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(quote["slippageBps"], slippage);
            match exact_input {
                true => assert!((limit..=whole).contains(&threshold), "{lost}"),
                false => assert!((whole..=limit).contains(&threshold), "{lost}"),
            }
            // As near as basis points get.
            assert!(threshold.abs_diff(limit) <= whole / 10_000 + 1, "{lost}");
        }
        let beyond = if exact_input { whole + 1 } else { whole - 1 };
        assert_eq!(limited(beyond), None);
    }
    assert_eq!(Quote::noted(b"{}"), None);
    assert_eq!(Quote::noted(b""), None);
}

#[test]
fn wrong_entry_is_an_error() {
    let service = || SwapService {
        url: "https://example.org/swap/v1".parse().unwrap(),
        api_key: None,
    };
    assert_eq!(opened(Vec::new()).unwrap().first.len(), 0);
    assert_eq!(opened(vec![service()]).unwrap().first.len(), 1);
    let error = |opened: Result<SwapVenues, SpecError>| opened.err().unwrap().0;
    let two = error(opened(vec![service(), service()]));
    assert_eq!(two, "solana: aggregators: expected one at most");
    let keyed = SwapService {
        api_key: Some("a\nb".into()),
        ..service()
    };
    assert_eq!(
        error(opened(vec![keyed])),
        "solana: aggregators.apiKey: no header"
    );
    let contracts = SwapContracts {
        quoter: String::new(),
        router: String::new(),
        fees: Vec::new(),
    };
    let spec = SwapSpec {
        network: "solana".into(),
        first: vec![contracts],
        ..SwapSpec::default()
    };
    assert!(error(open(&spec, &access())).starts_with("solana: uniswapV3"));
    let spec = SwapSpec {
        network: "solana".into(),
        wrapped: Some("x".into()),
        services: vec![service()],
        ..SwapSpec::default()
    };
    assert!(error(open(&spec, &access())).starts_with("solana: wrappedNative"));
    // Keys are printed nowhere.
    let shown = format!(
        "{:?}",
        SwapService {
            api_key: Some("secret".into()),
            ..service()
        }
    );
    assert_eq!(shown, "example.org");
}
