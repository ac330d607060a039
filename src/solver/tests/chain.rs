//! A chain in memory that executes what the test's codec made: it includes, drops, replaces and
//! reorgs transactions, and knows every balance by replaying its blocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use alloy::primitives::{B256, Bytes, U256, keccak256};
use async_trait::async_trait;
use serde_json::{Value, json};
use vm::{
    Address, Amount, Block, Chain, ChainEntry, ChainReader, CodecError, Head, Payment, PaymentKind,
    ReadError, StateReader, Transaction, TxRef, WithdrawalStatus,
    trade::{
        Accounts, Broadcast, Call, Called, CurrencyInfo, DepositTerms, DepositTx, Draft, Failover,
        FailoverContext, Fate, Fees, FillTerms, Intended, Limits, PaymentTerms, Payout, Revert,
        ScanError, Scanner, Simulator, Spend, Spent, Step, StepBuilder, StepCall, TradingProvider,
        TransactionCodec, Unfit, Writer,
    },
};

use super::fuse::Fuse;

pub const GENESIS: u64 = 1_700_000_000;
pub const PACE: u64 = 2;
pub const FINAL: u64 = 5;
/// What any transaction uses.
pub const GAS: u64 = 21_000;
/// What each byte of calldata takes besides, unless it is zero (EIP-2028).
const BYTE: u64 = 16;
/// Where chains have the contract that says what bytes cost.
const USUAL: &str = "0x00000000000000000000000000000000000000f1";
/// What a greedy one wants to have.
const PLENTY: u64 = 1_000_000;
/// What one that burns gas uses.
const BURNT: u64 = 3_000_000;

pub struct FakeChain {
    pub name: &'static str,
    pub number: u64,
    pub fuse: Arc<Fuse>,
    world: Mutex<World>,
}

#[derive(Default)]
pub struct World {
    genesis: BTreeMap<(String, String), U256>,
    blocks: Vec<(u64, Vec<Tx>)>,
    forks: u64,
    highest: usize,
    pool: Vec<Tx>,
    pub base: u128,
    /// Gas that any transaction takes.
    pub plain: u64,
    /// What each byte of its calldata takes besides.
    pub byte: u64,
    /// Of every token; unset where there is none.
    pub decimals: Option<u8>,
    /// What proxies hand calls to.
    pub router: &'static str,
    /// The contract stands there that usually says what bytes cost.
    pub charges_for_bytes: bool,
    /// What any transaction's bytes cost; unset where they cost nothing.
    pub data_fee: Option<u64>,
    /// What the first of the three providers says that is not so.
    pub lies: Lies,
    /// All three say it.
    pub everybody_lies: bool,
    /// Nodes refuse transactions with data: for now, or for good.
    pub refuse: bool,
    pub never: bool,
    /// Nodes do not answer.
    pub dark: bool,
    /// Deposits' transactions, whose blocks no reorg here touches.
    pub deposits: BTreeMap<B256, Block>,
    /// Transactions that name these orders revert, in estimates and in blocks.
    pub revert_estimate: BTreeSet<B256>,
    pub revert: BTreeSet<B256>,
    /// Transactions that name these orders burn gas when it costs anything.
    pub burners: BTreeSet<B256>,
    /// Nodes do not agree on what these orders' transactions do, and take so long to say it.
    pub unsure: BTreeSet<B256>,
    pub slow: std::time::Duration,
    /// How often providers were asked for those.
    pub estimates: usize,
    /// Transactions that name these orders revert where they have less gas than most estimates.
    pub greedy: BTreeSet<B256>,
    /// Transactions that name these orders succeed and pay nobody.
    pub silent: BTreeSet<B256>,
    /// Transactions that name these orders revert where they do not pay this.
    pub whole: BTreeMap<B256, U256>,
    /// Fill routers whose word counts; unset: anybody's.
    pub routers: Option<Vec<String>>,
    pub broadcasts: Vec<B256>,
    /// The market file says that transactions carry authorizations.
    pub authorizations: bool,
    /// Wei that receipts say any transaction's gas cost; unset where they say nothing.
    pub spent: Option<u64>,
}

/// What a provider says that is not so.
#[derive(Clone, Copy, Default)]
pub struct Lies {
    /// Added to every nonce.
    pub nonce: i64,
    pub fees: Option<Fees>,
    /// Every estimate reverts.
    pub reverts: bool,
    /// Every transaction is in a block.
    pub included: bool,
    /// Nobody has anything.
    pub poor: bool,
    /// Every transaction is refused for good.
    pub refuses: bool,
    /// Of every token.
    pub decimals: Option<u8>,
    /// It answers after half a minute.
    pub hangs: bool,
}

/// One of a chain's providers.
struct Provider {
    chain: Arc<FakeChain>,
    first: bool,
}

/// Recipient, currency and amount of each payment.
type Effects = Vec<(String, String, U256)>;

#[derive(Clone, Debug)]
struct Tx {
    hash: B256,
    draft: Value,
    doom: Doom,
}

/// What becomes of a transaction in its block, whatever the world is like later.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Doom {
    #[default]
    Nothing,
    Reverts,
    PaysNobody,
}

impl Tx {
    fn new(hash: B256, draft: Value) -> Self {
        let doom = Doom::Nothing;
        Self { hash, draft, doom }
    }
}

#[derive(Default)]
struct State {
    balances: BTreeMap<(String, String), U256>,
    allowances: BTreeMap<(String, String, String), U256>,
    nonces: BTreeMap<String, u64>,
    /// By hash: block number and what it paid; `None`: reverted.
    done: BTreeMap<B256, (u64, Option<Effects>)>,
    /// Payments in blocks that name an order.
    paid: Vec<(B256, String, U256)>,
    spent_on_gas: U256,
}

impl FakeChain {
    pub fn new(name: &'static str, number: u64, fuse: Arc<Fuse>) -> Arc<Self> {
        let world = World {
            base: 100,
            plain: GAS,
            byte: BYTE,
            decimals: Some(6),
            authorizations: true,
            router: super::rig::ROUTER,
            blocks: vec![(0, Vec::new()); 20],
            ..World::default()
        };
        Arc::new(Self {
            name,
            number,
            fuse,
            world: Mutex::new(world),
        })
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.world.lock().unwrap())
    }

    pub fn give(&self, owner: &str, currency: &str, amount: u128) {
        let key = (owner.to_lowercase(), currency.to_lowercase());
        self.with(|world| world.genesis.insert(key, U256::from(amount)));
    }

    pub fn mine(&self) {
        self.with(World::mine);
    }

    /// The last blocks leave the chain; their transactions wait again unless they are dropped.
    pub fn reorg(&self, depth: usize, keep: bool) {
        self.with(|world| {
            world.forks += 1;
            // What was final once stays, however many reorgs follow each other.
            let last_final = world
                .highest
                .saturating_sub(usize::try_from(FINAL).unwrap());
            let at = world
                .blocks
                .len()
                .saturating_sub(depth)
                .max(20)
                .max(last_final);
            let gone = world.blocks.split_off(at);
            let txs = gone.into_iter().flat_map(|(_, txs)| txs);
            if keep {
                world.pool.extend(txs);
            }
        });
    }

    /// As deep as nobody believes a chain goes back.
    pub fn collapse(&self, depth: usize) {
        self.with(|world| {
            world.forks += 1;
            let left = world.blocks.len() - depth;
            world.blocks.truncate(left);
        });
    }

    /// Nodes forget what waits.
    pub fn forget(&self) {
        self.with(|world| world.pool.clear());
    }

    /// The key's owner uses a nonce elsewhere.
    pub fn intrude(&self, from: &str, nonce: u64) {
        let draft = json!({"from": from, "to": from, "nonce": nonce, "value": "0", "gas": GAS,
            "max": "1000000", "tip": "1", "data": "0x", "intruder": true});
        let hash = keccak256(draft.to_string());
        self.with(|world| {
            world.pool.retain(|tx| nonce_of(&tx.draft) != nonce);
            world.pool.push(Tx::new(hash, draft));
        });
    }

    pub fn balance_of(&self, owner: &str, currency: &str) -> U256 {
        let key = (owner.to_lowercase(), currency.to_lowercase());
        self.with(|world| {
            world
                .state()
                .balances
                .get(&key)
                .copied()
                .unwrap_or_default()
        })
    }

    /// What was paid in blocks for an order: recipient and amount, each time.
    pub fn paid(&self, order: B256) -> Vec<(String, U256)> {
        let paid = self.with(|world| world.state().paid);
        paid.into_iter()
            .filter(|paid| paid.0 == order)
            .map(|(_, to, amount)| (to, amount))
            .collect()
    }

    pub fn spent_on_gas(&self) -> U256 {
        self.with(|world| world.state().spent_on_gas)
    }

    pub fn waiting(&self) -> usize {
        self.with(|world| world.pool.len())
    }

    pub fn chain(self: &Arc<Self>) -> Chain {
        let additional = json!({"finalizationBlocks": FINAL, "finalizationTime": 0});
        let entry = ChainEntry {
            id: self.name.into(),
            hub_chain_id: Some(self.number.to_string()),
            fill_routers: self.with(|world| world.routers.clone()),
            additional_data: additional.as_object().unwrap().clone(),
            ..ChainEntry::default()
        };
        Chain {
            spec: entry.spec(vm::SETTLEMENT, false).unwrap(),
            reader: self.clone(),
            state: Some(self.clone()),
        }
    }

    /// Three providers, of which two must agree.
    pub fn providers(self: &Arc<Self>) -> Failover {
        let trades = [true, false, false].map(|first| {
            let chain = self.clone();
            let provider = Arc::new(Provider { chain, first });
            TradingProvider {
                scanner: self.clone(),
                accounts: provider.clone(),
                writer: provider,
                simulator: self.clone(),
                inspector: Arc::new(vm::testing::Unseen),
            }
        });
        let context = FailoverContext {
            name: self.name.into(),
            number: self.number,
            codec: &Codec,
            limits: Limits {
                bytes: 2_000,
                authorizations: self.with(|world| world.authorizations),
                data_fees: self.with(|world| world.data_fee).map(|_| {
                    let oracle = "0x00000000000000000000000000000000000000f0";
                    vm::SETTLEMENT.address(oracle).unwrap()
                }),
                ..Limits::default()
            },
            required: 2,
        };
        Failover::new(context, trades.into()).unwrap()
    }
}

impl Provider {
    /// What this one says that is not so.
    async fn lies(&self) -> Lies {
        let lies = self
            .chain
            .with(|world| match self.first || world.everybody_lies {
                true => world.lies,
                false => Lies::default(),
            });
        if lies.hangs {
            tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        }
        lies
    }
}

fn refusal() -> Revert {
    Revert {
        reason: "refused".into(),
        data: Bytes::new(),
    }
}

impl World {
    fn block(&self, number: u64) -> Block {
        let hash = |number: u64| {
            let fork = usize::try_from(number)
                .ok()
                .and_then(|at| self.blocks.get(at));
            keccak256(format!("{number}/{}", fork.map_or(0, |block| block.0)))
        };
        Block {
            number,
            hash: hash(number),
            parent: hash(number.saturating_sub(1)),
            time: GENESIS + number * PACE,
        }
    }

    fn head(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    fn mine(&mut self) {
        let fork = self.forks;
        self.blocks.push((fork, Vec::new()));
        self.highest = self.highest.max(self.blocks.len());
        self.pool.sort_by_key(|tx| nonce_of(&tx.draft));
        let mut waiting = Vec::new();
        for tx in std::mem::take(&mut self.pool) {
            let next = self.nonce(&text(&tx.draft, "from"));
            let nonce = nonce_of(&tx.draft);
            if nonce == next && number(&tx.draft, "max") >= U256::from(self.base) {
                let doom = self.doom(&tx.draft);
                self.blocks.last_mut().unwrap().1.push(Tx { doom, ..tx });
            } else if nonce >= next {
                waiting.push(tx);
            }
        }
        self.pool = waiting;
    }

    fn doom(&self, draft: &Value) -> Doom {
        let data = data(draft);
        let order: Option<B256> = data["order"].as_str().and_then(|order| order.parse().ok());
        let among = |orders: &BTreeSet<B256>| order.is_some_and(|order| orders.contains(&order));
        let gas = draft["gas"].as_u64().unwrap();
        if among(&self.silent) {
            return Doom::PaysNobody;
        }
        match among(&self.revert)
            || self.wants_more(order, &data)
            || among(&self.greedy) && gas < PLENTY
        {
            true => Doom::Reverts,
            false => Doom::Nothing,
        }
    }

    /// Gas of a transaction with so many bytes of calldata, which are no zeros.
    fn intrinsic(&self, bytes: usize) -> u64 {
        self.plain + self.byte * u64::try_from(bytes).unwrap()
    }

    fn wants_more(&self, order: Option<B256>, data: &Value) -> bool {
        let wanted = order.and_then(|order| self.whole.get(&order));
        wanted.is_some_and(|wanted| data["pay"][0][2] != wanted.to_string())
    }

    fn nonce(&self, owner: &str) -> u64 {
        self.state().nonces.get(owner).copied().unwrap_or_default()
    }

    fn state(&self) -> State {
        let mut state = State {
            balances: self.genesis.clone(),
            ..State::default()
        };
        for (at, (_, txs)) in self.blocks.iter().enumerate() {
            for tx in txs {
                state.apply(at as u64, tx, self);
            }
        }
        state
    }
}

impl State {
    fn apply(&mut self, block: u64, tx: &Tx, world: &World) {
        let from = text(&tx.draft, "from");
        *self.nonces.entry(from.clone()).or_default() += 1;
        let price = number(&tx.draft, "max").min(U256::from(world.base) + number(&tx.draft, "tip"));
        let fee = price * U256::from(world.intrinsic(calldata(&tx.draft).len()));
        self.spent_on_gas += fee;
        let purse = self.balances.entry((from.clone(), native())).or_default();
        *purse = purse.checked_sub(fee).expect("gas was not reserved");
        let data = data(&tx.draft);
        let order = data["order"].as_str().and_then(|order| order.parse().ok());
        let effects = match tx.doom {
            Doom::PaysNobody => Some(Vec::new()),
            Doom::Reverts => None,
            Doom::Nothing => self.effects(&from, &data),
        };
        for (to, _, amount) in effects.iter().flatten() {
            if let Some(order) = order {
                self.paid.push((order, to.clone(), *amount));
            }
        }
        self.done.insert(tx.hash, (block, effects));
    }

    fn effects(&mut self, from: &str, data: &Value) -> Option<Effects> {
        let (mut balances, mut allowances) = (self.balances.clone(), self.allowances.clone());
        if let Some(spender) = data["approve"].as_str() {
            let key = (from.to_owned(), spender.to_owned(), text(data, "currency"));
            allowances.insert(key, number(data, "amount"));
        }
        let mut effects = Vec::new();
        for payment in data["pay"].as_array().into_iter().flatten() {
            let field = |at: usize| payment[at].as_str().unwrap().to_owned();
            let (to, currency) = (field(0), field(1));
            let amount: U256 = field(2).parse().unwrap();
            if let Some(router) = data["router"].as_str().filter(|_| currency != native()) {
                let key = (from.to_owned(), router.to_owned(), currency.clone());
                let allowed = allowances.entry(key).or_default();
                *allowed = allowed.checked_sub(amount)?;
            }
            let purse = balances
                .entry((from.to_owned(), currency.clone()))
                .or_default();
            *purse = purse.checked_sub(amount)?;
            *balances.entry((to.clone(), currency.clone())).or_default() += amount;
            effects.push((to, currency, amount));
        }
        (self.balances, self.allowances) = (balances, allowances);
        Some(effects)
    }
}

fn native() -> String {
    vm::SETTLEMENT.codec.native().to_lowercase()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_lowercase()
}

fn number(value: &Value, field: &str) -> U256 {
    text(value, field).parse().unwrap()
}

fn nonce_of(draft: &Value) -> u64 {
    draft["nonce"].as_u64().unwrap()
}

fn calldata(draft: &Value) -> Bytes {
    text(draft, "data").parse().unwrap()
}

fn data(draft: &Value) -> Value {
    serde_json::from_slice(&calldata(draft)).unwrap_or(Value::Null)
}

#[async_trait]
impl Simulator for FakeChain {
    async fn rehearse(&self, _: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        Err(ReadError::Unavailable(
            "the solver rehearses nothing".into(),
        ))
    }
}

#[async_trait]
impl Writer for Provider {
    async fn estimate(&self, intended: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError> {
        if self.lies().await.reverts {
            return Ok(Err(refusal()));
        }
        let call = intended.call;
        let data: Value = serde_json::from_slice(&call.data).unwrap_or(Value::Null);
        let order: Option<B256> = data["order"].as_str().and_then(|order| order.parse().ok());
        let from = call.from.text().to_lowercase();
        let (unsure, slow) = self.chain.with(|world| {
            let unsure = order.is_some_and(|order| world.unsure.contains(&order));
            world.estimates += usize::from(unsure);
            (unsure, world.slow)
        });
        if unsure {
            tokio::time::sleep(slow).await;
            return Err(ReadError::Unavailable("no agreement".into()));
        }
        Ok(self.chain.with(|world| {
            let among =
                |orders: &BTreeSet<B256>| order.is_some_and(|order| orders.contains(&order));
            let poor = intended.most.is_some_and(|gas| gas < PLENTY);
            let forbidden = among(&world.revert_estimate)
                || world.wants_more(order, &data)
                || among(&world.greedy) && poor;
            // Who burns gas only when it is paid for sees what it costs.
            let burns = among(&world.burners);
            let gas = match burns && intended.fees.is_some_and(|fees| fees.base > 0) {
                true => BURNT,
                false => world.intrinsic(call.data.len()),
            };
            let done = world.state().effects(&from, &data);
            match (forbidden, done) {
                (false, Some(_)) => Ok(gas),
                _ => Err(refusal()),
            }
        }))
    }

    async fn fees(&self) -> Result<Fees, ReadError> {
        let lies = self.lies().await;
        Ok(self.chain.with(|world| {
            lies.fees.unwrap_or(Fees {
                base: world.base,
                priority: 10,
            })
        }))
    }

    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let (lies, owner) = (self.lies().await, owner.text().to_lowercase());
        let nonce = self.chain.with(|world| {
            let mut nonce = world.nonce(&owner);
            while waiting && world.pool.iter().any(|tx| nonce_of(&tx.draft) == nonce) {
                nonce += 1;
            }
            nonce
        });
        Ok(nonce.saturating_add_signed(lies.nonce))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        if self.lies().await.refuses {
            return Ok(Broadcast::Refused("not by me".into()));
        }
        if !self.first {
            return Ok(self.chain.with(|world| world.offered(raw)));
        }
        self.chain.fuse.burn().await;
        let said = self.chain.with(|world| {
            world.broadcasts.push(keccak256(raw));
            world.offered(raw)
        });
        self.chain.fuse.burn().await;
        Ok(said)
    }

    async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError> {
        let lies = self.lies().await;
        Ok(self.chain.with(|world| {
            if lies.included {
                return Fate::Included {
                    block: world.block(world.head()),
                    depth: 0,
                    success: false,
                    spent: None,
                };
            }
            if let Some((at, effects)) = world.state().done.get(transaction) {
                return Fate::Included {
                    block: world.block(*at),
                    depth: world.head() - at,
                    success: effects.is_some(),
                    spent: world.spent.map(|gas| Spent {
                        gas: U256::from(gas),
                        data: None,
                    }),
                };
            }
            let waits = world.pool.iter().any(|tx| tx.hash == *transaction);
            if waits { Fate::Waiting } else { Fate::Unknown }
        }))
    }
}

impl World {
    /// As nodes take transactions into their pools.
    fn offered(&mut self, raw: &Bytes) -> Broadcast {
        let draft: Value = serde_json::from_slice(raw).unwrap();
        let hash = keccak256(raw);
        let (nonce, from) = (nonce_of(&draft), text(&draft, "from"));
        if self.never && text(&draft, "data") != "0x" {
            return Broadcast::Refused("oversized data".into());
        }
        if self.refuse && text(&draft, "data") != "0x" {
            return Broadcast::Rejected("not today".into());
        }
        if draft["gas"].as_u64().unwrap() < self.intrinsic(calldata(&draft).len()) {
            return Broadcast::Refused("intrinsic gas too low".into());
        }
        if nonce < self.nonce(&from) {
            return Broadcast::NonceUsed;
        }
        let bytes = U256::from(self.data_fee.unwrap_or_default());
        let cost = number(&draft, "max") * number(&draft, "gas") + number(&draft, "value") + bytes;
        let state = self.state();
        let purse = state.balances.get(&(from, native()));
        if purse.copied().unwrap_or_default() < cost {
            return Broadcast::Unfunded;
        }
        let same = |tx: &Tx| nonce_of(&tx.draft) == nonce;
        if let Some(at) = self.pool.iter().position(same) {
            let known = &self.pool[at];
            if known.hash == hash {
                return Broadcast::Accepted;
            }
            let tenth_more = |field: &str| {
                let ten = |draft: &Value, times: u64| number(draft, field) * U256::from(times);
                ten(&draft, 10) >= ten(&known.draft, 11)
            };
            if !(tenth_more("max") && tenth_more("tip")) {
                return Broadcast::Underpriced;
            }
            self.pool.remove(at);
        }
        self.pool.push(Tx::new(hash, draft));
        Broadcast::Accepted
    }
}

#[async_trait]
impl StateReader for FakeChain {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        let final_one = head.block.number.checked_sub(FINAL);
        Ok(self.with(|world| final_one.map(|number| world.block(number))))
    }

    async fn withdrawal(
        &self,
        _: &Bytes,
        _: Option<&TxRef>,
        _: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        Err(ReadError::Unavailable("no withdrawals here".into()))
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let owner = owner.text().to_lowercase();
        Ok(self.with(|world| {
            let blocks = world.blocks.iter().take(block.number as usize + 1);
            let txs = blocks.flat_map(|(_, txs)| txs);
            txs.filter(|tx| text(&tx.draft, "from") == owner).count() as u64
        }))
    }

    async fn view(&self, _: &Address, _: &Bytes, _: &Block) -> Result<Bytes, ReadError> {
        Err(ReadError::Unavailable("no head calls here".into()))
    }
}

#[async_trait]
impl ChainReader for FakeChain {
    async fn head(&self) -> Result<Head, ReadError> {
        Ok(self.with(|world| Head {
            block: world.block(world.head()),
            tagged: None,
        }))
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        Ok(self.with(|world| {
            block.number <= world.head() && world.block(block.number).hash == block.hash
        }))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let hash = B256::from_slice(&tx.bytes);
        let address = |text: &str| vm::SETTLEMENT.address(text).unwrap();
        Ok(self.with(|world| match world.state().done.get(&hash) {
            Some((at, _)) if *at > head.block.number => Transaction::Missing,
            None => match world.deposits.get(&hash) {
                Some(block) => Transaction::Succeeded(vm::testing::receipt(block.clone())),
                None => Transaction::Missing,
            },
            Some((at, None)) => Transaction::Failed(vm::testing::failure(world.block(*at))),
            Some((at, Some(effects))) => {
                let mut receipt = vm::testing::receipt(world.block(*at));
                for (index, (to, currency, amount)) in effects.iter().enumerate() {
                    receipt.payments.push(Payment {
                        index: u32::try_from(index).unwrap(),
                        kind: PaymentKind::Transfer,
                        recipient: address(to),
                        currency: address(currency),
                        amount: *amount,
                    });
                }
                Transaction::Succeeded(receipt)
            }
        }))
    }
}

#[async_trait]
impl Accounts for Provider {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        while self.chain.with(|world| world.dark) {
            tokio::task::yield_now().await;
        }
        match self.lies().await.poor {
            true => Ok(Amount::ZERO),
            false => Ok(self.chain.balance_of(owner.text(), currency.text())),
        }
    }

    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        let low = |address: &Address| address.text().to_lowercase();
        let key = (low(owner), low(spender), low(currency));
        Ok(self.chain.with(|world| {
            world
                .state()
                .allowances
                .get(&key)
                .copied()
                .unwrap_or_default()
        }))
    }

    async fn currency(&self, _: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        let decimals = match self.lies().await.decimals {
            Some(decimals) => Some(decimals),
            None => self.chain.with(|world| world.decimals),
        };
        Ok(decimals.map(|decimals| CurrencyInfo {
            symbol: "USDC".into(),
            name: "USD Coin".into(),
            decimals,
        }))
    }

    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        let charges = self.chain.with(|world| world.charges_for_bytes);
        Ok(charges || address.text() != USUAL)
    }

    /// Approval proxies hand calls to this; the oracle of data fees says what bytes cost.
    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        let answers = calls.iter().map(|call| {
            if call.to.text().ends_with("f0") || call.to.text() == USUAL {
                let fee = self.chain.with(|world| world.data_fee).unwrap_or_default();
                return Ok(Ok(U256::from(fee).to_be_bytes_vec().into()));
            }
            let router = self.chain.with(|world| world.router);
            Ok(Ok(router.as_bytes().to_vec().into()))
        });
        answers.collect()
    }
}

#[async_trait]
impl Scanner for FakeChain {
    async fn head(&self) -> Result<Block, ReadError> {
        Ok(self.with(|world| world.block(world.head())))
    }

    async fn block(&self, number: u64) -> Result<Option<Block>, ReadError> {
        Ok(self.with(|world| (number <= world.head()).then(|| world.block(number))))
    }

    async fn deposits(
        &self,
        _: std::ops::RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }

    async fn omitted(
        &self,
        _: u64,
        _: &Block,
        _: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }
}

/// Drafts as JSON; what nodes take is what the family says.
pub struct Codec;

impl TransactionCodec for Codec {
    fn admit(&self, chain: u64, draft: &Draft, limits: &Limits) -> Result<Vec<Address>, Unfit> {
        let (bytes, most) = (shown(chain, draft).to_string().len(), limits.bytes);
        if bytes > most {
            return Err(Unfit::Large { bytes, most });
        }
        let limits = Limits {
            bytes: usize::MAX,
            ..limits.clone()
        };
        let real = vm::SETTLEMENT.transactions.unwrap();
        real.admit(chain, draft, &limits)
    }

    fn data_fee(
        &self,
        _: u64,
        draft: &Draft,
        oracle: Option<&Address>,
    ) -> Result<Call, CodecError> {
        let call = draft.call.clone();
        let usual = || vm::SETTLEMENT.address(USUAL).unwrap();
        let to = oracle.cloned().unwrap_or_else(usual);
        Ok(Call { to, ..call })
    }

    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError> {
        let question = Call {
            from: proxy.clone(),
            to: proxy.clone(),
            data: Bytes::new(),
            value: U256::ZERO,
        };
        Ok((question, router.text().to_lowercase().into_bytes().into()))
    }

    fn digest(&self, chain: u64, draft: &Draft) -> Result<B256, CodecError> {
        Ok(keccak256(shown(chain, draft).to_string()))
    }

    fn seal(
        &self,
        chain: u64,
        draft: &Draft,
        signature: &[u8; 65],
    ) -> Result<(Bytes, B256), CodecError> {
        let mut shown = shown(chain, draft);
        shown["signature"] = alloy::hex::encode(signature).into();
        let raw = Bytes::from(shown.to_string().into_bytes());
        let hash = keccak256(&raw);
        Ok((raw, hash))
    }
}

fn shown(chain: u64, draft: &Draft) -> Value {
    json!({
        "chain": chain,
        "from": draft.call.from.text().to_lowercase(),
        "to": draft.call.to.text().to_lowercase(),
        "data": draft.call.data,
        "value": draft.call.value.to_string(),
        "nonce": draft.nonce,
        "gas": draft.gas,
        "max": draft.max_fee.to_string(),
        "tip": draft.max_priority_fee.to_string(),
    })
}

/// Steps as JSON.
pub struct Steps;

impl Steps {
    fn pay(from: &Address, router: Option<&Address>, payments: &[Payout], order: B256) -> Call {
        let low = |address: &Address| address.text().to_lowercase();
        let pay: Vec<_> = payments
            .iter()
            .map(|p| json!([low(&p.to), low(&p.currency), p.amount.to_string()]))
            .collect();
        let data = json!({ "order": order, "pay": pay, "router": router.map(low) });
        let value = payments
            .iter()
            .filter(|payment| low(&payment.currency) == native());
        Call {
            from: from.clone(),
            to: router.unwrap_or(&payments[0].to).clone(),
            data: Bytes::from(data.to_string().into_bytes()),
            value: value.fold(U256::ZERO, |sum, payment| sum + payment.amount),
        }
    }
}

impl StepBuilder for Steps {
    fn deposit(&self, _: &DepositTerms<'_>) -> Result<Vec<StepCall>, CodecError> {
        Err(CodecError("not here".into()))
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<StepCall, CodecError> {
        let payment = Payout {
            to: terms.to.clone(),
            currency: terms.currency.clone(),
            amount: terms.amount,
        };
        Ok(StepCall {
            step: Step::Send,
            call: Self::pay(terms.from, None, &[payment], terms.order),
        })
    }

    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        _: bool,
    ) -> Result<Vec<StepCall>, CodecError> {
        let low = |address: &Address| address.text().to_lowercase();
        let data = json!({ "approve": low(spend.spender), "currency": low(spend.currency),
            "amount": spend.amount.to_string() });
        Ok(vec![StepCall {
            step: Step::Approve,
            call: Call {
                from: owner.clone(),
                to: spend.currency.clone(),
                data: Bytes::from(data.to_string().into_bytes()),
                value: U256::ZERO,
            },
        }])
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Call, CodecError> {
        let routed = terms.payments.len() > 1 || !terms.calls.is_empty();
        let token = |paid: &Payout| paid.currency.text().to_lowercase() != native();
        let proxied = terms.payments.iter().any(token);
        let router = if proxied { terms.proxy } else { terms.router };
        if routed && router.is_none() {
            return Err(CodecError("nobody takes it".into()));
        }
        let router = router.filter(|_| routed);
        Ok(Self::pay(terms.solver, router, terms.payments, terms.order))
    }

    fn explain(&self, _: &[u8]) -> Revert {
        Revert {
            reason: String::new(),
            data: Bytes::new(),
        }
    }
}
