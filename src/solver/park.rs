//! Leaving deposits to the operator: listed with their reasons, and told in the request's record.

use super::{Solver, SolverError, View, claim, judge::Parking};
use crate::{
    request::{fact::Ending, mismatch::mismatch},
    store::{
        Batch,
        rows::parked::{self, Parked},
    },
};

impl Solver {
    pub(super) async fn park(
        &self,
        view: &View,
        parking: Vec<Parking>,
    ) -> Result<bool, SolverError> {
        let (request, order) = (view.request.id, view.request.order_id);
        let ids: Vec<_> = parking.iter().map(|one| one.deposit).collect();
        let next = claim::park(&view.claim, &ids)?;
        let mut batch = Batch::new();
        for one in &parking {
            let Some(row) = row(view, one) else { continue };
            batch = batch.put(parked::key(&request, &one.deposit), row.encode()?);
            let (deposit, why, note) = (one.deposit, one.why, one.note.as_str());
            if !one.minor {
                tracing::error!(%request, %order, %deposit, ?why, note, "deposit is parked");
            }
            let worth = if one.minor { "minor" } else { "real" };
            metrics::counter!("intentd_solver_parked_total", "worth" => worth).increment(1);
        }
        self.decide(view, batch, &next, |facts| {
            for one in parking {
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
                    minor: one.minor,
                });
            }
        })
        .await?;
        Ok(true)
    }
}

fn row(view: &View, parking: &Parking) -> Option<Parked> {
    let deposit = view.deposit(&parking.deposit)?;
    Some(Parked {
        network: deposit.network.clone(),
        transaction: deposit.transaction.clone(),
        depositor: deposit.depositor.clone(),
        currency: deposit.currency.clone(),
        amount: deposit.amount,
        reason: parking.reason,
        why: parking.why,
        note: parking.note.clone(),
        minor: parking.minor,
        since: view.now,
    })
}
