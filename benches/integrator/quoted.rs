//! Requests that a quoter stored, and their deposits.

use alloy::primitives::{B256, U256};
use anyhow::{Context, Result, anyhow};
use intentd::{
    quote::{body::Body, service::Quoter},
    request::fact::{Deposit, Inclusion, Standing},
};

use super::stub;

pub async fn quote(quoter: &Quoter) -> Result<B256> {
    let refused = |refused| anyhow!("{refused:?}");
    let [(_, body), ..] = stub::bodies();
    let body = Body::read(body).map_err(refused)?;
    let answer = quoter.quote(&body, None).await.map_err(refused)?;
    let step = answer.steps.first().context("a quote without steps")?;
    Ok(step.request_id.parse()?)
}

/// The final deposit of request `id`.
pub fn deposit(id: B256) -> Deposit {
    Deposit {
        onchain_id: id,
        network: "origin".into(),
        transaction: id.to_string(),
        depository: stub::USER.into(),
        depositor: stub::USER.into(),
        currency: stub::NATIVE.into(),
        amount: U256::from(5),
        place: Inclusion {
            number: 7,
            hash: id,
            time: 1_700_000_000,
        },
        standing: Standing::Final,
        together: 1,
        own: true,
        named_by_other: false,
    }
}
