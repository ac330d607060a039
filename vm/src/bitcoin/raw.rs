//! The parts of a Bitcoin node's answers that the family reads (Bitcoin Core's RPC: `getrawtransaction` with
//! verbosity 2, `getblockheader`, `gettxout`), and of an Esplora index's (`/tx`, `/block`, `/tx/…/outspend`).

use std::fmt;

use bitcoin::{Amount, BlockHash, ScriptBuf, Txid, Weight};
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::types::Bytes;

/// A transaction as its node decoded it.
#[derive(Clone, Debug, Deserialize)]
pub struct RawTransaction {
    pub txid: Txid,
    #[serde(deserialize_with = "inputs")]
    pub vin: Vec<RawInput>,
    #[serde(deserialize_with = "outputs")]
    pub vout: Vec<RawOutput>,
    /// Absent while the transaction is in no block.
    pub blockhash: Option<BlockHash>,
}

/// An input; a coinbase spends nothing and has no `txid`.
#[derive(Clone, Debug, Deserialize)]
pub struct RawInput {
    pub txid: Option<Txid>,
    #[serde(default)]
    pub vout: u32,
    /// The spent output, where the node still has its undo record.
    pub prevout: Option<RawPrevout>,
    #[serde(rename = "scriptSig")]
    pub script_sig: Option<RawScript>,
    #[serde(rename = "txinwitness", default, deserialize_with = "witness")]
    pub witness: Vec<Hex>,
}

/// Bytes as hex without a prefix.
#[derive(Clone, Debug)]
pub struct Hex(pub Bytes);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = alloy::hex::decode(text).map_err(D::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}

/// A spent output in its spender's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct RawPrevout {
    #[serde(rename = "scriptPubKey")]
    pub script: RawScript,
}

/// An output.
#[derive(Clone, Debug, Deserialize)]
pub struct RawOutput {
    /// In satoshis; nodes write bitcoins with 8 decimals.
    #[serde(deserialize_with = "bitcoins")]
    pub value: Amount,
    pub n: u32,
    #[serde(rename = "scriptPubKey")]
    pub script: RawScript,
}

/// An output script.
#[derive(Clone, Debug, Deserialize)]
pub struct RawScript {
    #[serde(deserialize_with = "script")]
    pub hex: ScriptBuf,
}

/// A block header.
#[derive(Clone, Debug, Deserialize)]
pub struct RawHeader {
    pub hash: BlockHash,
    pub height: u64,
    /// Unix seconds.
    pub time: u64,
    /// Absent in the genesis block.
    pub previousblockhash: Option<BlockHash>,
}

/// An output that nobody has spent; what else the node says about it is not needed.
#[derive(Clone, Debug, Deserialize)]
pub struct RawUnspent {
    #[serde(rename = "scriptPubKey")]
    pub script: RawScript,
}

/// A transaction as an Esplora index shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexedTransaction {
    txid: Txid,
    vin: Vec<IndexedInput>,
    vout: Vec<IndexedOutput>,
    status: IndexedStatus,
}

#[derive(Clone, Debug, Deserialize)]
struct IndexedInput {
    txid: Txid,
    vout: u32,
    /// Absent in a coinbase.
    prevout: Option<IndexedOutput>,
    #[serde(deserialize_with = "script")]
    scriptsig: ScriptBuf,
    #[serde(default, deserialize_with = "witness")]
    witness: Vec<Hex>,
    is_coinbase: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct IndexedOutput {
    #[serde(deserialize_with = "script")]
    scriptpubkey: ScriptBuf,
    /// Satoshis.
    value: u64,
}

/// Where a transaction stands.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexedStatus {
    confirmed: bool,
    block_hash: Option<BlockHash>,
    #[serde(default)]
    block_height: Option<u64>,
}

/// What spends an output.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexedSpend {
    pub spent: bool,
    pub txid: Option<Txid>,
    pub status: Option<IndexedStatus>,
}

/// A block's header in an Esplora index.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexedBlock {
    pub id: BlockHash,
    pub height: u64,
    /// Unix seconds.
    pub timestamp: u64,
    /// Absent in the genesis block.
    pub previousblockhash: Option<BlockHash>,
}

impl IndexedStatus {
    /// The block; `None` for the memory pool's.
    pub fn block(&self) -> Option<BlockHash> {
        self.block_hash.filter(|_| self.confirmed)
    }

    /// The block's number, likewise.
    pub fn height(&self) -> Option<u64> {
        self.block_height.filter(|_| self.confirmed)
    }
}

impl TryFrom<IndexedTransaction> for RawTransaction {
    type Error = &'static str;

    /// The same transaction as a node shows it.
    fn try_from(indexed: IndexedTransaction) -> Result<Self, &'static str> {
        let inputs = indexed.vin.into_iter().map(|input| {
            if !input.is_coinbase && input.prevout.is_none() {
                return Err("an input without the output that it spends");
            }
            let prevout = input.prevout.filter(|_| !input.is_coinbase);
            Ok(RawInput {
                txid: (!input.is_coinbase).then_some(input.txid),
                vout: input.vout,
                prevout: prevout.map(|output| RawPrevout {
                    script: RawScript {
                        hex: output.scriptpubkey,
                    },
                }),
                script_sig: Some(RawScript {
                    hex: input.scriptsig,
                }),
                witness: input.witness,
            })
        });
        let outputs = (0..).zip(indexed.vout).map(|(n, output)| {
            Ok::<_, &'static str>(RawOutput {
                value: amount(output.value).ok_or("more bitcoin than there is")?,
                n,
                script: RawScript {
                    hex: output.scriptpubkey,
                },
            })
        });
        Ok(Self {
            txid: indexed.txid,
            vin: inputs.collect::<Result<_, _>>()?,
            vout: outputs.collect::<Result<_, _>>()?,
            blockhash: indexed.status.block(),
        })
    }
}

fn amount(satoshis: u64) -> Option<Amount> {
    Some(Amount::from_sat(satoshis)).filter(|amount| *amount <= Amount::MAX_MONEY)
}

pub fn bitcoins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let satoshis = satoshis(raw.get()).and_then(amount);
    satoshis.ok_or_else(|| D::Error::custom("expected bitcoins with at most 8 decimals"))
}

/// The satoshis of a JSON number of bitcoins, digit by digit. Nodes write 8 decimals; what stands between may write the
/// number anew, with an exponent.
fn satoshis(text: &str) -> Option<u64> {
    /// Digits of a number that fits, with some zeros to spare.
    const LONGEST: usize = 32;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let clean = !whole.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !clean || digits.len() > LONGEST || exponent.unsigned_abs() as usize > LONGEST {
        return None;
    }
    let number: u128 = digits.parse().ok()?;
    // Of one bitcoin, 8 decimals are satoshis.
    let shift = 8 + exponent - i32::try_from(fraction.len()).ok()?;
    let scale = 10_u128.checked_pow(shift.unsigned_abs())?;
    let satoshis = match shift >= 0 {
        true => number.checked_mul(scale)?,
        false => number.is_multiple_of(scale).then_some(number / scale)?,
    };
    u64::try_from(satoshis).ok()
}

fn inputs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RawInput>, D::Error> {
    // An id, a place, the length of no script, a sequence.
    let least = |input: &RawInput| 4 * (32 + 4 + 1 + 4) + input.witness.len();
    fitting(deserializer, least)
}

fn outputs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RawOutput>, D::Error> {
    // A value, the length of no script.
    fitting(deserializer, |_: &RawOutput| 4 * (8 + 1))
}

fn witness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hex>, D::Error> {
    fitting(deserializer, |_: &Hex| 1)
}

/// A list that a block has room for. `least` is the least weight of an item. An answer of a few bytes for each item
/// would else become many times as large in memory.
fn fitting<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    least: fn(&T) -> usize,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Fitting(least))
}

struct Fitting<T>(fn(&T) -> usize);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fitting<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list that a block has room for")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let (mut items, mut weight) = (Vec::new(), 0_usize);
        while let Some(item) = list.next_element::<T>()? {
            weight += (self.0)(&item);
            if weight as u64 > Weight::MAX_BLOCK.to_wu() {
                return Err(A::Error::custom("a list that no block has room for"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

fn script<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ScriptBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    ScriptBuf::from_hex(&text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn bitcoins_are_satoshis_digit_by_digit() {
        for (text, wanted) in [
            ("0.00000001", 1),
            ("0", 0),
            ("0.00000000", 0),
            ("1e-8", 1),
            ("1.234E-5", 1_234),
            ("0.29", 29_000_000),
            ("0.57", 57_000_000),
            ("90071992.54740993", 9_007_199_254_740_993),
            ("21000000", 2_100_000_000_000_000),
            ("2.1e7", 2_100_000_000_000_000),
            ("0.100000000000", 10_000_000),
        ] {
            assert_eq!(satoshis(text), Some(wanted), "{text}");
        }
        let long = "0".repeat(40);
        for text in [
            "-0.5",
            "-0",
            "0.000000005",
            "1e-9",
            "",
            ".5",
            "1e",
            "1e99",
            "1e-99",
            "0x1",
            "\"1\"",
            "null",
            "1.5.5",
            "+1",
            "184467440737.09551616",
            long.as_str(),
        ] {
            assert_eq!(satoshis(text), None, "{text}");
        }
    }

    #[test]
    fn what_no_block_has_room_for_is_no_transaction() {
        const EMPTY: &str = "\"\"";
        let list = |item: &str, count: usize| vec![item; count].join(",");
        let is_read = |inputs: usize, items: usize, outputs: usize| {
            let input = format!(r#"{{"txinwitness":[{}]}}"#, list(EMPTY, items));
            let output = r#"{"n":0,"value":0,"scriptPubKey":{"hex":""}}"#;
            let text = format!(
                r#"{{"txid":"{}","vin":[{}],"vout":[{}]}}"#,
                "11".repeat(32),
                list(&input, inputs),
                list(output, outputs),
            );
            serde_json::from_str::<RawTransaction>(&text).is_ok()
        };
        assert!(is_read(24_390, 0, 0) && !is_read(24_391, 0, 0));
        assert!(is_read(24_000, 2, 0) && !is_read(24_000, 3, 0));
        assert!(is_read(0, 0, 111_111) && !is_read(0, 0, 111_112));
    }

    fn output(value: &str) -> Result<RawOutput, serde_json::Error> {
        let text = format!(r#"{{"n":0,"value":{value},"scriptPubKey":{{"hex":"00"}}}}"#);
        serde_json::from_str(&text)
    }

    #[test]
    fn amounts_beyond_all_bitcoin_are_refused() {
        let all = output("21000000.00000000").unwrap();
        assert_eq!(all.value, Amount::MAX_MONEY);
        assert!(output("21000000.00000001").is_err());
        assert!(output("\"1\"").is_err());
        // A field twice is no answer.
        assert!(output(r#"1,"value":2"#).is_err());
    }

    #[test]
    fn index_and_node_show_one_transaction() {
        let indexed = |change: fn(&mut Value)| {
            let mut text = json!({
                "txid": "11".repeat(32),
                "vin": [{
                    "txid": "22".repeat(32), "vout": 3, "is_coinbase": false, "scriptsig": "51",
                    "witness": ["aabb"], "prevout": {"scriptpubkey": "0014", "value": 7},
                }],
                "vout": [{"scriptpubkey": "6a", "value": 5}],
                "status": {"confirmed": true, "block_hash": "33".repeat(32)},
            });
            change(&mut text);
            let indexed: IndexedTransaction = serde_json::from_value(text).ok()?;
            RawTransaction::try_from(indexed).ok()
        };
        let shown = indexed(|_| {}).unwrap();
        assert_eq!(shown.vout[0].value.to_sat(), 5);
        assert_eq!((shown.vin[0].vout, shown.vin[0].witness.len()), (3, 1));
        assert!(shown.vin[0].prevout.is_some() && shown.blockhash.is_some());
        let pool = indexed(|it| it["status"]["confirmed"] = json!(false));
        assert!(pool.unwrap().blockhash.is_none());
        let coinbase = indexed(|it| it["vin"][0]["is_coinbase"] = json!(true)).unwrap();
        assert!(coinbase.vin[0].txid.is_none() && coinbase.vin[0].prevout.is_none());
        let lies: [fn(&mut Value); 4] = [
            |it| it["vin"][0]["prevout"] = Value::Null,
            |it| it["vout"][0]["value"] = json!(2_100_000_000_000_001_u64),
            |it| it["vout"][0]["value"] = json!(5.5),
            |it| it["vout"][0]["value"] = json!("5"),
        ];
        for lie in lies {
            assert!(indexed(lie).is_none());
        }
    }
}
