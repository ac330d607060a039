//! How the integrator API says no: `message`, `errorCode`, and `statusCode`, since the published client
//! reads the status from the body only (guide: protocol 11.8).

use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::codes::{OTHERS, QUOTES, UNANSWERED};
use crate::{
    chart::ChartError,
    http::{
        ApiError, Body, Errors, Response,
        codes::{self, ErrorCode, SERVER},
        error::{Described, ErrorText},
    },
    index::submitted::SubmittedError,
    quote::code::{FailedCall, Refused},
    store::requests::RequestsError,
    stream::feed::FeedError,
};

/// Every status that a route may answer with besides 200.
pub const ERRORS: Errors = Errors {
    answer,
    codes: &[QUOTES, OTHERS, UNANSWERED, SERVER],
    described: &[
        Described::of::<Failure>(
            "400",
            "The request cannot be used; `errorCode` says why",
            false,
        ),
        Described::of::<Failure>("401", "A known key is required", true),
        Described::of::<Failure>("403", "The key may not do this", true),
        Described::of::<Failure>("404", "Nothing is known under this id", false),
        Described::of::<Failure>("408", "The body did not arrive in time", true),
        Described::of::<Failure>("413", "The body is above 1 MiB", true),
        Described::of::<Failure>("415", "The body is not JSON", false),
        Described::of::<Failure>("429", "Too many requests", true),
        Described::of::<Failure>("500", "A fault of the service's own", true),
        Described::of::<Failure>(
            "503",
            "Prices, chains or the store cannot be used now",
            true,
        ),
        Described::of::<Failure>("504", "The answer took too long", true),
    ],
};

/// The body of every refusal. The code stands under the three names that clients of different routes
/// read it by (guide: protocol 11.8).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IntegratorFailure)]
pub(super) struct Failure {
    message: String,
    error_code: ErrorCode,
    /// As `errorCode`.
    code: &'static str,
    /// As `errorCode`.
    error: &'static str,
    status_code: u16,
    /// The path of the code's page.
    docs: String,
}

/// A quote's refusal, with what a simulation said where one reverted.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteRefused)]
pub(super) struct QuoteFailure {
    /// Names the field and what was expected of it.
    message: String,
    error_code: ErrorCode,
    /// What the contract said; set, as the next two are, where a simulation reverted.
    #[schema(nullable = false)]
    error_data: Option<String>,
    /// The head at which it reverted.
    #[schema(nullable = false)]
    approx_simulated_block: Option<u64>,
    #[schema(nullable = false)]
    failed_call_data: Option<FailedCall>,
    /// The published client reads the HTTP status from the body only.
    status_code: u16,
    /// The path of the code's page.
    docs: String,
}

impl QuoteFailure {
    fn of(refused: &Refused) -> Self {
        let code = refused.code.text();
        Self {
            message: refused.message.clone(),
            error_code: ErrorCode(code),
            error_data: refused.error_data.clone(),
            approx_simulated_block: refused.approx_simulated_block,
            failed_call_data: refused.failed_call_data.as_deref().cloned(),
            status_code: refused.status_code,
            docs: codes::page(code),
        }
    }
}

fn answer(error: ApiError) -> Response {
    let ErrorText {
        status,
        code,
        message,
    } = error.text();
    let body = Failure {
        message,
        error_code: ErrorCode(code),
        code,
        error: code,
        status_code: status.as_u16(),
        docs: codes::page(code),
    };
    let plain = error.into_response();
    match serde_json::to_vec(&body) {
        Ok(body) => Response {
            body: Body::Whole(body.into()),
            ..plain
        },
        Err(_) => plain,
    }
}

/// A quote's refusal has a body of its own.
pub fn refused(refused: &Refused) -> Result<Response, ApiError> {
    let status = hyper::StatusCode::from_u16(refused.status_code).map_err(ApiError::internal)?;
    if status.is_server_error() {
        tracing::warn!(error = %refused, code = refused.code.text(), "no quote");
    }
    Response::json_with(status, &QuoteFailure::of(refused))
}

impl From<SubmittedError> for ApiError {
    fn from(error: SubmittedError) -> Self {
        let message = error.to_string();
        match error {
            SubmittedError::UnknownChain(_) => Self::refused("UNSUPPORTED_CHAIN", message),
            SubmittedError::BadHash(_) => Self::refused("INVALID_TRANSACTION_HASH", message),
            SubmittedError::BadTransaction(_) => Self::refused("INVALID_TRANSACTION", message),
            SubmittedError::UnknownRequest(_) => Self::missing("REQUEST_NOT_FOUND", message),
            SubmittedError::NotIncluded(_) | SubmittedError::UnknownTransaction(_) => {
                Self::missing("TRANSACTION_NOT_FOUND", message)
            }
            SubmittedError::Busy => {
                Self::unavailable("SERVICE_UNAVAILABLE", "Too many transactions wait", message)
                    .after(1)
            }
            SubmittedError::Index(error) => Self::unavailable(
                "SERVICE_UNAVAILABLE",
                "The transaction cannot be looked up now",
                error,
            ),
        }
    }
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        let message = error.to_string();
        match error {
            FeedError::Requests(error) => error.into(),
            FeedError::Unknown(_) => Self::missing("REQUEST_NOT_FOUND", message),
            FeedError::Gone(_) => {
                let what = "Begin without Last-Event-ID, and ask where your requests stand";
                Self::gone("EVENTS_GONE", format!("{message}. {what}"))
            }
        }
    }
}

impl From<ChartError> for ApiError {
    fn from(error: ChartError) -> Self {
        Self::unavailable(
            "SERVICE_UNAVAILABLE",
            "Prices of before cannot be read now",
            error,
        )
    }
}

impl From<RequestsError> for ApiError {
    fn from(error: RequestsError) -> Self {
        Self::unavailable("SERVICE_UNAVAILABLE", "Requests cannot be read now", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexError;

    #[test]
    fn who_comes_when_too_many_transactions_wait_learns_when_to_come_again() {
        for (error, wait) in [
            (SubmittedError::Busy, Some("1")),
            (SubmittedError::Index(IndexError::Moved), None),
        ] {
            let answer = answer(error.into());
            assert_eq!(answer.status, 503);
            let after = answer.headers.get("retry-after");
            assert_eq!(after.map(|value| value.to_str().unwrap()), wait);
        }
    }
}
