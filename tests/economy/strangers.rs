//! What strangers do, each in rounds that the agenda holds.

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    sol_types::SolCall,
};
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    chain::abi,
    clock,
    history::{Act, Deal, History, Who, number},
    market::{BURNER, DEPOSITORY, JUNK, NATIVE, ORACLE, ROUTER, TILL, USDC},
    plan::{Extra, Power, Stranger, Trade},
};

/// Seconds that an option taker waits for the market.
const OPTION: u64 = 400;

impl Stranger {
    /// Seconds between the stranger's own quote and deposit.
    pub fn pause(&self) -> u64 {
        match self.power {
            Power::OptionTaker => OPTION,
            _ => 10,
        }
    }
}

impl Extra {
    /// Adds to a quote's body what it asks for besides.
    pub fn into_body(self, body: &mut Value, trade: &Trade) {
        let target = match self {
            Self::Nothing => return,
            Self::Refund => {
                body["referrer"] = json!("debug-force-refund");
                return;
            }
            Self::Till => TILL,
            Self::Burner => BURNER,
        };
        let buyer: Address = body["user"].as_str().unwrap_or_default().parse().unwrap();
        let data = Bytes::from(abi::buyCall { buyer }.abi_encode());
        body["txs"] = json!([{ "to": target, "value": "0", "data": data }]);
        // Calls are written for one amount.
        body["tradeType"] = json!("EXACT_OUTPUT");
        let dollars = match trade.from.1 {
            NATIVE => trade.amount / U256::from(500_000_000_000_000_u64),
            _ => trade.amount / U256::from(1_000_000),
        };
        let dollars = u64::try_from(dollars).unwrap_or_default();
        body["amount"] = json!(crate::plan::worth(trade.to.1, dollars).to_string());
    }
}

impl History {
    pub fn prepare_strangers(&mut self, begin: u64) {
        for (at, stranger) in self.plan.strangers.clone().into_iter().enumerate() {
            if stranger.has_own_order() {
                if stranger.power == Power::GasBurner {
                    self.plan.strangers[at].trade.extra = Extra::Burner;
                }
                self.at(begin + stranger.after, Act::Quote(Who::Stranger(at)));
            }
        }
    }

    /// Whether somebody still wants to deposit.
    pub fn goes_on(&mut self, who: Who, deal: &Deal) -> bool {
        let Who::Stranger(at) = who else {
            return true;
        };
        match self.plan.strangers[at].power {
            Power::OptionTaker => self.is_worth_it(deal),
            Power::PercentFirst => {
                self.percent_first(at, deal);
                false
            }
            _ => true,
        }
    }

    /// Whether the market has moved the stranger's way by more than half a percent.
    fn is_worth_it(&self, deal: &Deal) -> bool {
        let at = |time: u64| {
            let price = |(chain, currency)| {
                let (symbol, _) = crate::market::currency(chain, currency).unwrap_or(("", 0));
                u128::from(self.world.prices.at(symbol, time))
            };
            price(deal.trade.to) * 100_000 / price(deal.trade.from).max(1)
        };
        at(clock::seconds()) * 1_000 > at(deal.quoted) * 1_005
    }

    fn percent_first(&mut self, at: usize, deal: &Deal) {
        let (chain, currency) = deal.trade.from;
        let first = deal.trade.amount / U256::from(100);
        let from = (deal.account, chain, currency);
        self.put(from, first, deal.order);
        self.at(clock::seconds() + 60, Act::Strike(at, 1));
    }

    /// The victim has sent its deposit: its order is everybody's knowledge now.
    pub fn after_deposit(&mut self, victim: usize) {
        let now = clock::seconds();
        for (at, stranger) in self.plan.strangers.clone().iter().enumerate() {
            if stranger.victim == victim && !stranger.has_own_order() {
                self.at(now + stranger.after, Act::Strike(at, 0));
            }
        }
    }

    pub async fn strike(&mut self, at: usize, round: u8) {
        let stranger = self.plan.strangers[at].clone();
        if stranger.power == Power::PercentFirst {
            return self.rest_of(at);
        }
        let Some(victim) = self.deals.get(&Who::Honest(stranger.victim)).cloned() else {
            return;
        };
        self.note(format!(
            "{:?} strikes at {}: round {round}",
            stranger.power, victim.order
        ));
        let from = (stranger.account, victim.trade.from.0, victim.trade.from.1);
        let there = (stranger.account, victim.trade.to.0, NATIVE);
        let one = U256::from(1);
        match stranger.power {
            Power::Dust => {
                self.put((from.0, from.1, NATIVE), one, victim.order);
            }
            Power::DustElsewhere => {
                self.put(there, one, victim.order);
            }
            Power::Junk => {
                let junk = (from.0, from.1, JUNK);
                self.put(junk, U256::from(1_000_000), victim.order);
            }
            Power::OtherCurrency => {
                let other = if from.2 == NATIVE { USDC } else { NATIVE };
                let amount = crate::plan::worth(other, 40);
                self.put((from.0, from.1, other), amount, victim.order);
            }
            Power::Double => {
                self.put(from, victim.trade.amount, victim.order);
            }
            Power::Teller => self.tell(&stranger, &victim).await,
            Power::DustClaim => self.claim_for_dust(at, round, &victim).await,
            Power::RefundClaim => self.claim_refund(at, round, &victim).await,
            Power::Forcer => self.force(&stranger, &victim).await,
            Power::PercentFirst | Power::GasBurner | Power::OptionTaker => {}
        }
    }

    fn rest_of(&mut self, at: usize) {
        let Some(deal) = self.deals.get(&Who::Stranger(at)).cloned() else {
            return;
        };
        let (chain, currency) = deal.trade.from;
        self.put(
            (deal.account, chain, currency),
            deal.trade.amount,
            deal.order,
        );
    }

    /// A deposit of a stranger's.
    fn put(
        &mut self,
        (account, chain, currency): (Address, &'static str, Address),
        amount: U256,
        order: B256,
    ) -> B256 {
        let chain = self.world.chain(chain).clone();
        if currency == NATIVE {
            let call = abi::depositNativeCall {
                depositor: account,
                id: order,
            };
            return chain.send(account, DEPOSITORY, amount, call.abi_encode().into());
        }
        let allow = abi::approveCall {
            spender: DEPOSITORY,
            amount,
        };
        chain.send(account, currency, U256::ZERO, allow.abi_encode().into());
        let call = abi::depositErc20Call {
            depositor: account,
            token: currency,
            amount,
            id: order,
        };
        chain.send(account, DEPOSITORY, U256::ZERO, call.abi_encode().into())
    }

    /// A transaction that has nothing to do with the victim, told as the victim's.
    async fn tell(&mut self, stranger: &Stranger, victim: &Deal) {
        let origin = victim.trade.from.0;
        let value = U256::from(1);
        let data = Bytes::from(victim.order.to_vec());
        let chain = self.world.chain(origin).clone();
        let sent = chain.send(stranger.account, stranger.account, value, data.clone());
        let fails = chain.send(
            stranger.account,
            ROUTER,
            value,
            Bytes::from_static(&[1, 2, 3, 4]),
        );
        for hash in [sent, fails, B256::repeat_byte(7)] {
            for request in [Some(victim.request), None] {
                let mut body = json!({ "chainId": number(origin), "txHash": hash });
                if let Some(request) = request {
                    body["requestId"] = json!(request);
                }
                if self
                    .ask(Method::POST, "/transactions/index", &body)
                    .await
                    .is_none()
                {
                    return;
                }
            }
        }
    }

    /// First the dust, then the claim that the victim's fill was for it.
    async fn claim_for_dust(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        if round == 0 {
            let (chain, currency) = victim.trade.from;
            self.put(
                (stranger.account, chain, currency),
                U256::from(1),
                victim.order,
            );
        } else if let Some(fill) = self.paid(victim, victim.trade.to.0)
            && let Some(dust) = self.deposited(victim, stranger.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature,
                "inputs": [dust], "fill": { "transactionId": fill },
            });
            if self
                .submitted("solver-fills", &body, stranger.account)
                .await
            {
                return;
            }
        }
        // Whoever claims first: it tries as soon as it can, and again.
        if round < 60 {
            self.at(clock::seconds() + 2, Act::Strike(at, round + 1));
        }
    }

    /// Pays the victim's refund address one unit, then claims that the order was refunded.
    async fn claim_refund(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0 {
            let chain = self.world.chain(chain).clone();
            let (to, one) = (victim.account, U256::from(1));
            let sent = match currency {
                NATIVE => chain.send(stranger.account, to, one, victim.order.to_vec().into()),
                token => {
                    let mut data = abi::transferCall { to, amount: one }.abi_encode();
                    data.extend(victim.order);
                    chain.send(stranger.account, token, U256::ZERO, data.into())
                }
            };
            self.note(format!("one unit for the refund in {sent}"));
        } else if let Some(deposit) = self.deposited(victim, victim.account)
            && let Some(refund) = self.paid_by(victim, chain, stranger.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [deposit],
                "refunds": [{ "transactionId": refund, "inputIndex": 0, "refundIndex": 0 }],
            });
            if self
                .submitted("solver-refunds", &body, stranger.account)
                .await
            {
                return;
            }
        }
        if round < 60 {
            self.at(clock::seconds() + 2, Act::Strike(at, round + 1));
        }
    }

    /// Claims whatever it likes, by force.
    async fn force(&mut self, stranger: &Stranger, victim: &Deal) {
        for route in ["solver-fills", "solver-refunds"] {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [],
                "fill": { "transactionId": B256::repeat_byte(9) }, "refunds": [], "force": true,
            });
            self.submitted(route, &body, stranger.account).await;
        }
    }

    /// Claims, and hands what is signed to the hub's contract; whether anything was signed.
    async fn submitted(&mut self, route: &str, body: &Value, account: Address) -> bool {
        let path = format!("/attestations/{route}/v1");
        let Some((status, answer)) = self.claim(&path, body).await else {
            return false;
        };
        let execution = &answer["execution"];
        self.note(format!("claim at {route}: {status} {}", answer["code"]));
        let bytes = |value: &Value| value.as_str().and_then(|text| text.parse::<Bytes>().ok());
        let each = |field: &str| -> Vec<Value> {
            execution[field].as_array().cloned().unwrap_or_default()
        };
        let Some(key) = execution["idempotencyKey"].as_str() else {
            return false;
        };
        let call = abi::executeCall {
            idempotencyKey: key.parse().unwrap(),
            actions: each("actions").iter().filter_map(bytes).collect(),
            signatures: each("signatures")
                .iter()
                .filter_map(|signed| bytes(&signed["signature"]))
                .collect(),
        };
        let relay = self.world.chain("relay").clone();
        relay.send(account, ORACLE, U256::ZERO, call.abi_encode().into());
        true
    }

    /// The solver's payment for an order on a chain.
    fn paid(&self, deal: &Deal, chain: &str) -> Option<B256> {
        self.paid_by(deal, chain, self.world.solver)
    }

    fn paid_by(&self, deal: &Deal, chain: &str, payer: Address) -> Option<B256> {
        let world = self.world.chain(chain).lock();
        let named = |data: &Bytes| data.len() >= 32 && data[data.len() - 32..] == deal.order[..];
        let mut done = world.history();
        let found = done.find(|(_, done)| {
            done.success
                && done.tx.from == payer
                && done.tx.to != DEPOSITORY
                && named(&done.tx.data)
        });
        found.map(|(_, done)| done.tx.hash)
    }

    /// An account's deposit under an order, as claims name it.
    fn deposited(&self, deal: &Deal, account: Address) -> Option<Value> {
        let name = deal.trade.from.0;
        let chain = self.world.chain(name);
        let found = crate::books::deposits(chain);
        let mut mine = found
            .into_iter()
            .filter(|one| one.order == deal.order && one.depositor == account);
        let one = mine.next()?;
        Some(json!({
            "transactionId": one.transaction, "onchainId": one.id, "inputIndex": 0,
        }))
    }
}

impl Stranger {
    fn has_own_order(&self) -> bool {
        matches!(
            self.power,
            Power::PercentFirst | Power::GasBurner | Power::OptionTaker
        )
    }
}
