//! Accounts whose attempts land independently of each other: the chain knows no order of theirs, and the store counts
//! them. Pure.
//!
//! What is stored of an account is that count. An attempt's id has [`ID`] bytes, of which the first eight are its number.

use alloy::primitives::Keccak256;

use super::{Label, Standing};
use crate::{
    CodecError,
    types::{B256, Bytes},
};

/// The format of accounts and attempts in the store.
const FORMAT: u8 = 1;
/// Bytes of an attempt's id.
pub const ID: usize = 16;

/// How far a chain is, as [`Submitter::reached`](super::Submitter::reached) has it: a mark, then eight bytes.
pub struct Progress {
    pub mark: u8,
    /// What people call the number.
    pub kind: &'static str,
}

impl Progress {
    pub fn bytes(&self, number: u64) -> Bytes {
        [&[self.mark], &number.to_be_bytes()[..]].concat().into()
    }

    /// The label of such bytes; `None` for others.
    pub fn label(&self, bytes: &[u8]) -> Option<Label> {
        let (mark, number) = bytes.split_first()?;
        let number = number.try_into().ok().filter(|_| *mark == self.mark)?;
        Some(Label {
            kind: self.kind,
            text: u64::from_be_bytes(number).to_string(),
        })
    }
}

/// The number of attempts that an account has made. An error for bytes of another format.
pub fn count(account: &[u8]) -> Result<u64, CodecError> {
    let count = written(account)?.try_into().map_err(|_| unreadable())?;
    Ok(u64::from_be_bytes(count))
}

/// What is stored of an account that has made `count` attempts.
pub fn counted(count: u64) -> Bytes {
    stored(&count.to_be_bytes())
}

/// Whether the account has come to an attempt.
pub fn knows(account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
    let (number, _) = attempt.split_first_chunk().ok_or_else(unreadable)?;
    Ok(u64::from_be_bytes(*number) < count(account)?)
}

/// What the chain waits for: nothing.
pub fn standing(account: &[u8]) -> Result<Standing, CodecError> {
    count(account).map(|_| Standing::default())
}

/// The id of an attempt: its number, and a hash of the number and the draft's digest.
pub fn id(number: u64, digest: B256) -> [u8; ID] {
    let mut hash = Keccak256::new();
    hash.update(number.to_be_bytes());
    hash.update(digest);
    let mut id = [0; ID];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[8..].copy_from_slice(&hash.finalize()[..8]);
    id
}

/// The label of an attempt's id.
pub fn label(id: &[u8]) -> Result<Label, CodecError> {
    let (number, rest) = id.split_first_chunk().ok_or_else(unreadable)?;
    let (number, rest) = (u64::from_be_bytes(*number), alloy::hex::encode(rest));
    let text = match rest.is_empty() {
        true => number.to_string(),
        false => format!("{number}-{rest}"),
    };
    Ok(Label {
        kind: "attempt",
        text,
    })
}

/// What is stored of `written`: its format comes first.
pub fn stored(written: &[u8]) -> Bytes {
    [&[FORMAT], written].concat().into()
}

/// What was written. An error for bytes of another format.
pub fn written(stored: &[u8]) -> Result<&[u8], CodecError> {
    match stored {
        [FORMAT, written @ ..] => Ok(written),
        _ => Err(unreadable()),
    }
}

/// Bytes of another format.
pub fn unreadable() -> CodecError {
    CodecError("not an account or attempt as this version writes them".into())
}
