//! Orders on chains that change their minds, or are dark: a deposit that leaves its chain before or
//! after it was filled for, a fill that leaves its own, a destination that nobody can reach. Nobody is
//! paid twice, nothing is paid for that is not there, and the status says so.

use std::time::Duration;

use crate::{
    kms::{Fake, Mood},
    support::{
        chain::{DEPOSITS, done, oracle},
        daemon::{Daemon, Setup},
    },
};
use alloy::{
    primitives::{Address, B256, Bytes, U256},
    providers::Provider,
};
use devnet::{
    node::Payload,
    proxy::{Lie, LyingProxy, rules},
    world::{DevChain, Devnet, Files, Options},
};
use intentd::admin::{self, lanes, solver};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

/// Blocks on top of a deposit that make it final.
const FINAL: u64 = 2;
/// Blocks on top of a fill that make it final; one makes it a success.
const FILL_FINAL: u64 = 8;
const MILLI: u64 = 1_000_000_000_000_000;
const AMOUNT: u64 = 100 * MILLI;
/// Callers without a key may ask 300 times a minute.
const POLL: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    world: Devnet,
    /// Between the daemon and the destination.
    proxy: LyingProxy,
    setup: Setup,
    daemon: Daemon,
    client: reqwest::Client,
}

/// A quoted order and the bytes of its deposit, which are the same after a reorg.
struct Deal {
    request: String,
    to: Address,
    promised: U256,
    wire: Bytes,
    payload: Payload,
    deposit: B256,
}

impl Fixture {
    async fn start() -> Self {
        Self::started(|setup| setup).await
    }

    async fn started(change: impl FnOnce(Setup) -> Setup) -> Self {
        Self::over(Self::world().await, change).await
    }

    async fn world() -> Devnet {
        let options = Options {
            finality_blocks: FINAL,
            ..Options::default()
        };
        Devnet::with(options).await.unwrap()
    }

    async fn over(world: Devnet, change: impl FnOnce(Setup) -> Setup) -> Self {
        let mut files = world.files();
        files.chains[1]["additionalData"]["finalizationBlocks"] = json!(FILL_FINAL);
        // Without allowances every transaction of the solver's is a payment.
        for network in files.market.as_array_mut().unwrap() {
            network.as_object_mut().unwrap().remove("approvalProxy");
        }
        let proxy = LyingProxy::start(&world.destination.node.url).await;
        let proxy = proxy.unwrap();
        let setup = oracle(&world, 0)
            .chains(&files)
            .with("DESTINATION_RPC_URL", proxy.url.as_str())
            .solver(&world.solver, "destination");
        let setup = change(setup);
        let daemon = setup.start().await;
        Self {
            world,
            proxy,
            setup,
            daemon,
            client: reqwest::Client::new(),
        }
    }

    async fn get(&self, target: &str) -> Value {
        let url = format!("{}{target}", self.daemon.integrator_url());
        let answer = self.client.get(url).send().await.unwrap();
        let status = answer.status();
        let told = answer.json().await.unwrap();
        assert_eq!(status, 200, "{target}: {told}");
        told
    }

    /// What a request for the `number`th order is answered with.
    async fn answer(&self, number: u8, more: Value) -> (u16, Value) {
        let to = Address::repeat_byte(number);
        let mut body = json!({
            "user": self.world.user.address(), "recipient": to, "refundTo": to,
            "originChainId": self.world.origin.node.chain_id,
            "destinationChainId": self.world.destination.node.chain_id,
            "originCurrency": Address::ZERO, "destinationCurrency": Address::ZERO,
            "amount": AMOUNT.to_string(), "tradeType": "EXACT_INPUT",
        });
        let fields = body.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let url = format!("{}/quote/v2", self.daemon.integrator_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Quotes the `number`th order, and signs its deposit.
    async fn quote(&self, number: u8) -> Deal {
        self.quoted(number, json!({})).await
    }

    async fn quoted(&self, number: u8, more: Value) -> Deal {
        let (origin, user) = (&self.world.origin.node, &self.world.user);
        let (_, quote) = self.answer(number, more).await;
        let step = &quote["steps"][0];
        let data = &step["items"][0]["data"];
        let text = |value: &Value| {
            let text = value.as_str();
            text.unwrap_or_else(|| panic!("{quote}")).to_owned()
        };
        let payload = Payload {
            to: Some(text(&data["to"]).parse().unwrap()),
            data: text(&data["data"]).parse::<Bytes>().unwrap().to_vec(),
            value: text(&data["value"]).parse().unwrap(),
        };
        let wire = origin.signed(user, payload.clone()).await.unwrap();
        Deal {
            request: text(&step["requestId"]),
            to: Address::repeat_byte(number),
            promised: text(&quote["details"]["currencyOut"]["amount"])
                .parse()
                .unwrap(),
            deposit: alloy::primitives::keccak256(&wire),
            wire,
            payload,
        }
    }

    /// The user's deposit is in a block.
    async fn deposit(&self, deal: &Deal) {
        let receipt = done(self.world.origin.node.broadcast(&deal.wire).await);
        assert_eq!(receipt.transaction_hash, deal.deposit);
    }

    /// A chain goes another way from `depth` blocks below its tip on, and grows longer than it was.
    async fn reorg(site: &DevChain, depth: u64) {
        site.node.reorg(depth).await.unwrap();
        site.node.mine(1, 1).await.unwrap();
    }

    async fn mine(site: &DevChain, blocks: u64) {
        site.node.mine(blocks, 1).await.unwrap();
    }

    /// Waits until the request stands at `wanted`.
    async fn until(&self, deal: &Deal, wanted: &str) -> Value {
        let mut last = Value::Null;
        let told = async {
            let mut polls = interval(POLL);
            while last["status"] != wanted {
                polls.tick().await;
                let target = format!("/intents/status/v3?requestId={}", deal.request);
                last = self.get(&target).await;
            }
        };
        let told = timeout(PATIENCE, told).await;
        assert!(told.is_ok(), "not {wanted}: {last}");
        last
    }

    /// Waits until the fill is in a block: `submitted` is told before it is sent, so that a block on
    /// top of it could be mined too early.
    async fn until_filled(&self, deal: &Deal) {
        let told = self.until(deal, "submitted").await;
        let hash = told["txHashes"][0].as_str().unwrap().parse().unwrap();
        let node = &self.world.destination.node;
        let landed = async {
            let mut polls = interval(POLL);
            while node.receipt(hash).await.unwrap().is_none() {
                polls.tick().await;
            }
        };
        let landed = timeout(PATIENCE, landed).await;
        assert!(landed.is_ok(), "{hash} is in no block: {told}");
    }

    /// What is told of the deposit's transaction.
    async fn transaction(&self, deal: &Deal) -> Value {
        let target = format!("/transactions/status?txHash={}", deal.deposit);
        self.get(&target).await["transactionStatus"].clone()
    }

    async fn received(&self, deal: &Deal) -> U256 {
        let node = &self.world.destination.node;
        node.balance(deal.to).await.unwrap()
    }

    /// Transactions that the solver has in blocks.
    async fn sent(&self, site: &DevChain) -> u64 {
        let count = (self.world.solver.address(), "latest");
        let count: U256 = site
            .node
            .rpc("eth_getTransactionCount", count)
            .await
            .unwrap();
        count.to()
    }

    async fn has(&self) -> U256 {
        let node = &self.world.destination.node;
        node.balance(self.world.solver.address()).await.unwrap()
    }

    /// The solver's own currency on the destination, as it says that it can spend it.
    async fn available(&self) -> U256 {
        let chain = self.world.destination.node.chain_id;
        let target = format!("/chains/liquidity?chainId={chain}");
        let told = self.get(&target).await;
        let balance = told["liquidity"][0]["balance"].as_str();
        balance.unwrap().parse().unwrap()
    }

    /// Everything of it can be spent, but the gas of fifty payments.
    async fn is_free(&self) -> bool {
        crate::support::is_gas_of_fifty(self.has().await - self.available().await)
    }

    /// What the daemon says to its operator about the solver.
    async fn operator(&self, question: solver::Question) -> solver::Answer {
        let question = admin::Question::Solver(question);
        match self.daemon.operator(&question).await {
            admin::Answer::Solver(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The operator sees what the solver's account did on the destination, and that nothing is to be healed.
    async fn lanes(&self) {
        let asked = async |question: lanes::Question| {
            let question = admin::Question::Lanes(question);
            match self.daemon.operator(&question).await {
                admin::Answer::Lanes(answer) => answer,
                other => panic!("{other:?}"),
            }
        };
        let network = || "destination".to_owned();
        let show = lanes::Question::Show {
            network: Some(network()),
        };
        match asked(show).await {
            lanes::Answer::Shown { accounts } => {
                assert_eq!(accounts.len(), 1);
                assert!(
                    accounts[0].next != Some("0".into())
                        && accounts[0].next.is_some()
                        && accounts[0].gaps.is_empty()
                );
                assert!(accounts[0].mined.is_ok(), "{accounts:?}");
            }
            other => panic!("{other:?}"),
        }
        let heal = lanes::Question::Heal { network: network() };
        match asked(heal).await {
            lanes::Answer::Healed { accounts } => {
                assert_eq!((accounts.len(), accounts[0].used_up.len()), (1, 0));
            }
            other => panic!("{other:?}"),
        }
    }

    /// A whole order from quote to success: the solver has had its turn.
    async fn another(&self, number: u8) {
        let deal = self.quote(number).await;
        self.deposit(&deal).await;
        Self::mine(&self.world.origin, FINAL).await;
        self.until_filled(&deal).await;
        Self::mine(&self.world.destination, 1).await;
        self.until(&deal, "success").await;
        assert_eq!(self.received(&deal).await, deal.promised);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_leaves_before_the_fill_is_not_filled_until_it_comes_back() {
    let fixture = Fixture::start().await;
    let (origin, destination) = (&fixture.world.origin, &fixture.world.destination);
    let deal = fixture.quote(1).await;
    fixture.deposit(&deal).await;
    fixture.until(&deal, "pending").await;
    assert_eq!(fixture.transaction(&deal).await, "success");

    Fixture::reorg(origin, 1).await;
    Fixture::mine(origin, 2 * FINAL).await;
    let told = fixture.until(&deal, "waiting").await;
    assert_eq!(told["inTxHashes"], json!([]));
    assert_eq!(fixture.transaction(&deal).await, "failure");

    // It comes back as it was: other deposits of the user's would take its nonce.
    assert_eq!(fixture.sent(destination).await, 0);
    fixture.deposit(&deal).await;
    fixture.until(&deal, "pending").await;
    assert_eq!(fixture.transaction(&deal).await, "success");
    Fixture::mine(origin, FINAL).await;
    fixture.until_filled(&deal).await;
    Fixture::mine(destination, 1).await;
    fixture.until(&deal, "success").await;
    fixture.another(2).await;
    assert_eq!(fixture.received(&deal).await, deal.promised);
    assert_eq!(fixture.sent(destination).await, 2);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_leaves_after_the_fill_fails_the_request_until_it_comes_back() {
    let fixture = Fixture::start().await;
    let (origin, destination) = (&fixture.world.origin, &fixture.world.destination);
    for (number, confirmed) in [(1, false), (2, true)] {
        let deal = fixture.quote(number).await;
        fixture.deposit(&deal).await;
        Fixture::mine(origin, FINAL).await;
        fixture.until_filled(&deal).await;
        if confirmed {
            Fixture::mine(destination, 1).await;
            fixture.until(&deal, "success").await;
        }

        Fixture::reorg(origin, FINAL + 1).await;
        let told = fixture.until(&deal, "failure").await;
        assert_eq!(told["failReason"], "DEPOSIT_REORGED", "{told}");
        assert_eq!(told["success"], false);
        assert_eq!(fixture.transaction(&deal).await, "failure");
        // However deep the fill gets, it is not a success without its deposit.
        Fixture::mine(destination, FILL_FINAL).await;
        Fixture::mine(origin, 2 * FINAL).await;

        fixture.deposit(&deal).await;
        Fixture::mine(origin, FINAL).await;
        fixture.until(&deal, "success").await;
        assert_eq!(fixture.transaction(&deal).await, "success");
        assert_eq!(fixture.received(&deal).await, deal.promised);
    }
    fixture.another(3).await;
    // One fill for each, and nothing given back.
    assert_eq!(fixture.sent(destination).await, 3);
    assert_eq!(fixture.sent(origin).await, 0);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fills_that_leave_their_chain_are_sent_again_and_pay_once() {
    let fixture = Fixture::start().await;
    let (origin, destination) = (&fixture.world.origin, &fixture.world.destination);
    let before = fixture.has().await;
    let (mut deals, mut hashes) = (Vec::new(), Vec::new());
    for number in [1, 2] {
        let deal = fixture.quote(number).await;
        fixture.deposit(&deal).await;
        Fixture::mine(origin, FINAL).await;
        fixture.until_filled(&deal).await;
        Fixture::mine(destination, 1).await;
        let told = fixture.until(&deal, "success").await;
        hashes.push(told["txHashes"].clone());
        deals.push(deal);
    }
    assert!(fixture.is_free().await);

    // Both fills, each with the block on top that made it a success.
    destination.node.automine(false).await.unwrap();
    Fixture::reorg(destination, 4).await;
    assert_eq!(fixture.has().await, before);
    for (deal, hashes) in deals.iter().zip(&hashes) {
        let told = fixture.until(deal, "submitted").await;
        assert_eq!(told["txHashes"], *hashes, "not the same bytes again");
    }
    // What they pay is held back again.
    let promised = deals.iter().map(|deal| deal.promised).sum::<U256>();
    let held = before - fixture.available().await;
    assert!(held > promised, "{held}");

    destination.node.automine(true).await.unwrap();
    Fixture::mine(destination, 2).await;
    for (deal, hashes) in deals.iter().zip(&hashes) {
        let told = fixture.until(deal, "success").await;
        assert_eq!(told["txHashes"], *hashes);
        assert_eq!(fixture.received(deal).await, deal.promised);
    }
    assert!(fixture.is_free().await);
    fixture.another(3).await;
    assert_eq!(fixture.sent(destination).await, 3);
    assert_eq!(fixture.sent(origin).await, 0);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_that_leaves_with_its_deposit_is_not_paid_again_before_that_is_back() {
    let fixture = Fixture::start().await;
    let origin = &fixture.world.origin;
    let referrer = json!({"referrer": "debug-force-refund"});
    let deal = fixture.quoted(1, referrer).await;
    fixture.deposit(&deal).await;
    let deposited = origin.node.tip().await.unwrap().number;
    Fixture::mine(origin, FINAL).await;
    while fixture.sent(origin).await == 0 {
        tokio::task::yield_now().await;
    }
    Fixture::mine(origin, 1).await;
    fixture.until(&deal, "refund").await;

    let depth = origin.node.tip().await.unwrap().number - deposited + 1;
    Fixture::reorg(origin, depth).await;
    origin.node.mine_every(1).await.unwrap();
    fixture.until(&deal, "failure").await;
    assert_eq!(origin.node.balance(deal.to).await.unwrap(), U256::ZERO);
    // Its nonce went to a transaction that does nothing.
    assert_eq!(fixture.sent(origin).await, 1);

    fixture.deposit(&deal).await;
    fixture.until(&deal, "refund").await;
    let given_back = origin.node.balance(deal.to).await.unwrap();
    assert!(!given_back.is_zero() && given_back < U256::from(AMOUNT));
    assert_eq!(fixture.sent(origin).await, 2);
    assert_eq!(fixture.sent(&fixture.world.destination).await, 0);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_that_is_dark_from_the_start_on_stops_nothing_else_and_is_served_when_it_is_back()
 {
    let mut fixture = Fixture::start().await;
    let unfilled = fixture.quote(1).await;
    // No other order can be deposited for before: the user's nonces follow each other.
    fixture.deposit(&unfilled).await;
    let refunded = fixture
        .quoted(2, json!({"referrer": "debug-force-refund"}))
        .await;
    fixture.proxy.lie(rules::always(Lie::Hang));
    fixture.daemon = fixture.daemon.restart().await;
    fixture.deposit(&refunded).await;
    let node = &fixture.world.origin.node;
    node.mine_every(1).await.unwrap();
    fixture.until(&refunded, "refund").await;
    let given_back = node.balance(refunded.to).await.unwrap();
    assert!(!given_back.is_zero() && given_back < U256::from(AMOUNT));
    let told = fixture.until(&unfilled, "pending").await;
    assert_eq!(told["txHashes"], json!([]));
    assert_eq!(fixture.sent(&fixture.world.destination).await, 0);

    fixture.proxy.honest();
    fixture.world.destination.node.mine_every(1).await.unwrap();
    fixture.until(&unfilled, "success").await;
    assert_eq!(fixture.received(&unfilled).await, unfilled.promised);
    assert_eq!(fixture.sent(&fixture.world.destination).await, 1);
    fixture.daemon.stop().await;
}

/// A stranger's wei before, between and after; twice the whole amount; half as much again at once.
#[tokio::test(flavor = "multi_thread")]
async fn deposits_beside_the_one_that_pays_change_nothing_of_the_fill() {
    let fixture = Fixture::start().await;
    let (origin, destination) = (&fixture.world.origin, &fixture.world.destination);
    let deal = fixture.quote(1).await;
    let more = async |value: u64| {
        let mut payload = deal.payload.clone();
        payload.value = U256::from(value);
        origin
            .node
            .transact(origin.deployer, payload)
            .await
            .unwrap();
    };
    more(1).await;
    Fixture::mine(origin, FINAL).await;
    // The index and the solver have seen it when another order is done.
    fixture.deposit(&deal).await;
    more(1).await;
    more(AMOUNT).await;
    Fixture::mine(origin, FINAL).await;
    fixture.until_filled(&deal).await;
    Fixture::mine(destination, 1).await;
    fixture.until(&deal, "success").await;
    more(1).await;
    Fixture::mine(origin, FINAL).await;
    Fixture::mine(destination, FILL_FINAL).await;
    // The second one goes back, on the origin.
    let back = async {
        let mut polls = interval(POLL);
        while origin.node.balance(deal.to).await.unwrap().is_zero() {
            polls.tick().await;
            Fixture::mine(origin, 1).await;
        }
    };
    assert!(timeout(PATIENCE, back).await.is_ok(), "nothing came back");
    let back = origin.node.balance(deal.to).await.unwrap();
    assert!(back > U256::from(AMOUNT - MILLI) && back < U256::from(AMOUNT));
    assert_eq!(fixture.received(&deal).await, deal.promised);
    assert_eq!(fixture.sent(destination).await, 1);
    assert_eq!(fixture.sent(origin).await, 1);
    let told = fixture.until(&deal, "success").await;
    assert_eq!(told["inTxHashes"].as_array().unwrap().len(), 2, "{told}");
    let all = async {
        let mut polls = interval(POLL);
        loop {
            polls.tick().await;
            let answer = fixture.operator(solver::Question::Parked { all: true, skip: 0 });
            let solver::Answer::Parked { parked, .. } = answer.await else {
                panic!("no list");
            };
            if parked.len() == 3 {
                return parked;
            }
        }
    };
    let parked = timeout(PATIENCE, all).await.unwrap();
    assert!(parked.iter().all(|left| left.parked.minor), "{parked:?}");
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_solver_gives_no_quotes_until_it_is_resumed() {
    let fixture = Fixture::start().await;
    let why = "a drill".to_owned();
    fixture.operator(solver::Question::Pause { why }).await;
    let body = json!({
        "user": fixture.world.user.address(),
        "originChainId": fixture.world.origin.node.chain_id,
        "destinationChainId": fixture.world.destination.node.chain_id,
        "originCurrency": Address::ZERO, "destinationCurrency": Address::ZERO,
        "amount": AMOUNT.to_string(), "tradeType": "EXACT_INPUT",
    });
    let url = format!("{}/quote/v2", fixture.daemon.integrator_url());
    let refused = fixture.client.post(url).json(&body).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["errorCode"], "SERVICE_UNAVAILABLE");
    let resumed = fixture.operator(solver::Question::Resume {}).await;
    assert_eq!(resumed, solver::Answer::Resumed { was: true });
    fixture.another(1).await;
    fixture.lanes().await;
    fixture.daemon.stop().await;
}

/// What was promised and what was deposited has the rest of the disk.
#[tokio::test(flavor = "multi_thread")]
async fn below_the_reserve_no_quote_is_given_and_everything_else_goes_on() {
    let journal = tempfile::TempDir::new().unwrap();
    let apart = journal.path().join("apart");
    let named = apart.to_str().unwrap();
    let mut fixture = Fixture::started(|setup| setup.with("JOURNAL_DIR", named)).await;
    let filled = fixture.quote(1).await;
    let referrer = json!({"referrer": "debug-force-refund"});
    let refunded = fixture.quoted(2, referrer).await;
    let low = fixture.setup.clone();
    let low = low.with("DISK_RESERVE", u64::MAX.to_string());
    fixture.daemon = low.start_in(fixture.daemon.end().await).await;

    let body = json!({
        "user": fixture.world.user.address(),
        "originChainId": fixture.world.origin.node.chain_id,
        "destinationChainId": fixture.world.destination.node.chain_id,
        "originCurrency": Address::ZERO, "destinationCurrency": Address::ZERO,
        "amount": AMOUNT.to_string(), "tradeType": "EXACT_INPUT",
    });
    let url = format!("{}/quote/v2", fixture.daemon.integrator_url());
    let refused = fixture.client.post(url).json(&body).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["errorCode"], "DISK_RESERVE", "{refused}");

    let origin = &fixture.world.origin;
    fixture.deposit(&filled).await;
    Fixture::mine(origin, FINAL).await;
    fixture.until_filled(&filled).await;
    Fixture::mine(&fixture.world.destination, 1).await;
    fixture.until(&filled, "success").await;
    assert_eq!(fixture.received(&filled).await, filled.promised);
    let again = origin
        .node
        .signed(&fixture.world.user, refunded.payload.clone());
    let sent = done(origin.node.broadcast(&again.await.unwrap()).await);
    Fixture::mine(origin, FINAL).await;
    while fixture.sent(origin).await == 0 {
        tokio::task::yield_now().await;
    }
    Fixture::mine(origin, 1).await;
    fixture.until(&refunded, "refund").await;
    let body = devnet::claim::deposit(origin, sent.transaction_hash);
    let signed = fixture.daemon.attest(DEPOSITS, &body).await;
    assert_eq!(signed.status, 200, "{}", signed.body);

    let place = fixture.daemon.end().await;
    assert!(apart.join("journal").is_dir());
    assert!(!place.path().join("data/journal").exists());
    assert!(place.path().join("data/store").is_dir());
}

/// A token with other decimals, and a proxy that is the router of somebody else, on the destination only.
#[tokio::test(flavor = "multi_thread")]
async fn a_market_file_that_is_not_what_the_chain_says_stops_trading_there() {
    let world = Devnet::start().await.unwrap();
    let mut files = world.files();
    let (origin, destination) = (0, 1);
    let currency = |files: &Files, network: usize| {
        let text = files.market[network]["currencies"][1]["address"].as_str();
        text.unwrap().to_owned()
    };
    let given = currency(&files, destination);
    files.market[destination]["currencies"][1]["decimals"] = json!(9);
    files.market[destination]["fillRouter"] = json!(given);
    // Its only provider is held to nothing.
    files.market[origin]["blooms"] = json!(false);
    let setup = oracle(&world, 0)
        .chains(&files)
        .solver(&world.solver, "destination");
    let place = tempfile::TempDir::new().unwrap();
    let checked = tokio::process::Command::new(env!("CARGO_BIN_EXE_intentd"))
        .arg("check-config")
        .env_clear()
        .envs(setup.environment(place.path()))
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    for wanted in [
        "WARNING: not traded: ",
        "9 decimals, the token has 6",
        "does not hand calls to",
        "market origin         as its chain says, WARNING: one provider's word for what was deposited",
    ] {
        assert!(told.contains(wanted), "{wanted} is not in {told}");
    }

    let daemon = setup.start().await;
    let chain = |network: usize| files.market[network]["chainId"].clone();
    let client = reqwest::Client::new();
    for (from, to) in [(origin, destination), (destination, origin)] {
        let body = json!({
            "user": world.user.address(), "originChainId": chain(from),
            "destinationChainId": chain(to), "originCurrency": Address::ZERO,
            "destinationCurrency": Address::ZERO, "amount": AMOUNT.to_string(),
            "tradeType": "EXACT_INPUT",
        });
        let url = format!("{}/quote/v2", daemon.integrator_url());
        let refused = client.post(url).json(&body).send().await.unwrap();
        assert_eq!(refused.status(), 503, "{from}");
        let refused: Value = refused.json().await.unwrap();
        assert_eq!(refused["errorCode"], "SERVICE_UNAVAILABLE");
    }
    // Nothing is allowed to a proxy that only the file calls one.
    let solver = world.solver.address();
    let node = &world.destination.node.provider;
    assert_eq!(node.get_transaction_count(solver).await.unwrap(), 0);
    daemon.stop().await;
}

/// What cannot be promised is not quoted, and nothing is paid meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_solver_whose_key_is_in_a_key_service_promises_and_pays() {
    for is_gcp in [true, false] {
        let world = Fixture::world().await;
        let key = world.solver.key();
        let fake = match is_gcp {
            true => Fake::gcp(&key).await,
            false => Fake::aws(&key).await,
        };
        let fixture = Fixture::over(world, |setup| fake.solving(setup)).await;
        fixture.another(1).await;
        // The order, and the fill.
        assert!(fake.vault.signed() >= 2);
        fake.vault.next(Mood::Denied, 1);
        let (status, answer) = fixture.answer(2, json!({})).await;
        let said = (status, answer["errorCode"].as_str());
        assert_eq!(said, (503, Some("SERVICE_UNAVAILABLE")), "{answer}");
        fixture.another(3).await;
        fixture.daemon.stop().await;
    }
}
