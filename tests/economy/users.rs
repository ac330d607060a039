//! What users do: they ask for quotes, deposit, send by themselves, and tell of it.

use alloy::primitives::{Address, B256, U256};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    clock, endings,
    history::{Act, Deal, History, Step, Who, number},
    market,
    plan::Trade,
};

/// The transactions that a quote wants sent.
pub fn steps(answer: &Value) -> Vec<Step> {
    let steps = answer["steps"].as_array().into_iter().flatten();
    let items = steps.flat_map(|step| step["items"].as_array().into_iter().flatten());
    let step = |item: &Value| {
        let data = &item["data"];
        Step {
            chain: data["chainId"].as_u64().unwrap(),
            to: text(&data["to"]).parse().unwrap(),
            value: text(&data["value"]).parse().unwrap(),
            data: text(&data["data"]).parse().unwrap(),
        }
    };
    items.map(step).collect()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl History {
    pub async fn quote(&mut self, who: Who) {
        let (account, recipient, pause, trade) = self.wants(who);
        let (from, to) = (number(trade.from.0), number(trade.to.0));
        let mut body = json!({
            "user": account, "recipient": recipient, "originChainId": from,
            "destinationChainId": to, "originCurrency": trade.from.1,
            "destinationCurrency": trade.to.1, "amount": trade.amount.to_string(),
            "tradeType": "EXACT_INPUT", "includeProtocolData": true,
        });
        trade.extra.into_body(&mut body, &trade);
        if let Who::Honest(at) = who
            && self.plan.honest[at].fee > 0
        {
            let (to, fee) = (market::HUB, self.plan.honest[at].fee.to_string());
            body["appFees"] = json!([{ "recipient": to, "fee": fee }]);
        }
        let quoted = clock::seconds();
        let answer = self.ask(Method::POST, "/quote/v2", &body).await;
        let Some((status, answer)) = answer else {
            self.die().await;
            self.at(clock::seconds() + 10, Act::Quote(who));
            return;
        };
        if status != StatusCode::OK {
            let code = answer["errorCode"].clone();
            self.note(format!("{who:?} is not quoted: {code}"));
            if let Who::Honest(at) = who
                && self.world.prices.are_doubtful()
            {
                self.doubted.insert(at);
            }
            return;
        }
        let deal = self.deal((who, account, recipient), trade, &answer, quoted);
        self.note(format!(
            "{who:?} is quoted {} for {:?} -> {:?}",
            deal.order, trade.from, trade.to
        ));
        self.deals.insert(who, deal);
        self.before_deposit(who, pause);
        self.at(clock::seconds() + pause, Act::Deposit(who));
    }

    pub fn deal(
        &self,
        (of, account, recipient): (Who, Address, Address),
        trade: Trade,
        answer: &Value,
        quoted: u64,
    ) -> Deal {
        let v2 = &answer["protocol"]["v2"];
        let gas = self.world.chains.iter().map(|chain| {
            let world = chain.lock();
            (chain.name, world.base + world.tip)
        });
        Deal {
            gas: gas.collect(),
            of,
            request: text(&answer["steps"][0]["requestId"]).parse().unwrap(),
            order: text(&v2["orderId"]).parse().unwrap(),
            wire: v2["orderData"].clone(),
            signature: text(&v2["orderSignature"]).to_owned(),
            steps: steps(answer),
            minimum: text(&answer["details"]["currencyOut"]["minimumAmount"])
                .parse()
                .unwrap(),
            quoted,
            trade,
            account,
            recipient,
            solver: self.world.solver,
        }
    }

    /// Account, recipient, the pause before the deposit, and the trade.
    fn wants(&self, who: Who) -> (Address, Address, u64, Trade) {
        match who {
            Who::Honest(at) => {
                let one = &self.plan.honest[at];
                (one.account, one.recipient, one.pause, one.trade)
            }
            Who::Stranger(at) => {
                let one = &self.plan.strangers[at];
                (one.account, one.account, one.pause(), one.trade)
            }
            Who::Rival | Who::Foreign(_) => {
                unreachable!("the other solver's customers have a way of their own")
            }
        }
    }

    pub fn deposit(&mut self, who: Who) {
        let Some(deal) = self.deals.get(&who).cloned() else {
            return;
        };
        if !self.goes_on(who, &deal) {
            return;
        }
        match who {
            Who::Honest(at) if self.plan.honest[at].over > 0 => {
                let (chain, currency) = deal.trade.from;
                let asked = self.asked(&deal);
                let over = asked * U256::from(self.plan.honest[at].over) / U256::from(100);
                self.put((deal.account, chain, currency), asked + over, deal.order);
            }
            _ => {
                for sent in self.follow(&deal) {
                    self.at(clock::seconds(), Act::Tell(who, sent, 0));
                }
            }
        }
        self.note(format!("{who:?} deposits for {}", deal.order));
        if let Who::Honest(at) = who {
            self.has_deposited(at);
            self.after_deposit(Who::Honest(at));
            if let Some(pause) = self.plan.honest[at].again {
                self.at(clock::seconds() + pause, Act::Again(at));
            }
        }
    }

    pub fn again(&mut self, at: usize) {
        if let Some(deal) = self.deals.get(&Who::Honest(at)).cloned() {
            let (chain, currency) = deal.trade.from;
            let asked = self.asked(&deal);
            self.put((deal.account, chain, currency), asked, deal.order);
            self.has_deposited(at);
        }
    }

    fn has_deposited(&mut self, at: usize) {
        let moments = self.deposited.entry(at).or_default();
        moments.push(clock::seconds());
    }

    /// Sends what a quote wants sent.
    fn follow(&self, deal: &Deal) -> Vec<B256> {
        let send = |step: &Step| {
            let chain = self.world.by_number(step.chain);
            chain.send(deal.account, step.to, step.value, step.data.clone())
        };
        deal.steps.iter().map(send).collect()
    }

    /// Who acts by himself tells of it until it is known.
    pub async fn tell_own(&mut self, who: Who, sent: B256, round: u8) {
        let Some(deal) = self.deals.get(&who).filter(|deal| deal.trade.is_own()) else {
            return;
        };
        let chain = number(deal.trade.from.0);
        let body = json!({ "chainId": chain, "txHash": sent, "requestId": deal.request });
        let told = self.ask(Method::POST, "/transactions/index", &body).await;
        let known = match told.is_some() {
            true => endings::status(self, deal).await == "success",
            false => false,
        };
        if !known && round < 30 {
            self.at(clock::seconds() + 10, Act::Tell(who, sent, round + 1));
        }
    }

    /// What an order wants deposited.
    pub fn asked(&self, deal: &Deal) -> U256 {
        let asked = &deal.wire["inputs"][0]["payment"]["amount"];
        asked.as_str().unwrap_or_default().parse().unwrap()
    }
}
