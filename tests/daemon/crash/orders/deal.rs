//! One order from the user's side: what is asked for, what the quote promised, and the deposit.

use std::{sync::Mutex, time::Duration};

use alloy::primitives::{Address, B256, Bytes, U256, keccak256};
use devnet::{
    account::Account,
    contracts::Token,
    node::Payload,
    world::{DevChain, Devnet},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::crash::{Dice, victim::Urls};

const NATIVE: u64 = 100_000_000_000_000_000;
const TOKENS: u64 = 25_000_000;

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Native,
    Token,
    /// A call on the destination hands it on: through the router.
    Call,
    RefundNative,
    RefundToken,
    /// Nobody deposits.
    Unpaid,
}

const KINDS: [Kind; 9] = [
    Kind::Native,
    Kind::Native,
    Kind::Token,
    Kind::Token,
    Kind::Call,
    Kind::Call,
    Kind::RefundNative,
    Kind::RefundToken,
    Kind::Unpaid,
];

impl Kind {
    /// The status in the end.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Native | Self::Token | Self::Call => "success",
            Self::RefundNative | Self::RefundToken => "refund",
            Self::Unpaid => "waiting",
        }
    }

    pub fn is_refund(self) -> bool {
        self.outcome() == "refund"
    }

    pub fn is_native(self) -> bool {
        !matches!(self, Self::Token | Self::RefundToken)
    }
}

/// What a user means to do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub number: usize,
    pub kind: Kind,
    /// Milliseconds.
    quote_after: u64,
    deposit_after: u64,
    /// The user says which transaction it was.
    tells: bool,
}

/// An acknowledged quote.
#[derive(Debug)]
pub struct Deal {
    pub plan: Plan,
    pub request: String,
    pub order: B256,
    /// Nobody else's address: the recipient, or where a refund goes.
    pub to: Address,
    pub deposited: U256,
    pub promised: U256,
    steps: Vec<Value>,
}

impl Deal {
    pub fn plan(number: usize, dice: &Dice) -> Plan {
        let below = |end| u64::try_from(dice.below(end)).unwrap();
        Plan {
            number,
            kind: KINDS[dice.below(KINDS.len())],
            quote_after: below(1_500),
            deposit_after: below(1_500),
            tells: dice.below(2) == 0,
        }
    }

    /// The user's transactions; whether the daemon lives is nothing to them.
    pub async fn deposit(&self, world: &Devnet, urls: &Mutex<Option<Urls>>) {
        sleep(Duration::from_millis(self.plan.deposit_after)).await;
        if self.plan.kind == Kind::Unpaid {
            return;
        }
        let (node, user) = (&world.origin.node, self.plan.user());
        let mut last = B256::ZERO;
        for data in &self.steps {
            let payload = Payload {
                to: Some(parsed(&data["to"])),
                data: parsed::<Bytes>(&data["data"]).to_vec(),
                value: parsed(&data["value"]),
            };
            let sent = node.transact(user.address(), payload).await.unwrap();
            last = sent.transaction_hash;
        }
        let heard = urls.lock().unwrap().clone();
        if let Some(heard) = heard.filter(|_| self.plan.tells) {
            let body = json!({
                "chainId": node.chain_id, "txHash": last, "requestId": self.request,
            });
            let url = format!("{}/transactions/index", heard.integrator);
            let _dead_perhaps = reqwest::Client::new().post(url).json(&body).send().await;
        }
    }

    /// Whether what has to come has come.
    pub async fn is_paid(&self, world: &Devnet) -> bool {
        self.plan.kind == Kind::Unpaid || !self.received(world).await.is_zero()
    }

    /// What the recipient, or who is given back to, has.
    pub async fn received(&self, world: &Devnet) -> U256 {
        let site = self.paid_on(world);
        match self.plan.kind.is_native() {
            true => site.node.balance(self.to).await.unwrap(),
            false => site.token_balance(site.token, self.to).await.unwrap(),
        }
    }

    fn paid_on<'a>(&self, world: &'a Devnet) -> &'a DevChain {
        match self.plan.kind.is_refund() {
            true => &world.origin,
            false => &world.destination,
        }
    }
}

impl Plan {
    fn user(&self) -> Account {
        Account::named(&format!("user {}", self.number)).unwrap()
    }

    fn body(&self, world: &Devnet, to: Address) -> Value {
        let kind = self.kind;
        let user = self.user().address();
        let currency = |site: &DevChain| match kind.is_native() {
            true => Address::ZERO,
            false => site.token,
        };
        let amount = if kind.is_native() { NATIVE } else { TOKENS };
        let mut body = json!({
            "user": user, "recipient": to, "refundTo": to,
            "originChainId": world.origin.node.chain_id,
            "destinationChainId": world.destination.node.chain_id,
            "originCurrency": currency(&world.origin),
            "destinationCurrency": currency(&world.destination),
            "amount": amount.to_string(), "tradeType": "EXACT_INPUT",
        });
        if kind.is_refund() {
            body["referrer"] = "debug-force-refund".into();
        }
        if kind == Kind::Call {
            body["tradeType"] = "EXACT_OUTPUT".into();
            body["txs"] = json!([{"to": to, "value": amount.to_string(), "data": "0x01"}]);
        }
        body
    }

    /// Asks for the quote; `None` when the daemon died before the answer was whole, or saw that a call
    /// of its own, the one that it dies over or one behind it, got no answer.
    pub async fn quote(
        &self,
        world: &Devnet,
        client: &reqwest::Client,
        heard: &Urls,
    ) -> Option<Deal> {
        let to = Address::from_word(keccak256(format!("paid {}", self.number)));
        self.fund(world).await;
        sleep(Duration::from_millis(self.quote_after)).await;
        let url = format!("{}/quote/v2", heard.integrator);
        let asked = client.post(url).json(&self.body(world, to)).send();
        let answer = asked.await.ok()?;
        let status = answer.status();
        let quote: Value = answer.json().await.ok()?;
        if status == 503 {
            return None;
        }
        assert_eq!(status, 200, "{self:?}: {quote}");
        let details = &quote["details"];
        let steps = quote["steps"].as_array().unwrap();
        let items = steps
            .iter()
            .flat_map(|step| step["items"].as_array().unwrap());
        Some(Deal {
            plan: self.clone(),
            request: parsed(&steps[0]["requestId"]),
            order: parsed(&quote["protocol"]["v2"]["orderId"]),
            to,
            deposited: parsed(&details["currencyIn"]["amount"]),
            promised: parsed(&details["currencyOut"]["amount"]),
            steps: items.map(|item| item["data"].clone()).collect(),
        })
    }

    async fn fund(&self, world: &Devnet) {
        let (origin, user) = (&world.origin, self.user().address());
        let wei = U256::from(NATIVE) * U256::from(100);
        origin.node.set_balance(user, wei).await.unwrap();
        if !self.kind.is_native() {
            // Anybody may, and each account has its own nonces.
            let amount = U256::from(TOKENS) * U256::from(2);
            let mint = Payload::call(origin.token, &Token::mintCall { to: user, amount });
            origin.node.transact(user, mint).await.unwrap();
        }
    }
}

fn parsed<T: std::str::FromStr>(text: &Value) -> T {
    let text = text.as_str().unwrap_or_else(|| panic!("{text} is no text"));
    let parsed = text.parse();
    parsed.unwrap_or_else(|_| panic!("{text} cannot be read"))
}
