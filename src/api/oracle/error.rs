//! Why there is no attestation → what the caller is told.

use vm::ReadError;

use crate::{
    attest::{Refusal, journal::JournalError, service::Error},
    http::ApiError,
};

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        ApiError::refused(refusal.code(), refusal.to_string())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Read(error) => unread(&error),
            Error::Journal(error) => unsigned(&error),
            Error::Closed { .. } => ApiError::unavailable(
                "CHAIN_UNAVAILABLE",
                "The chain cannot be read by this oracle",
                error,
            ),
            Error::NoAllocator(_) => ApiError::unavailable(
                "ALLOCATOR_UNAVAILABLE",
                "The allocator of withdrawals cannot be read by this oracle",
                error,
            ),
            Error::Setup(_) => ApiError::internal(error),
        }
    }
}

fn unread(error: &ReadError) -> ApiError {
    match error {
        ReadError::Quorum(_) => ApiError::unavailable(
            "QUORUM_UNAVAILABLE",
            "Not enough providers of a chain agree",
            error,
        ),
        ReadError::Unavailable(_) | ReadError::Doubtful(_) => ApiError::unavailable(
            "PROVIDER_UNAVAILABLE",
            "A chain's provider gave no usable answer",
            error,
        ),
    }
}

fn unsigned(error: &JournalError) -> ApiError {
    match error {
        JournalError::Conflict { .. } => ApiError::conflict(
            "CONFLICTING_STATEMENT",
            "This contradicts a statement that was signed before",
        ),
        JournalError::OtherBlock { .. } => ApiError::conflict(
            "CONFLICTING_STATEMENT",
            "The transaction was attested in another block",
        ),
        JournalError::Halted(chain) => ApiError::unavailable(
            "CHAIN_HALTED",
            "Signing for the chain is halted",
            format!("{chain}: {error}"),
        ),
        JournalError::Unsure(_) => {
            ApiError::unavailable("JOURNAL_UNAVAILABLE", "The journal is not available", error)
        }
        JournalError::Signer(_) => {
            ApiError::unavailable("SIGNER_UNAVAILABLE", "The signer is not available", error)
        }
    }
}
