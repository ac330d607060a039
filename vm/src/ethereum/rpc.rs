//! Rounds of JSON-RPC calls to one node: calls that do not depend on each other leave together.
//!
//! Knows nothing of what the answers mean, except that the node must be of the configured chain.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use alloy::{
    rpc::client::RpcClient,
    transports::{RpcError, TransportError, TransportErrorKind},
};
use futures::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::{http::Http, raw::Quantity};
use crate::http::{Channel, PostError};
use crate::{Endpoint, LARGE_BYTES, ReadError, aside, types::ChainId, types::U256};

/// Bytes of an error's `data`.
const MAX_DATA: usize = 64 << 10;

/// One call.
pub struct Call {
    pub method: &'static str,
    pub params: Value,
}

/// A JSON-RPC error: the node answered, and refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: i64,
    pub message: String,
    /// The error's `data` as JSON; `None` when it is larger than any revert worth reading.
    pub data: Option<Box<str>>,
}

/// An answer's JSON, or the node's refusal.
pub type Answer = Result<Box<RawValue>, Refused>;

/// One node.
pub struct Rpc {
    channel: Channel,
    client: RpcClient,
    chain_id: U256,
    /// The node said which chain it is, and nothing failed since.
    identified: AtomicBool,
    /// The largest batch that worked and the smallest that did not.
    batch_worked: AtomicUsize,
    batch_failed: AtomicUsize,
}

impl Rpc {
    pub fn new(chain: &ChainId, chain_id: U256, endpoint: &Endpoint) -> Self {
        let channel = Channel::new(chain, endpoint);
        Self {
            client: RpcClient::new(Http(channel.clone()), true),
            channel,
            chain_id,
            identified: AtomicBool::new(false),
            batch_worked: AtomicUsize::new(0),
            batch_failed: AtomicUsize::new(usize::MAX),
        }
    }

    /// Counts calls that are of use only together, in however many rounds they are sent; an error: none of them may
    /// be sent now.
    pub fn admit(&self, calls: usize) -> Result<(), ReadError> {
        let asked = usize::from(!self.identified.load(Relaxed));
        let admitted = self.channel.admit(calls.saturating_add(asked));
        admitted.map_err(|error| ReadError::Unavailable(error.to_string()))
    }

    /// Sends `calls` in one round trip; answers come in the same order.
    pub async fn round(&self, calls: Vec<Call>) -> Result<Vec<Answer>, ReadError> {
        self.admit(calls.len())?;
        self.admitted(calls).await
    }

    /// Sends one call.
    pub async fn one(&self, call: Call) -> Result<Answer, ReadError> {
        let answer = self.round(vec![call]).await?.pop();
        answer.ok_or_else(|| doubt("an answer is missing"))
    }

    /// As [`Self::round`], with calls that [`Self::admit`] has counted.
    pub async fn admitted(&self, calls: Vec<Call>) -> Result<Vec<Answer>, ReadError> {
        let answers = self.sent(calls).await;
        answers.map_err(|error| match error {
            // Only what is asked about one thing of the chain is too large for ever.
            ReadError::TooLarge => ReadError::Unavailable(error.to_string()),
            error => error,
        })
    }

    /// As [`Self::round`], about one transaction: [`ReadError::TooLarge`] says that it is.
    pub async fn round_about_one(&self, calls: Vec<Call>) -> Result<Vec<Answer>, ReadError> {
        self.admit(calls.len())?;
        self.sent(calls).await
    }

    async fn sent(&self, mut calls: Vec<Call>) -> Result<Vec<Answer>, ReadError> {
        let identified = self.identified.load(Relaxed);
        if !identified {
            calls.push(call("eth_chainId", Value::Array(Vec::new())));
        }
        let mut answers = match self.exchange(&calls).await {
            Ok(answers) => answers,
            Err(error) => {
                self.identified.store(false, Relaxed);
                return Err(error);
            }
        };
        if !identified {
            let answer = answers.pop().ok_or_else(|| doubt("no answer"))?;
            let id: Quantity = expect("eth_chainId", answer)?;
            if id.0 != self.chain_id {
                let found = id.0;
                return Err(ReadError::Doubtful(format!("chain id is {found}")));
            }
            self.identified.store(true, Relaxed);
        }
        Ok(answers)
    }

    async fn exchange(&self, calls: &[Call]) -> Result<Vec<Answer>, ReadError> {
        if calls.len() == 1 || calls.len() >= self.batch_failed.load(Relaxed) {
            return self.singly(calls).await;
        }
        match self.batch(calls).await {
            Ok(answers) => {
                self.batch_worked.fetch_max(calls.len(), Relaxed);
                Ok(answers)
            }
            Err(error) if self.may_refuse(calls.len()) && is_refusal(&error) => {
                let answers = self.singly(calls).await?;
                self.batch_failed.fetch_min(calls.len(), Relaxed);
                Ok(answers)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn may_refuse(&self, size: usize) -> bool {
        size > self.batch_worked.load(Relaxed)
    }

    async fn batch(&self, calls: &[Call]) -> Result<Vec<Answer>, TransportError> {
        let mut batch = self.client.new_batch();
        let mut waiters = Vec::with_capacity(calls.len());
        for call in calls {
            waiters.push(batch.add_call::<_, Box<RawValue>>(call.method, &call.params)?);
        }
        batch.send().await?;
        let mut answers = Vec::with_capacity(calls.len());
        for waiter in waiters {
            answers.push(answered(waiter.await)?);
        }
        Ok(answers)
    }

    async fn singly(&self, calls: &[Call]) -> Result<Vec<Answer>, ReadError> {
        let requests = calls.iter().map(|call| {
            self.client
                .request::<_, Box<RawValue>>(call.method, &call.params)
        });
        join_all(requests)
            .await
            .into_iter()
            .map(|answer| answered(answer).map_err(failed))
            .collect()
    }
}

fn failed(error: TransportError) -> ReadError {
    let RpcError::Transport(kind) = &error else {
        return ReadError::Unavailable("unreadable answer".into());
    };
    if is_too_large(kind) {
        return ReadError::TooLarge;
    }
    ReadError::Unavailable(match kind.as_http_error() {
        Some(http) => format!("HTTP status {}", http.status),
        None => kind.to_string(),
    })
}

/// A node's own error is an answer; everything else is a failed exchange.
fn answered(answer: Result<Box<RawValue>, TransportError>) -> Result<Answer, TransportError> {
    match answer {
        Ok(json) => Ok(Ok(json)),
        Err(RpcError::ErrorResp(error)) => Ok(Err(Refused {
            code: error.code,
            message: error.message.chars().take(200).collect(),
            data: error
                .data
                .filter(|data| data.get().len() <= MAX_DATA)
                .map(|data| data.get().into()),
        })),
        Err(error) => Err(error),
    }
}

fn is_too_large(kind: &TransportErrorKind) -> bool {
    let TransportErrorKind::Custom(error) = kind else {
        return false;
    };
    matches!(error.downcast_ref(), Some(PostError::TooLarge))
}

/// Whether a provider that takes no batches (of this size) could have answered so.
fn is_refusal(error: &TransportError) -> bool {
    match error {
        RpcError::Transport(TransportErrorKind::MissingBatchResponse(_)) => true,
        RpcError::Transport(kind) => kind
            .as_http_error()
            .is_some_and(|http| http.status != 429 && http.status != 401),
        _ => false,
    }
}

pub fn call(method: &'static str, params: Value) -> Call {
    Call { method, params }
}

/// Reads an answer that must be there.
pub fn expect<T: DeserializeOwned>(what: &str, answer: Answer) -> Result<T, ReadError> {
    let json = answer.map_err(|refused| {
        ReadError::Unavailable(format!("{what}: {} ({})", refused.message, refused.code))
    })?;
    let text = json.get();
    aside(text.len() > LARGE_BYTES, || serde_json::from_str(text))
        .map_err(|error| ReadError::Doubtful(format!("{what}: {error}")))
}

pub fn doubt(what: impl std::fmt::Display) -> ReadError {
    ReadError::Doubtful(what.to_string())
}
