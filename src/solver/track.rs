//! What became of payments: from sent to included, told as done, and final; back after a reorg.

use vm::{Amount, Receipt, trade::Payout};

use super::{
    Solver, SolverError, View, attempts, claim,
    fill::payments,
    inventory,
    lane::{Depth, Landing, Lane, Push},
    refund::parties,
};
use crate::{
    request::{
        fact::{Facts, Place, Purpose, Standing, State},
        reason::FailReason,
    },
    store::{
        Batch,
        rows::{
            claim::{Leg, Stage},
            lane::Slot,
        },
    },
};

impl Solver {
    /// Looks after every payment that is not final; whether anything changed.
    pub(super) async fn track(&self, view: &View) -> Result<bool, SolverError> {
        for (at, leg) in view.claim.legs.iter().enumerate() {
            if matches!(leg.stage, Stage::Final | Stage::Failed) {
                continue;
            }
            let lane = self.lane(&leg.network)?;
            let Some(slot) = lane.slot(leg.nonce).await? else {
                // The slot goes with the commit that ends the payment: this view is an old one.
                return Ok(true);
            };
            let (now, push) = (view.now / 1_000, self.push(view, leg));
            let (slot, landing) = lane.tend(leg.nonce, &slot, now, push).await?;
            if self.follow(view, at, (&slot, &landing)).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores how far a payment is.
    async fn follow(
        &self,
        view: &View,
        at: usize,
        (slot, landing): (&Slot, &Landing),
    ) -> Result<bool, SolverError> {
        let (leg, mut next) = (&view.claim.legs[at], view.claim.clone());
        let lane = self.lane(&leg.network)?;
        let stage = stage(landing, self.is_paid(view, leg, landing));
        next.legs[at].stage = stage;
        next.legs[at].transaction = match landing {
            Landing::Landed { version, .. } => Some(version.hash.to_string()),
            Landing::Waiting | Landing::Lost => None,
        };
        if stage == Stage::Failed && leg.purpose == Purpose::Fill {
            next = claim::failed(&next, self.why(view, leg, landing));
        }
        let mut facts = view.facts.clone();
        reflect(&mut facts, leg, slot, (landing, stage));
        facts.failure = facts.failure.or(next.failure);
        if next == view.claim && facts == view.facts {
            return Ok(false);
        }
        let batch = self.accounted(lane, leg, (slot, stage))?;
        self.decide(view, batch, &next, |stored| *stored = facts)
            .await?;
        let (order, transaction) = (view.request.order_id, &next.legs[at].transaction);
        tracing::info!(%order, purpose = ?leg.purpose, ?stage, ?transaction, "payment");
        Ok(true)
    }

    /// Reservations and the nonce's row follow the stage.
    fn accounted(
        &self,
        lane: &Lane,
        leg: &Leg,
        (slot, stage): (&Slot, Stage),
    ) -> Result<Batch, SolverError> {
        let batch = lane.batch();
        match stage {
            Stage::Open => inventory::reserve(batch, &lane.site, slot, leg.nonce),
            Stage::Confirmed => inventory::release(batch, &lane.site, slot, leg.nonce),
            Stage::Final | Stage::Failed => lane.free(batch, leg.nonce, slot),
        }
    }

    /// What a payment is worth that is in no block: nothing without its deposit. The reorg that took
    /// a refund out of its block may have taken the deposit, too.
    fn push(&self, view: &View, leg: &Leg) -> Push {
        match standing(view, leg) {
            Some(Standing::Reorged) => Push::Cancel,
            Some(Standing::Included) => Push::Hold,
            _ if leg.stage == Stage::Open && self.late(view, leg) => Push::Cancel,
            _ => Push::Send,
        }
    }

    /// A fill that is in no block this late would not count: better none.
    fn late(&self, view: &View, leg: &Leg) -> bool {
        let deadline = match leg.purpose {
            Purpose::Fill => view.request.order.output.deadline,
            Purpose::Refund => return false,
        };
        // Half of what a fill is begun with: the other half is its time to land.
        u64::from(deadline) <= (view.now / 1_000).saturating_add(self.patience.margin / 2)
    }

    fn why(&self, view: &View, leg: &Leg, landing: &Landing) -> FailReason {
        match landing {
            Landing::Lost | Landing::Waiting => FailReason::TransactionNotIncluded,
            Landing::Landed { version, .. } if !version.cancels => FailReason::ExecutionReverted,
            Landing::Landed { .. } if standing(view, leg) == Some(Standing::Reorged) => {
                FailReason::DepositReorged
            }
            Landing::Landed { .. } if self.late(view, leg) => FailReason::OrderExpired,
            Landing::Landed { .. } => FailReason::TransactionSubmissionFailed,
        }
    }

    /// Whether the transaction paid what it was for, by what a quorum decoded of it. One that
    /// succeeded and did not is held open: somebody has to look.
    fn is_paid(&self, view: &View, leg: &Leg, landing: &Landing) -> bool {
        let Landing::Landed {
            version,
            receipt: Some(receipt),
            ..
        } = landing
        else {
            return false;
        };
        let wanted = self.lane(&leg.network).and_then(|lane| match leg.purpose {
            Purpose::Fill => Ok(payments(&view.request, lane)?),
            Purpose::Refund => {
                let deposits = &mut view.facts.deposits.iter();
                let known = deposits.find(|deposit| deposit.onchain_id == leg.deposit);
                let known = known.ok_or(SolverError::Fenced)?;
                let (to, currency) = parties(&view.request, known, lane)?;
                let amount = leg.amount;
                Ok(vec![Payout {
                    to,
                    currency,
                    amount,
                }])
            }
        });
        let paid = wanted.is_ok_and(|wanted| {
            wanted.iter().all(|Payout { to, currency, .. }| {
                let same = wanted
                    .iter()
                    .filter(|w| w.to == *to && w.currency == *currency);
                let total = same.fold(Amount::ZERO, |sum, w| sum.saturating_add(w.amount));
                received(receipt, to, currency) >= total
            })
        });
        if !paid && !version.cancels {
            let (order, hash) = (view.request.order_id, version.hash);
            tracing::error!(%order, %hash, "transaction succeeded and did not pay");
            metrics::counter!("solver_unpaid_total").increment(1);
        }
        paid
    }
}

/// How firmly the deposit stands that a payment uses up.
fn standing(view: &View, leg: &Leg) -> Option<Standing> {
    let mut deposits = view.facts.deposits.iter();
    let found = deposits.find(|deposit| deposit.onchain_id == leg.deposit);
    found.map(|deposit| deposit.standing)
}

fn received(receipt: &Receipt, to: &vm::Address, currency: &vm::Address) -> Amount {
    let payments = receipt.payments.iter();
    payments
        .filter(|payment| payment.recipient == *to && payment.currency == *currency)
        .fold(Amount::ZERO, |sum, payment| {
            sum.saturating_add(payment.amount)
        })
}

/// How far a payment is, by where its transaction is.
fn stage(landing: &Landing, paid: bool) -> Stage {
    match landing {
        Landing::Lost => Stage::Failed,
        Landing::Waiting => Stage::Open,
        Landing::Landed {
            version,
            success,
            depth,
            ..
        } => match (*success && !version.cancels, depth) {
            (false, Depth::Final) => Stage::Failed,
            (true, Depth::Confirmed) if paid => Stage::Confirmed,
            (true, Depth::Final) if paid => Stage::Final,
            _ => Stage::Open,
        },
    }
}

/// Facts follow the slot's versions: one of them landed, or any may.
fn reflect(facts: &mut Facts, leg: &Leg, slot: &Slot, (landing, stage): (&Landing, Stage)) {
    for mut attempt in attempts(leg, slot) {
        attempt.state = match landing {
            Landing::Waiting => State::Broadcast,
            Landing::Lost => State::Replaced,
            Landing::Landed { version, .. } if version.hash.to_string() != attempt.transaction => {
                State::Replaced
            }
            Landing::Landed { block, success, .. } => {
                let place = Place {
                    number: block.number,
                    hash: block.hash,
                    time: block.time,
                };
                match (success, stage) {
                    (false, _) => State::Reverted {
                        place,
                        reason: None,
                    },
                    (true, Stage::Confirmed | Stage::Final) => State::Confirmed(place),
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
