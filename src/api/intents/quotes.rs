//! `POST /quote/v2`, `/quote` (deprecated) and `/price`.

use alloy::primitives::keccak256;
use hyper::header::HeaderValue;

use super::{Shared, error};
use crate::{
    chains::asking,
    http::{ApiError, Request, Response, limit},
    quote::caller::Caller,
};

pub use crate::quote::{
    answer::{Answer, PriceAnswer},
    body::Body,
    code::Refused,
};

/// Since when `/quote` is deprecated (RFC 9745), unix seconds: 2026-01-01.
const DEPRECATED: &str = "@1767225600";

pub async fn quote(state: Shared, request: Request) -> Result<Response, ApiError> {
    let body = match Body::read(request.value()?) {
        Ok(body) => body,
        Err(refused) => return error::refused(&refused),
    };
    let quoted = state.quoter.quote_for(&body, caller(&request));
    match asking::by(request.key.is_some(), quoted).await {
        Ok(answer) => Response::json(&answer),
        Err(refused) => error::refused(&refused),
    }
}

pub async fn deprecated(state: Shared, request: Request) -> Result<Response, ApiError> {
    let answer = quote(state, request).await;
    Ok(answer
        .unwrap_or_else(error::ERRORS.answer)
        .with("deprecation", HeaderValue::from_static(DEPRECATED))
        .with(
            "link",
            HeaderValue::from_static("</quote/v2>; rel=\"successor-version\""),
        ))
}

pub async fn price(state: Shared, request: Request) -> Result<Response, ApiError> {
    let body = match Body::read(request.value()?) {
        Ok(body) => body,
        Err(refused) => return error::refused(&refused),
    };
    let priced = state.quoter.price(&body, label(&request));
    match asking::by(request.key.is_some(), priced).await {
        Ok(answer) => Response::json(&answer),
        Err(refused) => error::refused(&refused),
    }
}

/// Who asks: a key, or an address (its site, where that has many).
fn caller(request: &Request) -> Caller<'_> {
    let key = label(request);
    let who = match key {
        Some(label) => format!("key {label}"),
        None => limit::caller(request.client).connection().to_string(),
    };
    let by = keccak256(who).0;
    let by = by.first_chunk().copied().unwrap_or_default();
    Caller {
        key,
        by: u64::from_be_bytes(by),
    }
}

/// What the caller's key is called.
fn label(request: &Request) -> Option<&str> {
    request.key.as_ref().map(|label| label.as_str())
}
