//! Two chains, perhaps a third one for settlements only, a store that survives the solver, and orders with a recipient
//! each.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use alloy::primitives::{B256, U256};
use async_trait::async_trait;
use vm::protocol::{order::OutputPayment, signature::Signature};

use super::{
    chain::{self, FakeChain, Steps},
    fuse::{Fuse, Mortal},
};
use crate::{
    market::{Caps, Class, Currency, Network},
    price::{Price, PriceError, PriceSource, SettlementPrice},
    request::{
        Request,
        fact::{Deposit, Facts, Inclusion, Standing},
        fixtures,
        status::{self, Status},
    },
    sign::{FormerKey, KeyRing, SignError, Signer, raw::RawKey},
    solver::{
        Solver, SolverError,
        account::{SendLimits, SolverAccount},
        chain::{Abilities, TradingChain},
        exposure::Exposure,
        judge::{Next, Patience},
        keys::Keys,
        repricing::{Burden, Repriced, Repricing, Unpriced},
        survey::Survey,
    },
    store::{
        Batch, Store,
        memory::MemoryStore,
        requests::Requests,
        rows::{self, claim::Claim},
    },
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const NEXT: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
pub const PROXY: &str = "0x00000000000000000000000000000000000000bb";
pub const ROUTER: &str = "0x00000000000000000000000000000000000000aa";
pub const RICH: u128 = 1_000_000_000_000_000_000;
pub const USDC: u128 = 10_000_000_000;

pub struct Rig {
    pub fuse: Arc<Fuse>,
    pub store: Arc<dyn Store>,
    pub requests: Requests,
    pub origin: Arc<FakeChain>,
    pub destination: Arc<FakeChain>,
    /// The settlement chain, where it is neither of them and somebody settles.
    pub settlements: Option<Arc<FakeChain>>,
    pub signer: Arc<RawKey>,
    /// Seconds that each of its signatures of a payment takes.
    pub slow: Arc<AtomicU64>,
    /// Keys that the solver had before.
    pub former: Vec<Arc<RawKey>>,
    /// Unix milliseconds.
    pub now: u64,
    /// What orders are worth whose deposits come late.
    pub worth: Result<Repriced, &'static str>,
    /// What they were priced with besides.
    pub burden: Arc<Mutex<Option<Burden>>>,
    /// What settling one costs, usd e18.
    pub settlement: U256,
    pub caps: Caps,
    /// Seconds between blocks, as the market file says.
    pub pace: u64,
    /// Networks list their native currency only.
    pub without_tokens: bool,
}

struct Settlement(U256);

#[async_trait]
impl SettlementPrice for Settlement {
    async fn settlement(&self, _: u64) -> Result<U256, PriceError> {
        Ok(self.0)
    }
}

struct Prices;

/// What orders are worth, and what was said last that they cost besides.
struct Market(Result<Repriced, &'static str>, Arc<Mutex<Option<Burden>>>);

#[async_trait]
impl Repricing for Market {
    async fn reprice(&self, _: &Request, burden: Burden, _: u64) -> Result<Repriced, Unpriced> {
        *self.1.lock().unwrap() = Some(burden);
        self.0.map_err(|why| Unpriced(why.into()))
    }
}

#[async_trait]
impl PriceSource for Prices {
    async fn price(&self, currency: &Currency, _: u64) -> Result<Price, PriceError> {
        let usd = if currency.symbol == "ETH" { 2_000 } else { 1 };
        Ok(Price::exact(U256::from(usd) * U256::from(RICH), 0))
    }
}

/// No price comes.
pub struct Away;

#[async_trait]
impl PriceSource for Away {
    async fn price(&self, currency: &Currency, _: u64) -> Result<Price, PriceError> {
        Err(PriceError::Unavailable {
            currency: currency.symbol.clone(),
            why: "away".into(),
        })
    }
}

pub fn native() -> &'static str {
    vm::SETTLEMENT.codec.native()
}

fn currency(address: &str, symbol: &str, decimals: u8) -> Currency {
    Currency {
        address: address.into(),
        symbol: symbol.into(),
        name: symbol.into(),
        decimals,
        logo_uri: None,
        group: symbol.to_lowercase(),
        class: Class::Other,
        solver: true,
        approval_reset: false,
        hourly_cap: None,
        one_block_up_to: None,
        price_holds: None,
        prices: Vec::new(),
    }
}

pub fn network(name: &str, number: u64, caps: Caps) -> Network {
    serde_json::from_value::<Network>(serde_json::json!({
        "name": name, "chainId": number, "displayName": name, "fillConfirmations": 2,
        "approvalProxy": PROXY, "fillRouter": ROUTER, "currencies": [],
    }))
    .map(|mut network| {
        network.caps = caps;
        network.currencies = vec![
            currency(native(), "ETH", 18),
            Currency {
                solver: true,
                ..currency(fixtures::USDC, "USDC", 6)
            },
        ];
        network
    })
    .unwrap()
}

impl Rig {
    pub fn new() -> Self {
        let fuse = Fuse::new();
        let store: Arc<dyn Store> = Arc::new(Mortal {
            store: MemoryStore::new(),
            fuse: fuse.clone(),
        });
        let rig = Self {
            requests: Requests::new(store.clone()),
            store,
            origin: FakeChain::new("origin", 31_001, fuse.clone()),
            destination: FakeChain::new("destination", 31_002, fuse.clone()),
            settlements: None,
            signer: Arc::new(RawKey::parse(KEY).unwrap()),
            slow: Arc::default(),
            former: Vec::new(),
            fuse,
            now: (chain::GENESIS + 100) * 1_000,
            worth: Ok(Repriced::Promised),
            burden: Arc::default(),
            settlement: U256::ZERO,
            caps: Caps::default(),
            pace: chain::PACE,
            without_tokens: false,
        };
        for chain in [&rig.origin, &rig.destination] {
            chain.give(&rig.solver_text(), native(), RICH);
            chain.give(&rig.solver_text(), fixtures::USDC, USDC);
        }
        rig
    }

    pub fn solver_text(&self) -> String {
        format!("{:#x}", self.signer.address())
    }

    pub fn keys(&self) -> Keys {
        let former = self.former.iter();
        Keys {
            current: self.signer.clone(),
            former: former.map(|key| key.clone() as Arc<dyn Signer>).collect(),
            family: vm::SETTLEMENT,
        }
    }

    /// The solver has another key from now on.
    pub fn rotate(&mut self) {
        let next = Arc::new(RawKey::parse(NEXT).unwrap());
        self.former.push(std::mem::replace(&mut self.signer, next));
        for chain in [&self.origin, &self.destination] {
            chain.give(&self.solver_text(), native(), RICH);
            chain.give(&self.solver_text(), fixtures::USDC, USDC);
        }
    }

    /// Payments are settled on a chain of its own from now on.
    pub fn settles_elsewhere(&mut self) -> Arc<FakeChain> {
        let chain = FakeChain::new("settlements", 31_003, self.fuse.clone());
        chain.give(&self.solver_text(), native(), RICH);
        self.settlements = Some(chain.clone());
        chain
    }

    fn limits() -> SendLimits {
        SendLimits {
            most_rate: 100_000,
            ..SendLimits::default()
        }
    }

    /// The solver's account on a chain.
    async fn account(&self, chain: TradingChain) -> Arc<SolverAccount> {
        let (chain, store) = (Arc::new(chain), self.store.clone());
        let key = Slow(self.signer.clone(), self.slow.clone());
        let keys = KeyRing::of_secp256k1(Arc::new(key));
        let account = SolverAccount::open(chain, store, &keys, Self::limits(), self.now);
        Arc::new(account.await.unwrap())
    }

    /// The process starts.
    pub async fn solver(&self) -> Solver {
        let (mut accounts, mut former) = (HashMap::new(), Vec::new());
        for chain in [&self.origin, &self.destination] {
            let mut network = Network {
                block_seconds: self.pace,
                ..network(chain.name, chain.number, self.caps)
            };
            if self.without_tokens {
                network.currencies.truncate(1);
            }
            let chain = TradingChain::scripted(network, chain.chain(), chain.providers());
            let account = self.account(chain).await;
            let chain = account.chain.clone();
            accounts.insert(chain.name.clone(), account);
            for key in self.former.clone() {
                let (chain, store) = (chain.clone(), self.store.clone());
                let (key, limits) = (FormerKey::Secp256k1(key), Self::limits());
                let account = SolverAccount::former(chain, store, &key, limits, self.now);
                former.extend(account.await.unwrap().map(Arc::new));
            }
        }
        let settling = match &self.settlements {
            Some(chain) => Some(self.account(TradingChain::untraded(chain)).await),
            None => None,
        };
        Solver {
            requests: self.requests.clone(),
            accounts,
            former,
            settling,
            families: HashMap::new(),
            keys: self.keys(),
            prices: Arc::new(Prices),
            settlement: Arc::new(Settlement(self.settlement)),
            repricing: Arc::new(Market(self.worth, self.burden.clone())),
            exposure: Arc::new(Exposure::default()),
            patience: Patience {
                funds: 300,
                forced_by_all: true,
            },
            gap_limit: 1_000,
            breaker: std::sync::Mutex::default(),
            reconciliation: tokio::sync::watch::Sender::new(None),
        }
    }

    /// An order as the quoter stores it.
    pub async fn quote(&self, number: u8, change: impl FnOnce(&mut Request)) -> Request {
        let mut request = fixtures::request(number);
        request.order.solver = self.solver_text();
        request.order.output.payments[0].recipient = recipient(number);
        request.order.inputs[0].refunds[0].recipient = refundee(number);
        change(&mut request);
        self.requests.insert(&request, Batch::new()).await.unwrap();
        request
    }

    /// A deposit as the index records it.
    pub async fn deposit(&self, request: &Request, change: impl Fn(&mut Deposit) + Send + Sync) {
        let mut deposit = Deposit {
            onchain_id: B256::ZERO,
            network: "origin".into(),
            transaction: B256::repeat_byte(9).to_string(),
            depository: fixtures::USER.into(),
            depositor: fixtures::USER.into(),
            currency: fixtures::USDC.into(),
            amount: U256::from(100_000_000),
            place: Inclusion {
                number: 1,
                hash: B256::repeat_byte(1),
                time: self.now / 1_000,
            },
            standing: Standing::Final,
            together: 1,
            own: true,
            named_by_other: false,
        };
        change(&mut deposit);
        self.show(&deposit);
        let open = Batch::new().put(
            rows::open::key(&request.id),
            rows::open::encode(self.now, &request.id),
        );
        let record = self.requests.record(&request.id, self.now, open, |facts| {
            facts.deposits.push(deposit.clone());
        });
        record.await.unwrap();
    }

    /// The deposit's transaction is on its chain.
    pub fn show(&self, deposit: &Deposit) {
        let mut block = vm::testing::block(deposit.place.number, 0);
        block.hash = deposit.place.hash;
        let mut chains = [&self.origin, &self.destination].into_iter();
        if let Some(chain) = chains.find(|chain| chain.name == deposit.network) {
            let transaction = deposit.transaction.parse().unwrap();
            chain.with(|world| world.deposits.insert(transaction, block));
        }
    }

    /// An order whose deposit is there.
    pub async fn funded(&self, number: u8) -> Request {
        let request = self.quote(number, |_| ()).await;
        self.deposit(&request, |_| ()).await;
        request
    }

    /// A solver that has judged the order once.
    pub async fn begun(&self, request: &Request) -> Solver {
        let solver = self.solver().await;
        solver.advance(&request.id, self.now).await.unwrap();
        solver
    }

    pub async fn facts(&self, request: &Request) -> Facts {
        self.requests.facts(&request.id).await.unwrap()
    }

    pub async fn claim(&self, request: &Request) -> Claim {
        let found = self
            .store
            .read(&rows::claim::key(&request.id))
            .await
            .unwrap();
        found.map_or_else(Claim::default, |bytes| Claim::decode(&bytes).unwrap())
    }

    pub async fn status(&self, request: &Request) -> Status {
        status::of(request, &self.facts(request).await).status
    }

    pub fn mine(&mut self, blocks: usize) {
        for _ in 0..blocks {
            self.origin.mine();
            self.destination.mine();
            self.settlements.iter().for_each(|chain| chain.mine());
        }
        self.now += 2_000 * blocks as u64;
    }

    /// Works and mines until a request wants nothing more.
    pub async fn settle(&mut self, request: &Request) {
        let solver = self.solver().await;
        self.settle_by(&solver, request).await;
    }

    /// The same by a process that has started before.
    pub async fn settle_by(&mut self, solver: &Solver, request: &Request) {
        for _ in 0..60 {
            match solver.advance(&request.id, self.now).await {
                Ok(Next::Done) => return,
                Ok(_) | Err(SolverError::Requests(_)) => {}
                Err(error) => panic!("{error}"),
            }
            for account in solver.accounts.values() {
                account.sweep(self.now / 1_000).await.unwrap();
            }
            self.mine(1);
        }
        panic!(
            "not done: {:?} {:?}",
            self.claim(request).await,
            self.facts(request).await
        );
    }
}

/// Who is paid by order `number`.
pub fn recipient(number: u8) -> String {
    format!("0x{}", "51".repeat(19) + &format!("{number:02x}"))
}

/// Who gets its deposits back.
pub fn refundee(number: u8) -> String {
    format!("0x{}", "61".repeat(19) + &format!("{number:02x}"))
}

/// A second payment in the native currency makes a fill go through the router.
pub fn routed(request: &mut Request, number: u8) {
    request.order.output.payments.push(OutputPayment {
        recipient: recipient(number),
        currency: native().into(),
        minimum_amount: "5".into(),
        expected_amount: "5".into(),
    });
    through(request, ROUTER);
}

/// The order names this fill router.
pub fn through(request: &mut Request, router: &str) {
    let router = vm::SETTLEMENT.address(router).unwrap();
    let orders = vm::SETTLEMENT.orders.unwrap();
    let extra = orders.encode_extra_data(&router).unwrap();
    request.order.output.extra_data = alloy::hex::encode_prefixed(extra);
}

impl TradingChain {
    fn scripted(network: Network, chain: vm::Chain, providers: vm::trade::Providers) -> Self {
        let abilities = Abilities {
            steps: &Steps,
            landing: vm::SETTLEMENT.landing.unwrap(),
            approvals: Some(&Steps),
        };
        let mut chain = Self::made(&network, chain, providers, abilities).unwrap();
        chain.survey = Survey::sound();
        chain
    }

    /// A chain that no market file lists.
    fn untraded(chain: &Arc<FakeChain>) -> Self {
        let listed = network(chain.name, chain.number, Caps::default());
        let mut untraded = Self::scripted(listed, chain.chain(), chain.providers());
        (untraded.market, untraded.survey) = (None, Survey::default());
        untraded
    }
}

/// The solver's key in a service that takes its time.
struct Slow(Arc<RawKey>, Arc<AtomicU64>);

#[async_trait]
impl Signer for Slow {
    fn address(&self) -> vm::EvmAddress {
        self.0.address()
    }

    fn public_key(&self) -> [u8; 33] {
        self.0.public_key()
    }

    fn deterministic(&self) -> bool {
        self.0.deterministic()
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        let seconds = self.1.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.0.sign(digest).await
    }
}
