//! The HTTP half of a provider: one POST per round trip, as an alloy transport.
//!
//! A node is not trusted to behave: answers are capped in size and time, never decompressed, and
//! redirects are not followed. The URL may hold credentials and stays out of every error.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    task,
    time::{Duration, Instant},
};

use alloy::{
    rpc::json_rpc::{RequestPacket, ResponsePacket},
    transports::{TransportError, TransportErrorKind, TransportFut},
};
use reqwest::{
    StatusCode,
    header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER},
    redirect::Policy,
};

use crate::{Endpoint, SpecError, types::ChainId};

/// A receipt of a full block of logs is below this; nothing we ask for is larger.
const MAX_ANSWER: usize = 8 << 20;

/// See the module.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

struct Inner {
    client: reqwest::Client,
    url: url::Url,
    chain: String,
    provider: String,
    meters: OnceLock<Meters>,
}

/// Made at first use, when the recorder is installed.
struct Meters {
    requests: metrics::Counter,
    seconds: metrics::Histogram,
}

impl Http {
    pub fn new(chain: &ChainId, endpoint: &Endpoint) -> Result<Self, SpecError> {
        let client = reqwest::Client::builder()
            .timeout(endpoint.timeout)
            .connect_timeout(endpoint.timeout)
            .redirect(Policy::none())
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .tcp_nodelay(true)
            .build()
            .map_err(|error| SpecError(format!("{}: {}", endpoint.name(), cause(&error))))?;
        Ok(Self(Arc::new(Inner {
            client,
            url: endpoint.url.clone(),
            chain: chain.to_string(),
            provider: endpoint.name(),
            meters: OnceLock::new(),
        })))
    }

    async fn send(self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let inner = &self.0;
        let meters = inner.meters();
        meters.requests.increment(1);
        let started = Instant::now();
        let body = inner.exchange(&packet).await;
        meters.seconds.record(started.elapsed());
        serde_json::from_slice(&body?)
            .map_err(|error| TransportErrorKind::custom(Unreadable(error)))
    }
}

impl Inner {
    async fn exchange(&self, packet: &RequestPacket) -> Result<Vec<u8>, TransportError> {
        let mut response = self
            .client
            .post(self.url.clone())
            .json(packet)
            .send()
            .await
            .map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(TransportErrorKind::http_error_with_retry_after(
                status.as_u16(),
                String::new(),
                retry_after(status, response.headers()),
            ));
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(TransportErrorKind::custom_str("compressed answer"));
        }
        let length = response.content_length().unwrap_or_default();
        let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(MAX_ANSWER));
        if length > MAX_ANSWER as u64 {
            return Err(TransportErrorKind::custom_str("answer too large"));
        }
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(TransportErrorKind::custom_str("answer too large"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn meters(&self) -> &Meters {
        self.meters.get_or_init(|| {
            let labels = [
                ("chain", self.chain.clone()),
                ("provider", self.provider.clone()),
            ];
            Meters {
                requests: metrics::counter!("intentd_provider_requests_total", &labels),
                seconds: metrics::histogram!("intentd_provider_request_seconds", &labels),
            }
        })
    }
}

/// The body is no JSON-RPC answer.
#[derive(Debug, thiserror::Error)]
#[error("unreadable answer: {0}")]
pub struct Unreadable(serde_json::Error);

/// The delay that a provider asks for, when it is in seconds.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let asked = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok();
    let limited =
        status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
    asked.filter(|_| limited).map(Duration::from_secs)
}

fn failed(error: reqwest::Error) -> TransportError {
    TransportErrorKind::custom_str(&cause(&error))
}

/// What went wrong, without the URL.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".into();
    }
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if error.source().is_some() {
        cause.to_string()
    } else {
        "request failed".into()
    }
}

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
