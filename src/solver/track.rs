//! What became of payments: sent, included, confirmed, final; back after a reorg.

use vm::{Amount, Kept, ReadError, Receipt, Transaction, trade::Payout};

use super::{
    Solver, SolverError, View,
    account::{AttemptStatus, Depth, Push, SolverAccount},
    attempts, claim, claimable,
    fill::payments,
    inventory, park,
    refund::{option, parties},
};
use crate::{
    request::{
        fact::{Deposit, Facts, Inclusion, Purpose, Standing, State},
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch, Expect,
        requests::RequestsError,
        rows::{
            self, attempt,
            claim::{Claim, Leg, Stage},
            outlay,
            settlement::{Part, Settlement},
        },
    },
};

impl Solver {
    /// Looks after every payment that is not final; whether anything changed.
    pub(super) async fn track(&self, view: &View) -> Result<bool, SolverError> {
        let mut failure = None;
        for (at, leg) in view.claim.legs.iter().enumerate() {
            if matches!(leg.stage, Stage::Final | Stage::Failed) {
                continue;
            }
            match self.track_one(view, at, leg).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error @ SolverError::Requests(RequestsError::Refused)) => return Err(error),
                // A chain that does not answer holds up no payment on another.
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    async fn track_one(&self, view: &View, at: usize, leg: &Leg) -> Result<bool, SolverError> {
        let account = self.account_of(leg)?;
        let Some(attempt) = account.attempt(&leg.attempt).await? else {
            // The commit that ends the payment removes the attempt: this view is outdated.
            return Ok(true);
        };
        let now = view.now / 1_000;
        let tended = account.tend(&leg.attempt, &attempt, now, Push::Hold);
        let (mut attempt, mut status) = tended.await?;
        if status == AttemptStatus::Waiting {
            let push = self.push(view, leg).await?;
            (attempt, status) = account.tend(&leg.attempt, &attempt, now, push).await?;
        }
        self.follow(view, at, (&attempt, &status)).await
    }

    /// Stores how far a payment is.
    async fn follow(
        &self,
        view: &View,
        at: usize,
        (attempt, status): (&attempt::Attempt, &AttemptStatus),
    ) -> Result<bool, SolverError> {
        let (leg, mut next) = (&view.claim.legs[at], view.claim.clone());
        let account = self.account_of(leg)?;
        let paid = self.is_paid(view, leg, status);
        let stage = stage(status, paid);
        next.legs[at].stage = stage;
        next.legs[at].transaction = match status {
            AttemptStatus::Included { signed, .. } => Some(signed.id.clone()),
            AttemptStatus::Waiting | AttemptStatus::Lost | AttemptStatus::Expired => None,
        };
        next.legs[at].wasted = match self.wasted(account, leg, (attempt, status)).await {
            Some(wasted) => wasted,
            None if stage == Stage::Failed => return Err(SolverError::Read(unpriced())),
            None => Amount::ZERO,
        };
        let unpaid = (stage == Stage::Failed && paid == Some(false))
            .then(|| park::unpaid(view, &next.legs[at]));
        if stage == Stage::Failed {
            next = self.failed(view, next, leg, status)?;
        }
        let mut facts = view.facts.clone();
        reflect(&mut facts, leg, attempt, (status, stage));
        facts.failure = facts.failure.or(next.failure);
        if next == view.claim && facts == view.facts {
            return Ok(false);
        }
        let mut batch = self.accounted(account, leg, (attempt, stage))?;
        if let Some(parking) = &unpaid {
            batch = park::list(view, parking, batch)?;
            park::record(view, &next, &mut facts, parking);
        }
        if let Some(settlement) = settlement(view, &next, &next.legs[at]) {
            // The row is stored even while no oracle is configured: it is settled once one is.
            let key = rows::settlement::key(&view.request.id, &leg.deposit);
            let row = settlement.encode()?;
            batch = batch.expect(key.clone(), Expect::Absent).put(key, row);
        }
        // A fill that certainly paid nothing counts for no limit.
        let failed = stage == Stage::Failed && leg.purpose == Purpose::Fill;
        let leaves = failed && unpaid.is_none();
        if leaves {
            batch = batch.delete(outlay::key(&view.request.id));
        }
        self.decide(view, batch, &next, |stored| *stored = facts)
            .await?;
        if leaves {
            self.exposure.leave(&view.request.id);
        }
        if stage == Stage::Failed {
            self.count_loss(view, &next.legs[at]).await;
        }
        let (order, transaction) = (view.request.order_id, &next.legs[at].transaction);
        tracing::info!(%order, purpose = ?leg.purpose, ?stage, ?transaction, "payment");
        Ok(true)
    }

    /// What follows from a payment that can never pay: its order fails or is judged anew, or its deposit is given back after
    /// a pause. The deposit is parked where the payment succeeded: it is unknown what became of the money.
    fn failed(
        &self,
        view: &View,
        mut next: Claim,
        leg: &Leg,
        status: &AttemptStatus,
    ) -> Result<Claim, SolverError> {
        let (unpaid, why) = (has_succeeded(status), self.why(view, leg, status));
        let expired =
            *status == AttemptStatus::Expired && why == FailReason::TransactionNotIncluded;
        let anew = expired.then(|| self.judged_anew(view, &next, leg));
        if let Some(anew) = anew.flatten() {
            next = anew;
        } else if leg.purpose == Purpose::Fill && unpaid {
            next = claim::failed(&next, why);
        } else if leg.purpose == Purpose::Fill {
            next = view.declined(&next, leg.deposit, why);
        } else if is_reverted(status) {
            let manual = RefundFailReason::ManualRefundRequired;
            next = claim::pause(&next, leg.deposit, manual, view.now / 1_000);
        }
        Ok(match unpaid {
            true => claim::unpaid(&next, leg.deposit)?,
            false => next,
        })
    }

    /// Reserves or releases what the attempt takes, and frees the resources that it holds, as the stage says.
    fn accounted(
        &self,
        account: &SolverAccount,
        leg: &Leg,
        (attempt, stage): (&attempt::Attempt, Stage),
    ) -> Result<Batch, SolverError> {
        let batch = account.batch();
        match stage {
            Stage::Open => inventory::reserve(batch, account, attempt, &leg.attempt),
            Stage::Confirmed => inventory::release(batch, account, attempt, &leg.attempt),
            Stage::Final | Stage::Failed => account.free(batch, &leg.attempt, attempt),
        }
    }

    /// What to do for a payment that is in no block: without its deposit it must not land. A reorg that removed a
    /// refund may have removed its deposit too, before the index notices.
    async fn push(&self, view: &View, leg: &Leg) -> Result<Push, SolverError> {
        let deposit = view.deposit(&leg.deposit);
        let standing = deposit.map(|deposit| deposit.standing);
        let late = leg.stage == Stage::Open && (self.late(view, leg) || self.is_overdue(view, leg));
        Ok(match (standing, deposit) {
            (Some(Standing::Reorged), _) => Push::Cancel,
            (Some(Standing::Included), _) => Push::Hold,
            _ if late => Push::Cancel,
            (_, Some(deposit)) if deposit.network == leg.network => {
                match self.is_there(deposit).await? {
                    true => Push::Send,
                    false => Push::Hold,
                }
            }
            _ => Push::Send,
        })
    }

    /// Whether a quorum has the deposit where it was final.
    async fn is_there(&self, deposit: &Deposit) -> Result<bool, SolverError> {
        let chain = &self.account(&deposit.network)?.chain;
        let (found, _) = chain.agreed(&deposit.transaction).await?;
        // Anybody may have made that transaction large.
        let found = Kept::new(found);
        Ok(
            matches!(&*found, Transaction::Succeeded(receipt) if receipt.block.hash == deposit.place.hash),
        )
    }

    /// Whether it is too late for a payment that is in no block yet: it would not count.
    fn late(&self, view: &View, leg: &Leg) -> bool {
        let deposit = view.deposit(&leg.deposit);
        let (ordered, kept) = match leg.purpose {
            Purpose::Fill => {
                let deadline = view.request.order.output.deadline;
                (Some(deadline), deposit.map(claimable::fill_until))
            }
            Purpose::Refund => {
                let option = deposit.and_then(|deposit| option(&view.request, deposit));
                let deadline = option.map(|(_, refund)| refund.deadline);
                (deadline, deposit.map(claimable::until))
            }
            Purpose::Excess => (None, deposit.map(claimable::until)),
        };
        let deadline = ordered.map(u64::from).into_iter().chain(kept).min();
        // A payment is begun with the whole margin before its deadline. Half of it is its time to land, and half that of
        // what cancels it.
        let landing = self.margins()(&leg.network) / 2;
        deadline.is_some_and(|deadline| deadline <= (view.now / 1_000).saturating_add(landing))
    }

    fn why(&self, view: &View, leg: &Leg, status: &AttemptStatus) -> FailReason {
        match status {
            AttemptStatus::Lost | AttemptStatus::Waiting => FailReason::TransactionNotIncluded,
            AttemptStatus::Included {
                signed, success, ..
            } if !signed.cancels => match success {
                true => FailReason::TooLittleReceived,
                false => FailReason::ExecutionReverted,
            },
            // It was given up: a transaction used up what it holds, or its own ones expired.
            _ if is_reorged(view, leg) => FailReason::DepositReorged,
            _ if self.late(view, leg) => FailReason::OrderExpired,
            AttemptStatus::Expired => FailReason::TransactionNotIncluded,
            AttemptStatus::Included { .. } => FailReason::TransactionSubmissionFailed,
        }
    }

    /// Whether the transaction paid what it was for, by what a quorum decoded of it; `None` where that
    /// cannot be said.
    fn is_paid(&self, view: &View, leg: &Leg, status: &AttemptStatus) -> Option<bool> {
        let AttemptStatus::Included {
            signed,
            receipt: Some(receipt),
            ..
        } = status
        else {
            return None;
        };
        if signed.cancels {
            return None;
        }
        let wanted = self
            .account(&leg.network)
            .and_then(|account| match leg.purpose {
                Purpose::Fill => Ok(payments(&view.request, account, &leg.payments)?),
                Purpose::Refund | Purpose::Excess => {
                    let known = view.deposit(&leg.deposit).ok_or(SolverError::Fenced)?;
                    let (to, currency) = parties(&view.request, known, account)?;
                    let amount = leg.amount;
                    Ok(vec![Payout {
                        to,
                        currency,
                        amount,
                    }])
                }
            });
        let paid = wanted.ok().map(|wanted| {
            wanted.iter().all(|Payout { to, currency, .. }| {
                let same = wanted
                    .iter()
                    .filter(|w| w.to == *to && w.currency == *currency);
                let total = same.fold(Amount::ZERO, |sum, w| sum.saturating_add(w.amount));
                received(receipt, to, currency) >= total
            })
        });
        if paid != Some(true) {
            let (order, id) = (view.request.order_id, &signed.id);
            tracing::error!(%order, id, "transaction succeeded and did not pay");
            metrics::counter!("intentd_solver_unpaid_total").increment(1);
        }
        paid
    }
}

/// The settlement of a payment that is final now. The excess over an order is settled with its fill.
fn settlement(view: &View, claim: &Claim, leg: &Leg) -> Option<Settlement> {
    if leg.stage != Stage::Final || leg.purpose == Purpose::Excess {
        return None;
    }
    let deposit = view.deposit(&leg.deposit)?;
    let option = option(&view.request, deposit).map_or(0, |(index, _)| index);
    // The request's record has one settlement: of the fill, or of the first refund of an order without a fill.
    let mut ended = claim.legs.iter().filter(|one| one.stage != Stage::Failed);
    let recorded = leg.purpose == Purpose::Fill
        || ended.all(|one| one == leg || one.purpose != Purpose::Fill && one.stage != Stage::Final);
    Some(Settlement {
        purpose: leg.purpose,
        deposit: leg.deposit,
        transaction: leg.transaction.clone()?,
        option,
        recorded,
        deposited: Part::Pending,
        outcome: Part::Pending,
        since: view.now,
        tries: 0,
        not_before: 0,
        why: None,
        refused: false,
    })
}

fn unpriced() -> ReadError {
    ReadError::Unavailable("nobody says what a failed payment cost".into())
}

/// Whether it reverted: its recipient may have made it fail.
fn is_reverted(status: &AttemptStatus) -> bool {
    matches!(status, AttemptStatus::Included { signed, success: false, .. } if !signed.cancels)
}

fn has_succeeded(status: &AttemptStatus) -> bool {
    matches!(status, AttemptStatus::Included { signed, success: true, .. } if !signed.cancels)
}

fn is_reorged(view: &View, leg: &Leg) -> bool {
    view.deposit(&leg.deposit)
        .is_some_and(|deposit| deposit.standing == Standing::Reorged)
}

fn received(receipt: &Receipt, to: &vm::Address, currency: &vm::Address) -> Amount {
    let payments = receipt.payments.iter();
    payments
        .filter(|payment| payment.recipient == *to && payment.currency == *currency)
        .fold(Amount::ZERO, |sum, payment| {
            sum.saturating_add(payment.amount)
        })
}

/// The stage of a payment, by the status of its attempt.
fn stage(status: &AttemptStatus, paid: Option<bool>) -> Stage {
    match status {
        AttemptStatus::Lost | AttemptStatus::Expired => Stage::Failed,
        AttemptStatus::Waiting => Stage::Open,
        AttemptStatus::Included {
            signed,
            success,
            depth,
            ..
        } => match (*success && !signed.cancels, depth) {
            (false, Depth::Final) => Stage::Failed,
            (true, Depth::Confirmed) if paid == Some(true) => Stage::Confirmed,
            (true, Depth::Final) if paid == Some(true) => Stage::Final,
            (true, Depth::Final) if paid == Some(false) => Stage::Failed,
            _ => Stage::Open,
        },
    }
}

/// Updates the request's attempts by what was signed: one of it landed, or any may.
fn reflect(
    facts: &mut Facts,
    leg: &Leg,
    kept: &attempt::Attempt,
    (status, stage): (&AttemptStatus, Stage),
) {
    for mut attempt in attempts(leg, kept) {
        attempt.state = match status {
            AttemptStatus::Waiting => State::Broadcast,
            AttemptStatus::Lost | AttemptStatus::Expired => State::Replaced,
            AttemptStatus::Included { signed, .. } if signed.id != attempt.transaction => {
                State::Replaced
            }
            AttemptStatus::Included { block, success, .. } => {
                let place = Inclusion::from(block);
                match (success, stage) {
                    (false, _) => State::Reverted {
                        place,
                        reason: None,
                    },
                    (true, Stage::Confirmed | Stage::Final) => State::Confirmed(place),
                    (true, Stage::Failed) => State::Reverted {
                        place,
                        reason: Some("it paid nobody".into()),
                    },
                    (true, _) => State::Included(place),
                }
            }
        };
        let same = |known: &&mut crate::request::fact::Attempt| {
            known.transaction == attempt.transaction && known.network == attempt.network
        };
        match facts.attempts.iter_mut().find(same) {
            Some(known) => known.state = attempt.state,
            None => facts.attempts.push(attempt),
        }
    }
}
