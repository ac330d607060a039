//! Accounts and attempts as stores of format 3 had them, when all were this family's. How serde reads them, field by
//! field, is that format. Pure.

use serde::Deserialize;

use super::{
    queue::{self, Queue},
    versions::{Version, Versions},
};
use crate::{
    CodecError, Family,
    ethereum::FAMILY,
    trade::{Attempt, Authorization, Body, Draft, Intent},
    types::{Amount, B256, Bytes},
};

/// An account of then.
#[derive(Clone, Debug, Deserialize)]
pub struct CarriedAccount {
    /// The nonce that the next attempt takes.
    pub next: u64,
    /// Nonces before it that were somebody else's.
    pub skipped: Vec<u64>,
}

/// An attempt of then: a call of an account, with what was signed for it.
#[derive(Clone, Debug, Deserialize)]
pub struct Carried {
    pub to: String,
    pub data: Bytes,
    pub value: Amount,
    pub authorizations: Vec<CarriedAuthorization>,
    /// Gas units.
    pub gas: u64,
    /// Most that the chain takes for the bytes besides gas.
    pub data_fee: Amount,
    /// What it takes of currencies other than the native one.
    pub spends: Vec<(String, Amount)>,
    /// Oldest first.
    pub signed: Vec<CarriedTx>,
}

/// An EIP-7702 authorization of then.
#[derive(Clone, Debug, Deserialize)]
pub struct CarriedAuthorization {
    pub chain_id: u64,
    pub address: String,
    pub nonce: u64,
    pub y_parity: u8,
    pub r: B256,
    pub s: B256,
}

/// A signed transaction of then.
#[derive(Clone, Debug, Deserialize)]
pub struct CarriedTx {
    pub hash: B256,
    pub raw: Bytes,
    /// Gas units.
    pub gas: u64,
    /// Wei per gas unit.
    pub max_fee: u128,
    pub max_priority_fee: u128,
    pub cancels: bool,
}

/// The family of all accounts of then.
pub fn carried_family() -> &'static Family {
    &FAMILY
}

/// What holds a nonce, as an attempt's id.
pub fn carried_id(nonce: u64) -> Bytes {
    queue::resource(nonce)
}

impl CarriedAccount {
    /// What is known of the account, as the family stores it now.
    pub fn own(self) -> Bytes {
        let Self { next, skipped } = self;
        Queue { next, skipped }.bytes()
    }
}

impl Carried {
    /// The attempt that it is now. Refuses an `id` that is no nonce, and addresses of other families.
    pub fn attempt(mut self, id: &[u8]) -> Result<Attempt, CodecError> {
        let nonce = queue::nonce(id)?;
        let (data_fee, signed) = (self.data_fee, std::mem::take(&mut self.signed));
        let intent = self.intent()?;
        let mut versions = Versions::of(&intent, data_fee)?;
        let signed = signed.into_iter().map(|one| Version {
            hash: one.hash,
            raw: one.raw,
            gas: one.gas,
            maxFee: one.max_fee,
            maxPriorityFee: one.max_priority_fee,
            cancels: one.cancels,
        });
        versions.signed = signed.collect();
        Ok(versions.attempt(nonce, FAMILY.native()?, intent.spends))
    }

    /// What it meant to land. Whose call it is does not matter for what is kept of it.
    fn intent(self) -> Result<Intent, CodecError> {
        let to = FAMILY.address(&self.to)?;
        let authorizations = self.authorizations.into_iter();
        let authorizations = authorizations.map(CarriedAuthorization::read);
        let spends = self.spends.into_iter();
        let spends = spends.map(|(currency, amount)| Ok((FAMILY.address(&currency)?, amount)));
        Ok(Intent {
            draft: Draft {
                from: to.clone(),
                value: self.value,
                body: Body::Call {
                    to,
                    data: self.data,
                    authorizations: authorizations.collect::<Result<_, CodecError>>()?,
                },
            },
            work: self.gas,
            besides: None,
            spends: spends.collect::<Result<_, CodecError>>()?,
        })
    }
}

impl CarriedAuthorization {
    fn read(self) -> Result<Authorization, CodecError> {
        Ok(Authorization {
            chain_id: self.chain_id,
            address: FAMILY.address(&self.address)?,
            nonce: self.nonce,
            y_parity: self.y_parity,
            r: self.r,
            s: self.s,
        })
    }
}
