//! The settlement worker against what it works with: real oracles over real chains, and the contract
//! that takes or refuses what they signed. Between the worker and the oracles stands somebody who can
//! spoil their answers.

use std::sync::{Arc, Mutex};

use crate::support::{
    chain::{DEPOSITS, Deal, FEE, FILLS, REFUNDS, done, finalize, finalize_hub, native, oracle},
    daemon::{Daemon, daemon},
    http::{self, Asked, Server},
};
use alloy::{
    primitives::{Address, B256, U256},
    providers::Provider,
};
use bytes::Bytes;
use devnet::{
    claim,
    node::Payload,
    world::{Deposit, Devnet, Execution, Money, Options},
};
use http_body_util::Full;
use hyper::{Response, StatusCode};
use intentd::{
    chains::Chains,
    config::Config,
    request::{
        self, Operation, Request,
        fact::{self, Applied, Facts, Inclusion, Purpose, Standing},
    },
    sign::{KeyRing, raw::RawKey},
    solver::{
        account::{SendLimits, SolverAccount},
        chain::TradingChain,
        claimable,
        keys::Keys,
        settle::{
            SENDING, Settler,
            oracle::{Http, OracleClient},
        },
    },
    store::{
        Batch, Store,
        memory::MemoryStore,
        requests::Requests,
        rows::{
            lease,
            settlement::{self as row, Part, Settlement},
        },
        sled::SledStore,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use vm::protocol::{
    id::{deterministic, outcome},
    limits::SETTLEMENT_WORK,
};

const AMOUNT: u64 = 1_000;
/// Longer than any pause between tries, in milliseconds.
const LONG: u64 = 3_600_000;
/// Longer than anything here takes, at a block per second.
const MOST_BLOCKS: usize = 120;

/// What becomes of an oracle's answer on its way.
#[derive(Clone, Copy)]
enum Mood {
    Honest,
    /// The connection closes without an answer.
    Down,
    /// This instead, whatever was asked.
    Says(u16, &'static str),
    /// The true answer, changed.
    Spoilt(fn(&mut Value)),
    /// The answer about the other side of the order.
    Swapped,
}

struct Rig {
    world: Devnet,
    oracles: Vec<Daemon>,
    mood: Arc<Mutex<Mood>>,
    between: Server,
    chains: Chains,
    contract: vm::Address,
    requests: Requests,
    now: u64,
    _directory: TempDir,
}

/// An order that ended, and what the oracles are asked about it.
struct Ended {
    id: B256,
    deposit: Deposit,
    /// Route and body: of the deposit, of the outcome.
    claims: [(&'static str, Value); 2],
}

impl Rig {
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let directory = TempDir::new().unwrap();
        let mut oracles = Vec::new();
        let mut asked = oracle(&world, 0);
        for number in [1, 2] {
            let peer = oracle(&world, number).start().await;
            asked = asked.peer(&peer, "");
            oracles.push(peer);
        }
        let config = asked.environment(directory.path());
        let chains = Chains::load(&Config::from_variables(config).unwrap()).unwrap();
        oracles.insert(0, asked.start().await);
        let mood = Arc::new(Mutex::new(Mood::Honest));
        let (url, current) = (oracles[0].url.clone(), mood.clone());
        let between = http::serve(move |asked| {
            let mood = *current.lock().unwrap();
            pass(mood, url.clone(), asked)
        });
        Self {
            between: between.await,
            contract: vm::SETTLEMENT
                .address(&format!("{:#x}", world.hub.oracle))
                .unwrap(),
            requests: Requests::new(Arc::new(MemoryStore::new())),
            now: world.origin.node.tip().await.unwrap().time * 1_000,
            mood,
            oracles,
            chains,
            world,
            _directory: directory,
        }
    }

    /// The worker, started over the same store.
    async fn settler(&self) -> Settler {
        let hub = self.chains.hub().unwrap();
        let (chain, providers) = (hub.chain.clone(), hub.trading_providers.clone());
        let number = self.world.hub.node.chain_id;
        let chain = TradingChain::plain(chain, number, providers, hub.required).unwrap();
        let signer = Arc::new(RawKey::parse(&self.world.solver.key()).unwrap());
        let keys = Keys {
            current: signer.clone(),
            former: [].into(),
            family: vm::SETTLEMENT,
        };
        let store = self.requests.store().clone();
        let keyring = KeyRing::of_secp256k1(signer);
        let limits = SendLimits::default();
        let account = SolverAccount::open(Arc::new(chain), store, &keyring, limits, self.now);
        let url = format!("http://{}", self.between.address).parse().unwrap();
        let http = Http::new(url, None, std::time::Duration::from_secs(30)).unwrap();
        Settler {
            keys,
            requests: self.requests.clone(),
            account: Arc::new(account.await.unwrap()),
            oracle: OracleClient::over(Arc::new(http)),
            contract: self.contract.clone(),
            exposure: Arc::default(),
            sending: Semaphore::new(SENDING),
        }
    }

    fn mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// One round after every pause.
    async fn round(&mut self, settler: &Settler) {
        self.now += LONG;
        settler.round(self.now).await.unwrap();
    }

    /// Rounds until nothing is left to settle; blocks come in between.
    async fn finish(&mut self, settler: &Settler, ended: &Ended) {
        for _ in 0..10 {
            self.round(settler).await;
            if self.row(ended).await.is_none() {
                return;
            }
            finalize_hub(&self.world).await;
        }
        assert_eq!(self.row(ended).await, None);
    }

    /// A deposit that was filled or refunded, handed over to the worker.
    async fn ended(&self, purpose: Purpose, salt: u64) -> Ended {
        let deal = Deal::new(&self.world, native(AMOUNT), native(900), salt).await;
        let deposit = deal.deposit().await;
        let deposits = std::slice::from_ref(&deposit);
        let (transaction, claim) = match purpose {
            Purpose::Fill => {
                let hash = deal.fill().await;
                (hash, (FILLS, claim::fill(&deal.order, deposits, hash)))
            }
            Purpose::Refund | Purpose::Excess => {
                let hash = deal.refund().await;
                let body = claim::refund(&deal.order, deposits, &[hash]);
                (hash, (REFUNDS, body))
            }
        };
        let request = self.request(&deal, salt);
        self.record(&request, &deposit, (purpose, transaction))
            .await;
        let first = claim::deposit(&self.world.origin, deposit.transaction);
        Ended {
            id: request.id,
            claims: [(DEPOSITS, first), claim],
            deposit,
        }
    }

    /// As the quoter stores it.
    fn request(&self, deal: &Deal<'_>, salt: u64) -> Request {
        let leg = |site: &devnet::world::DevChain, amount: u64| request::Leg {
            chain: site.node.chain_id,
            network: site.id.to_owned(),
            currency: format!("{:#x}", Address::ZERO),
            amount: U256::from(amount),
            minimum: U256::from(amount),
        };
        let user = format!("{:#x}", self.world.user.address());
        Request {
            id: B256::from(U256::from(salt)),
            order_id: deal.order.id,
            order: deal.order.order.clone(),
            order_signature: deal.order.signature.clone(),
            operation: Operation::Bridge,
            user: user.clone(),
            recipient: user.clone(),
            refund_to: user,
            origin: leg(&self.world.origin, AMOUNT),
            destination: leg(&self.world.destination, 900),
            referrer: None,
            api_key: None,
            created_at: self.now,
            ..crate::support::request::request(0, "")
        }
    }

    /// As index and solver leave it.
    async fn record(
        &self,
        request: &Request,
        deposit: &Deposit,
        (purpose, transaction): (Purpose, B256),
    ) {
        self.requests.insert(request, Batch::new()).await.unwrap();
        let row = Settlement {
            purpose,
            deposit: deposit.onchain_id,
            transaction: transaction.to_string(),
            option: 0,
            recorded: true,
            deposited: Part::Pending,
            outcome: Part::Pending,
            since: self.now,
            tries: 0,
            not_before: 0,
            why: None,
            refused: false,
        };
        let key = row::key(&request.id, &deposit.onchain_id);
        let batch = Batch::new().put(key, row.encode().unwrap());
        let seen = self.seen(deposit);
        let told = self.requests.record(&request.id, self.now, batch, |facts| {
            facts.deposits.push(seen.clone());
        });
        told.await.unwrap();
    }

    /// A deposit as the index records it.
    fn seen(&self, deposit: &Deposit) -> fact::Deposit {
        fact::Deposit {
            onchain_id: deposit.onchain_id,
            network: self.world.origin.id.to_owned(),
            transaction: deposit.transaction.to_string(),
            depository: format!("{:#x}", self.world.origin.depository),
            depositor: format!("{:#x}", self.world.user.address()),
            currency: format!("{:#x}", Address::ZERO),
            amount: U256::from(AMOUNT),
            place: Inclusion {
                number: 1,
                hash: B256::ZERO,
                time: self.now / 1_000,
            },
            standing: Standing::Final,
            together: 1,
            own: true,
            named_by_other: false,
        }
    }

    async fn row(&self, ended: &Ended) -> Option<Settlement> {
        let key = row::key(&ended.id, &ended.deposit.onchain_id);
        let found = self.requests.store().read(&key).await.unwrap();
        found.map(|bytes| Settlement::decode(&bytes).unwrap())
    }

    async fn facts(&self, ended: &Ended) -> Facts {
        self.requests.facts(&ended.id).await.unwrap()
    }

    /// What the oracles sign about one side of the order.
    async fn attested(&self, ended: &Ended, side: usize) -> Execution {
        let (route, body) = &ended.claims[side];
        let body = claim::with_peers(body.clone());
        let answer = self.oracles[0].attest(route, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        claim::execution(&answer.json()).unwrap()
    }

    /// How often the hub has acted on each side.
    async fn executions(&self, ended: &Ended) -> [usize; 2] {
        let mut counts = [0; 2];
        for (side, count) in counts.iter_mut().enumerate() {
            let key = self.attested(ended, side).await.idempotency_key;
            *count = self.world.hub.executions(key).await.unwrap().len();
        }
        counts
    }

    /// What the order's account and the solver's hold at the hub.
    async fn held(&self, ended: &Ended) -> [u64; 2] {
        let world = &self.world;
        let id = world.origin.token_id(Address::ZERO).unwrap();
        let solver = world.destination.alias(world.solver.address()).unwrap();
        let mut held = [0; 2];
        for (owner, held) in [ended.deposit.account, solver].into_iter().zip(&mut held) {
            let balance = world.hub.balance(owner, id).await.unwrap();
            *held = balance.try_into().unwrap();
        }
        held
    }

    /// What is told about a side is what the hub did: one execution, in this transaction.
    async fn told_truly(&self, ended: &Ended, side: usize, told: Option<&Applied>) {
        let told = told.unwrap();
        let attested = self.attested(ended, side).await;
        let key = attested.idempotency_key;
        assert_eq!(told.execution["idempotencyKey"], json!(key));
        assert_eq!(told.execution["actions"], json!(attested.actions));
        let executions = self.world.hub.executions(key).await.unwrap();
        assert_eq!(executions, [told.transaction.parse::<B256>().unwrap()]);
    }

    /// Gas of both transactions that settled an order.
    async fn gas(&self, told: &fact::Settlement) -> u64 {
        let mut gas = 0;
        for side in [&told.deposit, &told.outcome] {
            let hash = side.as_ref().unwrap().transaction.parse().unwrap();
            let node = &self.world.hub.node.provider;
            let receipt = node.get_transaction_receipt(hash).await.unwrap();
            gas += receipt.unwrap().gas_used;
        }
        gas
    }

    /// Nothing has been settled, sent or told.
    async fn untouched(&self, ended: &Ended) {
        let row = self.row(ended).await.unwrap();
        assert_eq!((row.deposited, row.outcome), (Part::Pending, Part::Pending));
        assert!(row.not_before > self.now);
        assert_eq!(self.facts(ended).await.settlement, None);
        assert_eq!(self.held(ended).await, [0, 0]);
        assert_eq!(self.sent().await, 0);
    }

    /// The solver's transactions in the hub's blocks.
    async fn sent(&self) -> u64 {
        let solver = self.world.solver.address();
        let node = &self.world.hub.node.provider;
        node.get_transaction_count(solver).await.unwrap()
    }

    async fn stop(self) {
        for oracle in self.oracles {
            oracle.stop().await;
        }
    }
}

/// Asks the oracle at `url`, and answers as the mood is.
async fn pass(mood: Mood, url: String, asked: Asked) -> Option<Response<Full<Bytes>>> {
    let mut target = asked.target;
    match mood {
        Mood::Honest | Mood::Spoilt(_) => {}
        Mood::Down => return None,
        Mood::Says(status, body) => {
            let status = StatusCode::from_u16(status).unwrap();
            return Some(http::json(status, body.as_bytes().to_vec()));
        }
        // The deposit's transaction is known to any claim.
        Mood::Swapped => target = DEPOSITS.to_owned(),
    }
    let mut body: Value = serde_json::from_slice(&asked.body).unwrap();
    if let Mood::Swapped = mood {
        let input = &body["inputs"][0]["transactionId"];
        body = json!({"chainId": "origin", "transactionId": input, "requestPeerSignatures": true});
    }
    let client = reqwest::Client::new();
    let answer = client.post(format!("{url}{target}")).json(&body).send();
    let answer = answer.await.unwrap();
    let status = answer.status();
    let mut answer: Value = answer.json().await.unwrap();
    if let Mood::Spoilt(change) = mood {
        change(&mut answer);
    }
    Some(http::json(status, answer.to_string().into_bytes()))
}

fn one_signature(answer: &mut Value) {
    answer["execution"]["signatures"]
        .as_array_mut()
        .unwrap()
        .truncate(1);
}

fn one_signer_twice(answer: &mut Value) {
    let signatures = answer["execution"]["signatures"].as_array_mut().unwrap();
    signatures[1] = signatures[0].clone();
    signatures[2] = signatures[0].clone();
}

/// More for the solver than was signed.
fn other_actions(answer: &mut Value) {
    let actions = answer["execution"]["actions"].as_array_mut().unwrap();
    let again = actions[0].clone();
    actions.push(again);
}

fn unreadable(answer: &mut Value) {
    answer["execution"]["actions"] = json!("0x");
}

fn no_execution(answer: &mut Value) {
    answer["execution"] = Value::Null;
}

#[tokio::test(flavor = "multi_thread")]
async fn fills_and_refunds_are_settled_once_and_told_as_they_were() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let mut earned = 0;
    for (salt, purpose) in [(1, Purpose::Fill), (2, Purpose::Refund)] {
        let ended = rig.ended(purpose, salt).await;
        rig.finish(&settler, &ended).await;
        // A fee is owed for a fill only.
        earned += match purpose {
            Purpose::Fill => AMOUNT - FEE,
            Purpose::Refund | Purpose::Excess => AMOUNT,
        };
        assert_eq!(rig.held(&ended).await, [0, earned]);
        let told = rig.facts(&ended).await.settlement.unwrap();
        rig.told_truly(&ended, 0, told.deposit.as_ref()).await;
        rig.told_truly(&ended, 1, told.outcome.as_ref()).await;
        // What quotes and refunds charge for it covers it, and is no fiction.
        let gas = rig.gas(&told).await;
        println!("{purpose:?}: settled with {gas} gas");
        assert!(
            (SETTLEMENT_WORK / 4..=SETTLEMENT_WORK).contains(&gas),
            "{purpose:?}: {gas}"
        );
    }
    let sent = rig.sent().await;
    assert_eq!(sent, 4);
    rig.round(&settler).await;
    assert_eq!(rig.sent().await, sent);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oracle_that_is_down_or_talks_rubbish_is_asked_again() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    let moods = [
        Mood::Down,
        Mood::Says(200, "<html>"),
        Mood::Says(200, "{}"),
        Mood::Says(400, "<html>"),
        Mood::Says(500, "{}"),
        Mood::Says(503, r#"{"code": "QUORUM_UNAVAILABLE"}"#),
        Mood::Spoilt(no_execution),
        Mood::Spoilt(unreadable),
    ];
    for mood in moods {
        rig.mood(mood);
        rig.round(&settler).await;
        rig.untouched(&ended).await;
    }
    rig.mood(Mood::Honest);
    rig.finish(&settler, &ended).await;
    assert_eq!(rig.executions(&ended).await, [1, 1]);
    assert_eq!(rig.held(&ended).await, [0, AMOUNT - FEE]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attestations_that_the_contract_refuses_are_neither_sent_nor_told() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    for spoil in [one_signature, one_signer_twice, other_actions] {
        rig.mood(Mood::Spoilt(spoil));
        rig.round(&settler).await;
        rig.untouched(&ended).await;
    }
    rig.mood(Mood::Honest);
    rig.finish(&settler, &ended).await;
    assert_eq!(rig.executions(&ended).await, [1, 1]);
    rig.stop().await;
}

/// A true attestation of something else, which the contract has taken long ago.
#[tokio::test(flavor = "multi_thread")]
async fn the_attestation_of_something_else_settles_nothing() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    rig.round(&settler).await;
    finalize_hub(&rig.world).await;
    rig.round(&settler).await;
    let row = rig.row(&ended).await.unwrap();
    assert_eq!((row.deposited, row.outcome), (Part::Applied, Part::Pending));
    rig.mood(Mood::Swapped);
    rig.round(&settler).await;
    let row = rig.row(&ended).await.unwrap();
    assert_eq!(row.outcome, Part::Pending);
    assert_eq!(rig.held(&ended).await, [AMOUNT, 0]);
    rig.mood(Mood::Honest);
    rig.finish(&settler, &ended).await;
    assert_eq!(rig.held(&ended).await, [0, AMOUNT - FEE]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_at_any_point_settles_once() {
    let mut rig = Rig::start().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    let mut before = rig.settler().await;
    for _ in 0..10 {
        let settler = rig.settler().await;
        // Who held the lane until now can do nothing any more.
        rig.round(&before).await;
        let sent = rig.sent().await;
        rig.round(&settler).await;
        assert!(rig.sent().await <= sent + 1);
        finalize_hub(&rig.world).await;
        before = settler;
    }
    assert_eq!(rig.row(&ended).await, None);
    assert_eq!(rig.executions(&ended).await, [1, 1]);
    assert_eq!(rig.sent().await, 2);
    let told = rig.facts(&ended).await.settlement.unwrap();
    rig.told_truly(&ended, 0, told.deposit.as_ref()).await;
    rig.told_truly(&ended, 1, told.outcome.as_ref()).await;
    rig.stop().await;
}

/// Anybody may submit an execution. It counts when it is final, and nobody claims its transaction.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_submitted_counts_when_it_is_final() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    let execution = rig.attested(&ended, 0).await;
    rig.world.hub.submit(execution).await.unwrap();
    rig.round(&settler).await;
    assert_eq!(rig.row(&ended).await.unwrap().deposited, Part::Pending);
    finalize_hub(&rig.world).await;
    rig.finish(&settler, &ended).await;
    assert_eq!(rig.sent().await, 1);
    assert_eq!(rig.executions(&ended).await, [1, 1]);
    let told = rig.facts(&ended).await.settlement.unwrap();
    assert_eq!(told.deposit, None);
    rig.told_truly(&ended, 1, told.outcome.as_ref()).await;
    rig.stop().await;
}

/// The hub's chain forgets the transaction: it is sent again, and told when it is final.
#[tokio::test(flavor = "multi_thread")]
async fn a_reorg_of_the_hub_is_survived() {
    let mut rig = Rig::start().await;
    let settler = rig.settler().await;
    let ended = rig.ended(Purpose::Fill, 1).await;
    rig.round(&settler).await;
    let key = rig.attested(&ended, 0).await.idempotency_key;
    assert!(rig.world.hub.is_executed(key).await.unwrap());
    rig.round(&settler).await;
    assert_eq!(rig.facts(&ended).await.settlement, None);
    rig.world.hub.node.reorg(1).await.unwrap();
    assert!(!rig.world.hub.is_executed(key).await.unwrap());
    rig.finish(&settler, &ended).await;
    assert_eq!(rig.executions(&ended).await, [1, 1]);
    let told = rig.facts(&ended).await.settlement.unwrap();
    rig.told_truly(&ended, 0, told.deposit.as_ref()).await;
    rig.stop().await;
}

/// Chains that make blocks by themselves, one oracle whose signature is enough, and a solver's daemon.
struct Trade {
    world: Devnet,
    oracle: Daemon,
    client: reqwest::Client,
}

impl Trade {
    async fn start() -> (Self, Daemon) {
        let world = Devnet::with(Options {
            block_time: Some(1),
            oracles: 1,
            threshold: 1,
            ..Options::default()
        });
        let world = world.await.unwrap();
        let oracle = oracle(&world, 0).start().await;
        let solver = daemon()
            .chains(&world.files())
            .solver(&world.solver, "destination")
            .with("SOLVER_ORACLE_URL", oracle.url.as_str());
        let client = reqwest::Client::new();
        let trade = Self {
            world,
            oracle,
            client,
        };
        (trade, solver.start().await)
    }

    /// Quotes ether for ether and sends the deposit; the quote.
    async fn deposit(&self, solver: &Daemon) -> Value {
        let user = format!("{:#x}", self.world.user.address());
        let (origin, destination) = (&self.world.origin.node, &self.world.destination.node);
        let eth = format!("{:#x}", Address::ZERO);
        let body = json!({
            "user": user, "recipient": user, "includeProtocolData": true,
            "originChainId": origin.chain_id, "destinationChainId": destination.chain_id,
            "originCurrency": eth, "destinationCurrency": eth,
            "amount": "100000000000000000", "tradeType": "EXACT_INPUT",
        });
        let url = format!("{}/quote/v2", solver.integrator_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        let quote: Value = answer.json().await.unwrap();
        let data = &quote["steps"][0]["items"][0]["data"];
        let text = |name: &str| data[name].as_str().unwrap();
        let payload = Payload {
            to: Some(text("to").parse().unwrap()),
            data: text("data")
                .parse::<alloy::primitives::Bytes>()
                .unwrap()
                .into(),
            value: text("value").parse().unwrap(),
        };
        let user = self.world.user.address();
        origin.transact(user, payload).await.unwrap();
        quote
    }

    /// The fill's transaction, as soon as it is a success; and the deposit's.
    async fn filled(&self, solver: &Daemon, quote: &Value) -> [B256; 2] {
        let id = quote["steps"][0]["requestId"].as_str().unwrap();
        let url = format!(
            "{}/intents/status/v3?requestId={id}",
            solver.integrator_url()
        );
        for _ in 0..MOST_BLOCKS {
            let answer = self.client.get(&url).send().await.unwrap();
            let status: Value = answer.json().await.unwrap();
            let hash = |name: &str| status[name][0].as_str()?.parse().ok();
            match status["status"].as_str().unwrap() {
                "success" => return [hash("txHashes").unwrap(), hash("inTxHashes").unwrap()],
                "failure" | "refund" => panic!("{status}"),
                _ => self.block().await,
            }
        }
        panic!("{id} does not get anywhere")
    }

    /// Until the hub's next block.
    async fn block(&self) {
        let node = &self.world.hub.node;
        let before = node.tip().await.unwrap().number;
        while node.tip().await.unwrap().number == before {
            tokio::task::yield_now().await;
        }
    }

    /// Until the hub has acted on `key`; how often.
    async fn executed(&self, key: B256) -> usize {
        for _ in 0..MOST_BLOCKS {
            match self.world.hub.executions(key).await.unwrap()[..] {
                [] => self.block().await,
                ref all => return all.len(),
            }
        }
        panic!("{key} is not settled")
    }

    /// What the hub holds for the solver.
    async fn earned(&self) -> U256 {
        let world = &self.world;
        let id = world.origin.token_id(Address::ZERO).unwrap();
        let solver = world.destination.alias(world.solver.address()).unwrap();
        world.hub.balance(solver, id).await.unwrap()
    }
}

/// A daemon that is stopped before and between its settlements brings both to their end, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_settles_what_it_filled_before_it_was_restarted() {
    let (trade, solver) = Trade::start().await;
    let quote = trade.deposit(&solver).await;
    let [fill, deposit] = trade.filled(&solver, &quote).await;
    let solver = solver.restart().await;

    let deposit_key = deterministic(&["origin", &deposit.to_string()]);
    assert_eq!(trade.executed(deposit_key).await, 1);
    let solver = solver.restart().await;

    let receipt = trade.world.origin.node.receipt(deposit).await.unwrap();
    let receipt = receipt.unwrap();
    let deposit = trade.world.origin.deposited(&receipt).await.unwrap();
    let protocol = &quote["protocol"]["v2"];
    let order: B256 = protocol["orderId"].as_str().unwrap().parse().unwrap();
    let outcome_key = outcome(&[deposit.onchain_id], order);
    assert_eq!(trade.executed(outcome_key).await, 1);
    assert_eq!(trade.earned().await, U256::from(100_000_000_000_000_000u64));

    // Once more, and some blocks later: nothing is done twice.
    let solver = solver.restart().await;
    for _ in 0..4 {
        trade.block().await;
    }
    for key in [deposit_key, outcome_key] {
        assert_eq!(trade.executed(key).await, 1);
    }
    let filled = trade.filled(&solver, &quote).await;
    assert_eq!(filled[0], fill);
    let destination = &trade.world.destination.node.provider;
    let sent = destination.get_transaction_count(trade.world.solver.address());
    // The fill, and what its proxy may take of the one token.
    assert_eq!(sent.await.unwrap(), 2);
    solver.stop().await;
    trade.oracle.stop().await;
}

/// Where the settlement chain is traded on, too, one lane has all of its nonces.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_chain_that_is_traded_on_has_one_lane() {
    let world = Devnet::start().await.unwrap();
    let mut files = world.files();
    let traded = |list: &mut Value, fields: Value| {
        let mut entry = list[0].clone();
        let fields = fields.as_object().unwrap().clone();
        entry.as_object_mut().unwrap().extend(fields);
        list.as_array_mut().unwrap().push(entry);
    };
    let number = world.hub.node.chain_id;
    let chain =
        json!({"id": "main", "httpRpcUrl": "$RELAY_RPC_URL", "hubChainId": number.to_string()});
    traded(&mut files.chains, chain);
    traded(
        &mut files.market,
        json!({"name": "main", "chainId": number}),
    );
    let solver = daemon()
        .chains(&files)
        .solver(&world.solver, "main")
        .with("SOLVER_ORACLE_URL", "http://127.0.0.1:9")
        .start()
        .await;
    // It answers: everything is open.
    let answer = reqwest::get(format!("{}/chains", solver.integrator_url()));
    assert_eq!(answer.await.unwrap().status(), 200);
    let directory = solver.end().await;
    let store = SledStore::open(&directory.path().join("data/store")).unwrap();
    let mut held = Vec::new();
    for name in ["main", "origin", "destination", "relay"] {
        let lease = store.read(&lease::key(&format!("lane/{name}"))).await;
        held.push(lease.unwrap().is_some());
    }
    assert_eq!(held, [true, true, true, false]);
}

/// A deposit in a currency that its order did not ask for: the solver pays nothing for it, because real
/// oracles refuse fill and refund alike, for good.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_solver_does_not_pay_for_is_what_oracles_refuse() {
    let rig = Rig::start().await;
    let (world, origin) = (&rig.world, &rig.world.origin);
    let asked = Deal::new(world, native(AMOUNT), native(900), 1).await;
    let sent = origin
        .deposit_erc20(
            &world.user,
            origin.token,
            U256::from(AMOUNT),
            asked.order.id,
        )
        .await;
    let deposit = origin.deposited(&done(sent)).await.unwrap();
    finalize(world, origin).await;
    let deposits = std::slice::from_ref(&deposit);
    let gone = origin
        .pay_erc20(
            &world.solver,
            Money {
                currency: origin.token,
                amount: U256::from(AMOUNT),
            },
            world.user.address(),
            asked.order.id,
        )
        .await;
    let given_back = done(gone).transaction_hash;
    finalize(world, origin).await;
    let filled = asked.fill().await;
    let claims = [
        (FILLS, claim::fill(&asked.order, deposits, filled)),
        (
            REFUNDS,
            claim::refund(&asked.order, deposits, &[given_back]),
        ),
    ];
    for (route, body) in claims {
        let answer = rig.oracles[0].attest(route, &body).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        let told = answer.json();
        assert_eq!(told["code"], "INPUT_CURRENCY_MISMATCH", "{told}");
        assert_eq!(told["retryable"], false, "{told}");
    }
    let request = rig.request(&asked, 1);
    let seen = |currency: Address| fact::Deposit {
        currency: format!("{currency:#x}"),
        ..rig.seen(&deposit)
    };
    let families = |_: &str| Some(vm::SETTLEMENT);
    for (currency, payable) in [(origin.token, false), (Address::ZERO, true)] {
        let seen = seen(currency);
        let fill = claimable::fill(&request, &seen, &families);
        let refund = claimable::refund(&request, &seen, &families);
        assert_eq!((fill.is_ok(), refund.is_ok()), (payable, payable));
    }
    rig.stop().await;
}
