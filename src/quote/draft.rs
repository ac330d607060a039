//! A priced intent as the request that is to be kept, with the answer to its caller; and what goes with its keeping.

use alloy::primitives::{B128, B256, Bytes, U256};
use vm::protocol::signature::eip191;

use super::{
    answer::{Answer, PaymentDetails, Protocol, ProtocolV2},
    breakdown::{Breakdown, OwnCost},
    code::{Code, Refused},
    context::Context,
    fill::Priced,
    holds::{Asked, stock},
    order::order,
    record::{Promised, record},
    steps::{self, Plan},
};
use crate::{
    request::{self, Request},
    store::requests::RequestsError,
};

/// A request that is not kept yet.
pub struct Draft {
    pub request: Request,
    pub answer: Answer,
    pub own: OwnCost,
}

/// Order, steps and texts of what was priced for the key of this label.
pub async fn draft(
    context: &Context,
    priced: &Priced<'_>,
    key: Option<&str>,
) -> Result<Draft, Refused> {
    let case = &priced.case;
    let random = B128::from_slice(&context.entropy()?[..16]).0;
    let order = order(context, priced, random)?;
    let order_id = order
        .id(|chain| Some(context.deps.chains.get(chain)?.spec.family))
        .map_err(|error| {
            tracing::error!(%error, "no quote: the order has no id");
            Refused::new(Code::UnknownError, "the order cannot be built")
        })?;
    let plan = Plan {
        case,
        amounts: &priced.amounts,
        order_id,
    };
    let planned = steps::plan(context, &plan).await?;
    // A signature may cost something: what cannot be carried out gets none.
    let signature = signature(context, &order_id).await?;
    let own = steps::cost(&planned, &case.intent);
    let breakdown = Breakdown::of(priced, own);
    // The caller may shorten it, never lengthen.
    let (longest, waiting) = case.validity(context.deps.validity);
    let seconds = case.intent.ttl.unwrap_or(longest).min(longest);
    let valid_until = case.seconds().saturating_add(seconds);
    let mined_until = waiting.map(|most| valid_until.saturating_add(most));
    let mut details = breakdown.details(true);
    details.valid_until = Some(valid_until);
    let fees = breakdown.fees();
    let promised = Promised {
        id: request::id(case.now, context.entropy()?),
        order_id,
        order,
        signature,
        steps: &planned,
        valid_until,
        mined_until,
        key,
        fees: &fees,
        details: &details,
    };
    let request = record(priced, promised);
    let answer = Answer {
        steps: steps::shown(&planned, &plan, request.id)?,
        protocol: protocol(priced, &request),
        fees,
        details,
    };
    Ok(Draft {
        request,
        answer,
        own,
    })
}

/// The solver's word for an order.
async fn signature(context: &Context, order: &B256) -> Result<Bytes, Refused> {
    let digest = eip191(order.as_slice());
    let signature = context.deps.signer.sign(&digest).await.map_err(|error| {
        tracing::error!(%error, "no quote: the solver's key does not sign");
        Refused::new(Code::ServiceUnavailable, "the solver does not answer")
    })?;
    Ok(Bytes::copy_from_slice(signature.as_bytes()))
}

fn protocol(priced: &Priced<'_>, request: &Request) -> Protocol {
    let (intent, paid) = (&priced.case.intent, &priced.case.route.paid);
    let depository = paid.spec.depository.as_ref();
    let depository = depository.filter(|_| !intent.own);
    let signature = intent.include_protocol_data;
    let v2 = ProtocolV2 {
        order_id: request.order_id.to_string(),
        hub_type: "onchain",
        order_data: request.order.clone(),
        order_signature: signature.then(|| request.order_signature.to_string()),
        payment_details: depository.map(|depository| PaymentDetails {
            chain_id: paid.network.name.clone(),
            depository: depository.to_string(),
            currency: paid.address.to_string(),
            amount: priced.amounts.sum.paid.to_string(),
        }),
    };
    Protocol { v2 }
}

/// Before any work: a quote that cannot be kept is none.
pub fn room(context: &Context) -> Result<(), Refused> {
    let full = "the service keeps what is left of its disk for orders under way";
    let room = context.deps.requests.room();
    room.map_err(|_| Refused::new(Code::DiskReserve, full))
}

/// Why a quote was not kept.
pub fn unkept(error: RequestsError) -> Refused {
    if error == RequestsError::TooLarge {
        let what = "txs: too many quotes with much data that nobody acted on; try again in some \
                    minutes, or with less data";
        return Refused::new(Code::TooManyLargeQuotes, what);
    }
    tracing::error!(%error, "no quote: the request cannot be stored");
    Refused::new(Code::ServiceUnavailable, "the quote cannot be kept")
}

/// Holds the promised amount for the key that asked, until its price holds no more for a deposit that nobody has seen:
/// without one, nothing is held for as long as one may wait for its block. Of the inventory, `before` is promised already.
pub fn hold(context: &Context, priced: &Priced<'_>, request: &Request, before: U256) {
    let case = &priced.case;
    let Some(key) = request.api_key.as_deref().filter(|_| !case.intent.own) else {
        return;
    };
    let stock = stock(&case.route);
    let asked = Asked {
        key,
        amount: priced.amounts.sum.given,
        free: case.market.available.saturating_sub(before),
        until: request.valid_until,
    };
    if !context.holds().hold(&stock, asked, case.seconds()) {
        tracing::debug!(key, network = stock.0, "a quote holds nothing");
    }
}
