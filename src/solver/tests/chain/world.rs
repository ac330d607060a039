//! What happened on the chain, and what waits.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{B256, Bytes, U256, keccak256};
use serde_json::Value;
use vm::{Block, trade::Broadcast};

use super::{super::rig::ROUTER, GAS, GENESIS, Lies, PACE};

/// What each byte of data takes besides, unless it is zero (EIP-2028).
const BYTE: u64 = 16;
/// What a greedy one wants to have.
pub(super) const PLENTY: u64 = 1_000_000;

#[derive(Default)]
pub struct World {
    pub(super) genesis: BTreeMap<(String, String), U256>,
    pub(super) blocks: Vec<(u64, Vec<Tx>)>,
    pub(super) forks: u64,
    pub(super) highest: usize,
    pub(super) pool: Vec<Tx>,
    pub base: u128,
    /// What providers say of the tip, in turn.
    pub tips: [u128; 2],
    /// How often they were asked for it.
    pub rates: usize,
    /// Gas that any transaction takes.
    pub plain: u64,
    /// Its accounts run no code.
    pub without_code: bool,
    /// What is signed is paid.
    pub pays_as_signed: bool,
    /// What each byte of its data takes besides.
    pub byte: u64,
    /// Of every token; unset where there is none.
    pub decimals: Option<u8>,
    /// Wallets show other amounts of every token.
    pub scaled: bool,
    /// What proxies hand calls to.
    pub router: &'static str,
    /// The contract stands there that usually says what bytes cost.
    pub charges_for_bytes: bool,
    /// What any transaction's bytes cost; unset where they cost nothing.
    pub data_fee: Option<u64>,
    /// What making a recipient's account costs: when a payment is judged, and when it is signed.
    pub rents: [u64; 2],
    /// There are two providers, not three.
    pub pair: bool,
    /// What the first of the providers says that is not so.
    pub lies: Lies,
    /// All of them say it.
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
    /// What receipts say that any transaction's gas cost; unset where they say nothing.
    pub spent: Option<u64>,
    /// What accounts named of their open attempts, for each attempt that was prepared.
    pub named: Vec<Named>,
}

/// What an account named of its open attempts.
pub struct Named {
    pub held: Vec<Bytes>,
    pub attempts: usize,
    /// Whether some is left to others.
    pub keeps: bool,
}

/// Recipient, currency and amount of each payment.
pub(super) type Effects = Vec<(String, String, U256)>;

#[derive(Clone, Debug)]
pub(super) struct Tx {
    pub(super) hash: B256,
    pub(super) draft: Value,
    pub(super) doom: Doom,
}

/// What becomes of a transaction in its block, whatever the world is like later.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Doom {
    #[default]
    Nothing,
    Reverts,
    PaysNobody,
}

impl Tx {
    pub(super) fn new(hash: B256, draft: Value) -> Self {
        let doom = Doom::Nothing;
        Self { hash, draft, doom }
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) balances: BTreeMap<(String, String), U256>,
    pub(super) approvals: BTreeMap<(String, String, String), U256>,
    pub(super) nonces: BTreeMap<String, u64>,
    /// By hash: block number and what it paid; `None`: reverted.
    pub(super) done: BTreeMap<B256, (u64, Option<Effects>)>,
    /// Payments in blocks that name an order.
    pub(super) paid: Vec<(B256, String, U256)>,
    pub(super) spent_on_gas: U256,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            base: 100,
            tips: [10; 2],
            plain: GAS,
            byte: BYTE,
            decimals: Some(6),
            authorizations: true,
            router: ROUTER,
            blocks: vec![(0, Vec::new()); 20],
            ..Self::default()
        }
    }

    pub(super) fn block(&self, number: u64) -> Block {
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

    pub(super) fn head(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    pub(super) fn mine(&mut self) {
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

    /// Gas of a transaction with so many bytes of data, which are no zeros.
    pub(super) fn intrinsic(&self, bytes: usize) -> u64 {
        self.plain + self.byte * u64::try_from(bytes).unwrap()
    }

    pub(super) fn wants_more(&self, order: Option<B256>, data: &Value) -> bool {
        let wanted = order.and_then(|order| self.whole.get(&order));
        wanted.is_some_and(|wanted| data["pay"][0][2] != wanted.to_string())
    }

    pub(super) fn nonce(&self, owner: &str) -> u64 {
        self.state().nonces.get(owner).copied().unwrap_or_default()
    }

    pub(super) fn state(&self) -> State {
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

    /// As nodes take transactions into their pools.
    pub(super) fn offered(&mut self, raw: &Bytes) -> Broadcast {
        let draft: Value = serde_json::from_slice(raw).unwrap();
        let hash = keccak256(raw);
        let (nonce, from) = (nonce_of(&draft), text(&draft, "from"));
        if self.never && text(&draft, "data") != "0x" {
            return Broadcast::Refused("oversized data".into());
        }
        if self.refuse && text(&draft, "data") != "0x" {
            return Broadcast::Rejected("not today".into());
        }
        if draft["gas"].as_u64().unwrap() < self.intrinsic(raw_data(&draft).len()) {
            return Broadcast::Refused("intrinsic gas too low".into());
        }
        if nonce < self.nonce(&from) {
            return Broadcast::Used;
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

impl State {
    fn apply(&mut self, block: u64, tx: &Tx, world: &World) {
        let from = text(&tx.draft, "from");
        *self.nonces.entry(from.clone()).or_default() += 1;
        let price = number(&tx.draft, "max").min(U256::from(world.base) + number(&tx.draft, "tip"));
        let fee = price * U256::from(world.intrinsic(raw_data(&tx.draft).len()));
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

    pub(super) fn effects(&mut self, from: &str, data: &Value) -> Option<Effects> {
        let (mut balances, mut approvals) = (self.balances.clone(), self.approvals.clone());
        if let Some(spender) = data["approve"].as_str() {
            let key = (from.to_owned(), spender.to_owned(), text(data, "currency"));
            approvals.insert(key, number(data, "amount"));
        }
        let mut effects = Vec::new();
        for payment in data["pay"].as_array().into_iter().flatten() {
            let field = |at: usize| payment[at].as_str().unwrap().to_owned();
            let (to, currency) = (field(0), field(1));
            let amount: U256 = field(2).parse().unwrap();
            if let Some(router) = data["router"].as_str().filter(|_| currency != native()) {
                let key = (from.to_owned(), router.to_owned(), currency.clone());
                let allowed = approvals.entry(key).or_default();
                *allowed = allowed.checked_sub(amount)?;
            }
            let purse = balances
                .entry((from.to_owned(), currency.clone()))
                .or_default();
            *purse = purse.checked_sub(amount)?;
            *balances.entry((to.clone(), currency.clone())).or_default() += amount;
            effects.push((to, currency, amount));
        }
        (self.balances, self.approvals) = (balances, approvals);
        Some(effects)
    }
}

pub(super) fn native() -> String {
    vm::SETTLEMENT.codec.native().to_lowercase()
}

pub(super) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_lowercase()
}

fn number(value: &Value, field: &str) -> U256 {
    text(value, field).parse().unwrap()
}

pub(super) fn nonce_of(draft: &Value) -> u64 {
    draft["nonce"].as_u64().unwrap()
}

fn raw_data(draft: &Value) -> Bytes {
    text(draft, "data").parse().unwrap()
}

fn data(draft: &Value) -> Value {
    serde_json::from_slice(&raw_data(draft)).unwrap_or(Value::Null)
}
