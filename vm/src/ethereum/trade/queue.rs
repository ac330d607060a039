//! The nonces of an account: the next one, and those that were somebody else's. Pure.
//!
//! At most one transaction of a nonce lands: so a nonce is what an attempt holds. A nonce and an attempt's id
//! are its 8 bytes big endian.

use alloy::sol_types::SolValue;

use crate::{
    CodecError,
    trade::{Jump, Standing},
    types::Bytes,
};

/// Nonces that the chain may be ahead by before an operator has to look: somebody else uses the key, or
/// providers lie.
const MOST_JUMP: u64 = 16;
/// Skipped nonces that are remembered this far below the chain's count.
const REMEMBERED: u64 = 1_024;
/// Nonces that are looked at behind the chain's count.
const LOOKED_AT: usize = 64;
/// How a queue is written.
const FORMAT: u8 = 1;

alloy::sol! {
    #![sol(all_derives)]
    /// What is stored of an account.
    struct Queue {
        /// The nonce that the next attempt takes.
        uint64 next;
        /// Nonces that were somebody else's when the queue passed them.
        uint64[] skipped;
    }
}

impl Queue {
    /// Of a stored account.
    pub fn read(account: &[u8]) -> Result<Self, CodecError> {
        let (format, rest) = account.split_first().ok_or_else(unreadable)?;
        match *format {
            FORMAT => Self::abi_decode(rest).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    pub fn bytes(&self) -> Bytes {
        [&[FORMAT], &self.abi_encode()[..]].concat().into()
    }

    /// The nonce to take where a quorum has `mined` transactions, the queue from then on, and by how much the
    /// chain was ahead; an error where that is more than is believed.
    pub fn take(stored: Option<Self>, mined: u64) -> Result<(u64, Self, Option<Jump>), Jump> {
        let Some(Self { next, mut skipped }) = stored else {
            return Ok((mined, Self::behind(mined, Vec::new()), None));
        };
        if mined <= next {
            return Ok((next, Self::behind(next, skipped), None));
        }
        let jump = Jump { next, mined };
        if mined - next > MOST_JUMP {
            return Err(jump);
        }
        skipped.extend(next..mined);
        Ok((mined, Self::behind(mined, skipped), Some(jump)))
    }

    fn behind(nonce: u64, skipped: Vec<u64>) -> Self {
        let next = nonce + 1;
        Self { next, skipped }
    }

    /// Which nonces the chain waits for that has `mined` so far, where open attempts hold `held`.
    pub fn standing(&self, mined: u64, held: &[u64]) -> Standing {
        let believing = (mined > self.next).then(|| {
            let recent = self.next.max(mined.saturating_sub(MOST_JUMP))..mined;
            let skipped = self.skipped.iter().copied().chain(recent).collect();
            Self {
                next: mined,
                skipped,
            }
        });
        let waited = (mined..self.next).take(LOOKED_AT);
        let gaps: Vec<_> = waited.filter(|nonce| !held.contains(nonce)).collect();
        let is_spare = |nonce: &&u64| self.skipped.contains(nonce);
        let spare: Vec<_> = gaps.iter().filter(is_spare).copied().collect();
        let kept = |nonce: &&u64| !spare.contains(nonce) && **nonce + REMEMBERED > mined;
        let skipped: Vec<_> = self.skipped.iter().filter(kept).copied().collect();
        let tidied = (skipped.len() != self.skipped.len()).then_some(Self {
            next: self.next,
            skipped,
        });
        let resources = |nonces: Vec<u64>| nonces.into_iter().map(resource).collect();
        Standing {
            gaps: resources(gaps),
            spare: resources(spare),
            tidied: tidied.map(|queue| queue.bytes()),
            believing: believing.map(|queue| queue.bytes()),
        }
    }
}

/// A nonce as a resource, and as the id of an attempt.
pub fn resource(nonce: u64) -> Bytes {
    nonce.to_be_bytes().to_vec().into()
}

pub fn nonce(resource: &[u8]) -> Result<u64, CodecError> {
    let bytes = resource.try_into().map_err(|_| unreadable())?;
    Ok(u64::from_be_bytes(bytes))
}

fn unreadable() -> CodecError {
    CodecError("not an account's nonces as this version writes them".into())
}

#[cfg(test)]
mod tests;
