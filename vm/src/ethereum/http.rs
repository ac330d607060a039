//! The HTTP half of an EVM provider: [`Channel`] as an alloy transport.

use std::task;

use alloy::{
    rpc::json_rpc::{RequestPacket, ResponsePacket},
    transports::{TransportError, TransportErrorKind, TransportFut},
};

use crate::{
    LARGE_BYTES, aside,
    http::{Channel, PostError},
};

/// See the module.
#[derive(Clone)]
pub struct Http(pub Channel);

impl Http {
    async fn send(self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let body = serde_json::to_vec(&packet).map_err(TransportError::ser_err)?;
        let answer = match self.0.post(body).await {
            Ok(answer) => answer,
            Err(PostError::Status {
                status,
                retry_after,
                body,
            }) => {
                let failed = TransportErrorKind::http_error_with_retry_after;
                return refusal(&packet, status, &body)
                    .ok_or_else(|| failed(status, String::new(), retry_after));
            }
            Err(PostError::Failed(why)) => return Err(TransportErrorKind::custom_str(&why)),
            Err(error @ PostError::TooLarge) => return Err(TransportErrorKind::custom(error)),
        };
        let packet = aside(answer.len() > LARGE_BYTES, || {
            serde_json::from_slice(&answer)
        });
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
    let packet: ResponsePacket = serde_json::from_slice(body).ok()?;
    packet.as_single()?.is_error().then_some(packet)
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
