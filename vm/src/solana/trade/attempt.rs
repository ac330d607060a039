//! What the solver stores of an account and of its attempts. Pure.
//!
//! On the chain the attempts of an account have nothing in common. Each holds one resource: its id. The first eight
//! bytes of an id are the attempt's number in this store; the chain knows no such number.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{
    body::{Content, Payments},
    message::SIGNATURE,
    submit::LIFE,
};
use crate::{
    CodecError,
    trade::{
        self, Attempt, Intent, Label, SignedTx, Standing,
        numbered::{self, ID, Progress},
    },
    types::{Address, Amount, Bytes},
};

/// How far the chain is.
pub const SLOT: Progress = Progress {
    mark: b's',
    kind: "slot",
};

/// See [`crate::Family::landing`].
pub struct Landing;

impl trade::Landing for Landing {
    /// No transaction cancels another: one may land until its blockhash ends.
    fn life(&self) -> u64 {
        LIFE + 1
    }

    /// An attempt's resource is made of its payment, too.
    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError> {
        numbered::count(account).map(|_| None)
    }

    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
        numbered::knows(account, attempt)
    }

    fn label(&self, resource: &[u8]) -> Result<Label, CodecError> {
        if let Some(label) = SLOT.label(resource) {
            return Ok(label);
        }
        numbered::label(resource)
    }

    /// Nothing is ever waited for: each transaction lands independently of all others.
    fn standing(&self, account: &[u8], _: &[u8], _: &[Bytes]) -> Result<Standing, CodecError> {
        numbered::standing(account)
    }
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
            id: numbered::id(number, intent.draft.digest()),
            payments,
            units,
            cancelled: false,
            signed: Vec::new(),
        })
    }

    pub fn read(attempt: &Attempt) -> Result<Self, CodecError> {
        let own = numbered::written(&attempt.own)?;
        Self::try_from_slice(own).map_err(|_| numbered::unreadable())
    }

    /// The attempt's number in this store.
    pub fn number(&self) -> u64 {
        let number = self.id.first_chunk().copied();
        number.map_or(0, u64::from_be_bytes)
    }

    /// Lamports that the attempt takes for accounts.
    pub fn rent(&self, attempt: &Attempt) -> Result<Amount, CodecError> {
        let lamports = attempt.spends.first().map(|(_, amount)| *amount);
        let fee = self.signed.last().map_or(0, |one| one.fee);
        let others = Amount::from(self.payments.native()?).saturating_add(Amount::from(fee));
        Ok(lamports.unwrap_or_default().saturating_sub(others))
    }

    /// The attempt, which takes at most `spends`, the native currency first.
    pub fn attempt(&self, spends: Vec<(Address, Amount)>) -> Result<Attempt, CodecError> {
        let written = borsh::to_vec(self).map_err(|error| CodecError(error.to_string()))?;
        let id = Bytes::copy_from_slice(&self.id);
        Ok(Attempt {
            resources: vec![id.clone()],
            id,
            spends,
            signed: self.signed.iter().map(Signed::shown).collect(),
            own: numbered::stored(&written),
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

#[cfg(test)]
mod tests;
