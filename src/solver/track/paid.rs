//! Whether a payment's transaction paid what it was for.

use vm::{Address, Amount, Receipt, trade::Payout};

use crate::{
    request::fact::Purpose,
    solver::{Solver, SolverError, View, account::AttemptStatus, fill::payments, refund::parties},
    store::rows::claim::Leg,
};

impl Solver {
    /// Whether the transaction paid what it was for, by what a quorum decoded of it; `None` where that
    /// cannot be said.
    pub(super) fn is_paid(&self, view: &View, leg: &Leg, status: &AttemptStatus) -> Option<bool> {
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
        let payouts = self.payouts(view, leg);
        let paid = payouts.ok().map(|payouts| has_all(receipt, &payouts));
        if paid != Some(true) {
            let (order, id) = (view.request.order_id, &signed.id);
            tracing::error!(%order, id, "transaction succeeded and did not pay");
            metrics::counter!("intentd_solver_unpaid_total").increment(1);
        }
        paid
    }

    /// What the payment is for.
    fn payouts(&self, view: &View, leg: &Leg) -> Result<Vec<Payout>, SolverError> {
        let account = self.account(&leg.network)?;
        match leg.purpose {
            Purpose::Fill => Ok(payments(&view.request, account, &leg.payments)?),
            Purpose::Refund | Purpose::Excess => {
                let deposit = view.deposit(&leg.deposit).ok_or(SolverError::Fenced)?;
                let (to, currency) = parties(&view.request, deposit, account)?;
                let amount = leg.amount;
                Ok(vec![Payout {
                    to,
                    currency,
                    amount,
                }])
            }
        }
    }
}

/// Whether each recipient got all that is for it, of each currency.
fn has_all(receipt: &Receipt, payouts: &[Payout]) -> bool {
    payouts.iter().all(|Payout { to, currency, .. }| {
        let same = payouts
            .iter()
            .filter(|one| one.to == *to && one.currency == *currency);
        let total = same.fold(Amount::ZERO, |sum, one| sum.saturating_add(one.amount));
        received(receipt, to, currency) >= total
    })
}

fn received(receipt: &Receipt, to: &Address, currency: &Address) -> Amount {
    let payments = receipt.payments.iter();
    payments
        .filter(|payment| payment.recipient == *to && payment.currency == *currency)
        .fold(Amount::ZERO, |sum, payment| {
            sum.saturating_add(payment.amount)
        })
}
