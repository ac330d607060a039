//! What the solver will do on the destination: what the order promises to pay and to call.

use alloy::primitives::U256;
use vm::{
    Address, ChainSpec, CodecError, OrderCall,
    trade::{Choices, Draft, Fee, Payout, Providers, Spend, SwapOffer, SwapOrder, Work},
};

use super::{
    amounts::Amounts,
    code::{Code, Refused},
    context::Context,
    intent::{self, Intent, Side},
    late,
    market_data::Case,
    pricing_chain::lacking,
};

/// Seconds for which an exchange can be made at the limit that was quoted.
pub const SWAP_LIFE: u64 = 600;

/// Payments and calls of an order.
#[derive(Clone, Debug, Default)]
pub struct Fill {
    pub payments: Vec<Due>,
    pub calls: Vec<OrderCall>,
}

/// One payment of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub to: Address,
    pub currency: Address,
    pub amount: U256,
    pub minimum: U256,
}

/// A case with its amounts and what the solver will do.
pub struct Priced<'m> {
    pub case: Case<'m>,
    pub amounts: Amounts,
    pub fill: Fill,
    /// What the fill costs, as it was simulated.
    pub fee: Fee,
}

/// The work to expect of the destination transaction before anything was simulated.
pub fn usual(providers: &Providers, intent: &Intent<'_>, amounts: Option<&Amounts>) -> u64 {
    let native = intent.destination.is_native();
    let swap = amounts.and_then(|amounts| amounts.swap_out.as_ref());
    let base = match (intent.calls.len(), swap) {
        (0, None) => Work::Payment { native },
        _ => Work::Routed,
    };
    (providers.usual)(base)
        .saturating_add(usual_calls(providers, intent))
        .saturating_add(swap.map_or(0, |offer| offer.work))
}

/// The part of [`usual`] that is for the order's calls.
pub fn usual_calls(providers: &Providers, intent: &Intent<'_>) -> u64 {
    let count = u64::try_from(intent.calls.len()).unwrap_or(u64::MAX);
    let each = || count.saturating_mul((providers.usual)(Work::Call));
    intent.calls_work.unwrap_or_else(each)
}

/// What the order promises to pay and to call.
pub async fn fill(context: &Context, case: &Case<'_>, amounts: &Amounts) -> Result<Fill, Refused> {
    let (intent, output) = (&case.intent, &case.intent.destination);
    let all = |to: &Address| Due {
        to: to.clone(),
        currency: output.address.clone(),
        amount: amounts.output,
        minimum: amounts.minimum,
    };
    if intent.own || (intent.calls.is_empty() && amounts.swap_out.is_none()) {
        let mut due = all(&intent.recipient);
        // What a dearer fill may take besides: only the order's own minimum can let it.
        let late = intent.late_slippage.filter(|_| !intent.own);
        let late = late::tolerated(amounts.output, late);
        due.minimum = due.minimum.saturating_sub(late).max(U256::from(1));
        return Ok(Fill {
            payments: vec![due],
            calls: Vec::new(),
        });
    }
    let spent = intent::total(&intent.calls);
    if spent.is_none_or(|spent| spent > amounts.minimum) {
        let what = "txs.value: the calls need more than the output";
        return Err(Refused::new(Code::InvalidExtraTxs, what));
    }
    let router = router(output)?.ok_or_else(|| {
        let what = "the destination chain has no fill router";
        Refused::new(Code::Erc20RouterAddressNotFound, what)
    })?;
    if !case.route.given.is_native() && proxy(output)?.is_none() {
        let what = "the destination chain has no contract that pays the router in tokens";
        return Err(Refused::new(Code::Erc20RouterAddressNotFound, what));
    }
    let mut fill = match &amounts.swap_out {
        None if output.is_native() => native(intent, amounts.output, &router),
        None => Fill {
            payments: vec![all(&router)],
            calls: intent.calls.clone(),
        },
        Some(offer) => {
            let mut fill = swapping(context, case, amounts, offer, &router).await?;
            fill.calls.extend(intent.calls.iter().cloned());
            fill
        }
    };
    fill.calls.extend(sweeps(intent, &router)?);
    Ok(fill)
}

/// The router is paid in what the solver has, and exchanges it for itself.
async fn swapping(
    context: &Context,
    case: &Case<'_>,
    amounts: &Amounts,
    offer: &SwapOffer,
    router: &Address,
) -> Result<Fill, Refused> {
    let given = &case.route.given;
    let (amount, exact) = (amounts.sum.given, !offer.terms.exact_input);
    // Time to deposit, for the deposit to be final twice over, and to be filled.
    let wait = case.intent.seconds().saturating_mul(2);
    let wait = wait.saturating_add(SWAP_LIFE);
    let (validity, waiting) = case.validity(context.deps.validity);
    let validity = validity.saturating_add(waiting.unwrap_or_default());
    let deadline = case.seconds().saturating_add(validity);
    let order = SwapOrder {
        payer: router.clone(),
        recipient: router.clone(),
        limit: if exact { amount } else { amounts.minimum },
        deadline: deadline.saturating_add(wait),
        choices: Choices::default(),
    };
    let swap = context.deps.swaps.transaction(offer, &order).await?;
    let mut calls = Vec::new();
    if let Some(spender) = &swap.spender {
        let spend = Spend {
            spender,
            currency: &given.address,
            amount,
        };
        let approvals = given.spec.family.approvals;
        let approvals = approvals.ok_or_else(|| lacking(&given.spec, "approvals"))?;
        let approve = approvals.approve(router, &spend, given.currency.approval_reset)?;
        for step in &approve {
            calls.push(ordered(&given.spec, &step.draft)?);
        }
    }
    calls.push(ordered(&given.spec, &swap.draft)?);
    // What the exchange did not need (a pool may run out before it has taken an exact input), and what native currency
    // its contracts had: before anybody's calls, which could take it, and not to the recipient, who need not take any.
    calls.push(sweep(given, router, &given.solver)?);
    let payment = Due {
        to: router.clone(),
        currency: given.address.clone(),
        amount,
        minimum: amount,
    };
    Ok(Fill {
        payments: vec![payment],
        calls,
    })
}

impl Due {
    pub fn payout(&self) -> Payout {
        Payout {
            to: self.to.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
        }
    }
}

/// The router is paid what its calls spend, the recipient the rest. A call without data is a
/// payment: the router reports it as one.
fn native(intent: &Intent<'_>, output: U256, router: &Address) -> Fill {
    let currency = &intent.destination.address;
    let due = |to: &Address, amount: U256| Due {
        to: to.clone(),
        currency: currency.clone(),
        amount,
        minimum: amount,
    };
    let (calls, plain): (Vec<_>, Vec<_>) = intent
        .calls
        .iter()
        .cloned()
        .partition(|call| !call.data.is_empty());
    let spent = intent::total(&calls).unwrap_or_default();
    let mut rest = output.saturating_sub(spent);
    let mut payments = Vec::new();
    if !spent.is_zero() {
        payments.push(due(router, spent));
    }
    for call in &plain {
        rest = rest.saturating_sub(call.value);
        payments.push(due(&call.to, call.value));
    }
    if !rest.is_zero() {
        payments.push(due(&intent.recipient, rest));
    }
    Fill { payments, calls }
}

/// A transaction as a call that the order wants made.
fn ordered(spec: &ChainSpec, draft: &Draft) -> Result<OrderCall, Refused> {
    let call = draft.as_order_call();
    call.ok_or_else(|| lacking(spec, "calls"))
}

/// What the calls leave is the recipient's, in the router it would be anybody's: what was bought, and the native
/// currency last. Who gets tokens and has no calls made is not asked to take native currency.
fn sweeps(intent: &Intent<'_>, router: &Address) -> Result<Vec<OrderCall>, Refused> {
    let (output, to) = (&intent.destination, &intent.recipient);
    let mut calls = Vec::new();
    if !output.is_native() {
        calls.push(sweep(output, router, to)?);
        if intent.calls.is_empty() {
            return Ok(calls);
        }
    }
    let native = Side {
        address: output.spec.family.native()?,
        ..output.clone()
    };
    calls.push(sweep(&native, router, to)?);
    Ok(calls)
}

/// A call by which the router gives all that it has of a currency.
fn sweep(of: &Side<'_>, router: &Address, to: &Address) -> Result<OrderCall, Refused> {
    let orders = of.spec.family.orders;
    let orders = orders.ok_or_else(|| lacking(&of.spec, "calls"))?;
    Ok(orders.sweep(router, &of.address, to)?)
}

/// The contract that makes fills of several payments or calls.
pub fn router(side: &Side<'_>) -> Result<Option<Address>, CodecError> {
    contract(side, side.network.fill_router.as_deref())
}

/// The contract that takes the solver's tokens for those fills.
pub fn proxy(side: &Side<'_>) -> Result<Option<Address>, CodecError> {
    contract(side, side.network.approval_proxy.as_deref())
}

fn contract(side: &Side<'_>, text: Option<&str>) -> Result<Option<Address>, CodecError> {
    text.map(|text| side.spec.family.account(text)).transpose()
}
