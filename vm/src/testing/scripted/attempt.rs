//! What the solver stores of an account and of its attempts. Pure.
//!
//! On the chain the attempts of an account have nothing in common. Each holds one resource: its id, which is also the
//! salt of its transactions. The first eight bytes of an id are the attempt's number in this store; the chain knows no
//! such number.

use serde::{Deserialize, Serialize};

use crate::{
    CodecError,
    trade::{
        self, Attempt, Intent, Label, SignedTx, Standing,
        numbered::{self, Progress},
    },
    types::{Address, Amount, Bytes},
};

use super::{
    submit::LIFE,
    transaction::{Payments, SALT, Transaction, read, written},
};

/// How far the chain is.
pub const HEIGHT: Progress = Progress {
    mark: b'h',
    kind: "height",
};

/// See [`crate::Family::landing`].
pub struct Landing;

impl trade::Landing for Landing {
    /// A transaction expires; nothing else ends it.
    fn life(&self) -> u64 {
        LIFE
    }

    /// An attempt's resource is made of its payment, too.
    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError> {
        numbered::count(account).map(|_| None)
    }

    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
        numbered::knows(account, attempt)
    }

    fn label(&self, resource: &[u8]) -> Result<Label, CodecError> {
        if let Some(label) = HEIGHT.label(resource) {
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
            id: numbered::id(number, intent.draft.digest()),
            payments: Payments::of(&intent.draft)?,
            cancelled: false,
            signed: Vec::new(),
        })
    }

    pub fn read(attempt: &Attempt) -> Result<Self, CodecError> {
        read(numbered::written(&attempt.own)?)
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
            own: numbered::stored(&written(self)?),
        })
    }
}
