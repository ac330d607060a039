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
        executed::{Executed, Step},
        programs::{ASSOCIATED, COMPUTE_BUDGET, LIGHTHOUSE, TOKEN, associated},
        trade::{
            Steps,
            body::{self, Account},
            fixtures::{key as place, old, remember},
            own,
            pay::memo,
        },
    },
    trade::{Choices, HeadCalls, StepBuilder, SwapContracts},
    types::{B256, U256},
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
    let (built, asked) = exchanged((SOL, USDC, true), instructions, order).await;
    (built, asked.map(|(_, asked)| asked))
}

/// The draft of an exchange of the recorded amounts, whose instructions are these, and the question for them.
async fn exchanged(
    (from, into, exact_input): (&str, &str, bool),
    instructions: Value,
    order: SwapOrder,
) -> (Result<SwapDraft, SwapError>, Option<Question>) {
    let mint = |text: &str| match text {
        SOL => WRAPPED[0].to_string(),
        mint => mint.to_owned(),
    };
    let mut said = quote();
    said["inputMint"] = mint(from).into();
    said["outputMint"] = mint(into).into();
    said["swapMode"] = mode(exact_input).into();
    let service = Service::start(move |path, _| match path {
        "quote" => (200, said.clone()),
        _ => (200, instructions.clone()),
    });
    let service = service.await;
    let venue = service.venue();
    let amount = if exact_input { INPUT } else { OUTPUT };
    let wanted = SwapTerms {
        exact_input,
        ..terms(from, into, amount)
    };
    let offer = venue.offer(&wanted).await.unwrap();
    let built = venue.build(&offer, &order).await;
    (built, service.asked().into_iter().nth(1))
}

/// The user's associated account.
fn owned(mint: &Pubkey) -> Pubkey {
    associated(&USER.parse().unwrap(), mint, &TOKEN).unwrap()
}

/// The accounts of a kind of exchange of the user's tokens, and its data without a fee and without slippage.
fn kind_of(name: &str, (from, into): (Pubkey, Pubkey), (amount, limit): (u64, u64)) -> Value {
    let user: Pubkey = USER.parse().unwrap();
    let events = "D8cy77BBepLMngZx6ZukaTff5hCt1HrWyKk3Hnd9oitf";
    let ends = [events.parse().unwrap(), PROGRAM];
    let (source, output) = (owned(&from), owned(&into));
    let (discriminator, head, accounts) = match name {
        "route" => (
            "e517cb977ae3ad2a",
            &[][..],
            vec![TOKEN, user, source, output, PROGRAM, into, PROGRAM],
        ),
        "exact_out_route" => (
            "d033ef977b2bed5c",
            &[][..],
            vec![
                TOKEN, user, source, output, PROGRAM, from, into, PROGRAM, PROGRAM,
            ],
        ),
        shared => (
            match shared {
                "shared_accounts_route" => "c1209b3341d69c81",
                _ => "b0d169a89a7d453e",
            },
            &[7][..],
            vec![
                TOKEN,
                place(0x31),
                user,
                source,
                place(0x32),
                place(0x33),
                output,
                from,
                into,
                PROGRAM,
                PROGRAM,
            ],
        ),
    };
    let accounts = accounts.into_iter().chain(ends).chain([place(0x34), user]);
    let accounts = accounts.enumerate().map(|(at, key)| {
        let signs = key == user && at < 3;
        json!({"pubkey": key.to_string(), "isSigner": signs, "isWritable": false})
    });
    let data = [
        &alloy::hex::decode(discriminator).unwrap()[..],
        head,
        &[1, 0, 0, 0, 89, 1, 100, 0, 1],
        &amount.to_le_bytes(),
        &limit.to_le_bytes(),
        &[0; 3],
    ];
    json!({
        "programId": PROGRAM.to_string(), "accounts": accounts.collect::<Vec<_>>(),
        "data": BASE64_STANDARD.encode(data.concat()),
    })
}

/// The recorded instructions with another exchange, alone.
fn alone(exchange: Value) -> Value {
    let mut instructions = recorded("instructions");
    instructions["setupInstructions"] = json!([]);
    instructions["cleanupInstruction"] = Value::Null;
    instructions["swapInstruction"] = exchange;
    instructions
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

/// The transaction of `signers` that consists of these instructions.
fn executed(signers: &[Pubkey], list: &[body::Instruction]) -> Executed {
    let steps = list.iter().map(|one| Step {
        program: Pubkey::new_from_array(one.program),
        accounts: one.accounts.iter().map(Account::key).collect(),
        data: serde_json::from_value(json!(bs58::encode(&one.data).into_string())).unwrap(),
        signed: true,
    });
    Executed {
        slot: 1,
        time: None,
        failed: false,
        signers: signers.to_vec(),
        steps: steps.collect(),
        lamports: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
    }
}

/// An instruction of a program for the user's account.
fn of_program(program: Pubkey) -> body::Instruction {
    body::Instruction {
        program: program.to_bytes(),
        accounts: vec![Account {
            key: USER.parse::<Pubkey>().unwrap().to_bytes(),
            signs: true,
            writable: true,
        }],
        data: vec![3, 1],
    }
}

#[tokio::test]
async fn users_exchange_is_told_by_its_transaction_whatever_a_wallet_adds() {
    let (swap, _) = built(recorded("instructions"), order(OUTPUT)).await;
    let id = B256::repeat_byte(0xb6);
    let draft = Steps.name(swap.unwrap().draft, id).unwrap();
    let told = Some(FAMILY.own_call.unwrap()(&draft));
    let Content::Instructions(quoted) = Content::of(&draft).unwrap() else {
        panic!("{draft:?}");
    };
    let (user, other) = (USER.parse::<Pubkey>().unwrap(), place(9));
    let list = quoted.list;
    let with = |at: usize, program: Pubkey| {
        let mut list = list.clone();
        list.insert(at, of_program(program));
        list
    };
    let last = list.len();
    for (signers, list) in [
        (vec![user], list.clone()),
        // Somebody else pays the fee.
        (vec![other, user], list.clone()),
        (vec![user], with(0, COMPUTE_BUDGET)),
        (vec![user], with(2, LIGHTHOUSE)),
        (vec![user], with(last, LIGHTHOUSE)),
        // What the user does then.
        (vec![user], with(last, SYSTEM)),
    ] {
        assert_eq!(own::digest(&executed(&signers, &list)), told, "{list:?}");
    }
    for (signers, list) in [
        (vec![other], list.clone()),
        (vec![user, other], list.clone()),
        (vec![other, place(8), user], list.clone()),
        (vec![user], with(0, other)),
        (vec![user], with(last - 1, SYSTEM)),
        (vec![user], Vec::new()),
    ] {
        assert_ne!(own::digest(&executed(&signers, &list)), told, "{list:?}");
    }
    // Each of the instructions, and all that it says, is the quote's.
    for at in 0..last {
        let mut lacking = list.clone();
        lacking.remove(at);
        let mut changed = list.clone();
        changed[at].data.push(0);
        for list in [lacking, changed] {
            assert_ne!(own::digest(&executed(&[user], &list)), told, "{at}");
        }
    }
    let mut another = list.clone();
    another[last - 1] = (&memo(B256::repeat_byte(1))).into();
    assert_ne!(own::digest(&executed(&[user], &another)), told);
    // What a program caused is no part of what the user signed.
    let mut caused = executed(&[user], &list);
    caused.steps.iter_mut().for_each(|step| step.signed = false);
    assert_eq!(own::digest(&caused), None);
}

/// Makes an owner's associated account of a mint, for the user's lamports.
fn made(owner: &str, mint: &str) -> Value {
    let account = associated(&owner.parse().unwrap(), &mint.parse().unwrap(), &TOKEN);
    let account = account.unwrap().to_string();
    let keys = [USER, &account, owner, mint, SOL, &TOKEN.to_string()];
    let accounts = keys.iter().enumerate();
    let accounts =
        accounts.map(|(at, key)| json!({"pubkey": key, "isSigner": at == 0, "isWritable": true}));
    let accounts: Vec<_> = accounts.collect();
    json!({"programId": ASSOCIATED.to_string(), "accounts": accounts, "data": "AQ=="})
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
    let made_for = |owner: &str| made(owner, &WRAPPED[0].to_string());
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

/// Each place of the recorded exchange, with somebody else's account in it.
#[tokio::test]
async fn exchange_names_the_accounts_of_the_order_only() {
    let other = place(0x77).to_string();
    for at in 0..=8 {
        let mut changed = recorded("instructions");
        changed["swapInstruction"]["accounts"][at]["pubkey"] = json!(other);
        let (swap, _) = built(changed, order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{at}: {swap:?}");
    }
    // Another account of the user's, and accounts of the right mint for somebody else.
    let theirs = associated(&place(0x77), &USDC.parse().unwrap(), &TOKEN);
    let theirs = theirs.unwrap().to_string();
    let others = owned(&place(0x78)).to_string();
    for (at, account) in [(2, &others), (3, &others), (3, &theirs), (4, &theirs)] {
        let mut changed = recorded("instructions");
        changed["swapInstruction"]["accounts"][at]["pubkey"] = json!(account);
        let (swap, _) = built(changed, order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{at} {account}: {swap:?}");
    }
    // Without those at the end, there is no such exchange.
    let mut changed = recorded("instructions");
    let accounts = changed["swapInstruction"]["accounts"].as_array_mut();
    accounts.unwrap().truncate(8);
    assert!(is_unavailable(&built(changed, order(OUTPUT)).await.0));
}

#[tokio::test]
async fn accounts_of_each_kind_are_held_against_the_order() {
    let (from, into): (Pubkey, Pubkey) = (place(0x21), place(0x22));
    let (text, other) = (
        [from, into].map(|it| it.to_string()),
        place(0x77).to_string(),
    );
    for (name, exact_input, places) in [
        ("route", true, &[0, 1, 2, 3, 4, 5, 6, 7, 8][..]),
        (
            "shared_accounts_route",
            true,
            &[0, 2, 3, 6, 7, 8, 9, 10, 11, 12],
        ),
        (
            "exact_out_route",
            false,
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        ),
        (
            "shared_accounts_exact_out_route",
            false,
            &[0, 2, 3, 6, 7, 8, 9, 10, 11, 12],
        ),
    ] {
        let amounts = match exact_input {
            true => (INPUT, OUTPUT),
            false => (OUTPUT, INPUT),
        };
        let limit = amounts.1;
        let swapped = async |exchange: Value, exact_input: bool| {
            let terms = (&*text[0], &*text[1], exact_input);
            exchanged(terms, alone(exchange), order(limit)).await.0
        };
        let sound = kind_of(name, (from, into), amounts);
        let swap = swapped(sound.clone(), exact_input).await;
        assert!(swap.is_ok(), "{name}: {swap:?}");
        for at in places {
            let mut changed = sound.clone();
            changed["accounts"][at]["pubkey"] = json!(other);
            let swap = swapped(changed, exact_input).await;
            assert!(is_unavailable(&swap), "{name} {at}: {swap:?}");
        }
        // The other mint's account, the other way round, and as an exchange of the other sort.
        let swap = swapped(kind_of(name, (into, from), amounts), exact_input).await;
        assert!(is_unavailable(&swap), "{name}: {swap:?}");
        let other_sort = match name {
            "route" => "exact_out_route",
            _ => "route",
        };
        if exact_input != (other_sort == "route") {
            let swap = swapped(kind_of(other_sort, (from, into), amounts), exact_input).await;
            assert!(is_unavailable(&swap), "{name}: {swap:?}");
        }
    }
}

/// The program reads from the front, and ignores what stands behind.
#[tokio::test]
async fn arguments_that_only_stand_at_the_end_are_none() {
    let data = |change: fn(&mut Vec<u8>)| {
        let mut changed = recorded("instructions");
        let text = changed["swapInstruction"]["data"].clone();
        let mut data = BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap();
        change(&mut data);
        changed["swapInstruction"]["data"] = json!(BASE64_STANDARD.encode(data));
        changed
    };
    let changes: [fn(&mut Vec<u8>); 4] = [
        // All that the user has, for nothing; then what was asked for.
        |data| {
            let asked = data[17..].to_vec();
            data.truncate(17);
            data.extend([0xff; 8]);
            data.extend([0; 8]);
            data.extend([0x10, 0x27, 0]);
            data.extend(asked);
        },
        // A step more or less than the list says; a step of a kind that nobody knows.
        |data| data[8] = 0,
        |data| data[8] = 2,
        |data| data[12] = 0xf0,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let (swap, _) = built(data(change), order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{at}: {swap:?}");
    }
}

/// Who pays the fee signs the transaction, so every instruction that names the account has its signature.
#[tokio::test]
async fn sponsor_pays_for_accounts_and_stands_in_no_exchange() {
    let sponsor = place(0x44);
    let sponsored = || SwapOrder {
        choices: Choices {
            fee_payer: Some(super::super::body::address(&sponsor)),
            ..Choices::default()
        },
        ..order(OUTPUT)
    };
    let sponsor = sponsor.to_string();
    for signs in [false, true] {
        for at in [1, 2, 12] {
            let mut changed = recorded("instructions");
            let account = &mut changed["swapInstruction"]["accounts"][at];
            account["pubkey"] = json!(sponsor);
            account["isSigner"] = json!(signs);
            let (swap, _) = built(changed, sponsored()).await;
            assert!(is_unavailable(&swap), "{at} {signs}: {swap:?}");
        }
    }
    let funded = |at: usize| {
        let mut changed = recorded("instructions");
        changed["setupInstructions"][1] = made(USER, USDC);
        changed["setupInstructions"][1]["accounts"][at]["pubkey"] = json!(sponsor);
        changed
    };
    let (swap, _) = built(funded(0), sponsored()).await;
    assert!(swap.is_ok(), "{swap:?}");
    for at in 1..6 {
        let (swap, _) = built(funded(at), sponsored()).await;
        assert!(is_unavailable(&swap), "{at}: {swap:?}");
    }
    // Nobody else pays for an account.
    assert!(is_unavailable(&built(funded(0), order(OUTPUT)).await.0));
}

#[tokio::test]
async fn only_accounts_of_the_exchange_are_made_each_once() {
    let (other, user) = (place(0x77).to_string(), USER);
    let with = |setup: Vec<Value>| {
        let mut changed = recorded("instructions");
        let list = changed["setupInstructions"].as_array_mut().unwrap();
        list.splice(0..0, setup);
        changed
    };
    let wrapped = WRAPPED[0].to_string();
    let sound = vec![made(user, USDC), made(user, &wrapped)];
    let (swap, _) = built(with(sound), order(OUTPUT)).await;
    assert!(swap.is_ok(), "{swap:?}");
    let mut displaced = made(user, USDC);
    displaced["accounts"][1]["pubkey"] = json!(other);
    let mut longer = made(user, USDC);
    let accounts = longer["accounts"].as_array_mut().unwrap();
    accounts.push(json!({"pubkey": other, "isSigner": false, "isWritable": true}));
    for setup in [
        vec![made(user, &other)],
        vec![made(&other, USDC)],
        vec![made(user, USDC), made(user, USDC)],
        vec![displaced],
        vec![longer],
    ] {
        let (swap, _) = built(with(setup.clone()), order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{setup:?}: {swap:?}");
    }
}

#[tokio::test]
async fn lamports_come_out_for_their_payer_only_and_are_unwrapped() {
    let (usdc, wrapped) = (USDC.parse().unwrap(), WRAPPED[0]);
    let instructions = || {
        let mut all = alone(kind_of("route", (usdc, wrapped), (INPUT, OUTPUT)));
        all["cleanupInstruction"] = recorded("instructions")["cleanupInstruction"].clone();
        all
    };
    let terms = (USDC, SOL, true);
    let (swap, asked) = exchanged(terms, instructions(), order(OUTPUT)).await;
    assert_eq!(swap.unwrap().draft.value, U256::ZERO);
    let (_, asked) = asked.unwrap();
    assert_eq!(asked["wrapAndUnwrapSol"], true);
    assert_eq!(asked["nativeDestinationAccount"], Value::Null);
    // They stay wrapped, or all that is wrapped becomes somebody else's.
    let mut kept = instructions();
    kept["cleanupInstruction"] = Value::Null;
    let mut given = instructions();
    given["cleanupInstruction"]["accounts"][1]["pubkey"] = json!(place(0x92).to_string());
    for changed in [kept, given] {
        let (swap, _) = exchanged(terms, changed, order(OUTPUT)).await;
        assert!(is_unavailable(&swap), "{swap:?}");
    }
    // For another recipient the user's whole account of wrapped lamports would be closed.
    let theirs = SwapOrder {
        recipient: super::super::body::address(&place(0x92)),
        ..order(OUTPUT)
    };
    let (swap, asked) = exchanged(terms, instructions(), theirs).await;
    assert_eq!((swap, asked), (Err(SwapError::NoRoute), None));
    // Where no lamports are exchanged, the user's account of them is left alone.
    let mut tokens = alone(kind_of("route", (usdc, place(0x22)), (INPUT, OUTPUT)));
    tokens["cleanupInstruction"] = recorded("instructions")["cleanupInstruction"].clone();
    let terms = (USDC, &*place(0x22).to_string(), true);
    let (swap, _) = exchanged(terms, tokens, order(OUTPUT)).await;
    assert!(is_unavailable(&swap), "{swap:?}");
}

/// An exchange of tokens for another's account.
#[tokio::test]
async fn account_of_another_recipient_is_made_first() {
    let (mint, recipient) = (place(0x91), place(0x92));
    remember(&mint, &old(6));
    let text = mint.to_string();
    let terms = (USDC, &*text, true);
    let theirs = || SwapOrder {
        recipient: super::super::body::address(&recipient),
        ..order(OUTPUT)
    };
    let account = associated(&recipient, &mint, &TOKEN).unwrap();
    let amounts = (INPUT, OUTPUT);
    let paying = |name: &str, places: &[usize]| {
        let mut one = kind_of(name, (USDC.parse().unwrap(), mint), amounts);
        for at in places {
            one["accounts"][at]["pubkey"] = json!(account.to_string());
        }
        alone(one)
    };
    for (name, places, sound) in [
        ("route", &[3][..], true),
        ("route", &[4], true),
        ("route", &[3, 4], true),
        ("shared_accounts_route", &[6], true),
        ("route", &[], false),
        ("shared_accounts_route", &[], false),
        ("shared_accounts_route", &[3], false),
    ] {
        let (swap, asked) = exchanged(terms, paying(name, places), theirs()).await;
        if !sound {
            assert!(is_unavailable(&swap), "{name} {places:?}: {swap:?}");
            continue;
        }
        let swap = swap.unwrap();
        assert_eq!(swap.draft.value, U256::ZERO);
        let Content::Instructions(own) = Content::of(&swap.draft).unwrap() else {
            panic!("no instructions");
        };
        assert_eq!(own.list[0].program, ASSOCIATED.to_bytes());
        assert_eq!(own.list[0].accounts[1].key, account.to_bytes());
        let (_, asked) = asked.unwrap();
        assert_eq!(asked["destinationTokenAccount"], account.to_string());
        assert_eq!(asked["wrapAndUnwrapSol"], false);
    }
    // The user would be paid, or somebody else.
    let mut other = paying("route", &[3]);
    other["swapInstruction"]["accounts"][4]["pubkey"] = json!(place(0x93).to_string());
    let (swap, _) = exchanged(terms, other, theirs()).await;
    assert!(is_unavailable(&swap), "{swap:?}");
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
