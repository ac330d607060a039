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
    market::{BURNER, JUNK, NATIVE, ROUTER, TILL},
    plan::{self, Extra, Power, Stranger, Trade},
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
            Self::Burner(_) => BURNER,
        };
        let buyer: Address = body["user"].as_str().unwrap_or_default().parse().unwrap();
        let mut data = abi::buyCall { buyer }.abi_encode();
        if let Self::Burner(bytes) = self {
            data.resize(data.len() + bytes, 0);
        }
        let data = Bytes::from(data);
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
                    let trade = &mut self.plan.strangers[at].trade;
                    // What is charged for is a part of what burns: much of it for a small order.
                    let (bytes, dollars) = if stranger.keyed { (32_768, 40) } else { (0, 0) };
                    trade.extra = Extra::Burner(bytes);
                    if dollars > 0 {
                        trade.amount = crate::plan::worth(trade.from.1, dollars);
                    }
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
    pub fn after_deposit(&mut self, victim: Who) {
        let now = clock::seconds();
        for (at, stranger) in self.plan.strangers.clone().iter().enumerate() {
            if stranger.victim == victim && !stranger.has_own_order() && !stranger.early {
                self.at(now + stranger.after, Act::Strike(at, 0));
            }
        }
    }

    /// The victim deposits in `pause` seconds, and some know its order already.
    pub fn before_deposit(&mut self, victim: Who, pause: u64) {
        for at in self.early(victim) {
            let before = 1 + self.plan.strangers[at].after % pause.max(1);
            let time = clock::seconds() + pause.saturating_sub(before);
            self.at(time, Act::Strike(at, 0));
        }
    }

    /// Strangers who come before the victim's deposit.
    pub fn early(&self, victim: Who) -> Vec<usize> {
        let strangers = self.plan.strangers.iter().enumerate();
        let early =
            strangers.filter(|(_, one)| one.early && one.victim == victim && !one.has_own_order());
        early.map(|(at, _)| at).collect()
    }

    /// What somebody was promised, by whomever.
    fn promised_to(&self, who: Who) -> Option<&Deal> {
        let of_another = self.rivals.get(&who).map(|rival| &rival.deal);
        of_another.or_else(|| self.deals.get(&who))
    }

    pub async fn strike(&mut self, at: usize, round: u8) {
        let stranger = self.plan.strangers[at].clone();
        if stranger.power == Power::PercentFirst {
            return self.rest_of(at);
        }
        let Some(victim) = self.promised_to(stranger.victim).cloned() else {
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
            Power::Dust if stranger.early && stranger.keyed => {
                self.put(from, victim.trade.amount / U256::from(100), victim.order);
            }
            Power::Dust => {
                self.put((from.0, from.1, NATIVE), one, victim.order);
            }
            Power::DustElsewhere if stranger.keyed => {
                let there = (stranger.account, victim.trade.to.0, from.2);
                self.put(there, victim.trade.amount, victim.order);
            }
            Power::DustElsewhere => {
                self.put(there, one, victim.order);
            }
            Power::Junk => {
                let junk = (from.0, from.1, JUNK);
                self.put(junk, U256::from(1_000_000), victim.order);
            }
            Power::OtherCurrency => {
                if let Some((other, amount)) = plan::other(from.1, from.2) {
                    self.put((from.0, from.1, other), amount, victim.order);
                }
            }
            Power::Double => self.double(at, round, &victim),
            Power::Teller => self.submit_others(&stranger, &victim).await,
            Power::DustClaim => self.claim_for_dust(at, round, &victim).await,
            Power::RefundClaim => self.claim_refund(at, round, &victim).await,
            Power::Forcer => self.force(&stranger, round, &victim).await,
            Power::Recoverer => self.recover(at, round, &victim).await,
            Power::Crosswise => self.claim_crosswise(at, round, &victim).await,
            Power::Asker => self.ask_around(at, round, &victim).await,
            Power::Corroborator => self.corroborate(at, round).await,
            Power::Keyholder => self.force_with_key(&stranger, round, &victim).await,
            Power::Impostor => self.claim_under_own_order(at, round, &victim).await,
            Power::Replacer => self.claim_before_it_is_gone(at, round, &victim).await,
            Power::ThirdParty => self.claim_own_fill(at, round, &victim).await,
            Power::Misnamer => self.deposit_elsewhere(at, round, &victim).await,
            Power::BothWays => self.claim_both_ways(at, round, &victim).await,
            Power::PercentFirst | Power::GasBurner | Power::OptionTaker => {}
        }
    }

    /// Once or twice at once, and some again soon after.
    fn double(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = &self.plan.strangers[at];
        let (account, twice, again) = (stranger.account, stranger.keyed, stranger.elsewhere);
        let (chain, currency) = victim.trade.from;
        for _ in 0..=u8::from(twice) {
            self.put(
                (account, chain, currency),
                victim.trade.amount,
                victim.order,
            );
        }
        if again && round < 2 {
            self.at(clock::seconds() + 15, Act::Strike(at, round + 1));
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

    /// A transaction that has nothing to do with the victim, told as the victim's.
    async fn submit_others(&mut self, stranger: &Stranger, victim: &Deal) {
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
}

impl Stranger {
    /// Whether its victim's order is between families: our own solver and its users have nothing to do with it.
    pub fn is_abroad(&self) -> bool {
        matches!(self.victim, Who::Foreign(_))
    }

    /// Whether it deposits what somebody else's order asks for.
    pub fn pays(&self) -> bool {
        matches!(self.power, Power::Double | Power::Crosswise)
    }

    pub fn has_own_order(&self) -> bool {
        matches!(
            self.power,
            Power::PercentFirst | Power::GasBurner | Power::OptionTaker
        )
    }
}
