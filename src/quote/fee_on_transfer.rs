//! Whether a token arrives as it is sent. One that takes a fee on transfers leaves the depository, the
//! router or the recipient short of what its events say: it is not quoted. The tries are transactions that
//! are never sent: to an account that nobody has seen before, and back from there, so that a token
//! cannot know who asks. What cannot be tried, for want of money, is let through; where a chain has no
//! contracts, none of its currencies takes a fee.
//!
//! What providers agree on counts: one of them switches no token off, and lets none through. What the
//! solver's own account finds holds for everybody. What a caller's finds holds for the caller
//! alone: whoever names an account decides how a transfer from there ends.

use alloy::primitives::{B256, U256};
use vm::{
    Address,
    trade::{Choices, Draft, PaymentTerms, Spend, SwapOrder},
};

use super::{
    code::{Code, Refused},
    context::Context,
    fill::Priced,
    intent::Side,
    verdicts::{BELIEVED, Verdict},
};
use crate::request::Operation;

/// Stands in for an order.
const ORDER: B256 = B256::repeat_byte(0xee);

/// Transactions of one account, and the one after which the money must be back. The first must work without
/// the last for a verdict.
struct Trial<'a> {
    side: &'a Side<'a>,
    /// Whom the verdict binds; `None`: everybody.
    caller: Option<&'a Address>,
    /// What the quote needs to arrive whole, and what is tried.
    needed: U256,
    amount: U256,
    there: Vec<Draft>,
    back: Draft,
}

/// Refuses a request in which a token takes a fee.
pub async fn check(context: &Context, priced: &Priced<'_>) -> Result<(), Refused> {
    let (case, amounts) = (&priced.case, &priced.amounts);
    let (intent, market) = (&case.intent, &case.market);
    let mut trials = Vec::new();
    if market.balance >= amounts.input {
        let (caller, amount) = (Some(&intent.user), amounts.input);
        trials.push(transfer(context, &intent.origin, caller, amount, amount)?);
    }
    if !intent.own {
        // The trial moves all that is available: the caller chooses no amount of it.
        let (needed, amount) = (amounts.sum.given, market.available);
        trials.push(transfer(context, &case.route.given, None, needed, amount)?);
    }
    if !intent.own || market.balance >= amounts.input_limit {
        trials.push(exchange(context, priced).await?);
    }
    let trials = trials.iter().flatten();
    let judged = trials.map(|trial| judged(context, trial, case.seconds()));
    futures::future::try_join_all(judged).await?;
    Ok(())
}

async fn judged(context: &Context, trial: &Trial<'_>, now: u64) -> Result<(), Refused> {
    let side = trial.side;
    let token = (side.network.name.clone(), side.address.clone());
    let verdicts = &context.verdicts;
    let free = match verdicts.of(&token, trial.caller, trial.needed, now) {
        Some(known) => known,
        None => {
            let Some(free) = tried(context, trial).await else {
                return Ok(());
            };
            let found = Verdict {
                free,
                amount: trial.amount,
                at: now,
            };
            verdicts.put(token, trial.caller, found);
            free
        }
    };
    if free {
        return Ok(());
    }
    let what = format!(
        "{}: {} takes a fee on transfers",
        side.network.display_name, side.currency.symbol
    );
    Err(Refused::new(Code::UnsupportedCurrency, what))
}

/// `None`: the node cannot say, or the owner cannot pay.
async fn tried(context: &Context, trial: &Trial<'_>) -> Option<bool> {
    let mut all = trial.there.clone();
    all.push(trial.back.clone());
    if works(context, trial.side, &all).await? {
        return Some(true);
    }
    if !works(context, trial.side, &trial.there).await? {
        return None;
    }
    // A price that moved between the two looks like a fee; a fee is there now, too.
    works(context, trial.side, &all).await
}

async fn works(context: &Context, side: &Side<'_>, drafts: &[Draft]) -> Option<bool> {
    let providers = &context.chain(side).ok()?.providers;
    Some(providers.simulate_all(drafts).await.ok()??.is_ok())
}

/// Whether a currency may take a fee on transfers.
fn is_suspect(context: &Context, side: &Side<'_>) -> Result<bool, Refused> {
    let contracts = &context.chain(side)?.providers.contracts;
    Ok(contracts.is_some() && !side.is_native())
}

/// A transfer to a new account and back. It is made with `amount`; the deal needs only `needed`.
fn transfer<'a>(
    context: &Context,
    side: &'a Side<'a>,
    caller: Option<&'a Address>,
    needed: U256,
    amount: U256,
) -> Result<Option<Trial<'a>>, Refused> {
    if !is_suspect(context, side)? {
        return Ok(None);
    }
    let owner = caller.unwrap_or(&side.solver);
    let nobody = nobody(context, side)?;
    Ok(Some(Trial {
        side,
        caller,
        needed,
        amount,
        there: vec![payment(context, side, owner, &nobody, amount)?],
        back: payment(context, side, &nobody, owner, amount)?,
    }))
}

/// The exchange that ends in the destination's currency, as if it paid somebody, and what it must have fetched.
async fn exchange<'a>(
    context: &Context,
    priced: &'a Priced<'_>,
) -> Result<Option<Trial<'a>>, Refused> {
    let (intent, amounts) = (&priced.case.intent, &priced.amounts);
    let (offer, from) = match (&amounts.swap_in, &amounts.swap_out) {
        (Some((offer, _)), _) if intent.own => (offer, &intent.origin),
        (_, Some(offer)) if !intent.own => (offer, &priced.case.route.given),
        _ => return Ok(None),
    };
    let side = &intent.destination;
    if !is_suspect(context, side)? || intent.own && intent.operation != Operation::Swap {
        return Ok(None);
    }
    let caller = intent.own.then_some(&intent.user);
    let owner = caller.unwrap_or(&side.solver);
    let nobody = nobody(context, side)?;
    let exact = offer.terms.exact_input;
    let order = SwapOrder {
        payer: owner.clone(),
        recipient: nobody.clone(),
        limit: if exact { offer.output } else { offer.input },
        deadline: priced.case.seconds().saturating_add(BELIEVED),
        choices: Choices::default(),
    };
    // A wrap pays who pays it only: it is not tried, and takes nothing.
    let Ok(swap) = context.deps.swaps.build(offer, &order).await else {
        return Ok(None);
    };
    let mut there = Vec::new();
    if let Some((spender, approvals)) = swap.spender.as_ref().zip(from.spec.family.approvals) {
        let spend = Spend {
            spender,
            currency: &from.address,
            amount: offer.input,
        };
        let approve = approvals.approve(owner, &spend, from.currency.approval_reset)?;
        there.extend(approve.into_iter().map(|step| step.draft));
    }
    there.push(swap.draft);
    Ok(Some(Trial {
        side,
        caller,
        needed: offer.output,
        amount: offer.output,
        there,
        back: payment(context, side, &nobody, owner, offer.output)?,
    }))
}

fn payment(
    context: &Context,
    side: &Side<'_>,
    from: &Address,
    to: &Address,
    amount: U256,
) -> Result<Draft, Refused> {
    let paid = PaymentTerms {
        from,
        to,
        currency: &side.address,
        amount,
        order: ORDER,
    };
    Ok(context.chain(side)?.steps()?.send(&paid)?)
}

/// An account that nobody has used, and that no token can know.
fn nobody(context: &Context, side: &Side<'_>) -> Result<Address, Refused> {
    let (family, entropy) = (side.spec.family, context.entropy()?);
    let (length, _) = family.lengths.account;
    let bytes = &entropy[entropy.len().saturating_sub(length)..];
    let text = family.codec.decode_address(bytes)?;
    Ok(family.account(&text)?)
}
