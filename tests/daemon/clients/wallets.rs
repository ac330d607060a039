//! What MetaMask and ShapeShift send and read: each body of `fixtures/` is posted where the program posts it, its
//! deposit is made, and all that the program reads afterwards is looked at.

use std::time::Duration;

use alloy::{
    eips::eip7702::Authorization,
    hex::encode_prefixed,
    primitives::{Address, Bytes, U256},
    sol_types::SolCall,
};
use devnet::{
    account::Account,
    contracts::{Token, Wallet},
    node::Payload,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::sdk::app::{App, ETH, MILLI, USD, held, hex, promised};

const METAMASK: &str = include_str!("fixtures/metamask.json");
const SHAPESHIFT: &str = include_str!("fixtures/shapeshift.json");
const SHAPESHIFT_BEFORE: &str = include_str!("fixtures/shapeshift-before.json");

/// How often MetaMask asks.
const POLL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
/// What a deposit and a refund may cost, in the native currency and in dollars.
const COSTS: u64 = 5 * MILLI;
const DOLLARS: u64 = 5 * USD;

/// A program's fixture, for one user.
struct Program<'a> {
    app: &'a App,
    who: &'a Account,
    fixture: Value,
    /// What stands for the words that begin with `$`.
    places: Value,
}

impl<'a> Program<'a> {
    fn new(app: &'a App, text: &str, who: &'a Account) -> Self {
        let (origin, destination) = (&app.world.origin, &app.world.destination);
        let places = json!({
            "user": hex(who.address()), "native": ETH,
            "origin": origin.node.chain_id, "originText": origin.node.chain_id.to_string(),
            "destination": destination.node.chain_id,
            "originToken": hex(origin.token), "destinationToken": hex(destination.token),
        });
        let fixture = serde_json::from_str(text).unwrap();
        Self {
            app,
            who,
            fixture,
            places,
        }
    }

    fn filled(&self, name: &str) -> Value {
        filled(&self.fixture[name], &self.places)
    }

    /// The body with what a variant changes.
    fn variant(&self, name: &str) -> Value {
        let change = filled(&self.fixture["variants"][name], &self.places);
        with(self.filled("body"), change)
    }

    async fn ask(&self, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let url = format!("{}{path}", self.app.daemon.integrator_url());
        let client = reqwest::Client::new();
        let request = match body {
            Some(body) => client.post(url).body(body.to_string()),
            None => client.get(url),
        };
        let request = request.header("content-type", "application/json");
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (
            status,
            serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
        )
    }

    /// A quote in which everything is that the program reads.
    async fn quote(&self, body: &Value) -> Value {
        let path = self.fixture["quote"].as_str().unwrap();
        let (status, quote) = self.ask(path, Some(body)).await;
        assert_eq!(status, StatusCode::OK, "{quote} to {body}");
        let reads = &self.fixture["reads"];
        read(&quote, &reads["quote"]);
        let steps = quote["steps"].as_array().unwrap();
        for step in steps {
            assert_eq!(step["kind"], "transaction", "{step}");
            // ShapeShift takes no step of more.
            let items = step["items"].as_array().unwrap();
            assert_eq!(items.len(), 1, "{step}");
            read(&items[0], &reads["item"]);
        }
        // Nor more than one that does not approve.
        let others = steps.iter().filter(|step| step["id"] != "approve");
        assert_eq!(others.count(), 1, "{quote}");
        quote
    }

    /// Sends what the steps say; the hash of the last.
    async fn deposit(&self, quote: &Value) -> String {
        let mut last = String::new();
        for step in quote["steps"].as_array().unwrap() {
            let data = &step["items"][0]["data"];
            let text = |field: &str| data[field].as_str().unwrap();
            let payload = Payload {
                to: Some(text("to").parse().unwrap()),
                data: text("data").parse::<Bytes>().unwrap().to_vec(),
                value: text("value").parse().unwrap(),
            };
            let node = &self.app.world.origin.node;
            let receipt = node.transact(self.who.address(), payload).await.unwrap();
            last = receipt.transaction_hash.to_string();
        }
        last
    }

    /// The last status, after none that the program would not know.
    async fn outcome(&self, quote: &Value) -> Value {
        let id = quote["steps"][0]["requestId"].as_str().unwrap();
        let path = self.fixture["status"].as_str().unwrap();
        let path = format!("{path}?requestId={id}");
        let words = &self.fixture["words"];
        let ended = async {
            loop {
                let (status, told) = self.ask(&path, None).await;
                assert_eq!(status, StatusCode::OK, "{told}");
                let said = |kind: &&str| words[*kind].as_array().unwrap().contains(&told["status"]);
                match ["going", "done", "failed"].into_iter().find(said) {
                    Some("going") => tokio::time::sleep(POLL).await,
                    Some(_) => return told,
                    None => panic!("no word of the program's: {told}"),
                }
            }
        };
        let told = tokio::time::timeout(PATIENCE, ended).await.unwrap();
        read(&told, &self.fixture["reads"]["status"]);
        told
    }

    /// What the deposit of a quote for the refund path ends as; what of `currency` it cost.
    async fn refunded(&self, currency: Address) -> U256 {
        let (site, user) = (&self.app.world.origin, self.who.address());
        let before = held(site, currency, user).await;
        let change = json!({"referrer": "debug-force-refund"});
        let quote = self.quote(&with(self.filled("body"), change)).await;
        self.deposit(&quote).await;
        let told = self.outcome(&quote).await;
        assert_eq!(told["status"], "refund", "{told}");
        before - held(site, currency, user).await
    }

    /// Both programs show `message`; ShapeShift knows the code.
    async fn refuses_too_little(&self) {
        let body = with(self.filled("body"), json!({"amount": "1"}));
        let path = self.fixture["quote"].as_str().unwrap();
        let (status, refused) = self.ask(path, Some(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        assert_eq!(refused["errorCode"], "AMOUNT_TOO_LOW", "{refused}");
        assert!(refused["message"].is_string(), "{refused}");
    }
}

pub async fn metamask(app: &App, who: &Account) {
    let mut program = Program::new(app, METAMASK, who);
    let (site, user) = (&app.world.destination, who.address());
    let before = held(site, site.token, user).await;
    let quote = program.quote(&program.filled("body")).await;
    program.deposit(&quote).await;
    let told = program.outcome(&quote).await;
    assert_eq!(told["status"], "success", "{told}");
    let came = held(site, site.token, user).await - before;
    assert_eq!(came, promised(&json!({"quote": quote})));

    let expected = program.quote(&program.variant("expected output")).await;
    let out = &expected["details"]["currencyOut"]["amount"];
    assert_eq!(out, &json!((25 * USD).to_string()), "{expected}");
    let gasless = program.quote(&program.variant("gasless")).await;
    program.places["request"] = gasless["steps"][0]["requestId"].clone();
    program.places["calldata"] = gasless["steps"][0]["items"][0]["data"]["data"].clone();
    let execute = program.filled("execute");
    let (status, refused) = program.ask("/execute", Some(&execute)).await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{refused}");
    assert_eq!(refused["errorCode"], "NOT_SUPPORTED_YET", "{refused}");

    let cost = program.refunded(app.world.origin.token).await;
    assert!(cost < U256::from(DOLLARS), "{cost}");
    program.refuses_too_little().await;
    call(program).await;
}

/// The user's own account is made a wallet by the fill, given the money, and made to spend it.
async fn call(mut program: Program<'_>) {
    let (site, who) = (&program.app.world.destination, program.who);
    let amount = U256::from(25 * USD);
    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let payee = Account::named("payee").unwrap().address();
    let transfer = |to| Token::transferCall { to, amount }.abi_encode();
    let spending = Wallet::Call {
        to: site.token,
        data: transfer(payee).into(),
        value: U256::ZERO,
        allowFailure: false,
    };
    let calls = vec![spending];
    program.places["funding"] = encode_prefixed(transfer(who.address())).into();
    program.places["delegated"] = encode_prefixed(Wallet::runCall { calls }.abi_encode()).into();
    program.places["authorization"] = authorization(site.node.chain_id, wallet, who);
    let before = held(site, site.token, who.address()).await;
    let quote = program.quote(&program.variant("call")).await;
    program.deposit(&quote).await;
    let told = program.outcome(&quote).await;
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(held(site, site.token, payee).await, amount);
    assert_eq!(held(site, site.token, who.address()).await, before);
}

/// The account's first, as MetaMask writes it.
fn authorization(chain_id: u64, address: Address, who: &Account) -> Value {
    let one = Authorization {
        chain_id: U256::from(chain_id),
        address,
        nonce: 0,
    };
    let signed = who.sign_digest(one.signature_hash()).unwrap();
    json!({
        "address": hex(address), "chainId": chain_id, "nonce": 0,
        "r": encode_prefixed(&signed[..32]), "s": encode_prefixed(&signed[32..64]),
        "yParity": signed[64] - 27,
    })
}

pub async fn shapeshift(app: &App, who: &Account) {
    let mut program = Program::new(app, SHAPESHIFT, who);
    let quote = swapped(&mut program).await;
    // 55 of 10,000 of what is deposited.
    assert_eq!(quote["fees"]["app"]["amount"], "550000000000000", "{quote}");
    let rate = program.quote(&program.variant("rate")).await;
    assert_eq!(
        rate["details"]["currencyIn"]["amount"],
        (100 * MILLI).to_string()
    );
    let exact = program.quote(&program.variant("exact output")).await;
    let least = &exact["details"]["currencyOut"]["minimumAmount"];
    assert_eq!(least, &json!((100 * MILLI).to_string()), "{exact}");
    // It gives the calldata for the transaction, and never looks at the answer.
    let (status, refused) = program
        .ask("/transactions/single", Some(&program.filled("notice")))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["errorCode"], "INVALID_TRANSACTION", "{refused}");
    let cost = program.refunded(Address::ZERO).await;
    assert!(cost < U256::from(COSTS), "{cost}");
    program.refuses_too_little().await;

    let mut before = Program::new(app, SHAPESHIFT_BEFORE, who);
    swapped(&mut before).await;
    let (status, noticed) = before
        .ask("/transactions/single", Some(&before.filled("notice")))
        .await;
    assert_eq!(status, StatusCode::OK, "{noticed}");
}

/// A swap from quote to success; the quote. What the program tells of its transaction is in its places.
async fn swapped(program: &mut Program<'_>) -> Value {
    let (site, user) = (&program.app.world.destination, program.who.address());
    let before = held(site, Address::ZERO, user).await;
    let quote = program.quote(&program.filled("body")).await;
    let hash = program.deposit(&quote).await;
    let (id, data) = (
        &quote["steps"][0]["requestId"],
        &quote["steps"][0]["items"][0]["data"],
    );
    let transaction = json!({
        "from": data["from"], "to": data["to"], "value": data["value"], "data": data["data"],
        "gasLimit": data["gas"], "relayId": id, "txHash": hash,
    });
    program.places["request"] = id.clone();
    program.places["calldata"] = data["data"].clone();
    program.places["transaction"] = transaction.to_string().into();
    let told = program.outcome(&quote).await;
    assert_eq!(told["status"], "success", "{told}");
    let came = held(site, Address::ZERO, user).await - before;
    assert_eq!(came, promised(&json!({"quote": quote})));
    quote
}

/// `whole` with the fields of `change`.
fn with(mut whole: Value, change: Value) -> Value {
    for (name, value) in change.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

fn filled(template: &Value, places: &Value) -> Value {
    match template {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => {
                assert!(!places[name].is_null(), "nothing for {text}");
                places[name].clone()
            }
            None => template.clone(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, places)).collect(),
        Value::Object(fields) => {
            let of = |(name, value): (&String, &Value)| (name.clone(), filled(value, places));
            fields.iter().map(of).collect()
        }
        other => other.clone(),
    }
}

/// Demands of an answer what is wanted, by pointer and kind.
fn read(answer: &Value, wanted: &Value) {
    for (pointer, kind) in wanted.as_object().unwrap() {
        let found = answer.pointer(pointer).unwrap_or(&Value::Null);
        let text = found.as_str().unwrap_or_default();
        let is = match kind.as_str().unwrap() {
            "number" => found.is_u64(),
            "digits" => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
            "decimal" => text.parse::<f64>().is_ok_and(f64::is_finite),
            "hex" => text.len() > 2 && text.parse::<Bytes>().is_ok(),
            other => panic!("what is {other}?"),
        };
        assert!(is, "{pointer} is {found} and no {kind}: {answer}");
    }
}
