//! What the blocks of a chain have. Blocks are real ones, except for their proof of work.

use std::collections::HashMap;

use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, OutPoint, ScriptBuf, Sequence, Transaction, TxIn,
    TxMerkleNode, TxOut, Txid, Witness,
    absolute::LockTime,
    block::{Header, Version},
    constants::genesis_block,
    hashes::Hash,
    opcodes::OP_TRUE,
    script::Builder,
    transaction,
};

/// Blocks on top of a coinbase before its outputs can be spent.
pub const MATURITY: u64 = 100;
/// What a coinbase pays.
const SUBSIDY: Amount = Amount::from_sat(50 * 100_000_000);

/// The blocks of a chain; never empty.
#[derive(Clone)]
pub struct Ledger {
    blocks: Vec<Block>,
    hashes: HashMap<BlockHash, u64>,
    /// Where transactions stand: the height, and the place in the block.
    places: HashMap<Txid, (u64, usize)>,
    spenders: HashMap<OutPoint, Txid>,
    /// Outputs by what they pay, the oldest first.
    owned: HashMap<ScriptBuf, Vec<OutPoint>>,
}

/// What makes a block differ from those of other chains and forks.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub chain: u64,
    pub fork: u64,
    /// Unix seconds.
    pub time: u64,
}

impl Ledger {
    /// The chain of a network of one's own with its first block alone.
    pub fn new() -> Self {
        Self {
            hashes: HashMap::new(),
            blocks: Vec::new(),
            places: HashMap::new(),
            spenders: HashMap::new(),
            owned: HashMap::new(),
        }
        .with(genesis_block(bitcoin::Network::Regtest))
    }

    fn with(mut self, block: Block) -> Self {
        self.push(block);
        self
    }

    pub fn height(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    pub fn block(&self, height: u64) -> Option<&Block> {
        self.blocks.get(usize::try_from(height).ok()?)
    }

    pub fn height_of(&self, hash: &BlockHash) -> Option<u64> {
        self.hashes.get(hash).copied()
    }

    /// A transaction and its height.
    pub fn find(&self, txid: &Txid) -> Option<(&Transaction, u64)> {
        let (height, place) = self.places.get(txid)?;
        let found = self.block(*height)?.txdata.get(*place)?;
        Some((found, *height))
    }

    pub fn spender(&self, output: &OutPoint) -> Option<&Txid> {
        self.spenders.get(output)
    }

    /// An output with its height, whoever has spent it.
    pub fn output(&self, at: &OutPoint) -> Option<(&TxOut, u64)> {
        let (made, height) = self.find(&at.txid)?;
        Some((made.output.get(at.vout as usize)?, height))
    }

    /// An output that no block spends and that the next one can.
    pub fn unspent(&self, at: &OutPoint) -> Option<&TxOut> {
        let (output, height) = self.output(at)?;
        let is_coinbase = self.find(&at.txid)?.0.is_coinbase();
        let ripe = !is_coinbase || height + MATURITY <= self.height() + 1;
        (ripe && self.spender(at).is_none()).then_some(output)
    }

    /// All outputs that ever paid a script, the oldest first.
    pub fn owned(&self, script: &ScriptBuf) -> &[OutPoint] {
        self.owned.get(script).map_or(&[], Vec::as_slice)
    }

    /// All blocks with their heights.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (u64, &Block)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.map(|(height, block)| (height as u64, block))
    }

    /// Makes the next block.
    pub fn mine(&mut self, transactions: Vec<Transaction>, mark: Mark) {
        let height = self.height() + 1;
        let mut txdata = vec![coinbase(height, mark)];
        txdata.extend(transactions);
        let last = self.block(self.height()).map(Block::block_hash);
        let header = Header {
            version: Version::TWO,
            prev_blockhash: last.unwrap_or_else(BlockHash::all_zeros),
            merkle_root: TxMerkleNode::all_zeros(),
            time: u32::try_from(mark.time).unwrap_or(u32::MAX),
            bits: CompactTarget::from_consensus(0x207f_ffff),
            nonce: 0,
        };
        let mut block = Block { header, txdata };
        if let Some(root) = block.compute_merkle_root() {
            block.header.merkle_root = root;
        }
        self.push(block);
    }

    /// Removes the blocks above a height; their transactions, without coinbases, the oldest first.
    pub fn cut(&mut self, height: u64) -> Vec<Transaction> {
        let kept = usize::try_from(height)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let gone = self.blocks.split_off(kept.min(self.blocks.len()));
        let kept = std::mem::take(&mut self.blocks);
        *self = kept.into_iter().fold(
            Self {
                blocks: Vec::new(),
                hashes: HashMap::new(),
                places: HashMap::new(),
                spenders: HashMap::new(),
                owned: HashMap::new(),
            },
            Self::with,
        );
        let gone = gone.into_iter().flat_map(|block| block.txdata);
        gone.filter(|one| !one.is_coinbase()).collect()
    }

    fn push(&mut self, block: Block) {
        let height = self.blocks.len() as u64;
        self.hashes.insert(block.block_hash(), height);
        for (place, one) in block.txdata.iter().enumerate() {
            let txid = one.compute_txid();
            self.places.insert(txid, (height, place));
            for input in one.input.iter().filter(|it| !it.previous_output.is_null()) {
                self.spenders.insert(input.previous_output, txid);
            }
            for (vout, output) in (0..).zip(&one.output) {
                let script = output.script_pubkey.clone();
                let owned = self.owned.entry(script).or_default();
                owned.push(OutPoint::new(txid, vout));
            }
        }
        self.blocks.push(block);
    }
}

/// Its output is spent by the chain alone.
fn coinbase(height: u64, mark: Mark) -> Transaction {
    let marked = [height, mark.chain, mark.fork]
        .map(u64::to_be_bytes)
        .concat();
    let mut script = vec![24];
    script.extend(marked);
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::null(),
            script_sig: script.into(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        }],
        output: vec![TxOut {
            value: SUBSIDY,
            script_pubkey: Builder::new().push_opcode(OP_TRUE).into_script(),
        }],
    }
}
