//! What a handler gets and gives: a whole request in memory, and an answer that mostly is, too.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt};
use hyper::{
    HeaderMap, Method, StatusCode, Version,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    ApiError, Body, KeyLabel, Socket,
    auth::Toll,
    parse,
    router::Params,
    socket::{self, Upgrade},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A request that was let in: routed, within its limits, its key looked up.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    pub version: Version,
    /// Path and query exactly as sent.
    pub target: String,
    pub headers: HeaderMap,
    /// Empty for GET and HEAD.
    pub body: Bytes,
    /// Whom it comes from: the socket's other end, or whom a trusted proxy says that it was asked by.
    pub client: IpAddr,
    /// The label of the caller's key; `None` for an unknown key or none.
    pub key: Option<KeyLabel>,
    /// What that key opens.
    pub scopes: Arc<[&'static str]>,
    pub params: Params,
    /// Where it was counted.
    pub toll: Toll,
}

impl Request {
    /// The caller's key, for routes that only sometimes need one: 401 without a known one, 403 for one
    /// without `scope`.
    pub fn entitled(&self, scope: &'static str) -> Result<&KeyLabel, ApiError> {
        let key = self.key.as_ref().ok_or(ApiError::Unauthorized)?;
        let open = self.scopes.contains(&scope);
        open.then_some(key).ok_or(ApiError::Forbidden(scope))
    }

    /// Counts it as `items` requests: so many times as much is done for it.
    pub fn weigh(&self, items: usize) {
        let more = items.saturating_sub(1);
        self.toll.charge(u32::try_from(more).unwrap_or(u32::MAX));
    }

    /// Counts it as `items` requests, before that is done: 429 where the caller has not so many left.
    pub fn afford(&self, items: usize) -> Result<(), ApiError> {
        let more = u32::try_from(items.saturating_sub(1)).unwrap_or(u32::MAX);
        self.toll.take(more).map_err(ApiError::RateLimited)
    }

    /// The part of the path that the route's `{name}` stands for.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The query as `T`; a 400 names the parameter and what was expected. Unknown ones are ignored.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        parse::query(query)
    }

    /// A header's text, if it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer that makes this connection a WebSocket, handed to `run` once it is one: 426 for a
    /// plain request, 400 for a handshake that is none or comes over HTTP/2.
    pub fn upgrade<F>(
        &self,
        run: impl FnOnce(Socket) -> F + Send + 'static,
    ) -> Result<Response, ApiError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Ok(Response {
            status: StatusCode::SWITCHING_PROTOCOLS,
            headers: socket::handshake(self)?,
            body: Body::Upgrade(Upgrade(Box::new(|socket| run(socket).boxed()))),
        })
    }

    /// The JSON object in the body, unknown fields kept: 415 and 400 (guide: protocol 10.1);
    /// 400 also for duplicate fields.
    pub fn value(&self) -> Result<Value, ApiError> {
        parse::object(self.header(CONTENT_TYPE.as_str()), &self.body)
    }

    /// [`Self::value`] as `T`; a 400 names the field and what was expected.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        parse::typed(&self.value()?)
    }
}

/// An answer, complete except for what the transport adds (`content-length`, `date`).
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

impl Response {
    /// 200 with compact JSON, fields in the order of the type's declaration.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, ApiError> {
        Self::json_with(StatusCode::OK, value)
    }

    /// As [`Self::json`], with another status.
    pub fn json_with<T: Serialize>(status: StatusCode, value: &T) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(value).map_err(ApiError::internal)?;
        Ok(Self::raw(status, body.into()))
    }

    /// Bytes that are JSON already.
    pub fn raw(status: StatusCode, body: Bytes) -> Self {
        Self::of(status, JSON, body)
    }

    /// Bytes of any media type.
    pub fn of(status: StatusCode, media: HeaderValue, body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, media);
        Self {
            status,
            headers,
            body: Body::Whole(body),
        }
    }

    /// 200 with what `pieces` gives, sent as it comes; it ends when they do, or with the listener.
    /// Dropping the pieces is how their source learns that nobody reads any more.
    pub fn stream(media: HeaderValue, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            body: Body::Stream(pieces.boxed()),
            ..Self::of(StatusCode::OK, media, Bytes::new())
        }
    }

    /// With one more header, in place of an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sets a header to a number.
    pub fn put_number(&mut self, name: &'static str, value: u64) {
        self.headers
            .insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}
