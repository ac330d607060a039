//! The chain: blocks in memory, under the control of a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use solana_pubkey::Pubkey;

use super::{
    bank::{Bank, Done, Programs},
    rpc,
    wire::Sent,
};
use crate::{http::inside, testing::Manners};

/// Every third slot has no block; which one depends on the fork.
const SKIPPED: u64 = 3;
/// Blocks for which a transaction may name a block's hash.
const LIFE: u64 = 150;
/// Slots below the newest one from which on a block is final.
pub const FINAL: u64 = 6;

/// A scripted chain.
pub struct World {
    pub name: String,
    pub rules: Rules,
    state: Mutex<State>,
}

/// What never changes on a chain.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The chain's number: other chains have other blocks.
    pub number: u64,
    /// Seconds between slots.
    pub pace: u64,
    /// Unix seconds of slot 0.
    pub since: u64,
    /// The depository's program.
    pub depository: Pubkey,
    /// The token of the chain, with 6 decimals.
    pub token: Pubkey,
}

/// A block with its transactions and what accounts have after it.
#[derive(Clone)]
pub(super) struct Mined {
    pub slot: u64,
    pub parent: u64,
    pub height: u64,
    pub hash: [u8; 32],
    pub previous: [u8; 32],
    pub time: u64,
    pub done: Vec<Done>,
    pub after: Bank,
}

/// Everything about a chain that changes.
pub(super) struct State {
    /// Oldest first; never empty.
    pub blocks: Vec<Mined>,
    /// The newest slot, with a block or without.
    pub slot: u64,
    forks: u64,
    stood: u64,
    pool: Vec<Sent>,
    known: BTreeMap<[u8; 64], Sent>,
    pub programs: Programs,
    held: BTreeSet<Pubkey>,
    /// Accounts that never change, with their owners and data.
    pub fixed: BTreeMap<Pubkey, (Pubkey, Vec<u8>)>,
    pub manners: BTreeMap<String, Manners>,
    pub bids: Option<u64>,
}

impl World {
    /// A chain with its first block. Its providers are asked at `http://<name>.inside/<provider>`.
    pub fn new(name: &str, rules: Rules) -> Arc<Self> {
        let state = State {
            blocks: Vec::new(),
            slot: 0,
            forks: 0,
            stood: 0,
            pool: Vec::new(),
            known: BTreeMap::new(),
            programs: Programs {
                depository: rules.depository,
                closed: BTreeSet::new(),
            },
            held: BTreeSet::new(),
            fixed: BTreeMap::new(),
            manners: BTreeMap::new(),
            bids: None,
        };
        let world = Arc::new(Self {
            name: name.to_owned(),
            rules,
            state: Mutex::new(state),
        });
        world.mine(&mut world.lock());
        let listening = Arc::downgrade(&world);
        let answer =
            move |asked: &inside::Asked<'_>| rpc::answer(listening.upgrade()?.as_ref(), asked);
        inside::register(&world.host(), Arc::new(answer));
        world
    }

    fn host(&self) -> String {
        format!("{}{}", self.name, inside::HOST)
    }

    /// The URL of a provider.
    pub fn url(&self, provider: &str) -> String {
        format!("http://{}/{provider}", self.host())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an amount to what an account has in all blocks.
    pub fn fund(&self, owner: &Pubkey, currency: &Pubkey, amount: u64) {
        for mined in &mut self.lock().blocks {
            mined.after.fund(owner, currency, amount);
        }
    }

    /// Gives the token account that `owner` has by its address to `to`, in all blocks: as its owner can, and `to` can give
    /// it back. It is made where there is none.
    pub fn give_away(&self, owner: &Pubkey, currency: &Pubkey, to: &Pubkey) {
        for mined in &mut self.lock().blocks {
            mined.after.give_away(owner, currency, to);
        }
    }

    /// Adds an account that never changes.
    pub fn put(&self, account: Pubkey, owner: Pubkey, data: Vec<u8>) {
        self.lock().fixed.insert(account, (owner, data));
    }

    /// Sets whether payments to an account fail in their blocks. Nodes that try them do not know it.
    pub fn close(&self, account: Pubkey, closed: bool) {
        change(&mut self.lock().programs.closed, account, closed);
    }

    /// Sets whether an account's transactions are kept out of blocks.
    pub fn hold(&self, account: Pubkey, held: bool) {
        change(&mut self.lock().held, account, held);
    }

    /// Sets what transactions of late have bid, in micro-lamports for a compute unit: nothing at first.
    pub fn set_bids(&self, price: u64) {
        self.lock().bids = Some(price);
    }

    /// Sets how a provider behaves.
    pub fn set_manners(&self, provider: &str, manners: Manners) {
        self.lock().manners.insert(provider.to_owned(), manners);
    }

    /// Makes the blocks that are due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        let mut state = self.lock();
        while self.time(&state, state.slot + 1) <= now {
            state.slot += 1;
            self.mine(&mut state);
        }
    }

    /// Delays the next slot by this many seconds.
    pub fn stand(&self, seconds: u64) {
        self.lock().stood += seconds;
    }

    /// The newest slot, with a block or without.
    pub fn slot(&self) -> u64 {
        self.lock().slot
    }

    /// The hash of the newest final block, which transactions name.
    pub fn blockhash(&self) -> [u8; 32] {
        let state = self.lock();
        state.at(state.slot.saturating_sub(FINAL)).hash
    }

    /// Hands a transaction to the chain's nodes. An error is what they say against it.
    pub fn send(&self, raw: &[u8]) -> Result<String, &'static str> {
        let sent = Sent::read(raw).filter(Sent::is_signed);
        let sent = sent.ok_or("Transaction signature verification failure")?;
        let mut state = self.lock();
        state.admits(&sent)?;
        let id = sent.id();
        state.known.insert(sent.signature, sent.clone());
        if !state.pool.contains(&sent) {
            state.pool.push(sent);
        }
        Ok(id)
    }

    /// Has all transactions wait again that a payer ever sent and that no block has, as if some node had kept them.
    pub fn resend(&self, payer: &Pubkey) {
        let mut state = self.lock();
        let own = state.known.values().filter(|one| one.payer() == *payer);
        let gone = own.filter(|one| {
            let waits = state.pool.iter().any(|it| it.signature == one.signature);
            state.find(&one.signature).is_none() && !waits
        });
        let again: Vec<_> = gone.cloned().collect();
        state.pool.extend(again);
    }

    /// All transactions in blocks with their blocks' slots and times, oldest first.
    pub fn history(&self) -> Vec<(u64, u64, Done)> {
        let state = self.lock();
        let all = state.blocks.iter();
        let all = all.flat_map(|mined| {
            let done = mined.done.iter();
            done.map(|done| (mined.slot, mined.time, done.clone()))
        });
        all.collect()
    }

    /// Replaces the blocks of the newest `depth` slots, of which none may be final. The transactions in them for which
    /// `keep` is true wait again; the first new block is empty.
    pub fn reorg(&self, depth: u64, keep: &mut dyn FnMut(&Sent) -> bool) {
        let mut state = self.lock();
        let newest = state.slot;
        let from = (newest + 1).saturating_sub(depth).max(1);
        let kept = state.blocks.partition_point(|mined| mined.slot < from);
        let gone = state.blocks.split_off(kept);
        let done = gone.into_iter().flat_map(|mined| mined.done);
        let mut pool: Vec<_> = done.map(|done| done.sent).filter(|one| keep(one)).collect();
        pool.append(&mut state.pool);
        state.forks += 1;
        state.slot = from - 1;
        while state.slot < newest {
            state.slot += 1;
            if self.mine(&mut state) {
                state.pool.append(&mut pool);
            }
        }
        state.pool.append(&mut pool);
    }

    fn time(&self, state: &State, slot: u64) -> u64 {
        self.rules.since + slot * self.rules.pace + state.stood
    }

    /// Makes the block of the newest slot; `false` where it is skipped.
    fn mine(&self, state: &mut State) -> bool {
        let slot = state.slot;
        if slot > 0 && (slot + state.forks) % SKIPPED == SKIPPED - 1 {
            return false;
        }
        let mut hash = [0; 32];
        hash[0] = 0x5d;
        hash[8..16].copy_from_slice(&self.rules.number.to_be_bytes());
        hash[16..24].copy_from_slice(&state.forks.to_be_bytes());
        hash[24..].copy_from_slice(&slot.to_be_bytes());
        let last = state.blocks.last();
        let mut mined = Mined {
            slot,
            parent: last.map_or(0, |last| last.slot),
            height: last.map_or(0, |last| last.height + 1),
            hash,
            previous: last.map_or([0; 32], |last| last.hash),
            time: self.time(state, slot),
            done: Vec::new(),
            after: last.map(|last| last.after.clone()).unwrap_or_default(),
        };
        for sent in std::mem::take(&mut state.pool) {
            if !state.is_recent(&sent.blockhash, mined.height) {
                continue;
            }
            if state.held.contains(&sent.payer()) {
                state.pool.push(sent);
            } else if let Some(done) = state.included(&mined, &sent) {
                mined.after = done.after.clone();
                mined.done.push(done);
            }
        }
        state.blocks.push(mined);
        true
    }
}

impl State {
    /// The newest block at or below a slot.
    pub fn at(&self, slot: u64) -> &Mined {
        let above = self.blocks.partition_point(|mined| mined.slot <= slot);
        &self.blocks[above.saturating_sub(1)]
    }

    /// A transaction with its block.
    pub fn find(&self, signature: &[u8; 64]) -> Option<(&Mined, &Done)> {
        let mut blocks = self.blocks.iter().rev();
        blocks.find_map(|mined| {
            let mut done = mined.done.iter();
            let found = done.find(|done| done.sent.signature == *signature)?;
            Some((mined, found))
        })
    }

    /// Whether a node takes a transaction now.
    pub fn admits(&self, sent: &Sent) -> Result<(), &'static str> {
        let tip = self.at(self.slot);
        if !self.is_recent(&sent.blockhash, tip.height + 1) {
            return Err("Blockhash not found");
        }
        if self.find(&sent.signature).is_some() {
            return Err("This transaction has already been processed");
        }
        let open = Programs {
            closed: BTreeSet::new(),
            ..self.programs.clone()
        };
        match tip.after.execute(sent, &open) {
            None => Err("Insufficient funds for fee"),
            Some(done) if !done.success => {
                Err("Error processing Instruction 0: custom program error: 0x1")
            }
            Some(_) => Ok(()),
        }
    }

    /// Whether a block of this height takes transactions that name a hash.
    fn is_recent(&self, hash: &[u8; 32], height: u64) -> bool {
        let named = self.blocks.iter().rev().find(|mined| mined.hash == *hash);
        named.is_some_and(|mined| height <= mined.height + LIFE + 1)
    }

    fn included(&self, block: &Mined, sent: &Sent) -> Option<Done> {
        let twice = self.find(&sent.signature).is_some()
            || block.done.iter().any(|done| done.sent == *sent);
        match twice {
            true => None,
            false => block.after.execute(sent, &self.programs),
        }
    }
}

fn change(set: &mut BTreeSet<Pubkey>, key: Pubkey, there: bool) {
    match there {
        true => set.insert(key),
        false => set.remove(&key),
    };
}
