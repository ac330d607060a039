//! Every error that a caller can get, and its only mapping to a status and a body.
//!
//! A 4xx says what to change. A 5xx does not reveal its cause: the cause goes to the log.

use hyper::{StatusCode, header::HeaderValue};
use utoipa::ToSchema;

use super::{codes::Codes, limit::Standing, plain, request::Response, router::Shape};
use crate::redact;

/// How a surface answers errors.
#[derive(Clone, Copy)]
pub struct Errors {
    /// Makes the answer; logs errors of the service itself.
    pub answer: fn(ApiError) -> Response,
    /// The statuses for the API description.
    pub described: &'static [Described],
    /// Every code that the surface's answers may have.
    pub codes: Codes,
}

/// A status that any described route may answer with.
pub struct Described {
    pub status: &'static str,
    pub meaning: &'static str,
    pub shape: Shape,
    /// The status applies only to routes behind the gate.
    pub gated: bool,
}

impl Described {
    /// A status whose body is a `T`.
    pub const fn of<T: ToSchema>(status: &'static str, meaning: &'static str, gated: bool) -> Self {
        Self {
            status,
            meaning,
            shape: Shape::of::<T>(),
            gated,
        }
    }
}

/// Why a request was not answered with 200.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    /// 400, 404, 409 or 410: invalid input, or a refusal by the service.
    #[error("{code}: {message}")]
    Refused {
        status: StatusCode,
        code: &'static str,
        message: String,
        /// True when the same request may succeed later; false when only a changed request can.
        retryable: bool,
    },
    /// 401: the route needs a key.
    #[error("unauthorized")]
    Unauthorized,
    /// 403: the key lacks this scope.
    #[error("the key has no scope {0}")]
    Forbidden(&'static str),
    /// 404: no such route; on a surface with exact paths also a known path with another method.
    #[error("no route {method}:{path}")]
    NoRoute { method: String, path: String },
    /// 405: the path exists, but not with this method.
    #[error("{path} takes {allowed}, not {method}")]
    WrongMethod {
        method: String,
        path: String,
        /// The methods as the header `allow` lists them.
        allowed: String,
    },
    /// 501: this version does not serve the route.
    #[error("{0} is not served yet")]
    Planned(String),
    /// 408: the body did not arrive in time.
    #[error("the body did not arrive in time")]
    SlowBody,
    /// 413: the body is above the limit.
    #[error("body too large")]
    BodyTooLarge,
    /// 415: the content type is not JSON.
    #[error("media type {0}")]
    MediaType(String),
    /// 426: the route takes only WebSocket handshakes.
    #[error("not a WebSocket handshake")]
    UpgradeRequired,
    /// 429: a key or an address has used up its window.
    #[error("rate limit exceeded")]
    RateLimited(Standing),
    /// 500: a defect of the service. The log gets `cause`; the caller does not.
    #[error("internal: {cause}")]
    Internal { cause: String },
    /// 503: something that the answer needs is not available now; the same request may succeed later. The log gets
    /// `cause`; the caller does not.
    #[error("{code}: {cause}")]
    Unavailable {
        code: &'static str,
        message: &'static str,
        cause: String,
        /// The seconds after which to try again, where they are known: `Retry-After`.
        after: Option<u64>,
    },
    /// 504: the answer exceeded the deadline of a request.
    #[error("deadline exceeded")]
    Deadline,
}

impl ApiError {
    /// 400 with a stable code in capitals and a message for people.
    pub fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::BAD_REQUEST, code, message.into())
    }

    /// 404, as [`Self::refused`]: the id is unknown.
    pub fn missing(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::NOT_FOUND, code, message.into())
    }

    /// 409, as [`Self::refused`]: the request contradicts an earlier one.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::CONFLICT, code, message.into())
    }

    /// 410, as [`Self::refused`]: the resource existed and is not kept any more.
    pub fn gone(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::GONE, code, message.into())
    }

    fn coded(status: StatusCode, code: &'static str, message: String) -> Self {
        Self::Refused {
            status,
            code,
            message,
            retryable: false,
        }
    }

    /// Sets whether the same request may succeed later.
    #[must_use]
    pub fn or_later(mut self, later: bool) -> Self {
        if let Self::Refused { retryable, .. } = &mut self {
            *retryable = later;
        }
        self
    }

    /// 503; `message` must not reveal internals.
    pub fn unavailable(
        code: &'static str,
        message: &'static str,
        cause: impl std::fmt::Display,
    ) -> Self {
        Self::Unavailable {
            code,
            message,
            cause: cause.to_string(),
            after: None,
        }
    }

    /// Names the seconds after which the same request may succeed, for a 503.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        if let Self::Unavailable { after, .. } = &mut self {
            *after = Some(seconds);
        }
        self
    }

    /// 503 for a request above the limit of concurrent requests.
    pub(super) fn overloaded(cause: impl std::fmt::Display) -> Self {
        Self::unavailable("OVERLOADED", "Too many requests are being answered", cause)
    }

    /// 500 with `cause` for the log.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self::Internal {
            cause: cause.to_string(),
        }
    }

    /// Whether the same request may succeed later: the `retryable` of answers.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused { retryable, .. } => *retryable,
            Self::Planned(_) => false,
            _ => {
                let status = self.status();
                status.is_server_error()
                    || status == StatusCode::REQUEST_TIMEOUT
                    || status == StatusCode::TOO_MANY_REQUESTS
            }
        }
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> StatusCode {
        self.text().status
    }

    /// Makes the answer; logs errors of the service itself.
    pub fn into_response(self) -> Response {
        self.log();
        let mut response = match plain::body(&self) {
            Ok(body) => Response::raw(self.status(), body.into()),
            Err(_) => Response::raw(StatusCode::INTERNAL_SERVER_ERROR, Default::default()),
        };
        if matches!(self, Self::UpgradeRequired) {
            response = response.saying("upgrade", "websocket");
        }
        if let Self::WrongMethod { allowed, .. } = &self
            && let Ok(allowed) = HeaderValue::from_str(allowed)
        {
            response = response.with("allow", allowed);
        }
        if let Self::RateLimited(standing) = &self {
            response.put_number("retry-after", standing.reset_seconds());
        }
        if let Self::Unavailable {
            after: Some(after), ..
        } = &self
        {
            response.put_number("retry-after", *after);
        }
        response
    }

    fn log(&self) {
        match self {
            Self::Internal { .. } => {
                tracing::error!(error = redact::text(&self.to_string()), "request failed");
            }
            Self::Unavailable { .. } | Self::Deadline => {
                tracing::warn!(
                    error = redact::text(&self.to_string()),
                    "request not answered"
                );
            }
            _ => tracing::debug!(error = %self, "request refused"),
        }
    }

    /// Status, code and message for the caller, for surfaces with bodies of their own.
    pub fn text(&self) -> ErrorText {
        let text = |status, code, message: &str| (status, code, message.to_owned());
        let (status, code, message) = match self {
            Self::Refused {
                status,
                code,
                message,
                ..
            } => (status.as_u16(), *code, message.clone()),
            Self::Unavailable { code, message, .. } => text(503, *code, message),
            Self::Unauthorized => text(401, "UNAUTHORIZED", "A known x-api-key is required"),
            Self::Forbidden(scope) => {
                let message = format!("The key does not have the scope {scope}");
                (403, "FORBIDDEN", message)
            }
            Self::UpgradeRequired => {
                let message = "This is a WebSocket: a handshake is expected";
                text(426, "UPGRADE_REQUIRED", message)
            }
            Self::RateLimited(_) => text(429, "RATE_LIMITED", "Too many requests"),
            Self::NoRoute { method, path } => {
                let message = format!("Route {method}:{path} not found");
                (404, "ROUTE_NOT_FOUND", message)
            }
            Self::WrongMethod { .. } => (405, "METHOD_NOT_ALLOWED", self.to_string()),
            Self::Planned(_) => (501, "NOT_SUPPORTED_YET", self.to_string()),
            Self::MediaType(given) => {
                let message = format!("Unsupported Media Type: {given}");
                (415, "UNSUPPORTED_MEDIA_TYPE", message)
            }
            Self::BodyTooLarge => text(413, "BODY_TOO_LARGE", "Request body is too large"),
            Self::SlowBody => text(408, "REQUEST_TIMEOUT", "The body did not arrive in time"),
            Self::Internal { .. } => text(500, "UNKNOWN_ERROR", "Something went wrong"),
            Self::Deadline => text(504, "REQUEST_TIMED_OUT", "The request took too long"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ErrorText {
            status,
            code,
            message,
        }
    }
}

/// What a caller learns of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    pub status: StatusCode,
    /// Stable code, in capitals.
    pub code: &'static str,
    /// Message for people.
    pub message: String,
}

impl From<vm::Refusal> for ApiError {
    fn from(refusal: vm::Refusal) -> Self {
        Self::refused("REFUSED", refusal.0)
    }
}

impl From<vm::ReadError> for ApiError {
    fn from(error: vm::ReadError) -> Self {
        let (code, message) = match &error {
            vm::ReadError::Quorum(_) => (
                "QUORUM_UNAVAILABLE",
                "Not enough providers of the chain agree",
            ),
            vm::ReadError::TooLarge => {
                let what = "The transaction is larger than what is read of one";
                return Self::refused("TRANSACTION_TOO_LARGE", what);
            }
            vm::ReadError::Unavailable(_) | vm::ReadError::Foreign(_) => {
                ("CHAIN_UNAVAILABLE", "The chain cannot be read right now")
            }
            vm::ReadError::Doubtful(_) => (
                "CHAIN_DOUBTFUL",
                "The chain's provider gave contradictory answers",
            ),
        };
        Self::unavailable(code, message, error)
    }
}
