//! One question per round trip to a provider, for every family that speaks HTTP.
//!
//! A node is not trusted to behave: answers are capped in size and time, never decompressed, and
//! redirects are not followed. The URL may hold credentials and stays out of every error.

#[cfg(any(test, feature = "testing"))]
pub mod inside;
mod memory;
mod silence;

use std::{
    error::Error,
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    RequestBuilder,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect::Policy,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use self::{
    memory::{Room, Share},
    silence::Silence,
};
use crate::{Endpoint, SpecError, types::ChainId};

/// Requests under way at one provider; more wait for a permit, within their own timeout.
const AT_ONCE: usize = 64;

/// Counts calls before they are sent; false: not now.
pub type Allows = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Sends requests to one provider, within its limits of size, time and number, and none for as long as its
/// `Retry-After` asks. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Channel(Arc<Inner>);

struct Inner {
    client: reqwest::Client,
    timeout: Duration,
    url: url::Url,
    chain: String,
    provider: String,
    position: String,
    permits: Semaphore,
    allows: Option<Allows>,
    silence: Silence,
    share: Share,
    meters: OnceLock<Meters>,
    /// Set for a provider in this process.
    #[cfg(any(test, feature = "testing"))]
    inside: Option<inside::Provider>,
}

/// Made at first use, when the recorder is installed.
struct Meters {
    requests: metrics::Counter,
    seconds: metrics::Histogram,
}

/// A client that follows no redirect, decompresses nothing and ignores the proxies of the environment.
pub fn client() -> Result<reqwest::Client, SpecError> {
    built(reqwest::Client::builder())
}

/// The same for tests: it trusts certificates of this authority (DER), too.
#[cfg(feature = "testing")]
pub fn client_trusting(authority: &[u8]) -> Result<reqwest::Client, SpecError> {
    let authority = reqwest::Certificate::from_der(authority);
    let authority = authority.map_err(|error| SpecError(cause(&error)))?;
    built(reqwest::Client::builder().tls_certs_merge([authority]))
}

fn built(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, SpecError> {
    builder
        .redirect(Policy::none())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .tcp_nodelay(true)
        .build()
        .map_err(|error| SpecError(cause(&error)))
}

/// Why a round trip gave no body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    #[error("HTTP status {status}")]
    Status {
        status: u16,
        /// The answer's text, within the limits: some nodes send their errors so.
        body: Arc<Body>,
    },
    /// The answer is longer than any that is read.
    #[error("answer too large")]
    TooLarge,
    #[error("{0}")]
    Failed(String),
}

impl From<BodyError> for PostError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLong => Self::TooLarge,
            BodyError::Broken(error) => failed(&error),
        }
    }
}

/// The body of an answer. The memory that it takes is free for others once this is dropped.
#[derive(Debug)]
pub struct Body {
    bytes: Vec<u8>,
    _room: Room,
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Body {}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Channel {
    pub fn new(chain: &ChainId, endpoint: &Endpoint) -> Self {
        Self(Arc::new(Inner {
            client: endpoint.client.clone(),
            timeout: endpoint.timeout,
            url: endpoint.url.clone(),
            chain: chain.to_string(),
            provider: endpoint.name(),
            position: endpoint.position.to_string(),
            permits: Semaphore::new(AT_ONCE),
            allows: endpoint.allows.clone(),
            silence: Silence::default(),
            share: Share::new(endpoint.longest),
            meters: OnceLock::new(),
            #[cfg(any(test, feature = "testing"))]
            inside: inside::of(&endpoint.url),
        }))
    }

    /// The provider's name, fit for logs.
    pub fn provider(&self) -> &str {
        &self.0.provider
    }

    /// Counts calls that are about to be sent: together, since they are of use only together, and each, whatever
    /// bodies they are sent in, since providers count each. An error: none of them may be sent now.
    pub fn admit(&self, calls: usize) -> Result<(), PostError> {
        self.0.silence.check()?;
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        match &self.0.allows {
            Some(allows) if !allows(calls) => {
                Err(PostError::Failed("too many questions, try again".into()))
            }
            _ => Ok(()),
        }
    }

    /// Posts a JSON body and gives the answer's, within the endpoint's timeout.
    pub async fn post(&self, body: Vec<u8>) -> Result<Body, PostError> {
        self.post_as(HeaderValue::from_static("application/json"), body)
            .await
    }

    /// Posts a body of another kind, likewise.
    pub async fn post_as(&self, kind: HeaderValue, body: Vec<u8>) -> Result<Body, PostError> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        self.post_with(headers, body).await
    }

    /// Posts a body with these headers, likewise.
    pub async fn post_with(&self, headers: HeaderMap, body: Vec<u8>) -> Result<Body, PostError> {
        let request = self.0.client.post(self.0.url.clone());
        self.send(request.headers(headers).body(body)).await
    }

    /// Gets what stands at `path` below the endpoint's URL, likewise. `path` has no slash at its ends.
    pub async fn get(&self, path: &str, headers: HeaderMap) -> Result<Body, PostError> {
        self.query(path, &[], headers).await
    }

    /// The same, with a query.
    pub async fn query(
        &self,
        path: &str,
        query: &[(&str, String)],
        headers: HeaderMap,
    ) -> Result<Body, PostError> {
        let mut url = self.below(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send(self.0.client.get(url).headers(headers)).await
    }

    /// Posts a body to `path` below the endpoint's URL, likewise.
    pub async fn post_below(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Body, PostError> {
        let url = self.below(path)?;
        let request = self.0.client.post(url).headers(headers);
        self.send(request.body(body)).await
    }

    fn below(&self, path: &str) -> Result<url::Url, PostError> {
        let mut url = self.0.url.clone();
        let no_path = |()| PostError::Failed("no path below this URL".into());
        url.path_segments_mut()
            .map_err(no_path)?
            .pop_if_empty()
            .extend(path.split('/'));
        Ok(url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Body, PostError> {
        let deadline = Instant::now() + self.0.timeout;
        let permit = timeout_at(deadline, self.0.permits.acquire()).await;
        let in_time = Instant::now() < deadline;
        let Some(_permit) = permit.ok().and_then(Result::ok).filter(|_| in_time) else {
            return Err(PostError::Failed("too many requests under way".into()));
        };
        self.0.silence.check()?;
        let meters = self.0.meters();
        meters.requests.increment(1);
        let started = Instant::now();
        let answer = self.0.exchange(request, deadline).await;
        meters.seconds.record(started.elapsed());
        answer
    }
}

impl Inner {
    async fn exchange(
        &self,
        request: RequestBuilder,
        deadline: Instant,
    ) -> Result<Body, PostError> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(provider) = &self.inside {
            let Some(body) = inside::exchange(provider, request)? else {
                return std::future::pending().await;
            };
            let mut room = Room::default();
            self.share.room(body.len(), &mut room, deadline).await?;
            return Ok(body);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let response = request.timeout(left).send().await;
        let mut response = response.map_err(|error| failed(&error))?;
        let status = response.status();
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(PostError::Failed("compressed answer".into()));
        }
        self.silence.heed(status, response.headers());
        let body = self.body(&mut response, deadline).await?;
        if status.is_success() {
            return Ok(body);
        }
        Err(PostError::Status {
            status: status.as_u16(),
            body: Arc::new(body),
        })
    }

    /// The whole body, within the memory that there is for answers.
    async fn body(
        &self,
        response: &mut reqwest::Response,
        deadline: Instant,
    ) -> Result<Body, PostError> {
        let length = usize::try_from(response.content_length().unwrap_or_default());
        let length = length.unwrap_or(usize::MAX);
        let mut body = Body {
            bytes: Vec::new(),
            _room: Room::default(),
        };
        self.share.room(length, &mut body._room, deadline).await?;
        body.bytes.reserve(length);
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            let length = body.bytes.len() + chunk.len();
            self.share.room(length, &mut body._room, deadline).await?;
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn meters(&self) -> &Meters {
        self.meters.get_or_init(|| {
            let labels = [
                ("chain", self.chain.clone()),
                ("provider", self.position.clone()),
            ];
            Meters {
                requests: metrics::counter!("intentd_provider_requests_total", &labels),
                seconds: metrics::histogram!("intentd_provider_request_seconds", &labels),
            }
        })
    }
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.what())]
pub enum BodyError {
    TooLong,
    /// Without the URL, which may hold credentials.
    Broken(#[source] reqwest::Error),
}

impl BodyError {
    /// What is wrong with the answer, for a log.
    pub const fn what(&self) -> &'static str {
        match self {
            Self::TooLong => "an answer that is too long",
            Self::Broken(_) => "a broken answer",
        }
    }
}

/// The body of an answer, unless it has more than `most` bytes: no more of it is ever held.
pub async fn capped(response: &mut reqwest::Response, most: usize) -> Result<Vec<u8>, BodyError> {
    let length = response.content_length().unwrap_or_default();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > most {
        return Err(BodyError::TooLong);
    }
    let broken = |error: reqwest::Error| BodyError::Broken(error.without_url());
    let mut body = Vec::with_capacity(length);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn failed(error: &reqwest::Error) -> PostError {
    PostError::Failed(cause(error))
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
