//! The window of callers without a key, and URLs in log lines.

use std::collections::HashMap;

use intentd::{
    http::limit::{Limiter, Quota},
    redact,
};
use serde::Deserialize;
use serde_json::json;

use crate::harness::{Answer, Case, Row};

pub const ROWS: &[Row] = &[
    ("rate_limiter.json", rate_limiter),
    ("redact_error_url.json", redact_url),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Calls {
    max: u32,
    window_ms: u64,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    at: u64,
    key: String,
}

fn rate_limiter(case: &Case) -> Answer {
    let input = Calls::deserialize(&case.input).map_err(|error| error.to_string())?;
    let mut limiter = Limiter::new(Quota {
        max: input.max,
        window_ms: input.window_ms,
    });
    let standings = input.calls.into_iter().map(|call| {
        let standing = limiter.check(call.key, call.at);
        json!({
            "allowed": standing.allowed,
            "limit": standing.limit,
            "remaining": standing.remaining,
            "resetMs": standing.reset_ms,
        })
    });
    Ok(standings.collect())
}

/// Headers and authorization are never logged, whatever they hold.
fn redact_url(case: &Case) -> Answer {
    let input =
        HashMap::<String, String>::deserialize(&case.input).map_err(|error| error.to_string())?;
    let url = redact::url(input.get("url").ok_or("no url")?);
    Ok(json!({"url": url, "baseURL": url, "headers": "[REDACTED]", "auth": "[REDACTED]"}))
}
