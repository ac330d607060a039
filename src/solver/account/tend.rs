//! Bringing an attempt forward, and saying how far it is.

use vm::{
    Amount, Block, Bytes, Head, Receipt, Transaction,
    trade::{Broadcast, Included, Status},
};

use super::SolverAccount;
use crate::{
    solver::{SolverError, inventory},
    store::{
        Expect, Outcome,
        rows::attempt::{self, Attempt, Owner, Signed},
    },
};

/// How far an attempt is.
#[derive(Clone, Debug, PartialEq)]
pub enum Landing {
    /// Any of its transactions may land.
    Waiting,
    /// This one is in a block. No other can be, unless the block leaves the chain.
    Landed {
        /// Which of [`Attempt::signed`].
        at: usize,
        signed: Signed,
        block: Block,
        success: bool,
        depth: Depth,
        /// As a quorum has it, for a success that a quorum has seen.
        receipt: Option<Box<Receipt>>,
        /// What it cost although it paid nobody, as its receipt says.
        wasted: Option<Amount>,
    },
    /// Something foreign has used what it holds, for good: none of its transactions can land.
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

/// What to do for an attempt that is in no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// Get it into one.
    Send,
    /// Leave it alone: nobody knows yet whether it is still wanted.
    Hold,
    /// Get a transaction into one that does nothing.
    Cancel,
}

impl SolverAccount {
    /// Brings an attempt forward, and says what became of it. `now` in unix seconds.
    pub async fn tend(
        &self,
        id: &Bytes,
        attempt: &Attempt,
        now: u64,
        push: Push,
    ) -> Result<(Attempt, Landing), SolverError> {
        let made = self.made(id, attempt)?;
        let status = self.account.submitter.status(&made).await;
        let known = match status.map_err(|error| self.told(error))? {
            Status::Waiting { known } => known,
            Status::Doubtful => return Ok((attempt.clone(), Landing::Waiting)),
            Status::Lost => return Ok((attempt.clone(), Landing::Lost)),
            Status::Included(seen) => {
                let landing = self.landed(attempt, *seen)?;
                return Ok((attempt.clone(), landing));
            }
        };
        let mut attempt = attempt.clone();
        if push != Push::Hold {
            let cancel = push == Push::Cancel;
            attempt = self.press(id, attempt, now, (known, cancel)).await?;
        }
        Ok((attempt, Landing::Waiting))
    }

    /// The same bytes again; a replacement or a cancellation where it is time.
    async fn press(
        &self,
        id: &Bytes,
        mut attempt: Attempt,
        now: u64,
        (known, cancel): (bool, bool),
    ) -> Result<Attempt, SolverError> {
        let said = match known {
            true => None,
            false => self.send(id, &attempt).await?,
        };
        let refused = match said {
            Some(Broadcast::Rejected(_) | Broadcast::Refused(_)) => {
                attempt.refused.saturating_add(1)
            }
            Some(Broadcast::Accepted) => 0,
            _ => attempt.refused,
        };
        if refused != attempt.refused {
            attempt.refused = refused;
            self.keep(id, &attempt).await?;
        }
        let cancelled = attempt.signed.last().is_some_and(|newest| newest.cancels);
        // What no node will ever take holds up whoever comes behind it.
        let never = matches!(said, Some(Broadcast::Refused(_)));
        let cancel = !cancelled && (cancel || never || attempt.refused >= self.gas.most_refusals);
        let stuck = now.saturating_sub(attempt.sent_at) >= self.gas.stuck_after;
        if !(cancel || stuck || said == Some(Broadcast::Underpriced)) {
            return Ok(attempt);
        }
        let Some(next) = self.replaced(id, &attempt, (now, cancel)).await? else {
            return Ok(attempt);
        };
        self.keep(id, &next).await?;
        metrics::counter!("intentd_solver_replacements_total", "network" => self.site.name.clone())
            .increment(1);
        self.send(id, &next).await?;
        Ok(next)
    }

    async fn replaced(
        &self,
        id: &Bytes,
        attempt: &Attempt,
        (now, cancel): (u64, bool),
    ) -> Result<Option<Attempt>, SolverError> {
        let made = self.made(id, attempt)?;
        let next = self.account.submitter.replace(&made, cancel).await;
        let next = next.map_err(|error| self.told(error))?;
        Ok(next.map(|next| Attempt {
            refused: attempt.refused,
            ..super::kept(&next, (attempt.owner.clone(), now))
        }))
    }

    /// Looks after the attempts that belong to nobody's payment. `now` in unix seconds.
    pub async fn sweep(&self, now: u64) -> Result<(), SolverError> {
        self.unskip(now).await?;
        for (id, attempt) in self.attempts().await? {
            let ours = match attempt.owner {
                Owner::Allowance { .. } | Owner::Gap => true,
                // Its row is followed with the present account.
                Owner::Settlement(_) => self.retired,
                Owner::Request(_) => false,
            };
            if !ours {
                continue;
            }
            let (attempt, landing) = self.tend(&id, &attempt, now, Push::Send).await?;
            let over = match landing {
                Landing::Waiting => false,
                Landing::Landed { depth, .. } => depth == Depth::Final,
                Landing::Lost => true,
            };
            if over {
                let batch = self.free(self.batch(), &id, &attempt)?;
                self.store.commit(batch).await?;
            }
        }
        Ok(())
    }

    /// Stores a changed attempt with what it may take now.
    async fn keep(&self, id: &Bytes, attempt: &Attempt) -> Result<(), SolverError> {
        let key = attempt::key(&self.name, id);
        let Some(found) = self.store.read(&key).await? else {
            return Err(SolverError::Fenced);
        };
        // What is held is held from the first commit on: it never changes.
        let before = Attempt::decode(&found)?;
        if before.resources != attempt.resources {
            return Err(SolverError::Fenced);
        }
        let batch = self
            .batch()
            .expect(key.clone(), Expect::Equals(found))
            .put(key, attempt.encode()?);
        let batch = inventory::reserve(batch, self, attempt, id)?;
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(SolverError::Fenced),
        }
    }

    /// What the quorum says of a transaction that providers have in a block, where it says anything.
    fn landed(&self, attempt: &Attempt, seen: Included) -> Result<Landing, SolverError> {
        let signed = attempt.signed.get(seen.signed).cloned();
        let signed = signed.ok_or(SolverError::Fenced)?;
        let (block, success, depth, receipt) = match seen.agreed {
            None => (seen.block, seen.success, Depth::Included, None),
            Some((agreed, head)) => self.settled(agreed, &head).ok_or(SolverError::Fenced)?,
        };
        Ok(Landing::Landed {
            at: seen.signed,
            signed,
            block,
            success,
            depth,
            receipt,
            wasted: seen.wasted,
        })
    }

    fn settled(
        &self,
        agreed: Transaction,
        head: &Head,
    ) -> Option<(Block, bool, Depth, Option<Box<Receipt>>)> {
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
        Some((block, receipt.is_some(), depth, receipt))
    }
}
