//! Waste: what payments cost that paid nobody. The order's deposit pays for it: for fills up to what the user was
//! charged for gas on the destination, for refunds all of it, and never so much that nothing is given back. The solver
//! bears the rest, which counts for the breaker.

use vm::{Amount, spelled_alike};

use super::{
    Solver, SolverError, View,
    account::{AttemptStatus, SolverAccount},
    breaker::Loss,
    claim,
    refund::converted,
};
use crate::{
    request::{
        fact::{Deposit, Purpose},
        quoted::Quoted,
    },
    store::rows::{
        attempt,
        claim::{Leg, Stage},
    },
};

impl Solver {
    /// What a payment cost that paid nobody, in the native currency: its own fee where it reverted, the fee of what
    /// cancelled it where no node took it. By the receipt, or else at most; `None` while neither is known.
    pub(super) async fn wasted(
        &self,
        account: &SolverAccount,
        leg: &Leg,
        (attempt, status): (&attempt::Attempt, &AttemptStatus),
    ) -> Option<Amount> {
        let AttemptStatus::Included {
            at,
            signed,
            success,
            wasted,
            ..
        } = status
        else {
            return Some(Amount::ZERO);
        };
        if *success && !signed.cancels {
            return Some(Amount::ZERO);
        }
        // The cost was read as soon as the payment was in a block.
        if !leg.wasted.is_zero() {
            return Some(leg.wasted);
        }
        match wasted {
            Some(wasted) => Some(*wasted),
            None => account.at_most((&leg.attempt, attempt), *at).await.ok(),
        }
    }

    /// What a payment that gives `deposit` or its excess back pays for payments that failed.
    pub(super) async fn charged(
        &self,
        view: &View,
        (deposit, purpose): (&Deposit, Purpose),
    ) -> Result<Amount, SolverError> {
        let own = self.waste(view, deposit, purpose).await?;
        if purpose != Purpose::Refund {
            return Ok(own);
        }
        let most = paid_for_gas(view, deposit);
        if most.is_zero() {
            return Ok(own);
        }
        let fills = self.waste(view, deposit, Purpose::Fill).await?;
        Ok(own.saturating_add(fills.min(most)))
    }

    /// What a deposit's payments of one purpose wasted, in units of its currency.
    async fn waste(
        &self,
        view: &View,
        deposit: &Deposit,
        purpose: Purpose,
    ) -> Result<Amount, SolverError> {
        let failed = view.claim.legs.iter().filter(|leg| {
            leg.purpose == purpose
                && leg.deposit == deposit.onchain_id
                && leg.stage == Stage::Failed
                && (purpose == Purpose::Fill || claim::reverted_at(&view.facts, leg).is_some())
        });
        let mut wasted = Amount::ZERO;
        for leg in failed.filter(|leg| !leg.wasted.is_zero()) {
            wasted = wasted.saturating_add(self.in_deposited(leg, deposit, view.now).await?);
        }
        Ok(wasted)
    }

    /// What a leg wasted, in units of the deposit's currency.
    async fn in_deposited(
        &self,
        leg: &Leg,
        deposit: &Deposit,
        now: u64,
    ) -> Result<Amount, SolverError> {
        let there = self.account(&leg.network)?.chain.market.as_ref();
        let here = self.account(&deposit.network)?;
        let native = there.and_then(|market| market.native());
        let Some((native, listed)) = native.zip(here.chain.listed(&deposit.currency)) else {
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

    /// Counts what a failed payment cost beyond what its deposit can still pay for.
    pub(super) async fn count_loss(&self, view: &View, leg: &Leg) {
        let Some(deposit) = view.deposit(&leg.deposit) else {
            return;
        };
        let (network, purpose) = (leg.network.clone(), format!("{:?}", leg.purpose));
        metrics::counter!("intentd_solver_failed_payments_total", "network" => network,
            "purpose" => purpose.to_lowercase())
        .increment(1);
        let native = self
            .accounts
            .get(&leg.network)
            .map(|account| &account.chain.native);
        let native = native.map_or("", |native| native.text());
        let paid = self.payable(view, deposit, leg.purpose).await;
        let cost = self.value((&leg.network, native), leg.wasted, view.now);
        let paid = self.value((&deposit.network, &deposit.currency), paid, view.now);
        let cost = cost.await.unwrap_or_default();
        let loss = cost.saturating_sub(paid.await.unwrap_or_default());
        let now = view.now / 1_000;
        let mut breaker = self.breaker();
        if leg.purpose == Purpose::Fill {
            let loss = Loss {
                cost: loss,
                handed_over: self.hands_over(&view.request),
            };
            return breaker.lost(&view.request, deposit, loss, now);
        }
        breaker.lost_giving_back(deposit, loss, now);
    }

    /// What `deposit` can still pay for a payment of this purpose that failed, besides what failed
    /// before it.
    async fn payable(&self, view: &View, deposit: &Deposit, purpose: Purpose) -> Amount {
        let before = self.charged(view, (deposit, Purpose::Refund)).await;
        let spare = self.spare(view, deposit).await;
        let spare = spare.saturating_sub(before.unwrap_or_default());
        match purpose {
            Purpose::Fill => spare.min(paid_for_gas(view, deposit)),
            Purpose::Refund => spare,
            // The order has used the rest of the deposit.
            Purpose::Excess => Amount::ZERO,
        }
    }
}

/// What the user was charged for gas on the destination, in units of the deposit.
fn paid_for_gas(view: &View, deposit: &Deposit) -> Amount {
    let fees = Quoted::of(&view.request).fees;
    let gas = fees.map(|fees| fees.relayer_gas);
    let same = gas.filter(|gas| spelled_alike(&gas.currency.address, &deposit.currency));
    same.map_or(Amount::ZERO, |gas| gas.units())
}
