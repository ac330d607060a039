//! Pyth's HTTP service (Hermes): `GET /v2/updates/price/latest`
//! (<https://hermes.pyth.network/docs>).

use std::time::Duration;

use alloy::primitives::U256;
use async_trait::async_trait;
use reqwest::StatusCode;
use serde::Deserialize;
use url::Url;
use vm::http;

use super::feed::{Doubt, Feed, Observation, dollars, timely};

/// For the whole answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// An answer with its signed update is about 4 KiB.
const MOST_BYTES: usize = 64 << 10;

/// The confidence interval may be this part of the price: 1 %.
const MOST_DOUBT: u64 = 100;

/// Reads prices from Pyth's HTTP service.
pub struct Pyth {
    client: reqwest::Client,
    question: Url,
    /// Lower case hex without `0x`.
    id: String,
    max_age: u64,
}

#[derive(Deserialize)]
struct Answer {
    parsed: Vec<Parsed>,
}

#[derive(Deserialize)]
struct Parsed {
    id: String,
    price: Quoted,
}

/// Numbers as decimal texts, in units of `10^expo` dollars.
#[derive(Deserialize)]
struct Quoted {
    price: String,
    conf: String,
    expo: i32,
    publish_time: u64,
}

impl Pyth {
    /// `id` is the feed's 32 bytes in hex; `client` must not follow redirects.
    pub fn new(
        client: reqwest::Client,
        url: &str,
        id: &str,
        max_age: u64,
    ) -> Result<Self, &'static str> {
        let id = bare(id);
        if id.len() != 64 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("id: expected 32 bytes of hex");
        }
        let base = url.trim_end_matches('/');
        let question = format!("{base}/v2/updates/price/latest?ids[]=0x{id}&parsed=true");
        let question = Url::parse(&question).map_err(|_| "url: expected an HTTP URL")?;
        if !matches!(question.scheme(), "http" | "https") {
            return Err("url: expected an HTTP URL");
        }
        Ok(Self {
            client,
            question,
            id,
            max_age,
        })
    }

    async fn ask(&self) -> Result<Vec<u8>, &'static str> {
        let request = self.client.get(self.question.clone());
        let mut response = request.send().await.map_err(|_| "not reachable")?;
        if response.status() != StatusCode::OK {
            return Err("an answer other than 200");
        }
        let body = http::capped(&mut response, MOST_BYTES).await;
        body.map_err(|error| error.what())
    }

    fn judge(&self, body: &[u8], now: u64) -> Result<Observation, Doubt> {
        let answer: Answer = serde_json::from_slice(body).map_err(|_| silent("not its format"))?;
        let mut asked = answer.parsed.iter().filter(|one| bare(&one.id) == self.id);
        let (Some(parsed), None) = (asked.next(), asked.next()) else {
            return Err(silent("another feed's price"));
        };
        let quoted = &parsed.price;
        let number = |text: &str| text.parse::<u64>().map_err(|_| Doubt::Senseless);
        let (price, doubt) = (number(&quoted.price)?, number(&quoted.conf)?);
        if !timely(quoted.publish_time, self.max_age, now) {
            return Err(Doubt::Untimely(quoted.publish_time));
        }
        let usd = dollars(U256::from(price), quoted.expo)?;
        if doubt > price / MOST_DOUBT {
            return Err(Doubt::Uncertain);
        }
        Ok(Observation {
            usd,
            at: quoted.publish_time,
            swing: 0,
        })
    }
}

#[async_trait]
impl Feed for Pyth {
    async fn read(&self, now: u64) -> Result<Observation, Doubt> {
        let body = tokio::time::timeout(PATIENCE, self.ask())
            .await
            .unwrap_or(Err("no answer in time"))
            .map_err(silent)?;
        self.judge(&body, now)
    }

    fn believable(&self, seen: &Observation, now: u64) -> bool {
        timely(seen.at, self.max_age, now)
    }
}

fn bare(id: &str) -> String {
    id.strip_prefix("0x").unwrap_or(id).to_ascii_lowercase()
}

fn silent(what: &str) -> Doubt {
    Doubt::Silent(what.to_owned())
}
