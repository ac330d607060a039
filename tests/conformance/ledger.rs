//! A chain as a node has it, in the words of no family.

use alloy::primitives::{B256, keccak256};
use serde_json::Value;

/// The time of block 0 in unix seconds.
pub const START: u64 = 1_760_000_000;

/// A transaction: its id, and what it does as its family writes it.
#[derive(Clone, Debug)]
pub struct Tx {
    pub id: String,
    pub body: Value,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    /// Unix seconds.
    pub time: u64,
    pub txs: Vec<Tx>,
}

/// The blocks and transactions of one node.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// What the node says of which chain it is.
    pub identity: u8,
    /// The chain that its blocks are of.
    seed: u8,
    fork: u8,
    pace: u64,
    blocks: Vec<Block>,
    pending: Vec<Tx>,
    /// Heights without a block before the next one.
    skipped: u64,
    /// How far the chain's own final block is below the tip.
    pub lag: u64,
}

/// The hash of the first block of a chain.
pub fn genesis(identity: u8) -> B256 {
    keccak256(format!("block 0 of chain {identity}"))
}

impl Ledger {
    /// Chain `identity` with a first block and `length` empty ones, `pace` seconds apart.
    pub fn new(identity: u8, pace: u64, length: u64) -> Self {
        let first = Block {
            number: 0,
            hash: genesis(identity),
            parent: B256::ZERO,
            time: START,
            txs: Vec::new(),
        };
        let mut ledger = Self {
            identity,
            seed: identity,
            fork: 0,
            pace,
            blocks: vec![first],
            pending: Vec::new(),
            skipped: 0,
            lag: 0,
        };
        ledger.grow(length);
        ledger
    }

    pub fn tip(&self) -> &Block {
        self.blocks.last().unwrap()
    }

    /// The time that the next block will have.
    pub fn next_time(&self) -> u64 {
        START + (self.tip().number + 1) * self.pace
    }

    pub fn at(&self, number: u64) -> Option<&Block> {
        self.blocks.iter().find(|block| block.number == number)
    }

    /// The blocks, lowest first.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// The numbers of the blocks, lowest first.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.blocks().map(|block| block.number)
    }

    pub fn by_hash(&self, hash: &B256) -> Option<&Block> {
        self.blocks.iter().find(|block| block.hash == *hash)
    }

    /// The highest block that the chain calls final.
    pub fn finalized(&self) -> &Block {
        let number = self.tip().number.saturating_sub(self.lag);
        let mut below = self.blocks.iter().rev();
        below.find(|block| block.number <= number).unwrap()
    }

    /// The block on which another one stands.
    pub fn parent(&self, block: &Block) -> Option<&Block> {
        self.blocks
            .iter()
            .rev()
            .find(|below| below.number < block.number)
    }

    /// A transaction in a block: the block, its position there, and itself.
    pub fn find(&self, id: &str) -> Option<(&Block, usize, &Tx)> {
        let mut blocks = self.blocks.iter().rev();
        blocks.find_map(|block| {
            let at = block.txs.iter().position(|tx| tx.id == id)?;
            Some((block, at, &block.txs[at]))
        })
    }

    /// A transaction in no block.
    pub fn pending(&self, id: &str) -> Option<&Tx> {
        self.pending.iter().find(|tx| tx.id == id)
    }

    /// Adds empty blocks.
    pub fn grow(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.push(Vec::new());
        }
    }

    /// Adds a block with this transaction; returns its number.
    pub fn put(&mut self, tx: Tx) -> u64 {
        self.pending.retain(|known| known.id != tx.id);
        self.push(vec![tx]);
        self.tip().number
    }

    /// Adds a block with these transactions.
    pub fn push(&mut self, txs: Vec<Tx>) {
        let number = self.tip().number + 1 + std::mem::take(&mut self.skipped);
        let (seed, fork) = (self.seed, self.fork);
        self.blocks.push(Block {
            number,
            hash: keccak256(format!("block {number} of fork {fork} of chain {seed}")),
            parent: self.tip().hash,
            time: START + number * self.pace,
            txs,
        });
    }

    /// The next block has so many heights more without one before it.
    pub fn skip(&mut self, heights: u64) {
        self.skipped += heights;
    }

    /// Adds a transaction that no block has.
    pub fn wait(&mut self, tx: Tx) {
        self.pending.push(tx);
    }

    /// Nodes forget what waits.
    pub fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// The last `depth` blocks give way to one more of another fork, which are empty. Returns the transactions that
    /// were in them.
    pub fn reorg(&mut self, depth: u64) -> Vec<Tx> {
        let gone = self.truncate(depth);
        self.fork += 1;
        self.grow(depth + 1);
        self.pending.extend(gone.iter().cloned());
        gone
    }

    /// The chain begins anew behind its first block.
    pub fn restart(&mut self, length: u64) {
        self.blocks.truncate(1);
        self.fork += 1;
        self.grow(length);
    }

    /// Drops the last blocks; returns the transactions that were in them.
    pub fn truncate(&mut self, blocks: u64) -> Vec<Tx> {
        let kept = self.blocks.len() - usize::try_from(blocks).unwrap();
        assert!(kept > 0, "the first block stays");
        let gone = self.blocks.split_off(kept);
        gone.into_iter().flat_map(|block| block.txs).collect()
    }

    pub fn block_of(&mut self, id: &str) -> &mut Block {
        let mut blocks = self.blocks.iter_mut();
        blocks
            .find(|block| block.txs.iter().any(|tx| tx.id == id))
            .unwrap()
    }

    /// Gives the transaction another content.
    pub fn replace(&mut self, tx: Tx) {
        let block = self.block_of(&tx.id);
        let known = block.txs.iter_mut().find(|known| known.id == tx.id);
        *known.unwrap() = tx;
    }

    /// Gives a block other transactions under the hash that it has.
    pub fn rewrite(&mut self, number: u64, txs: Vec<Tx>) {
        let mut blocks = self.blocks.iter_mut();
        let block = blocks.find(|block| block.number == number);
        block.unwrap().txs = txs;
    }

    /// The node knows nothing of the transaction.
    pub fn forget(&mut self, id: &str) {
        self.block_of(id).txs.retain(|tx| tx.id != id);
    }
}
