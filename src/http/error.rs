//! Every error that a caller can get, and its only mapping to status and body.
//!
//! A 4xx says what to change. A 5xx says nothing of its cause: that goes to the log.

use hyper::{StatusCode, header::HeaderValue};
use utoipa::ToSchema;

use super::{codes::Codes, limit::Standing, plain, request::Response, router::Shape};
use crate::redact;

/// How a surface says no.
#[derive(Clone, Copy)]
pub struct Errors {
    /// The bytes, after a log line for what is the service's own fault.
    pub answer: fn(ApiError) -> Response,
    /// What the description says of them.
    pub described: &'static [Described],
    /// Every code that its answers may have.
    pub codes: Codes,
}

/// One status that any described route may answer with.
pub struct Described {
    pub status: &'static str,
    pub meaning: &'static str,
    pub shape: Shape,
    /// Only routes behind the gate.
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

/// Why a request got no 200.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 400, 404, 409 or 410: bad input, or a refusal for a reason of the service's own.
    #[error("{code}: {message}")]
    Refused {
        status: StatusCode,
        code: &'static str,
        message: String,
        /// The same request may succeed later; false where only another one can.
        retryable: bool,
    },
    /// 401: the route needs a key.
    #[error("unauthorized")]
    Unauthorized,
    /// 403: the key does not open this; the scope that it lacks.
    #[error("the key has no scope {0}")]
    Forbidden(&'static str),
    /// 404: no such route; on a surface whose paths are exact, or not with this method.
    #[error("no route {method}:{path}")]
    NoRoute { method: String, path: String },
    /// 405: the path is known, with other methods only.
    #[error("{path} takes {allowed}, not {method}")]
    WrongMethod {
        method: String,
        path: String,
        /// As the header `allow` lists them.
        allowed: String,
    },
    /// 501: the route is known and not served by this version.
    #[error("{0} is not served yet")]
    Planned(String),
    /// 408: the body did not arrive in time.
    #[error("the body did not arrive in time")]
    SlowBody,
    /// 413: the body is above the limit.
    #[error("body too large")]
    BodyTooLarge,
    /// 415: the body is not JSON by its own account.
    #[error("media type {0}")]
    MediaType(String),
    /// 426: the route is a WebSocket.
    #[error("not a WebSocket handshake")]
    UpgradeRequired,
    /// 429: a key or an address has used up its window.
    #[error("rate limit exceeded")]
    RateLimited(Standing),
    /// 500: a fault of ours. `cause` is logged and never answered.
    #[error("internal: {cause}")]
    Internal { cause: String },
    /// 503: something that the answer needs is not there now; the same request may succeed later.
    /// `cause` is logged and never answered.
    #[error("{code}: {cause}")]
    Unavailable {
        code: &'static str,
        message: &'static str,
        cause: String,
    },
    /// 504: the answer took longer than a request may take.
    #[error("deadline exceeded")]
    Deadline,
}

impl ApiError {
    /// 400 with a stable code in capitals and a message for people.
    pub fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::BAD_REQUEST, code, message.into())
    }

    /// 404, as [`Self::refused`]: nothing is known under an id.
    pub fn missing(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::NOT_FOUND, code, message.into())
    }

    /// 409, as [`Self::refused`]: true or not, it contradicts what was said before.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::coded(StatusCode::CONFLICT, code, message.into())
    }

    /// 410, as [`Self::refused`]: it was here, and is not kept any more.
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

    /// A refusal of which a later try of the same request may succeed, or not.
    #[must_use]
    pub fn or_later(mut self, later: bool) -> Self {
        if let Self::Refused { retryable, .. } = &mut self {
            *retryable = later;
        }
        self
    }

    /// 503; `message` must not tell anything about the inside.
    pub fn unavailable(
        code: &'static str,
        message: &'static str,
        cause: impl std::fmt::Display,
    ) -> Self {
        Self::Unavailable {
            code,
            message,
            cause: cause.to_string(),
        }
    }

    /// 503 for a request too many.
    pub(super) fn overloaded(cause: impl std::fmt::Display) -> Self {
        Self::unavailable("OVERLOADED", "Too many requests are being answered", cause)
    }

    /// 500.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self::Internal {
            cause: cause.to_string(),
        }
    }

    /// Whether the same request may succeed later, as every answer says.
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

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.told().status
    }

    /// The answer, after a log line for what is the service's own fault.
    pub fn into_response(self) -> Response {
        self.log();
        let mut response = match plain::body(&self) {
            Ok(body) => Response::raw(self.status(), body.into()),
            Err(_) => Response::raw(StatusCode::INTERNAL_SERVER_ERROR, Default::default()),
        };
        if matches!(self, Self::UpgradeRequired) {
            response = response.with("upgrade", HeaderValue::from_static("websocket"));
        }
        if let Self::WrongMethod { allowed, .. } = &self
            && let Ok(allowed) = HeaderValue::from_str(allowed)
        {
            response = response.with("allow", allowed);
        }
        if let Self::RateLimited(standing) = &self {
            response.put_number("retry-after", standing.reset_seconds());
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

    /// What a caller is told, for surfaces with bodies of their own.
    pub fn told(&self) -> ErrorText {
        let told = |status, code, message: &str| (status, code, message.to_owned());
        let (status, code, message) = match self {
            Self::Refused {
                status,
                code,
                message,
                ..
            } => (status.as_u16(), *code, message.clone()),
            Self::Unavailable { code, message, .. } => told(503, *code, message),
            Self::Unauthorized => told(401, "UNAUTHORIZED", "A known x-api-key is required"),
            Self::Forbidden(scope) => {
                let message = format!("The key does not have the scope {scope}");
                (403, "FORBIDDEN", message)
            }
            Self::UpgradeRequired => {
                let message = "This is a WebSocket: a handshake is expected";
                told(426, "UPGRADE_REQUIRED", message)
            }
            Self::RateLimited(_) => told(429, "RATE_LIMITED", "Too many requests"),
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
            Self::BodyTooLarge => told(413, "BODY_TOO_LARGE", "Request body is too large"),
            Self::SlowBody => told(408, "REQUEST_TIMEOUT", "The body did not arrive in time"),
            Self::Internal { .. } => told(500, "UNKNOWN_ERROR", "Something went wrong"),
            Self::Deadline => told(504, "REQUEST_TIMED_OUT", "The request took too long"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ErrorText {
            status,
            code,
            message,
        }
    }
}

/// See [`ApiError::told`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    pub status: StatusCode,
    /// Stable, in capitals.
    pub code: &'static str,
    /// For people.
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
            vm::ReadError::Unavailable(_) => {
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
