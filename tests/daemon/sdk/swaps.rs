//! Exchanges: by the user on one chain, before a deposit, and in the solver's fill.

use alloy::{
    primitives::{Address, U256},
    sol,
};
use devnet::{account::Account, node::Payload, world::Exchange};
use serde_json::{Value, json};

use super::{
    app::{App, ETH, MILLI, USD, Way, amount, held, hex, promised, step_ids},
    listened,
};

const INPUT: &str = "EXACT_INPUT";
const OUTPUT: &str = "EXACT_OUTPUT";

sol! {
    function multicall(bytes[] data) payable;
}

/// A customer and what the two exchanges have.
struct Trader<'a> {
    app: &'a App,
    who: &'a Account,
    here: Exchange,
    there: Exchange,
    /// Leaves what an exact output costs less to the solver.
    leaves: bool,
    /// Who gets what is bridged.
    to: Address,
}

impl<'a> Trader<'a> {
    fn new(app: &'a App, number: usize) -> Self {
        let (here, there) = (&app.world.origin, &app.world.destination);
        let who = app.customer(number);
        Self {
            app,
            who,
            to: who.address(),
            here: here.exchange.unwrap(),
            there: there.exchange.unwrap(),
            leaves: false,
        }
    }

    fn leaving(self) -> Self {
        Self {
            leaves: true,
            ..self
        }
    }

    /// Has what is bridged paid to a contract that takes no native currency.
    fn for_contract(self) -> Self {
        let to = self.there.uniswap.factory;
        Self { to, ..self }
    }

    /// Leaves a wei in the destination's exchange, as anybody can.
    async fn leaves_a_wei(&self) {
        let (site, router) = (&self.app.world.destination, self.there.uniswap.router);
        let nothing = multicallCall { data: Vec::new() };
        let wei = Payload::call(router, &nothing).value(U256::ONE);
        let sent = site.node.transact(self.who.address(), wei).await;
        sent.unwrap();
        assert_eq!(held(site, Address::ZERO, router).await, U256::ONE);
    }

    /// Exchanges on the origin; what came of it on chain, and the client's report.
    async fn here(&self, from: Address, to: Address, value: u64) -> (U256, Value) {
        let pair = (&*hex(from), &*hex(to));
        let quote = self.app.quote_for(self.who, Way::Here, pair, value);
        let (site, who) = (&self.app.world.origin, self.who.address());
        let before = held(site, to, who).await;
        let paid = held(site, from, who).await;
        let done = self.app.execute_as(self.who, quote).await;
        let spent = paid - held(site, from, who).await;
        if from != Address::ZERO {
            assert_eq!(spent, U256::from(value), "{done}");
        }
        let after = held(site, to, who).await;
        (after.saturating_sub(before), done)
    }

    /// Buys exactly so much on the origin, for the native currency.
    async fn exactly(&self, to: Address, value: u64) {
        let mut quote = self
            .app
            .quote_for(self.who, Way::Here, (ETH, &hex(to)), value);
        quote["tradeType"] = OUTPUT.into();
        let (site, who) = (&self.app.world.origin, self.who.address());
        let before = (
            held(site, to, who).await,
            held(site, Address::ZERO, who).await,
        );
        let done = self.app.execute_as(self.who, quote).await;
        assert_eq!(held(site, to, who).await - before.0, U256::from(value));
        // What the swap did not take came back, gas apart.
        let spent = before.1 - held(site, Address::ZERO, who).await;
        let expected = amount(&done, "/details/currencyIn/amount");
        assert!(spent < expected + U256::from(MILLI), "{spent} {done}");
    }

    /// Allowance and exchange by a wallet that batches: nobody is told of it.
    async fn at_once(&self, (from, to): (Address, Address), value: u64) {
        let pair = (&*hex(from), &*hex(to));
        let quote = self.app.quote_for(self.who, Way::Here, pair, value);
        let job =
            json!({"what": "execute", "key": self.who.key(), "batching": true, "quote": quote});
        let (site, who) = (&self.app.world.origin, self.who.address());
        let before = held(site, to, who).await;
        let done = self.app.drive(job).await;
        self.app.succeeded(&done).await;
        let least = amount(&done, "/details/currencyOut/minimumAmount");
        assert!(held(site, to, who).await - before >= least, "{done}");
    }

    /// The same by a client that listens, too. On its socket nothing ever comes: the daemon closes it, and the client
    /// goes on as if it had none.
    async fn at_once_and_listening(&self, (from, to): (Address, Address), value: u64) {
        let pair = (&*hex(from), &*hex(to));
        let quote = self.app.quote_for(self.who, Way::Here, pair, value);
        let (site, who) = (&self.app.world.origin, self.who.address());
        let before = held(site, to, who).await;
        let done = self.listening(quote).await;
        let least = amount(&done, "/details/currencyOut/minimumAmount");
        assert!(held(site, to, who).await - before >= least, "{done}");
        assert_eq!(heard_last(&done), "waiting", "{done}");
        let closed = &done["closed"];
        assert_eq!(closed[0]["code"], 1000, "{done}");
        let why = closed[0]["reason"].as_str().unwrap();
        assert!(why.contains("ask for the status"), "{why}");
        // It opens no other.
        assert_eq!(closed.as_array().unwrap().len(), 1, "{done}");
    }

    /// What a solver fills is heard of to its end, by a wallet that batches, too.
    async fn across_at_once_and_listening(&self, (from, to): (Address, Address), value: u64) {
        let pair = (&*hex(from), &*hex(to));
        let quote = self.app.quote_for(self.who, Way::Across, pair, value);
        let done = self.listening(quote).await;
        assert_eq!(heard_last(&done), "success", "{done}");
        let mut closed = done["closed"].as_array().unwrap().iter();
        assert!(closed.all(|one| one["code"] != 1000), "{done}");
    }

    /// Executes by a wallet that batches, and listens; nobody is told or asked of anything.
    async fn listening(&self, quote: Value) -> Value {
        let job =
            json!({"what": "execute", "key": self.who.key(), "batching": true, "quote": quote});
        let done = listened(self.app, job).await;
        self.app.succeeded(&done).await;
        let asked = done["requests"].as_array().unwrap().iter();
        let mut asked = asked.map(|one| one.as_str().unwrap());
        let beside = ["/transactions/", "/intents/status"];
        let is_beside = |one: &str| beside.iter().any(|path| one.contains(path));
        assert!(!asked.any(is_beside), "{done}");
        done
    }

    /// Bridges, and demands that at least what was promised at least arrives.
    async fn across(&self, trade: &str, (from, to): (Address, Address), value: u64) -> Value {
        let pair = (&*hex(from), &*hex(to));
        let mut quote = self.app.quote_for(self.who, Way::Across, pair, value);
        quote["tradeType"] = trade.into();
        quote["recipient"] = hex(self.to).into();
        quote["options"] = json!({
            "includeProtocolData": true, "enableTrueExactOutput": self.leaves,
        });
        let site = &self.app.world.destination;
        let before = held(site, to, self.to).await;
        let done = self.app.execute_as(self.who, quote).await;
        let got = held(site, to, self.to).await - before;
        let least = amount(&done, "/details/currencyOut/minimumAmount");
        assert!(got >= least && !got.is_zero(), "{got} {done}");
        assert!(!self.leaves || got == U256::from(value), "{got} {done}");
        assert_eq!(self.app.status(&done["quote"]).await["status"], "success");
        self.app.attested(&done["quote"]).await;
        done
    }
}

/// The last status that the client heard on its socket.
fn heard_last(done: &Value) -> &str {
    let events = done["heard"].as_array().unwrap().iter();
    let mut statuses = events.filter_map(|event| event["data"]["status"].as_str());
    statuses.next_back().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn user_swaps_on_one_chain() {
    let app = App::with(true, |_| ()).await;
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|number| Trader::new(&app, number));
    let (eth, usd) = (Address::ZERO, app.world.origin.token);
    let dollar = app.world.destination.token;
    let (rare, weth) = (a.here.rare, a.here.uniswap.wrapped);
    let native_and_back = async {
        let (got, done) = a.here(eth, usd, 10 * MILLI).await;
        assert_eq!((got, step_ids(&done)), (promised(&done), vec!["swap"]));
        let status = app.ended(&done["quote"]).await;
        assert_eq!(status["status"], "success", "{status}");
        let (got, done) = a.here(usd, eth, 20 * USD).await;
        assert_eq!(step_ids(&done), ["approve", "swap"]);
        // The user pays gas out of it.
        assert!(got > promised(&done) - U256::from(MILLI), "{got} {done}");
    };
    let tokens = async {
        let (got, done) = b.here(usd, rare, 20 * USD).await;
        assert_eq!(step_ids(&done), ["approve", "swap"]);
        assert!(got >= amount(&done, "/details/currencyOut/minimumAmount"));
        b.exactly(usd, 30 * USD).await;
    };
    let wrapping = async {
        let (got, done) = c.here(eth, weth, 50 * MILLI).await;
        assert_eq!(
            (got, step_ids(&done)),
            (U256::from(50 * MILLI), vec!["swap"])
        );
        assert_eq!(done["quote"]["details"]["operation"], "wrap");
        let (_, done) = c.here(weth, eth, 50 * MILLI).await;
        assert_eq!(done["quote"]["details"]["operation"], "unwrap");
        assert_eq!(step_ids(&done), ["swap"]);
    };
    let batched = d.at_once((usd, rare), 20 * USD);
    let listening = e.at_once_and_listening((usd, rare), 20 * USD);
    let filled = f.across_at_once_and_listening((usd, dollar), 20 * USD);
    tokio::join!(
        native_and_back,
        tokens,
        wrapping,
        batched,
        listening,
        filled
    );
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn swaps_before_the_deposit_and_in_the_fill() {
    let app = App::with(true, |_| ()).await;
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|number| Trader::new(&app, number));
    let [b, f] = [b, f].map(Trader::leaving);
    // What the exchange gives back besides fails no fill.
    a.leaves_a_wei().await;
    let c = c.for_contract();
    let (eth, usd) = (Address::ZERO, app.world.origin.token);
    let (dollar, weth) = (app.world.destination.token, a.there.uniswap.wrapped);
    let [here, there] = [a.here.rare, a.there.rare];
    let (origin, both, native, wrapped, token, tokens) = tokio::join!(
        a.across(INPUT, (here, dollar), 50 * USD),
        b.across(OUTPUT, (here, there), 50 * USD),
        c.across(INPUT, (eth, there), 20 * MILLI),
        d.across(INPUT, (eth, weth), 20 * MILLI),
        e.across(INPUT, (usd, there), 50 * USD),
        f.across(OUTPUT, (usd, weth), 10 * MILLI),
    );
    for (done, steps) in [
        (&origin, vec!["approve", "swap", "approve", "deposit"]),
        (&both, vec!["approve", "swap", "approve", "deposit"]),
        (&native, vec!["deposit"]),
        (&token, vec!["approve", "deposit"]),
    ] {
        assert_eq!(step_ids(done), steps);
    }
    assert_eq!(promised(&both), U256::from(50 * USD));
    assert_eq!(promised(&tokens), U256::from(10 * MILLI));
    let leg = &wrapped["quote"]["details"]["route"]["destination"];
    assert_eq!(leg["router"], "wrap");
    let left = app.left_over(&[dollar, weth, there]).await;
    assert!(left.is_zero(), "{left}");
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn solver_without_the_native_currency_swaps_its_tokens_for_it() {
    let app = App::with(true, |market| {
        market[1]["currencies"][0]["solver"] = false.into();
    })
    .await;
    let [a, b] = [0, 1].map(|number| Trader::new(&app, number));
    let (eth, usd) = (Address::ZERO, app.world.origin.token);
    let (native, token) = tokio::join!(
        a.across(INPUT, (eth, eth), 20 * MILLI),
        b.across(OUTPUT, (usd, eth), 10 * MILLI),
    );
    for done in [native, token] {
        let leg = &done["quote"]["details"]["route"]["destination"];
        assert_eq!(leg["inputCurrency"]["currency"]["symbol"], "USD", "{done}");
        assert_eq!(leg["router"], "uniswap-v3");
    }
    let dollar = app.world.destination.token;
    assert!(app.left_over(&[dollar]).await.is_zero());
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_reach_another_recipient() {
    let app = App::start().await;
    let (a, b) = (app.customer(0), app.customer(1));
    let friend = Account::named("friend").unwrap().address();
    let site = &app.world.origin;
    let send = async |who: &Account, currency: Address, value: u64| {
        let text = hex(currency);
        let mut quote = app.quote_for(who, Way::Here, (&text, &text), value);
        quote["recipient"] = hex(friend).into();
        let done = app.execute_as(who, quote).await;
        assert_eq!(step_ids(&done), ["send"]);
        assert_eq!(done["quote"]["details"]["operation"], "send");
        assert_eq!(held(site, currency, friend).await, U256::from(value));
        let status = app.ended(&done["quote"]).await;
        assert_eq!(status["status"], "success", "{status}");
    };
    assert_eq!(ETH.parse(), Ok(Address::ZERO));
    tokio::join!(
        send(a, Address::ZERO, 5 * MILLI),
        send(b, site.token, 7 * USD)
    );
    app.daemon.stop().await;
}
