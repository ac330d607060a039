//! Paying what an order wants on its destination.

use std::collections::HashMap;

use alloy::primitives::B256;
use vm::{
    Address, Amount, CodecError, OrderCall,
    protocol::{order::OutputPayment, text},
    trade::{Authorization, Fill, FillTerms, Intent, Payout, Work},
};

use super::{
    Paid, Solver, SolverError, View,
    account::{Plan, SolverAccount},
    claim,
    claimable::{self, Deposited},
    offer::{kept, leaves_fees},
};
use crate::{
    attest::Refusal,
    request::{Request, fact::Purpose, reason::FailReason},
    store::rows::{
        attempt::Owner,
        claim::{Leg, Stage},
    },
};

/// A fill as it goes on chain.
struct Payment {
    fill: Fill,
    /// Sums per currency other than the native one.
    spends: Vec<(Address, Amount)>,
    payouts: Vec<Payout>,
    /// The router, where it goes through that.
    router: Option<Address>,
    calls: Vec<OrderCall>,
    /// The first payment: the leg has it.
    currency: String,
    amount: Amount,
    amounts: Vec<Amount>,
}

impl Payment {
    /// Fills with native currency leave half of what quotes keep back to refunds and plain payments of tokens. The other
    /// half covers several quotes that were given at once.
    fn leaves_fees(&self) -> bool {
        !self.fill.draft.value.is_zero() || self.router.is_some()
    }
}

/// The most that a fill may take.
struct Most {
    work: u64,
    /// What its chain may charge besides, in the native currency.
    besides: Amount,
}

impl Solver {
    /// Begins the fill that `deposit` pays for, with `amounts` for the order's payments. `priced`: what its chain
    /// charges besides work, where the order is priced anew.
    pub(super) async fn fill(
        &self,
        view: &View,
        deposit: B256,
        (amounts, priced): (Vec<Amount>, Option<Amount>),
    ) -> Result<Paid, SolverError> {
        let request = &view.request;
        if !self.is_ours(request) {
            return Err(SolverError::Elsewhere(request.order.solver.clone()));
        }
        let account = self.account(&request.order.output.chain_id)?;
        if let Some(paid) = self.unpayable(account, request) {
            return Ok(paid);
        }
        let payment = match payment(request, account, amounts) {
            Ok(payment) => payment,
            Err(error) => {
                let order = request.order_id;
                tracing::error!(%order, %error, "order cannot be filled");
                return Ok(Paid::Fails(FailReason::Unknown));
            }
        };
        if let Err(refusal) = self.attested(view, account, (&deposit, &payment)) {
            let order = request.order_id;
            tracing::error!(%order, %refusal, "no oracle would attest the fill");
            return Ok(Paid::Fails(FailReason::Unknown));
        }
        if let Err(unfit) = account.admit(&payment.fill.draft).await? {
            let order = request.order_id;
            tracing::warn!(%order, %unfit, "no node would take the fill");
            return Ok(Paid::Fails(FailReason::TransactionSubmissionFailed));
        }
        if !self.covered(account, request, &payment).await? {
            return Ok(Paid::Short);
        }
        if let Some(spender) = &payment.fill.spender
            && !self
                .approved(account, spender, &payment.spends, view.now)
                .await?
        {
            return Ok(Paid::Away);
        }
        // An order that is priced anew is charged what its fill costs now.
        let draft = &payment.fill.draft;
        let judged = match priced {
            None => self.most_besides(view, account, draft).await?,
            priced => priced,
        };
        let Some(besides) = judged else {
            return Ok(Paid::Dear);
        };
        match self.fill_work(account, request, &payment).await? {
            Ok(work) => {
                let most = Most { work, besides };
                self.pay(view, deposit, payment, most).await
            }
            Err(paid) => Ok(paid),
        }
    }

    /// What happens instead of a fill for which `account` cannot pay, whatever it costs.
    fn unpayable(&self, account: &SolverAccount, request: &Request) -> Option<Paid> {
        let order = request.order_id;
        if let Err(error) = account.chain.sound() {
            tracing::warn!(%order, %error, "order waits");
            // Right after a start it may not be known yet whether the network is traded on.
            return Some(match account.chain.is_unsure() {
                true => Paid::Away,
                false => Paid::Short,
            });
        }
        if self.hands_over(request) && self.is_exposed(request, account) {
            tracing::warn!(%order, "code that is paid could make a former key's order unclaimable");
            return Some(Paid::Fails(FailReason::Unknown));
        }
        None
    }

    /// Whether the oracle's own judges would attest the fill.
    fn attested(
        &self,
        view: &View,
        account: &SolverAccount,
        (deposit, payment): (&B256, &Payment),
    ) -> Result<(), Refusal> {
        let families = self.families();
        let deposited = Deposited {
            request: &view.request,
            deposit: view.deposit(deposit).ok_or(Refusal::NoDeposit)?,
            families: &families,
            routers: &account.chain.loaded.spec.fill_routers,
        };
        let attested = deposited.filled(&claimable::Payment {
            from: &account.owner,
            by: (view.now / 1_000).saturating_add(account.chain.margin()),
            router: payment.router.as_ref(),
            payouts: &payment.payouts,
            calls: &payment.calls,
        });
        self.check_signed(&view.request, attested?)
    }

    /// The work that the fill may take; or what happens instead. A fill that takes more than the user paid for fails.
    /// An exchange waits instead, since a stranger can make one fail for a block; not where the user's own calls may be
    /// the reason. So does a payment where nobody's code runs: its work follows from what the solver has at hand, and
    /// strangers' orders hold some of that for a while.
    async fn fill_work(
        &self,
        account: &SolverAccount,
        request: &Request,
        payment: &Payment,
    ) -> Result<Result<u64, Paid>, SolverError> {
        let exchange = request.calls.is_empty() && !payment.calls.is_empty();
        let reverts = || match exchange {
            true => Paid::Reverts,
            false => Paid::Fails(FailReason::ExecutionReverted),
        };
        let draft = &payment.fill.draft;
        let work = match account.bare_work(draft).await? {
            Ok(work) => work,
            Err(revert) => {
                let order = request.order_id;
                tracing::warn!(%order, reason = revert.reason, "fill would revert");
                return Ok(Err(reverts()));
            }
        };
        let most = most_work(account, request);
        if work > most {
            let waits = exchange || account.chain.providers.contracts.is_none();
            return Ok(Err(match waits {
                true => Paid::Dear,
                false => Paid::Fails(FailReason::QuotedGasLimitExceeded),
            }));
        }
        Ok(match account.roomy(draft, (work, most)).await? {
            Ok(work) => Ok(work),
            Err(revert) => {
                let order = request.order_id;
                tracing::warn!(%order, reason = revert.reason, "fill would revert with its gas");
                Err(reverts())
            }
        })
    }

    /// What the chain charges for the order's fill besides its work, in the native currency.
    pub(super) async fn fill_besides(
        &self,
        request: &Request,
        amounts: &[Amount],
    ) -> Result<Amount, SolverError> {
        let account = self.account(&request.order.output.chain_id)?;
        let payment = payment(request, account, amounts.to_vec())?;
        account.besides(&payment.fill.draft).await
    }

    async fn pay(
        &self,
        view: &View,
        deposit: B256,
        payment: Payment,
        most: Most,
    ) -> Result<Paid, SolverError> {
        let account = self.account(&view.request.order.output.chain_id)?;
        let leaves = payment.leaves_fees();
        let plan = Plan {
            owner: Owner::Request(view.request.id),
            intent: Intent {
                draft: payment.fill.draft,
                work: most.work,
                besides: Some(most.besides),
                spends: payment.spends,
            },
            keeps: view.request.api_key.is_none(),
        };
        if !self.stake(view, account, &plan).await? {
            return Ok(Paid::Held);
        }
        let now = view.now / 1_000;
        let mut taken = match account.take(&plan, now).await {
            Err(SolverError::Short { .. }) => return Ok(Paid::Short),
            Err(error @ SolverError::Dearer(..)) => {
                let order = view.request.order_id;
                tracing::warn!(%order, %error, "a fill is dearer than it was judged");
                return Ok(Paid::Dear);
            }
            taken => taken?,
        };
        if leaves && !leaves_fees(account, &taken.attempt).await? {
            return Ok(Paid::Short);
        }
        taken.batch = self.counted(taken.batch, &view.request.id, now)?;
        let leg = Leg {
            purpose: Purpose::Fill,
            deposit,
            reason: None,
            network: account.chain.name.clone(),
            lane: account.name.clone(),
            attempt: taken.id.clone(),
            currency: payment.currency,
            amount: payment.amount,
            payments: payment.amounts,
            transaction: None,
            stage: Stage::Open,
            wasted: Amount::ZERO,
            begun: now,
        };
        let next = claim::fill(&view.claim, leg)?;
        self.begin(view, account, taken, next).await
    }

    /// Whether the account has what the fill takes, its fee included. Otherwise its simulation would fail, or say
    /// nothing.
    async fn covered(
        &self,
        account: &SolverAccount,
        request: &Request,
        payment: &Payment,
    ) -> Result<bool, SolverError> {
        let rate = account.rate().await?;
        let rate = account.chain.providers.rate_as_signed(rate);
        let fee = rate.of(most_work(account, request));
        let value = payment.fill.draft.value;
        let mut needed = value.saturating_add(fee);
        if payment.leaves_fees() {
            needed = needed.saturating_add(rate.of(kept(account)));
        }
        let native = (account.chain.native.clone(), needed);
        for (currency, amount) in payment.spends.iter().chain([&native]) {
            if account.available(currency).await? < *amount {
                let (network, currency) = (account.chain.name.as_str(), currency.text());
                tracing::warn!(network, currency, %amount, "too little to fill an order");
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The work that the order's fill may take: what was charged for, an eighth of that, and what any may take beyond.
fn most_work(account: &SolverAccount, request: &Request) -> u64 {
    let charged = request.fill_work;
    let room = (account.chain.providers.usual)(Work::Room);
    charged.saturating_add(charged / 8).saturating_add(room)
}

/// Payments and calls of the order in one transaction.
fn payment(
    request: &Request,
    account: &SolverAccount,
    amounts: Vec<Amount>,
) -> Result<Payment, CodecError> {
    let (chain, output) = (&account.chain, &request.order.output);
    let family = chain.family();
    let payments = payments(request, account, &amounts)?;
    let codec = || family.orders.ok_or_else(|| CodecError("no orders".into()));
    let calls = output
        .calls
        .iter()
        .map(|call| codec()?.decode_call(&text::bytes(call)?))
        .collect::<Result<Vec<OrderCall>, _>>()?;
    let extra = text::bytes(&output.extra_data)?;
    let router = (!extra.is_empty())
        .then(|| codec()?.decode_extra_data(&extra))
        .transpose()?;
    // An order from before a change of routers names the former one, whose proxy is not this one.
    let same = router == chain.router()?;
    let proxy = chain.proxy()?.filter(|_| same);
    let authorizations = request.authorizations.iter();
    let authorizations = authorizations
        .map(|value| Authorization::read(value, family))
        .collect::<Result<Vec<_>, _>>()?;
    let fill = chain.steps.fill(&FillTerms {
        solver: &account.owner,
        router: router.as_ref(),
        proxy: proxy.as_ref(),
        payments: &payments,
        calls: &calls,
        authorizations: &authorizations,
        order: request.order_id,
    })?;
    let mut sums: HashMap<Address, Amount> = HashMap::new();
    for payout in &payments {
        let sum = sums.entry(payout.currency.clone()).or_default();
        *sum = sum.saturating_add(payout.amount);
    }
    sums.remove(&chain.native);
    let first = payments.first();
    Ok(Payment {
        router: router.filter(|_| fill.routed),
        fill,
        spends: sums.into_iter().collect(),
        currency: first.map_or_else(String::new, |payout| payout.currency.text().to_owned()),
        amount: first.map_or(Amount::ZERO, |payout| payout.amount),
        payouts: payments,
        calls,
        amounts,
    })
}

/// Each payment of the order, with what it is paid.
pub(super) fn payments(
    request: &Request,
    account: &SolverAccount,
    amounts: &[Amount],
) -> Result<Vec<Payout>, CodecError> {
    let family = account.chain.family();
    let payments = &request.order.output.payments;
    if payments.len() != amounts.len() {
        return Err(CodecError("an amount for each payment".into()));
    }
    payments
        .iter()
        .zip(amounts)
        .map(|(payment, amount)| {
            Ok(Payout {
                to: family.address(&payment.recipient)?,
                currency: family.address(&payment.currency)?,
                amount: *amount,
            })
        })
        .collect()
}

/// What the order's payments were quoted.
pub(super) fn quoted(request: &Request) -> Result<Vec<Amount>, CodecError> {
    let payments = request.order.output.payments.iter();
    payments.map(OutputPayment::promised).collect()
}
