//! When a block counts as one that will not be undone. Pure.

use serde::{Deserialize, Serialize};

use crate::types::{Block, Head};

/// How deep and how old a block must be before a statement about it is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finality {
    /// Blocks on top of the statement's block: `head - block >= blocks`.
    pub blocks: u64,
    /// Seconds between the statement's block and the head.
    pub seconds: u64,
    /// Additionally at or below the chain's own tag.
    pub tag: Option<FinalityTag>,
}

impl Finality {
    /// Whether `block` is final as seen from `head`. A block above the head never is.
    pub fn met(&self, block: &Block, head: &Head) -> bool {
        let deep = head
            .block
            .number
            .checked_sub(block.number)
            .is_some_and(|d| d >= self.blocks);
        let old = head
            .block
            .time
            .checked_sub(block.time)
            .is_some_and(|s| s >= self.seconds);
        let tagged = self.tag.is_none() || head.tagged.is_some_and(|n| block.number <= n);
        deep && old && tagged
    }

    /// Where to look next for a final block when `block` is deep enough below `head` but not yet old enough: as much
    /// deeper as its age falls short, and at least half as deep again; `None` below the first block. Everybody who sees
    /// this chain looks at the same heights.
    pub fn older(&self, head: &Block, block: &Block) -> Option<u64> {
        let depth = head.number.saturating_sub(block.number);
        let age = head.time.saturating_sub(block.time).max(1);
        let wanted = depth.saturating_mul(self.seconds).div_ceil(age);
        let next = wanted.max(depth.saturating_add(depth / 2 + 1));
        (block.number > 0).then(|| head.number.saturating_sub(next))
    }

    /// Seconds after which a block is usually final on a chain with so many seconds between blocks.
    pub fn usual(&self, block_seconds: u64) -> u64 {
        let depth = self.blocks.saturating_add(1).saturating_mul(block_seconds);
        let tagged = if self.tag.is_some() { TAGGED } else { 0 };
        depth.max(self.seconds).max(tagged)
    }
}

/// Seconds within which chains that name their final block usually do: some epochs.
const TAGGED: u64 = 1_800;

/// The chain's own word for "will not be undone".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FinalityTag {
    Safe,
    Finalized,
}
