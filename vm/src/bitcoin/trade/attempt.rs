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
    trade::{
        self, Attempt, Intent, Label, SignedTx, Standing,
        numbered::{self, ID, Progress},
    },
    types::{Address, Amount, Bytes},
};

/// How far the chain is.
pub const HEIGHT: Progress = Progress {
    mark: b'h',
    kind: "height",
};
/// Bytes of an attempt's number.
const NUMBER: usize = 8;

/// See [`crate::Family::landing`].
pub struct Landing;

impl trade::Landing for Landing {
    /// An attempt's outputs are chosen by its amount.
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
        Ok(Label {
            kind: "output",
            text: coin::outpoint(resource)?.to_string(),
        })
    }

    /// Nothing is ever waited for: each transaction lands independently of those that spend other outputs.
    fn standing(&self, account: &[u8], _: &[u8], _: &[Bytes]) -> Result<Standing, CodecError> {
        numbered::standing(account)
    }
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
    /// The newest block when it was signed.
    pub height: u64,
}

impl Version {
    pub fn of(transaction: &Transaction, cancels: bool, height: u64) -> Self {
        Self {
            raw: consensus::serialize(transaction).into(),
            cancels,
            height,
        }
    }

    pub fn transaction(&self) -> Result<Transaction, CodecError> {
        consensus::deserialize(&self.raw).map_err(|_| numbered::unreadable())
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
        Self::decode(&attempt.own)
    }

    /// Of [`Attempt::own`].
    pub fn decode(own: &[u8]) -> Result<Self, CodecError> {
        let own = numbered::written(own)?;
        serde_json::from_slice(own).map_err(|_| numbered::unreadable())
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
            fee: fee.ok_or_else(numbered::unreadable)?,
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
            own: numbered::stored(&written),
        })
    }
}

#[cfg(test)]
mod tests;
