//! What the solver stores of an account and of its attempts. Pure.
//!
//! On the chain the attempts of an account have nothing in common. Each holds one resource: its id. The first eight
//! bytes of an id are the attempt's number in this store; the chain knows no such number.

use alloy::primitives::Keccak256;
use borsh::{BorshDeserialize, BorshSerialize};

use super::{
    body::{Content, Payments},
    message::SIGNATURE,
};
use crate::{
    CodecError,
    trade::{self, Attempt, Intent, Label, SignedTx, Standing},
    types::{Address, Amount, B256, Bytes},
};

/// The format of accounts and attempts in the store.
const FORMAT: u8 = 1;
/// The first byte of a slot.
const SLOT: u8 = b's';
/// Bytes of an attempt's id.
const ID: usize = 16;

/// See [`crate::Family::landing`].
pub struct Landing;

impl trade::Landing for Landing {
    /// An attempt's resource is made of its payment, too.
    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError> {
        count(account).map(|_| None)
    }

    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
        let (number, _) = attempt.split_first_chunk().ok_or_else(unreadable)?;
        Ok(u64::from_be_bytes(*number) < count(account)?)
    }

    fn label(&self, resource: &[u8]) -> Result<Label, CodecError> {
        if let [SLOT, slot @ ..] = resource
            && let Ok(slot) = slot.try_into()
        {
            let text = u64::from_be_bytes(slot).to_string();
            return Ok(Label { kind: "slot", text });
        }
        let (number, rest) = resource.split_first_chunk().ok_or_else(unreadable)?;
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

    /// Nothing is ever waited for: each transaction lands independently of all others.
    fn standing(&self, account: &[u8], _: &[u8], _: &[Bytes]) -> Result<Standing, CodecError> {
        count(account).map(|_| Standing::default())
    }
}

/// The number of attempts that an account has made. An error for bytes of another format.
pub fn count(account: &[u8]) -> Result<u64, CodecError> {
    match account {
        [FORMAT, count @ ..] => {
            let count = count.try_into().map_err(|_| unreadable())?;
            Ok(u64::from_be_bytes(count))
        }
        _ => Err(unreadable()),
    }
}

/// What is stored of an account that has made `count` attempts.
pub fn counted(count: u64) -> Bytes {
    [&[FORMAT], &count.to_be_bytes()[..]].concat().into()
}

/// A slot as [`Submitter::reached`](trade::Submitter::reached) has it.
pub fn slot(number: u64) -> Bytes {
    [&[SLOT], &number.to_be_bytes()[..]].concat().into()
}

/// The family's own part of a stored attempt.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Own {
    pub id: [u8; ID],
    pub payments: Payments,
    /// Compute units that each of its transactions may take.
    pub units: u32,
    /// Nothing is signed or sent for it any more.
    pub cancelled: bool,
    /// Oldest first.
    pub signed: Vec<Signed>,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Signed {
    pub raw: Vec<u8>,
    /// Its id.
    pub signature: [u8; SIGNATURE],
    /// The slot of the block whose hash it names: it lands above.
    pub slot: u64,
    /// No block higher than this has it: the number of blocks below that one.
    pub last: u64,
    /// Lamports that it costs at most, for the signature and for its work.
    pub fee: u64,
}

impl Own {
    /// An attempt at an intent, without a signed transaction.
    pub fn of(intent: &Intent, (number, units): (u64, u32)) -> Result<Self, CodecError> {
        let Content::Payments(payments) = Content::of(&intent.draft)? else {
            return Err(CodecError("the solver sends nothing but payments".into()));
        };
        Ok(Self {
            id: id(number, intent.draft.digest()),
            payments,
            units,
            cancelled: false,
            signed: Vec::new(),
        })
    }

    pub fn read(attempt: &Attempt) -> Result<Self, CodecError> {
        match &attempt.own[..] {
            [FORMAT, own @ ..] => Self::try_from_slice(own).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    /// The attempt's number in this store.
    pub fn number(&self) -> u64 {
        let number = self.id.first_chunk().copied();
        number.map_or(0, u64::from_be_bytes)
    }

    /// The attempt, which takes at most `spends`, the native currency first.
    pub fn attempt(&self, spends: Vec<(Address, Amount)>) -> Result<Attempt, CodecError> {
        let mut own = vec![FORMAT];
        self.serialize(&mut own)
            .map_err(|error| CodecError(error.to_string()))?;
        let id = Bytes::copy_from_slice(&self.id);
        Ok(Attempt {
            resources: vec![id.clone()],
            id,
            spends,
            signed: self.signed.iter().map(Signed::shown).collect(),
            own: own.into(),
        })
    }
}

impl Signed {
    /// The id as the chain spells it.
    pub fn id(&self) -> String {
        bs58::encode(&self.signature).into_string()
    }

    fn shown(&self) -> SignedTx {
        SignedTx {
            id: self.id(),
            cancels: false,
        }
    }
}

/// The id of an attempt: its number, and a hash of the number and the draft's digest.
fn id(number: u64, digest: B256) -> [u8; ID] {
    let mut hash = Keccak256::new();
    hash.update(number.to_be_bytes());
    hash.update(digest);
    let mut id = [0; ID];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[8..].copy_from_slice(&hash.finalize()[..8]);
    id
}

fn unreadable() -> CodecError {
    CodecError("not an account or attempt as this version writes them".into())
}

#[cfg(test)]
mod tests;
