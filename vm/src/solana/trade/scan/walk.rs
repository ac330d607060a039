//! Whole blocks, one on the other: what is in them, and which slots the chain skipped.

use std::ops::RangeInclusive;

use futures::{StreamExt, TryStreamExt, stream};
use solana_pubkey::Pubkey;

use super::{
    super::{
        super::{
            decode::Depository,
            question::Standing,
            raw::{RawMeta, RawTransaction},
        },
        node::Node,
    },
    asked::{RawFullBlock, RawInside},
};
use crate::{
    ReadError,
    trade::DepositTx,
    types::{B256, Block, Bytes},
};

/// Blocks that are read at a time. Each has some megabytes.
const AT_ONCE: usize = 4;

/// A block of a walk.
pub struct Walked {
    slot: u64,
    parent_slot: u64,
    standing: Standing,
    found: Vec<DepositTx>,
}

/// The deposits in all blocks of these slots, each of which stands on the one before: a slot between two of them was
/// skipped.
pub async fn deposits(
    node: &Node,
    slots: RangeInclusive<u64>,
) -> Result<(Vec<DepositTx>, Option<(u64, B256)>), ReadError> {
    let asked = node.link.questions.between(*slots.start(), *slots.end());
    let there = node.link.read(Box::pin(asked)).await?;
    let walked = stream::iter(there).map(|slot| walked(node, slot));
    let walked: Vec<Walked> = walked.buffered(AT_ONCE).try_collect().await?;
    linked(&walked, *slots.start())?;
    let last = walked.last();
    let last = last.map(|last| (last.slot, last.standing.hash));
    let found = walked.into_iter().flat_map(|block| block.found);
    Ok((found.collect(), last))
}

/// Whether a walk ended at a block.
pub fn ended(last: Option<(u64, B256)>, end: &Block) -> Result<(), ReadError> {
    match last == Some((end.number, end.hash)) {
        true => Ok(()),
        false => Err(doubt("the blocks do not end where the chain does")),
    }
}

fn linked(walked: &[Walked], from: u64) -> Result<(), ReadError> {
    let skipped = walked
        .first()
        .is_none_or(|first| first.parent_slot < from || first.slot == 0);
    let pairs = walked.windows(2);
    let mut pairs = pairs.map(|pair| {
        let [before, after] = pair else {
            return true;
        };
        (after.parent_slot, after.standing.parent) == (before.slot, before.standing.hash)
    });
    match skipped && pairs.all(|on_it| on_it) {
        true => Ok(()),
        false => Err(doubt("a block does not stand on the one before")),
    }
}

/// What the block `hash` at a slot has for the depository.
pub async fn of_block(node: &Node, slot: u64, hash: B256) -> Result<Vec<DepositTx>, ReadError> {
    let walked = walked(node, slot).await?;
    match walked.standing.hash == hash {
        true => Ok(walked.found),
        false => Err(doubt("another block at its slot")),
    }
}

/// A block with what it has for the depository. Anybody can make a block larger than what is read of one, by what
/// programs tell each other: then the transactions that concern the depository are asked for one by one.
async fn walked(node: &Node, slot: u64) -> Result<Walked, ReadError> {
    let closed = |_| doubt("the line is closed");
    let permit = node.one_block.acquire().await.map_err(closed)?;
    let asked = node.blocks.questions.whole(slot);
    let whole = node.blocks.read(Box::pin(asked)).await;
    let walked = match whole {
        Ok(whole) => Box::pin(of_whole(node, slot, whole)).await,
        Err(error @ (ReadError::Doubtful(_) | ReadError::Foreign(_))) => Err(error),
        Err(error) => {
            tracing::debug!(%error, slot, "a block is read by its accounts");
            Box::pin(of_accounts(node, slot)).await
        }
    };
    drop(permit);
    walked
}

async fn of_whole(node: &Node, slot: u64, whole: RawFullBlock) -> Result<Walked, ReadError> {
    let standing = whole.standing()?;
    let (parent_slot, block_time) = (whole.parent_slot, whole.block_time);
    let mut found = Vec::new();
    for inside in of_depository(node, whole) {
        let id = inside.transaction.signatures.first();
        let id = id.map(|id| Bytes::copy_from_slice(id.bytes()));
        let id = id.ok_or_else(|| doubt("a transaction without a signature"))?;
        let raw = RawTransaction {
            slot,
            block_time,
            meta: inside.meta,
            transaction: inside.transaction,
            version: inside.version,
        };
        found.extend(node.of_shown(&id, raw, standing.hash).await?);
    }
    Ok(Walked {
        slot,
        parent_slot,
        standing,
        found,
    })
}

async fn of_accounts(node: &Node, slot: u64) -> Result<Walked, ReadError> {
    let asked = node.blocks.questions.block_accounts(slot);
    let block = node.blocks.read(Box::pin(asked)).await?;
    let (standing, parent_slot) = (block.standing(), block.parent_slot);
    let ids = match &node.rules.depository {
        Some(depository) => block.ids_of_any([&depository.program, &depository.vault]),
        None => Vec::new(),
    };
    drop(block);
    let found = node.of_ids(slot, ids, standing.hash).await?;
    Ok(Walked {
        slot,
        parent_slot,
        standing,
        found,
    })
}

/// The transactions that can put something into the depository. One whose effects are not kept may be any.
fn of_depository(node: &Node, whole: RawFullBlock) -> Vec<RawInside> {
    let Some(depository) = &node.rules.depository else {
        return Vec::new();
    };
    let inside = whole.transactions.into_iter();
    inside
        .filter(|inside| concerns(depository, inside))
        .collect()
}

fn concerns(depository: &Depository, inside: &RawInside) -> bool {
    let Some(meta) = &inside.meta else {
        return true;
    };
    let own = |key: &Pubkey| *key == depository.program || *key == depository.vault;
    let named = inside.transaction.message.account_keys.iter();
    let loaded = meta.loaded_addresses.iter();
    let loaded = loaded.flat_map(|loaded| loaded.writable.iter().chain(&loaded.readonly));
    let mut keys = named.chain(loaded);
    !meta.failed && (keys.any(|key| own(&key.0)) || holds(depository, meta))
}

/// Whether the vault holds tokens of the transaction afterwards.
fn holds(depository: &Depository, meta: &RawMeta) -> bool {
    let held = meta.post_token_balances.iter().flatten();
    let mut owners = held.filter_map(|held| held.owner);
    owners.any(|owner| owner.0 == depository.vault)
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(slot: u64, parent_slot: u64) -> Walked {
        let hash = |slot: u64| B256::left_padding_from(&slot.to_be_bytes());
        Walked {
            slot,
            parent_slot,
            standing: Standing {
                hash: hash(slot),
                parent: hash(parent_slot),
                time: None,
                height: None,
            },
            found: Vec::new(),
        }
    }

    #[test]
    fn blocks_stand_on_each_other_over_skipped_slots() {
        let chain = || vec![walked(5, 3), walked(6, 5), walked(9, 6)];
        assert_eq!(linked(&chain(), 4), Ok(()));
        assert_eq!(linked(&chain(), 5), Ok(()));
        assert_eq!(linked(&[], 5), Ok(()));
        assert_eq!(linked(&[walked(0, 0), walked(1, 0)], 0), Ok(()));
        // The block at 3 is kept back.
        assert!(linked(&chain(), 3).is_err());
        let mut gap = chain();
        gap.remove(1);
        assert!(linked(&gap, 4).is_err());
        let mut fork = chain();
        fork[1].standing.hash = B256::ZERO;
        assert!(linked(&fork, 4).is_err());
    }
}
