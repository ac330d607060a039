//! Paying what an order wants on its destination.

use std::collections::HashMap;

use alloy::primitives::B256;
use serde_json::Value;
use vm::{
    Address, Amount, CodecError, OrderCall, U256,
    protocol::text,
    trade::{Authorization, Call, FillTerms, Intent, Payout},
};

use super::{
    Paid, Solver, SolverError, View,
    account::{Plan, SolverAccount},
    claim,
    claimable::{self, Deposited},
    offer::KEPT_GAS,
};
use crate::{
    attest::Refusal,
    request::{Request, fact::Purpose, reason::FailReason},
    store::rows::{
        attempt::Owner,
        claim::{Leg, Stage},
    },
};

/// What a fill may take beyond the gas that was charged for: an eighth, and this, which is less than what
/// one slot of a token's storage costs when it is new.
pub(super) const GAS_ROOM: u64 = 10_000;

/// A fill as it goes on chain.
struct Payment {
    call: Call,
    /// Sums per currency other than the native one.
    spends: Vec<(Address, Amount)>,
    /// Who takes those, where it is not the solver itself.
    spender: Option<Address>,
    authorizations: Vec<Authorization>,
    payouts: Vec<Payout>,
    /// The router, where it goes through that.
    router: Option<Address>,
    calls: Vec<OrderCall>,
    /// What is told of it: the first payment.
    currency: String,
    amount: Amount,
    amounts: Vec<Amount>,
}

impl Solver {
    /// Begins the fill that `deposit` pays for, with `amounts` for the order's payments.
    pub(super) async fn fill(
        &self,
        view: &View,
        deposit: B256,
        amounts: Vec<Amount>,
    ) -> Result<Paid, SolverError> {
        let request = &view.request;
        if !self.is_ours(request) {
            return Err(SolverError::Elsewhere(request.order.solver.clone()));
        }
        let lane = self.lane(&request.order.output.chain_id)?;
        if let Some(paid) = unsound(lane, request) {
            return Ok(paid);
        }
        let payment = match payment(request, lane, amounts) {
            Ok(payment) => payment,
            Err(error) => {
                let order = request.order_id;
                tracing::error!(%order, %error, "order cannot be filled");
                return Ok(Paid::Fails(FailReason::Unknown));
            }
        };
        if let Err(refusal) = self.attested(view, lane, (&deposit, &payment)) {
            let order = request.order_id;
            tracing::error!(%order, %refusal, "no oracle would attest the fill");
            return Ok(Paid::Fails(FailReason::Unknown));
        }
        if let Err(unfit) = lane.admit(&payment.call, &payment.authorizations).await? {
            let order = request.order_id;
            tracing::warn!(%order, %unfit, "no node would take the fill");
            return Ok(Paid::Fails(FailReason::TransactionSubmissionFailed));
        }
        if !self.covered(lane, request, &payment).await? {
            return Ok(Paid::Short);
        }
        if let Some(spender) = &payment.spender
            && !self
                .allowed(lane, spender, &payment.spends, view.now)
                .await?
        {
            return Ok(Paid::Later);
        }
        let repriced = view.deposit(&deposit);
        let repriced = repriced.is_some_and(|deposit| self.is_repriced(view, deposit));
        // What is priced anew is priced with what it costs now.
        if !repriced
            && self
                .is_dear(view, lane, (&payment.call, &payment.authorizations))
                .await?
        {
            return Ok(Paid::Dear);
        }
        match self.units(lane, request, &payment).await? {
            Ok(gas) => self.pay(view, lane, (payment, gas), deposit).await,
            Err(paid) => Ok(paid),
        }
    }

    /// Whether the oracle's own judges would attest the fill.
    fn attested(
        &self,
        view: &View,
        lane: &SolverAccount,
        (deposit, payment): (&B256, &Payment),
    ) -> Result<(), Refusal> {
        let families = |network: &str| Some(self.lanes.get(network)?.site.family());
        let deposited = Deposited {
            request: &view.request,
            deposit: view.deposit(deposit).ok_or(Refusal::NoDeposit)?,
            families: &families,
            routers: &lane.site.chain.spec.fill_routers,
        };
        let attested = deposited.filled(&claimable::Payment {
            from: &lane.owner,
            by: (view.now / 1_000).saturating_add(self.patience.margin),
            router: payment.router.as_ref(),
            payouts: &payment.payouts,
            calls: &payment.calls,
        });
        self.check_signed(&view.request, attested?)
    }

    /// Gas units that the fill may take; or what is to be done instead. What the user did not pay for ends
    /// the fill, at the latest in its block. What a stranger can do to an exchange for one block is waited
    /// out, unless the user's own calls may be the reason.
    async fn units(
        &self,
        lane: &SolverAccount,
        request: &Request,
        payment: &Payment,
    ) -> Result<Result<u64, Paid>, SolverError> {
        let exchange = request.calls.is_empty() && !payment.calls.is_empty();
        let reverts = || match exchange {
            true => Paid::Reverts,
            false => Paid::Fails(FailReason::ExecutionReverted),
        };
        let estimate = lane.bare_estimate(&payment.call, &payment.authorizations);
        let gas = match estimate.await? {
            Ok(gas) => gas,
            Err(revert) => {
                let order = request.order_id;
                tracing::warn!(%order, reason = revert.reason, "fill would revert");
                return Ok(Err(reverts()));
            }
        };
        let most = most_gas(request);
        if gas > most {
            return Ok(Err(match exchange {
                true => Paid::Dear,
                false => Paid::Fails(FailReason::QuotedGasLimitExceeded),
            }));
        }
        let gas = gas.saturating_add(gas / 4).min(most);
        let sent = lane.rehearse(&payment.call, &payment.authorizations, gas);
        Ok(match sent.await? {
            Ok(()) => Ok(gas),
            Err(revert) => {
                let order = request.order_id;
                tracing::warn!(%order, reason = revert.reason, "fill would revert with its gas");
                Err(reverts())
            }
        })
    }

    /// What the chain charges for the bytes of the order's fill besides gas, in wei.
    pub(super) async fn data_fee(
        &self,
        request: &Request,
        amounts: &[Amount],
    ) -> Result<Amount, SolverError> {
        let lane = self.lane(&request.order.output.chain_id)?;
        let payment = payment(request, lane, amounts.to_vec())?;
        lane.data_fee(&payment.call, &payment.authorizations).await
    }

    async fn pay(
        &self,
        view: &View,
        lane: &SolverAccount,
        (payment, gas): (Payment, u64),
        deposit: B256,
    ) -> Result<Paid, SolverError> {
        let plan = Plan {
            owner: Owner::Request(view.request.id),
            intent: Intent {
                call: payment.call,
                authorizations: payment.authorizations,
                limit: gas,
                spends: payment.spends,
            },
        };
        if !self.stake(view, lane, &plan).await? {
            return Ok(Paid::Held);
        }
        let now = view.now / 1_000;
        let mut taken = match lane.take(&plan, now).await {
            Err(SolverError::Short { .. }) => return Ok(Paid::Short),
            taken => taken?,
        };
        taken.batch = self.counted(taken.batch, &view.request.id, now)?;
        let leg = Leg {
            purpose: Purpose::Fill,
            deposit,
            reason: None,
            network: lane.site.name.clone(),
            lane: lane.name.clone(),
            attempt: taken.id.clone(),
            currency: payment.currency,
            amount: payment.amount,
            payments: payment.amounts,
            transaction: None,
            stage: Stage::Open,
            wasted: Amount::ZERO,
        };
        let next = claim::fill(&view.claim, leg)?;
        self.begin(view, lane, taken, next).await
    }

    /// Whether what it pays is there, gas included: an estimate without it would look like a revert, or
    /// say nothing.
    async fn covered(
        &self,
        lane: &SolverAccount,
        request: &Request,
        payment: &Payment,
    ) -> Result<bool, SolverError> {
        let fees = lane.fees().await?;
        let gas = fees.of(most_gas(request));
        let mut needed = payment.call.value.saturating_add(gas);
        // Refunds and plain payments of tokens have half of what quotes keep back: several of those may have
        // been given at once.
        if !payment.call.value.is_zero() || payment.router.is_some() {
            needed = needed.saturating_add(fees.of(KEPT_GAS));
        }
        let native = (lane.site.native.clone(), needed);
        for (currency, amount) in payment.spends.iter().chain([&native]) {
            if lane.available(currency).await? < *amount {
                let (network, currency) = (lane.site.name.as_str(), currency.text());
                tracing::warn!(network, currency, %amount, "too little to fill an order");
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What an order waits for where nothing is traded: soon after a start nobody may know yet.
fn unsound(lane: &SolverAccount, request: &Request) -> Option<Paid> {
    let error = lane.site.sound().err()?;
    tracing::warn!(order = %request.order_id, %error, "order waits");
    Some(match lane.site.is_unsure() {
        true => Paid::Away,
        false => Paid::Short,
    })
}

/// Gas units that the order's fill may take.
fn most_gas(request: &Request) -> u64 {
    let charged = request.fill_gas;
    charged.saturating_add(charged / 8).saturating_add(GAS_ROOM)
}

/// Payments and calls of the order in one transaction.
fn payment(
    request: &Request,
    lane: &SolverAccount,
    amounts: Vec<Amount>,
) -> Result<Payment, CodecError> {
    let (site, output) = (&lane.site, &request.order.output);
    let family = site.family();
    let payments = payments(request, lane, &amounts)?;
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
    // What it does an order of before a rotation would not be attested for.
    let same = router == site.router()?;
    let proxy = site.proxy()?.filter(|_| same);
    let call = site.steps.fill(&FillTerms {
        solver: &lane.owner,
        router: router.as_ref(),
        proxy: proxy.as_ref(),
        payments: &payments,
        calls: &calls,
        order: request.order_id,
    })?;
    let mut sums: HashMap<Address, Amount> = HashMap::new();
    for payout in &payments {
        let sum = sums.entry(payout.currency.clone()).or_default();
        *sum = sum.saturating_add(payout.amount);
    }
    sums.remove(&site.native);
    let first = payments.first();
    let spender = proxy.filter(|proxy| *proxy == call.to);
    let routed = spender.is_some() || router.as_ref() == Some(&call.to);
    Ok(Payment {
        spender,
        router: router.filter(|_| routed),
        call,
        spends: sums.into_iter().collect(),
        authorizations: request
            .authorizations
            .iter()
            .map(|value| authorization(value, lane))
            .collect::<Result<_, _>>()?,
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
    lane: &SolverAccount,
    amounts: &[Amount],
) -> Result<Vec<Payout>, CodecError> {
    let family = lane.site.family();
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
    payments
        .map(|payment| {
            let expected = text::number(&payment.expected_amount)?;
            Ok(expected.max(text::number(&payment.minimum_amount)?))
        })
        .collect()
}

/// An entry of `authorizationList`: numbers as JSON numbers or as decimal or hex texts.
fn authorization(value: &Value, lane: &SolverAccount) -> Result<Authorization, CodecError> {
    let wrong = |field: &str| CodecError(format!("authorizationList: {field} is no number"));
    let number = |field: &str| -> Result<U256, CodecError> {
        match value.get(field) {
            Some(Value::Number(number)) => {
                number.as_u64().map(U256::from).ok_or_else(|| wrong(field))
            }
            Some(Value::String(number)) => text::number(number),
            _ => Err(wrong(field)),
        }
    };
    let small = |field: &str| u64::try_from(number(field)?).map_err(|_| wrong(field));
    let address = value.get("address").and_then(Value::as_str);
    Ok(Authorization {
        chain_id: small("chainId")?,
        address: lane.site.family().address(address.unwrap_or_default())?,
        nonce: small("nonce")?,
        y_parity: u8::try_from(small("yParity")?).map_err(|_| wrong("yParity"))?,
        r: number("r")?.into(),
        s: number("s")?.into(),
    })
}
