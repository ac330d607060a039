//! Slots, blocks and forks: the chain that nodes show, with the state after each of its blocks.

use litesvm::LiteSVM;
use solana_clock::Clock;
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

use super::{executed::Executed, sha256};

/// Blocks for which a transaction may refer to a block's hash.
pub const VALID_BLOCKS: usize = 150;
/// Slots in a second are not whole: a block's time is that of so many slots before.
pub const SLOTS_PER_SECOND: u64 = 2;

/// A block with what it did.
#[derive(Clone)]
pub struct Block {
    pub slot: u64,
    pub parent: u64,
    pub height: u64,
    pub hash: Hash,
    pub previous: Hash,
    /// Unix seconds; `None` where the nodes do not know.
    pub time: Option<i64>,
    pub transactions: Vec<Executed>,
    /// The state after it.
    pub state: LiteSVM,
}

/// How far a commitment is behind the newest block, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    pub confirmed: usize,
    pub finalized: usize,
}

/// The chain.
pub struct Ledger {
    /// From the first to the newest, never empty.
    blocks: Vec<Block>,
    /// The slot that comes next.
    next: u64,
    /// What waits for a block.
    pub waiting: Vec<VersionedTransaction>,
    pub lag: Lag,
    /// Whether a transaction makes a block at once.
    pub automatic: bool,
    /// Whether nodes know the time of the blocks that are made.
    pub timed: bool,
    /// Tells apart the blocks of forks.
    forks: u64,
}

impl Ledger {
    /// A chain of one block with this state, at the slot of that state's clock, made at `time` (unix seconds).
    pub fn new(mut state: LiteSVM, time: i64, lag: Lag) -> Self {
        // Programs that come with the state are not there before that slot.
        let slot = state.get_sysvar::<Clock>().slot;
        set_clock(&mut state, slot, time);
        let first = Block {
            slot,
            parent: slot.saturating_sub(1),
            height: 0,
            hash: Hash::from(sha256(b"devnet genesis")),
            previous: Hash::default(),
            time: Some(time),
            transactions: Vec::new(),
            state,
        };
        Self {
            next: slot + 1,
            blocks: vec![first],
            waiting: Vec::new(),
            lag,
            automatic: true,
            timed: true,
            forks: 0,
        }
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The newest block.
    #[allow(clippy::expect_used, reason = "there is always the first block")]
    pub fn tip(&self) -> &Block {
        self.blocks.last().expect("a first block")
    }

    /// Makes a block of what waits at the next slot; what no block takes is dropped. The reasons, in the order of what
    /// waited.
    pub fn make(&mut self) -> Vec<Result<Signature, TransactionError>> {
        let (slot, tip) = (self.next, self.tip());
        let (parent, previous, height) = (tip.slot, tip.hash, tip.height + 1);
        let mut state = tip.state.clone();
        let time = clock(&state).saturating_add(passed(slot - parent, slot));
        set_clock(&mut state, slot, time);
        let mut transactions = Vec::new();
        let mut outcomes = Vec::new();
        for one in std::mem::take(&mut self.waiting) {
            let done = self
                .admits(&one)
                .and_then(|()| Executed::run(&mut state, one));
            outcomes.push(done.map(|executed| {
                let signature = executed.signature();
                transactions.push(executed);
                signature
            }));
        }
        let mut seed = previous.to_bytes().to_vec();
        seed.extend(slot.to_le_bytes());
        seed.extend(self.forks.to_le_bytes());
        self.blocks.push(Block {
            slot,
            parent,
            height,
            hash: Hash::from(sha256(&seed)),
            previous,
            time: self.timed.then_some(time),
            transactions,
            state,
        });
        self.next = slot + 1;
        outcomes
    }

    /// Lets `slots` slots go by without a block.
    pub fn skip(&mut self, slots: u64) {
        self.next += slots;
    }

    /// Goes back by `blocks` blocks, never the first: what was in them is gone, and the chain goes on from there at
    /// later slots.
    pub fn drop_blocks(&mut self, blocks: usize) {
        let left = self.blocks.len().saturating_sub(blocks).max(1);
        self.blocks.truncate(left);
        self.forks += 1;
    }

    /// From now on nodes know the time of every block that there is.
    pub fn tell_times(&mut self) {
        for block in &mut self.blocks {
            block.time = Some(clock(&block.state));
        }
    }

    /// Changes the state after the newest block, as no transaction could.
    pub fn change(&mut self, change: impl FnOnce(&mut LiteSVM)) {
        if let Some(tip) = self.blocks.last_mut() {
            change(&mut tip.state);
        }
    }

    /// Whether a block may take `transaction`: it refers to a recent block, and is in none yet.
    pub fn admits(&self, transaction: &VersionedTransaction) -> Result<(), TransactionError> {
        let named = transaction.message.recent_blockhash();
        let recent = self.blocks.iter().rev().take(VALID_BLOCKS);
        if !recent.map(|block| block.hash).any(|hash| hash == *named) {
            return Err(TransactionError::BlockhashNotFound);
        }
        let signature = transaction.signatures.first().copied().unwrap_or_default();
        match self.find(&signature) {
            Some(_) => Err(TransactionError::AlreadyProcessed),
            None => Ok(()),
        }
    }

    /// The block of a transaction, by its position, and the transaction's position in it.
    pub fn find(&self, signature: &Signature) -> Option<(usize, usize)> {
        let blocks = self.blocks.iter().enumerate().rev();
        let mut found = blocks.filter_map(|(at, block)| {
            let mut inside = block.transactions.iter();
            Some((at, inside.position(|one| one.signature() == *signature)?))
        });
        found.next()
    }
}

/// The unix seconds of a state.
pub fn clock(state: &LiteSVM) -> i64 {
    state.get_sysvar::<Clock>().unix_timestamp
}

fn set_clock(state: &mut LiteSVM, slot: u64, time: i64) {
    let mut clock = state.get_sysvar::<Clock>();
    clock.slot = slot;
    clock.unix_timestamp = time;
    state.set_sysvar(&clock);
}

/// Whole seconds that `slots` slots up to `slot` take.
fn passed(slots: u64, slot: u64) -> i64 {
    let seconds = slot / SLOTS_PER_SECOND - (slot - slots) / SLOTS_PER_SECOND;
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
