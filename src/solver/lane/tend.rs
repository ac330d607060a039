//! Bringing a slot forward, and saying how far it is.

use vm::{
    Block, Head, Receipt, Transaction,
    trade::{Broadcast, Fate},
    types::B256,
};

use super::Lane;
use crate::{
    solver::{SolverError, inventory},
    store::{
        Expect, Outcome,
        rows::{
            self,
            lane::{Owner, Slot, Version},
        },
    },
};

/// Blocks for which a nonce must have been somebody else's before its transactions are given up, on
/// chains that are final sooner: providers may lag behind each other.
const FOREIGN_BLOCKS: u64 = 16;

/// How far a slot is.
#[derive(Clone, Debug, PartialEq)]
pub enum Landing {
    /// Any of its versions may land.
    Waiting,
    /// This version is in a block. Nothing else can be, unless the block leaves the chain.
    Landed {
        version: Box<Version>,
        block: Block,
        success: bool,
        depth: Depth,
        /// As a quorum has it, for a success that a quorum has seen.
        receipt: Option<Box<Receipt>>,
    },
    /// A foreign transaction has the nonce, for good: no version can land.
    Lost,
}

/// How firmly something in a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Included,
    /// As deep as the network's fills are told, and a quorum agrees.
    Confirmed,
    /// As deep as the chain's finality asks, and a quorum agrees.
    Final,
}

/// What to do for a slot that is in no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// Get it into one.
    Send,
    /// Leave it alone: nobody knows yet whether it is still wanted.
    Hold,
    /// Get a version into one that does nothing.
    Cancel,
}

impl Lane {
    /// See the module. `now` in unix seconds.
    pub async fn tend(
        &self,
        nonce: u64,
        slot: &Slot,
        now: u64,
        push: Push,
    ) -> Result<(Slot, Landing), SolverError> {
        let mut known = false;
        for version in slot.versions.iter().rev() {
            match self.site.fate(&version.hash).await? {
                Fate::Included { block, success, .. } => {
                    let landing = self.landed(version, (block, success)).await?;
                    return Ok((slot.clone(), landing));
                }
                Fate::Waiting => known = true,
                Fate::Unknown => {}
            }
        }
        if self.site.nonce(&self.owner, false).await? > nonce {
            return self.foreign(nonce, slot).await;
        }
        let mut slot = slot.clone();
        if slot.foreign_since.take().is_some() {
            self.keep(nonce, &slot).await?;
        }
        if push != Push::Hold {
            let cancel = push == Push::Cancel;
            slot = self.press(nonce, slot, now, (known, cancel)).await?;
        }
        Ok((slot, Landing::Waiting))
    }

    /// The same bytes again; a dearer or a cancelling version where it is time.
    async fn press(
        &self,
        nonce: u64,
        mut slot: Slot,
        now: u64,
        (known, cancel): (bool, bool),
    ) -> Result<Slot, SolverError> {
        let said = if known { None } else { self.send(&slot).await? };
        let refused = match said {
            Some(Broadcast::Rejected(_)) => slot.refused.saturating_add(1),
            Some(Broadcast::Accepted) => 0,
            _ => slot.refused,
        };
        if refused != slot.refused {
            slot.refused = refused;
            self.keep(nonce, &slot).await?;
        }
        let cancelled = slot.versions.last().is_some_and(|newest| newest.cancels);
        let cancel = !cancelled && (cancel || slot.refused >= self.gas.most_refusals);
        let stuck = now.saturating_sub(slot.sent_at) >= self.gas.stuck_after;
        if !(cancel || stuck || said == Some(Broadcast::Underpriced)) {
            return Ok(slot);
        }
        let Some(next) = self.dearer(&slot, nonce, now, cancel).await? else {
            return Ok(slot);
        };
        self.keep(nonce, &next).await?;
        metrics::counter!("intentd_solver_replacements_total", "network" => self.site.name.clone())
            .increment(1);
        self.send(&next).await?;
        Ok(next)
    }

    /// Looks after the nonces that belong to nobody's payment. `now` in unix seconds.
    pub async fn sweep(&self, now: u64) -> Result<(), SolverError> {
        for (nonce, slot) in self.slots().await? {
            if !matches!(slot.owner, Owner::Allowance { .. }) {
                continue;
            }
            let (slot, landing) = self.tend(nonce, &slot, now, Push::Send).await?;
            let over = match landing {
                Landing::Waiting => false,
                Landing::Landed { depth, .. } => depth == Depth::Final,
                Landing::Lost => true,
            };
            if over {
                let batch = self.free(self.batch(), nonce, &slot)?;
                self.store.commit(batch).await?;
            }
        }
        Ok(())
    }

    /// Stores a changed slot with what it may take now.
    async fn keep(&self, nonce: u64, slot: &Slot) -> Result<(), SolverError> {
        let key = rows::lane::slot_key(&self.site.name, nonce);
        let Some(found) = self.store.read(&key).await? else {
            return Err(SolverError::Fenced);
        };
        let batch = self
            .batch()
            .expect(key.clone(), Expect::Equals(found))
            .put(key, slot.encode()?);
        let batch = inventory::reserve(batch, &self.site, slot, nonce)?;
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(SolverError::Fenced),
        }
    }

    /// One provider has the version in a block: what does the quorum say?
    async fn landed(
        &self,
        version: &Version,
        (block, success): (Block, bool),
    ) -> Result<Landing, SolverError> {
        let seen = Landing::Landed {
            version: Box::new(version.clone()),
            block,
            success,
            depth: Depth::Included,
            receipt: None,
        };
        let agreed = match self.site.agreed(&version.hash.to_string()).await {
            Ok((agreed, head)) => self.settled(version, agreed, &head),
            Err(error) => {
                let network = self.site.name.as_str();
                tracing::warn!(network, %error, "no quorum on a transaction of the solver's");
                None
            }
        };
        Ok(agreed.unwrap_or(seen))
    }

    fn settled(&self, version: &Version, agreed: Transaction, head: &Head) -> Option<Landing> {
        let (block, receipt) = match agreed {
            Transaction::Missing => return None,
            Transaction::Failed(failure) => (failure.block, None),
            Transaction::Succeeded(receipt) => (receipt.block.clone(), Some(Box::new(receipt))),
        };
        let on_top = head.block.number.saturating_sub(block.number);
        let depth = if self.site.chain.spec.finality.met(&block, head)
            && on_top >= self.site.confirmations
        {
            Depth::Final
        } else if on_top >= self.site.confirmations {
            Depth::Confirmed
        } else {
            Depth::Included
        };
        Some(Landing::Landed {
            version: Box::new(version.clone()),
            success: receipt.is_some(),
            block,
            depth,
            receipt,
        })
    }

    /// The nonce is used, and by none of ours that this provider shows.
    async fn foreign(&self, nonce: u64, slot: &Slot) -> Result<(Slot, Landing), SolverError> {
        let mut head = None;
        for version in &slot.versions {
            let (agreed, seen) = self.site.agreed(&version.hash.to_string()).await?;
            if let Some(landing) = self.settled(version, agreed, &seen) {
                return Ok((slot.clone(), landing));
            }
            head = Some(seen);
        }
        let Some(head) = head else {
            return Ok((slot.clone(), Landing::Waiting));
        };
        let Some((number, time)) = slot.foreign_since else {
            let mut next = slot.clone();
            next.foreign_since = Some((head.block.number, head.block.time));
            self.keep(nonce, &next).await?;
            return Ok((next, Landing::Waiting));
        };
        let since = Block {
            number,
            hash: B256::ZERO,
            parent: B256::ZERO,
            time,
        };
        let over = self.site.chain.spec.finality.met(&since, &head)
            && head.block.number.saturating_sub(number) >= FOREIGN_BLOCKS;
        let landing = if over {
            Landing::Lost
        } else {
            Landing::Waiting
        };
        Ok((slot.clone(), landing))
    }
}
