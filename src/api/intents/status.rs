//! `GET /intents/status/v3`, `/v2` and `/intents/status`: one status, three renderings.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use vm::B256;

use super::Shared;
use crate::{
    http::{ApiError, Request, Response},
    request::{self, fact::Facts},
};

pub use crate::request::render::{V1, V2, V3};

/// What the routes read of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The id that the quote's steps carry: `0x` and 64 hex digits.
    request_id: String,
}

/// The status as `render` tells it.
pub async fn rendered<T: Serialize>(
    state: Shared,
    request: Request,
    render: fn(&request::Request, &Facts) -> T,
) -> Result<Response, ApiError> {
    let asked: Asked = request.query()?;
    let id = request_id(&asked.request_id)?;
    let missing = || ApiError::missing("REQUEST_NOT_FOUND", format!("unknown request {id}"));
    let found = state.requests.by_id(&id).await?.ok_or_else(missing)?;
    let facts = state.requests.facts(&id).await?;
    Response::json(&render(&found, &facts))
}

/// `0x` and 64 hex digits.
pub fn request_id(text: &str) -> Result<B256, ApiError> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 64);
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            ApiError::refused(
                "INVALID_REQUEST_ID",
                "requestId: expected 0x and 64 hex digits",
            )
        })
}
