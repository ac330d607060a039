//! What the solver stores of an account and of its attempts. Pure.
//!
//! On the chain the attempts of an account have nothing in common. Each holds one resource: its id, which is also the
//! salt of its transactions. The first eight bytes of an id are the attempt's number in this store; the chain knows no
//! such number.

use alloy::primitives::Keccak256;
use serde::{Deserialize, Serialize};

use crate::{
    CodecError,
    trade::{self, Attempt, Intent, Label, SignedTx, Standing},
    types::{Address, Amount, B256, Bytes},
};

use super::transaction::{Payments, SALT, Transaction, read, written};

/// The format of accounts and attempts in the store.
const FORMAT: u8 = 1;
/// The first byte of a height.
const HEIGHT: u8 = b'h';

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
        if let [HEIGHT, height @ ..] = resource
            && let Ok(height) = height.try_into()
        {
            let text = u64::from_be_bytes(height).to_string();
            return Ok(Label {
                kind: "height",
                text,
            });
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

/// A height as [`Submitter::reached`](trade::Submitter::reached) has it.
pub fn height(number: u64) -> Bytes {
    [&[HEIGHT], &number.to_be_bytes()[..]].concat().into()
}

/// The id of an attempt: its number, and a hash of the number and the draft's digest.
pub fn id(number: u64, digest: B256) -> [u8; SALT] {
    let mut hash = Keccak256::new();
    hash.update(number.to_be_bytes());
    hash.update(digest);
    let mut id = [0; SALT];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[8..].copy_from_slice(&hash.finalize()[..8]);
    id
}

/// The family's own part of a stored attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Own {
    pub id: [u8; SALT],
    pub payments: Payments,
    /// Nothing is signed or sent for it any more.
    pub cancelled: bool,
    /// The bytes of the signed transactions, oldest first.
    signed: Vec<Bytes>,
}

impl Own {
    /// An attempt at an intent, without a signed transaction.
    pub fn of(intent: &Intent, number: u64) -> Result<Self, CodecError> {
        Ok(Self {
            id: id(number, intent.draft.digest()),
            payments: Payments::of(&intent.draft)?,
            cancelled: false,
            signed: Vec::new(),
        })
    }

    pub fn read(attempt: &Attempt) -> Result<Self, CodecError> {
        match &attempt.own[..] {
            [FORMAT, own @ ..] => read(own),
            _ => Err(unreadable()),
        }
    }

    /// The signed transactions, oldest first.
    pub fn transactions(&self) -> Result<Vec<Transaction>, CodecError> {
        let signed = self.signed.iter();
        signed.map(|raw| Transaction::read(raw)).collect()
    }

    /// The bytes of the newest transaction.
    pub fn newest(&self) -> Option<&Bytes> {
        self.signed.last()
    }

    pub fn add(&mut self, transaction: &Transaction) -> Result<(), CodecError> {
        self.signed.push(transaction.raw()?);
        Ok(())
    }

    /// The attempt. It spends the transfers and `fee` of the native currency, and `others`.
    pub fn attempt(
        &self,
        (native, fee): (Address, Amount),
        others: Vec<(Address, Amount)>,
    ) -> Result<Attempt, CodecError> {
        let value = self.payments.native()?;
        let mut spends = vec![(native, value.saturating_add(fee))];
        spends.extend(others);
        let signed = self.transactions()?.into_iter().map(|one| SignedTx {
            id: one.id(),
            cancels: false,
        });
        let id = Bytes::copy_from_slice(&self.id);
        Ok(Attempt {
            resources: vec![id.clone()],
            id,
            spends,
            signed: signed.collect(),
            own: [&[FORMAT], &written(self)?[..]].concat().into(),
        })
    }
}

fn unreadable() -> CodecError {
    CodecError("not an account or attempt as this version writes them".into())
}
