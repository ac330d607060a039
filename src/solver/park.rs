//! Parking deposits for the operator: they are listed with their reasons, and recorded with their request.

use super::{Solver, SolverError, View, claim, judge::Parking};
use crate::{
    request::{
        fact::{Deposit, Ending, Facts, Purpose},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
        status,
    },
    store::{
        Batch,
        rows::{
            RowError,
            claim::{Claim, Leg, Stage},
            parked::{self, Parked, Reasons, UNPAID},
        },
    },
};

impl Solver {
    pub(super) async fn park(
        &self,
        view: &View,
        parking: Vec<Parking>,
    ) -> Result<bool, SolverError> {
        let ids: Vec<_> = parking.iter().map(|one| one.deposit).collect();
        let next = claim::park(&view.claim, &ids)?;
        let mut batch = Batch::new();
        for one in &parking {
            batch = list(view, one, batch)?;
        }
        self.decide(view, batch, &next, |facts| {
            for one in &parking {
                record(view, &view.claim, facts, one);
            }
        })
        .await?;
        Ok(true)
    }
}

/// Adds a parked deposit's row, which the operator lists, to a commit.
pub(super) fn list(view: &View, one: &Parking, batch: Batch) -> Result<Batch, RowError> {
    let (request, order) = (view.request.id, view.request.order_id);
    let Some(row) = row(view, one) else {
        return Ok(batch);
    };
    let (deposit, why, note) = (one.deposit, one.why, one.note.as_str());
    if !one.minor {
        tracing::error!(%request, %order, %deposit, ?why, note, "deposit is parked");
    }
    let worth = if one.minor { "minor" } else { "real" };
    metrics::counter!("intentd_solver_parked_total", "worth" => worth).increment(1);
    Ok(batch.put(parked::key(&request, &one.deposit), row.encode()?))
}

/// Records a parked deposit with its request, unless it is the excess over an order that is filled.
pub(super) fn record(view: &View, claim: &Claim, facts: &mut Facts, one: &Parking) {
    let filled = |leg: &Leg| {
        leg.deposit == one.deposit && leg.purpose == Purpose::Fill && leg.stage == Stage::Final
    };
    if claim.legs.iter().any(filled) {
        return;
    }
    let pays = view
        .deposit(&one.deposit)
        .is_some_and(|deposit| mismatch(&view.request, deposit).is_none());
    if pays && facts.failure.is_some() {
        facts.refund_failure = Some(one.why);
    }
    facts.end(Ending {
        deposit: one.deposit,
        reason: one.reason,
        refused: Some(one.why),
        minor: one.minor && !is_users(view, one),
    });
}

/// Whether the deposit is the user's own and is parked for another reason than that it is dust: the user is notified of
/// it.
fn is_users(view: &View, one: &Parking) -> bool {
    let is = |deposit: &Deposit| status::is_users(&view.request, deposit);
    one.why != RefundFailReason::AmountTooLowToRefund && view.deposit(&one.deposit).is_some_and(is)
}

/// Parks the deposit of a payment whose transaction is final, succeeded and paid nobody. Only the operator can find out
/// where the money is, and whether anything is to be paid again.
pub(super) fn unpaid(view: &View, leg: &Leg) -> Parking {
    let deposit = view.deposit(&leg.deposit).map(|deposit| deposit.amount);
    let own = (leg.purpose == Purpose::Excess).then_some(leg.amount);
    let reason = match leg.purpose {
        Purpose::Fill => FailReason::TooLittleReceived,
        Purpose::Refund => leg.reason.unwrap_or(FailReason::Unknown),
        Purpose::Excess => FailReason::DoubleSpend,
    };
    let transaction = leg.transaction.as_deref().unwrap_or_default();
    Parking {
        deposit: leg.deposit,
        amount: own.or(deposit).unwrap_or(leg.amount),
        reason,
        why: RefundFailReason::ManualRefundRequired,
        note: format!(
            "{UNPAID} {transaction} on {} succeeded and paid nobody",
            leg.network
        ),
        minor: false,
    }
}

fn row(view: &View, parking: &Parking) -> Option<Parked> {
    let deposit = view.deposit(&parking.deposit)?;
    let reasons = Reasons {
        fill: parking.reason,
        refund: parking.why,
    };
    let row = Parked::new(deposit, reasons, &parking.note, parking.minor, view.now);
    Some(Parked {
        amount: parking.amount,
        ..row
    })
}
