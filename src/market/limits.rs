//! What the solver's transactions may take and cost on one network.

use serde::Deserialize;
use vm::{CodecError, Family, trade};

/// See the module. What is not set has a default that suits most chains.
#[derive(Clone, Debug, Deserialize)]
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
        let usual = trade::Limits::default();
        Self {
            gas: usual.gas,
            calls_gas: 5_000_000,
            max_fee: 1_000_000_000_000,
            bytes: usual.bytes,
            authorizations: usual.authorizations,
            data_fees: None,
        }
    }
}

impl Limits {
    /// As the chain's family knows them.
    pub fn of(&self, family: &Family) -> Result<trade::Limits, CodecError> {
        let data_fees = self.data_fees.as_deref();
        Ok(trade::Limits {
            bytes: self.bytes,
            gas: self.gas,
            max_fee: self.max_fee.into(),
            authorizations: self.authorizations,
            data_fees: data_fees.map(|text| family.address(text)).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_file_are_those_of_transactions() {
        let fees = "0x420000000000000000000000000000000000000f";
        let limits: Limits = serde_json::from_value(serde_json::json!({
            "gas": 1, "callsGas": 2, "maxFee": 3, "bytes": 4, "authorizations": true, "dataFees": fees,
        }))
        .unwrap();
        assert_eq!(limits.calls_gas, 2);
        let of = limits.of(vm::SETTLEMENT).unwrap();
        assert_eq!((of.gas, of.max_fee, of.bytes), (1, 3, 4));
        assert!(of.authorizations);
        assert_eq!(of.data_fees.unwrap().text(), fees);
        let misspelled = serde_json::json!({"maxfee": 3});
        assert!(serde_json::from_value::<Limits>(misspelled).is_err());
    }
}
