//! Asks an oracle for executions (guide: protocol 10.2), over HTTP or within the process.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;
use vm::{
    http::{self, BodyError},
    protocol::limits,
};

use super::outcome_claim::{self, EndingPayment};
use crate::{
    request::{Request, fact::Deposit},
    store::rows::settlement::Settlement,
};

/// Tries within one question; the worker asks again later.
const TRIES: usize = 2;
/// Codes of refusals that may pass: the oracle's chain is behind, or its operator has not configured it yet.
const NOT_YET: &[&str] = &[
    "TRANSACTION_MISSING",
    "TRANSACTION_NOT_FINALIZED",
    "CHAIN_NOT_AVAILABLE",
    "DEPOSITORY_NOT_CONFIGURED",
];

/// Asks an oracle for executions. Clones share the connection.
#[derive(Clone)]
pub struct OracleClient {
    transport: Arc<dyn OracleTransport>,
}

/// Transports a question to an oracle, and its answer back.
#[async_trait]
pub trait OracleTransport: Send + Sync {
    /// Posts `body` to a path of the oracle; the answer whatever its status. `Err`: there is none.
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String>;
}

/// An oracle that listens somewhere.
pub struct Http {
    client: reqwest::Client,
    url: Url,
    key: Option<SecretString>,
}

impl Http {
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
}

#[async_trait]
impl OracleTransport for Http {
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let base = self.url.as_str().trim_end_matches('/');
        let mut request = self.client.post(format!("{base}{path}")).json(body);
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key.expose_secret());
        }
        let unreachable = |error: reqwest::Error| error.without_url().to_string();
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = http::capped(&mut response, limits::ANSWER).await;
        let bytes = body.map_err(|error| match error {
            BodyError::TooLong => error.to_string(),
            BodyError::Broken(error) => unreachable(error),
        })?;
        Ok((status, bytes.to_vec()))
    }
}

/// Why there is no execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The oracle refuses for good: 400 or 409, with a code that does not pass.
    Final(String),
    /// The oracle may answer later: it is unreachable or busy, has no quorum, finds something not final yet, or gave no
    /// oracle's answer.
    Now(String),
}

impl OracleClient {
    pub fn over(transport: Arc<dyn OracleTransport>) -> Self {
        Self { transport }
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

    /// The execution of an order's fill or refund. The solver's signature goes with it where the oracle asks for one.
    pub async fn outcome(
        &self,
        request: &Request,
        deposit: &Deposit,
        (settlement, vouched): (&Settlement, Option<&str>),
    ) -> Result<Value, Refused> {
        let payment = EndingPayment {
            purpose: settlement.purpose,
            transaction: &settlement.transaction,
            option: settlement.option,
        };
        let (route, mut body) = outcome_claim::body(request, deposit, payment);
        body["requestPeerSignatures"] = true.into();
        if let Some(vouched) = vouched {
            body["solverSignature"] = vouched.into();
        }
        self.ask(route, &body).await
    }

    async fn ask(&self, route: &str, body: &Value) -> Result<Value, Refused> {
        let path = format!("/attestations/{route}/v1");
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_max_times(TRIES);
        let answer = (|| self.once(&path, body))
            .retry(pauses)
            .when(|refused| matches!(refused, Refused::Now(_)))
            .await?;
        let execution = answer.get("execution").cloned();
        execution.ok_or_else(|| Refused::Now("an answer without an execution".to_owned()))
    }

    async fn once(&self, path: &str, body: &Value) -> Result<Value, Refused> {
        let answer = self.transport.post(path, body).await;
        let (status, bytes) = answer.map_err(Refused::Now)?;
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
    let later = answer
        .as_ref()
        .is_some_and(|answer| answer["retryable"] == true);
    let why = format!("{status} {code}: {}", text("message").unwrap_or_default());
    match status {
        _ if code.is_empty() || NOT_YET.contains(&code.as_str()) => Err(Refused::Now(why)),
        _ if later => Err(Refused::Now(why)),
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT => Err(Refused::Final(why)),
        _ => Err(Refused::Now(why)),
    }
}

#[cfg(test)]
mod tests;
