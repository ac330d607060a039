//! Calls at the destination, paid by the fill.

use alloy::{
    primitives::{Address, U256},
    sol_types::SolCall,
};
use devnet::{
    account::Account,
    contracts::{Till, Token},
};
use serde_json::{Value, json};

use super::app::{App, ETH, MILLI, USD, Way, held, hex, promised};

fn call(to: Address, call: &impl SolCall, value: u64) -> Value {
    let data = alloy::hex::encode_prefixed(call.abi_encode());
    json!({"to": hex(to), "value": value.to_string(), "data": data})
}

struct Shop {
    app: App,
    till: Address,
}

impl Shop {
    async fn open() -> Self {
        let app = App::start().await;
        let till = app.world.destination.deploy("Till", &[]).await.unwrap();
        Self { app, till }
    }

    async fn bought(&self, currency: Address, buyer: Address) -> U256 {
        let node = &self.app.world.destination.node;
        let question = Till::boughtCall { currency, buyer };
        node.view(self.till, &question).await.unwrap()
    }

    /// One call that carries value; the rest is the recipient's.
    async fn native_call(&self) {
        let who = self.app.customer(0);
        let buyer = who.address();
        let mut quote = self
            .app
            .quote_for(who, Way::Across, (ETH, ETH), 100 * MILLI);
        quote["tradeType"] = "EXACT_OUTPUT".into();
        quote["txs"] = json!([call(self.till, &Till::buyCall { buyer }, 30 * MILLI)]);
        quote["options"] = json!({"txsGasLimit": 300_000});
        let site = &self.app.world.destination;
        let before = held(site, Address::ZERO, buyer).await;
        self.app.execute_as(who, quote).await;
        assert_eq!(
            self.bought(Address::ZERO, buyer).await,
            U256::from(30 * MILLI)
        );
        let after = held(site, Address::ZERO, buyer).await;
        assert_eq!(after - before, U256::from(70 * MILLI));
    }

    /// Two calls with value, and a plain payment to somebody else.
    async fn several_native_calls(&self) {
        let who = self.app.customer(1);
        let (buyer, friend) = (who.address(), Account::named("friend").unwrap().address());
        let mut quote = self.app.quote_for(who, Way::Across, (ETH, ETH), 60 * MILLI);
        quote["tradeType"] = "EXACT_OUTPUT".into();
        quote["txs"] = json!([
            call(self.till, &Till::buyCall { buyer }, 10 * MILLI),
            {"to": hex(friend), "value": (20 * MILLI).to_string(), "data": "0x"},
            call(self.till, &Till::buyCall { buyer: friend }, 30 * MILLI),
        ]);
        self.app.execute_as(who, quote).await;
        let bought = (
            self.bought(Address::ZERO, buyer).await,
            self.bought(Address::ZERO, friend).await,
        );
        assert_eq!(bought, (U256::from(10 * MILLI), U256::from(30 * MILLI)));
        let given = held(&self.app.world.destination, Address::ZERO, friend).await;
        assert_eq!(given, U256::from(20 * MILLI));
    }

    /// The calls spend tokens that the router was paid; what they leave is the recipient's.
    async fn token_calls(&self) {
        let who = self.app.customer(2);
        let (buyer, site) = (who.address(), &self.app.world.destination);
        let (token, amount) = (site.token, U256::from(40 * USD));
        let pair = (&*hex(self.app.world.origin.token), &*hex(token));
        let mut quote = self.app.quote_for(who, Way::Across, pair, 50 * USD);
        let spender = self.till;
        quote["txs"] = json!([
            call(token, &Token::approveCall { spender, amount }, 0),
            call(
                self.till,
                &Till::buyWithCall {
                    token,
                    amount,
                    buyer
                },
                0
            ),
        ]);
        quote["options"] = json!({"includeProtocolData": true});
        let before = held(site, token, buyer).await;
        let done = self.app.execute_as(who, quote).await;
        self.app.attested(&done["quote"]).await;
        assert_eq!(self.bought(token, buyer).await, amount);
        let rest = held(site, token, buyer).await - before;
        assert_eq!(rest, promised(&done) - amount);
        assert!(!rest.is_zero());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_calls_spend_what_the_fill_pays() {
    let shop = Shop::open().await;
    tokio::join!(
        shop.native_call(),
        shop.several_native_calls(),
        shop.token_calls()
    );
    let token = shop.app.world.destination.token;
    assert!(shop.app.left_over(&[token]).await.is_zero());
    shop.app.daemon.stop().await;
}
