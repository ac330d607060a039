//! What an oracle answered: what it signed, or the code with which it did not.

use alloy::primitives::{B256, Bytes};
use intentd::{
    attest::service::{Attested, Attestor, DepositAnswer, Error, OutcomeAnswer, WithdrawalAnswer},
    http::ApiError,
};
use vm::{WithdrawalStatus, protocol::message::TypedMessage};

use crate::{
    cells::{Played, Stop, ensure},
    family::Script,
};

/// What was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub key: B256,
    pub actions: Vec<Bytes>,
    /// The onchain ids of a transaction's deposits.
    pub ids: Vec<B256>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Signed(Signed),
    /// Answered, with nothing to sign.
    Nothing,
    Refused {
        status: u16,
        code: &'static str,
    },
}

/// The codes of refusals that are no bad request, with their statuses.
const STATUSES: &[(&str, u16)] = &[
    ("QUORUM_UNAVAILABLE", 503),
    ("PROVIDER_UNAVAILABLE", 503),
    ("CHAIN_HALTED", 503),
    ("CONFLICTING_STATEMENT", 409),
];

/// The codes of providers that do not agree, or not yet.
const DOUBTS: &[&str] = &["QUORUM_UNAVAILABLE", "PROVIDER_UNAVAILABLE"];
/// The other codes that may be gone when the same is asked again.
const EARLY: &[&str] = &["TRANSACTION_MISSING", "TRANSACTION_NOT_FINALIZED"];

impl Verdict {
    pub fn deposit(oracle: &Attestor, answer: Result<DepositAnswer, Error>) -> Self {
        match answer {
            Err(error) => error.into(),
            Ok(DepositAnswer { attested: None, .. }) => Self::Nothing,
            Ok(DepositAnswer {
                messages,
                attested: Some(attested),
            }) => {
                let ids = messages.iter().map(|message| message.onchain_id);
                Self::attested(oracle, attested, ids.collect())
            }
        }
    }

    pub fn outcome(oracle: &Attestor, answer: Result<OutcomeAnswer, Error>) -> Self {
        match answer {
            Err(error) => error.into(),
            Ok(answer) => Self::attested(oracle, answer.attested, Vec::new()),
        }
    }

    /// Nothing is signed of a withdrawal that is pending, and of that only.
    pub fn withdrawal(oracle: &Attestor, answer: Result<WithdrawalAnswer, Error>) -> Self {
        match answer {
            Err(error) => error.into(),
            Ok(answer) => {
                let pending = answer.status == WithdrawalStatus::Pending;
                assert_eq!(answer.attested.is_none(), pending, "{answer:?}");
                let attested = answer.attested;
                attested.map_or(Self::Nothing, |it| Self::attested(oracle, it, Vec::new()))
            }
        }
    }

    pub fn transfer(oracle: &Attestor, answer: Result<Attested, Error>) -> Self {
        match answer {
            Err(error) => error.into(),
            Ok(attested) => Self::attested(oracle, attested, Vec::new()),
        }
    }

    /// The signature has to be the oracle's own over exactly this execution.
    fn attested(oracle: &Attestor, attested: Attested, ids: Vec<B256>) -> Self {
        let digest = attested.execution.digest(&oracle.hub.settings.domain);
        let [own] = &attested.signatures[..] else {
            panic!("one signature: {attested:?}");
        };
        let signer = own.signature.recover(&digest).unwrap();
        assert_eq!(signer, oracle.journal.signer());
        Self::Signed(Signed {
            key: attested.execution.idempotency_key,
            actions: attested.execution.actions,
            ids,
        })
    }

    /// Whether it may be another one when the same is asked again.
    pub fn is_passing(&self) -> bool {
        self.is_doubt() || matches!(self, Self::Refused { code, .. } if EARLY.contains(code))
    }

    /// Whether providers do not agree.
    pub fn is_doubt(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if DOUBTS.contains(code))
    }

    pub fn signed(self) -> Result<Signed, Stop> {
        match self {
            Self::Signed(signed) => Ok(signed),
            other => Err(Stop::from(format!("not signed: {other:?}"))),
        }
    }

    /// The deposits of a transaction that nobody knows; some families answer that there are none.
    pub fn is_missing(&self, script: &'static dyn Script) -> Played {
        match script.family().unknown_is_empty {
            true => ensure(*self == Self::Nothing, || {
                format!("{self:?} is not missing")
            }),
            false => self.is_refused("TRANSACTION_MISSING"),
        }
    }

    /// Exactly this is signed.
    pub fn is(self, signed: &Signed) -> Played {
        let found = self.signed()?;
        ensure(found == *signed, || format!("{found:?} is not {signed:?}"))
    }

    /// Nothing is signed, or not yet.
    pub fn is_pending(&self) -> Played {
        let pending = *self == Self::Nothing || self.is_passing();
        ensure(pending, || format!("{self:?} is not pending"))
    }

    /// Refused with one of these codes.
    pub fn is_refused_as(&self, wanted: &[&str]) -> Played {
        let found = wanted.iter().any(|code| self.is_refused(code).is_ok());
        ensure(found, || format!("{self:?} is none of {wanted:?}"))
    }

    /// Refused with this code, and the status that belongs to it.
    pub fn is_refused(&self, wanted: &str) -> Played {
        let known = STATUSES.iter().find(|(code, _)| *code == wanted);
        let wanted_status = known.map_or(400, |(_, status)| *status);
        let right = matches!(self, Self::Refused { status, code }
            if (*code, *status) == (wanted, wanted_status));
        ensure(right, || format!("{self:?} is not {wanted}"))
    }
}

impl From<Error> for Verdict {
    fn from(error: Error) -> Self {
        let text = ApiError::from(error).text();
        Self::Refused {
            status: text.status.as_u16(),
            code: text.code,
        }
    }
}
