//! Several inputs for one output: quoted over plain HTTP, executed by the client as any other quote.

use alloy::primitives::U256;
use devnet::account::Account;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::app::{App, ETH, MILLI, USD, held, hex, promised, step_ids};

impl App {
    fn input(&self, currency: &str, amount: u64) -> Value {
        let chain = self.world.origin.node.chain_id;
        json!({"chainId": chain, "currency": currency, "amount": amount.to_string()})
    }

    /// 25 dollars of the origin's token and some of its native currency, for the destination's token.
    async fn several(&self, who: &Account, changes: Value) -> (StatusCode, Value) {
        let (origin, destination) = (&self.world.origin, &self.world.destination);
        let mut body = json!({
            "user": hex(who.address()), "tradeType": "EXACT_INPUT",
            "destinationChainId": destination.node.chain_id,
            "destinationCurrency": hex(destination.token),
            "origins": [self.input(&hex(origin.token), 25 * USD), self.input(ETH, 20 * MILLI)],
        });
        let fields = body.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        let url = format!("{}/execute/swap/multi-input", self.daemon.integrator_url());
        let request = reqwest::Client::new().post(url).json(&body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, answer.json().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_executes_the_orders_of_several_inputs_one_after_another() {
    let app = App::start().await;
    let (who, site) = (app.customer(0), &app.world.destination);
    let before = held(site, site.token, who.address()).await;
    let (status, quote) = app.several(who, json!({})).await;
    assert_eq!(status, StatusCode::OK, "{quote}");
    let job = json!({
        "what": "execute", "key": who.key(), "quoted": quote,
        "quote": {"chainId": app.world.origin.node.chain_id},
    });
    let done = app.drive(job).await;
    app.succeeded(&done).await;
    assert_eq!(step_ids(&done), ["approve", "deposit", "deposit"]);
    let steps = done["steps"].as_array().unwrap().iter();
    let mut items = steps.flat_map(|step| step["items"].as_array().unwrap());
    assert!(items.all(|status| status == "complete"), "{done}");
    let after = held(site, site.token, who.address()).await;
    assert_eq!(after - before, promised(&done), "{done}");
    assert!(after - before > U256::from(25 * USD), "{done}");
    // Each order has its own end.
    let requests = quote["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 2);
    for one in requests {
        let named = json!({"steps": [{"requestId": one["requestId"]}]});
        assert_eq!(app.status(&named).await["status"], "success", "{one}");
    }
    // What is refused names its origin, and the client is not asked to do a part of it.
    let token = hex(app.world.origin.token);
    let origins = json!([app.input(&token, 25 * USD), app.input(ETH, 1)]);
    let (status, refused) = app.several(who, json!({"origins": origins})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["errorCode"], "AMOUNT_TOO_LOW");
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("origins[1].amount: "), "{refused}");
    assert!(refused.get("steps").is_none());
    app.daemon.stop().await;
}
