//! What a block's header says of the logs in it, and whether a node holds to that. Pure.
//!
//! A header commits to a bloom of every log's address and topics, its hash to the header, and the next
//! block to its hash: a node that shows no logs of a block shows the same chain as everybody and a bloom
//! that has them. Where a bloom may hold a deposit, all of the block's logs together
//! must make this very bloom. Anybody can fill a bloom; nobody can make an honest node fail.

use alloy::{
    primitives::{Bloom, BloomInput},
    rpc::types::Header,
};

use super::deposit_tx::Found;
use crate::ethereum::{
    decode::{Doubt, Rules},
    event::{CALL_EXECUTED, ERC20_DEPOSIT, NATIVE_DEPOSIT, TRANSFER},
};
use crate::types::{Block, EvmAddress};

/// A header that is what its hash says.
pub struct Summary {
    pub block: Block,
    bloom: Bloom,
}

impl Summary {
    pub fn of(header: &Header) -> Result<Self, Doubt> {
        if header.inner.hash_slow() != header.hash {
            return Err(Doubt("a header that is not what its hash says"));
        }
        Ok(Self {
            block: Block {
                number: header.number,
                hash: header.hash,
                parent: header.parent_hash,
                time: header.timestamp,
            },
            bloom: header.logs_bloom,
        })
    }

    /// Whether the block may have logs that are asked for to find deposits.
    pub fn may_hold(&self, rules: &Rules, depository: EvmAddress) -> bool {
        let has = |bytes: &[u8]| self.bloom.contains_input(BloomInput::Raw(bytes));
        let events = [NATIVE_DEPOSIT, ERC20_DEPOSIT, CALL_EXECUTED];
        let mut depositories = rules.depositories().iter();
        let has_event = events.iter().any(|topic| has(topic.as_slice()))
            && depositories.any(|one| has(one.as_slice()));
        has_event || has(TRANSFER.as_slice()) && has(depository.into_word().as_slice())
    }

    /// Whether these are the block's logs, as far as its bloom can tell.
    pub fn is_made_of(&self, logs: &[Found]) -> bool {
        let mut bloom = Bloom::ZERO;
        for log in logs {
            bloom.accrue_raw_log(log.address, &log.topics);
        }
        bloom == self.bloom
    }
}

/// Whether the headers are one chain that ends at `end`.
pub fn linked(headers: &[Summary], from: u64, end: &Block) -> Result<(), Doubt> {
    let numbered = headers.iter().map(|header| header.block.number);
    let last = headers.last().map(|header| header.block.hash);
    if !numbered.eq(from..=end.number) || last != Some(end.hash) {
        return Err(Doubt("headers of other blocks than were asked for"));
    }
    let mut pairs = headers.windows(2);
    match pairs.all(|pair| pair[1].block.parent == pair[0].block.hash) {
        true => Ok(()),
        false => Err(Doubt("headers that are no chain")),
    }
}

#[cfg(test)]
mod tests;
