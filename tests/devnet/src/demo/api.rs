//! The integrator API from the outside, as any program speaks to it.

use anyhow::{Result, ensure};
use serde_json::Value;
use url::Url;

/// Where the API is, and an app's key to it.
#[derive(Clone)]
pub struct Api {
    pub url: Url,
    pub key: String,
    client: reqwest::Client,
}

impl Api {
    pub fn new(url: Url, key: String) -> Self {
        Self {
            url,
            key,
            client: reqwest::Client::new(),
        }
    }

    /// What it says to a quote's body.
    pub async fn quote(&self, body: &Value) -> Result<Value> {
        let url = self.url.join("quote/v2")?;
        let request = self.client.post(url).header("x-api-key", &self.key);
        answer(request.json(body)).await
    }

    /// Where a request stands.
    pub async fn status(&self, request: &str) -> Result<Value> {
        let mut url = self.url.join("intents/status/v3")?;
        url.query_pairs_mut().append_pair("requestId", request);
        answer(self.client.get(url).header("x-api-key", &self.key)).await
    }
}

/// The JSON that a request is answered with; anything but a success is an error with its body.
pub async fn answer(request: reqwest::RequestBuilder) -> Result<Value> {
    let response = request.send().await?;
    let (status, path) = (response.status(), response.url().path().to_owned());
    let text = response.text().await?;
    ensure!(status.is_success(), "{path} answered {status}: {text}");
    Ok(serde_json::from_str(&text)?)
}
