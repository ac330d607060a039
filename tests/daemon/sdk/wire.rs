//! What other clients than the published one see: headers, browsers, refusals.

use hyper::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};

use super::app::{App, ETH, MILLI, hex};

impl App {
    async fn ask(&self, path: &str, body: &Value) -> reqwest::Response {
        let url = format!("{}{path}", self.daemon.integrator_url());
        let request = reqwest::Client::new().post(url);
        let request = request.header("content-type", "application/json");
        let request = request.header("origin", "https://app.example");
        request.body(body.to_string()).send().await.unwrap()
    }
}

fn header<'a>(answer: &'a reqwest::Response, name: &str) -> &'a str {
    let value = answer.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

async fn read(answer: reqwest::Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

async fn contracts_that_nobody_listed_speak_for_themselves(app: &App) {
    let token = app.world.origin.deploy_token("Token").await.unwrap();
    let asked = |changes: Value| {
        let mut body =
            json!({"address": hex(token), "chainIds": [31_001], "useExternalSearch": true});
        let fields = body.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        body
    };
    for path in ["/currencies/v1", "/currencies/v2"] {
        let found = read(app.ask(path, &asked(json!({}))).await).await;
        let found = if path.ends_with('1') {
            &found[0]
        } else {
            &found
        };
        assert_eq!(found[0]["address"], hex(token), "{found}");
        assert_eq!(
            (&found[0]["symbol"], &found[0]["decimals"]),
            (&json!("Token"), &json!(6))
        );
        assert_eq!(found[0]["metadata"]["verified"], false);
        for changes in [
            json!({"useExternalSearch": false}),
            json!({"verified": true}),
            json!({"chainIds": [31_002]}),
            json!({"address": hex(app.world.user.address())}),
            json!({"address": ETH, "term": "nothing"}),
            json!({"address": "0x12"}),
        ] {
            let body = asked(changes);
            let none = app.ask(path, &body).await;
            assert_eq!(none.status(), StatusCode::OK);
            assert_eq!(read(none).await, json!([]), "{body}");
        }
    }
}

async fn quotes_and_prices_over_plain_http(app: &App) {
    let user = hex(app.world.user.address());
    let body = json!({
        "user": user, "originChainId": 31_001, "destinationChainId": 31_002, "originCurrency": ETH,
        "destinationCurrency": ETH, "amount": (100 * MILLI).to_string(), "tradeType": "EXACT_INPUT",
    });
    let current = app.ask("/quote/v2", &body).await;
    assert_eq!(current.status(), StatusCode::OK);
    assert_eq!(header(&current, "access-control-allow-origin"), "*");
    assert_eq!(header(&current, "deprecation"), "");
    let old = app.ask("/quote", &body).await;
    assert_eq!(old.status(), StatusCode::OK);
    assert!(header(&old, "deprecation").starts_with('@'));
    assert!(header(&old, "link").contains("</quote/v2>"));
    let exposed = header(&old, "access-control-expose-headers").to_owned();
    assert!(exposed.contains("deprecation"), "{exposed}");
    let (current, old) = (read(current).await, read(old).await);
    assert_eq!(keys(&current), keys(&old));
    for (quote, status) in [(&current, "/intents/status/v3"), (&old, "/intents/status")] {
        let step = &quote["steps"][0];
        let id = step["requestId"].as_str().unwrap();
        let endpoint = step["items"][0]["check"]["endpoint"].as_str().unwrap();
        assert_eq!(endpoint, format!("{status}?requestId={id}"));
        let url = format!("{}{endpoint}", app.daemon.integrator_url());
        let told = read(reqwest::get(url).await.unwrap()).await;
        let waiting = if status.ends_with("v3") {
            "waiting"
        } else {
            "pending"
        };
        assert_eq!(told["status"], waiting, "{told}");
    }
    assert_eq!(
        current["details"]["currencyIn"],
        old["details"]["currencyIn"]
    );
    let price = app.ask("/price", &body).await;
    assert_eq!(price.status(), StatusCode::OK);
    let price = read(price).await;
    assert_eq!(keys(&price), ["details", "fees"]);
    assert_eq!(
        price["details"]["currencyIn"],
        current["details"]["currencyIn"]
    );
    for path in ["/quote/v2", "/quote", "/price"] {
        let mut wrong = body.clone();
        wrong["amount"] = "1".into();
        let refused = app.ask(path, &wrong).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        assert_eq!(header(&refused, "access-control-allow-origin"), "*");
        let refused = read(refused).await;
        assert_eq!(refused["errorCode"], "AMOUNT_TOO_LOW", "{refused}");
        assert_eq!(refused["statusCode"], 400);
    }
}

async fn browsers_may_ask_with_the_clients_headers(app: &App) {
    let url = format!("{}/quote/v2", app.daemon.integrator_url());
    let wanted = "content-type,relay-sdk-version,x-api-key,authorization";
    let request = reqwest::Client::new().request(Method::OPTIONS, url);
    let request = request.header("origin", "https://app.example");
    let request = request.header("access-control-request-method", "POST");
    let request = request.header("access-control-request-headers", wanted);
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success());
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    assert!(header(&answer, "access-control-allow-methods").contains("POST"));
    let allowed = header(&answer, "access-control-allow-headers").to_lowercase();
    assert!(
        wanted.split(',').all(|name| allowed.contains(name)),
        "{allowed}"
    );
}

async fn a_base_url_may_end_in_a_slash(app: &App) {
    let base = app.daemon.integrator_url();
    let chains = reqwest::get(format!("{base}//chains?referrer=x"))
        .await
        .unwrap();
    assert_eq!(chains.status(), StatusCode::OK);
    let client = reqwest::Client::new();
    let wrong = client.get(format!("{base}/quote/v2")).send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(header(&wrong, "allow"), "POST");
    assert_eq!(read(wrong).await["errorCode"], "METHOD_NOT_ALLOWED");
    let nowhere = reqwest::get(format!("{base}/nope")).await.unwrap();
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
    let planned = app.ask("/fast-fill", &json!({"requestId": "0x"})).await;
    assert_eq!(planned.status(), StatusCode::NOT_IMPLEMENTED);
    let planned = read(planned).await;
    assert_eq!(planned["errorCode"], "NOT_SUPPORTED_YET");
    assert_eq!(planned["message"], "POST /fast-fill is not served yet");
}

async fn numbers_are_read_as_they_are_meant(app: &App) {
    let user = hex(app.world.user.address());
    let mut body = json!({
        "user": user, "originChainId": "31001", "destinationChainId": "0x791a", "originCurrency": ETH,
        "destinationCurrency": ETH, "amount": format!("{:#x}", 100 * MILLI), "tradeType": "EXACT_INPUT",
        "strict": "false", "slippageTolerance": 100,
    });
    let quote = read(app.ask("/quote/v2", &body).await).await;
    let shown = &quote["details"]["currencyIn"]["amount"];
    assert_eq!(shown, &json!((100 * MILLI).to_string()), "{quote}");
    body["amount"] = json!(1.5);
    let refused = read(app.ask("/quote/v2", &body).await).await;
    assert_eq!(refused["errorCode"], "INVALID_AMOUNT");
    let currencies = json!({"chainIds": ["0x7919"], "limit": "1"});
    let found = read(app.ask("/currencies/v2", &currencies).await).await;
    assert_eq!(found[0]["chainId"], 31_001, "{found}");
    assert_eq!(found[0]["metadata"]["logoURI"], "");
}

async fn client_shows_why_a_quote_is_refused(app: &App) {
    let mut quote = app.quote(ETH, ETH, 100 * MILLI);
    quote["toCurrency"] = format!("0x{}", "77".repeat(20)).into();
    let refused = app.drive(json!({"what": "quote", "quote": quote})).await;
    assert_eq!(refused["name"], "APIError", "{refused}");
    assert_eq!(refused["raw"]["errorCode"], "UNSUPPORTED_CURRENCY");
    assert_eq!(refused["raw"]["statusCode"], 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_are_answered_too() {
    let app = App::start().await;
    tokio::join!(
        quotes_and_prices_over_plain_http(&app),
        contracts_that_nobody_listed_speak_for_themselves(&app),
        browsers_may_ask_with_the_clients_headers(&app),
        a_base_url_may_end_in_a_slash(&app),
        numbers_are_read_as_they_are_meant(&app),
        client_shows_why_a_quote_is_refused(&app)
    );
    app.daemon.stop().await;
}
