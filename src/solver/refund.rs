//! Giving deposits back where they were made.

mod bill;

use alloy::primitives::B256;
use vm::{
    Address, Amount, CodecError, Transaction, spelled_alike,
    trade::{Draft, Intent, PaymentTerms, Payout},
};

use super::{
    Paid, Solver, SolverError, View,
    account::{Plan, SolverAccount},
    claim,
    claimable::{self, Deposited},
    offer::{leaves_fees, left_for_fees},
};
use crate::{
    attest::{Refusal, plan::Attestable},
    request::{
        Request,
        fact::{Deposit, Purpose},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
    },
    store::rows::{
        attempt::Owner,
        claim::{Leg, Stage},
    },
};

use self::bill::Bill;
pub(super) use self::bill::converted;

/// What is given back, and why.
struct Gift<'a> {
    deposit: &'a Deposit,
    purpose: Purpose,
    reason: Option<FailReason>,
    /// What is given back before its costs are taken off.
    amount: Amount,
    /// The least that is given back.
    minimum: Amount,
}

impl Solver {
    /// Begins to give `deposit` back, less the costs of that.
    pub(super) async fn refund(
        &self,
        view: &View,
        deposit: B256,
        (reason, minimum): (FailReason, Amount),
    ) -> Result<Paid, SolverError> {
        // Nobody could settle an order that an unknown key promised.
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

    /// Begins to give back the excess of `deposit`.
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
        let account = self.account(&gift.deposit.network)?;
        let Ok((to, currency)) = parties(&view.request, gift.deposit, account) else {
            return manual;
        };
        if !is_settled(account, gift.deposit).await? {
            return Ok(Paid::Later);
        }
        // A payment to the solver itself would succeed, and pay nobody.
        if to == account.owner || self.is_in_vain(view, gift, (account, &currency)) {
            return manual;
        }
        let order = view.request.order_id;
        if !covers(account, &currency, gift.amount).await? {
            let network = account.chain.name.as_str();
            tracing::warn!(network, %order, %currency, "too little to give a deposit back");
            return Ok(Paid::Short);
        }
        let bill = match self.bill(view, gift, (&to, &currency)).await? {
            Ok(bill) => bill,
            Err(paid) => return Ok(paid),
        };
        let charged = self.charged(view, (gift.deposit, gift.purpose)).await?;
        let Some(amount) = bill.cost.and_then(|cost| left(gift, cost, charged)) else {
            return Ok(Paid::NotYet(RefundFailReason::AmountTooLowToRefund));
        };
        let native = currency == account.chain.native;
        let payout = Payout {
            to,
            currency,
            amount,
        };
        if gift.purpose == Purpose::Refund
            && let Err(refusal) = self.attests(view, account, gift.deposit, &payout)
        {
            tracing::error!(%order, %refusal, "no oracle would attest the refund");
            return manual;
        }
        let draft = payment(account, &payout, order)?;
        // The recipient's code may succeed with the whole amount only, which the fee has made smaller since.
        if account.simulate_with(&draft, bill.work).await?.is_err() {
            return Ok(Paid::Refused(RefundFailReason::ManualRefundRequired));
        }
        let intent = Intent {
            draft,
            work: bill.work,
            besides: Some(bill.besides),
            spends: match native {
                true => Vec::new(),
                false => vec![(payout.currency.clone(), amount)],
            },
        };
        let staked = self.stake_back(view, gift.deposit, &payout, &intent);
        if !staked.await? {
            return Err(SolverError::Crowded(account.chain.name.clone()));
        }
        self.send_back(view, gift, amount, intent).await
    }

    /// Whether the gift hands over to code that could make it unclaimable. The excess over a filled order is not claimed.
    fn is_in_vain(
        &self,
        view: &View,
        gift: &Gift<'_>,
        (account, currency): (&SolverAccount, &Address),
    ) -> bool {
        let (request, chain) = (&view.request, &account.chain);
        let hands_over = *currency == chain.native && chain.providers.contracts.is_some();
        let in_vain =
            gift.purpose == Purpose::Refund && hands_over && self.is_exposed(request, account);
        if in_vain {
            let order = request.order_id;
            tracing::warn!(%order, "code that is paid could make a former key's order unclaimable");
        }
        in_vain
    }

    /// How much of `deposit` can pay for payments that failed: what is left above the least that oracles attest as a
    /// refund and above what a refund costs now. Without a known cost, what is above the least. Nothing, where no
    /// refund is possible.
    pub(super) async fn spare(&self, view: &View, deposit: &Deposit) -> Amount {
        let families = self.families();
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
            let account = self.account(&deposit.network)?;
            let (to, currency) = parties(&view.request, deposit, account)?;
            self.bill(view, &gift, (&to, &currency)).await
        };
        match cost.await {
            Ok(Ok(Bill {
                cost: Some(cost), ..
            })) => room(&gift, cost).unwrap_or_default(),
            Ok(_) => Amount::ZERO,
            Err(_) => room(&gift, Amount::ZERO).unwrap_or_default(),
        }
    }

    /// Whether the oracle's own judges would attest the refund.
    fn attests(
        &self,
        view: &View,
        account: &SolverAccount,
        deposit: &Deposit,
        payout: &Payout,
    ) -> Result<(), Refusal> {
        let families = self.families();
        let (option, _) = option(&view.request, deposit).ok_or(Refusal::InvalidRefund(0))?;
        let deposited = Deposited {
            request: &view.request,
            deposit,
            families: &families,
            routers: &account.chain.loaded.spec.fill_routers,
        };
        let attested = deposited.refunded(
            option,
            &claimable::Payment {
                from: &account.owner,
                by: (view.now / 1_000).saturating_add(account.chain.margin()),
                router: None,
                payouts: std::slice::from_ref(payout),
                calls: &[],
            },
        );
        self.check_signed(&view.request, attested?)
    }

    /// Refuses an order whose claim needs a signature that none of the solver's keys can make.
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
        gift: &Gift<'_>,
        amount: Amount,
        intent: Intent,
    ) -> Result<Paid, SolverError> {
        let account = self.account(&gift.deposit.network)?;
        let plan = Plan {
            owner: Owner::Request(view.request.id),
            intent,
            // Who is given a deposit back has paid next to nothing for that: it never paid for the order, or the order
            // needed no key and was over as soon as its user liked.
            keeps: gift.purpose != Purpose::Refund
                || view.request.api_key.is_none()
                || mismatch(&view.request, gift.deposit).is_some(),
        };
        // What has become dearer since the bill is an error: the next look bills it.
        let taken = match account.take(&plan, view.now / 1_000).await {
            Err(SolverError::Short { .. }) => return Ok(Paid::Short),
            taken => taken?,
        };
        let currency = account.chain.family().address(&gift.deposit.currency)?;
        if currency == account.chain.native && !leaves_fees(account, &taken.attempt).await? {
            return Ok(Paid::Short);
        }
        let leg = Leg {
            purpose: gift.purpose,
            deposit: gift.deposit.onchain_id,
            reason: gift.reason,
            network: account.chain.name.clone(),
            lane: account.name.clone(),
            attempt: taken.id.clone(),
            currency: gift.deposit.currency.clone(),
            amount,
            payments: Vec::new(),
            transaction: None,
            stage: Stage::Open,
            wasted: Amount::ZERO,
            begun: view.now / 1_000,
        };
        let next = match gift.purpose {
            Purpose::Excess => claim::excess(&view.claim, leg)?,
            Purpose::Fill | Purpose::Refund => claim::refund(&view.claim, leg)?,
        };
        self.begin(view, account, taken, next).await
    }
}

/// Whether the account can give so much back. Of the native currency it keeps what fills and refunds of tokens cost: no
/// deposit takes that.
async fn covers(
    account: &SolverAccount,
    currency: &Address,
    amount: Amount,
) -> Result<bool, SolverError> {
    let left = match *currency == account.chain.native {
        true => left_for_fees(account).await?,
        false => Amount::ZERO,
    };
    Ok(account.available(currency).await? >= amount.saturating_add(left))
}

/// Whether a deposit has all that its chain's own finality asks. One that is acted on in its first block may be gone
/// later: it is filled for within caps, but nobody is given anything back out of other money.
async fn is_settled(account: &SolverAccount, deposit: &Deposit) -> Result<bool, SolverError> {
    let chain = &account.chain;
    let listed = chain.market.as_ref();
    if !listed.is_some_and(|it| it.acts_in_one_block(&deposit.currency, deposit.amount)) {
        return Ok(true);
    }
    let (found, head) = chain.agreed(&deposit.transaction).await?;
    let Transaction::Succeeded(receipt) = found else {
        return Ok(false);
    };
    let same = receipt.block.hash == deposit.place.hash;
    Ok(same && chain.loaded.spec.finality.met(&receipt.block, &head))
}

/// What is given back: the amount less `cost`, and less as much of `charged`, for payments that failed, as leaves the
/// least. `None`: less than oracles attest as a refund.
fn left(gift: &Gift<'_>, cost: Amount, charged: Amount) -> Option<Amount> {
    let charged = charged.min(room(gift, cost)?);
    gift.amount.checked_sub(cost)?.checked_sub(charged)
}

/// What `cost` leaves above the least that is given back.
fn room(gift: &Gift<'_>, cost: Amount) -> Option<Amount> {
    let least = gift.minimum.max(Amount::ONE);
    gift.amount.checked_sub(cost)?.checked_sub(least)
}

/// The order's refund option for the deposit's chain and currency, with its index.
pub(super) fn option<'a>(
    request: &'a Request,
    deposit: &Deposit,
) -> Option<(usize, &'a vm::protocol::order::Refund)> {
    let mut options = request.order.inputs.first()?.refunds.iter().enumerate();
    options.find(|(_, refund)| {
        refund.chain_id == deposit.network && spelled_alike(&refund.currency, &deposit.currency)
    })
}

/// The recipient and the currency of a deposit's refund. Where the order names the native currency's address as
/// recipient, it is the depositor, as oracles read it.
pub(super) fn parties(
    request: &Request,
    deposit: &Deposit,
    account: &SolverAccount,
) -> Result<(Address, Address), CodecError> {
    let family = account.chain.family();
    let named = option(request, deposit).map(|(_, refund)| refund.recipient.as_str());
    let named = family.address(named.unwrap_or(&request.refund_to))?;
    let to = if named == account.chain.native {
        family.address(&deposit.depositor)?
    } else {
        named
    };
    Ok((to, family.address(&deposit.currency)?))
}

fn payment(account: &SolverAccount, payout: &Payout, order: B256) -> Result<Draft, CodecError> {
    account.chain.steps.send(&PaymentTerms {
        from: &account.owner,
        to: &payout.to,
        currency: &payout.currency,
        amount: payout.amount,
        order,
    })
}

#[cfg(test)]
mod tests;
