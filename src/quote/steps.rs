//! What the user signs.

use alloy::primitives::{B256, U256};
use vm::trade::{DepositTerms, Intended, PaymentTerms, Spend, Step as Kind, StepCall, Trade};

use super::{
    answer::{Check, Item, Step, Transaction},
    code::Refused,
    figures::Figures,
    intent::{Intent, Side},
    order::SWAP_LIFE,
    reads::Reads,
    route::Route,
    service::Quoter,
    swap::{SwapCall, SwapOrder},
};
use crate::request::Operation;

/// Gas units where nothing can be estimated yet.
const APPROVE: u64 = 55_000;
const DEPOSIT: u64 = 95_000;
const SEND: u64 = 65_000;
const SWAP: u64 = 60_000;

/// One transaction with its gas.
pub struct Planned {
    pub step: StepCall,
    pub gas: u64,
}

/// What the steps follow from.
pub struct Plan<'a, 'm> {
    pub intent: &'a Intent<'m>,
    pub route: &'a Route<'m>,
    pub reads: &'a Reads,
    pub figures: &'a Figures,
    pub order_id: B256,
    /// Unix seconds.
    pub now: u64,
}

impl Quoter {
    /// The user's transactions, first to last.
    pub(super) async fn plan(&self, plan: &Plan<'_, '_>) -> Result<Vec<Planned>, Refused> {
        let intent = plan.intent;
        let mut steps = Vec::new();
        if plan.figures.swap_in.is_some() {
            steps.extend(self.swap(plan).await?);
        }
        if intent.own && intent.operation == Operation::Send {
            let builder = self.venue(&intent.origin)?.steps()?;
            steps.push(builder.send(&PaymentTerms {
                from: &intent.user,
                to: &intent.recipient,
                currency: &intent.origin.address,
                amount: plan.figures.sum.paid,
                order: plan.order_id,
            })?);
        }
        if !intent.own {
            steps.extend(self.deposit(plan)?);
        }
        let first = match steps.first() {
            // What the user cannot pay yet cannot be estimated either.
            Some(step) if plan.reads.balance >= plan.figures.input_limit => {
                self.estimate(&intent.origin, step).await
            }
            _ => None,
        };
        let swap = plan
            .figures
            .swap_in
            .as_ref()
            .map_or(0, |(offer, _)| offer.gas);
        let gas = |step: &StepCall| match step.step {
            Kind::Approve => APPROVE,
            Kind::Deposit => DEPOSIT,
            Kind::Send => SEND,
            Kind::Swap => SWAP.saturating_add(swap),
        };
        let planned = steps.into_iter().enumerate().map(|(at, step)| Planned {
            gas: first.filter(|_| at == 0).unwrap_or_else(|| gas(&step)),
            step,
        });
        Ok(planned.collect())
    }

    fn deposit(&self, plan: &Plan<'_, '_>) -> Result<Vec<StepCall>, Refused> {
        let paid = &plan.route.paid;
        let Some(depository) = &paid.spec.depository else {
            return Ok(Vec::new());
        };
        let terms = DepositTerms {
            user: &plan.intent.user,
            depository,
            currency: &paid.address,
            amount: plan.figures.sum.paid,
            order: plan.order_id,
            explicit: plan.reads.explicit,
            allowance: plan.reads.allowance,
            reset: paid.currency.approval_reset,
        };
        Ok(self.venue(paid)?.steps()?.deposit(&terms)?)
    }

    /// The user's exchange. What it is for alone names the order; before a deposit it pays the user.
    async fn swap(&self, plan: &Plan<'_, '_>) -> Result<Vec<StepCall>, Refused> {
        let (intent, origin) = (plan.intent, &plan.intent.origin);
        let Some((offer, limit)) = &plan.figures.swap_in else {
            return Ok(Vec::new());
        };
        let order = SwapOrder {
            payer: intent.user.clone(),
            recipient: if intent.own {
                intent.recipient.clone()
            } else {
                intent.user.clone()
            },
            limit: *limit,
            deadline: plan
                .now
                .saturating_add(intent.ttl.unwrap_or(SWAP_LIFE).min(SWAP_LIFE)),
        };
        let SwapCall { spender, mut call } = self.parts.offers.build(offer, &order)?;
        if intent.own {
            let mut data = call.data.to_vec();
            data.extend(plan.order_id);
            call.data = data.into();
        }
        let mut steps = Vec::new();
        if let Some(spender) = &spender {
            let allowed = self.allowed(&intent.user, spender, origin).await?;
            if allowed < plan.figures.input_limit {
                let spend = Spend {
                    spender,
                    currency: &origin.address,
                    amount: plan.figures.input_limit,
                };
                let reset = origin.currency.approval_reset && !allowed.is_zero();
                let builder = self.venue(origin)?.steps()?;
                steps.extend(builder.approve(&intent.user, &spend, reset)?);
            }
        }
        steps.push(StepCall {
            step: Kind::Swap,
            call,
        });
        Ok(steps)
    }

    async fn estimate(&self, side: &Side<'_>, step: &StepCall) -> Option<u64> {
        let intended = &Intended::free(&step.call);
        let ask = |trade: Trade| async move { trade.writer.estimate(intended).await };
        self.venue(side).ok()?.ask(ask).await.ok()?.ok()
    }
}

/// Gas units that the user pays: all transactions, and what the wallet adds.
pub fn gas(planned: &[Planned], intent: &Intent<'_>) -> U256 {
    let units = planned.iter().map(|one| U256::from(one.gas));
    let overhead = U256::from(intent.origin_gas_overhead);
    units.fold(overhead, |sum, gas| sum.saturating_add(gas))
}

/// The steps of an answer.
pub fn shown(planned: &[Planned], plan: &Plan<'_, '_>, request: B256) -> Vec<Step> {
    // A wallet that batches tells nobody of its transaction, and no chain shows whose swap it was:
    // clients would poll for ever, so they believe the receipt.
    let told = !plan.intent.own || planned.len() == 1;
    let show = |one: &Planned| step(one, plan, (request, told));
    planned.iter().map(show).collect()
}

fn step(planned: &Planned, plan: &Plan<'_, '_>, (request, told): (B256, bool)) -> Step {
    let (intent, fees) = (plan.intent, plan.reads.origin_fees);
    let StepCall { step, call } = &planned.step;
    let (id, action, description) = texts(*step, plan);
    // Clients poll a check before they go on: only the last transaction has one.
    let last = *step != Kind::Approve && (*step != Kind::Swap || intent.own);
    let check = (told && last).then(|| Check {
        endpoint: format!("/intents/status/v3?requestId={request}"),
        method: "GET",
    });
    let data = Transaction {
        from: call.from.to_string(),
        to: call.to.to_string(),
        data: call.data.to_string(),
        value: call.value.to_string(),
        chain_id: intent.origin.network.chain_id,
        gas: planned.gas.to_string(),
        max_fee_per_gas: fees.most().to_string(),
        max_priority_fee_per_gas: fees.tip().to_string(),
    };
    Step {
        id,
        action: action.to_owned(),
        description,
        kind: "transaction",
        request_id: request.to_string(),
        deposit_address: String::new(),
        items: vec![Item {
            status: "incomplete",
            data,
            check,
        }],
    }
}

fn texts(step: Kind, plan: &Plan<'_, '_>) -> (&'static str, &'static str, String) {
    let (intent, route) = (plan.intent, plan.route);
    let input = &intent.origin.currency.symbol;
    let output = &intent.destination.currency.symbol;
    let paid = &route.paid.currency.symbol;
    match step {
        Kind::Approve => (
            "approve",
            "Confirm transaction in your wallet",
            format!(
                "Sign an approval for {}",
                if intent.own { input } else { paid }
            ),
        ),
        Kind::Deposit => (
            "deposit",
            "Confirm transaction in your wallet",
            format!("Deposit {paid} to receive {output}"),
        ),
        Kind::Swap => (
            "swap",
            "Confirm transaction in your wallet",
            format!(
                "Swap {input} for {}",
                if intent.own { output } else { paid }
            ),
        ),
        Kind::Send => (
            "send",
            "Confirm transaction in your wallet",
            format!("Send {input} to the recipient"),
        ),
    }
}
