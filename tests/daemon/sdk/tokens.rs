//! Tokens on Solana through the published client and its wallet adapter: a plain one, and one of Token-2022 whose
//! transfers cost.

use std::{slice, sync::Arc};

use alloy::primitives::{Address, U256};
use devnet::{
    solana::{LocalChain, Token},
    world::{Abroad, Pace},
};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep, timeout};

use super::app::{App, ETH, MILLI, USD, amount, held, hex, promised, step_ids};

/// What is deposited: a hundred dollars of a token, or as much of the native currency of the EVM chain.
const DOLLARS: u64 = 100 * USD;
const ETHER: u64 = 40 * MILLI;
/// Bytes of an account of the older token program.
const ACCOUNT: usize = 165;
/// How long a deposit may wait that nobody watches.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

/// Who has money on Solana; each makes one deposit at most.
const SELLER: &str = "seller of tokens";
const COMPILER: &str = "seller with a lookup table";
const REFUNDED: &str = "seller who is refunded";
const TAXED: &str = "seller of costly tokens";
/// Who has nothing there, not even an account of the tokens.
const BUYER: &str = "buyer of tokens";
const TAXED_BUYER: &str = "buyer of costly tokens";

/// The app, and Solana with its tokens, which makes blocks by itself.
struct Market {
    app: App,
    solana: Arc<Abroad>,
    _blocks: Pace,
}

impl Market {
    async fn open() -> Self {
        let solana = Arc::new(Abroad::solana().await.unwrap());
        for name in [SELLER, COMPILER, REFUNDED, TAXED] {
            let account = solana.account(name).unwrap();
            solana.endow(&account).await.unwrap();
        }
        let blocks = solana.run();
        let app = App::among(slice::from_ref(&solana), false, |_| ()).await;
        Self {
            app,
            solana,
            _blocks: blocks,
        }
    }

    fn chain(&self) -> &LocalChain {
        match &*self.solana {
            Abroad::Solana(chain) => chain,
            Abroad::Bitcoin(_) => panic!("not Solana"),
        }
    }

    /// The plain token, and the one whose transfers cost.
    fn tokens(&self) -> [Token; 2] {
        let tokens: Vec<_> = self.chain().tokens.iter().map(|one| one.token).collect();
        tokens.try_into().unwrap()
    }

    fn account(&self, name: &str) -> String {
        self.solana.account(name).unwrap()
    }

    /// What somebody has of a token.
    fn holds(&self, name: &str, token: Token) -> u64 {
        let owner = self.account(name).parse().unwrap();
        self.chain().cluster.tokens(&owner, token)
    }

    async fn ether(&self, of: Address) -> U256 {
        held(&self.app.world.destination, Address::ZERO, of).await
    }

    /// What the client does as somebody on Solana, with a quote from a token to the native currency of the EVM chain.
    async fn sells(
        &self,
        (what, source): (&str, &str),
        (who, token): (&str, Token),
        to: Address,
    ) -> Value {
        let quote = json!({
            "chainId": self.solana.number(), "toChainId": self.app.world.destination.node.chain_id,
            "currency": token.0.to_string(), "toCurrency": ETH, "amount": DOLLARS.to_string(),
            "tradeType": "EXACT_INPUT", "user": self.account(who), "recipient": hex(to),
        });
        let wallet = self.solana.wallet(who).unwrap();
        let job = json!({"what": what, "source": source, "abroad": [wallet], "quote": quote});
        self.app.drive(job).await
    }

    /// What the client does as a customer, with a quote from the native currency of the EVM chain to a token.
    async fn buys(&self, what: &str, (customer, to): (usize, &str), token: Token) -> Value {
        let who = self.app.customer(customer);
        let quote = json!({
            "chainId": self.app.world.origin.node.chain_id, "toChainId": self.solana.number(),
            "currency": ETH, "toCurrency": token.0.to_string(), "amount": ETHER.to_string(),
            "tradeType": "EXACT_INPUT", "user": hex(who.address()), "recipient": self.account(to),
        });
        let wallet = self.solana.wallet(to).unwrap();
        let job = json!({"what": what, "key": who.key(), "abroad": [wallet], "quote": quote});
        self.app.drive(job).await
    }

    async fn token_is_deposited(&self) {
        let ([plain, _], to) = (self.tokens(), self.app.customer(0).address());
        let (had, before) = (self.holds(SELLER, plain), self.ether(to).await);
        let job = ("execute", "acceptance.test");
        let done = self.sells(job, (SELLER, plain), to).await;
        self.app.succeeded(&done).await;
        assert_eq!(step_ids(&done), ["deposit"]);
        assert_eq!(had - self.holds(SELLER, plain), DOLLARS);
        assert_eq!(self.ether(to).await - before, promised(&done), "{done}");
    }

    /// A wallet compiles the same step with a lookup table of all that does not sign.
    async fn deposit_with_a_lookup_table_is_found(&self) {
        let ([plain, _], to) = (self.tokens(), self.app.customer(1).address());
        let (had, before) = (self.holds(COMPILER, plain), self.ether(to).await);
        let job = ("quote", "acceptance.test");
        let quoted = self.sells(job, (COMPILER, plain), to).await;
        let mut data = quoted["quote"]["steps"][0]["items"][0]["data"].clone();
        let keys = data["instructions"][0]["keys"].as_array().unwrap().iter();
        let quiet = keys.filter(|key| key["isSigner"] == false);
        let quiet = quiet.map(|key| key["pubkey"].as_str().unwrap().parse().unwrap());
        let table = self.chain().cluster.lookup_table(quiet.collect()).unwrap();
        data["addressLookupTableAddresses"] = json!([table.key.to_string()]);
        self.solana.follow(COMPILER, &data).await.unwrap();
        assert_eq!(had - self.holds(COMPILER, plain), DOLLARS);
        let paid = async {
            while self.ether(to).await == before {
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, paid).await.unwrap();
        assert_eq!(self.ether(to).await - before, promised(&quoted), "{quoted}");
    }

    /// The account is opened, and its rent is in the fees: a recipient who has one pays so much less.
    async fn recipient_without_an_account_is_paid(&self) {
        let [plain, _] = self.tokens();
        let known = self.buys("quote", (2, SELLER), plain).await;
        assert_eq!(self.holds(BUYER, plain), 0);
        let done = self.buys("execute", (2, BUYER), plain).await;
        self.app.succeeded(&done).await;
        let got = self.holds(BUYER, plain);
        assert_eq!(U256::from(got), promised(&done), "{done}");
        let gas = |said: &Value| amount(said, "/fees/relayerGas/amount");
        let more = gas(&done) - gas(&known);
        // A SOL of 10^9 lamports is 150 dollars, an ether of 10^18 wei 2,500.
        let rent = U256::from(self.chain().cluster.rent(ACCOUNT)) * U256::from(60_000_000);
        let rents = rent - rent / U256::from(100)..rent * U256::from(2);
        assert!(rents.contains(&more), "{more} of {rent}: {known} {done}");
    }

    /// What a transfer costs is in no price, and its issuer may raise it.
    async fn nobody_is_paid_in_a_token_whose_transfers_cost(&self) {
        let [_, costly] = self.tokens();
        let refused = self.buys("quote", (3, TAXED_BUYER), costly).await;
        assert_eq!(refused["ok"], false, "{refused}");
        let code = &refused["raw"]["errorCode"];
        assert_eq!(code, "UNSUPPORTED_CURRENCY", "{refused}");
    }

    async fn token_is_given_back(&self) {
        let ([plain, _], to) = (self.tokens(), self.app.customer(4).address());
        let had = self.holds(REFUNDED, plain);
        let job = ("execute", "debug-force-refund");
        let done = self.sells(job, (REFUNDED, plain), to).await;
        assert_eq!(done["error"], "Transaction failed: Refunded", "{done}");
        let cost = had - self.holds(REFUNDED, plain);
        assert!((1..DOLLARS / 10).contains(&cost), "{cost}: {done}");
    }

    /// It would take more than the quote says, and again when it is given back.
    async fn token_whose_transfers_cost_is_no_origin(&self) {
        let ([_, costly], to) = (self.tokens(), self.app.customer(5).address());
        let job = ("quote", "acceptance.test");
        let refused = self.sells(job, (TAXED, costly), to).await;
        assert_eq!(refused["ok"], false, "{refused}");
        let raw = &refused["raw"];
        assert_eq!(raw["errorCode"], "UNSUPPORTED_CURRENCY", "{refused}");
        let message = raw["message"].as_str().unwrap();
        assert!(message.starts_with("originCurrency: "), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_solana_are_bridged_both_ways_or_given_back() {
    let market = Market::open().await;
    tokio::join!(
        market.token_is_deposited(),
        market.deposit_with_a_lookup_table_is_found(),
        market.recipient_without_an_account_is_paid(),
        market.nobody_is_paid_in_a_token_whose_transfers_cost(),
        market.token_is_given_back(),
        market.token_whose_transfers_cost_is_no_origin(),
    );
    market.app.daemon.stop().await;
}
