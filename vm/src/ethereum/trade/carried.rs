//! Accounts and attempts as stores had them before they were the family's own: all were this family's. Pure.

use super::{
    queue::{self, Queue},
    versions::{Version, Versions},
};
use crate::{
    CodecError,
    trade::{Attempt, Intent},
    types::{Address, Amount, B256, Bytes},
};

/// An attempt of then.
#[derive(Clone, Debug)]
pub struct Carried {
    pub nonce: u64,
    pub intent: Intent,
    /// Most that the chain takes for the bytes besides gas.
    pub data_fee: Amount,
    /// Oldest first.
    pub signed: Vec<CarriedTx>,
}

/// A signed transaction of then.
#[derive(Clone, Debug)]
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

/// What is known of an account that had come to `next`, past these nonces of somebody else's.
pub fn carried_account(next: u64, skipped: Vec<u64>) -> Bytes {
    Queue { next, skipped }.bytes()
}

/// What holds a nonce, as an attempt's id.
pub fn carried_id(nonce: u64) -> Bytes {
    queue::resource(nonce)
}

impl Carried {
    /// The attempt that it is now, of an account whose chain has this native currency.
    pub fn attempt(self, native: Address) -> Result<Attempt, CodecError> {
        let mut versions = Versions::of(&self.intent, self.data_fee)?;
        let signed = self.signed.into_iter().map(|one| Version {
            hash: one.hash,
            raw: one.raw,
            gas: one.gas,
            maxFee: one.max_fee,
            maxPriorityFee: one.max_priority_fee,
            cancels: one.cancels,
        });
        versions.signed = signed.collect();
        Ok(versions.attempt(self.nonce, native, self.intent.spends))
    }
}
