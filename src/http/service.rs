//! One request from the transport to its handler and back: framing, gate, body, deadline, metrics.

use std::{
    convert::Infallible, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant,
};

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Incoming,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
        TRANSFER_ENCODING,
    },
    http::request::Parts,
};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};

use super::{
    ApiError, Request, Response, Surface,
    auth::{self, Admission, KEY},
    body::{Bodies, Held},
    limit::Standing,
    line::Signals,
    router::{Access, Endpoint, Params},
    server::Limits,
};

/// Fields that decide something here and therefore may stand only once.
const SINGLE: [HeaderName; 5] = [HOST, CONTENT_TYPE, CONTENT_LENGTH, AUTHORIZATION, KEY];
/// Longest path that an answer repeats.
const ECHO: usize = 256;

/// A [`Surface`] at work.
pub struct App {
    surface: Surface,
    slots: Semaphore,
    bodies: Bodies,
    started: Instant,
}

impl App {
    pub(super) fn new(surface: Surface) -> Self {
        Self {
            slots: Semaphore::new(surface.limits.requests),
            bodies: Bodies::new(surface.limits),
            started: Instant::now(),
            surface,
        }
    }

    /// What this listener's callers may take.
    pub fn limits(&self) -> &Limits {
        &self.surface.limits
    }

    /// The answer to a request; never fails and never takes longer than its limits.
    pub(super) async fn answer(
        &self,
        signals: &Arc<Signals>,
        peer: SocketAddr,
        request: hyper::Request<Incoming>,
    ) -> hyper::Response<Full<Bytes>> {
        let _answering = signals.answering();
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let mut response = match &self.surface.cors {
            Some(cors) if !signals.ambiguous() => {
                let handle = |request| async {
                    Ok::<_, Infallible>(self.handled(signals, peer, request).await)
                };
                let Ok(response) = cors.layer(service_fn(handle)).oneshot(request).await;
                response
            }
            _ => self.handled(signals, peer, request).await,
        };
        // After a chunked body the next request's start is the library's word alone.
        if chunked || signals.ambiguous() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn handled(
        &self,
        signals: &Signals,
        peer: SocketAddr,
        request: hyper::Request<Incoming>,
    ) -> hyper::Response<Full<Bytes>> {
        let begun = Instant::now();
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        let found = self.surface.router.find(&method, parts.uri.path());
        let route = found.as_ref().map_or("unmatched", |(found, _)| found.path);
        let mut standing = None;
        let answered = match frame(signals, &parts.headers) {
            Ok(()) => self.routed(parts, body, found, (peer, &mut standing)).await,
            Err(error) => Err(error),
        };
        let mut response = answered.unwrap_or_else(self.surface.errors.answer);
        if let Some(standing) = standing {
            put_standing(&mut response, &standing);
        }
        if let Some(finish) = &self.surface.finish {
            response = finish(route, response);
        }
        self.record(route, &method, response.status, begun);
        transport(response, &method)
    }

    async fn routed(
        &self,
        parts: Parts,
        body: Incoming,
        found: Option<(&Arc<Endpoint>, Params)>,
        (peer, standing): (SocketAddr, &mut Option<Standing>),
    ) -> Result<Response, ApiError> {
        let access = found.as_ref().map_or_else(
            || auth::unrouted(parts.uri.path()),
            |(endpoint, _)| endpoint.access,
        );
        let admission = self.admit(access, &parts, peer, standing)?;
        let Some((endpoint, params)) = found else {
            return Err(no_route(&parts));
        };
        let body = match parts.method {
            Method::GET | Method::HEAD => Held::nothing(),
            _ => self.bodies.read(body).await?,
        };
        // Only now: a body that drips in would hold the slot all the while.
        let _slot = match access {
            Access::Protected => Some(self.slots.try_acquire().map_err(|error| {
                ApiError::unavailable("OVERLOADED", "Too many requests are being answered", error)
            })?),
            Access::Open | Access::Counted => None,
        };
        let request = Request {
            target: target(&parts),
            method: parts.method,
            headers: parts.headers,
            body: body.bytes.clone(),
            peer,
            key: admission.key,
            params,
        };
        let handled = AssertUnwindSafe((endpoint.call)(request)).catch_unwind();
        match tokio::time::timeout(self.surface.limits.deadline, handled).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => {
                metrics::counter!("intentd_http_panics_total", "route" => endpoint.path)
                    .increment(1);
                Err(ApiError::internal("the handler panicked"))
            }
            Err(_) => Err(ApiError::Deadline),
        }
    }

    fn record(&self, route: &'static str, method: &Method, status: StatusCode, begun: Instant) {
        let surface = self.surface.name;
        let elapsed = begun.elapsed();
        let class = ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .get(usize::from(status.as_u16() / 100).wrapping_sub(1))
            .copied()
            .unwrap_or("other");
        metrics::counter!("intentd_http_requests_total", "route" => route, "status" => class, "surface" => surface)
        .increment(1);
        metrics::histogram!("intentd_http_request_seconds", "route" => route, "surface" => surface)
            .record(elapsed);
        tracing::debug!(surface, %method, route, status = status.as_u16(), elapsed_us = elapsed.as_micros(), "request");
    }

    fn admit(
        &self,
        access: Access,
        parts: &Parts,
        peer: SocketAddr,
        standing: &mut Option<Standing>,
    ) -> Result<Admission, ApiError> {
        let key = self.surface.gate.key(&parts.headers);
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let admitted = self.surface.gate.admit(access, key, peer.ip(), now);
        *standing = match &admitted {
            Ok(admission) => admission.standing,
            Err(ApiError::RateLimited(standing)) => Some(*standing),
            Err(_) => None,
        };
        admitted
    }
}

/// Requests that two readers could understand differently.
fn frame(signals: &Signals, headers: &HeaderMap) -> Result<(), ApiError> {
    if signals.ambiguous() {
        return Err(ApiError::refused(
            "AMBIGUOUS_LENGTH",
            "Content-Length and Transfer-Encoding in one request",
        ));
    }
    for name in &SINGLE {
        if headers.get_all(name).iter().nth(1).is_some() {
            return Err(ApiError::refused(
                "DUPLICATE_HEADER",
                format!("Header {name} stands more than once"),
            ));
        }
    }
    Ok(())
}

fn target(parts: &Parts) -> String {
    parts
        .uri
        .path_and_query()
        .map_or_else(String::new, ToString::to_string)
}

fn no_route(parts: &Parts) -> ApiError {
    ApiError::NoRoute {
        method: parts.method.to_string(),
        path: target(parts).chars().take(ECHO).collect(),
    }
}

fn put_standing(response: &mut Response, standing: &Standing) {
    response.put_number("x-ratelimit-limit", standing.limit.into());
    response.put_number("x-ratelimit-remaining", standing.remaining.into());
    response.put_number("x-ratelimit-reset", standing.reset_seconds());
}

fn transport(response: Response, method: &Method) -> hyper::Response<Full<Bytes>> {
    let Response {
        status,
        mut headers,
        body,
    } = response;
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let body = if method == Method::HEAD {
        Bytes::new()
    } else {
        body
    };
    let mut transported = hyper::Response::new(Full::new(body));
    *transported.status_mut() = status;
    *transported.headers_mut() = headers;
    transported
}
