//! Giving deposits back where they were made.

mod bill;

use alloy::primitives::B256;
use vm::{
    Address, Amount, CodecError, spelled_alike,
    trade::{Call, Intent, PaymentTerms, Payout},
};

use super::{
    Paid, Solver, SolverError, View,
    account::{Plan, SolverAccount},
    claim,
    claimable::{self, Deposited},
};
use crate::{
    attest::{Refusal, plan::Attestable},
    request::{
        Request,
        fact::{Deposit, Purpose},
        reason::{FailReason, RefundFailReason},
    },
    store::rows::{
        attempt::Owner,
        claim::{Leg, Stage},
    },
};

pub(super) use self::bill::converted;

/// What is given back, and as what.
struct Gift<'a> {
    deposit: &'a Deposit,
    purpose: Purpose,
    reason: Option<FailReason>,
    /// Before the gas.
    amount: Amount,
    /// No less is given.
    minimum: Amount,
}

impl Solver {
    /// Begins to give `deposit` back, minus what that costs in gas.
    pub(super) async fn refund(
        &self,
        view: &View,
        deposit: B256,
        (reason, minimum): (FailReason, Amount),
    ) -> Result<Paid, SolverError> {
        // What an unknown key promised nobody could have settled.
        if !self.is_ours(&view.request) {
            return Err(SolverError::Elsewhere(view.request.order.solver.clone()));
        }
        let Some(deposit) = view.deposit(&deposit) else {
            return Ok(Paid::Later);
        };
        let gift = Gift {
            deposit,
            purpose: Purpose::Refund,
            reason: Some(reason),
            amount: deposit.amount,
            minimum,
        };
        self.give(view, &gift).await
    }

    /// Begins to give back what `deposit` was too much.
    pub(super) async fn give_excess(
        &self,
        view: &View,
        deposit: B256,
        amount: Amount,
    ) -> Result<Paid, SolverError> {
        let Some(deposit) = view.deposit(&deposit) else {
            return Ok(Paid::Later);
        };
        let gift = Gift {
            deposit,
            purpose: Purpose::Excess,
            reason: None,
            amount,
            minimum: Amount::ZERO,
        };
        self.give(view, &gift).await
    }

    async fn give(&self, view: &View, gift: &Gift<'_>) -> Result<Paid, SolverError> {
        let manual = Ok(Paid::NotYet(RefundFailReason::ManualRefundRequired));
        let lane = self.lane(&gift.deposit.network)?;
        let Ok((to, currency)) = parties(&view.request, gift.deposit, lane) else {
            return manual;
        };
        // It would succeed, and pay nobody.
        if to == lane.owner {
            return manual;
        }
        let order = view.request.order_id;
        if lane.available(&currency).await? < gift.amount {
            let network = lane.site.name.as_str();
            tracing::warn!(network, %order, %currency, "too little to give a deposit back");
            return Ok(Paid::Short);
        }
        let (gas, cost) = match self.bill(view, gift, (&to, &currency)).await? {
            Ok(bill) => bill,
            Err(paid) => return Ok(paid),
        };
        let charged = self.charged(view, (gift.deposit, gift.purpose)).await?;
        let Some(amount) = cost.and_then(|cost| left(gift, cost, charged)) else {
            return Ok(Paid::NotYet(RefundFailReason::AmountTooLowToRefund));
        };
        if gift.purpose == Purpose::Refund
            && let Err(refusal) = self.attests(view, lane, (gift.deposit, (&to, &currency, amount)))
        {
            tracing::error!(%order, %refusal, "no oracle would attest the refund");
            return manual;
        }
        let call = payment(lane, (&to, &currency, amount), order)?;
        // Who is given it may have wanted all of it.
        if lane.rehearse(&call, &[], gas).await?.is_err() {
            return Ok(Paid::Refused(RefundFailReason::ManualRefundRequired));
        }
        let native = currency == lane.site.native;
        let plan = Plan {
            owner: Owner::Request(view.request.id),
            intent: Intent {
                call,
                authorizations: Vec::new(),
                limit: gas,
                spends: if native {
                    Vec::new()
                } else {
                    vec![(currency.clone(), amount)]
                },
            },
        };
        let given = (&**lane, gift.deposit.onchain_id);
        if !self
            .stake_back(view, given, (&plan, &to, &currency))
            .await?
        {
            return Err(SolverError::Crowded(lane.site.name.clone()));
        }
        self.send_back(view, lane, &plan, (gift, amount)).await
    }

    /// What of `deposit` can pay for what failed: beyond the least that oracles take for a refund, and
    /// what a refund costs now. All of it, where nobody says what that is; nothing, where none is made.
    pub(super) async fn spare(&self, view: &View, deposit: &Deposit) -> Amount {
        let families = |network: &str| Some(self.lanes.get(network)?.site.family());
        let Ok(way) = claimable::refund(&view.request, deposit, &families) else {
            return Amount::ZERO;
        };
        let gift = Gift {
            deposit,
            purpose: Purpose::Refund,
            reason: None,
            amount: deposit.amount,
            minimum: way.minimum,
        };
        let cost = async {
            let lane = self.lane(&deposit.network)?;
            let (to, currency) = parties(&view.request, deposit, lane)?;
            self.bill(view, &gift, (&to, &currency)).await
        };
        match cost.await {
            Ok(Ok((_, Some(cost)))) => room(&gift, cost).unwrap_or_default(),
            Ok(_) => Amount::ZERO,
            Err(_) => room(&gift, Amount::ZERO).unwrap_or_default(),
        }
    }

    /// Whether the oracle's own judges would attest the refund.
    fn attests(
        &self,
        view: &View,
        lane: &SolverAccount,
        (deposit, (to, currency, amount)): (&Deposit, (&Address, &Address, Amount)),
    ) -> Result<(), Refusal> {
        let families = |network: &str| Some(self.lanes.get(network)?.site.family());
        let (option, _) = option(&view.request, deposit).ok_or(Refusal::InvalidRefund(0))?;
        let deposited = Deposited {
            request: &view.request,
            deposit,
            families: &families,
            routers: &lane.site.chain.spec.fill_routers,
        };
        let attested = deposited.refunded(
            option,
            &claimable::Payment {
                from: &lane.owner,
                by: (view.now / 1_000).saturating_add(self.patience.margin),
                router: None,
                payouts: &[Payout {
                    to: to.clone(),
                    currency: currency.clone(),
                    amount,
                }],
                calls: &[],
            },
        );
        self.check_signed(&view.request, attested?)
    }

    /// Refuses what a claim would need a signature for that no key of ours can make.
    pub(super) fn check_signed(
        &self,
        request: &Request,
        attested: Attestable,
    ) -> Result<(), Refusal> {
        match attested.to_sign.is_some() && !self.is_ours(request) {
            true => Err(Refusal::ClaimSignature),
            false => Ok(()),
        }
    }

    async fn send_back(
        &self,
        view: &View,
        lane: &SolverAccount,
        plan: &Plan,
        (gift, amount): (&Gift<'_>, Amount),
    ) -> Result<Paid, SolverError> {
        let taken = match lane.take(plan, view.now / 1_000).await {
            Err(SolverError::Short { .. }) => return Ok(Paid::Short),
            taken => taken?,
        };
        let leg = Leg {
            purpose: gift.purpose,
            deposit: gift.deposit.onchain_id,
            reason: gift.reason,
            network: lane.site.name.clone(),
            lane: lane.name.clone(),
            attempt: taken.id.clone(),
            currency: gift.deposit.currency.clone(),
            amount,
            payments: Vec::new(),
            transaction: None,
            stage: Stage::Open,
            wasted: Amount::ZERO,
        };
        let next = match gift.purpose {
            Purpose::Excess => claim::excess(&view.claim, leg)?,
            Purpose::Fill | Purpose::Refund => claim::refund(&view.claim, leg)?,
        };
        self.begin(view, lane, taken, next).await
    }
}

/// What is left to give back after `cost`, and after as much of what is `charged` for payments that failed
/// as leaves the least that is given; `None`: less than oracles take for a refund.
fn left(gift: &Gift<'_>, cost: Amount, charged: Amount) -> Option<Amount> {
    let charged = charged.min(room(gift, cost)?);
    gift.amount.checked_sub(cost)?.checked_sub(charged)
}

/// What `cost` leaves above the least that is given.
fn room(gift: &Gift<'_>, cost: Amount) -> Option<Amount> {
    let least = gift.minimum.max(Amount::ONE);
    gift.amount.checked_sub(cost)?.checked_sub(least)
}

/// The order's way to give back on the deposit's chain, in its currency, and its index.
pub(super) fn option<'a>(
    request: &'a Request,
    deposit: &Deposit,
) -> Option<(usize, &'a vm::protocol::order::Refund)> {
    let mut options = request.order.inputs.first()?.refunds.iter().enumerate();
    options.find(|(_, refund)| {
        refund.chain_id == deposit.network && spelled_alike(&refund.currency, &deposit.currency)
    })
}

/// To whom the order gives a deposit back, and in what. Where it names the native currency's
/// address, to the depositor (as the oracles read it).
pub(super) fn parties(
    request: &Request,
    deposit: &Deposit,
    lane: &SolverAccount,
) -> Result<(Address, Address), CodecError> {
    let family = lane.site.family();
    let named = option(request, deposit).map(|(_, refund)| refund.recipient.as_str());
    let named = family.address(named.unwrap_or(&request.refund_to))?;
    let to = if named == lane.site.native {
        family.address(&deposit.depositor)?
    } else {
        named
    };
    Ok((to, family.address(&deposit.currency)?))
}

fn payment(
    lane: &SolverAccount,
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
