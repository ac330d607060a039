//! What the user signs.

use alloy::primitives::{B256, Bytes, U256};
use vm::{
    Address,
    trade::{
        self, DepositTerms, Need, PaymentTerms, Spend, StepFee, StepKind, SwapDraft, SwapOrder,
        Trial, Unfit, Work,
    },
};

use super::{
    amounts::Amounts,
    answer::{Check, Item, Step},
    breakdown::OwnCost,
    code::{Code, Refused},
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
    /// What the user is told to let it take, where it was estimated: the usual at least, unless what is signed is paid.
    limit: Option<u64>,
    /// Of the native currency, what the chain charges besides, as far as it says so.
    besides: U256,
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
    let mut steps = swap(context, plan).await?;
    if intent.own && intent.operation == Operation::Send {
        // No chain of that kind tells whose payment a transaction is.
        if chain.providers.funding.is_some() {
            return Err(lacking(&intent.origin.spec, "payments to follow"));
        }
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
        steps = deposit(chain, plan, steps).await?;
    }
    let joined = plan.amounts.swap_in.is_some() && !steps.iter().any(is_swap);
    for step in &steps {
        let deposits = step.kind == StepKind::Deposit;
        if is_swap(step) || deposits {
            fits(chain, step, joined || !deposits).await?;
        }
    }
    let first = match steps.first() {
        // What the user cannot pay yet cannot be estimated either.
        Some(step) if market.balance >= plan.amounts.input_limit => {
            chain.providers.fees.work(&step.draft).await
        }
        _ => None,
    };
    let mut planned = Vec::with_capacity(steps.len());
    for (at, step) in steps.into_iter().enumerate() {
        let estimate = first.filter(|_| at == 0);
        let usual = usual_work(chain, plan.amounts, (step.kind, joined));
        planned.push(Planned {
            work: estimate.unwrap_or(usual),
            limit: estimate.map(|work| match chain.providers.pays_as_signed {
                // It is paid for; but providers that agree may be twice apart.
                true => roomy(work).max(usual.min(roomy(work).saturating_mul(2))),
                // What is not taken is not paid for, and one provider may say too little.
                false => roomy(work).max(usual),
            }),
            besides: besides(chain, &step).await,
            step,
        });
    }
    Ok(planned)
}

/// With room for what changes until the user has signed: what runs out of work fails, and is paid for.
fn roomy(work: u64) -> u64 {
    work.saturating_add(work.div_ceil(4))
}

fn is_swap(step: &trade::Step) -> bool {
    step.kind == StepKind::Swap
}

/// Refused where the chain takes no deposit in its currency, and where no node would take the transaction that an
/// exchange makes long.
async fn fits(chain: &PricingChain, step: &trade::Step, exchanges: bool) -> Result<(), Refused> {
    match chain.providers.wallet.admit(&step.draft).await? {
        Err(Unfit::Currency(why)) => {
            let what = format!("originCurrency: {why}");
            Err(Refused::new(Code::UnsupportedCurrency, what))
        }
        Err(Unfit::Large { bytes, most }) if exchanges => Err(Refused::too_large(bytes, most)),
        Err(unfit) if exchanges => {
            tracing::warn!(%unfit, "an exchange that no node would take");
            let what = "the swap cannot be sent";
            Err(Refused::new(Code::SwapQuoteFailed, what))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What the chain charges for a transaction besides its work: shown to the user, so what nobody says is left out.
async fn besides(chain: &PricingChain, step: &trade::Step) -> U256 {
    if !chain.providers.limits.besides {
        return U256::ZERO;
    }
    let said = chain
        .providers
        .fees
        .besides(&Trial::free(&step.draft))
        .await;
    said.unwrap_or_default()
}

/// The work of a step where nothing can be estimated yet. `joined`: the exchange is part of the deposit.
fn usual_work(chain: &PricingChain, amounts: &Amounts, (step, joined): (StepKind, bool)) -> u64 {
    let usual = chain.providers.usual;
    let exchange = || {
        let offered = amounts.swap_in.as_ref().map_or(0, |(offer, _)| offer.work);
        usual(Work::Swap).saturating_add(offered)
    };
    match step {
        StepKind::Approve => usual(Work::Approve),
        StepKind::Deposit if joined => usual(Work::Deposit).saturating_add(exchange()),
        StepKind::Deposit => usual(Work::Deposit),
        StepKind::Send => usual(Work::Send),
        StepKind::Swap => exchange(),
    }
}

async fn deposit(
    chain: &PricingChain,
    plan: &Plan<'_, '_>,
    before: Vec<trade::Step>,
) -> Result<Vec<trade::Step>, Refused> {
    let Case {
        intent,
        route,
        market,
        ..
    } = plan.case;
    let paid = &route.paid;
    let Some(depository) = &paid.spec.depository else {
        return Ok(before);
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
        funds: &funds(chain, plan, depository).await?,
        before: &before,
        choices: &intent.choices,
    };
    Ok(chain.steps()?.deposit(&terms)?)
}

/// What the deposit is made of besides its terms.
async fn funds(
    chain: &PricingChain,
    plan: &Plan<'_, '_>,
    depository: &Address,
) -> Result<Bytes, Refused> {
    let Case {
        intent,
        route,
        market,
        ..
    } = plan.case;
    let Some(funding) = &chain.providers.funding else {
        return Ok(Bytes::new());
    };
    let need = Need {
        user: &intent.user,
        key: intent.user_key.as_deref(),
        depository,
        currency: &route.paid.address,
        amount: plan.amounts.sum.paid,
        rate: market.origin_rate,
        unspent: &market.unspent,
    };
    Ok(funding.fund(&need).await??)
}

/// The cost that a price counts: of the user's transactions, or what those usually take where the user could not make
/// them yet.
pub async fn expected(context: &Context, plan: &Plan<'_, '_>) -> Result<OwnCost, Refused> {
    let intent = &plan.case.intent;
    match self::plan(context, plan).await {
        Ok(planned) => Ok(cost(&planned, intent)),
        Err(refused) if refused.code == Code::InsufficientFunds => {
            let deposit = usual_work(
                context.chain(&intent.origin)?,
                plan.amounts,
                (StepKind::Deposit, false),
            );
            Ok(OwnCost {
                work: deposit.saturating_add(intent.origin_gas_overhead),
                ..OwnCost::default()
            })
        }
        Err(refused) => Err(refused),
    }
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
        choices: intent.choices.clone(),
    };
    let SwapDraft { spender, mut draft } = context.deps.swaps.transaction(offer, &order).await?;
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

/// What the user pays for: all transactions, and what the wallet adds.
pub fn cost(planned: &[Planned], intent: &Intent<'_>) -> OwnCost {
    let work = planned.iter().map(|one| one.work);
    let besides = planned.iter().map(|one| one.besides);
    OwnCost {
        work: work.fold(intent.origin_gas_overhead, u64::saturating_add),
        besides: besides.fold(U256::ZERO, U256::saturating_add),
    }
}

/// The steps of an answer.
pub fn shown(
    planned: &[Planned],
    plan: &Plan<'_, '_>,
    request: B256,
) -> Result<Vec<Step>, Refused> {
    // A wallet that batches tells nobody of its transaction, and no chain shows whose swap it was: clients would poll
    // for ever. Without a check they are done once the wallet has taken the batch; they read no receipt of it.
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
        limit: planned.limit,
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
