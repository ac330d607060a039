//! What is answered to somebody who expects to be refused.

use std::fmt;

use anyhow::Result;
use serde_json::Value;

/// A status and a body.
#[derive(Clone, Debug)]
pub struct Said {
    pub status: u16,
    pub body: Value,
}

impl Said {
    pub async fn to(request: reqwest::RequestBuilder) -> Result<Self> {
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Self { status, body })
    }

    pub fn is_yes(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the same may be answered otherwise later.
    pub fn may_change(&self) -> bool {
        self.status >= 500 || self.body["retryable"] == true
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        let codes = ["code", "errorCode"].map(|name| self.body[name].as_str());
        match codes.into_iter().flatten().next() {
            Some(code) => write!(f, " {code}"),
            None => Ok(()),
        }
    }
}
