//! Requests that a quoter stored, and their deposits.

#[path = "../../tests/support/deposit.rs"]
mod deposit;

use alloy::primitives::B256;
use anyhow::{Context, Result, anyhow};
use intentd::quote::{body::Body, service::Quoter};

pub use self::deposit::deposit;
use super::stub;

pub async fn quote(quoter: &Quoter) -> Result<B256> {
    let refused = |refused| anyhow!("{refused:?}");
    let [(_, body), ..] = stub::bodies();
    let body = Body::read(body).map_err(refused)?;
    let answer = quoter.quote(&body, None).await.map_err(refused)?;
    let step = answer.steps.first().context("a quote without steps")?;
    Ok(step.request_id.parse()?)
}
