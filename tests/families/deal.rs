//! A trade as its user sees it: the quote, the deposit, and the status.

use alloy::{
    hex,
    primitives::{B256, U256},
};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    machine::Machine,
    side::{About, Given, Party},
};

/// A currency of a chain: its native one, or one that is worth a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    Native,
    Token,
}

/// What is deposited, and what is delivered for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assets {
    pub paid: Asset,
    pub given: Asset,
}

/// A quote that the user took.
#[derive(Clone, Debug)]
pub struct Deal {
    pub assets: Assets,
    pub request: B256,
    pub order: B256,
    /// What the deposit is worth, in cents of a dollar.
    pub cents: u64,
    /// The deposit in smallest units.
    pub amount: U256,
    /// What the recipient gets while the price holds, and the least that he gets, in smallest units.
    pub promised: U256,
    pub minimum: U256,
    /// Unix seconds until which the price holds.
    pub until: u64,
    /// The order with its solver's signature.
    pub protocol: Value,
    steps: Vec<Value>,
}

impl Asset {
    /// The smallest units of it on a chain that `cents` of a dollar are worth.
    pub fn units(self, about: &About, cents: u64) -> U256 {
        let (usd, decimals) = match self.of(about) == about.native {
            true => (2_000, about.family.native_decimals.unwrap()),
            false => (1, 6),
        };
        U256::from(cents) * U256::from(10).pow(U256::from(decimals)) / U256::from(usd * 100)
    }

    fn of(self, about: &About) -> &str {
        match self {
            Self::Native => &about.native,
            Self::Token => &about.token,
        }
    }
}

impl Assets {
    /// `given` for `paid`.
    pub const fn of(paid: Asset, given: Asset) -> Self {
        Self { paid, given }
    }
}

/// The same is delivered as is deposited.
impl From<Asset> for Assets {
    fn from(asset: Asset) -> Self {
        Self::of(asset, asset)
    }
}

impl Deal {
    /// Has the deposit name another order.
    pub fn rename(&mut self, order: B256) {
        self.replace(self.order, order);
        self.replace(self.order.to_string(), order.to_string());
        self.order = order;
    }

    /// Has the deposit spell the order's id in capitals, where it is a text.
    pub fn capitalize(&mut self) {
        let id = self.order.to_string();
        let capitals = id.to_uppercase().replace("0X", "0x");
        self.replace(id, capitals);
    }

    /// Other bytes stand in the transactions.
    fn replace(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        let [from, to] = [hex::encode(from), hex::encode(to)];
        for data in &mut self.steps {
            let text = data.to_string().replace(&from, &to);
            *data = serde_json::from_str(&text).unwrap();
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the API answers.
pub type Answer = (StatusCode, Value);

/// The code of a refusal; the answer where it is none of a bad request.
pub fn code((status, answer): &Answer) -> String {
    match *status {
        StatusCode::BAD_REQUEST => text(&answer["errorCode"]).to_owned(),
        _ => answer.to_string(),
    }
}

/// The body of a request for a quote.
fn wanted(assets: Assets, (from, to): (&About, &About), amount: U256) -> Value {
    json!({
        "user": from.user, "recipient": to.recipient, "originChainId": from.number,
        "destinationChainId": to.number, "originCurrency": assets.paid.of(from),
        "destinationCurrency": assets.given.of(to), "amount": amount.to_string(),
        "tradeType": "EXACT_INPUT", "refundTo": from.user, "includeProtocolData": true,
    })
}

impl Machine {
    /// Asks for a quote of `cents` of a dollar. The solver refunds the deposit of a `forced` one at once.
    pub async fn quote(&mut self, assets: impl Into<Assets>, cents: u64, forced: bool) -> Deal {
        let to = self.destination.about().clone();
        let forced = forced.then_some("debug-force-refund");
        self.quoted((assets.into(), cents), &to, forced).await
    }

    /// Asks for a quote that the user carries out alone, on his own chain.
    pub async fn quote_own(&mut self, asset: Asset, cents: u64) -> Deal {
        let to = self.origin.about().clone();
        self.quoted((asset.into(), cents), &to, None).await
    }

    async fn quoted(
        &mut self,
        (assets, cents): (Assets, u64),
        to: &About,
        referrer: Option<&str>,
    ) -> Deal {
        let from = self.origin.about();
        let amount = assets.paid.units(from, cents);
        let mut body = wanted(assets, (from, to), amount);
        if let Some(referrer) = referrer {
            body["referrer"] = json!(referrer);
        }
        let answer = self.ask(Method::POST, "/quote/v2", &body).await.unwrap();
        self.taken((assets, cents), answer)
    }

    /// Asks for a quote of `cents` of a dollar as the stranger, who is delivered to himself.
    pub async fn quote_stranger(&mut self, assets: impl Into<Assets>, cents: u64) -> Deal {
        let assets = assets.into();
        let (from, to) = (self.origin.about(), self.destination.about());
        let changes = json!({
            "user": from.stranger, "refundTo": from.stranger, "recipient": to.stranger,
        });
        let amount = self.units(assets.paid, cents);
        let answer = self.asked(assets, amount, changes).await;
        self.taken((assets, cents), answer)
    }

    /// The deal of an answer that is a quote.
    fn taken(&mut self, (assets, cents): (Assets, u64), (status, answer): Answer) -> Deal {
        assert_eq!(status, StatusCode::OK, "{answer}");
        let steps = answer["steps"].as_array().unwrap();
        let items = steps
            .iter()
            .flat_map(|step| step["items"].as_array().unwrap());
        let details = &answer["details"];
        let out = |field: &str| text(&details["currencyOut"][field]).parse().unwrap();
        let deal = Deal {
            assets,
            cents,
            request: text(&steps[0]["requestId"]).parse().unwrap(),
            order: text(&answer["protocol"]["v2"]["orderId"]).parse().unwrap(),
            amount: self.units(assets.paid, cents),
            promised: out("amount"),
            minimum: out("minimumAmount"),
            until: details["validUntil"].as_u64().unwrap(),
            protocol: answer["protocol"]["v2"].clone(),
            steps: items.map(|item| item["data"].clone()).collect(),
        };
        self.note(format!("quoted {} for {}", deal.order, deal.amount));
        deal
    }

    /// The smallest units at the origin that `cents` of a dollar are worth.
    pub fn units(&self, asset: Asset, cents: u64) -> U256 {
        asset.units(self.origin.about(), cents)
    }

    /// What a request for a quote is answered with, whose body has these fields besides, or instead.
    pub async fn asked(&self, assets: impl Into<Assets>, amount: U256, changes: Value) -> Answer {
        let ends = (self.origin.about(), self.destination.about());
        let mut body = wanted(assets.into(), ends, amount);
        let fields = body.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        self.ask(Method::POST, "/quote/v2", &body).await.unwrap()
    }

    /// The code with which a quote is refused; the answer where it is not.
    pub async fn refused(&self, asset: Asset, amount: U256) -> String {
        code(&self.asked(asset, amount, json!({})).await)
    }

    /// The same as [`Machine::deposit`], with so many smallest units less for the depository. The deal is of native
    /// currency.
    pub fn deposit_less(&mut self, deal: &Deal, missing: U256) {
        self.send_less(Party::User, deal, missing);
    }

    /// The same as the user or as the stranger; the ids.
    pub fn send_less(&mut self, by: Party, deal: &Deal, missing: U256) -> Vec<String> {
        let steps = deal.steps.iter();
        let short = steps.map(|data| self.origin.short(data, missing));
        let sent: Vec<_> = short.map(|data| self.origin.follow(by, &data)).collect();
        self.note(format!("{by:?} sends {sent:?}, of {missing} units less"));
        sent
    }

    /// Sends the deposit of another quote, for the order of this one: a cent more, or it might be the same transaction.
    pub async fn deposit_again(&mut self, deal: &Deal) {
        let mut other = self.quote(deal.assets, deal.cents + 1, false).await;
        other.rename(deal.order);
        self.deposit(&other);
    }

    /// Sends the transactions of the quote's steps as the user; their ids.
    pub fn deposit(&mut self, deal: &Deal) -> Vec<String> {
        self.send(Party::User, deal)
    }

    /// The same as the user or as the stranger.
    pub fn send(&mut self, by: Party, deal: &Deal) -> Vec<String> {
        let steps = deal.steps.iter();
        let sent: Vec<_> = steps.map(|data| self.origin.follow(by, data)).collect();
        self.note(format!("{by:?} sends {sent:?}"));
        sent
    }

    /// Tells the API of the user's transactions; what it answers if it does not take them.
    pub async fn tell(&self, deal: &Deal, sent: &[String]) -> Vec<String> {
        let mut wrong = Vec::new();
        for transaction in sent {
            let told = self.index(deal, transaction).await;
            let told = told.filter(|(status, _)| *status != StatusCode::OK);
            wrong.extend(told.map(|(_, answer)| format!("{transaction} is not taken: {answer}")));
        }
        wrong
    }

    /// Tells the API of one of the user's transactions; `None` while the process is dead.
    pub async fn index(&self, deal: &Deal, transaction: &str) -> Option<Answer> {
        let body = json!({
            "chainId": self.origin.about().number, "txHash": transaction, "requestId": deal.request,
        });
        self.ask(Method::POST, "/transactions/index", &body).await
    }

    /// The search terms by which the listing does not find the request.
    pub async fn found_by(&self, deal: &Deal, terms: &[String]) -> Vec<String> {
        let mut wrong = Vec::new();
        for term in terms {
            let target = format!("/requests/v3?term={term}");
            let answer = self.ask(Method::GET, &target, &Value::Null).await;
            let (_, answer) = answer.unwrap();
            let listed = answer["requests"].as_array().into_iter().flatten();
            let id = deal.request.to_string();
            let found = listed.filter(|one| one.to_string().contains(&id)).count();
            if found != 1 {
                wrong.push(format!("{term} finds {answer}"));
            }
        }
        wrong
    }

    /// The request's status at the API.
    pub async fn status(&self, deal: &Deal) -> String {
        text(&self.standing(deal).await["status"]).to_owned()
    }

    /// All that the API tells of where the request stands; null while the process is dead.
    pub async fn standing(&self, deal: &Deal) -> Value {
        let target = format!("/intents/status/v3?requestId={}", deal.request);
        let answer = self.ask(Method::GET, &target, &Value::Null).await;
        answer.map_or(Value::Null, |(_, answer)| answer)
    }

    /// The solver's payments to the recipient that name the order.
    pub fn filled(&self, deal: &Deal) -> Vec<Given> {
        let about = self.destination.about();
        let given = self
            .destination
            .blocks()
            .given(&about.recipient, deal.assets.given.of(about));
        given
            .into_iter()
            .filter(|one| one.order == deal.order)
            .collect()
    }

    /// The solver's payments to the user that name the order.
    pub fn refunded(&self, deal: &Deal) -> Vec<Given> {
        let about = self.origin.about();
        let given = self
            .origin
            .blocks()
            .given(&about.user, deal.assets.paid.of(about));
        given
            .into_iter()
            .filter(|one| one.order == deal.order)
            .collect()
    }
}
