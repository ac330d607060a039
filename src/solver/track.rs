//! What became of payments: sent, included, confirmed, final; back after a reorg.

mod failed;
mod paid;
mod push;

use vm::{Amount, ReadError};

use super::{
    Solver, SolverError, View,
    account::{AttemptStatus, Depth, Push, SolverAccount},
    attempts, inventory, park,
    refund::option,
};
use crate::{
    request::fact::{Facts, Inclusion, Purpose, State},
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
        let parking = (stage == Stage::Failed && paid == Some(false))
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
        if let Some(parking) = &parking {
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
        let leaves = failed && parking.is_none();
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
}

/// The settlement of a payment that is final now. The excess over an order is settled with its fill.
fn settlement(view: &View, claim: &Claim, leg: &Leg) -> Option<Settlement> {
    if leg.stage != Stage::Final || leg.purpose == Purpose::Excess {
        return None;
    }
    let deposit = view.deposit(&leg.deposit)?;
    let option = option(&view.request, deposit).map_or(0, |(index, _)| index);
    // The request's record has one settlement: of the fill, or of the first refund of an order without a fill.
    let mut ended = claim.live();
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
