//! What both listeners publish under `/documentation/json`: a valid description that names every
//! answer, and answers that keep to it.

mod checked;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use devnet::{
    tools,
    world::{Devnet, Options},
};
use jsonschema::Validator;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::checked::printed;
use crate::support::daemon::{Daemon, daemon};

const REQUIREMENTS: &str = include_str!("description/requirements.txt");
const ETH: &str = "0x0000000000000000000000000000000000000000";
const NOBODY: &str = "0x0000000000000000000000000000000000000000000000000000000000000001";

/// A daemon with both listeners over a chain with an exchange, and one without.
struct App {
    world: Devnet,
    daemon: Daemon,
    wrapped: String,
    /// Of an integrator.
    key: String,
    client: reqwest::Client,
}

impl App {
    async fn start() -> Self {
        let world = Devnet::with(Options {
            finality_blocks: 1,
            ..Options::default()
        });
        let world = world.await.unwrap();
        let uniswap = world.origin.uniswap().await.unwrap();
        let text = |address| format!("{address:#x}");
        let mut files = world.files();
        let origin = &mut files.market[0];
        origin["wrappedNative"] = text(uniswap.wrapped).into();
        origin["uniswapV3"] = json!({
            "quoter": text(uniswap.quoter), "router": text(uniswap.router), "fees": [500, 3000],
        });
        let mut wrapped = origin["currencies"][0].clone();
        wrapped["address"] = text(uniswap.wrapped).into();
        wrapped["symbol"] = "WETH".into();
        wrapped["solver"] = false.into();
        origin["currencies"].as_array_mut().unwrap().push(wrapped);
        let daemon = daemon()
            .chains(&files)
            .signer(&world.oracles[0])
            .solver(&world.solver, "destination")
            .with("REQUESTS_V2_THROTTLED_FROM", "2100-01-01")
            .with("REQUESTS_V2_SUNSET_AT", "2100-12-01")
            .start()
            .await;
        Self {
            wrapped: text(uniswap.wrapped),
            world,
            key: daemon.integrator("tester").await,
            daemon,
            client: reqwest::Client::new(),
        }
    }

    /// The listener's URL and its description.
    async fn described(&self, base: &str) -> Value {
        let url = format!("{base}/documentation/json");
        let answer = self.client.get(url).send().await.unwrap();
        answer.json().await.unwrap()
    }

    async fn ask(&self, base: &str, asked: &Asked) -> (u16, Value) {
        self.ask_as(&self.key, base, asked).await
    }

    async fn ask_as(&self, key: &str, base: &str, asked: &Asked) -> (u16, Value) {
        let url = format!("{base}{}", asked.target);
        let request = self.client.request(asked.method.parse().unwrap(), url);
        let request = request.header("x-api-key", key);
        let request = match &asked.body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// One dollar from origin to destination, changed.
    fn quote(&self, changes: Value) -> Value {
        let user = format!("{:#x}", self.world.user.address());
        let token = |address| format!("{address:#x}");
        let mut body = json!({
            "user": user, "originChainId": 31_001, "destinationChainId": 31_002,
            "originCurrency": token(self.world.origin.token),
            "destinationCurrency": token(self.world.destination.token),
            "amount": "100000000", "tradeType": "EXACT_INPUT",
        });
        let changes = changes.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(changes);
        body
    }
}

/// What a quote asks for, as one input of several, and some of the native currency beside it.
fn several(quote: &Value, changes: Value) -> Value {
    let mut body = json!({
        "user": quote["user"], "destinationChainId": quote["destinationChainId"],
        "destinationCurrency": quote["destinationCurrency"], "tradeType": "EXACT_INPUT",
        "origins": [
            {"chainId": 31_001, "currency": quote["originCurrency"], "amount": "100000000"},
            {"chainId": "0x7919", "currency": ETH, "amount": "0x2386f26fc10000", "user": quote["user"]},
        ],
    });
    let changes = changes.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(changes);
    body
}

struct Asked {
    method: &'static str,
    target: String,
    body: Option<Value>,
}

fn get(target: impl Into<String>) -> Asked {
    Asked {
        method: "GET",
        target: target.into(),
        body: None,
    }
}

fn post(target: impl Into<String>, body: Value) -> Asked {
    Asked {
        method: "POST",
        target: target.into(),
        body: Some(body),
    }
}

/// Whether a target is of a described path, which may have `{name}`s.
fn is_of(described: &str, target: &str) -> bool {
    let path = target.split('?').next().unwrap();
    let fits = |(wanted, part): (&str, &str)| wanted == part || wanted.starts_with('{');
    let parts = |path: &str| path.split('/').count();
    parts(described) == parts(path) && described.split('/').zip(path.split('/')).all(fits)
}

/// Who says what an answer of a status looks like.
fn validator(document: &Value, asked: &Asked, status: u16) -> Validator {
    let mut paths = document["paths"].as_object().unwrap().iter();
    let found = paths.find(|(path, _)| is_of(path, &asked.target));
    let (path, methods) = found.unwrap_or_else(|| panic!("{} is not described", asked.target));
    let operation = &methods[asked.method.to_lowercase()];
    let answer = &operation["responses"][status.to_string()];
    let schema = answer.pointer("/content/application~1json/schema");
    let schema = schema.unwrap_or_else(|| panic!("{path} does not describe {status}"));
    validator_of(document, schema)
}

pub fn validator_of(document: &Value, schema: &Value) -> Validator {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": document["components"],
    });
    jsonschema::validator_for(&whole).unwrap()
}

pub fn complaints(validator: &Validator, value: &Value) -> Vec<String> {
    let errors = validator.iter_errors(value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn valid(document: &Value) {
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        let whole = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "a": schema});
        assert!(jsonschema::meta::is_valid(&whole), "{name}");
        validator_of(document, schema);
    }
    let mut ids = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            ids.push(operation["operationId"].as_str().unwrap());
            assert!(operation["responses"]["200"].is_object(), "{method} {path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(
                    parameter["schema"]["type"].is_string()
                        || parameter["schema"]["type"].is_array(),
                    "{path}: {parameter}"
                );
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(method == "post", body.is_object(), "{method} {path}");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let mut contents = answer["content"].as_object().unwrap().values();
                let schema = &contents.next().unwrap()["schema"];
                assert!(schema.is_object(), "{method} {path} {status}");
            }
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

/// What tools that read descriptions for agents need: bodies where they stand, short titles, and no field
/// that must be there and may be null.
fn readable(document: &Value) {
    let text = document["paths"].to_string();
    assert!(!text.contains("\"$ref\""));
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let summary = operation["summary"].as_str().unwrap();
            assert!(summary.len() <= 72, "{path}: {summary}");
        }
    }
    required_is_never_null(&document["paths"]);
}

fn required_is_never_null(part: &Value) {
    let null = json!({"type": "null"});
    let nullable = |schema: &Value| {
        let has = |list: &Value, one: &Value| list.as_array().is_some_and(|all| all.contains(one));
        has(&schema["type"], &json!("null")) || has(&schema["oneOf"], &null)
    };
    match part {
        Value::Object(fields) => {
            if let (Some(Value::Array(required)), Some(properties)) =
                (fields.get("required"), fields.get("properties"))
            {
                for name in required {
                    let name = name.as_str().unwrap();
                    assert!(!nullable(&properties[name]), "{name}: {properties}");
                }
            }
            fields.values().for_each(required_is_never_null);
        }
        Value::Array(items) => items.iter().for_each(required_is_never_null),
        _ => {}
    }
}

/// What the words and numbers of a quote may be.
fn quotes_are_spelled_out(document: &Value) {
    let quote = &document["paths"]["/quote/v2"]["post"];
    let body = &quote["requestBody"]["content"]["application/json"]["schema"];
    let fields = &body["properties"];
    let required = json!([
        "user",
        "originChainId",
        "destinationChainId",
        "originCurrency",
        "destinationCurrency",
        "amount",
        "tradeType"
    ]);
    assert_eq!(body["required"], required);
    assert_eq!(
        fields["tradeType"]["enum"],
        json!(["EXACT_INPUT", "EXACT_OUTPUT", "EXPECTED_OUTPUT"])
    );
    assert_eq!(
        fields["originChainId"]["type"],
        json!(["integer", "string"])
    );
    assert_eq!(fields["amount"]["type"], json!(["string", "integer"]));
    let validator = validator_of(document, &fields["originChainId"]);
    for (chain, fits) in [
        (json!(8453), true),
        (json!("8453"), true),
        (json!("0x2105"), true),
        (json!(-1), false),
        (json!("base"), false),
        (json!(1.5), false),
    ] {
        assert_eq!(validator.is_valid(&chain), fits, "{chain}");
    }
    limits_are_spelled_out(fields);
    let answer = &quote["responses"]["200"]["content"]["application/json"]["schema"];
    several_are_spelled_out(document, answer);
    let step = &answer["properties"]["steps"]["items"]["properties"];
    let ids = json!(["approve", "deposit", "swap", "send"]);
    assert_eq!(step["id"]["enum"], ids);
    assert_eq!(step["kind"]["enum"], json!(["transaction"]));
    let refused = &quote["responses"]["400"]["content"]["application/json"]["schema"];
    let codes = refused["properties"]["errorCode"]["enum"].as_array();
    let codes = codes.unwrap();
    for code in [
        "AMOUNT_TOO_LOW",
        "INVALID_AMOUNT",
        "MISSING_FIELD",
        "EMPTY_BODY",
    ] {
        assert!(codes.contains(&json!(code)), "{code}");
    }
}

/// How long the lists and texts of a quote may be.
fn limits_are_spelled_out(fields: &Value) {
    for (list, most) in [
        ("txs", 50),
        ("authorizationList", 10),
        ("appFees", 16),
        ("includedSwapSources", 64),
    ] {
        assert_eq!(fields[list]["maxItems"], most, "{list}");
    }
    assert_eq!(fields["excludedSwapSources"]["items"]["maxLength"], 64);
    assert_eq!(fields["referrer"]["maxLength"], 256);
}

/// What several inputs are asked by, and that the orders' parts are those of a quote, each with its own status.
fn several_are_spelled_out(document: &Value, quote: &Value) {
    let several = &document["paths"]["/execute/swap/multi-input"]["post"];
    let body = &several["requestBody"]["content"]["application/json"]["schema"];
    let required = json!([
        "user",
        "origins",
        "destinationChainId",
        "destinationCurrency",
        "tradeType"
    ]);
    assert_eq!(body["required"], required);
    let origins = &body["properties"]["origins"];
    assert_eq!(
        (&origins["minItems"], &origins["maxItems"]),
        (&json!(1), &json!(8))
    );
    let required = json!(["chainId", "currency", "amount"]);
    assert_eq!(origins["items"]["required"], required);
    let answer = &several["responses"]["200"]["content"]["application/json"]["schema"];
    let said = answer["description"].as_str().unwrap();
    assert!(said.contains("/intents/status/v3"), "{said}");
    let one = &answer["properties"]["requests"]["items"];
    for field in ["fees", "details", "protocol"] {
        assert_eq!(
            one["properties"][field]["properties"], quote["properties"][field]["properties"],
            "{field}"
        );
    }
}

/// What users sign, as families show it: fixed samples, since these chains are of one family. Each is of one shape.
#[test]
fn what_a_step_has_users_sign_is_of_one_of_three_shapes() {
    let document: Value = serde_json::from_str(&printed("integrator")).unwrap();
    let call = json!({
        "from": ETH, "to": ETH, "data": "0x", "value": "0", "chainId": 31_001, "gas": "21000",
        "maxFeePerGas": "2", "maxPriorityFeePerGas": "1",
    });
    let psbt = json!({"psbt": "70736274ff"});
    let key =
        json!({"pubkey": "11111111111111111111111111111111", "isSigner": true, "isWritable": true});
    let program =
        json!({"keys": [key], "programId": "11111111111111111111111111111111", "data": "02"});
    let instructions = json!({"instructions": [program], "addressLookupTableAddresses": []});
    let changed = |sample: &Value, changes: Value| {
        let mut sample = sample.clone();
        let changes = changes.as_object().unwrap().clone();
        sample.as_object_mut().unwrap().extend(changes);
        sample
    };
    let unnamed = json!([{"keys": [], "data": "02"}]);
    let wrong = [
        json!({}),
        json!("70736274ff"),
        changed(&call, json!({"to": null})),
        changed(&psbt, json!({"psbt": ["70736274ff"]})),
        changed(&instructions, json!({"instructions": unnamed})),
        json!({"instructions": []}),
        json!({"action": {"type": "spotSend"}}),
        // Nobody would know which to sign.
        changed(&call, psbt.clone()),
    ];
    for path in ["/quote/v2", "/quote", "/execute/swap/multi-input"] {
        let answer = &document["paths"][path]["post"]["responses"]["200"]["content"];
        let answer = &answer["application/json"]["schema"]["properties"];
        let item = &answer["steps"]["items"]["properties"]["items"]["items"];
        let validator = validator_of(&document, item);
        let complaints =
            |data: &Value| complaints(&validator, &json!({"status": "incomplete", "data": data}));
        for data in [&call, &psbt, &instructions] {
            assert!(complaints(data).is_empty(), "{path}: {data}");
        }
        for data in &wrong {
            assert!(!complaints(data).is_empty(), "{path}: {data}");
        }
    }
}

/// Every route of the integrator API with what it answers to.
#[expect(clippy::too_many_lines, reason = "a table")]
fn samples(app: &App) -> Vec<(Asked, u16)> {
    let token = format!("{:#x}", app.world.origin.token);
    let user = format!("{:#x}", app.world.user.address());
    let hash = NOBODY;
    let calls = json!([{"to": user, "data": "0x12", "value": "0"}]);
    let bad = json!({"amount": "1e18"});
    let odd = json!({"originChainId": "0x7919", "amount": "0x5f5e100", "strict": "false"});
    let less = json!({"txs": [{"data": "0x12"}]});
    let revert = json!({"txs": [{"to": app.world.destination.token, "data": "0x12345678"}]});
    let same = json!({"destinationChainId": 31_001, "originCurrency": ETH, "amount": "1000000000000000",
                      "destinationCurrency": app.wrapped});
    let several = |changes: Value| {
        let body = several(&app.quote(json!({})), changes);
        post("/execute/swap/multi-input", body)
    };
    vec![
        (
            post("/quote/v2", app.quote(json!({"includeProtocolData": true}))),
            200,
        ),
        (post("/quote/v2", app.quote(json!({"txs": calls}))), 200),
        (post("/quote/v2", app.quote(same)), 200),
        (post("/quote/v2", app.quote(bad.clone())), 400),
        (post("/quote/v2", app.quote(odd)), 200),
        (post("/quote/v2", app.quote(less)), 400),
        (post("/quote/v2", json!({})), 400),
        (post("/quote/v2", json!([])), 400),
        (post("/quote/v2", app.quote(revert)), 400),
        (
            post("/quote", app.quote(json!({"tradeType": "EXACT_OUTPUT"}))),
            200,
        ),
        (
            post("/quote", app.quote(json!({"subsidizeFees": true}))),
            400,
        ),
        (post("/price", app.quote(json!({}))), 200),
        (post("/price", app.quote(bad)), 400),
        (several(json!({"includeProtocolData": true})), 200),
        (several(json!({"partial": "false", "txs": []})), 200),
        (several(json!({"partial": true})), 400),
        (several(json!({"tradeType": "EXACT_OUTPUT"})), 400),
        (several(json!({"origins": []})), 400),
        (
            several(json!({"origins": [{"chainId": 31_001, "currency": ETH}]})),
            400,
        ),
        (several(json!({"refundTo": user})), 200),
        (get("/intents/status/v3"), 400),
        (get(format!("/intents/status/v3?requestId={NOBODY}")), 404),
        (get(format!("/intents/status/v2?requestId={NOBODY}")), 404),
        (get(format!("/intents/status?requestId={NOBODY}")), 404),
        (
            post(
                "/transactions/index",
                json!({"chainId": "31001", "txHash": hash, "referrer": "x"}),
            ),
            200,
        ),
        (
            post(
                "/transactions/index",
                json!({"chainId": 31_001, "txHash": "0x12"}),
            ),
            400,
        ),
        (post("/transactions/index", json!({"chainId": 31_001})), 400),
        (
            post(
                "/transactions/single",
                json!({
                    "chainId": 31_001, "requestId": NOBODY, "tx": format!("{{\"txHash\":\"{hash}\"}}"),
                }),
            ),
            404,
        ),
        (
            post(
                "/transactions/single",
                json!({"chainId": 31_001, "requestId": NOBODY, "tx": "x"}),
            ),
            400,
        ),
        (get(format!("/transactions/status?txHash={hash}")), 200),
        (
            get(format!(
                "/transactions/status?txHash={}",
                hash.replace('1', "2")
            )),
            404,
        ),
        (get("/transactions/status?txHash=x"), 400),
        (
            get(format!("/requests/v3?user={user}&includeTotal=true")),
            200,
        ),
        (get("/requests/v3?limit=51"), 400),
        (get("/requests/v3?filters=[{\"features\":1}]"), 400),
        (get("/requests/v3?continuation=x"), 400),
        (
            get("/requests/v2?includeOrderData=true&sortBy=updatedAt"),
            200,
        ),
        (get("/requests/v2?status=waiting"), 200),
        (get("/requests/v2?status=fallback"), 400),
        (get("/requests/v3?status=waiting&sortBy=amountUsd"), 400),
        (get(format!("/requests?user={user}&hash={hash}")), 200),
        (get("/requests?limit=x"), 400),
        (get("/chains?referrer=x"), 200),
        (get("/chains/liquidity?chainId=31002"), 200),
        (get("/chains/liquidity?chainId=5"), 400),
        (get("/chains/liquidity"), 400),
        (get("/chains/health?chainId=31002"), 200),
        (get("/chains/health"), 200),
        (get("/chains/health?chainId=x"), 400),
        (
            get(format!(
                "/config/v2?originChainId=31001&destinationChainId=31002&currency=usd&user={user}"
            )),
            200,
        ),
        (
            get("/config/v2?originChainId=31001&destinationChainId=31002"),
            200,
        ),
        (
            get("/config/v2?originChainId=31001&destinationChainId=31002&currency=x"),
            400,
        ),
        (
            get("/config/v2?originChainId=31001&destinationChainId=31002&currency=&user="),
            200,
        ),
        (
            get("/config/v2?originChainId=31001&destinationChainId=31002&user=x"),
            400,
        ),
        (get("/config/v2?originChainId=31001"), 400),
        (
            get("/config?originChainId=31001&destinationChainId=31002"),
            200,
        ),
        (get("/config?destinationChainId=31002"), 400),
        (post("/currencies/v1", json!({"chainIds": [31_001]})), 200),
        (post("/currencies/v1", json!({"chainIds": ["x"]})), 400),
        (post("/currencies/v1", json!({"chainIds": ["0x7919"]})), 200),
        (get("/swap-sources?chainId=0x7919"), 200),
        (
            post("/currencies/v2", json!({"term": "usd", "limit": 1})),
            200,
        ),
        (
            get(format!(
                "/currencies/token/price?chainId=31001&address={token}"
            )),
            200,
        ),
        (
            get(format!(
                "/currencies/token/price?chainId=31001&address={user}"
            )),
            400,
        ),
        (
            get(format!(
                "/currencies/token/price/v2?chainId=31001&address={token}"
            )),
            200,
        ),
        (
            get(format!(
                "/currencies/token/price/v2?chainId=31001&address={user}"
            )),
            400,
        ),
        (get("/currencies/token/price/v2?chainId=31001"), 400),
        (get("/currencies/trending"), 200),
        (
            get("/currencies/trending?chainId=31001&sortBy=relay24hBuyTxCount&limit=5"),
            200,
        ),
        (get("/currencies/trending?chainId=5"), 400),
        (get("/currencies/trending?sortBy=coingecko6hTrending"), 400),
        (get(format!("/chains/31001/currencies/{token}")), 200),
        (get(format!("/chains/31001/currencies/{user}")), 400),
        (get(format!("/chains/31001/currencies/{token}/chart")), 200),
        (
            get(format!(
                "/chains/0x7919/currencies/{token}/chart?timeframe=MAX"
            )),
            200,
        ),
        (
            get(format!(
                "/chains/31001/currencies/{token}/chart?timeframe=1D"
            )),
            400,
        ),
        (get("/swap-sources"), 200),
        (get("/swap-sources?chainId=31001"), 200),
        (get("/swap-sources?chainId=5"), 400),
        (get("/events?requestId=x"), 400),
        (get(format!("/events?requestId={NOBODY}")), 404),
        (get("/events?lastEventId=x"), 400),
        (get("/events?lastEventId=99999999"), 410),
        (get("/lives"), 200),
        (get("/lives/v1?withReport=1"), 200),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptions_are_valid_and_answers_keep_to_them() {
    let app = App::start().await;
    let base = app.daemon.integrator_url().to_owned();
    let document = app.described(&base).await;
    let oracle = app.described(&app.daemon.url).await;
    for (document, listener) in [(&document, "integrator"), (&oracle, "oracle")] {
        valid(document);
        readable(document);
        let printed: Value = serde_json::from_str(&printed(listener)).unwrap();
        assert_eq!(printed, *document, "{listener}");
    }
    quotes_are_spelled_out(&document);
    let samples = samples(&app);
    for path in document["paths"].as_object().unwrap().keys() {
        let asked = |(asked, status): &(Asked, u16)| *status == 200 && is_of(path, &asked.target);
        let known = ["/transactions/single", "/events"].contains(&path.as_str());
        let other = path.starts_with("/intents/status") || known;
        assert!(other || samples.iter().any(asked), "no sample of {path}");
    }
    for (asked, expected) in &samples {
        let (status, answer) = app.ask(&base, asked).await;
        assert_eq!(status, *expected, "{}: {answer}", asked.target);
        let wrong = complaints(&validator(&document, asked, status), &answer);
        assert!(wrong.is_empty(), "{}: {wrong:?}\n{answer}", asked.target);
        if status != 200 {
            assert!(
                answer["errorCode"].is_string() && answer["statusCode"] == status,
                "{answer}"
            );
        }
    }
    only_listed_currencies(&app, &base).await;
    known_request(&app, &base, &document).await;
    pages(&app, &base).await;
    let asked = post("/quote/v2", app.quote(json!({})));
    let (status, answer) = app.ask_as("foreign", &base, &asked).await;
    assert_eq!(
        (status, &answer["errorCode"]),
        (401, &"UNAUTHORIZED".into())
    );
    let wrong = complaints(&validator(&document, &asked, status), &answer);
    assert!(wrong.is_empty(), "{wrong:?}");
    app.daemon.stop().await;
}

/// Nothing else is quoted, also on the network with an exchange.
async fn only_listed_currencies(app: &App, base: &str) {
    let (_, answer) = app.ask(base, &get("/chains")).await;
    let chains = answer["chains"].as_array().unwrap();
    let exchange = |chain: &Value| chain["contracts"]["uniswapV3"].is_object();
    assert!(chains.iter().any(exchange), "{answer}");
    for chain in chains {
        assert_eq!(chain["tokenSupport"], "Limited", "{chain}");
    }
}

/// Each listener has the pages of its own codes.
async fn pages(app: &App, base: &str) {
    let oracle = app.daemon.url.as_str();
    for (base, code, status) in [
        (base, "NO_SWAP_ROUTES_FOUND", 200),
        (base, "ORDER_OPEN", 404),
        (oracle, "ORDER_OPEN", 200),
        (oracle, "NO_SWAP_ROUTES_FOUND", 404),
    ] {
        let url = format!("{base}/documentation/errors/{code}");
        let answer = app.client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), status, "{base} {code}");
    }
}

/// The routes that answer only for what was quoted.
async fn known_request(app: &App, base: &str, document: &Value) {
    let asked = post("/quote/v2", app.quote(json!({})));
    let (_, quote) = app.ask(base, &asked).await;
    let id = quote["steps"][0]["requestId"].as_str().unwrap();
    let spelled = json!({"txHash": NOBODY}).to_string();
    let single = json!({"chainId": "31001", "requestId": id, "tx": spelled, "referrer": "x"});
    for asked in [
        post("/transactions/single", single),
        get(format!("/intents/status/v3?requestId={id}&referrer=x")),
        get(format!("/intents/status/v2?requestId={id}")),
        get(format!("/intents/status?requestId={id}")),
        get(format!(
            "/requests/v3?id={id}&includeAuthenticatedData=true"
        )),
        get(format!("/requests/v2?id={id}&includeOrderData=true")),
        get(format!("/requests?id={id}")),
        get(format!(
            "/transactions/status?txHash={NOBODY}&chainId=31001"
        )),
    ] {
        let (status, answer) = app.ask(base, &asked).await;
        assert_eq!(status, 200, "{}: {answer}", asked.target);
        let wrong = complaints(&validator(document, &asked, status), &answer);
        assert!(wrong.is_empty(), "{}: {wrong:?}\n{answer}", asked.target);
        if asked.target.starts_with("/requests") {
            assert_eq!(answer["requests"][0]["id"], id, "{answer}");
        }
    }
    let (_, quote) = app.ask(base, &asked).await;
    unacted(app, base, &quote).await;
    keyless(app, base).await;
}

/// A quote that nobody acted on is in no list but of what waits, whoever asks, and is found by its ids.
async fn unacted(app: &App, base: &str, quote: &Value) {
    let id = quote["steps"][0]["requestId"].as_str().unwrap();
    let order = quote["protocol"]["v2"]["orderId"].as_str().unwrap();
    let user = format!("user={:#x}", app.world.user.address());
    let (id, order) = (format!("id={id}"), format!("orderId={order}"));
    let waiting = "status=waiting";
    let both = format!("{waiting}&{user}");
    let (own, other) = (app.key.as_str(), app.daemon.integrator("other").await);
    let other = other.as_str();
    // Everywhere, with any key and, where none is needed, without one.
    let mut cases = Vec::new();
    for key in [own, other, ""] {
        for path in ["/requests/v3", "/requests/v2", "/requests"] {
            if key.is_empty() && path == "/requests/v3" {
                continue;
            }
            for query in ["", user.as_str()] {
                cases.push((key, path, query, false));
            }
            cases.push((key, path, id.as_str(), true));
        }
        cases.push((key, "/requests/v2", order.as_str(), true));
    }
    // What waits, for the key that quoted it, or by its user.
    for path in ["/requests/v3", "/requests/v2"] {
        cases.push((own, path, waiting, true));
        cases.push((own, path, both.as_str(), true));
        cases.push((other, path, waiting, false));
        cases.push((other, path, both.as_str(), true));
        cases.push((own, path, "status=pending", false));
    }
    for (key, path, query, listed) in cases {
        let mut request = app.client.get(format!("{base}{path}?{query}"));
        if !key.is_empty() {
            request = request.header("x-api-key", key);
        }
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let mut all = answer["requests"].as_array().unwrap().iter();
        let found = all.any(|one| format!("id={}", one["id"].as_str().unwrap()) == id);
        assert_eq!(found, listed, "{key} {path}?{query}: {answer}");
    }
}

/// What the listing says to somebody without a key, and on every answer of its old version.
async fn keyless(app: &App, base: &str) {
    let ask = async |target: &str| {
        let url = format!("{base}{target}");
        app.client.get(url).send().await.unwrap()
    };
    assert_eq!(ask("/requests/v3").await.status(), 401);
    for (target, status) in [
        ("/requests/v2", 200),
        ("/requests/v2?limit=0", 400),
        ("/requests/v2?status=waiting", 400),
        ("/requests/v2?status=waiting&user=0x12", 400),
    ] {
        let answer = ask(target).await;
        assert_eq!(answer.status(), status);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("deprecation"), "@1784678400");
        assert_eq!(header("sunset"), "Wed, 01 Dec 2100 00:00:00 GMT");
        assert!(header("link").contains("rel=\"successor-version\""));
    }
}

/// The pinned tool, installed from PyPI on first use.
fn schemathesis() -> PathBuf {
    let made = tools::build_once("schemathesis", REQUIREMENTS.as_bytes(), |directory| {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory));
        let list = directory.join("requirements.txt");
        std::fs::write(&list, REQUIREMENTS)?;
        let pip = directory.join("bin/python");
        run(Command::new(pip)
            .args(["-m", "pip", "install", "--quiet", "-r"])
            .arg(list));
        Ok(())
    });
    made.unwrap().join("bin/python")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success(), "{command:?}\n{told}");
}

/// `document` as schemathesis shall read it: with what there is in this world to ask for.
fn informed(app: &App, document: &Value, directory: &Path) -> PathBuf {
    let mut document = document.clone();
    let token = |address| format!("{address:#x}");
    let origin = [
        ETH.to_owned(),
        token(app.world.origin.token),
        app.wrapped.clone(),
    ];
    let destination = [
        ETH.to_owned(),
        token(app.world.destination.token),
        app.wrapped.clone(),
    ];
    let user = token(app.world.user.address());
    for path in ["/quote/v2", "/quote", "/price"] {
        let body = &mut document["paths"][path]["post"]["requestBody"];
        let fields = &mut body["content"]["application/json"]["schema"]["properties"];
        fields["user"]["enum"] = json!([user]);
        fields["originChainId"]["enum"] = json!([31_001, 31_002]);
        fields["destinationChainId"]["enum"] = json!([31_001, 31_002]);
        fields["originCurrency"]["enum"] = json!(origin);
        fields["destinationCurrency"]["enum"] = json!(destination);
        fields["amount"]["enum"] = json!(["1", "1000000", "100000000", "10000000000000000", "0"]);
    }
    // And with requests that must be answered.
    let good = app.quote(json!({}));
    let several = several(&good, json!({}));
    for (path, good) in [("/quote/v2", good), ("/execute/swap/multi-input", several)] {
        let body = &mut document["paths"][path]["post"]["requestBody"];
        body["content"]["application/json"]["example"] = good;
    }
    let path = directory.join("informed.json");
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

async fn attacked(python: &Path, source: String, base: &str, (key, directory): (&str, &Path)) {
    let mut command = Command::new(python);
    command
        .args(["-m", "schemathesis.cli", "run", &source, "--url", base])
        .args(["--header", &format!("x-api-key: {key}")])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"])
        .args([
            "--max-examples",
            &examples(),
            "--generation-deterministic",
            "--no-color",
        ])
        .args([
            "--request-timeout",
            "30",
            "--continue-on-failure",
            "--warnings",
            "off",
            // Its good answers do not end.
            "--exclude-path",
            "/events",
        ])
        .current_dir(directory);
    tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap();
}

/// No 5xx, and every answer as the description has it. That clients send more than the description
/// says is their right: unknown fields are ignored, and numbers come as texts.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

/// Requests per route and phase.
fn examples() -> String {
    #[allow(clippy::disallowed_methods, reason = "a test")]
    std::env::var("INTENTD_EXAMPLES").unwrap_or_else(|_| "100".into())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes, and Python: .ci/long"]
async fn schemathesis_finds_nothing() {
    let python = tokio::task::spawn_blocking(schemathesis).await.unwrap();
    let app = App::start().await;
    let directory = TempDir::new().unwrap();
    let base = app.daemon.integrator_url().to_owned();
    let document = app.described(&base).await;
    let informed = informed(&app, &document, directory.path());
    let oracle = app.daemon.url.clone();
    for (source, base) in [
        (format!("{base}/documentation/json"), &base),
        (informed.display().to_string(), &base),
        (format!("{oracle}/documentation/json"), &oracle),
    ] {
        attacked(&python, source, base, (&app.key, directory.path())).await;
    }
    let metrics = app.daemon.metrics().await;
    let mut lines = metrics.lines();
    let quoted = |line: &str| line.contains("\"/quote/v2\"") && line.contains("\"2xx\"");
    assert!(lines.any(quoted), "nothing was quoted\n{metrics}");
    app.daemon.stop().await;
}
