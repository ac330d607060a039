//! The retirement of `GET /requests/v2`: announced on every answer, then slower every month, then gone
//! (guide: protocol 11.12). Its state is a pure function of the time.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use hyper::{
    StatusCode,
    header::{HeaderValue, RETRY_AFTER},
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    format,
    http::{
        ApiError, KeyLabel, Response,
        auth::RATE_LIMIT,
        codes::{self, ErrorCode},
        limit::{Limiter, Quota, Subject},
    },
};

/// The route.
pub const PATH: &str = "/requests/v2";
const SUCCESSOR: &str = "/requests/v3";
const GUIDE: &str = "/documentation";
/// Requests of a caller per minute before they become fewer (guide: protocol 11.2).
const FULL: u32 = 200;
const LEAST: u32 = 5;

/// The dates, unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retirement {
    pub deprecated_at: u64,
    pub throttled_from: u64,
    pub sunset_at: u64,
}

/// What every 200 says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Deprecation)]
pub struct Notice {
    message: &'static str,
    deprecated_at: String,
    throttled_from: String,
    sunset_at: String,
    successor: &'static str,
    migration_guide: &'static str,
}

/// A 410 or 429.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetiredFailure)]
pub struct Refused {
    message: &'static str,
    error_code: ErrorCode,
    status_code: u16,
    /// Requests that the caller may make in the window that it has used up; only with a 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    successor: &'static str,
    migration_guide: &'static str,
    /// The path of the code's page.
    docs: String,
}

impl Retirement {
    /// Requests that a caller may make in a minute at `now` (unix seconds): half as many with every
    /// calendar month. `None`: as many as elsewhere.
    pub fn quota(&self, now: u64) -> Option<u32> {
        if now < self.throttled_from {
            return None;
        }
        let months = month(now)
            .saturating_sub(month(self.throttled_from))
            .saturating_add(1);
        let fewer = FULL
            .checked_shr(months.try_into().unwrap_or(u32::MAX))
            .unwrap_or(0);
        Some(fewer.max(LEAST))
    }

    /// Whether the route is gone at `now` (unix seconds).
    pub fn over(&self, now: u64) -> bool {
        now >= self.sunset_at
    }

    pub fn notice(&self) -> Notice {
        let at = |seconds: u64| format::iso(seconds.saturating_mul(1000));
        Notice {
            message: "GET /requests/v2 is deprecated: use GET /requests/v3",
            deprecated_at: at(self.deprecated_at),
            throttled_from: at(self.throttled_from),
            sunset_at: at(self.sunset_at),
            successor: SUCCESSOR,
            migration_guide: GUIDE,
        }
    }

    /// `response` with the headers that every answer of the route has; a 429 says where to go
    /// instead of when to come back.
    pub fn mark(&self, response: Response) -> Response {
        let status = response.status;
        let mut response = match status {
            StatusCode::TOO_MANY_REQUESTS => {
                let message = "Too many requests: GET /requests/v2 is being retired";
                let limit = response.headers.get(RATE_LIMIT[0]);
                let limit = limit.and_then(|limit| limit.to_str().ok()?.parse::<u64>().ok());
                let refused = refused(status, (message, "RATE_LIMITED"), limit);
                let headers = response.headers;
                refused.map_or_else(ApiError::into_response, |body| Response { headers, ..body })
            }
            _ => response,
        };
        response.headers.remove(RETRY_AFTER);
        let sunset = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.sunset_at));
        let sunset = sunset.map(httpdate::fmt_http_date).unwrap_or_default();
        let link = format!(
            r#"<{GUIDE}>; rel="deprecation", <{GUIDE}>; rel="sunset", <{SUCCESSOR}>; rel="successor-version""#
        );
        let texts = [
            ("deprecation", format!("@{}", self.deprecated_at)),
            ("sunset", sunset),
            ("link", link),
        ];
        for (name, text) in texts {
            if let Ok(value) = HeaderValue::try_from(text) {
                response = response.with(name, value);
            }
        }
        response
    }
}

/// The answer after the end.
pub fn gone() -> Result<Response, ApiError> {
    let message = "GET /requests/v2 has been retired: use GET /requests/v3";
    refused(StatusCode::GONE, (message, "GONE"), None)
}

fn refused(
    status: StatusCode,
    (message, code): (&'static str, &'static str),
    limit: Option<u64>,
) -> Result<Response, ApiError> {
    let body = Refused {
        message,
        error_code: ErrorCode(code),
        status_code: status.as_u16(),
        limit,
        successor: SUCCESSOR,
        migration_guide: GUIDE,
        docs: codes::page(code),
    };
    Response::json_with(status, &body)
}

/// Months since year zero.
fn month(unix_seconds: u64) -> u64 {
    let seconds = i64::try_from(unix_seconds).unwrap_or_default();
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    let date = time.to_zoned(TimeZone::UTC).date();
    let months = i64::from(date.year()) * 12 + i64::from(date.month());
    u64::try_from(months).unwrap_or_default()
}

/// Counts what callers ask of the route.
pub struct Throttle {
    pub dates: Retirement,
    windows: Mutex<Option<(u32, Limiter<Subject>)>>,
}

impl Throttle {
    pub fn new(dates: Retirement) -> Self {
        Self {
            dates,
            windows: Mutex::new(None),
        }
    }

    /// 429 for a caller that has asked too often in the minute of `now` (unix milliseconds).
    pub fn check(&self, key: Option<&KeyLabel>, peer: IpAddr, now: u64) -> Result<(), ApiError> {
        let Some(max) = self.dates.quota(now / 1000) else {
            return Ok(());
        };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || {
            let window_ms = 60_000;
            (max, Limiter::new(Quota { max, window_ms }))
        };
        let (known, limiter) = windows.get_or_insert_with(fresh);
        if *known != max {
            (*known, *limiter) = fresh();
        }
        // A key that has used up its own has what its address has without it.
        let own = key.map(|label| limiter.check(Subject::Key(label.clone()), now));
        if own.is_some_and(|own| own.allowed) {
            return Ok(());
        }
        let address = limiter.check(Subject::of(peer), now);
        match address.allowed {
            true => Ok(()),
            false => Err(ApiError::RateLimited(own.unwrap_or(address))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATES: Retirement = Retirement {
        deprecated_at: 1_784_678_400,
        throttled_from: 1_788_220_800,
        sunset_at: 1_795_478_400,
    };

    fn at(text: &str) -> u64 {
        let time: Timestamp = text.parse().unwrap();
        time.as_second().try_into().unwrap()
    }

    #[test]
    fn fewer_requests_every_month_and_none_after_the_last_day() {
        for (time, quota, over) in [
            ("2026-07-21T00:00:00Z", None, false),
            ("2026-08-31T23:59:59Z", None, false),
            ("2026-09-01T00:00:00Z", Some(100), false),
            ("2026-09-30T23:59:59Z", Some(100), false),
            ("2026-10-01T00:00:00Z", Some(50), false),
            ("2026-11-01T00:00:00Z", Some(25), false),
            ("2026-11-23T23:59:59Z", Some(25), false),
            ("2026-11-24T00:00:00Z", Some(25), true),
            ("2030-01-01T00:00:00Z", Some(LEAST), true),
        ] {
            let found = (DATES.quota(at(time)), DATES.over(at(time)));
            assert_eq!(found, (quota, over), "{time}");
        }
    }

    #[test]
    fn every_answer_says_when_it_ends() {
        let marked = DATES.mark(gone().unwrap());
        let header = |name: &str| marked.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("deprecation"), "@1784678400");
        assert_eq!(header("sunset"), "Tue, 24 Nov 2026 00:00:00 GMT");
        for rel in ["deprecation", "sunset", "successor-version"] {
            assert!(header("link").contains(&format!("rel=\"{rel}\"")), "{rel}");
        }
        assert_eq!(marked.status, StatusCode::GONE);
        let notice = serde_json::to_value(DATES.notice()).unwrap();
        assert_eq!(notice["sunsetAt"], "2026-11-24T00:00:00.000Z");
        assert_eq!(notice["successor"], "/requests/v3");
    }

    #[test]
    fn callers_have_windows_of_their_own_and_are_sent_on() {
        let throttle = Throttle::new(DATES);
        let now = at("2026-11-02T00:00:00Z") * 1000;
        let (key, peer) = (KeyLabel::new("app"), IpAddr::from([127, 0, 0, 1]));
        for _ in 0..25 {
            assert!(throttle.check(Some(&key), peer, now).is_ok());
        }
        // Then what the address has without it.
        let other = IpAddr::from([127, 0, 0, 2]);
        for _ in 0..25 {
            assert!(throttle.check(Some(&key), peer, now).is_ok());
        }
        let refused = throttle.check(Some(&key), peer, now).unwrap_err();
        assert!(throttle.check(None, peer, now).is_err());
        assert!(throttle.check(Some(&key), other, now).is_ok());
        assert!(throttle.check(Some(&key), peer, now + 60_000).is_ok());
        let ApiError::RateLimited(standing) = &refused else {
            panic!("{refused}");
        };
        assert_eq!((standing.limit, standing.remaining), (25, 0));
        let mut answer = refused.into_response();
        // As the server tells it.
        answer.put_number(RATE_LIMIT[0], 25);
        let marked = DATES.mark(answer);
        assert_eq!(marked.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(!marked.headers.contains_key(RETRY_AFTER));
        let body: serde_json::Value = serde_json::from_slice(marked.body.bytes().unwrap()).unwrap();
        assert_eq!(body["successor"], "/requests/v3");
        assert_eq!(
            (&body["limit"], &body["errorCode"]),
            (&25.into(), &"RATE_LIMITED".into())
        );
        let gone: serde_json::Value =
            serde_json::from_slice(gone().unwrap().body.bytes().unwrap()).unwrap();
        assert_eq!(gone.get("limit"), None);
        assert_eq!(gone["docs"], "/documentation/errors/GONE");
        let early = at("2026-08-01T00:00:00Z") * 1000;
        for _ in 0..300 {
            assert!(throttle.check(Some(&key), peer, early).is_ok());
        }
    }
}
