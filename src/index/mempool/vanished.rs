//! What providers do not show any more: the network's quorum says whether a block has it, and then whether that block is
//! still on the chain. Deposits get into a block by the hundred, so a round asks for few of them, and for a block once.

use std::{cmp::Reverse, collections::HashSet};

use futures::future::join_all;
use vm::{Block, Head, Transaction};

use super::{INCLUDED, MISSED, WaitingDeposit, WaitingDeposits, Watcher, Whereabouts};
use crate::{
    index::{IndexError, apply},
    request::fact::Facts,
    store::{Batch, requests::unless_forgotten, rows::transaction},
};

/// Transactions that a round asks the quorum for, all at the same time. In the time between two blocks they are more
/// than a thousand.
const LOOKS: usize = 8;

impl WaitingDeposit {
    /// Whether the quorum is asked where it is.
    fn is_due(&self) -> bool {
        let most = self.block().map_or(MISSED, |_| INCLUDED);
        self.missed >= most
    }

    /// The block that has it, unless that has left the chain.
    fn block(&self) -> Option<&Block> {
        match &self.whereabouts {
            Whereabouts::In(block) => Some(block),
            Whereabouts::Waiting | Whereabouts::Left => None,
        }
    }
}

impl Watcher {
    /// Asks the quorum where those are that were not shown for a while. An error about one is told when all others have
    /// been asked about.
    pub(super) async fn follow(
        &self,
        waiting: &mut WaitingDeposits,
        now: u64,
    ) -> Result<(), IndexError> {
        if !waiting.values().any(WaitingDeposit::is_due) {
            return Ok(());
        }
        let head = self.chain.reader.fresh_head().await?;
        let stood = self.look_at_blocks(waiting, &head).await;
        let found = self.look_for(waiting, &head, now).await;
        stood.and(found)
    }

    /// Asks once for each block with something that is due. What is in a final one needs no watching any more; what is
    /// in one that left the chain may wait again.
    async fn look_at_blocks(
        &self,
        waiting: &mut WaitingDeposits,
        head: &Head,
    ) -> Result<(), IndexError> {
        let due = waiting.values().filter(|one| one.is_due());
        let blocks: HashSet<Block> = due.filter_map(WaitingDeposit::block).cloned().collect();
        let asked = blocks.iter().map(|block| self.chain.reader.contains(block));
        let said = join_all(asked).await;
        let mut done = Ok(());
        for (block, said) in blocks.iter().zip(said) {
            match said {
                Ok(stands) => {
                    let is_final = stands && self.chain.spec.finality.met(block, head);
                    waiting.retain(|_, one| {
                        let inside = one.block() == Some(block);
                        if inside {
                            one.missed = 0;
                        }
                        if inside && !stands {
                            one.whereabouts = Whereabouts::Left;
                        }
                        !(inside && is_final)
                    });
                }
                Err(error) => done = Err(error.into()),
            }
        }
        done
    }

    /// Asks for those that have been due for longest. One that cannot be read comes last again.
    async fn look_for(
        &self,
        waiting: &mut WaitingDeposits,
        head: &Head,
        now: u64,
    ) -> Result<(), IndexError> {
        let wanted = |one: &WaitingDeposit| one.is_due() && one.block().is_none();
        let due = waiting.iter().filter(|(_, one)| wanted(one));
        let mut due: Vec<(&Vec<u8>, &WaitingDeposit)> = due.collect();
        due.sort_by_key(|(_, one)| Reverse(one.missed));
        due.truncate(LOOKS);
        let looks = due.iter().map(|(_, one)| self.find(one, head, now));
        let said = join_all(looks).await;
        let ids: Vec<Vec<u8>> = due.into_iter().map(|(id, _)| id.clone()).collect();
        let mut done = Ok(());
        for (id, said) in ids.into_iter().zip(said) {
            let Some(one) = waiting.get_mut(&id) else {
                continue;
            };
            one.missed = 0;
            match said {
                Ok(Some(block)) => one.whereabouts = Whereabouts::In(block),
                Ok(None) => drop(waiting.remove(&id)),
                Err(error) => done = Err(error),
            }
        }
        done
    }

    /// The block that the quorum has it in and that may leave the chain; `None`: it needs no watching any more. Where
    /// no block has it, its requests are as they were before it.
    async fn find(
        &self,
        deposit: &WaitingDeposit,
        head: &Head,
        now: u64,
    ) -> Result<Option<Block>, IndexError> {
        let reader = &self.chain.reader;
        let found = reader.transaction(&deposit.transaction, head).await?;
        let block = match found {
            Transaction::Failed(failure) => failure.block,
            Transaction::Succeeded(receipt) => receipt.block,
            Transaction::Missing => {
                self.take_back(deposit, now).await?;
                return Ok(None);
            }
        };
        let is_final = self.chain.spec.finality.met(&block, head);
        Ok((!is_final).then_some(block))
    }

    /// Its requests are as they were before it.
    async fn take_back(&self, deposit: &WaitingDeposit, now: u64) -> Result<(), IndexError> {
        let key = transaction::looked_for(&self.network, &deposit.transaction.bytes);
        for request in &deposit.requests {
            let batch = Batch::new().delete(key.clone());
            let text = &deposit.transaction.text;
            let change = |facts: &mut Facts| apply::disowned(facts, &self.network, text);
            let recorded = self.requests.record(request, now, batch, change).await;
            unless_forgotten(recorded)?;
        }
        Ok(())
    }
}
