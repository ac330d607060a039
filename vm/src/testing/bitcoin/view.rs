//! The chain as a provider shows it to one question.

use bitcoin::{Block, BlockHash, OutPoint, ScriptBuf, Transaction, TxOut, Txid};
use serde_json::Value;

use super::world::State;
use crate::testing::Manners;

pub struct View<'a> {
    pub state: &'a State,
    pub manners: Manners,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    Waits,
    Block(u64),
}

/// An output of an account.
pub struct Owned<'a> {
    pub at: OutPoint,
    pub output: &'a TxOut,
    pub height: u64,
}

impl View<'_> {
    /// The newest block's height.
    pub fn tip(&self) -> u64 {
        self.state.ledger.height().saturating_sub(self.manners.lag)
    }

    pub fn block(&self, height: u64) -> Option<&Block> {
        (height <= self.tip()).then(|| self.state.ledger.block(height))?
    }

    pub fn hash(&self, height: u64) -> Option<BlockHash> {
        self.block(height).map(Block::block_hash)
    }

    /// A block and its height.
    pub fn block_of(&self, hash: &str) -> Option<(&Block, u64)> {
        let height = self.state.ledger.height_of(&hash.parse().ok()?)?;
        Some((self.block(height)?, height))
    }

    /// A transaction, as its id is written. What blocks have that the provider does not know yet waits.
    pub fn find(&self, txid: &str) -> Option<(&Transaction, Inclusion)> {
        self.transaction(&txid.parse().ok()?)
    }

    pub fn transaction(&self, txid: &Txid) -> Option<(&Transaction, Inclusion)> {
        if self.manners.blind {
            return None;
        }
        match self.state.ledger.find(txid) {
            Some((found, height)) if height <= self.tip() => {
                Some((found, Inclusion::Block(height)))
            }
            Some((found, _)) => Some((found, Inclusion::Waits)),
            None => Some((self.state.pool.find(txid)?, Inclusion::Waits)),
        }
    }

    /// What spends an output.
    pub fn spender(&self, at: &OutPoint) -> Option<(Txid, Inclusion)> {
        let mined = self.state.ledger.spender(at);
        let waits = || self.state.pool.spender(at).map(Transaction::compute_txid);
        let txid = mined.copied().or_else(waits)?;
        Some((txid, self.transaction(&txid)?.1))
    }

    pub fn output(&self, at: &OutPoint) -> Option<(&TxOut, Inclusion)> {
        let (found, place) = self.transaction(&at.txid)?;
        Some((found.output.get(at.vout as usize)?, place))
    }

    /// The outputs of an account in blocks that nothing spends, not even what waits.
    pub fn unspent(&self, script: &ScriptBuf) -> Vec<Owned<'_>> {
        let owned = self.state.ledger.owned(script).iter();
        let unspent = owned.filter(|at| self.spender(at).is_none());
        let unspent = unspent.filter_map(|at| match self.output(at)? {
            (output, Inclusion::Block(height)) => Some(Owned {
                at: *at,
                output,
                height,
            }),
            (_, Inclusion::Waits) => None,
        });
        unspent.collect()
    }

    /// The transactions that wait.
    pub fn waiting(&self) -> Vec<&Transaction> {
        let late = self.state.ledger.blocks().rev();
        let late = late.take_while(|(height, _)| *height > self.tip());
        let late = late.flat_map(|(_, block)| block.txdata.iter().skip(1));
        let all = late.chain(&self.state.pool.0);
        all.filter(|_| !self.manners.blind).collect()
    }

    /// Whether a transaction pays an account or spends what it had.
    pub fn touches(&self, one: &Transaction, script: &ScriptBuf) -> bool {
        let pays = one.output.iter().any(|it| it.script_pubkey == *script);
        let spends = |at: &OutPoint| {
            let spent = self.output(at);
            spent.is_some_and(|(it, _)| it.script_pubkey == *script)
        };
        pays || one.input.iter().any(|it| spends(&it.previous_output))
    }
}

/// Satoshis as nodes write them: bitcoins with eight digits.
pub fn bitcoins(satoshis: u64) -> Value {
    let (whole, part) = (satoshis / 100_000_000, satoshis % 100_000_000);
    serde_json::from_str(&format!("{whole}.{part:08}")).unwrap_or_default()
}
