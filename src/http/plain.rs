//! The oracle's error bodies: shapes and field order of the guide's protocol 10.1. Errors recorded without a code get
//! one here, and every body says whether a later try may succeed.

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ApiError, Errors,
    codes::{self, ErrorCode},
    error::Described,
};

/// The errors of the oracle's surface.
pub const PLAIN: Errors = Errors {
    answer: ApiError::into_response,
    codes: &[codes::SERVER, codes::PLAIN],
    described: &[
        Described::of::<Failure>("400", REFUSED, false),
        Described::of::<Denied>("401", "A known key is required", true),
        Described::of::<Failure>(
            "409",
            "It contradicts what was signed before. Final, except with `retryable`: the payment serves another statement, or \
             the transaction was attested in another block",
            true,
        ),
        Described::of::<Fault>("408", "The body did not arrive in time", true),
        Described::of::<Fault>("413", "The body is above 1 MiB", true),
        Described::of::<Fault>("415", "The body is not JSON", true),
        Described::of::<Denied>(
            "429",
            "The limit for callers without a key is used up",
            true,
        ),
        Described::of::<Fault>("500", "A fault of the service's own", true),
        Described::of::<Failure>("503", "The chain or its providers cannot be used now", true),
        Described::of::<Fault>("504", "The answer took too long", true),
    ],
};

/// The description of a 400: lists the codes that a later try may not get again.
pub const REFUSED: &str = "The request cannot be used, or is refused. Final, except with \
    `retryable`: TRANSACTION_MISSING, TRANSACTION_NOT_FINALIZED, FAST_MODE_LIMIT_EXCEEDED, \
    BALANCE_INSUFFICIENT, WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT, WITHDRAW_REQUEST_NOT_AVAILABLE, \
    ORDER_BALANCE_INSUFFICIENT, DEPOSIT_NOT_MINTED, \
    DEPOSIT_NOT_RECOVERED, ORDER_REQUIRED, ORDER_NOT_GIVEN_UP, ORDER_OPEN, PAYMENT_VISIBLE, \
    WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT, OUTPUTS_DIFFERENT, HASH_TO_SIGN_NOT_SET, TRIGGER_NOT_MAPPED";

/// The body of a 400, 409 or 503: a message and a stable code.
#[derive(Serialize, ToSchema)]
struct Failure<'a> {
    message: &'a str,
    code: ErrorCode,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The path of the code's page.
    docs: String,
}

/// The body of an error that the server itself answers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Fault<'a> {
    status_code: u16,
    code: ErrorCode,
    error: &'a str,
    message: &'a str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The path of the code's page.
    docs: String,
}

/// The body of a 401, 403 or 429.
#[derive(Serialize, ToSchema)]
struct Denied<'a> {
    error: &'a str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The path of the error's page.
    docs: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NoRoute<'a> {
    message: &'a str,
    error: &'a str,
    status_code: u16,
    code: ErrorCode,
    retryable: bool,
    docs: String,
}

/// The bytes of an error body.
pub fn body(error: &ApiError) -> Result<Vec<u8>, serde_json::Error> {
    let (text, retryable) = (error.text(), error.retryable());
    let code = match error {
        ApiError::MediaType(_) => "FST_ERR_CTP_INVALID_MEDIA_TYPE",
        ApiError::BodyTooLarge => "FST_ERR_CTP_BODY_TOO_LARGE",
        ApiError::Internal { .. } => "INTERNAL",
        ApiError::Deadline => "DEADLINE_EXCEEDED",
        _ => text.code,
    };
    let (message, docs) = (text.message.as_str(), codes::page(code));
    let (status_code, code) = (text.status.as_u16(), ErrorCode(code));
    // The recorded bodies of these have no code; their pages are those of the usual codes.
    let denied = |error: &str| {
        serde_json::to_vec(&Denied {
            error,
            retryable,
            docs: docs.clone(),
        })
    };
    match error {
        ApiError::Refused { .. } | ApiError::Unavailable { .. } => serde_json::to_vec(&Failure {
            message,
            code,
            retryable,
            docs,
        }),
        ApiError::Unauthorized => denied("Unauthorized"),
        ApiError::Forbidden(_) => denied("Forbidden"),
        ApiError::RateLimited(_) => denied("Rate limit exceeded"),
        ApiError::NoRoute { .. } => serde_json::to_vec(&NoRoute {
            message,
            error: "Not Found",
            status_code,
            code,
            retryable,
            docs,
        }),
        _ => serde_json::to_vec(&Fault {
            status_code,
            code,
            error: text.status.canonical_reason().unwrap_or_default(),
            message,
            retryable,
            docs,
        }),
    }
}
