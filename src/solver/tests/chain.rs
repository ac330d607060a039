//! A chain in memory that executes what the test's codec made: it includes, drops, replaces and reorgs transactions, and
//! knows every balance by replaying its blocks. Its providers are scripts that answer from it.

mod accounts;
mod family;
mod provider;
mod reader;
mod world;

use std::sync::{Arc, Mutex};

use alloy::primitives::{B256, U256, keccak256};
use serde_json::{Map, Value, json};
use vm::{
    Chain, ChainEntry,
    trade::{FeeRate, Providers, ProvidersContext},
};

use self::{
    accounts::Accounts,
    family::Codec,
    world::{Tx, nonce_of},
};
pub use self::{family::Steps, world::World};
use super::fuse::Fuse;

pub const GENESIS: u64 = 1_700_000_000;
pub const PACE: u64 = 2;
pub const FINAL: u64 = 5;
/// What any transaction uses.
pub const GAS: u64 = 21_000;
/// Where chains have the contract that says what bytes cost.
const USUAL: &str = "0x00000000000000000000000000000000000000f1";

pub struct FakeChain {
    pub name: &'static str,
    pub number: u64,
    pub fuse: Arc<Fuse>,
    world: Mutex<World>,
}

/// What a provider says that is not so.
#[derive(Clone, Copy, Default)]
pub struct Lies {
    /// Added to every nonce.
    pub nonce: i64,
    pub fees: Option<FeeRate>,
    /// Every estimate reverts.
    pub reverts: bool,
    /// What everything takes, and that all fails which has less than most estimates.
    pub work: Option<u64>,
    /// Of what everything takes, it says so many hundredths.
    pub hundredths: Option<u64>,
    /// What anybody may take of another's.
    pub approved: Option<U256>,
    /// Every transaction is in a block.
    pub included: bool,
    /// Nobody has anything.
    pub poor: bool,
    /// Every transaction is refused for good.
    pub refuses: bool,
    /// Every transaction's time to land is over.
    pub expired: bool,
    /// Of every token.
    pub decimals: Option<u8>,
    /// It answers after half a minute.
    pub hangs: bool,
}

impl FakeChain {
    pub fn new(name: &'static str, number: u64, fuse: Arc<Fuse>) -> Arc<Self> {
        Arc::new(Self {
            name,
            number,
            fuse,
            world: Mutex::new(World::new()),
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
        let honest = self.provider(false);
        Chain {
            spec: entry.spec(vm::SETTLEMENT, false).unwrap(),
            reader: honest.clone(),
            state: Some(honest),
        }
    }

    /// Three providers, or two, of which two must agree.
    pub fn providers(self: &Arc<Self>) -> Providers {
        let data_fees = self.with(|world| world.data_fee);
        let data_fees = data_fees.map(|_| "0x00000000000000000000000000000000000000f0");
        let limits = json!({
            "bytes": 2_000,
            "authorizations": self.with(|world| world.authorizations),
            "dataFees": data_fees,
        });
        self.opened(limits.as_object().cloned())
    }

    /// The same, of whose chain no market file says anything.
    pub fn unlisted_providers(self: &Arc<Self>) -> Providers {
        self.opened(None)
    }

    fn opened(self: &Arc<Self>, limits: Option<Map<String, Value>>) -> Providers {
        let count = if self.with(|world| world.pair) { 2 } else { 3 };
        let providers = (0..count).map(|at| self.provider(at == 0).trading());
        let context = ProvidersContext {
            spec: self.chain().spec,
            number: self.number,
            required: 2,
            limits,
        };
        let opened = vm::ethereum::trade::wallet(context, &Codec, providers.collect());
        let opened = opened.unwrap().unwrap();
        let (without_code, pays_as_signed) =
            self.with(|world| (world.without_code, world.pays_as_signed));
        let accounts = Arc::new(Accounts {
            chain: self.clone(),
            fees: opened.fees.clone(),
            accounts: opened.accounts.clone(),
        });
        Providers {
            fees: accounts.clone(),
            accounts,
            contracts: opened.contracts.filter(|_| !without_code),
            pays_as_signed,
            ..opened
        }
    }
}
