//! What the solver stores of an account and of its attempts. Pure.
//!
//! An attempt holds the outputs that it spends; all its transactions spend the same ones. Its id is its number in this
//! store, which the chain does not know, and a part of the payment's digest.

use bitcoin::{Script, Transaction, TxOut, consensus};
use serde::{Deserialize, Serialize};

use super::{
    body::{self, Content},
    coin::{self, Coin},
    version::{Before, Plan},
};
use crate::{
    CodecError,
    trade::{self, Attempt, Intent, Label, SignedTx, Standing},
    types::{Address, Amount, Bytes},
};

/// The format of accounts and attempts in the store.
const FORMAT: u8 = 1;
/// The first byte of a height.
const HEIGHT: u8 = b'h';
/// Bytes of an attempt's number.
const NUMBER: usize = 8;
/// Bytes of an attempt's id: its number and the beginning of a digest.
const ID: usize = 16;

/// See [`crate::Family::landing`].
pub struct Landing;

impl trade::Landing for Landing {
    /// An attempt's outputs are chosen by its amount.
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
        Ok(Label {
            kind: "output",
            text: coin::outpoint(resource)?.to_string(),
        })
    }

    /// Nothing is ever waited for: each transaction lands independently of those that spend other outputs.
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

/// The family's own part of a stored attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    id: Bytes,
    /// What every transaction spends.
    pub coins: Vec<Coin>,
    /// What every transaction pays that does not cancel, without change.
    pub outputs: Vec<TxOut>,
    /// Oldest first.
    pub signed: Vec<Version>,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub raw: Bytes,
    /// It pays nobody else.
    pub cancels: bool,
}

impl Version {
    pub fn of(transaction: &Transaction, cancels: bool) -> Self {
        Self {
            raw: consensus::serialize(transaction).into(),
            cancels,
        }
    }

    pub fn transaction(&self) -> Result<Transaction, CodecError> {
        consensus::deserialize(&self.raw).map_err(|_| unreadable())
    }
}

impl Own {
    /// Attempt `number` of the account at an intent, without a signed transaction. An error where the intent is no list of
    /// payments.
    pub fn of(intent: &Intent, number: u64, coins: Vec<Coin>) -> Result<Self, CodecError> {
        let Content::Outputs(outputs) = Content::of(&intent.draft)? else {
            return Err(CodecError("not a payment of the account's own".into()));
        };
        let digest = intent.draft.digest();
        let id = [&number.to_be_bytes()[..], &digest[..ID - NUMBER]].concat();
        Ok(Self {
            id: id.into(),
            coins,
            outputs,
            signed: Vec::new(),
        })
    }

    pub fn read(attempt: &Attempt) -> Result<Self, CodecError> {
        match &attempt.own[..] {
            [FORMAT, own @ ..] => serde_json::from_slice(own).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    /// What its transactions do; `cancels`: those that pay nobody else. The rest goes to `change`.
    pub fn plan<'a>(&'a self, cancels: bool, change: &'a Script) -> Plan<'a> {
        Plan {
            coins: &self.coins,
            outputs: if cancels { &[] } else { &self.outputs },
            change,
        }
    }

    /// What a signed transaction pays for inclusion in satoshis, and its virtual bytes.
    pub fn paid(&self, version: &Version) -> Result<Before, CodecError> {
        let transaction = version.transaction()?;
        let spent = coin::sum(&self.coins);
        let fee = spent.checked_sub(body::sum(&transaction.output));
        Ok(Before {
            fee: fee.ok_or_else(unreadable)?,
            size: transaction.weight().to_vbytes_ceil(),
        })
    }

    /// The attempt. It takes its payments and the highest fee of the native currency, and `others`.
    pub fn attempt(
        &self,
        native: &Address,
        others: Vec<(Address, Amount)>,
    ) -> Result<Attempt, CodecError> {
        let (mut signed, mut most) = (Vec::new(), 0);
        for version in &self.signed {
            most = most.max(self.paid(version)?.fee);
            signed.push(SignedTx {
                id: version.transaction()?.compute_txid().to_string(),
                cancels: version.cancels,
            });
        }
        let value = body::sum(&self.outputs).saturating_add(most);
        let mut spends = vec![(native.clone(), Amount::from(value))];
        spends.extend(others);
        let resources = self.coins.iter().map(|coin| coin::output(&coin.outpoint));
        let written = serde_json::to_vec(self).map_err(|error| CodecError(error.to_string()))?;
        Ok(Attempt {
            id: self.id.clone(),
            resources: resources.collect(),
            spends,
            signed,
            own: [&[FORMAT], &written[..]].concat().into(),
        })
    }
}

fn unreadable() -> CodecError {
    CodecError("not an account or attempt as this version writes them".into())
}

#[cfg(test)]
mod tests;
