//! Bringing an attempt forward, and reading how far it is.

use vm::{
    Amount, Block, Bytes, Head, Receipt, Transaction,
    trade::{Broadcast, Included, Status},
};

use super::SolverAccount;
use crate::{
    solver::{SolverError, inventory},
    store::{
        Expect, Outcome,
        rows::attempt::{self, Owner, Signed},
    },
};

/// How far an attempt is.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptStatus {
    /// Any of its transactions may land.
    Waiting,
    /// One of them is in a block. No other can be, unless the block leaves the chain.
    Included {
        /// Which of [`attempt::Attempt::signed`].
        at: usize,
        signed: Signed,
        block: Block,
        success: bool,
        depth: Depth,
        /// Of a success that a quorum has.
        receipt: Option<Box<Receipt>>,
        /// What it cost although it paid nobody, by its receipt.
        wasted: Option<Amount>,
    },
    /// A transaction of somebody else's has used what it holds, for good: none of its own can land. Never where it may be
    /// one of the solver's that an older copy of the store has not.
    Lost,
    /// Its transactions have expired, for good: none of them can land.
    Expired,
}

/// How deep in the chain a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Included,
    /// As deep as `fillConfirmations` of the network asks, and a quorum agrees.
    Confirmed,
    /// As deep as the chain's finality asks besides, and a quorum agrees.
    Final,
}

/// What to do for an attempt that is in no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// Send it.
    Send,
    /// Leave it alone: it is not known yet whether it is still wanted.
    Hold,
    /// Replace it by a transaction that does nothing.
    Cancel,
}

/// What is known of an attempt that may have to be replaced.
struct Pressed {
    /// What nodes said to the same bytes now; `None` where they were not asked.
    said: Option<Broadcast>,
    /// It is no longer wanted.
    cancel: bool,
    /// Unix seconds.
    now: u64,
}

impl SolverAccount {
    /// Brings an attempt forward where it is in no block, and returns it with its status. `now` in unix seconds.
    pub async fn tend(
        &self,
        id: &Bytes,
        attempt: &attempt::Attempt,
        now: u64,
        push: Push,
    ) -> Result<(attempt::Attempt, AttemptStatus), SolverError> {
        let made = self.made(id, attempt)?;
        let status = self.account.submitter.status(&made).await;
        let known = match status.map_err(|error| self.failure(error))? {
            Status::Waiting { known } => known,
            Status::Doubtful => return Ok((attempt.clone(), AttemptStatus::Waiting)),
            Status::Lost => return Ok((attempt.clone(), self.lost(id, attempt))),
            Status::Expired => return Ok((attempt.clone(), AttemptStatus::Expired)),
            Status::Included(seen) => {
                let status = self.included(attempt, *seen)?;
                return Ok((attempt.clone(), status));
            }
        };
        let mut attempt = attempt.clone();
        if push != Push::Hold {
            let cancel = push == Push::Cancel;
            let said = match known {
                true => None,
                false => self.send(id, &attempt).await?,
            };
            let pressed = Pressed { said, cancel, now };
            attempt = self.press(id, attempt, pressed).await?;
        }
        Ok((attempt, AttemptStatus::Waiting))
    }

    /// Sends a replacement or a cancellation where that is due.
    async fn press(
        &self,
        id: &Bytes,
        mut attempt: attempt::Attempt,
        Pressed { said, cancel, now }: Pressed,
    ) -> Result<attempt::Attempt, SolverError> {
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
        // An attempt that no node ever takes holds up all attempts behind it.
        let never = matches!(said, Some(Broadcast::Refused(_)));
        let cancel =
            !cancelled && (cancel || never || attempt.refused >= self.limits.most_refusals);
        let stuck = now.saturating_sub(attempt.sent_at) >= self.limits.stuck_after;
        let due = matches!(said, Some(Broadcast::Underpriced | Broadcast::Expired));
        if !(cancel || stuck || due) {
            return Ok(attempt);
        }
        let Some(next) = self.replaced(id, &attempt, (now, cancel)).await? else {
            return Ok(attempt);
        };
        self.keep(id, &next).await?;
        metrics::counter!("intentd_solver_replacements_total", "network" => self.chain.name.clone())
            .increment(1);
        self.send(id, &next).await?;
        Ok(next)
    }

    async fn replaced(
        &self,
        id: &Bytes,
        attempt: &attempt::Attempt,
        (now, cancel): (u64, bool),
    ) -> Result<Option<attempt::Attempt>, SolverError> {
        let made = self.made(id, attempt)?;
        let next = self.account.submitter.replace(&made, cancel).await;
        let next = next.map_err(|error| self.failure(error))?;
        Ok(next.map(|next| attempt::Attempt {
            refused: attempt.refused,
            ..super::kept(&next, (attempt.owner.clone(), now))
        }))
    }

    /// Tends the attempts that are no request's: approvals, gaps, and settlements of a former key. `now` in unix seconds.
    pub async fn sweep(&self, now: u64) -> Result<(), SolverError> {
        self.unskip(now).await?;
        for (id, attempt) in self.attempts().await? {
            let ours = match attempt.owner {
                Owner::Approval { .. } | Owner::Gap => true,
                // The settler follows those of the present account.
                Owner::Settlement(_) => self.retired,
                Owner::Request(_) => false,
            };
            if !ours {
                continue;
            }
            let (attempt, status) = self.tend(&id, &attempt, now, Push::Send).await?;
            let over = match status {
                AttemptStatus::Waiting => false,
                AttemptStatus::Included { depth, .. } => depth == Depth::Final,
                AttemptStatus::Lost | AttemptStatus::Expired => true,
            };
            if over {
                let batch = self.free(self.batch(), &id, &attempt)?;
                self.store.commit(batch).await?;
            }
        }
        Ok(())
    }

    /// Stores a changed attempt, and reserves what it may take now.
    async fn keep(&self, id: &Bytes, attempt: &attempt::Attempt) -> Result<(), SolverError> {
        let key = attempt::key(&self.name, id);
        let Some(found) = self.store.read(&key).await? else {
            return Err(SolverError::Fenced);
        };
        // An attempt holds the same resources from its first commit on, and no transaction that was signed for it is
        // ever forgotten: it may land.
        let before = attempt::Attempt::decode(&found)?;
        let kept = attempt.signed.starts_with(&before.signed);
        if before.resources != attempt.resources || !kept {
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

    /// The status of an attempt that providers have in a block: as a quorum has it, where there is one.
    fn included(
        &self,
        attempt: &attempt::Attempt,
        seen: Included,
    ) -> Result<AttemptStatus, SolverError> {
        let signed = attempt.signed.get(seen.signed).cloned();
        let signed = signed.ok_or(SolverError::Fenced)?;
        let (block, success, depth, receipt) = match seen.agreed {
            None => (seen.block, seen.success, Depth::Included, None),
            Some((agreed, head)) => self.settled(agreed, &head).ok_or(SolverError::Fenced)?,
        };
        Ok(AttemptStatus::Included {
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
        let depth = if self.chain.loaded.spec.finality.met(&block, head)
            && on_top >= self.chain.confirmations
        {
            Depth::Final
        } else if on_top >= self.chain.confirmations {
            Depth::Confirmed
        } else {
            Depth::Included
        };
        Some((block, receipt.is_some(), depth, receipt))
    }
}
