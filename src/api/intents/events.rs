//! What happens to requests, as it happens: a WebSocket at `/` and `/ws` (guide: protocol 11.16) and
//! Server-Sent Events at `/events`.

use std::{future::ready, sync::Arc};

use futures::FutureExt;
use hyper::{Method, header::HeaderValue};
use serde::Deserialize;
use utoipa::IntoParams;
use vm::B256;

use super::{error::Failure, status::request_id};
use crate::{
    http::{Access, ApiError, Docs, Query, Request, Response, Route, Shape, error::Described},
    integrator::Scope,
    stream::{
        Fanout,
        feed::{self, FOLLOWED},
        session::Session,
        subscriptions::Interest,
    },
};

const EVENTS: &str = "text/event-stream";
const _: () = assert!(FOLLOWED == 100, "the description says so");
/// What a key needs for events of all its requests.
const READ: &str = Scope::RequestsRead.text();

/// The table of this file.
pub static ROUTES: [Route<Fanout>; 3] = [
    socket("/"),
    socket("/ws"),
    Route {
        method: Method::GET,
        path: "/events",
        access: Access::Counted,
        handler: |fanout, request| async move { events(&fanout, &request).await }.boxed(),
        docs: Some(Docs {
            summary: "Stream status changes",
            text: "Status changes as they happen, as Server-Sent Events: of the requests that are named, or of all \
                   that were quoted with the caller's key. Each event's `id` is a position in the log: a client that \
                   comes back with it as `Last-Event-ID` misses nothing that is still kept.",
            group: "Status",
            query: Query::of::<Asked>(),
            body: None,
            answer: Shape::text(EVENTS),
            also: &[Described::of::<Failure>(
                "410",
                "What came behind Last-Event-ID is not kept any more",
                false,
            )],
        }),
    },
];

/// OpenAPI knows no WebSockets.
const fn socket(path: &'static str) -> Route<Fanout> {
    Route {
        method: Method::GET,
        path,
        access: Access::Socket,
        handler: |fanout, request| ready(open(fanout, &request)).boxed(),
        docs: None,
    }
}

fn open(fanout: Arc<Fanout>, request: &Request) -> Result<Response, ApiError> {
    // Single requests are everybody's, as for those who poll.
    let key = request.entitled(READ).ok().cloned();
    request.upgrade(move |socket| Session::new(&fanout, key).run(socket))
}

/// What the route reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a parameter that may be repeated is read by hand")]
struct Asked {
    /// The ids that quotes' steps carry: `0x` and 64 hex digits; may be repeated, for at most 100. Without
    /// one, a key is needed.
    #[param(max_items = 100)]
    request_id: Option<Vec<String>>,
    /// The `id` of the last event that was seen, for those who cannot send the header
    /// `Last-Event-ID`.
    last_event_id: Option<String>,
}

async fn events(fanout: &Arc<Fanout>, request: &Request) -> Result<Response, ApiError> {
    let pairs: Vec<_> = request.parameters().collect();
    let named = |wanted: &str| {
        let pairs = pairs.iter().filter(|(name, _)| name == wanted);
        pairs.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let ids = named("requestId");
    let ids = ids.into_iter().map(request_id);
    let interests = interests(request, ids.collect::<Result<_, _>>()?)?;
    let last = named("lastEventId").first().copied();
    let last = request.header("last-event-id").or(last).unwrap_or_default();
    let key = request.entitled(READ).ok().cloned();
    let feed = feed::open(fanout, interests, key, number(last)?).await?;
    let answer = Response::stream(HeaderValue::from_static(EVENTS), feed);
    Ok(answer
        .saying("cache-control", "no-store")
        .saying("x-accel-buffering", "no"))
}

fn interests(request: &Request, ids: Vec<B256>) -> Result<Vec<Interest>, ApiError> {
    if ids.len() > FOLLOWED {
        let what = format!("requestId: at most {FOLLOWED} at once");
        return Err(ApiError::refused("TOO_MANY_SUBSCRIPTIONS", what));
    }
    let mut once = Vec::new();
    for interest in ids.into_iter().map(Interest::Request) {
        if !once.contains(&interest) {
            once.push(interest);
        }
    }
    if !once.is_empty() {
        return Ok(once);
    }
    let key = request.entitled(READ)?.clone();
    Ok(vec![Interest::Key(key)])
}

/// An event's id; nothing at all is none.
fn number(text: &str) -> Result<Option<u64>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.map(Some).ok_or_else(|| {
        ApiError::refused(
            "INVALID_EVENT_ID",
            "Last-Event-ID: expected the id of an event",
        )
    })
}
