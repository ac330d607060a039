//! What the user signs.

use alloy::primitives::B256;
use vm::trade::{
    self, DepositTerms, PaymentTerms, Spend, StepBuilder, StepFee, StepKind, SwapDraft, SwapOrder,
    Work,
};

use super::{
    amounts::Amounts,
    answer::{Check, Item, Step},
    code::Refused,
    context::Context,
    fill::SWAP_LIFE,
    intent::Intent,
    market_data::{Case, approved},
    pricing_chain::{PricingChain, lacking},
};
use crate::request::Operation;

/// One transaction with the work that it takes.
pub struct Planned {
    pub step: trade::Step,
    pub work: u64,
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
    let chain = context.chain(&intent.origin)?;
    let mut steps = Vec::new();
    if plan.amounts.swap_in.is_some() {
        steps.extend(swap(context, plan).await?);
    }
    if intent.own && intent.operation == Operation::Send {
        let draft = chain.steps()?.send(&PaymentTerms {
            from: &intent.user,
            to: &intent.recipient,
            currency: &intent.origin.address,
            amount: plan.amounts.sum.paid,
            order: plan.order_id,
        })?;
        steps.push(trade::Step {
            kind: StepKind::Send,
            draft,
        });
    }
    if !intent.own {
        steps.extend(deposit(chain.steps()?, plan)?);
    }
    let first = match steps.first() {
        // What the user cannot pay yet cannot be estimated either.
        Some(step) if market.balance >= plan.amounts.input_limit => {
            chain.providers.fees.hint(&step.draft).await
        }
        _ => None,
    };
    let planned = steps.into_iter().enumerate().map(|(at, step)| Planned {
        work: first
            .filter(|_| at == 0)
            .unwrap_or_else(|| usual(chain, plan.amounts, step.kind)),
        step,
    });
    Ok(planned.collect())
}

/// The work of a step where nothing can be estimated yet.
fn usual(chain: &PricingChain, amounts: &Amounts, step: StepKind) -> u64 {
    let usual = chain.providers.usual;
    match step {
        StepKind::Approve => usual(Work::Approve),
        StepKind::Deposit => usual(Work::Deposit),
        StepKind::Send => usual(Work::Send),
        StepKind::Swap => {
            let exchange = amounts.swap_in.as_ref().map_or(0, |(offer, _)| offer.work);
            usual(Work::Swap).saturating_add(exchange)
        }
    }
}

fn deposit(steps: &dyn StepBuilder, plan: &Plan<'_, '_>) -> Result<Vec<trade::Step>, Refused> {
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
        approved: market.approved,
        reset: paid.currency.approval_reset,
    };
    Ok(steps.deposit(&terms)?)
}

/// The user's exchange. It names the order where it is all that the user does; before a deposit it pays the user.
async fn swap(context: &Context, plan: &Plan<'_, '_>) -> Result<Vec<trade::Step>, Refused> {
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
    let SwapDraft { spender, mut draft } = context.deps.swaps.transaction(offer, &order)?;
    if intent.own {
        let builder = context.chain(origin)?.steps()?;
        draft = builder.name(draft, plan.order_id)?;
    }
    let mut steps = Vec::new();
    if let Some(spender) = &spender {
        let approved = approved(context, origin, &intent.user, spender).await?;
        if approved < plan.amounts.input_limit {
            let spend = Spend {
                spender,
                currency: &origin.address,
                amount: plan.amounts.input_limit,
            };
            let reset = origin.currency.approval_reset && !approved.is_zero();
            let approvals = origin.spec.family.approvals;
            let approvals = approvals.ok_or_else(|| lacking(&origin.spec, "approvals"))?;
            steps.extend(approvals.approve(&intent.user, &spend, reset)?);
        }
    }
    steps.push(trade::Step {
        kind: StepKind::Swap,
        draft,
    });
    Ok(steps)
}

/// The work that the user pays for: of all transactions, and what the wallet adds.
pub fn work(planned: &[Planned], intent: &Intent<'_>) -> u64 {
    let work = planned.iter().map(|one| one.work);
    work.fold(intent.origin_gas_overhead, u64::saturating_add)
}

/// The steps of an answer.
pub fn shown(
    planned: &[Planned],
    plan: &Plan<'_, '_>,
    request: B256,
) -> Result<Vec<Step>, Refused> {
    // A wallet that batches tells nobody of its transaction, and no chain shows whose swap it was:
    // clients would poll for ever, so they believe the receipt.
    let checked = !plan.case.intent.own || planned.len() == 1;
    let show = |one: &Planned| {
        let mut step = step(one, plan, request)?;
        if !checked {
            step.items.iter_mut().for_each(|item| item.check = None);
        }
        Ok(step)
    };
    planned.iter().map(show).collect()
}

fn step(planned: &Planned, plan: &Plan<'_, '_>, request: B256) -> Result<Step, Refused> {
    let (intent, origin) = (&plan.case.intent, &plan.case.intent.origin);
    let trade::Step { kind, draft } = &planned.step;
    let (id, description) = texts(*kind, plan);
    // Clients poll a check before they go on: only the last transaction has one.
    let last = *kind != StepKind::Approve && (*kind != StepKind::Swap || intent.own);
    let check = last.then(|| Check {
        endpoint: format!("/intents/status/v3?requestId={request}"),
        method: "GET",
    });
    let steps = origin.spec.family.steps;
    let steps = steps.ok_or_else(|| lacking(&origin.spec, "transactions to sign"))?;
    let fee = StepFee {
        number: origin.network.chain_id,
        work: planned.work,
        rate: plan.case.market.origin_rate,
    };
    let data = steps.render(draft, fee)?;
    Ok(Step {
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
    })
}

/// What the step is called, and what it is for.
fn texts(step: StepKind, plan: &Plan<'_, '_>) -> (&'static str, String) {
    let Case { intent, route, .. } = plan.case;
    let input = &intent.origin.currency.symbol;
    let output = &intent.destination.currency.symbol;
    let paid = &route.paid.currency.symbol;
    let (spent, bought) = match intent.own {
        true => (input, output),
        false => (paid, paid),
    };
    match step {
        StepKind::Approve => ("approve", format!("Sign an approval for {spent}")),
        StepKind::Deposit => ("deposit", format!("Deposit {paid} to receive {output}")),
        StepKind::Swap => ("swap", format!("Swap {input} for {bought}")),
        StepKind::Send => ("send", format!("Send {input} to the recipient")),
    }
}
