//! Rounds of JSON-RPC calls to one node: calls that do not depend on each other leave together.
//!
//! Knows nothing of what the answers mean, except that the node must be of the configured chain.

use std::{
    slice,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use alloy::rpc::json_rpc::{ResponsePacket, ResponsePayload};
use futures::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::{
    http::{Failure, post},
    raw::Quantity,
};
use crate::http::Channel;
use crate::protocol::text::short;
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
    chain_id: U256,
    /// The id of the next call.
    next_id: AtomicU64,
    /// The node said which chain it is, and nothing failed since.
    identified: AtomicBool,
    /// The largest batch that worked and the smallest that did not.
    batch_worked: AtomicUsize,
    batch_failed: AtomicUsize,
}

impl Rpc {
    pub fn new(chain: &ChainId, chain_id: U256, endpoint: &Endpoint) -> Self {
        Self {
            channel: Channel::new(chain, endpoint),
            chain_id,
            next_id: AtomicU64::new(0),
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

    async fn batch(&self, calls: &[Call]) -> Result<Vec<Answer>, Failure> {
        let first = self.ids(calls.len());
        let said = match post(&self.channel, calls, first).await? {
            ResponsePacket::Single(one) => vec![one],
            ResponsePacket::Batch(all) => all,
        };
        let mut answers: Vec<Option<Answer>> = vec![None; calls.len()];
        for one in said {
            let at = one.id.as_number().and_then(|id| id.checked_sub(first));
            let at = at.and_then(|at| usize::try_from(at).ok());
            let answer = at.and_then(|at| answers.get_mut(at));
            // Of two answers to one call the first counts.
            if let Some(answer) = answer.filter(|answer| answer.is_none()) {
                *answer = Some(answered(one.payload));
            }
        }
        let all: Option<Vec<_>> = answers.into_iter().collect();
        all.ok_or(Failure::Missing)
    }

    async fn singly(&self, calls: &[Call]) -> Result<Vec<Answer>, ReadError> {
        let answers = join_all(calls.iter().map(|call| self.alone(call))).await;
        let answers = answers.into_iter();
        answers.map(|answer| answer.map_err(failed)).collect()
    }

    async fn alone(&self, call: &Call) -> Result<Answer, Failure> {
        let call = slice::from_ref(call);
        match post(&self.channel, call, self.ids(1)).await? {
            ResponsePacket::Single(one) => Ok(answered(one.payload)),
            ResponsePacket::Batch(_) => Err(Failure::Missing),
        }
    }

    /// The first of so many new ids.
    fn ids(&self, count: usize) -> u64 {
        self.next_id.fetch_add(count as u64, Relaxed)
    }
}

fn failed(failure: Failure) -> ReadError {
    match failure {
        Failure::TooLarge => ReadError::TooLarge,
        failure => ReadError::Unavailable(short(&failure.to_string())),
    }
}

/// A node's own error is an answer.
fn answered(payload: ResponsePayload) -> Answer {
    match payload {
        ResponsePayload::Success(json) => Ok(json),
        ResponsePayload::Failure(error) => Err(Refused {
            code: error.code,
            message: error.message.chars().take(200).collect(),
            data: error
                .data
                .filter(|data| data.get().len() <= MAX_DATA)
                .map(|data| data.get().into()),
        }),
    }
}

/// Whether a provider that takes no batches (of this size) could have answered so.
fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Missing => true,
        Failure::Status(status) => !matches!(status, 401 | 429),
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
        .map_err(|error| ReadError::Doubtful(format!("{what}: {}", short(&error.to_string()))))
}

pub fn doubt(what: impl std::fmt::Display) -> ReadError {
    ReadError::Doubtful(what.to_string())
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::http::inside::{self, Asked, HOST};

    /// A node that answers each call with its parameters; `change` changes what it says.
    fn node(name: &str, change: fn(&mut Value)) -> Rpc {
        let host = format!("{name}{HOST}");
        let answer = |question: &Value| {
            let result = match question["method"].as_str() {
                Some("eth_chainId") => json!("0x7"),
                _ => question["params"].clone(),
            };
            json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
        };
        let provider = move |asked: &Asked<'_>| {
            let asked: Value = serde_json::from_slice(asked.body).unwrap();
            let mut said: Value = match &asked {
                Value::Array(questions) => questions.iter().map(answer).collect(),
                question => answer(question),
            };
            change(&mut said);
            Some((200, said.to_string().into_bytes()))
        };
        inside::register(&host, Arc::new(provider));
        let endpoint = Endpoint {
            position: 1,
            url: format!("http://{host}/").parse().unwrap(),
            timeout: Duration::from_secs(1),
            longest: 1 << 10,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        Rpc::new(&ChainId::new("here"), U256::from(7), &endpoint)
    }

    fn calls() -> Vec<Call> {
        vec![call("one", json!([1])), call("two", json!([2]))]
    }

    /// With the question which chain it is.
    const BATCH: usize = 3;

    type Change = fn(&mut Value);

    /// Gives the second answer of a batch the id that `id` makes.
    fn renumber(said: &mut Value, id: fn(&[Value]) -> Value) {
        if let Some(all) = said.as_array_mut() {
            let id = id(all);
            all[1]["id"] = id;
        }
    }

    #[tokio::test]
    async fn answers_of_a_batch_are_told_apart_by_their_ids() {
        // Where a call has no answer the calls are sent again, one by one.
        let changes: [(&str, Change, usize); 5] = [
            ("plain", |_| {}, usize::MAX),
            (
                "turned",
                |said| said.as_array_mut().unwrap().reverse(),
                usize::MAX,
            ),
            (
                "twice",
                |said| renumber(said, |all| all[0]["id"].clone()),
                BATCH,
            ),
            ("foreign", |said| renumber(said, |_| json!(77)), BATCH),
            (
                "text",
                |said| renumber(said, |all| json!(all[1]["id"].to_string())),
                BATCH,
            ),
        ];
        for (name, change, failed) in changes {
            let rpc = node(name, change);
            let answers = rpc.round(calls()).await.unwrap();
            let texts: Vec<_> = answers.iter().flatten().map(|said| said.get()).collect();
            assert_eq!(texts, ["[1]", "[2]"], "{name}");
            assert_eq!(rpc.batch_failed.load(Relaxed), failed, "{name}");
        }
    }

    #[tokio::test]
    async fn more_answers_than_calls_and_a_list_for_one_call_are_no_answers() {
        let more = node("more", |said| {
            let all = said.as_array_mut().unwrap();
            all.push(all[0].clone());
        });
        let list = node("list", |said| *said = json!([said.clone()]));
        list.identified.store(true, Relaxed);
        let one = list.round(vec![call("one", json!([1]))]).await;
        for answers in [more.round(calls()).await, one] {
            assert!(
                matches!(answers, Err(ReadError::Unavailable(_))),
                "{answers:?}"
            );
        }
    }
}
