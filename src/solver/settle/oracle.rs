//! Asks an oracle for executions over HTTP (oracle.md 3).

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;
use vm::http::{self, BodyError};

use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
    },
    store::rows::settlement::Settlement,
};

/// The most bytes of an answer that are read.
const MOST_BYTES: usize = 4 << 20;
/// Tries within one question; the worker asks again later.
const TRIES: usize = 2;
/// Codes of refusals that may end: the oracle's chain is not as far as ours, or its operator has not
/// configured it.
const NOT_YET: &[&str] = &[
    "TRANSACTION_MISSING",
    "TRANSACTION_NOT_FINALIZED",
    "CHAIN_NOT_AVAILABLE",
    "DEPOSITORY_NOT_CONFIGURED",
];

/// See the module.
#[derive(Clone, Debug)]
pub struct Oracle {
    client: reqwest::Client,
    url: Url,
    key: Option<SecretString>,
}

/// Why there is no execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The oracle says no, says which no (400, 409 with a code), and will not say otherwise.
    Final(String),
    /// Not now: unreachable, busy, no quorum, not final yet, or no oracle's answer at all.
    Now(String),
}

impl Oracle {
    /// Asks under `url`, giving each answer `timeout`.
    pub fn new(
        url: Url,
        key: Option<SecretString>,
        timeout: Duration,
    ) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timeout)
            .build()?;
        Ok(Self { client, url, key })
    }

    /// The execution of a deposit's transaction.
    pub async fn deposit(&self, deposit: &Deposit) -> Result<Value, Refused> {
        let body = json!({
            "chainId": deposit.network,
            "transactionId": deposit.transaction,
            "requestPeerSignatures": true,
        });
        self.ask("depository-deposits", &body).await
    }

    /// The execution of an order's fill or refund.
    pub async fn outcome(
        &self,
        request: &Request,
        deposit: &Deposit,
        settlement: &Settlement,
    ) -> Result<Value, Refused> {
        let mut body = json!({
            "order": request.order,
            "orderSignature": request.order_signature,
            "inputs": [{
                "transactionId": deposit.transaction,
                "onchainId": deposit.onchain_id,
                "inputIndex": 0,
            }],
            "requestPeerSignatures": true,
        });
        let transaction = &settlement.transaction;
        let route = match settlement.purpose {
            Purpose::Fill => {
                body["fill"] = json!({ "transactionId": transaction });
                "solver-fills"
            }
            Purpose::Refund => {
                body["refunds"] = json!([{
                    "transactionId": transaction,
                    "inputIndex": 0,
                    "refundIndex": settlement.option,
                }]);
                "solver-refunds"
            }
        };
        self.ask(route, &body).await
    }

    async fn ask(&self, route: &str, body: &Value) -> Result<Value, Refused> {
        let base = self.url.as_str().trim_end_matches('/');
        let url = format!("{base}/attestations/{route}/v1");
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_max_times(TRIES);
        let answer = (|| self.once(&url, body))
            .retry(pauses)
            .when(|refused| matches!(refused, Refused::Now(_)))
            .await?;
        let execution = answer.get("execution").cloned();
        execution.ok_or_else(|| Refused::Now("an answer without an execution".to_owned()))
    }

    async fn once(&self, url: &str, body: &Value) -> Result<Value, Refused> {
        let mut request = self.client.post(url).json(body);
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key.expose_secret());
        }
        let unreachable = |error: reqwest::Error| Refused::Now(error.without_url().to_string());
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = http::capped(&mut response, MOST_BYTES).await;
        let bytes = body.map_err(|error| match error {
            BodyError::TooLong => Refused::Now(error.to_string()),
            BodyError::Broken(error) => unreachable(error),
        })?;
        read(status, &bytes)
    }
}

fn read(status: StatusCode, bytes: &[u8]) -> Result<Value, Refused> {
    let answer: Option<Value> = serde_json::from_slice(bytes).ok();
    if status == StatusCode::OK {
        return answer.ok_or_else(|| Refused::Now("an answer that is not JSON".to_owned()));
    }
    let text = |field| Some(answer.as_ref()?.get(field)?.as_str()?.to_owned());
    let code = text("code").unwrap_or_default();
    let why = format!("{status} {code}: {}", text("message").unwrap_or_default());
    match status {
        _ if code.is_empty() || NOT_YET.contains(&code.as_str()) => Err(Refused::Now(why)),
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT => Err(Refused::Final(why)),
        _ => Err(Refused::Now(why)),
    }
}

#[cfg(test)]
mod tests;
