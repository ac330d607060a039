//! Answers as the evidence of a claim has them.

use super::dissent::Sight;
use crate::{
    Large,
    evidence::{self, digest},
    types::{Block, Bytes, Transaction, WithdrawalStatus},
};

/// An answer that evidence can have.
pub trait Recorded: Sized {
    /// The answer as evidence: a large one as its digest.
    fn shown(&self) -> evidence::Answer;
    /// The answer that evidence has; `None` for one of another kind.
    fn of_evidence(answer: evidence::Answer) -> Option<Self>;
}

impl Recorded for Transaction {
    fn shown(&self) -> evidence::Answer {
        match self.is_large() {
            true => evidence::Answer::Large(digest(self)),
            false => evidence::Answer::Transaction(Box::new(self.clone())),
        }
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Transaction(found) => Some(*found),
            _ => None,
        }
    }
}

impl Recorded for WithdrawalStatus {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Withdrawal(*self)
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Withdrawal(status) => Some(status),
            _ => None,
        }
    }
}

impl Recorded for u64 {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Sequence(*self)
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Sequence(number) => Some(number),
            _ => None,
        }
    }
}

impl Recorded for bool {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Outputs(*self)
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Outputs(same) => Some(same),
            _ => None,
        }
    }
}

impl Recorded for Bytes {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::View(self.clone())
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::View(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl Recorded for Option<Block> {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Settled(self.clone())
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Settled(block) => Some(block),
            _ => None,
        }
    }
}

impl Recorded for Option<Bytes> {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::OwnerKey(self.clone())
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::OwnerKey(key) => Some(key),
            _ => None,
        }
    }
}

impl Recorded for Sight {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Contains(*self == Self::Holds)
    }

    fn of_evidence(answer: evidence::Answer) -> Option<Self> {
        match answer {
            evidence::Answer::Contains(holds) => {
                Some(if holds { Self::Holds } else { Self::Other })
            }
            _ => None,
        }
    }
}
