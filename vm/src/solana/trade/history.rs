//! Whether a transaction of the solver's is in none of the blocks that could have it: the payment is made anew then. A
//! node counts that shows all of those blocks and answers from behind them; one that lags, or has lost some, knows of
//! no transaction in them either, as if it had never landed.

use super::{
    super::question::Slot,
    attempt::Signed,
    node::{Node, unknown},
    wallet::Wallet,
};
use crate::{ReadError, trade::TradingProvider, types::Block};

/// Slots among which the blocks are looked for that can have a transaction.
const WINDOW: u64 = 10_000;

/// Where a node has a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nowhere,
    At(u64),
}

impl Wallet {
    /// Whether as many providers as have to agree have it nowhere, as seen from `head`, which is above all blocks that
    /// can have it. One that shows it speaks against them all, unless as many have no such transaction in its block.
    pub async fn is_unseen(&self, signed: &Signed, head: &Block) -> Result<bool, ReadError> {
        let ask = |provider: TradingProvider| async move {
            Node::of(&provider)?.seen(signed, head).await
        };
        let said = self.failover.gather("history", Seen::eq, ask).await?;
        let nowhere = said.iter().filter(|seen| **seen == Seen::Nowhere).count();
        if nowhere < self.failover.required() {
            return Ok(false);
        }
        let id = &signed.id();
        for seen in said {
            let Seen::At(slot) = seen else { continue };
            // It lands above the block that it names, and is not looked for above the head.
            if slot <= signed.slot || slot > head.number {
                continue;
            }
            let ask = |provider: TradingProvider| async move {
                Node::of(&provider)?.lacks(slot, id).await
            };
            if !self.failover.agree("block of a payment", ask).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Node {
    async fn seen(&self, signed: &Signed, head: &Block) -> Result<Seen, ReadError> {
        let (questions, id) = (&self.link.questions, signed.id());
        let asked = async { futures::try_join!(questions.status(&id), questions.first_kept()) };
        let ((status, answered), first) = self.link.read(Box::pin(asked)).await?;
        if let Some(status) = status {
            return Ok(Seen::At(status.slot));
        }
        if answered < head.number {
            return Err(unknown("behind the agreed head"));
        }
        if first > signed.slot {
            return Err(unknown("older than the blocks that this node keeps"));
        }
        self.height(head).await?;
        self.keeps(signed, head).await?;
        Ok(Seen::Nowhere)
    }

    /// Makes sure that the node shows all blocks that can have a transaction: there are as many as the heights say.
    async fn keeps(&self, signed: &Signed, head: &Block) -> Result<(), ReadError> {
        let lacking = || unknown("this node lacks blocks that the payment may be in");
        let last = head.number.min(signed.slot.saturating_add(WINDOW));
        let asked = self.link.questions.between(signed.slot, last);
        let slots = self.link.read(Box::pin(asked)).await?;
        let begin = self.tall(signed.slot).await?;
        let over = signed.last.saturating_sub(begin).saturating_add(1);
        let over = usize::try_from(over).map_err(|_| lacking())?;
        let above = *slots.get(over).ok_or_else(lacking)?;
        let is_whole = slots.first() == Some(&signed.slot)
            && self.tall(above).await? == signed.last.max(begin).saturating_add(1);
        is_whole.then_some(()).ok_or_else(lacking)
    }

    /// The number of blocks below the one at a slot.
    async fn tall(&self, slot: u64) -> Result<u64, ReadError> {
        let standing = self.standing(slot).await?;
        let height = standing.and_then(|standing| standing.height);
        height.ok_or_else(|| unknown("a block without a height"))
    }

    /// Whether the block at a slot does not have a transaction, or there is no such block.
    async fn lacks(&self, slot: u64, id: &str) -> Result<bool, ReadError> {
        let questions = &self.link.questions;
        let asked = async {
            match questions.block(slot).await? {
                Slot::Block(_) => {
                    let ids = questions.ids(slot).await?.signatures;
                    Ok(!ids.iter().any(|other| other == id))
                }
                Slot::Absent if questions.is_skipped(slot).await? => Ok(true),
                Slot::Absent | Slot::Gone | Slot::Unknown => Err(unknown("a block is not shown")),
            }
        };
        self.link.read(Box::pin(asked)).await
    }
}
