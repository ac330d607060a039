//! Several inputs for one output: an order for each, quoted together, all of them or none.
//!
//! Each order is a quote, a deposit, a fill or a refund of its own, as one of `POST /quote/v2` is: nothing binds it to
//! the others once it is kept. What is decided here is what each of them alone does not show: whether the solver can
//! and may give all of it, what the deposits before leave of an approval, and that all are kept in one commit.

use alloy::primitives::U256;
use futures::{TryFutureExt, future::try_join_all};

use super::{
    admission::{Burden, admit, drained},
    answer::{Answer, MultiAnswer, MultiRequest},
    body::Body,
    breakdown::{Breakdown, OwnCost},
    code::{Code, Refused},
    context::{Caller, Context},
    draft::{Draft, draft, hold, room, unkept},
    fill::Priced,
    holds::stock,
    intent::Intent,
    joint::Joint,
    pricing::price,
};
use crate::{request::Request, store::Batch};

/// Orders that are priced at one time: no caller asks the providers for much more than with a quote.
const AT_ONCE: usize = 2;

/// Quotes the bodies that [`MultiBody::read`](super::body::multi::MultiBody::read) made of one. The requests are durable when
/// the answer is given; where one of them cannot be quoted nothing is kept or held, and the refusal names its origin.
pub async fn quote(
    context: &Context,
    bodies: Vec<Body>,
    caller: Caller<'_>,
) -> Result<MultiAnswer, Refused> {
    room(context)?;
    let key = caller.key;
    let intents = intents(context, &bodies, key)?;
    // A body is as long as the caller's whole one, and has texts that no intent keeps.
    drop(bodies);
    let mut priced = all_priced(context, intents, key).await?;
    together(context, &priced, key).await?;
    share_approvals(&mut priced);
    let drafts = priced.iter().enumerate();
    let drafts = drafts.map(|(at, one)| {
        let draft = draft(context, one, key);
        draft.map_err(move |refused| of_origin(at, refused))
    });
    let drafts = try_join_all(drafts).await?;
    let (requests, answers): (Vec<_>, Vec<_>) = drafts.into_iter().map(apart).unzip();
    let answer = joined(&priced, &requests, answers)?;
    let store = &context.deps.requests;
    let stored = store.insert_all(&requests, caller.by, Batch::new());
    stored.await.map_err(unkept)?;
    for (at, (one, request)) in priced.iter().zip(&requests).enumerate() {
        hold(context, one, request, given(&priced[..at], one));
    }
    Ok(answer)
}

/// What the bodies ask for; no input twice, which would be one order and share its balance with another.
fn intents<'m>(
    context: &'m Context,
    bodies: &[Body],
    key: Option<&str>,
) -> Result<Vec<Intent<'m>>, Refused> {
    let mut intents: Vec<Intent<'m>> = Vec::with_capacity(bodies.len());
    for (at, body) in bodies.iter().enumerate() {
        let intent = context.intent(body, key);
        let intent = intent.map_err(|refused| of_origin(at, refused))?;
        if intents.iter().any(|other| same_input(other, &intent)) {
            let what =
                "originCurrency: stands twice for one user: expected one origin of both amounts";
            return Err(of_origin(at, Refused::new(Code::InvalidField, what)));
        }
        intents.push(intent);
    }
    Ok(intents)
}

async fn all_priced<'m>(
    context: &Context,
    intents: Vec<Intent<'m>>,
    key: Option<&str>,
) -> Result<Vec<Priced<'m>>, Refused> {
    let mut priced = Vec::with_capacity(intents.len());
    let mut waiting = intents.into_iter().enumerate();
    loop {
        let next = waiting.by_ref().take(AT_ONCE);
        let next = next.map(|(at, intent)| {
            let one = price(context, intent, key);
            one.map_err(move |refused| of_origin(at, refused))
        });
        let next = try_join_all(next).await?;
        if next.is_empty() {
            return Ok(priced);
        }
        priced.extend(next);
    }
}

/// Refuses what the solver cannot or may not pay for all of them, though it may for each.
async fn together(context: &Context, all: &[Priced<'_>], key: Option<&str>) -> Result<(), Refused> {
    for (at, one) in all.iter().enumerate() {
        let others = all[..at].iter().filter(|other| !other.case.intent.own);
        let others: Vec<_> = others.collect();
        let case = &one.case;
        if case.intent.own || others.is_empty() {
            continue;
        }
        let burden = others.iter().fold(Burden::of(one, key), |sum, other| {
            sum.with(Burden::of(other, key), same_stock(other, one))
        });
        let admitted = match burden.amount > case.market.available {
            true => Err(drained(case.route.given.currency, &case.route.given)),
            false => admit(context, case, burden).await,
        };
        admitted.map_err(|refused| of_origin(at, refused))?;
    }
    Ok(())
}

/// One user would pay both out of one balance.
fn same_input(one: &Intent<'_>, other: &Intent<'_>) -> bool {
    let (here, there) = (&one.origin, &other.origin);
    let chain = here.network.chain_id == there.network.chain_id;
    chain && here.address == there.address && one.user == other.user
}

/// The solver gives the same currency for both.
fn same_stock(one: &Priced<'_>, other: &Priced<'_>) -> bool {
    stock(&one.case.route) == stock(&other.case.route)
}

/// What the solver gives for the orders before, of what it gives for `one`.
fn given(before: &[Priced<'_>], one: &Priced<'_>) -> U256 {
    let before = before.iter().filter(|other| !other.case.intent.own);
    let same = before.filter(|other| same_stock(other, one));
    same.fold(U256::ZERO, |sum, other| {
        sum.saturating_add(other.amounts.sum.given)
    })
}

/// The depository takes each deposit out of what the one before has left it: the user makes them in this order. What
/// is approved anew is used up by its own deposit.
fn share_approvals(all: &mut [Priced<'_>]) {
    for at in 1..all.len() {
        let (before, after) = all.split_at_mut(at);
        let Some(one) = after.first_mut() else {
            continue;
        };
        let before = before.iter().filter(|other| same_approval(other, one));
        let left = before.fold(one.case.market.approved, |left, other| {
            left.saturating_sub(other.amounts.sum.paid)
        });
        one.case.market.approved = left;
    }
}

/// Both deposits are taken out of what one user has approved.
fn same_approval(one: &Priced<'_>, other: &Priced<'_>) -> bool {
    let (one, other) = (&one.case, &other.case);
    let (here, there) = (&one.route.paid, &other.route.paid);
    let chain = here.network.chain_id == there.network.chain_id;
    let taken = !one.intent.own && one.market.explicit;
    taken && chain && here.address == there.address && one.intent.user == other.intent.user
}

/// A refusal of the order for `origins[at]`, with the path of the field as the caller wrote it.
fn of_origin(at: usize, refused: Refused) -> Refused {
    for (field, own) in [
        ("originChainId:", "chainId:"),
        ("originCurrency:", "currency:"),
        ("amount:", "amount:"),
    ] {
        if let Some(rest) = refused.message.strip_prefix(field) {
            let message = format!("origins[{at}].{own}{rest}");
            return Refused { message, ..refused };
        }
    }
    let message = format!("origins[{at}]: {}", refused.message);
    Refused { message, ..refused }
}

fn apart(draft: Draft) -> (Request, (Answer, OwnCost)) {
    (draft.request, (draft.answer, draft.own))
}

/// The answer of all orders, out of each one's answer and what its user's own transactions cost.
fn joined(
    priced: &[Priced<'_>],
    requests: &[Request],
    answers: Vec<(Answer, OwnCost)>,
) -> Result<MultiAnswer, Refused> {
    let breakdowns = priced.iter().zip(&answers);
    let breakdowns = breakdowns.map(|(one, (_, own))| Breakdown::of(one, *own));
    let breakdowns: Vec<_> = breakdowns.collect();
    let none = || Refused::new(Code::InvalidField, "origins: expected at least one");
    let joint = Joint::of(&breakdowns).ok_or_else(none)?;
    let (fees, mut details) = (joint.fees(), joint.details());
    details.valid_until = requests.iter().map(|request| request.valid_until).min();
    let (mut steps, mut own) = (Vec::new(), Vec::new());
    let mut parts = Vec::with_capacity(answers.len());
    for ((one, request), (answer, _)) in priced.iter().zip(requests).zip(answers) {
        // Clients believe the receipt of what the user does alone, and from then on notice no failure.
        let steps = if one.case.intent.own {
            &mut own
        } else {
            &mut steps
        };
        steps.extend(answer.steps);
        parts.push(MultiRequest {
            request_id: request.id.to_string(),
            fees: answer.fees,
            details: answer.details,
            protocol: answer.protocol,
        });
    }
    steps.extend(own);
    Ok(MultiAnswer {
        steps,
        fees,
        details,
        requests: parts,
    })
}
