//! Transactions as they are signed: the limits of nodes for them, and their bytes.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    CodecError, Family, SpecError,
    protocol::limits,
    trade::{self, Authorization, Call, Unfit},
    types::{Address, B256, Bytes},
};

/// A transaction with all that is signed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsealed {
    pub call: Call,
    /// EIP-7702; empty for a transaction without.
    pub authorizations: Vec<Authorization>,
    pub nonce: u64,
    /// Gas units.
    pub gas: u64,
    /// Wei per gas unit, at most.
    pub max_fee: u128,
    pub max_priority_fee: u128,
}

/// What the nodes of a chain take, and what its operator lets a transaction cost: `limits` of a network in the market
/// file. What is not set has a default that suits most chains.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Gas units of one transaction.
    pub gas: u64,
    /// Gas units that an order's calls may take.
    pub calls_gas: u64,
    /// Wei per gas unit above which nothing is sent.
    pub max_fee: u64,
    /// Bytes of one signed transaction.
    pub bytes: usize,
    /// Whether the chain takes EIP-7702 transactions.
    pub authorizations: bool,
    /// The contract that says what the chain charges for a transaction's bytes besides gas:
    /// `getL1Fee(bytes)` as in the OP stack's GasPriceOracle.
    pub data_fees: Option<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            gas: 1 << 24,
            calls_gas: 5_000_000,
            max_fee: 1_000_000_000_000,
            bytes: limits::TRANSACTION,
            authorizations: false,
            data_fees: None,
        }
    }
}

impl Limits {
    /// Of the market file's object.
    pub fn read(listed: &Map<String, Value>) -> Result<Self, SpecError> {
        let read = serde_json::from_value(Value::Object(listed.clone()));
        read.map_err(|error| SpecError(format!("limits: {error}")))
    }

    /// The contract of [`Limits::data_fees`].
    pub fn contract(&self, family: &Family) -> Result<Option<Address>, SpecError> {
        let read = |text: &String| {
            let address = family.account(text);
            address.map_err(|error| SpecError(format!("limits.dataFees: {error}")))
        };
        self.data_fees.as_ref().map(read).transpose()
    }

    /// As all families have them.
    pub fn neutral(&self) -> trade::Limits {
        trade::Limits {
            work: self.gas,
            calls_work: self.calls_gas,
            rate: self.max_fee.into(),
            besides: self.data_fees.is_some(),
        }
    }
}

/// Transactions as bytes. Pure.
pub trait TransactionCodec: Send + Sync {
    /// Whether nodes take it, as far as it tells itself; whose authorizations it carries, in order.
    fn admit(&self, chain: u64, draft: &Unsealed, limits: &Limits) -> Result<Vec<Address>, Unfit>;
    /// The call that asks `contract` ([`Limits::data_fees`]) what the chain charges for the bytes; the
    /// answer's first 32 bytes are the number. `None`: the contract that most such chains have.
    fn data_fee(
        &self,
        chain: u64,
        draft: &Unsealed,
        contract: Option<&Address>,
    ) -> Result<Call, CodecError>;
    /// The call that asks an approval proxy which contract it hands calls to, and what it answers when
    /// that is `router`.
    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError>;
    /// What the sender signs.
    fn digest(&self, chain: u64, draft: &Unsealed) -> Result<B256, CodecError>;
    /// The signed transaction as it goes over the wire, and its id. The signature is `r || s || v`.
    fn seal(
        &self,
        chain: u64,
        draft: &Unsealed,
        signature: &[u8; 65],
    ) -> Result<(Bytes, B256), CodecError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(listed: Value) -> Result<Limits, SpecError> {
        Limits::read(listed.as_object().unwrap())
    }

    #[test]
    fn limits_of_the_file_are_those_of_transactions() {
        let fees = "0x420000000000000000000000000000000000000f";
        let limits = read(json!({
            "gas": 1, "callsGas": 2, "maxFee": 3, "bytes": 4, "authorizations": true, "dataFees": fees,
        }));
        let limits = limits.unwrap();
        assert_eq!((limits.bytes, limits.authorizations), (4, true));
        assert_eq!(limits.data_fees.as_deref(), Some(fees));
        let neutral = trade::Limits {
            work: 1,
            calls_work: 2,
            rate: 3,
            besides: true,
        };
        assert_eq!(limits.neutral(), neutral);
        assert_eq!(read(json!({})), Ok(Limits::default()));
        assert!(!Limits::default().neutral().besides);
        let misspelled = read(json!({"maxfee": 3})).unwrap_err();
        assert!(misspelled.to_string().contains("maxfee"), "{misspelled}");
        let nowhere = read(json!({"dataFees": "0x42"})).unwrap();
        let refused = nowhere.contract(&crate::ethereum::FAMILY).unwrap_err();
        assert!(refused.to_string().contains("dataFees"), "{refused}");
    }
}
