//! The chain: blocks in memory, under the control of a test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    testing::Manners,
    trade::{Broadcast, CurrencyInfo, FeeRate},
    types::{Amount, B256, Block},
};

use super::{
    state::{Included, Mined, State, change, give, held},
    transaction::{MOST_BYTES, Transaction},
};

/// Every third height has no block; which one depends on the fork.
const SKIPPED: u64 = 3;

/// A chain of the family. Every third height has no block.
pub struct World {
    pub name: String,
    /// The chain's number, for which transactions are signed.
    pub number: u64,
    /// Seconds between heights.
    pub pace: u64,
    /// Unix seconds of height 0.
    pub since: u64,
    state: Mutex<State>,
}

impl World {
    /// A chain whose first block has the time `since` (unix seconds). `pace`: seconds between heights.
    pub fn new(name: &str, number: u64, (pace, since): (u64, u64)) -> Arc<Self> {
        let state = State {
            rate: FeeRate::new(10, 0),
            ..State::default()
        };
        let world = Self {
            name: name.to_owned(),
            number,
            pace,
            since,
            state: Mutex::new(state),
        };
        world.mine(&mut world.lock());
        Arc::new(world)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a currency.
    pub fn list(&self, currency: B256, info: CurrencyInfo) {
        self.lock().currencies.insert(currency, info);
    }

    /// Adds an amount to an account's balance in all blocks.
    pub fn fund(&self, account: B256, currency: B256, amount: Amount) {
        for mined in &mut self.lock().blocks {
            give(&mut mined.after, (account, currency), amount);
        }
    }

    /// The balance of an account at the newest block.
    pub fn balance(&self, account: B256, currency: B256) -> Amount {
        let state = self.lock();
        state
            .last()
            .map_or(Amount::ZERO, |last| held(&last.after, (account, currency)))
    }

    /// Sets what a unit of work costs, in the native currency's smallest unit.
    pub fn set_rate(&self, base: u128) {
        self.lock().rate.base = base;
    }

    /// Sets what every transaction costs besides its work, in the same unit.
    pub fn set_rent(&self, rent: Amount) {
        self.lock().rent = rent;
    }

    /// Sets whether an account refuses payments: a transaction that pays it fails in its block.
    pub fn close(&self, account: B256, closed: bool) {
        change(&mut self.lock().closed, account, closed);
    }

    /// Sets whether an account's transactions are kept out of blocks.
    pub fn hold(&self, account: B256, held: bool) {
        change(&mut self.lock().held, account, held);
    }

    /// Sets how a provider behaves.
    pub fn set_manners(&self, provider: &str, manners: Manners) {
        self.lock().manners.insert(provider.to_owned(), manners);
    }

    pub(super) fn manners(&self, provider: &str) -> Manners {
        self.lock()
            .manners
            .get(provider)
            .copied()
            .unwrap_or_default()
    }

    /// Makes the blocks that are due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        let mut state = self.lock();
        while self.time(&state, state.height + 1) <= now {
            state.height += 1;
            self.mine(&mut state);
        }
    }

    /// Delays the next height by this many seconds.
    pub fn stand(&self, seconds: u64) {
        self.lock().stood += seconds;
    }

    /// The newest height, with a block or without.
    pub fn height(&self) -> u64 {
        self.lock().height
    }

    /// Hands a transaction to the chain's nodes; their answer.
    pub fn send(&self, transaction: &Transaction) -> Broadcast {
        let unsigned = &transaction.unsigned;
        if unsigned.chain != self.number || !transaction.is_signed() {
            return Broadcast::Refused("not signed for this chain".into());
        }
        if transaction.raw().map_or(true, |raw| raw.len() > MOST_BYTES) {
            return Broadcast::Refused("too large".into());
        }
        let mut state = self.lock();
        if state.find(&transaction.signature).is_some() {
            return Broadcast::Used;
        }
        if state.height >= unsigned.expires {
            return Broadcast::Expired;
        }
        let (fee, rent) = state.price(transaction);
        let key = (unsigned.payer, B256::ZERO);
        let funded = state
            .last()
            .is_some_and(|last| held(&last.after, key) >= fee + rent);
        if !funded {
            return Broadcast::Unfunded;
        }
        let id = transaction.signature.clone();
        state.known.insert(id, transaction.clone());
        if !state.waits(&transaction.signature) {
            state.pool.push(transaction.clone());
        }
        Broadcast::Accepted
    }

    /// Has all transactions wait again that a payer ever sent and that no block has, as if some node had kept them.
    pub fn resend(&self, payer: &B256) {
        let mut state = self.lock();
        let own = state.known.values();
        let own = own.filter(|one| one.unsigned.payer == *payer);
        let gone = |one: &&Transaction| {
            let id = &one.signature;
            state.find(id).is_none() && !state.waits(id)
        };
        let again: Vec<_> = own.filter(gone).cloned().collect();
        state.pool.extend(again);
    }

    /// A transaction with its block; `None` where no block has it.
    pub fn find(&self, id: &[u8]) -> Option<Included> {
        self.lock().find(id)
    }

    /// All transactions in blocks, oldest first.
    pub fn history(&self) -> Vec<Included> {
        self.lock().within(0, u64::MAX)
    }

    /// The transactions that wait for a block, oldest first.
    pub fn pool(&self) -> Vec<Transaction> {
        self.lock().pool.clone()
    }

    /// Replaces the blocks of the newest `depth` heights. The transactions in them for which `keep` is true wait again;
    /// the first new block is empty.
    pub fn reorg(&self, depth: u64, keep: &mut dyn FnMut(&Transaction) -> bool) {
        let mut state = self.lock();
        let height = state.height;
        let from = (height + 1).saturating_sub(depth).max(1);
        let kept = state
            .blocks
            .partition_point(|mined| mined.block.number < from);
        let gone = state.blocks.split_off(kept);
        let done = gone.into_iter().flat_map(|mined| mined.done);
        let mut pool: Vec<_> = done
            .map(|done| done.transaction)
            .filter(|one| keep(one))
            .collect();
        pool.append(&mut state.pool);
        state.forks += 1;
        state.height = from - 1;
        while state.height < height {
            state.height += 1;
            if self.mine(&mut state) {
                state.pool.append(&mut pool);
            }
        }
        state.pool.append(&mut pool);
    }

    /// The time of a height in unix seconds.
    fn time(&self, state: &State, height: u64) -> u64 {
        self.since + height * self.pace + state.stood
    }

    /// Makes the block of the newest height; `false` where the height is skipped.
    fn mine(&self, state: &mut State) -> bool {
        let number = state.height;
        if number > 0 && (number + state.forks) % SKIPPED == SKIPPED - 1 {
            return false;
        }
        let mut hash = [0; 32];
        hash[0] = 0x5c;
        hash[8..16].copy_from_slice(&self.number.to_be_bytes());
        hash[16..24].copy_from_slice(&state.forks.to_be_bytes());
        hash[24..].copy_from_slice(&number.to_be_bytes());
        let last = state.last();
        let parent = last.map_or(B256::ZERO, |last| last.block.hash);
        let mut after = last.map(|last| last.after.clone()).unwrap_or_default();
        let block = Block {
            number,
            hash: B256::new(hash),
            parent,
            time: self.time(state, number),
        };
        let mut done = Vec::new();
        for transaction in std::mem::take(&mut state.pool) {
            if transaction.unsigned.expires < number {
                continue;
            }
            match state.held.contains(&transaction.unsigned.payer) {
                true => state.pool.push(transaction),
                false => done.extend(state.include(&mut after, transaction)),
            }
        }
        state.blocks.push(Mined { block, done, after });
        true
    }
}
