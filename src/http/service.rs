//! One request from the transport to its handler and back: framing, gate, body, deadline, metrics.

use std::{
    convert::Infallible,
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method,
    body::{Frame, Incoming},
    header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING},
    http::request::Parts,
    upgrade::OnUpgrade,
};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};
use vm::permits::Permits;

use super::{
    ApiError, Body, Request, Response, Surface,
    addresses::{AddressLimit, AddressPermit, MessageLimit, SocketPermit},
    auth::{Admission, StandingNames},
    body::{Bodies, Held},
    forwarded::Proxies,
    framing,
    limit::Standing,
    meters::Meters,
    router::{Access, Endpoint, Params},
    server::Link,
    socket,
    surface::Limits,
};

/// Longest path, in characters, that an answer repeats.
const ECHO: usize = 256;

/// The body of an answer on its way to the transport.
type Outgoing = UnsyncBoxBody<Bytes, Infallible>;

/// The caller of a request.
struct Caller {
    address: IpAddr,
    /// The caller's standing in its limit; `None` where no limit applies.
    standing: Option<Standing>,
}

/// A [`Surface`] that answers requests.
pub struct App {
    surface: Surface,
    /// Of protected requests under way. Callers without a key have half of them where there are keys, rounded up.
    permits: Permits,
    all_sockets: Arc<Semaphore>,
    requests: Arc<AddressLimit>,
    /// Refusals of requests that do not count in `requests`.
    refusals: Arc<AddressLimit>,
    sockets: Arc<AddressLimit>,
    messages: Arc<MessageLimit>,
    bodies: Bodies,
    /// Of requests for unknown paths.
    unmatched: Meters,
    started: Instant,
}

impl App {
    pub(super) fn new(surface: Surface) -> Self {
        let requests = surface.limits.requests;
        let of_strangers = match surface.gate.has_keys() {
            true => requests.div_ceil(2),
            false => requests,
        };
        Self {
            permits: Permits::new(requests, of_strangers),
            all_sockets: Arc::new(Semaphore::new(surface.limits.sockets)),
            requests: AddressLimit::of(requests, surface.limits.each.requests),
            refusals: AddressLimit::new(surface.limits.each.requests),
            sockets: AddressLimit::new(surface.limits.each.sockets),
            messages: MessageLimit::new(surface.limits.each.messages),
            bodies: Bodies::new(surface.limits),
            unmatched: Meters::default(),
            started: Instant::now(),
            surface,
        }
    }

    /// The name of this listener in logs and metrics.
    pub fn name(&self) -> &'static str {
        self.surface.name
    }

    /// The proxies whose headers name the client.
    pub fn proxies(&self) -> &Proxies {
        &self.surface.proxies
    }

    /// The limits of this listener.
    pub fn limits(&self) -> &Limits {
        &self.surface.limits
    }

    /// Answers a request; never fails and never takes longer than the limits allow.
    pub(super) async fn answer(
        &self,
        link: &Arc<Link>,
        request: hyper::Request<Incoming>,
    ) -> hyper::Response<Outgoing> {
        let signals = &link.signals;
        let _answering = signals.answering();
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let mut response = match &self.surface.cors {
            Some(cors) if !signals.ambiguous() => {
                let handle =
                    |request| async { Ok::<_, Infallible>(self.handled(link, request).await) };
                let Ok(response) = cors.layer(service_fn(handle)).oneshot(request).await;
                response
            }
            _ => self.handled(link, request).await,
        };
        // After a chunked body only the HTTP library knows where the next request starts.
        if chunked || signals.ambiguous() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn handled(
        &self,
        link: &Link,
        mut request: hyper::Request<Incoming>,
    ) -> hyper::Response<Outgoing> {
        let begun = Instant::now();
        let upgraded = hyper::upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        let found = self.surface.router.find(&method, self.path(&parts));
        let (route, meters) = found
            .as_ref()
            .map_or(("unmatched", &self.unmatched), |&(found, _)| {
                (found.path, &found.meters)
            });
        let client = self.surface.proxies.client(link.peer.ip(), &parts.headers);
        let mut caller = Caller {
            address: client,
            standing: None,
        };
        let mut permit = None;
        let answering = async {
            framing::single_meaning(link.signals.ambiguous(), &parts.headers)?;
            let entered = self.requests.enter(client).ok_or_else(|| {
                let message = "Too many requests of this address are being answered";
                ApiError::unavailable("OVERLOADED", message, client)
            })?;
            permit = Some(entered);
            self.routed(parts, body, found, &mut caller).await
        };
        let answered = answering.await;
        if let Err(ApiError::RateLimited(standing)) = &answered {
            // The limit may be the route's own.
            caller.standing = Some(*standing);
        }
        let counted = answered.and_then(|response| self.counted(response, link, client));
        let (mut response, socket) =
            counted.unwrap_or_else(|error| ((self.surface.errors.answer)(error), None));
        if let Some(standing) = &caller.standing {
            put_standing(&mut response, self.surface.gate.names, standing);
        }
        if let Some(finish) = &self.surface.finish {
            response = finish(route, response);
        }
        let (surface, status, elapsed) = (self.surface.name, response.status, begun.elapsed());
        meters.record([route, surface], status, elapsed);
        tracing::debug!(surface, %method, route, status = status.as_u16(), elapsed_us = elapsed.as_micros(), "request");
        let stays = socket.map(|permit| Stays {
            permit,
            upgraded,
            ping: self.surface.limits.ping,
        });
        // A refusal may wait for its reader as long as an answer.
        let permit = permit.or_else(|| self.refusals.enter(client));
        transport(response, &method, link, stays, permit)
    }

    /// Takes a permit for a long-lived answer; 503 when none is free.
    fn counted(
        &self,
        response: Response,
        link: &Link,
        client: IpAddr,
    ) -> Result<(Response, Option<Arc<SocketPermit>>), ApiError> {
        if response.body.bytes().is_some() {
            return Ok((response, None));
        }
        let full = |error| {
            let message = "Too many subscribers are connected";
            ApiError::unavailable("TOO_MANY_SOCKETS", message, error)
        };
        let of_address = self.sockets.enter(client);
        let of_address = of_address.ok_or_else(|| full(format!("{client} has its share")))?;
        let of_all = self.all_sockets.clone().try_acquire_owned();
        let of_all = of_all.map_err(|error| full(error.to_string()))?;
        let messages = self.messages.clone();
        let permit = SocketPermit::new(self.surface.name, of_all, of_address, messages);
        link.count_as_socket(&permit);
        Ok((response, Some(permit)))
    }

    async fn routed(
        &self,
        parts: Parts,
        body: Incoming,
        found: Option<(&Arc<Endpoint>, Params)>,
        caller: &mut Caller,
    ) -> Result<Response, ApiError> {
        let access = found.as_ref().map_or_else(
            || Access::unrouted(self.path(&parts)),
            |(endpoint, _)| endpoint.access,
        );
        let admission = self.admit(access, &parts, caller)?;
        let Some((endpoint, params)) = found else {
            return Err(self.unrouted(&parts));
        };
        let body = match parts.method {
            Method::GET | Method::HEAD => Held::default(),
            _ => self.bodies.read(body).await?,
        };
        // After the body is read: a slow body must not hold a permit.
        let is_stranger = admission.key.is_none();
        let permit = matches!(access, Access::Protected).then(|| {
            let permit = self.permits.try_one(is_stranger);
            permit.ok_or_else(|| ApiError::overloaded("no permit is free"))
        });
        let _permit = permit.transpose()?;
        let toll = admission.toll.clone();
        let request = Request {
            toll: toll.clone(),
            target: target(&parts),
            method: parts.method,
            version: parts.version,
            headers: parts.headers,
            body: body.bytes.clone(),
            client: caller.address,
            scopes: admission
                .key
                .as_ref()
                .map_or_else(Arc::default, |known| known.scopes.clone()),
            key: admission.key.map(|known| known.label.clone()),
            params,
        };
        let handled = AssertUnwindSafe((endpoint.call)(request)).catch_unwind();
        let handled = tokio::time::timeout(self.surface.limits.deadline, handled).await;
        caller.standing = toll.standing().or(caller.standing);
        match handled {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => {
                metrics::counter!("intentd_http_panics_total", "route" => endpoint.path)
                    .increment(1);
                Err(ApiError::internal("the handler panicked"))
            }
            Err(_) => Err(ApiError::Deadline),
        }
    }

    /// The path for the route lookup.
    fn path<'a>(&self, parts: &'a Parts) -> &'a str {
        let path = parts.uri.path();
        if !self.surface.lenient {
            return path;
        }
        let slashes = path.len() - path.trim_start_matches('/').len();
        path.get(slashes.saturating_sub(1)..).unwrap_or(path)
    }

    fn unrouted(&self, parts: &Parts) -> ApiError {
        let allowed = match self.surface.lenient {
            true => self.surface.router.allowed(self.path(parts)),
            false => String::new(),
        };
        let (method, path) = (parts.method.to_string(), shown(parts));
        match allowed.is_empty() {
            true => ApiError::NoRoute { method, path },
            false => ApiError::WrongMethod {
                method,
                path,
                allowed,
            },
        }
    }

    fn admit(
        &self,
        access: Access,
        parts: &Parts,
        caller: &mut Caller,
    ) -> Result<Admission, ApiError> {
        let socket = matches!(access, Access::Socket);
        let asked = socket.then(|| query_key(parts)).flatten();
        let shown = self.surface.gate.key(&parts.headers);
        let key = shown.or(asked.as_deref().map(str::as_bytes));
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let admitted = self.surface.gate.admit(access, key, caller.address, now);
        caller.standing = match &admitted {
            Ok(admission) => admission.standing,
            Err(denial) => denial.standing,
        };
        let admission = admitted.map_err(|denial| denial.error)?;
        match socket && key.is_some() && admission.key.is_none() {
            true => Err(ApiError::Unauthorized),
            false => Ok(admission),
        }
    }
}

/// The key in the query, known or not.
fn query_key(parts: &Parts) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(parts.uri.query()?.as_bytes());
    let (_, key) = pairs.find(|(name, _)| name == "apiKey")?;
    Some(key.into_owned())
}

/// What a long-lived answer needs.
struct Stays {
    permit: Arc<SocketPermit>,
    upgraded: OnUpgrade,
    ping: Duration,
}

fn target(parts: &Parts) -> String {
    parts
        .uri
        .path_and_query()
        .map_or_else(String::new, ToString::to_string)
}

/// The target as answers repeat it.
fn shown(parts: &Parts) -> String {
    target(parts).chars().take(ECHO).collect()
}

fn put_standing(response: &mut Response, names: StandingNames, standing: &Standing) {
    let [limit, remaining, reset] = names;
    response.put_number(limit, standing.limit.into());
    response.put_number(remaining, standing.remaining.into());
    response.put_number(reset, standing.reset_seconds());
}

/// The answer for the HTTP library. Its bytes hold `permit` until they are sent or dropped. The body could not:
/// over HTTP/2 the library takes the bytes out of it before the peer has room for them. Without a permit there are no
/// bytes, so that the answer waits for no reader. A long-lived answer holds its own permit.
fn transport(
    response: Response,
    method: &Method,
    link: &Link,
    stays: Option<Stays>,
    permit: Option<AddressPermit>,
) -> hyper::Response<Outgoing> {
    let Response {
        status,
        mut headers,
        body,
    } = response;
    let body = match (body, stays) {
        (Body::Whole(bytes), _) => {
            let bytes = permit.map_or_else(Bytes::new, |permit| permit.holding(bytes));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            Full::new(bytes).boxed_unsync()
        }
        (Body::Stream(pieces), Some(Stays { permit, .. })) => {
            let pieces = pieces.map(move |piece| {
                let _permit = &permit;
                Ok(Frame::data(piece))
            });
            let ending = link.ending.clone().cancelled_owned();
            StreamBody::new(pieces.take_until(ending)).boxed_unsync()
        }
        (Body::Upgrade(upgrade), Some(stays)) => {
            let ending = link.ending.clone();
            let run = socket::run(stays.upgraded, upgrade, stays.ping, ending, stays.permit);
            link.tasks.spawn(run);
            Outgoing::default()
        }
        (Body::Stream(_) | Body::Upgrade(_), None) => Outgoing::default(),
    };
    let body = match *method {
        Method::HEAD => Outgoing::default(),
        _ => body,
    };
    let mut transported = hyper::Response::new(body);
    *transported.status_mut() = status;
    *transported.headers_mut() = headers;
    transported
}
