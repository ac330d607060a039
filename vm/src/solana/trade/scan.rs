//! Finds deposits through one node: by the transactions that name the depository's program or vault, or in whole blocks.
//!
//! A height is a slot, and leaders skip some. A slot was skipped where the next block stands on an older one: a node
//! that has merely lost a block shows none on top of it.
//!
//! The node's index of transactions by account is much cheaper than whole blocks, which a busy chain makes megabytes of
//! each second. It has no bare transfers of tokens into the vault's accounts, which name no order. A block in which many
//! transactions name the depository, as anybody can have them, is read as a whole. An entry with `depositScan: blocks` in
//! its `additionalData` reads all blocks so, and again for [`Scanner::omitted`].

mod asked;
mod inside;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use solana_pubkey::Pubkey;

use self::asked::PAGE;
pub use self::inside::Inside;
use super::{
    super::{
        decode::Depository,
        question::{Slot, Standing, failed},
    },
    node::{Node, unknown},
};
use crate::{
    ChainSpec, ReadError, SpecError,
    trade::{DepositTx, ScanError, Scanner},
    types::Block,
};

/// Slots with deposits that are read at a time.
const AT_ONCE: usize = 8;
/// Transactions of a slot that are read one by one; where there are more, their whole block is read.
const FEW: usize = 64;
/// Answers about one account for one range.
const MOST_PAGES: usize = 100;
/// Transactions of one range.
const MOST_FOUND: usize = 2_000;
/// Blocks that are looked at for one with a time, or one that is shown.
const STEPS: usize = 8;
/// Slots among which the next block is looked for.
const NEAR: u64 = 1_024;
/// The field of a chain's entry that says how deposits are found.
const HOW: &str = "depositScan";

/// The ids of transactions, by their slots.
type Named = BTreeMap<u64, BTreeSet<String>>;

/// Refuses an entry that asks for a way to find deposits that there is not.
pub fn check(spec: &ChainSpec) -> Result<(), SpecError> {
    match spec.additional.get(HOW).map(|value| value.as_str()) {
        None | Some(Some("signatures" | "blocks")) => Ok(()),
        Some(_) => Err(SpecError(format!(
            "additionalData.{HOW}: expected signatures or blocks"
        ))),
    }
}

#[async_trait]
impl Scanner for Node {
    async fn head(&self) -> Result<Block, ReadError> {
        self.link.read(Box::pin(self.newest())).await
    }

    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        self.link.read(Box::pin(self.at_height(height))).await
    }

    async fn deposits(&self, heights: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        let Some(depository) = &self.rules.depository else {
            return Ok(Vec::new());
        };
        if heights.is_empty() {
            return Ok(Vec::new());
        }
        let head = self.link.read(Box::pin(self.link.questions.slot())).await?;
        if head < *heights.end() {
            return Err(unknown("behind the end of the range").into());
        }
        if self.is_in_blocks() {
            return Ok(walk::deposits(self, heights).await?.0);
        }
        let named = self.naming(depository, &heights).await?;
        let found: usize = named.values().map(BTreeSet::len).sum();
        if found > MOST_FOUND && heights.start() < heights.end() {
            return Err(ScanError::TooLarge(format!("{found} transactions")));
        }
        let named = stream::iter(named).map(|(slot, ids)| self.of_slot(slot, ids));
        Ok(named.buffered(AT_ONCE).try_concat().await?)
    }

    /// Where blocks are read at all, whole blocks, each of which stands on the one before. What is in a block no hash
    /// proves: nothing else would be gained for megabytes each second.
    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        if end.number < from || !self.is_in_blocks() {
            return Ok(Vec::new());
        }
        let (mut found, last) = walk::deposits(self, from..=end.number).await?;
        walk::ended(last, end)?;
        found.retain(|one| !shown.contains(one));
        Ok(found)
    }
}

impl Node {
    fn is_in_blocks(&self) -> bool {
        let how = self.spec.additional.get(HOW);
        how.is_some_and(|how| how == "blocks")
    }

    /// The newest finalized block that the node shows. A slot that it calls finalized has one, but it may not show it
    /// yet.
    async fn newest(&self) -> Result<Block, ReadError> {
        let questions = &self.link.questions;
        let mut slot = questions.slot().await?;
        for _ in 0..STEPS {
            if let Slot::Block(standing) = questions.block(slot).await? {
                return self.dated(slot, &standing).await;
            }
            let Some(before) = questions.before(slot).await? else {
                break;
            };
            slot = before;
        }
        Err(unknown("no finalized block is shown"))
    }

    async fn at_height(&self, height: u64) -> Result<Option<Block>, ReadError> {
        let questions = &self.link.questions;
        match questions.block(height).await? {
            Slot::Block(standing) => self.dated(height, &standing).await.map(Some),
            Slot::Absent => {
                let slot = self.below(height).await?;
                match questions.block(slot).await? {
                    Slot::Block(standing) => self.dated(slot, &standing).await.map(Some),
                    _ => Err(unknown("a block is not shown")),
                }
            }
            Slot::Gone => Err(unknown("older than the blocks that this node keeps")),
            Slot::Unknown => match questions.slot().await? < height {
                true => Ok(None),
                false => Err(unknown("the block is not shown yet")),
            },
        }
    }

    /// The slot of the newest block below a slot that was skipped: the one on which the next block stands.
    async fn below(&self, skipped: u64) -> Result<u64, ReadError> {
        let questions = &self.link.questions;
        let near = questions.between(skipped.saturating_add(1), skipped.saturating_add(NEAR));
        let next = near.await?.first().copied();
        let next = next.ok_or_else(|| unknown("no block shows whether the slot was skipped"))?;
        let next = questions.raw_block(next).await;
        let next = next.map_err(failed)?;
        let parent = next.map(|next| next.parent_slot);
        let parent = parent.filter(|parent| *parent < skipped);
        parent.ok_or_else(|| unknown("the block is lost to this node"))
    }

    /// The block with its time. Where the node kept none, that of the newest block before which has one.
    async fn dated(&self, slot: u64, standing: &Standing) -> Result<Block, ReadError> {
        let questions = &self.link.questions;
        let mut time = standing.time;
        let mut at = Some(slot);
        for _ in 0..STEPS {
            let Some(asked) = at.filter(|_| time.is_none()) else {
                break;
            };
            time = questions.time(asked).await?;
            at = match time {
                Some(_) => None,
                None => questions.before(asked).await?,
            };
        }
        let time = time.ok_or_else(|| unknown("a block without a time"))?;
        Ok(standing.at(slot, time))
    }

    /// The transactions in these slots that name the depository's program or vault. How many there are above the slots
    /// does not count: anybody makes as many as he likes.
    async fn naming(
        &self,
        depository: &Depository,
        slots: &RangeInclusive<u64>,
    ) -> Result<Named, ScanError> {
        let mut named = Named::new();
        for account in [&depository.program, &depository.vault] {
            let (mut before, mut begun) = (None, false);
            let mut pages = 0;
            while let Some((slot, id)) = self
                .page(account, before.as_deref(), slots, &mut named)
                .await?
            {
                pages += 1;
                if pages == MOST_PAGES {
                    return Err(too_many(slots));
                }
                let above = match slot > *slots.end() && !begun {
                    true => self.above(*slots.end()).await?,
                    false => None,
                };
                begun = true;
                before = Some(above.unwrap_or(id));
            }
        }
        Ok(named)
    }

    /// Adds a page of transactions that name an account; the last of them, where older ones may be in the slots.
    async fn page(
        &self,
        account: &Pubkey,
        before: Option<&str>,
        slots: &RangeInclusive<u64>,
        named: &mut Named,
    ) -> Result<Option<(u64, String)>, ReadError> {
        let asked = self.link.questions.naming(account, before, *slots.end());
        let page = self.link.read(Box::pin(asked)).await?;
        let is_whole = page.len() >= PAGE;
        let last = page.last().map(|last| (last.slot, last.signature.clone()));
        for one in page {
            if !one.failed && slots.contains(&one.slot) {
                named.entry(one.slot).or_default().insert(one.signature);
            }
        }
        Ok(last.filter(|(slot, _)| is_whole && slot >= slots.start()))
    }

    /// A transaction of the first block above a slot that has any. `None` where the node does not find it again: it
    /// would answer that nothing is older.
    async fn above(&self, slot: u64) -> Result<Option<String>, ReadError> {
        let questions = &self.link.questions;
        let near = questions.between(slot.saturating_add(1), slot.saturating_add(NEAR));
        for slot in self
            .link
            .read(Box::pin(near))
            .await?
            .into_iter()
            .take(STEPS)
        {
            let block = self.link.read(Box::pin(questions.ids(slot))).await?;
            let Some(id) = block.signatures.into_iter().next() else {
                continue;
            };
            let asked = questions.status(&id);
            let (status, _) = self.link.read(Box::pin(asked)).await?;
            return Ok(status.filter(|status| status.slot == slot).map(|_| id));
        }
        Ok(None)
    }

    /// What these transactions of a block deposit, in the order of the block.
    async fn of_slot(&self, slot: u64, ids: BTreeSet<String>) -> Result<Vec<DepositTx>, ReadError> {
        let asked = self.link.questions.ids(slot);
        let block = self.link.read(Box::pin(asked)).await?;
        let hash = block.standing()?.hash;
        let inside = block.signatures.into_iter();
        let inside: Vec<_> = inside.filter(|id| ids.contains(id)).collect();
        if inside.len() != ids.len() {
            return Err(ReadError::Doubtful(
                "a transaction that is not in its block".into(),
            ));
        }
        match inside.len() > FEW {
            true => Box::pin(walk::of_block(self, slot, hash)).await,
            false => self.of_ids(slot, inside, hash).await,
        }
    }
}

/// One slot cannot be split.
fn too_many(slots: &RangeInclusive<u64>) -> ScanError {
    match slots.start() < slots.end() {
        true => ScanError::TooLarge("too many transactions".into()),
        false => unknown("too many transactions in one slot: scan blocks instead").into(),
    }
}
