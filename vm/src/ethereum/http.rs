//! The HTTP half of an EVM provider: [`Channel`] as an alloy transport.

use std::{fmt, task};

use alloy::{
    rpc::json_rpc::{RequestPacket, Response, ResponsePacket},
    transports::{TransportError, TransportErrorKind, TransportFut},
};
use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

use crate::{
    LARGE_BYTES, aside,
    http::{Channel, PostError},
};

/// A provider's [`Channel`] for alloy: one POST for each packet, within the channel's limits.
#[derive(Clone)]
pub struct Http(pub Channel);

impl Http {
    async fn send(self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let most = packet.len();
        let body = serde_json::to_vec(&packet).map_err(TransportError::ser_err)?;
        let answer = match self.0.post(body).await {
            Ok(answer) => answer,
            Err(PostError::Status { status, body }) => {
                let failed = || TransportErrorKind::http_error(status, String::new());
                return refusal(&packet, status, &body).ok_or_else(failed);
            }
            Err(PostError::Failed(why)) => return Err(TransportErrorKind::custom_str(&why)),
            Err(error @ PostError::TooLarge) => return Err(TransportErrorKind::custom(error)),
        };
        let packet = aside(answer.len() > LARGE_BYTES, || read(&answer, most));
        packet.map_err(|error| TransportErrorKind::custom(Unreadable(error)))
    }
}

/// Some providers answer one call's refusal with a status of their own; nothing but a refusal is
/// taken from such an answer.
fn refusal(asked: &RequestPacket, status: u16, body: &[u8]) -> Option<ResponsePacket> {
    let alone = matches!(asked, RequestPacket::Single(_));
    if !alone || !matches!(status, 400 | 404 | 422 | 500) {
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

/// The body is no JSON-RPC answer.
#[derive(Debug, thiserror::Error)]
#[error("unreadable answer: {0}")]
pub struct Unreadable(serde_json::Error);

impl tower::Service<RequestPacket> for Http {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), Self::Error>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        Box::pin(self.clone().send(packet))
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
