//! JSON-RPC over a provider's [`Channel`]: calls that leave in one POST, and the answers to them.

use std::fmt;

use alloy::rpc::json_rpc::{Response, ResponsePacket};
use serde::{
    Deserialize, Serialize,
    de::{
        DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};
use serde_json::Value;

use super::rpc::Call;
use crate::{
    LARGE_BYTES, aside,
    http::{Channel, PostError},
};

/// A call as it is sent.
#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: &'a Value,
}

impl<'a> Request<'a> {
    fn of((id, call): (u64, &'a Call)) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            method: call.method,
            params: &call.params,
        }
    }
}

/// Why calls have no answers.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("answer too large")]
    TooLarge,
    #[error("{0}")]
    Failed(String),
    /// The body is no JSON-RPC answer.
    #[error("unreadable answer: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Some calls have none.
    #[error("an answer is missing")]
    Missing,
}

/// Without the answer's text, which takes its share of memory.
impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Status { status, .. } => Self::Status(status),
            PostError::TooLarge => Self::TooLarge,
            PostError::Failed(why) => Self::Failed(why),
        }
    }
}

/// Sends `calls` in one POST, within the channel's limits: one by itself, several as a batch. Their ids count from
/// `first`.
pub async fn post(
    channel: &Channel,
    calls: &[Call],
    first: u64,
) -> Result<ResponsePacket, Failure> {
    let answer = match channel.post(body(calls, first)?).await {
        Ok(answer) => answer,
        Err(PostError::Status { status, body }) => {
            return refusal(calls.len(), status, &body).ok_or(Failure::Status(status));
        }
        Err(error) => return Err(error.into()),
    };
    let packet = aside(answer.len() > LARGE_BYTES, || read(&answer, calls.len()));
    packet.map_err(Failure::from)
}

fn body(calls: &[Call], first: u64) -> serde_json::Result<Vec<u8>> {
    let requests: Vec<_> = (first..).zip(calls).map(Request::of).collect();
    match &requests[..] {
        [alone] => serde_json::to_vec(alone),
        several => serde_json::to_vec(several),
    }
}

/// Some providers answer one call's refusal with a status of their own; nothing but a refusal is
/// taken from such an answer.
fn refusal(calls: usize, status: u16, body: &[u8]) -> Option<ResponsePacket> {
    if calls != 1 || !matches!(status, 400 | 404 | 422 | 500) {
        return None;
    }
    let packet = read(body, 1).ok()?;
    packet.as_single()?.is_error().then_some(packet)
}

/// The answers in `body` to `most` calls. More of them are none: small answers take many times the memory of
/// their text.
fn read(body: &[u8], most: usize) -> Result<ResponsePacket, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_slice(body);
    let packet = Packet { most }.deserialize(&mut text)?;
    text.end()?;
    Ok(packet)
}

struct Packet {
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Packet {
    type Value = ResponsePacket;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<ResponsePacket, D::Error> {
        text.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Packet {
    type Value = ResponsePacket;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an answer, or {} at most", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut answers: A) -> Result<ResponsePacket, A::Error> {
        let mut read = Vec::with_capacity(self.most);
        while let Some(answer) = answers.next_element()? {
            if read.len() == self.most {
                return Err(A::Error::invalid_length(self.most + 1, &self));
            }
            read.push(answer);
        }
        Ok(ResponsePacket::Batch(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, answer: A) -> Result<ResponsePacket, A::Error> {
        let answer = Response::deserialize(MapAccessDeserializer::new(answer))?;
        Ok(ResponsePacket::Single(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_answers_are_read_than_calls_were_asked() {
        let one = r#"{"jsonrpc":"2.0","id":1,"result":0}"#;
        let batch = |times: usize| format!("[{}]", vec![one; times].join(","));
        let count = |text: &str, most: usize| match read(text.as_bytes(), most) {
            Ok(ResponsePacket::Single(_)) => Some(1),
            Ok(ResponsePacket::Batch(answers)) => Some(answers.len()),
            Err(_) => None,
        };
        assert_eq!(count(one, 3), Some(1));
        for times in 0..=3 {
            assert_eq!(count(&batch(times), 3), Some(times));
        }
        assert_eq!(count(&batch(4), 3), None);
        for bad in ["", "7", r#"{"id":1}"#, "[{}]", "[", "[] 7"] {
            assert_eq!(count(bad, 3), None, "{bad}");
        }
    }
}
