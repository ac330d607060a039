//! Why there is no attestation → what the caller is told.

use vm::ReadError;

use super::codes;
use crate::{
    attest::{Refusal, journal::JournalError, service::Error},
    chains::Closed,
    http::{
        ApiError, Errors,
        codes::{PLAIN as FAULTS, SERVER},
        plain::PLAIN,
    },
};

/// How the oracle's listener says no.
pub const ERRORS: Errors = Errors {
    codes: &[
        codes::DEPOSITS,
        codes::PAYMENTS,
        codes::WITHDRAWALS,
        codes::SERVICE,
        SERVER,
        FAULTS,
    ],
    ..PLAIN
};

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        ApiError::refused(refusal.code(), refusal.to_string()).or_later(refusal.retryable())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Read(error) => unread(&error),
            Error::Journal(error) => unsigned(&error),
            Error::Closed { ref why, .. } => {
                let (code, message) = closed(why);
                ApiError::unavailable(code, message, error)
            }
            Error::NoAllocator(_) => ApiError::unavailable(
                "ALLOCATOR_UNAVAILABLE",
                "The allocator of withdrawals cannot be read by this oracle",
                error,
            ),
            Error::NoRoom => ApiError::unavailable(
                "DISK_RESERVE",
                "The disk is nearly full: this is signed for callers with a key",
                error,
            ),
            Error::Setup(_) => ApiError::internal(error),
        }
    }
}

fn closed(why: &Closed) -> (&'static str, &'static str) {
    match why {
        Closed::FewProviders { .. } => (
            "PROVIDERS_INSUFFICIENT",
            "Too few providers of the chain or of the settlement chain are configured",
        ),
        Closed::Unreadable(_) => (
            "CHAIN_UNAVAILABLE",
            "The chain cannot be read by this oracle",
        ),
        Closed::NotServed => ("CHAIN_UNAVAILABLE", "This oracle does not serve the chain"),
    }
}

fn unread(error: &ReadError) -> ApiError {
    match error {
        ReadError::Quorum(_) => ApiError::unavailable(
            "QUORUM_UNAVAILABLE",
            "Not enough providers of a chain agree",
            error,
        ),
        ReadError::TooLarge => {
            let what = "A transaction is larger than what is read of one";
            ApiError::refused("TRANSACTION_TOO_LARGE", what)
        }
        ReadError::Foreign(why) => ApiError::refused("INVALID_REQUEST", *why),
        ReadError::Unavailable(_) | ReadError::Doubtful(_) => ApiError::unavailable(
            "PROVIDER_UNAVAILABLE",
            "A chain's provider gave no usable answer",
            error,
        ),
    }
}

fn unsigned(error: &JournalError) -> ApiError {
    match error {
        JournalError::Conflict {
            payment, holder, ..
        } => {
            let message = conflicting(holder.as_deref());
            ApiError::conflict("CONFLICTING_STATEMENT", message).or_later(*payment)
        }
        JournalError::OtherBlock { .. } => ApiError::conflict(
            "CONFLICTING_STATEMENT",
            "The transaction was attested in another block",
        )
        .or_later(true),
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

/// What a caller is told whose statement conflicts with another one, of what `holder` has. An owner signs the same for
/// two routes, and whoever sees its request may bring it to the other one first: the owner goes on there.
fn conflicting(holder: Option<&str>) -> String {
    let said = "This contradicts a statement that was signed before";
    let route = match holder.and_then(|holder| holder.split('/').next()) {
        Some("initiation") => "withdrawal-initiation",
        Some("authorization") => "withdraw-request-authorization",
        _ => return said.to_owned(),
    };
    format!("{said}, by {route}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{
        attest::{Refusal, journal::JournalError, refusal::RETRYABLE, service::Error},
        http::{ApiError, plain::REFUSED},
    };

    /// The words of `text` that look like codes of ours.
    fn codes(text: &str) -> BTreeSet<&str> {
        let word = |c: char| !(c.is_ascii_uppercase() || c == '_');
        let words = text.split(word).filter(|word| word.contains('_'));
        words.collect()
    }

    #[test]
    fn guide_description_and_refusals_agree_on_what_may_be_retried() {
        let known = BTreeSet::from_iter(RETRYABLE.iter().copied());
        assert_eq!(codes(REFUSED), known);
        let guide = include_str!("../../guide/oracle.md");
        let rows = guide.lines().filter(|line| line.starts_with("| 400"));
        let (yes, no): (Vec<_>, Vec<_>) = rows.partition(|row| row.ends_with("| yes |"));
        assert_eq!(codes(&yes.concat()), known);
        assert_eq!(yes.len(), 1);
        assert!(
            !no.is_empty() && codes(&no.concat()).is_disjoint(&known),
            "{no:?}"
        );
    }

    #[test]
    fn a_conflict_is_final_unless_a_payment_or_a_block_is_in_the_way() {
        let conflict = |payment| JournalError::Conflict {
            key: String::new(),
            existing: String::new(),
            payment,
            holder: None,
        };
        let other = JournalError::OtherBlock {
            key: String::new(),
            block: vm::testing::block(1, 1),
            chain: vm::ChainId::new("base"),
        };
        for (error, later) in [
            (conflict(true), true),
            (conflict(false), false),
            (other, true),
        ] {
            let error = ApiError::from(Error::Journal(error));
            assert_eq!((error.status().as_u16(), error.retryable()), (409, later));
        }
    }

    /// The owner's signature is good at both routes, and anybody may have brought it to the other one.
    #[test]
    fn a_conflict_names_the_route_that_has_the_nonce_of_an_owner() {
        for (holder, route) in [
            (Some("initiation/0x01"), Some("withdrawal-initiation")),
            (
                Some("authorization/0x01"),
                Some("withdraw-request-authorization"),
            ),
            (Some("outcome/0x01/0x02"), None),
            (None, None),
        ] {
            let error = ApiError::from(Error::Journal(JournalError::Conflict {
                key: String::new(),
                existing: String::new(),
                payment: false,
                holder: holder.map(str::to_owned),
            }));
            let by = route.map(|route| format!(", by {route}"));
            let said = "CONFLICTING_STATEMENT: This contradicts a statement that was signed before";
            assert_eq!(error.to_string(), said.to_owned() + &by.unwrap_or_default());
        }
    }

    #[test]
    fn a_refusal_tells_whether_time_may_end_it() {
        for (refusal, later) in [
            (Refusal::NotFinalized("0x".into()), true),
            (Refusal::FastLimit, true),
            (Refusal::InsufficientBalance, true),
            (Refusal::OrderOpen(1), true),
            (Refusal::PaymentVisible, true),
            (Refusal::OrderSignature, false),
            (Refusal::ChainNotAvailable("x".into()), false),
        ] {
            assert_eq!(refusal.retryable(), later, "{refusal}");
            assert_eq!(ApiError::from(refusal).retryable(), later);
        }
    }
}
