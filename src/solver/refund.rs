//! Giving deposits back where they were made.

use alloy::primitives::B256;
use vm::{
    Address, Amount, CodecError, U256,
    trade::{Call, PaymentTerms},
};

use super::{
    Paid, Solver, SolverError, View, claim, judge,
    lane::{Lane, Plan},
};
use crate::{
    market::Currency,
    price::{Price, PriceError},
    request::{
        self, Request,
        fact::{Deposit, Purpose},
        reason::{FailReason, RefundFailReason},
    },
    store::rows::{
        claim::{Leg, Stage},
        lane::Owner,
    },
};

impl Solver {
    /// Begins to give `deposit` back, minus what that costs in gas.
    pub(super) async fn refund(
        &self,
        view: &View,
        deposit: B256,
        reason: FailReason,
    ) -> Result<Paid, SolverError> {
        let manual = Ok(Paid::GiveUp(RefundFailReason::ManualRefundRequired));
        let mut deposits = view.facts.deposits.iter();
        let Some(deposit) = deposits.find(|known| known.onchain_id == deposit) else {
            return Ok(Paid::Later);
        };
        let lane = self.lane(&deposit.network)?;
        let Ok((to, currency)) = parties(&view.request, deposit, lane) else {
            return manual;
        };
        let order = view.request.order_id;
        if lane.available(&currency).await? < deposit.amount {
            let network = lane.site.name.as_str();
            tracing::warn!(network, %order, %currency, "too little to give a deposit back");
            return Ok(Paid::Short);
        }
        let whole = payment(lane, (&to, &currency, deposit.amount), order)?;
        let Ok(gas) = lane.estimate(&whole, &[]).await? else {
            return manual;
        };
        let cost = match self.cost(lane, &currency, gas, view.now / 1_000).await {
            Err(SolverError::Price(PriceError::Unknown(_))) => return manual,
            cost => cost?,
        };
        let least = least(&view.request, deposit);
        let Some(amount) = cost.and_then(|cost| left(deposit.amount, cost, least)) else {
            return Ok(Paid::GiveUp(RefundFailReason::AmountTooLowToRefund));
        };
        let call = payment(lane, (&to, &currency, amount), order)?;
        let native = currency == lane.site.native;
        let plan = Plan {
            owner: Owner::Request(view.request.id),
            call,
            authorizations: Vec::new(),
            gas,
            spends: if native {
                Vec::new()
            } else {
                vec![(currency, amount)]
            },
        };
        self.give(view, lane, &plan, (deposit, amount, reason))
            .await
    }

    async fn give(
        &self,
        view: &View,
        lane: &Lane,
        plan: &Plan,
        (deposit, amount, reason): (&Deposit, Amount, FailReason),
    ) -> Result<Paid, SolverError> {
        let taken = match lane.take(plan, view.now / 1_000).await {
            Err(SolverError::Short { .. }) => return Ok(Paid::Short),
            taken => taken?,
        };
        let leg = Leg {
            purpose: Purpose::Refund,
            deposit: deposit.onchain_id,
            reason: Some(reason),
            network: lane.site.name.clone(),
            nonce: taken.nonce,
            currency: deposit.currency.clone(),
            amount,
            transaction: None,
            stage: Stage::Open,
        };
        let next = claim::refund(&view.claim, leg)?;
        self.begin(view, lane, taken, next).await
    }

    /// What `gas` units cost in a currency, rounded up; `None` where no number says it.
    async fn cost(
        &self,
        lane: &Lane,
        currency: &Address,
        gas: u64,
        now: u64,
    ) -> Result<Option<Amount>, SolverError> {
        let fees = lane.fees().await?;
        let per_unit = U256::from(fees.base.saturating_add(fees.priority));
        let cost = per_unit.saturating_mul(U256::from(gas));
        if *currency == lane.site.native {
            return Ok(Some(cost));
        }
        let native = lane.site.market.as_ref().and_then(|market| market.native());
        let unlisted = || PriceError::Unknown(currency.text().to_owned());
        let native = native.ok_or_else(unlisted)?;
        let listed = lane.site.listed(currency.text()).ok_or_else(unlisted)?;
        let prices = (
            self.prices.price(native, now).await?,
            self.prices.price(listed, now).await?,
        );
        Ok(converted(cost, (native, prices.0), (listed, prices.1)))
    }
}

/// `amount` of one currency in another, rounded up.
fn converted(amount: Amount, from: (&Currency, Price), to: (&Currency, Price)) -> Option<Amount> {
    let unit = |currency: &Currency| U256::from(10).checked_pow(U256::from(currency.decimals));
    let above = amount.checked_mul(from.1.usd)?.checked_mul(unit(to.0)?)?;
    let below = unit(from.0)?.checked_mul(to.1.usd)?;
    (!below.is_zero()).then(|| above.div_ceil(below))
}

/// What is left to give back; `None`: less than oracles take for a refund.
fn left(amount: Amount, cost: Amount, least: Amount) -> Option<Amount> {
    let left = amount.checked_sub(cost)?;
    (!left.is_zero() && left >= least).then_some(left)
}

/// The least that oracles take for a refund of `deposit`.
fn least(request: &Request, deposit: &Deposit) -> Amount {
    let option = judge::option(request, deposit);
    let least = option
        .and_then(|(_, option)| request::refund::least(&request.order, option, deposit.amount));
    least.unwrap_or(Amount::MAX)
}

/// To whom the order gives a deposit back, and in what. Where it names the native currency's
/// address, to the depositor (as the oracles read it).
pub(super) fn parties(
    request: &Request,
    deposit: &Deposit,
    lane: &Lane,
) -> Result<(Address, Address), CodecError> {
    let family = lane.site.family();
    let named = judge::option(request, deposit).map(|(_, refund)| refund.recipient.as_str());
    let named = family.address(named.unwrap_or(&request.refund_to))?;
    let to = if named == lane.site.native {
        family.address(&deposit.depositor)?
    } else {
        named
    };
    Ok((to, family.address(&deposit.currency)?))
}

fn payment(
    lane: &Lane,
    (to, currency, amount): (&Address, &Address, Amount),
    order: B256,
) -> Result<Call, CodecError> {
    let step = lane.site.steps.send(&PaymentTerms {
        from: &lane.owner,
        to,
        currency,
        amount,
        order,
    })?;
    Ok(step.call)
}

#[cfg(test)]
mod tests;
