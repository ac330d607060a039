//! A chain in memory with the contracts of the protocol, which includes, drops, replaces and reorgs transactions. It shows
//! raw receipts, as nodes do. It is not `vm::testing::Script`, since nothing here is scripted: the family's own encoding is
//! executed, its own decoding is read, and every state follows from the transactions before it.

pub mod abi;
mod bitcoin;
pub mod ledger;
pub mod ledger_provider;
pub mod provider;
mod raw;
mod solana;
pub mod state;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use alloy::{
    consensus::{Transaction as _, TxEnvelope},
    eips::eip2718::Decodable2718,
    primitives::{Address, B256, Bytes, Log, U256, keccak256},
};
use vm::{Block, ChainSpec, ethereum::decode::Rules, protocol::message::Domain};

use self::state::{Frame, Message, Reverted, State};

/// Blocks until nothing is undone.
pub const FINAL: u64 = 5;
/// Blocks that are there before anything happens.
const BEFORE: u64 = 20;
/// Currencies of which the signer's holdings are written down.
const WATCHED: [Address; 4] = [
    crate::market::NATIVE,
    crate::market::USDC,
    crate::market::BRIDGED,
    crate::market::JUNK,
];
/// Who mines.
const MINER: Address = Address::repeat_byte(0xfe);

/// A chain in memory; each provider shows it as its own manners are.
pub struct Chain {
    pub name: &'static str,
    pub number: u64,
    /// Seconds between blocks.
    pub pace: u64,
    pub spec: Arc<ChainSpec>,
    pub rules: Rules,
    /// Where executions are valid.
    pub domain: Domain,
    /// The one account that signs what it sends.
    pub signer: Address,
    world: Mutex<World>,
    /// What was tried last: each provider is asked for the same.
    tried: Mutex<Option<Tried>>,
}

/// What calls at a head would take.
struct Tried {
    head: Option<B256>,
    priced: bool,
    messages: Vec<Asked>,
    answer: Result<u64, Reverted>,
}

/// A call that was tried.
struct Asked {
    from: Address,
    to: Address,
    value: U256,
    data: Vec<u8>,
}

impl Asked {
    fn of(message: &Message<'_>) -> Self {
        Self {
            from: message.from,
            to: message.to,
            value: message.value,
            data: message.data.to_vec(),
        }
    }

    fn is(&self, message: &Message<'_>) -> bool {
        let ends = (self.from, self.to, self.value);
        ends == (message.from, message.to, message.value) && *self.data == *message.data
    }
}

/// What changes.
pub struct World {
    blocks: Vec<Mined>,
    pool: Vec<Tx>,
    forks: u64,
    highest: u64,
    heights: BTreeMap<B256, u64>,
    /// Transactions that each user has sent.
    sent: BTreeMap<Address, u64>,
    /// Whose transactions come last in each block: those of others have the same logs whether they are there or not.
    pub last: BTreeSet<Address>,
    /// Wei per gas unit.
    pub base: u128,
    pub tip: u128,
    /// The greatest tip that nodes have asked for.
    high: u128,
    /// Seconds that no block was made in.
    stood: u64,
}

/// A block with what was done in it.
#[derive(Clone)]
struct Mined {
    block: Block,
    done: Vec<Done>,
    after: Arc<State>,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Tx {
    pub hash: B256,
    pub from: Address,
    pub to: Address,
    pub value: U256,
    pub data: Bytes,
    /// Of a transaction that the solver signed.
    pub signed: Option<Signed>,
}

/// What a signed transaction has besides.
#[derive(Clone, Copy, Debug)]
pub struct Signed {
    pub nonce: u64,
    pub gas: u64,
    pub max: u128,
    pub tip: u128,
}

/// A transaction in a block.
#[derive(Clone, Debug)]
pub struct Done {
    pub tx: Tx,
    pub success: bool,
    pub logs: Vec<Log>,
    /// The first log's index in the block.
    pub first: u64,
    /// What the sender paid for gas, in all and for a unit.
    pub fee: U256,
    pub price: U256,
    /// What a unit cost at most for whoever paid what nodes asked.
    pub fair: U256,
    /// What the signer had of each currency that the transaction changed, before and after, fees apart.
    pub moved: Vec<(Address, U256, U256)>,
    /// As the family reads it.
    decoded: OnceLock<vm::Transaction>,
}

/// What a node says to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Accepted,
    NonceUsed,
    Underpriced,
    Unfunded,
    /// It is wrong in itself.
    Refused(&'static str),
}

/// The time of a block in unix seconds.
pub fn time(pace: u64, number: u64) -> u64 {
    crate::clock::GENESIS - BEFORE * pace + number * pace
}

/// The hash of a block: no other block of another kind of chain, chain, fork or height has it.
pub fn block_hash((kind, chain): (u8, u64), fork: u64, height: u64) -> B256 {
    let mut hash = [0; 32];
    hash[0] = kind;
    hash[1..9].copy_from_slice(&chain.to_be_bytes());
    hash[16..24].copy_from_slice(&fork.to_be_bytes());
    hash[24..].copy_from_slice(&height.to_be_bytes());
    B256::new(hash)
}

impl Chain {
    pub fn new(spec: Arc<ChainSpec>, name: &'static str, pace: u64, base: Base) -> Arc<Self> {
        let number = u64::try_from(spec.hub_chain_id).unwrap();
        let after = Arc::new(base.state);
        let world = World {
            blocks: Vec::new(),
            pool: Vec::new(),
            forks: 0,
            highest: 0,
            heights: BTreeMap::new(),
            sent: BTreeMap::new(),
            last: BTreeSet::new(),
            base: base.gas,
            tip: base.gas / 10,
            high: base.gas / 10,
            stood: 0,
        };
        let chain = Self {
            rules: Rules::new(&spec).unwrap(),
            name,
            number,
            pace,
            spec,
            domain: base.domain,
            signer: base.signer,
            world: Mutex::new(world),
            tried: Mutex::default(),
        };
        {
            let mut world = chain.lock();
            for number in 0..=BEFORE {
                let block = chain.header(&world, number);
                let (done, after) = (Vec::new(), after.clone());
                world.blocks.push(Mined { block, done, after });
            }
            world.highest = BEFORE;
        }
        Arc::new(chain)
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn header(&self, world: &World, number: u64) -> Block {
        let parent = world
            .blocks
            .last()
            .map_or(B256::ZERO, |last| last.block.hash);
        Block {
            number,
            hash: block_hash((0xb0, self.number), world.forks, number),
            parent,
            time: time(self.pace, number) + world.stood,
        }
    }

    /// No block is made for so many seconds.
    pub fn stand(&self, seconds: u64) {
        self.lock().stood += seconds;
    }

    /// A user's transaction: nobody asks for its nonce or its gas.
    pub fn send(&self, from: Address, to: Address, value: U256, data: Bytes) -> B256 {
        let mut world = self.lock();
        let nonce = world.sent.entry(from).or_default();
        *nonce += 1;
        let seen = format!("{} {from} {to} {value} {data} {nonce}", self.name);
        let hash = keccak256(seen);
        let tx = Tx {
            hash,
            from,
            to,
            value,
            data,
            signed: None,
        };
        world.pool.push(tx);
        hash
    }

    /// A transaction as its sender signed it.
    pub fn broadcast(&self, raw: &[u8]) -> Taken {
        let Ok(envelope) = TxEnvelope::decode_2718(&mut &raw[..]) else {
            return Taken::Refused("unreadable");
        };
        if envelope.chain_id() != Some(self.number) {
            return Taken::Refused("invalid chain id");
        }
        let signature = envelope.signature().as_bytes();
        if state::signer(envelope.signature_hash(), &signature) != Some(self.signer) {
            return Taken::Refused("invalid sender");
        }
        if envelope.gas_limit() < state::intrinsic(envelope.input()) {
            return Taken::Refused("intrinsic gas too low");
        }
        let signed = Signed {
            nonce: envelope.nonce(),
            gas: envelope.gas_limit(),
            max: envelope.max_fee_per_gas(),
            tip: envelope.max_priority_fee_per_gas().unwrap_or_default(),
        };
        let tx = Tx {
            hash: *envelope.tx_hash(),
            from: self.signer,
            to: envelope.to().unwrap_or_default(),
            value: envelope.value(),
            data: envelope.input().clone(),
            signed: Some(signed),
        };
        let mut world = self.lock();
        let state = world.state().clone();
        let next = state.nonces.get(&tx.from).copied().unwrap_or_default();
        if signed.nonce < next {
            return Taken::NonceUsed;
        }
        let most = U256::from(signed.max) * U256::from(signed.gas) + tx.value;
        if state.balance(tx.from, Address::ZERO) < most {
            return Taken::Unfunded;
        }
        let same = |known: &Tx| {
            known
                .signed
                .is_some_and(|known| known.nonce == signed.nonce)
                && known.from == tx.from
        };
        if let Some(at) = world.pool.iter().position(same) {
            let known = &world.pool[at];
            if known.hash == tx.hash {
                return Taken::Accepted;
            }
            let paid = known.signed.map_or(0, |known| known.max);
            if signed.max * 10 < paid * 11 {
                return Taken::Underpriced;
            }
            world.pool.remove(at);
        }
        world.pool.push(tx);
        Taken::Accepted
    }

    /// Mines what is due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        let mut world = self.lock();
        while time(self.pace, world.head() + 1) + world.stood <= now {
            self.mine(&mut world);
        }
    }

    fn mine(&self, world: &mut World) {
        let number = world.head() + 1;
        world.high = world.high.max(world.tip);
        let block = self.header(world, number);
        let mut state = world.state().clone();
        let mut pool = std::mem::take(&mut world.pool);
        let nonce = |tx: &Tx| tx.signed.map_or(0, |signed| signed.nonce);
        pool.sort_by_key(|tx| (world.last.contains(&tx.from), nonce(tx)));
        let (mut done, mut logs) = (Vec::new(), 0);
        for tx in pool {
            if let Some(signed) = tx.signed {
                let next = state.nonces.get(&tx.from).copied().unwrap_or_default();
                if signed.nonce < next {
                    continue;
                }
                if signed.nonce > next || signed.max < world.base {
                    world.pool.push(tx);
                    continue;
                }
            }
            let mut included = self.include(world, &mut state, tx);
            included.first = logs;
            logs += included.logs.len() as u64;
            world.heights.insert(included.tx.hash, number);
            done.push(included);
        }
        world.blocks.push(Mined {
            block,
            done,
            after: state,
        });
        world.highest = world.highest.max(number);
    }

    fn include(&self, world: &World, state: &mut Arc<State>, tx: Tx) -> Done {
        let (mut fee, mut price) = (U256::ZERO, U256::ZERO);
        let before = Arc::make_mut(state);
        if tx.signed.is_some() {
            *before.nonces.entry(tx.from).or_default() += 1;
        }
        let message = Message {
            from: tx.from,
            to: tx.to,
            value: tx.value,
            data: &tx.data,
        };
        let mut frame = self.frame(before.clone(), true);
        let mut outcome = frame.transact(&message);
        if let Some(signed) = tx.signed {
            price = U256::from(signed.max.min(world.base + signed.tip));
            let used = frame.gas.min(signed.gas);
            if frame.gas > signed.gas {
                outcome = Err(Bytes::new());
            }
            fee = price * U256::from(used);
        }
        let success = outcome.is_ok();
        let mut moved = Vec::new();
        if success {
            for currency in WATCHED {
                let had = before.balance(self.signer, currency);
                let has = frame.state.balance(self.signer, currency);
                if had != has {
                    moved.push((currency, had, has));
                }
            }
            *before = frame.state;
        }
        if !fee.is_zero() {
            let left = before.balance(tx.from, Address::ZERO).saturating_sub(fee);
            before.balances.insert((tx.from, Address::ZERO), left);
            before.give(MINER, Address::ZERO, fee);
        }
        Done {
            tx,
            success,
            logs: if success { frame.logs } else { Vec::new() },
            first: 0,
            fee,
            price,
            // A replacement pays a higher tip than is asked for.
            fair: U256::from(world.base + world.high * 2),
            moved,
            decoded: OnceLock::new(),
        }
    }

    fn frame(&self, state: State, priced: bool) -> Frame {
        Frame {
            state,
            logs: Vec::new(),
            gas: 0,
            priced,
            domain: self.domain.clone(),
        }
    }

    /// What calls of one sender would take together, at the head.
    pub fn tried(&self, messages: &[Message<'_>], priced: bool) -> Result<u64, Reverted> {
        let (head, state) = {
            let world = self.lock();
            let head = world.blocks.last().map(|mined| mined.block.hash);
            (head, world.state().clone())
        };
        let asked = |tried: &&Tried| {
            let same = tried.head == head && tried.priced == priced;
            same && tried.messages.len() == messages.len()
                && tried
                    .messages
                    .iter()
                    .zip(messages)
                    .all(|(known, message)| known.is(message))
        };
        let mut last = self.tried.lock().unwrap();
        if let Some(known) = last.as_ref().filter(asked) {
            return known.answer.clone();
        }
        let mut frame = self.frame(state.as_ref().clone(), priced);
        let mut each = messages.iter();
        let answer = each.try_for_each(|message| frame.transact(message));
        let answer = answer.map(|()| frame.gas);
        *last = Some(Tried {
            head,
            priced,
            messages: messages.iter().map(Asked::of).collect(),
            answer: answer.clone(),
        });
        answer
    }

    /// The newest `depth` blocks give way to others, one more of them; what was in them comes again
    /// unless `keep` says no.
    pub fn reorg(&self, depth: u64, keep: &mut dyn FnMut(&Tx) -> bool) {
        let mut world = self.lock();
        let last_final = world.highest.saturating_sub(FINAL).max(BEFORE);
        let head = world.head();
        let from = (head + 1).saturating_sub(depth).max(last_final + 1);
        if from > head {
            return;
        }
        world.forks += 1;
        let gone = world.blocks.split_off(usize::try_from(from).unwrap());
        let txs: Vec<Tx> = gone
            .into_iter()
            .flat_map(|mined| mined.done)
            .map(|done| done.tx)
            .collect();
        for tx in txs {
            world.heights.remove(&tx.hash);
            if keep(&tx) {
                world.pool.push(tx);
            }
        }
        // The first block of the new fork is empty: what comes again comes later.
        let pool = std::mem::take(&mut world.pool);
        self.mine(&mut world);
        world.pool = pool;
        while world.head() < head {
            self.mine(&mut world);
        }
    }

    /// Nodes forget what waits and was signed.
    pub fn forget(&self) {
        self.lock().pool.retain(|tx| tx.signed.is_none());
    }
}

/// What a chain begins with.
pub struct Base {
    pub state: State,
    pub domain: Domain,
    pub signer: Address,
    /// Wei per gas unit.
    pub gas: u128,
}

impl World {
    pub fn head(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    pub fn state(&self) -> &Arc<State> {
        &self.blocks[self.blocks.len() - 1].after
    }

    pub fn state_at(&self, number: u64) -> Option<&Arc<State>> {
        let mined = self.blocks.get(usize::try_from(number).ok()?)?;
        Some(&mined.after)
    }

    pub fn block(&self, number: u64) -> Option<Block> {
        let mined = self.blocks.get(usize::try_from(number).ok()?)?;
        Some(mined.block.clone())
    }

    /// A transaction in a block.
    pub fn find(&self, hash: &B256) -> Option<(&Block, &Done)> {
        let number = *self.heights.get(hash)?;
        let mined = self.blocks.get(usize::try_from(number).ok()?)?;
        let done = mined.done.iter().find(|done| done.tx.hash == *hash)?;
        Some((&mined.block, done))
    }

    /// Everything that was done, in order, with the state before and after its block.
    pub fn history(&self) -> impl Iterator<Item = (&Block, &Done)> {
        self.blocks
            .iter()
            .flat_map(|mined| mined.done.iter().map(|done| (&mined.block, done)))
    }

    /// What was done in some of the blocks.
    pub fn within(&self, blocks: &RangeInclusive<u64>) -> impl Iterator<Item = (&Block, &Done)> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let end = place(blocks.end().saturating_add(1)).min(self.blocks.len());
        let from = place(*blocks.start()).min(end);
        let mined = &self.blocks[from..end];
        mined
            .iter()
            .flat_map(|mined| mined.done.iter().map(|done| (&mined.block, done)))
    }

    /// Whether what an account sent for an order is in a block or waits for one.
    pub fn expects(&self, from: Address, order: B256) -> bool {
        let mined = self.blocks.iter().flat_map(|mined| &mined.done);
        let mut all = mined.map(|done| &done.tx).chain(&self.pool);
        all.any(|tx| tx.from == from && tx.data.ends_with(order.as_slice()))
    }

    pub fn waits(&self, hash: &B256) -> bool {
        self.pool.iter().any(|tx| tx.hash == *hash)
    }

    pub fn pool(&self) -> &[Tx] {
        &self.pool
    }
}
