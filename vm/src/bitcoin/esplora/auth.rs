//! How an index knows its customers: a key in a header (Maestro), or OAuth client credentials for short-lived tokens
//! (RFC 6749 section 4.4; Blockstream).

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use crate::{ChainSpec, Endpoint, ReadError, SpecError, http::Channel, spec::setting};

/// Where Blockstream gives tokens.
const TOKENS: &str =
    "https://login.blockstream.com/realms/blockstream-public/protocol/openid-connect/token";
/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(30);
/// The longest that a token is used.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The shortest pause between two tokens.
const PAUSE: Duration = Duration::from_secs(5);

/// The credentials of one index.
pub enum Auth {
    Open,
    Key(HeaderValue),
    Client(Client),
}

pub struct Client {
    /// Of the server that gives tokens.
    channel: Channel,
    /// The question, with the credentials.
    form: String,
    /// One task asks for a token; the others wait for it.
    token: Mutex<Option<Token>>,
}

struct Token {
    /// `None` where none was given.
    header: Option<HeaderValue>,
    since: Instant,
    until: Instant,
}

/// The server's answer; other fields are not needed.
#[derive(Deserialize)]
struct Given {
    access_token: String,
    /// Seconds.
    expires_in: u64,
}

impl Auth {
    /// The credentials that the chain's entry names.
    pub fn of(spec: &ChainSpec, endpoint: &Endpoint) -> Result<Self, SpecError> {
        let named = |name: &str| setting(&spec.additional, name);
        let wrong = |what: &str| SpecError(format!("additionalData.{what}"));
        let key = named("maestroApiKey")?;
        let client = (
            named("blockstreamClientId")?,
            named("blockstreamClientSecret")?,
        );
        let (id, secret) = match (key, client) {
            (None, (None, None)) => return Ok(Self::Open),
            (Some(key), (None, None)) => {
                let header = secret_header(key);
                return header
                    .map(Self::Key)
                    .ok_or_else(|| wrong("maestroApiKey: no header"));
            }
            (None, (Some(id), Some(secret))) => (id, secret),
            (None, _) => {
                return Err(wrong("blockstreamClientId needs blockstreamClientSecret"));
            }
            (Some(_), _) => {
                return Err(wrong(
                    "maestroApiKey and blockstreamClientId: one is enough",
                ));
            }
        };
        let url = named("blockstreamTokenUrl")?.unwrap_or(TOKENS);
        let url: Url = url
            .parse()
            .map_err(|_| wrong("blockstreamTokenUrl: no URL"))?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("client_id", id)
            .append_pair("client_secret", secret)
            .append_pair("grant_type", "client_credentials")
            .append_pair("scope", "openid")
            .finish();
        let endpoint = Endpoint {
            url,
            ..endpoint.clone()
        };
        Ok(Self::Client(Client {
            channel: Channel::new(&spec.id, &endpoint),
            form,
            token: Mutex::new(None),
        }))
    }

    /// The header that a question has; asks for a token where there is none.
    pub async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, ReadError> {
        match self {
            Self::Open => Ok(None),
            Self::Key(key) => Ok(Some((HeaderName::from_static("api-key"), key.clone()))),
            Self::Client(client) => Ok(Some((AUTHORIZATION, client.token().await?))),
        }
    }

    /// Whether a question that is refused may be asked again with other credentials.
    pub fn may_expire(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// Has the next question be asked with a new token.
    pub async fn forget(&self) {
        let Self::Client(client) = self else {
            return;
        };
        let mut token = client.token.lock().await;
        // What was just given is not asked for again.
        token.take_if(|token| token.since.elapsed() >= PAUSE);
    }
}

impl Client {
    async fn token(&self) -> Result<HeaderValue, ReadError> {
        let mut token = self.token.lock().await;
        let now = Instant::now();
        if token.as_ref().is_none_or(|token| token.until <= now) {
            let (header, lasts) = self.ask().await.unzip();
            *token = Some(Token {
                header,
                since: now,
                until: now + lasts.unwrap_or(PAUSE),
            });
        }
        let header = token.as_ref().and_then(|token| token.header.clone());
        header.ok_or_else(|| ReadError::Unavailable("no access token".into()))
    }

    /// A token, and how long it is used. Nothing of a failed try is told: the answer may repeat the credentials.
    async fn ask(&self) -> Option<(HeaderValue, Duration)> {
        let body = self.form.clone().into_bytes();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let answer = self.channel.post_as(kind, body).await.ok()?;
        let given: Given = serde_json::from_slice(&answer).ok()?;
        let header = secret_header(&format!("Bearer {}", given.access_token))?;
        let lasts = Duration::from_secs(given.expires_in).min(LONGEST);
        Some((header, lasts.saturating_sub(MARGIN).max(PAUSE)))
    }
}

/// A header that is not printed.
fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
