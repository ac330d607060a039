//! What a handler receives and returns: a request with its body in memory, and an answer.

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

/// An admitted request: routed, within its limits, its key resolved.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub version: Version,
    /// Path and query exactly as sent.
    pub target: String,
    pub headers: HeaderMap,
    /// Empty for GET and HEAD.
    pub body: Bytes,
    /// The client address: the peer of the socket, or the client that trusted proxies name.
    pub client: IpAddr,
    /// The label of the caller's key; `None` without a known key.
    pub key: Option<KeyLabel>,
    /// The scopes of that key.
    pub scopes: Arc<[&'static str]>,
    pub params: Params,
    /// Counts the request again: see [`Self::weigh`].
    pub toll: Toll,
}

impl Request {
    /// The caller's key, for routes that need one only sometimes. Errors: 401 without a known key, 403 for a key
    /// without `scope`.
    pub fn entitled(&self, scope: &'static str) -> Result<&KeyLabel, ApiError> {
        let key = self.key.as_ref().ok_or(ApiError::Unauthorized)?;
        let open = self.scopes.contains(&scope);
        open.then_some(key).ok_or(ApiError::Forbidden(scope))
    }

    /// Counts the request as `items` requests, also beyond the caller's limit.
    pub fn weigh(&self, items: usize) {
        let more = items.saturating_sub(1);
        self.toll.charge(u32::try_from(more).unwrap_or(u32::MAX));
    }

    /// Counts the request as `items` requests before the work is done; 429 when the caller has fewer left.
    pub fn afford(&self, items: usize) -> Result<(), ApiError> {
        let more = u32::try_from(items.saturating_sub(1)).unwrap_or(u32::MAX);
        self.toll.take(more).map_err(ApiError::RateLimited)
    }

    /// The part of the path that matched the route's `{name}`.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The label of the caller's key.
    pub fn label(&self) -> Option<&str> {
        self.key.as_ref().map(KeyLabel::as_str)
    }

    /// The query as `T`; a 400 names the parameter and what was expected. Unknown parameters are ignored.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        parse::query(self.query_text())
    }

    /// The name and value of each parameter of the query, decoded.
    pub fn parameters(&self) -> impl Iterator<Item = (String, String)> {
        url::form_urlencoded::parse(self.query_text().as_bytes()).into_owned()
    }

    fn query_text(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The text of a header; `None` unless it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// An answer that turns the connection into a WebSocket and hands it to `run`. Errors: 426 for a plain request,
    /// 400 for an invalid handshake or HTTP/2.
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

    /// Whether the body is said to be JSON.
    pub fn is_json(&self) -> bool {
        parse::is_json(self.header(CONTENT_TYPE.as_str()))
    }

    /// The JSON object in the body with its unknown fields. Errors: 415 and 400 (guide: protocol 10.1); also 400 for
    /// duplicate fields.
    pub fn value(&self) -> Result<Value, ApiError> {
        parse::object(self.header(CONTENT_TYPE.as_str()), &self.body)
    }

    /// [`Self::value`] as `T`; a 400 names the field and what was expected.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        parse::typed(self.value()?)
    }
}

/// An answer, complete except for the headers of the transport (`content-length`, `date`).
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

impl Response {
    /// 200 with compact JSON; fields in the order of the type's declaration.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, ApiError> {
        Self::json_with(StatusCode::OK, value)
    }

    /// As [`Self::json`], with another status.
    pub fn json_with<T: Serialize>(status: StatusCode, value: &T) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(value).map_err(ApiError::internal)?;
        Ok(Self::raw(status, body.into()))
    }

    /// An answer of bytes that are JSON already.
    pub fn raw(status: StatusCode, body: Bytes) -> Self {
        Self::of(status, JSON, body)
    }

    /// An answer of bytes of any media type.
    pub fn of(status: StatusCode, media: HeaderValue, body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, media);
        Self {
            status,
            headers,
            body: Body::Whole(body),
        }
    }

    /// 200 with the items of `pieces`, each sent as it comes. The answer ends with the stream or the listener; when
    /// the peer leaves, the server drops the stream.
    pub fn stream(media: HeaderValue, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            body: Body::Stream(pieces.boxed()),
            ..Self::of(StatusCode::OK, media, Bytes::new())
        }
    }

    /// Sets a header, in place of an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// [`Self::with`] a text of this program.
    #[must_use]
    pub fn saying(self, name: &'static str, text: &'static str) -> Self {
        self.with(name, HeaderValue::from_static(text))
    }

    /// Sets a header to a number.
    pub fn put_number(&mut self, name: &'static str, value: u64) {
        self.headers
            .insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}
