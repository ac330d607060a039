//! What a fill cost that paid nobody. The order's deposit pays for it, up to what the user was charged
//! for gas on the destination; the rest is the solver's, and counts for the breaker.

use std::sync::PoisonError;

use vm::{Amount, U256, spelled_alike};

use super::{
    Solver, SolverError, View,
    lane::{Landing, Lane},
    refund::converted,
};
use crate::{
    request::{
        fact::{Deposit, Purpose},
        quoted::Quoted,
    },
    store::rows::{
        claim::{Leg, Stage},
        lane::Slot,
    },
};

impl Solver {
    /// What a payment cost that paid nobody, at most, in native units: its own gas and bytes where it
    /// reverted, those of what used its nonce up where no node took it.
    pub(super) async fn wasted(&self, lane: &Lane, slot: &Slot, landing: &Landing) -> Amount {
        let Landing::Landed {
            version, success, ..
        } = landing
        else {
            return Amount::ZERO;
        };
        if *success && !version.cancels {
            return Amount::ZERO;
        }
        let now = lane.site.fees().await;
        let now = now.map_or(u128::MAX, |fees| fees.base.saturating_add(fees.priority));
        let gas = U256::from(version.gas).saturating_mul(U256::from(version.max_fee.min(now)));
        gas.saturating_add(lane.slot_data_fee(slot, version).await)
    }

    /// What of `deposit` pays for fills that failed.
    pub(super) async fn charged(
        &self,
        view: &View,
        deposit: &Deposit,
    ) -> Result<Amount, SolverError> {
        let failed = view.claim.legs.iter().filter(|leg| {
            leg.purpose == Purpose::Fill
                && leg.deposit == deposit.onchain_id
                && leg.stage == Stage::Failed
        });
        let most = paid_for_gas(view, deposit);
        let mut charged = Amount::ZERO;
        for leg in failed.filter(|leg| !leg.wasted.is_zero() && !most.is_zero()) {
            charged = charged.saturating_add(self.in_deposited(leg, deposit, view.now).await?);
        }
        Ok(charged.min(most))
    }

    /// What a leg wasted, in units of the deposit's currency.
    async fn in_deposited(
        &self,
        leg: &Leg,
        deposit: &Deposit,
        now: u64,
    ) -> Result<Amount, SolverError> {
        let there = self.lane(&leg.network)?.site.market.as_ref();
        let here = self.lane(&deposit.network)?;
        let native = there.and_then(|market| market.native());
        let Some((native, listed)) = native.zip(here.site.listed(&deposit.currency)) else {
            return Ok(Amount::ZERO);
        };
        let now = now / 1_000;
        let prices = (
            self.prices.price(native, now).await?,
            self.prices.price(listed, now).await?,
        );
        let amount = converted(leg.wasted, (native, prices.0), (listed, prices.1));
        Ok(amount.unwrap_or_default())
    }

    /// Whether orders like this one have cost too much of late.
    pub(super) fn is_too_costly(&self, view: &View, deposit: &Deposit) -> bool {
        let breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.is_open(&view.request, deposit, view.now / 1_000)
    }

    /// Counts what a failed fill cost beyond what the user pays for it.
    pub(super) async fn count_loss(&self, view: &View, leg: &Leg) {
        let Some(deposit) = view.deposit(&leg.deposit) else {
            return;
        };
        let native = self.lanes.get(&leg.network).map(|lane| &lane.site.native);
        let native = native.map_or("", |native| native.text());
        let cost = self.value((&leg.network, native), leg.wasted, view.now);
        let paid = paid_for_gas(view, deposit);
        let paid = self.value((&deposit.network, &deposit.currency), paid, view.now);
        let (cost, paid) = (
            cost.await.unwrap_or_default(),
            paid.await.unwrap_or_default(),
        );
        let loss = cost.saturating_sub(paid);
        metrics::counter!("intentd_solver_failed_fills_total", "network" => leg.network.clone())
            .increment(1);
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.lost(&view.request, deposit, loss, view.now / 1_000);
    }
}

/// What the user was charged for gas on the destination, in units of the deposit.
fn paid_for_gas(view: &View, deposit: &Deposit) -> Amount {
    let fees = Quoted::of(&view.request).fees;
    let gas = fees.map(|fees| fees.relayer_gas);
    let same = gas.filter(|gas| spelled_alike(&gas.currency.address, &deposit.currency));
    same.map_or(Amount::ZERO, |gas| gas.units())
}
