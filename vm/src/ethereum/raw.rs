//! The few fields of node answers that decide something, as JSON-RPC writes them.
//!
//! Everything else a chain adds is ignored; a needed field that is missing, doubled or not hex
//! makes the whole answer unreadable. Nothing is judged here.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    trade::Spent,
    types::{B256, Bytes, EvmAddress, U256},
};

/// A number as JSON-RPC writes it: `0x` and one to 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity(pub U256);

impl Quantity {
    /// The number, if it fits 64 bits.
    pub fn small(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Quantity;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a hex quantity")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
                quantity(text).ok_or_else(|| E::custom("expected a hex quantity"))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

fn quantity(text: &str) -> Option<Quantity> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if digits.is_empty() || digits.len() > 64 || !hex {
        return None;
    }
    U256::from_str_radix(digits, 16).map(Quantity).ok()
}

/// `eth_getTransactionReceipt`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawReceipt {
    pub transaction_hash: B256,
    pub block_hash: Option<B256>,
    pub block_number: Option<Quantity>,
    pub status: Option<Quantity>,
    pub logs: Vec<RawLog>,
    /// These decide nothing but what a payment cost: odd ones are left out.
    #[serde(default, deserialize_with = "lenient")]
    pub gas_used: Option<Quantity>,
    #[serde(default, deserialize_with = "lenient")]
    pub effective_gas_price: Option<Quantity>,
    /// Of chains that charge for bytes besides.
    #[serde(default, deserialize_with = "lenient")]
    pub l1_fee: Option<Quantity>,
}

impl RawReceipt {
    /// What its sender paid.
    pub fn spent(&self) -> Option<Spent> {
        let (used, price) = (self.gas_used?.0, self.effective_gas_price?.0);
        Some(Spent {
            work: used.saturating_mul(price),
            besides: self.l1_fee.map(|fee| fee.0),
        })
    }
}

fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    // Its place in the text: a value of any shape may take a hundred times the memory of its text.
    let text = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).ok())
}

/// One log of a receipt.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawLog {
    pub address: EvmAddress,
    pub topics: Vec<B256>,
    pub data: Bytes,
    pub block_hash: B256,
    pub transaction_hash: B256,
    pub log_index: Quantity,
    #[serde(default)]
    pub removed: bool,
}

/// `eth_getTransactionByHash`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawTransaction {
    pub hash: B256,
    pub block_hash: Option<B256>,
    pub block_number: Option<Quantity>,
    pub from: EvmAddress,
    pub to: Option<EvmAddress>,
    #[serde(default)]
    pub value: Option<Quantity>,
    #[serde(default)]
    pub input: Option<Bytes>,
    /// Tempo's batch transactions carry their calldata here.
    #[serde(default)]
    pub calls: Option<First<RawCall>>,
}

/// One call of a batch transaction.
#[derive(Clone, Debug, Deserialize)]
pub struct RawCall {
    #[serde(default)]
    pub input: Option<Bytes>,
}

/// The first element of an array; of the others nothing is kept.
#[derive(Clone, Debug)]
pub struct First<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = First<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<First<T>, A::Error> {
                let first = elements.next_element()?;
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }

        deserializer.deserialize_seq(Elements(std::marker::PhantomData))
    }
}

/// `eth_getBlockByNumber`, without its transactions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawHeader {
    pub number: Quantity,
    pub hash: B256,
    pub parent_hash: B256,
    pub timestamp: Quantity,
}

impl RawHeader {
    /// `None` when a number does not fit.
    pub fn block(&self) -> Option<crate::types::Block> {
        Some(crate::types::Block {
            number: self.number.small()?,
            hash: self.hash,
            parent: self.parent_hash,
            time: self.timestamp.small()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantity_takes_hex_only() {
        let read = |text: &str| serde_json::from_str::<Quantity>(text).map(|q| q.0).ok();
        assert_eq!(read("\"0x0\""), Some(U256::ZERO));
        assert_eq!(read("\"0x1f\""), Some(U256::from(31)));
        assert_eq!(read(&format!("\"0x{}\"", "f".repeat(64))), Some(U256::MAX));
        for bad in [
            "\"0x\"", "\"\"", "\"12\"", "12", "null", "\"0x-1\"", "\"0x_1\"", "\"0xg\"",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(read(&format!("\"0x{}\"", "0".repeat(65))), None);
        // An escape has the text copied.
        assert_eq!(read(r#""0x\u0031f""#), Some(U256::from(31)));
        assert_eq!(read(r#""0x\u0067""#), None);
    }

    #[test]
    fn what_a_transaction_cost_is_in_its_receipt() {
        let hash = format!("0x{}", "11".repeat(32));
        let spent = |extra: &str| {
            let text = format!(
                r#"{{"transactionHash":"{hash}","blockHash":"{hash}","blockNumber":"0x1","status":"0x1","logs":[]{extra}}}"#
            );
            let receipt = serde_json::from_str::<RawReceipt>(&text).unwrap();
            receipt.spent().map(|spent| (spent.work, spent.besides))
        };
        let (gas, fee) = (U256::from(6), U256::from(7));
        let plain = r#","gasUsed":"0x2","effectiveGasPrice":"0x3""#;
        assert_eq!(spent(plain), Some((gas, None)));
        let charged = format!(r#"{plain},"l1Fee":"0x7""#);
        assert_eq!(spent(&charged), Some((gas, Some(fee))));
        for odd in [r#"{}"#, "null", "7"] {
            let charged = format!(r#"{plain},"l1Fee":{odd}"#);
            assert_eq!(spent(&charged), Some((gas, None)), "{odd}");
        }
        assert_eq!(spent(r#","gasUsed":"0x2""#), None);
        assert_eq!(spent(""), None);
    }

    #[test]
    fn of_the_calls_of_a_transaction_the_first_is_kept() {
        let hash = format!("0x{}", "11".repeat(32));
        let input = |calls: &str| {
            let text = format!(
                r#"{{"hash":"{hash}","blockHash":null,"blockNumber":null,"from":"0x{}","to":null,"calls":{calls}}}"#,
                "22".repeat(20)
            );
            let transaction = serde_json::from_str::<RawTransaction>(&text).ok()?;
            transaction.calls?.0?.input
        };
        let first = Some(Bytes::from_static(&[0x12]));
        assert_eq!(input(r#"[{"input":"0x12"}]"#), first);
        assert_eq!(input(r#"[{"input":"0x12"},{"input":"0x34"},7,[]]"#), first);
        for none in ["[]", "null", "7", r#"[{}]"#, r#"[{"input":"0x12"}"#] {
            assert_eq!(input(none), None, "{none}");
        }
    }

    #[test]
    fn a_doubled_or_odd_field_is_unreadable() {
        let hash = format!("0x{}", "11".repeat(32));
        let receipt = |extra: &str| {
            let text = format!(
                r#"{{"transactionHash":"{hash}","blockHash":"{hash}","blockNumber":"0x1","status":"0x1","logs":[]{extra}}}"#
            );
            serde_json::from_str::<RawReceipt>(&text).is_ok()
        };
        assert!(receipt(r#","gasUsed":"0x1","l1Fee":null"#));
        assert!(!receipt(r#","status":"0x0""#));
        assert!(!receipt(r#","logs":[]"#));
        let log = |data: &str| {
            let text = format!(
                r#"{{"address":"0x{}","topics":[],"data":"{data}","blockHash":"{hash}","transactionHash":"{hash}","logIndex":"0x0"}}"#,
                "22".repeat(20)
            );
            serde_json::from_str::<RawLog>(&text).is_ok()
        };
        assert!(log("0x12"));
        assert!(!log("0x123"));
        assert!(!log("0xzz"));
    }
}
