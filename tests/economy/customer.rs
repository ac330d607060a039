//! A customer of the integrator API, whose orders a test follows step by step, without a plan.

use std::time::Duration;

use alloy::primitives::{Address, B256, U256};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    clock,
    history::{Step, number},
    market::NATIVE,
    users::{self, text},
    world::World,
};

pub const CUSTOMER: Address = Address::repeat_byte(0xc1);
/// Has nothing before it is paid.
pub const RECIPIENT: Address = Address::repeat_byte(0xc2);
/// Where the customer pays.
pub const FROM: &str = "alpha";
/// Wei: two hundred dollars.
const AMOUNT: u64 = 100_000_000_000_000_000;

/// What the customer was quoted.
pub struct Quoted {
    pub request: B256,
    /// What the recipient gets at least.
    pub minimum: U256,
    steps: Vec<Step>,
}

impl World {
    /// So many seconds pass, and blocks are made.
    pub async fn pass(&self, seconds: u64) {
        for _ in 0..seconds / 2 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            self.mine_until(clock::seconds());
        }
    }

    /// A quote of native currency on the chain `to` for the customer's on [`FROM`], asked for with the key
    /// of a label, or none.
    pub async fn quoted(&self, label: Option<&str>, to: &str) -> Quoted {
        let body = json!({
            "user": CUSTOMER, "recipient": RECIPIENT, "originChainId": number(FROM),
            "destinationChainId": number(to), "originCurrency": NATIVE,
            "destinationCurrency": NATIVE, "amount": AMOUNT.to_string(),
            "tradeType": "EXACT_INPUT",
        });
        let asked = (Method::POST, "/quote/v2", &body);
        let (status, answer) = self.api_by(label, asked).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let least = &answer["details"]["currencyOut"]["minimumAmount"];
        Quoted {
            request: text(&answer["steps"][0]["requestId"]).parse().unwrap(),
            minimum: text(least).parse().unwrap(),
            steps: users::steps(&answer),
        }
    }

    /// What a quote wants sent, sent by `account`; it waits for a block.
    pub fn sent_by(&self, account: Address, quoted: &Quoted) -> Vec<B256> {
        let send = |step: &Step| {
            let chain = self.by_number(step.chain);
            chain.send(account, step.to, step.value, step.data.clone())
        };
        quoted.steps.iter().map(send).collect()
    }

    /// Where the API says that a request stands.
    pub async fn status(&self, request: B256) -> String {
        let target = format!("/intents/status/v3?requestId={request}");
        let (_, answer) = self.api(Method::GET, &target, &Value::Null).await;
        text(&answer["status"]).to_owned()
    }
}
