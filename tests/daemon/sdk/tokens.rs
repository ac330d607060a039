//! Tokens on Solana through the published client and its wallet adapter: one of the older program, one of Token-2022
//! whose transfers cost, and one of Token-2022 whose transfers cost nothing.

use std::{ops::Range, slice, sync::Arc};

use alloy::{
    hex::{decode, encode},
    primitives::{Address, U256},
};
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
/// Bytes of an account of the older token program, and of one of Token-2022, which says that it keeps its owner.
const ACCOUNT: usize = 165;
const NEWER_ACCOUNT: usize = 170;
/// Lamports of a signature.
const SIGNATURE: u64 = 5_000;
const COMPUTE_BUDGET: &str = "ComputeBudget111111111111111111111111111111";
/// Where the amount stands in a deposit's data: behind the eight bytes of its kind.
const DEPOSITED: Range<usize> = 8..16;
/// Steps of quotes, and how long web3.js makes their transactions, which is as long as the daemon finds them.
const COMPILED: &str = include_str!("../../../vm/fixtures/recorded/web3-sizes.json");
/// How long a deposit may wait that nobody watches.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

/// Who has money on Solana; each makes one deposit at most.
const SELLER: &str = "seller of tokens";
const COMPILER: &str = "seller with a lookup table";
const REFUNDED: &str = "seller who is refunded";
const TAXED: &str = "seller of costly tokens";
const NEWER: &str = "seller of newer tokens";
const NEWER_REFUNDED: &str = "seller of newer tokens who is refunded";
/// Who has tokens and no lamports, and who pays for their transactions.
const POOR: &str = "seller without lamports";
const POOR_REFUNDED: &str = "seller without lamports who is refunded";
const SPONSOR: &str = "sponsor";
/// Who has nothing there, not even an account of the tokens.
const BUYER: &str = "buyer of tokens";
const TAXED_BUYER: &str = "buyer of costly tokens";
const NEWER_BUYER: &str = "buyer of newer tokens";

/// The app, and Solana with its tokens, which makes blocks by itself.
struct Market {
    app: App,
    solana: Arc<Abroad>,
    _blocks: Pace,
}

impl Market {
    async fn open() -> Self {
        let solana = Arc::new(Abroad::solana().await.unwrap());
        for name in [
            SELLER,
            COMPILER,
            REFUNDED,
            TAXED,
            NEWER,
            NEWER_REFUNDED,
            SPONSOR,
        ] {
            let account = solana.account(name).unwrap();
            solana.endow(&account).await.unwrap();
        }
        let blocks = solana.run();
        let app = App::among(slice::from_ref(&solana), false, |_| ()).await;
        let market = Self {
            app,
            solana,
            _blocks: blocks,
        };
        for name in [POOR, POOR_REFUNDED] {
            let account = market.account(name).parse().unwrap();
            market.chain().give_tokens(&account).unwrap();
        }
        market
    }

    fn chain(&self) -> &LocalChain {
        match &*self.solana {
            Abroad::Solana(chain) => chain,
            Abroad::Bitcoin(_) => panic!("not Solana"),
        }
    }

    /// The plain token, the one whose transfers cost, and the other one of Token-2022.
    fn tokens(&self) -> [Token; 3] {
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

    fn lamports(&self, name: &str) -> u64 {
        let account = self.account(name).parse().unwrap();
        self.chain().cluster.balance(&account)
    }

    async fn ether(&self, of: Address) -> U256 {
        held(&self.app.world.destination, Address::ZERO, of).await
    }

    /// What is asked for a quote from a token to the native currency of the EVM chain.
    fn sale(&self, (who, token): (&str, Token), to: Address) -> Value {
        json!({
            "chainId": self.solana.number(), "toChainId": self.app.world.destination.node.chain_id,
            "currency": token.0.to_string(), "toCurrency": ETH, "amount": DOLLARS.to_string(),
            "tradeType": "EXACT_INPUT", "user": self.account(who), "recipient": hex(to),
        })
    }

    /// What the client does as somebody on Solana, with such a quote.
    async fn sells(
        &self,
        (what, source): (&str, &str),
        (who, token): (&str, Token),
        to: Address,
    ) -> Value {
        let quote = self.sale((who, token), to);
        let wallet = self.solana.wallet(who).unwrap();
        let job = json!({"what": what, "source": source, "abroad": [wallet], "quote": quote});
        self.app.drive(job).await
    }

    /// The same of the plain token, where the sponsor pays for the transaction, whose work is limited; with the quote
    /// `quoted` where that is one.
    async fn sponsored(&self, what: &str, (who, to): (&str, Address), quoted: &Value) -> Value {
        let [plain, ..] = self.tokens();
        let mut quote = self.sale((who, plain), to);
        quote["options"] = json!({
            "depositFeePayer": self.account(SPONSOR), "includeComputeUnitLimit": true,
        });
        let mut wallet = self.solana.wallet(who).unwrap();
        wallet["sponsor"] = self.solana.wallet(SPONSOR).unwrap()["secret"].clone();
        let job = json!({"what": what, "abroad": [wallet], "quote": quote, "quoted": quoted});
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

    async fn token_is_deposited(&self, (who, token): (&str, Token), to: Address) {
        let (had, before) = (self.holds(who, token), self.ether(to).await);
        let job = ("execute", "acceptance.test");
        let done = self.sells(job, (who, token), to).await;
        self.app.succeeded(&done).await;
        assert_eq!(step_ids(&done), ["deposit"]);
        assert_eq!(had - self.holds(who, token), DOLLARS);
        assert_eq!(self.ether(to).await - before, promised(&done), "{done}");
    }

    /// The vault has its account for the tokens: whoever deposits first opens that.
    async fn sponsor_pays_for_a_deposit(&self) {
        let ([plain, ..], to) = (self.tokens(), self.app.customer(3).address());
        let (had, before) = (self.holds(POOR, plain), self.ether(to).await);
        let lamports = self.lamports(SPONSOR);
        let done = self.sponsored("execute", (POOR, to), &Value::Null).await;
        self.app.succeeded(&done).await;
        assert_eq!(step_ids(&done), ["deposit"]);
        let instructions = &done["quote"]["steps"][0]["items"][0]["data"]["instructions"];
        assert_eq!(instructions[0]["programId"], COMPUTE_BUDGET, "{done}");
        assert_eq!(had - self.holds(POOR, plain), DOLLARS);
        assert_eq!(self.ether(to).await - before, promised(&done), "{done}");
        // The sponsor's and the user's.
        assert_eq!(lamports - self.lamports(SPONSOR), 2 * SIGNATURE);
        assert_eq!(self.lamports(POOR), 0);
    }

    /// It is the user's own, whoever pays for the transaction: the request is told as refunded.
    async fn short_deposit_that_a_sponsor_pays_for_is_given_back(&self) {
        let who = (POOR_REFUNDED, self.app.customer(5).address());
        let [plain, ..] = self.tokens();
        let had = self.holds(POOR_REFUNDED, plain);
        let quoted = self.sponsored("quote", who, &Value::Null).await;
        self.app.succeeded(&quoted).await;
        let mut short = quoted["quote"].clone();
        let instructions = &mut short["steps"][0]["items"][0]["data"]["instructions"];
        let deposit = instructions.as_array_mut().unwrap().last_mut().unwrap();
        let mut data = decode(deposit["data"].as_str().unwrap()).unwrap();
        data[DEPOSITED].copy_from_slice(&(DOLLARS - 1).to_le_bytes());
        deposit["data"] = encode(data).into();
        let done = self.sponsored("execute", who, &short).await;
        assert_eq!(done["error"], "Transaction failed: Refunded", "{done}");
        let cost = had - self.holds(POOR_REFUNDED, plain);
        assert!((1..DOLLARS / 10).contains(&cost), "{cost}: {done}");
        let status = self.app.status(&short).await;
        let refunds = status["txHashes"].as_array();
        assert!(refunds.is_some_and(|all| !all.is_empty()), "{status}");
    }

    async fn deposits_that_a_sponsor_pays_for(&self) {
        let [plain, ..] = self.tokens();
        let to = self.app.customer(0).address();
        self.token_is_deposited((SELLER, plain), to).await;
        self.sponsor_pays_for_a_deposit().await;
        self.short_deposit_that_a_sponsor_pays_for_is_given_back()
            .await;
    }

    async fn transactions_are_as_long_as_web3_makes_them(&self) {
        let compiled: Value = serde_json::from_str(COMPILED).unwrap();
        let steps = compiled.as_array().unwrap().iter();
        let known: Vec<_> = steps.map(|one| one["bytes"].clone()).collect();
        let job = json!({"what": "sizes", "compiled": compiled});
        let told = self.app.drive(job).await;
        assert_eq!(told["sizes"], json!(known), "{told}");
    }

    /// A wallet compiles the same step with a lookup table of all that does not sign.
    async fn deposit_with_a_lookup_table_is_found(&self) {
        let ([plain, ..], to) = (self.tokens(), self.app.customer(1).address());
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
    async fn recipient_without_an_account_is_paid(
        &self,
        (customer, to): (usize, &str),
        (token, bytes): (Token, usize),
    ) {
        let known = self.buys("quote", (customer, SELLER), token).await;
        assert_eq!(self.holds(to, token), 0);
        let done = self.buys("execute", (customer, to), token).await;
        self.app.succeeded(&done).await;
        let got = self.holds(to, token);
        assert_eq!(U256::from(got), promised(&done), "{done}");
        let gas = |said: &Value| amount(said, "/fees/relayerGas/amount");
        let more = gas(&done) - gas(&known);
        // A SOL of 10^9 lamports is 150 dollars, an ether of 10^18 wei 2,500.
        let rent = U256::from(self.chain().cluster.rent(bytes)) * U256::from(60_000_000);
        let rents = rent - rent / U256::from(100)..rent * U256::from(2);
        assert!(rents.contains(&more), "{more} of {rent}: {known} {done}");
    }

    /// What a transfer costs is in no price, and its issuer may raise it.
    async fn nobody_is_paid_in_a_token_whose_transfers_cost(&self) {
        let [_, costly, _] = self.tokens();
        let refused = self.buys("quote", (3, TAXED_BUYER), costly).await;
        assert_eq!(refused["ok"], false, "{refused}");
        let code = &refused["raw"]["errorCode"];
        assert_eq!(code, "UNSUPPORTED_CURRENCY", "{refused}");
    }

    async fn token_is_given_back(&self, (who, token): (&str, Token)) {
        let (had, to) = (self.holds(who, token), self.app.customer(5).address());
        let job = ("execute", "debug-force-refund");
        let done = self.sells(job, (who, token), to).await;
        assert_eq!(done["error"], "Transaction failed: Refunded", "{done}");
        let cost = had - self.holds(who, token);
        assert!((1..DOLLARS / 10).contains(&cost), "{cost}: {done}");
    }

    async fn tokens_are_given_back(&self) {
        let [plain, _, newer] = self.tokens();
        self.token_is_given_back((REFUNDED, plain)).await;
        self.token_is_given_back((NEWER_REFUNDED, newer)).await;
    }

    async fn recipients_without_an_account_are_paid(&self) {
        let [plain, _, newer] = self.tokens();
        self.recipient_without_an_account_is_paid((2, BUYER), (plain, ACCOUNT))
            .await;
        self.recipient_without_an_account_is_paid((5, NEWER_BUYER), (newer, NEWER_ACCOUNT))
            .await;
    }

    /// The vault has no account for the newer token: the first deposit opens one.
    async fn deposits_with_a_lookup_table_and_of_the_newer_token(&self) {
        self.deposit_with_a_lookup_table_is_found().await;
        let [.., newer] = self.tokens();
        let to = self.app.customer(4).address();
        self.token_is_deposited((NEWER, newer), to).await;
    }

    /// It would take more than the quote says, and again when it is given back.
    async fn token_whose_transfers_cost_is_no_origin(&self) {
        let ([_, costly, _], to) = (self.tokens(), self.app.customer(5).address());
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
        market.deposits_that_a_sponsor_pays_for(),
        market.transactions_are_as_long_as_web3_makes_them(),
        market.deposits_with_a_lookup_table_and_of_the_newer_token(),
        market.recipients_without_an_account_are_paid(),
        market.nobody_is_paid_in_a_token_whose_transfers_cost(),
        market.tokens_are_given_back(),
        market.token_whose_transfers_cost_is_no_origin(),
    );
    market.app.daemon.stop().await;
}
