//! The parts of a Solana node's answers that the family reads (Solana's JSON-RPC API, `getTransaction` with the
//! encoding `json`, `getBlock` without transactions, `getAccountInfo`).

use std::{str::FromStr, sync::OnceLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};
use serde_json::Value;
use solana_pubkey::Pubkey;

/// An account's address, or a block's hash: 32 bytes in base58.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub Pubkey);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let key = Pubkey::from_str(&text);
        key.map(Self)
            .map_err(|_| D::Error::custom("not 32 bytes of base58"))
    }
}

/// Bytes in base58: an instruction's data, a signature. What is longer than any transaction is left out: programs can
/// give each other 10 KiB, no instruction that is read is as long, and the work to decode grows with the square of the
/// length. For the same reason only what is read is decoded.
#[derive(Clone, Debug, Default)]
pub struct Data {
    text: String,
    bytes: OnceLock<Vec<u8>>,
}

impl Data {
    pub fn bytes(&self) -> &[u8] {
        let decoded = || bs58::decode(&self.text).into_vec().unwrap_or_default();
        self.bytes.get_or_init(decoded)
    }

    /// The bytes, or none where there are many more than an instruction of the system or a token program has that is
    /// read. Those programs ignore what stands behind.
    pub fn few(&self) -> &[u8] {
        match self.text.len() > MAX_FEW {
            true => &[],
            false => self.bytes(),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > MAX_DATA {
            return Ok(Self::default());
        }
        let digit = |byte: u8| byte.is_ascii_alphanumeric() && !b"0OIl".contains(&byte);
        match text.bytes().all(digit) {
            true => Ok(Self {
                text,
                bytes: OnceLock::new(),
            }),
            false => Err(D::Error::custom("not base58")),
        }
    }
}

/// Digits of the 1232 bytes that a transaction has at most, in base58, and some more.
const MAX_DATA: usize = 1_800;
/// See [`Data::few`]: about 200 bytes.
const MAX_FEW: usize = 300;

/// A transaction with its effects, as `getTransaction` shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawTransaction {
    pub slot: u64,
    /// Unix seconds; null where the node did not keep it.
    #[serde(default)]
    pub block_time: Option<i64>,
    /// Null on a node that keeps transactions longer than their effects.
    #[serde(default)]
    pub meta: Option<RawMeta>,
    pub transaction: RawSigned,
    /// `None` of those from before there were versions.
    #[serde(default, deserialize_with = "version")]
    pub version: Option<u8>,
}

/// What was signed.
#[derive(Clone, Debug, Deserialize)]
pub struct RawSigned {
    pub signatures: Vec<Data>,
    pub message: RawMessage,
}

/// The message of a transaction; its instructions name accounts by their position.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawMessage {
    pub header: RawHeader,
    /// Those that stand in the message; the ones from lookup tables are in [`RawMeta::loaded_addresses`].
    pub account_keys: Vec<Key>,
    pub instructions: Vec<RawInstruction>,
}

/// The first accounts of a message have signed it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawHeader {
    pub num_required_signatures: u8,
}

/// One instruction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawInstruction {
    pub program_id_index: u8,
    pub accounts: Vec<u8>,
    pub data: Data,
}

/// What a transaction did.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawMeta {
    /// Whether it failed: `err` is not null.
    #[serde(rename = "err", deserialize_with = "is_some")]
    pub failed: bool,
    /// In lamports; whoever signed first has paid it.
    #[serde(default)]
    pub fee: u64,
    /// Of each account of the transaction, in lamports.
    pub pre_balances: Vec<u64>,
    pub post_balances: Vec<u64>,
    /// Null on a node that does not keep them.
    pub inner_instructions: Option<Vec<RawInner>>,
    pub pre_token_balances: Option<Vec<RawTokenBalance>>,
    pub post_token_balances: Option<Vec<RawTokenBalance>>,
    #[serde(default)]
    pub loaded_addresses: Option<RawLoaded>,
}

/// The instructions that one instruction of the message made programs call.
#[derive(Clone, Debug, Deserialize)]
pub struct RawInner {
    pub index: u8,
    pub instructions: Vec<RawInstruction>,
}

/// The accounts from lookup tables.
#[derive(Clone, Debug, Deserialize)]
pub struct RawLoaded {
    pub writable: Vec<Key>,
    pub readonly: Vec<Key>,
}

/// What a token account held.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawTokenBalance {
    pub account_index: u8,
    pub mint: Key,
    #[serde(default)]
    pub owner: Option<Key>,
    pub ui_token_amount: RawAmount,
}

/// An amount of tokens.
#[derive(Clone, Debug, Deserialize)]
pub struct RawAmount {
    /// In the smallest unit, decimal.
    pub amount: String,
}

/// A block without its transactions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawBlock {
    pub blockhash: Key,
    pub previous_blockhash: Key,
    pub parent_slot: u64,
    /// Unix seconds; null where the node did not keep it.
    #[serde(default)]
    pub block_time: Option<i64>,
    /// The number of blocks below it; null where the node did not keep it.
    #[serde(default)]
    pub block_height: Option<u64>,
}

/// An answer about state, with the slot that it is of.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct RawState<T> {
    pub context: RawContext,
    /// Null where there is no such account; it must be there.
    #[serde(deserialize_with = "Option::deserialize")]
    pub value: Option<T>,
}

/// Of which slot a state is.
#[derive(Clone, Debug, Deserialize)]
pub struct RawContext {
    pub slot: u64,
}

/// An account with its data in base64.
#[derive(Clone, Debug, Deserialize)]
pub struct RawAccount {
    pub owner: Key,
    pub data: (String, Encoding),
}

impl RawAccount {
    /// The data; `None` where they are no base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        BASE64_STANDARD.decode(&self.data.0).ok()
    }
}

/// Where a node has a transaction (`getSignatureStatuses`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawStatus {
    pub slot: u64,
    pub confirmation_status: Sureness,
}

/// How sure a node is of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sureness {
    Processed,
    Confirmed,
    Finalized,
}

/// What a node says a transaction would do (`simulateTransaction`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawTrial {
    /// Why it would fail.
    #[serde(default)]
    pub err: Option<Value>,
    #[serde(default)]
    pub logs: Option<Vec<String>>,
    /// Compute units.
    #[serde(default)]
    pub units_consumed: Option<u64>,
}

/// How an account's data are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    Base64,
}

/// A token account as its node decoded it (`jsonParsed`).
#[derive(Clone, Debug, Deserialize)]
pub struct RawTokenAccount {
    data: RawParsed,
}

#[derive(Clone, Debug, Deserialize)]
struct RawParsed {
    parsed: RawParsedAccount,
}

#[derive(Clone, Debug, Deserialize)]
struct RawParsedAccount {
    info: RawTokenInfo,
}

#[derive(Clone, Debug, Deserialize)]
struct RawTokenInfo {
    mint: Key,
}

impl RawTokenAccount {
    pub fn mint(&self) -> Pubkey {
        self.data.parsed.info.mint.0
    }
}

/// Reads the version of a transaction: a number, or a word where it has none.
pub fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    let Value::Number(number) = Value::deserialize(deserializer)? else {
        return Ok(None);
    };
    let version = number.as_u64().map(u8::try_from);
    let version = version.and_then(Result::ok);
    version
        .map(Some)
        .ok_or_else(|| D::Error::custom("not a version"))
}

/// Reads any value but null as true; the field must be there.
fn is_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}
