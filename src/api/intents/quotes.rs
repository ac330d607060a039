//! `POST /quote/v2`, `/quote` (deprecated), `/price` and `/execute/swap/multi-input`. Who still asks by the deprecated
//! name knows the first version of the status only: its checks name that.

use alloy::primitives::keccak256;
use serde::Serialize;

use super::{Shared, error};
use crate::{
    chains::asking,
    http::{ApiError, Request, Response, limit},
    quote::{code::Refused, context::Caller},
};

pub use crate::quote::{
    answer::{Answer, MultiAnswer, PriceAnswer},
    body::{Body, multi::MultiBody},
};

/// Since when `/quote` is deprecated (RFC 9745), unix seconds: 2026-01-01.
const DEPRECATED: &str = "@1767225600";
/// What checks name, and what they name for clients before 3.0.
const STATUS: &str = "/intents/status/v3?";
const FIRST_STATUS: &str = "/intents/status?";

pub async fn quote(state: Shared, request: Request) -> Result<Response, ApiError> {
    quoted(state, request, |answer| answer).await
}

async fn quoted(
    state: Shared,
    request: Request,
    shape: fn(Answer) -> Answer,
) -> Result<Response, ApiError> {
    let value = request.value()?;
    let quoted = async {
        let body = Body::read(value)?;
        let answer = state.quoter.quote_for(&body, caller(&request)).await?;
        Ok(shape(answer))
    };
    answered(&request, quoted).await
}

async fn answered<T: Serialize>(
    request: &Request,
    work: impl Future<Output = Result<T, Refused>>,
) -> Result<Response, ApiError> {
    match asking::by(request.key.is_some(), work).await {
        Ok(answer) => Response::json(&answer),
        Err(refused) => error::refused(&refused),
    }
}

/// Clients up to 2.4 poll a check as it is written, and know the words of the first version only.
fn first_checks(mut answer: Answer) -> Answer {
    let items = answer.steps.iter_mut().flat_map(|step| &mut step.items);
    for check in items.filter_map(|item| item.check.as_mut()) {
        check.endpoint = check.endpoint.replacen(STATUS, FIRST_STATUS, 1);
    }
    answer
}

pub async fn deprecated(state: Shared, request: Request) -> Result<Response, ApiError> {
    let answer = quoted(state, request, first_checks).await;
    Ok(answer
        .unwrap_or_else(error::ERRORS.answer)
        .saying("deprecation", DEPRECATED)
        .saying("link", "</quote/v2>; rel=\"successor-version\""))
}

pub async fn price(state: Shared, request: Request) -> Result<Response, ApiError> {
    let value = request.value()?;
    let priced = async {
        let body = Body::read(value)?;
        state.quoter.price(&body, request.label()).await
    };
    answered(&request, priced).await
}

/// Several inputs are as many quotes.
pub async fn multi(state: Shared, request: Request) -> Result<Response, ApiError> {
    let bodies = match MultiBody::read(request.value()?) {
        Ok(bodies) => bodies,
        Err(refused) => return error::refused(&refused),
    };
    request.afford(bodies.len())?;
    let quoted = state.quoter.quote_all(bodies, caller(&request));
    answered(&request, quoted).await
}

/// Who asks: a key, or an address (its site, where that has many).
fn caller(request: &Request) -> Caller<'_> {
    let key = request.label();
    let who = match key {
        Some(label) => format!("key {label}"),
        None => limit::caller(request.client).site().to_string(),
    };
    let by = keccak256(who).0;
    let by = by.first_chunk().copied().unwrap_or_default();
    Caller {
        key,
        by: u64::from_be_bytes(by),
    }
}
