//! What the user signs.

use alloy::primitives::{B256, U256};
use vm::trade::{
    DepositTerms, Intended, PaymentTerms, Spend, Step as Kind, StepCall, SwapCall, SwapOrder,
    TradingProvider,
};

use super::{
    amounts::Amounts,
    answer::{Check, Item, Step, Transaction},
    code::Refused,
    context::Context,
    fill::SWAP_LIFE,
    intent::{Intent, Side},
    market_data::{Case, allowance},
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
    pub case: &'a Case<'m>,
    pub amounts: &'a Amounts,
    pub order_id: B256,
}

/// The user's transactions, first to last.
pub async fn plan(context: &Context, plan: &Plan<'_, '_>) -> Result<Vec<Planned>, Refused> {
    let Case { intent, market, .. } = plan.case;
    let mut steps = Vec::new();
    if plan.amounts.swap_in.is_some() {
        steps.extend(swap(context, plan).await?);
    }
    if intent.own && intent.operation == Operation::Send {
        let builder = context.venue(&intent.origin)?.steps()?;
        steps.push(builder.send(&PaymentTerms {
            from: &intent.user,
            to: &intent.recipient,
            currency: &intent.origin.address,
            amount: plan.amounts.sum.paid,
            order: plan.order_id,
        })?);
    }
    if !intent.own {
        steps.extend(deposit(context, plan)?);
    }
    let first = match steps.first() {
        // What the user cannot pay yet cannot be estimated either.
        Some(step) if market.balance >= plan.amounts.input_limit => {
            estimate(context, &intent.origin, step).await
        }
        _ => None,
    };
    let swap = plan.amounts.swap_in.as_ref();
    let swap = swap.map_or(0, |(offer, _)| offer.gas);
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

fn deposit(context: &Context, plan: &Plan<'_, '_>) -> Result<Vec<StepCall>, Refused> {
    let Case {
        intent,
        route,
        market,
        ..
    } = plan.case;
    let paid = &route.paid;
    let Some(depository) = &paid.spec.depository else {
        return Ok(Vec::new());
    };
    let terms = DepositTerms {
        user: &intent.user,
        depository,
        currency: &paid.address,
        amount: plan.amounts.sum.paid,
        order: plan.order_id,
        explicit: market.explicit,
        allowance: market.allowance,
        reset: paid.currency.approval_reset,
    };
    Ok(context.venue(paid)?.steps()?.deposit(&terms)?)
}

/// The user's exchange. What it is for alone names the order; before a deposit it pays the user.
async fn swap(context: &Context, plan: &Plan<'_, '_>) -> Result<Vec<StepCall>, Refused> {
    let (intent, origin) = (&plan.case.intent, &plan.case.intent.origin);
    let Some((offer, limit)) = &plan.amounts.swap_in else {
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
            .case
            .seconds()
            .saturating_add(intent.ttl.unwrap_or(SWAP_LIFE).min(SWAP_LIFE)),
    };
    let SwapCall { spender, mut call } = context.deps.swaps.transaction(offer, &order)?;
    if intent.own {
        let mut data = call.data.to_vec();
        data.extend(plan.order_id);
        call.data = data.into();
    }
    let mut steps = Vec::new();
    if let Some(spender) = &spender {
        let allowed = allowance(context, origin, &intent.user, spender).await?;
        if allowed < plan.amounts.input_limit {
            let spend = Spend {
                spender,
                currency: &origin.address,
                amount: plan.amounts.input_limit,
            };
            let reset = origin.currency.approval_reset && !allowed.is_zero();
            let builder = context.venue(origin)?.steps()?;
            steps.extend(builder.approve(&intent.user, &spend, reset)?);
        }
    }
    steps.push(StepCall {
        step: Kind::Swap,
        call,
    });
    Ok(steps)
}

async fn estimate(context: &Context, side: &Side<'_>, step: &StepCall) -> Option<u64> {
    let intended = &Intended::free(&step.call);
    let ask = |trade: TradingProvider| async move { trade.writer.estimate(intended).await };
    context.venue(side).ok()?.ask(ask).await.ok()?.ok()
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
    let told = !plan.case.intent.own || planned.len() == 1;
    let show = |one: &Planned| {
        let mut step = step(one, plan, request);
        if !told {
            step.items.iter_mut().for_each(|item| item.check = None);
        }
        step
    };
    planned.iter().map(show).collect()
}

fn step(planned: &Planned, plan: &Plan<'_, '_>, request: B256) -> Step {
    let (intent, fees) = (&plan.case.intent, plan.case.market.origin_fees);
    let StepCall { step, call } = &planned.step;
    let (id, description) = texts(*step, plan);
    // Clients poll a check before they go on: only the last transaction has one.
    let last = *step != Kind::Approve && (*step != Kind::Swap || intent.own);
    let check = last.then(|| Check {
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
        action: "Confirm transaction in your wallet".to_owned(),
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

/// What the step is called, and what it is for.
fn texts(step: Kind, plan: &Plan<'_, '_>) -> (&'static str, String) {
    let Case { intent, route, .. } = plan.case;
    let input = &intent.origin.currency.symbol;
    let output = &intent.destination.currency.symbol;
    let paid = &route.paid.currency.symbol;
    let (spent, bought) = match intent.own {
        true => (input, output),
        false => (paid, paid),
    };
    match step {
        Kind::Approve => ("approve", format!("Sign an approval for {spent}")),
        Kind::Deposit => ("deposit", format!("Deposit {paid} to receive {output}")),
        Kind::Swap => ("swap", format!("Swap {input} for {bought}")),
        Kind::Send => ("send", format!("Send {input} to the recipient")),
    }
}
