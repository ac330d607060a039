//! Makes a [`Channel`] the transport of solana-client.

use std::{collections::HashSet, fmt, io};

use async_trait::async_trait;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use solana_client::{
    client_error::{ClientError, ClientErrorKind, Result as ClientResult},
    rpc_request::{RpcError, RpcRequest, RpcResponseErrorData},
    rpc_sender::{RpcSender, RpcTransportStats},
};

use crate::{
    LARGE_BYTES, aside,
    http::{Channel, PostError},
    protocol::text,
};

/// The most values of one answer: in memory each takes many times its text.
pub const MAX_VALUES: usize = 200_000;

/// A provider's [`Channel`] for solana-client: one POST for each call, within the channel's limits.
pub struct Sender {
    channel: Channel,
    /// The most values of one answer.
    most: usize,
}

impl Sender {
    /// Answers of more than `most` values are not read.
    pub fn new(channel: Channel, most: usize) -> Self {
        Self { channel, most }
    }

    /// What was answered with status `status`, if it is a refusal of the call; some providers send those so.
    fn refusal(&self, error: PostError) -> ClientError {
        if let PostError::Status { body, .. } = &error {
            let refused = answer(body, self.most)
                .err()
                .filter(|error| code(error).is_some());
            if let Some(refused) = refused {
                return refused;
            }
        }
        failed(error)
    }
}

#[async_trait]
impl RpcSender for Sender {
    async fn send(&self, request: RpcRequest, params: Value) -> ClientResult<Value> {
        self.channel.admit(1).map_err(failed)?;
        let body = request.build_request_json(1, params).to_string();
        match self.channel.post(body.into_bytes()).await {
            Ok(body) => aside(body.len() > LARGE_BYTES, || answer(&body, self.most)),
            Err(error) => Err(self.refusal(error)),
        }
    }

    /// Nothing: the channel has metrics of its own.
    fn get_transport_stats(&self) -> RpcTransportStats {
        RpcTransportStats::default()
    }

    /// The provider's name: the URL may hold credentials.
    fn url(&self) -> String {
        self.channel.provider().to_owned()
    }
}

/// The code of a node's refusal.
pub fn code(error: &ClientError) -> Option<i64> {
    match error.kind() {
        ClientErrorKind::RpcError(RpcError::RpcResponseError { code, .. }) => Some(*code),
        _ => None,
    }
}

/// Why a round trip gave no body, where that is the error.
pub fn post_error(error: &ClientError) -> Option<&PostError> {
    match error.kind() {
        ClientErrorKind::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn failed(error: PostError) -> ClientError {
    io::Error::other(error).into()
}

/// A node's answer, of which one part is there.
#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    code: i64,
    message: String,
}

/// Null is a result, too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads an answer. Names that stand twice and more values than `most` are refused before any of it is kept.
fn answer(body: &[u8], most: usize) -> ClientResult<Value> {
    let mut left = most;
    let mut text = serde_json::Deserializer::from_slice(body);
    let checked = Check(&mut left).deserialize(&mut text);
    let checked = checked.and_then(|()| text.end());
    checked.map_err(|error| match left {
        0 => failed(PostError::TooLarge),
        _ => unreadable(error),
    })?;
    let answer: Answer = serde_json::from_slice(body).map_err(unreadable)?;
    if let Some(Refused { code, message }) = answer.error {
        let refused = RpcError::RpcResponseError {
            code,
            message: text::short(&message),
            data: RpcResponseErrorData::Empty,
        };
        return Err(refused.into());
    }
    let missing = || failed(PostError::Failed("an answer without a result".into()));
    answer.result.ok_or_else(missing)
}

/// An answer that is no JSON was cut off on its way; one that is no answer contradicts the protocol.
fn unreadable(error: serde_json::Error) -> ClientError {
    match error.is_data() {
        true => error.into(),
        false => failed(PostError::Failed("unreadable answer".into())),
    }
}

/// Goes through JSON without keeping it, and counts down its values.
struct Check<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<(), D::Error> {
        let left = self.0.checked_sub(1);
        *self.0 = left.ok_or_else(|| D::Error::custom("too many values"))?;
        text.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Check(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a name stands twice"));
            }
            fields.next_value_seed(Check(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_one_result_or_one_refusal() {
        let read = |text: &str| answer(text.as_bytes(), MAX_VALUES);
        assert_eq!(
            read(r#"{"id":1,"result":{"a":[7]}}"#).unwrap(),
            json!({"a": [7]})
        );
        assert_eq!(read(r#"{"result":null}"#).unwrap(), Value::Null);
        let refused = read(r#"{"result":null,"error":{"code":-32007,"message":"skipped"}}"#);
        assert_eq!(code(&refused.unwrap_err()), Some(-32007));
        for text in [
            "",
            "{",
            "7",
            "{}",
            r#"{"id":1}"#,
            r#"{"result":1} 2"#,
            r#"{"result":1,"result":2}"#,
            r#"{"result":{"a":1,"a":2}}"#,
            r#"{"result":{"a":1,"\u0061":2}}"#,
            r#"{"error":{"code":"x"}}"#,
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(code(&error), None, "{text}");
        }
    }

    #[test]
    fn answers_of_many_values_are_not_read() {
        let of = |values: usize| format!(r#"{{"result":[{}]}}"#, vec!["0"; values].join(","));
        let read = |text: &str| answer(text.as_bytes(), MAX_VALUES);
        assert!(read(&of(MAX_VALUES - 2)).is_ok());
        assert!(read(&of(MAX_VALUES - 1)).is_err());
        let deep = format!(
            r#"{{"result":{}{}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        assert!(read(&deep).is_err());
    }
}
