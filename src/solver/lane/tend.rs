//! Bringing a slot forward, and saying how far it is.

use vm::{
    Block, Head, Receipt, Transaction,
    trade::{Broadcast, Fate, Spent},
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
        /// As its receipt says.
        spent: Option<Spent>,
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
        let versions = slot.versions.iter().rev();
        let fates = versions.map(|version| self.site.fate(&version.hash));
        let (fates, mined) = futures::try_join!(
            futures::future::try_join_all(fates),
            self.site.nonce(&self.owner, false)
        )?;
        let mut known = false;
        for (version, fate) in slot.versions.iter().rev().zip(fates) {
            match fate {
                Fate::Included {
                    block,
                    success,
                    spent,
                    ..
                } => {
                    let landing = self.landed(version, (block, success), spent).await?;
                    return Ok((slot.clone(), landing));
                }
                Fate::Waiting => known = true,
                Fate::Unknown => {}
            }
        }
        if mined > nonce {
            let landing = self.foreign(nonce, slot).await?;
            return Ok((slot.clone(), landing));
        }
        let mut slot = slot.clone();
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
            Some(Broadcast::Rejected(_) | Broadcast::Refused(_)) => slot.refused.saturating_add(1),
            Some(Broadcast::Accepted) => 0,
            _ => slot.refused,
        };
        if refused != slot.refused {
            slot.refused = refused;
            self.keep(nonce, &slot).await?;
        }
        let cancelled = slot.versions.last().is_some_and(|newest| newest.cancels);
        // What no node will ever take holds up whoever comes behind it.
        let never = matches!(said, Some(Broadcast::Refused(_)));
        let cancel = !cancelled && (cancel || never || slot.refused >= self.gas.most_refusals);
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
        self.unskip(now).await?;
        for (nonce, slot) in self.slots().await? {
            let ours = match slot.owner {
                Owner::Allowance { .. } | Owner::Gap => true,
                // Its row is followed with the present account.
                Owner::Settlement(_) => self.retired,
                Owner::Request(_) => false,
            };
            if !ours {
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
        let key = rows::lane::slot_key(&self.name, nonce);
        let Some(found) = self.store.read(&key).await? else {
            return Err(SolverError::Fenced);
        };
        let batch = self
            .batch()
            .expect(key.clone(), Expect::Equals(found))
            .put(key, slot.encode()?);
        let batch = inventory::reserve(batch, self, slot, nonce)?;
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(SolverError::Fenced),
        }
    }

    /// Providers have the version in a block: what does the quorum say of its receipt?
    async fn landed(
        &self,
        version: &Version,
        (block, success): (Block, bool),
        spent: Option<Spent>,
    ) -> Result<Landing, SolverError> {
        let seen = Landing::Landed {
            version: Box::new(version.clone()),
            block,
            success,
            depth: Depth::Included,
            receipt: None,
            spent,
        };
        let agreed = match self.site.agreed(&version.hash.to_string()).await {
            Ok((agreed, head)) => self.settled(version, (agreed, spent), &head),
            Err(error) => {
                let network = self.site.name.as_str();
                tracing::warn!(network, %error, "no quorum on a transaction of the solver's");
                None
            }
        };
        Ok(agreed.unwrap_or(seen))
    }

    fn settled(
        &self,
        version: &Version,
        (agreed, spent): (Transaction, Option<Spent>),
        head: &Head,
    ) -> Option<Landing> {
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
            spent,
        })
    }

    /// The nonce is used, and by none of ours that the providers show. It is lost when a quorum has the
    /// account's transactions up to this one in final blocks, and none of ours anywhere: then another
    /// one has it, for good.
    async fn foreign(&self, nonce: u64, slot: &Slot) -> Result<Landing, SolverError> {
        let head = self.site.chain.reader.fresh_head().await?;
        for version in &slot.versions {
            let agreed = self.site.at(&version.hash.to_string(), &head).await?;
            if let Some(landing) = self.settled(version, (agreed, None), &head) {
                return Ok(landing);
            }
        }
        let settled = self.site.settled(&self.owner, &head).await?;
        Ok(match settled.is_some_and(|used| used > nonce) {
            true => Landing::Lost,
            false => Landing::Waiting,
        })
    }
}
