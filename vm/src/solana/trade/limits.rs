//! What the operator lets transactions take and cost: `limits` of a network in the market file. Pure.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{UNIT, message::MOST_BYTES, simulate::MOST_UNITS, size::MOST_OF_EXCHANGE};
use crate::{SpecError, trade};

/// What is not set has a default that suits Solana.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Compute units of one transaction.
    pub compute_units: u32,
    /// Micro-lamports for a compute unit above which nothing is sent.
    pub max_compute_unit_price: u64,
    /// What the chain takes for each signature, in lamports.
    pub signature_fee: u64,
    /// The most bytes of a user's transaction that exchanges by an aggregator.
    pub exchange_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compute_units: MOST_UNITS,
            max_compute_unit_price: 10_000_000,
            signature_fee: 5_000,
            exchange_bytes: MOST_OF_EXCHANGE,
        }
    }
}

impl Limits {
    /// Of the market file's object.
    pub fn read(listed: &Map<String, Value>) -> Result<Self, SpecError> {
        let read = serde_json::from_value(Value::Object(listed.clone()));
        let read: Self = read.map_err(|error| SpecError(format!("limits: {error}")))?;
        match (read.compute_units, read.exchange_bytes) {
            (1..=MOST_UNITS, 1..=MOST_BYTES) => Ok(read),
            (1..=MOST_UNITS, _) => Err(expected("exchangeBytes", MOST_BYTES)),
            _ => Err(expected("computeUnits", MOST_UNITS)),
        }
    }

    /// As all families have them.
    pub fn neutral(&self) -> trade::Limits {
        let price = u128::from(self.max_compute_unit_price);
        trade::Limits {
            work: u64::from(self.compute_units).div_ceil(UNIT),
            calls_work: 0,
            rate: (price * u128::from(UNIT)).div_ceil(1_000_000),
            besides: true,
        }
    }
}

fn expected(name: &str, most: impl Display) -> SpecError {
    SpecError(format!("limits.{name}: expected 1 to {most}"))
}

/// See [`crate::Family::limits`].
pub fn limits(listed: &Map<String, Value>) -> Result<trade::Limits, SpecError> {
    Limits::read(listed).map(|limits| limits.neutral())
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
        let limits = read(json!({
            "computeUnits": 200_000, "maxComputeUnitPrice": 2_500_000, "signatureFee": 7, "exchangeBytes": 1_200,
        }));
        let limits = limits.unwrap();
        assert_eq!((limits.signature_fee, limits.exchange_bytes), (7, 1_200));
        let neutral = trade::Limits {
            work: 200,
            calls_work: 0,
            rate: 2_500,
            besides: true,
        };
        assert_eq!(limits.neutral(), neutral);
        assert_eq!(read(json!({})), Ok(Limits::default()));
        let most = read(json!({"exchangeBytes": 1_232})).unwrap();
        assert_eq!(most.exchange_bytes, 1_232);
    }

    #[test]
    fn what_is_misspelled_or_more_than_the_chain_takes_is_refused() {
        for (listed, named) in [
            (json!({"computeunits": 1}), "computeunits"),
            (json!({"computeUnits": 0}), "computeUnits"),
            (json!({"computeUnits": 1_400_001}), "computeUnits"),
            (json!({"exchangeBytes": 0}), "exchangeBytes"),
            (json!({"exchangeBytes": 1_233}), "exchangeBytes"),
            (json!({"maxComputeUnitPrice": -1}), "limits"),
        ] {
            let refused = read(listed).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
