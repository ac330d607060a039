//! Chain-neutral facts: what a VM family makes of a transaction.
//!
//! Everything here is data. No value in this file knows how it was read, and none of them can
//! describe a failed transaction's effects: a transaction that failed has no [`Receipt`].

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

pub use alloy::primitives::{Address as EvmAddress, B256, Bytes, U256};

/// An amount in the smallest unit of its currency.
pub type Amount = U256;

/// A network's name (`ethereum`, `base`, `solana`), as written in the chains file and in orders.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainId(Arc<str>);

impl ChainId {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An account, contract or currency of one family: its text and the bytes that the hub knows it by.
///
/// Two spellings of one address are equal; only the bytes are compared. Made by
/// [`Family::address`](crate::Family::address), which validates.
#[derive(Clone, Serialize, Deserialize)]
pub struct Address {
    text: Arc<str>,
    bytes: Bytes,
}

impl Address {
    /// For codecs only: everyone else parses text through a family.
    pub fn from_parts(text: &str, bytes: impl Into<Bytes>) -> Self {
        Self {
            text: text.into(),
            bytes: bytes.into(),
        }
    }

    /// The spelling it was made with.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `enc(address, vm)`: the bytes that go into order ids, token ids and aliases.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Address {}

impl std::hash::Hash for Address {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether two texts are one address by their spelling alone: hex is compared without case, everything
/// else as it stands. Where the family is at hand, [`Address`] knows better.
pub fn spelled_alike(one: &str, other: &str) -> bool {
    one == other || (one.starts_with("0x") && one.eq_ignore_ascii_case(other))
}

/// A transaction to read: the caller's spelling, the canonical bytes, and what the family needs
/// besides the id to find it (TON: `lt`), as the caller sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TxRef {
    pub text: Arc<str>,
    pub bytes: Bytes,
    #[serde(with = "hint_text")]
    pub hint: Option<Arc<serde_json::Value>>,
}

/// A hint as its JSON text: formats without names of fields cannot tell what a value is.
mod hint_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use serde_json::Value;

    pub fn serialize<S: Serializer>(hint: &Option<Arc<Value>>, to: S) -> Result<S::Ok, S::Error> {
        let text = hint.as_ref().map(ToString::to_string);
        text.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Value>>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let hint = text.map(|text| serde_json::from_str(&text).map(Arc::new));
        hint.transpose().map_err(D::Error::custom)
    }
}

/// A block, ledger or slot that a chain has agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    /// Unix seconds.
    pub time: u64,
}

/// The tip that one request sees. All later reads of the request name `block.hash`, so that no
/// answer comes from another fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub block: Block,
    /// The height that the chain itself calls final, where it says so and the spec asks for it.
    pub tagged: Option<u64>,
}

/// What a chain says about a transaction id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transaction {
    /// Not in the chain that the head belongs to.
    Missing,
    /// Included, but it failed: it has no effects.
    Failed(Failure),
    Succeeded(Receipt),
}

/// A transaction that failed in a block: what it was, and nothing of what it would have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub block: Block,
    /// The order ids that the transaction names, as in [`Receipt::references`].
    pub references: Vec<Arc<str>>,
    /// As [`Receipt::outer_call`].
    pub outer_call: Option<B256>,
}

/// The effects of one successful transaction, decoded once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub block: Block,
    /// Who sent the transaction, and so gave what it gives; `None` where that is nobody alone.
    pub sender: Option<Address>,
    /// The deposits into a configured depository in the order of their index, or why this
    /// transaction cannot be read as one (ambiguous or impossible to attribute).
    pub deposits: Result<Vec<Deposit>, Refusal>,
    /// Value that reached somebody, each at an index of its own.
    pub payments: Vec<Payment>,
    /// Calls that a fill router says it made, in order.
    pub calls: Vec<RouterCall>,
    /// Withdrawals that a configured depository executed.
    pub executions: Vec<Execution>,
    /// The order ids that this transaction names (calldata suffix, memo, OP_RETURN), lower case
    /// as they stand there, each once.
    pub references: Vec<Arc<str>>,
    /// What tells a user's draft by its transaction, as [`Family::own_call`](crate::Family::own_call) has it, else
    /// [`Draft::digest`](crate::trade::Draft::digest): sender and single call on EVM chains, payments or instructions
    /// on Solana. `None` of any other transaction.
    pub outer_call: Option<B256>,
}

/// A transaction that a claim cannot use, in the oracle's own words for its callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(transparent)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Value that entered a depository; an amount of zero is nobody's deposit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deposit {
    /// The position inside the transaction, as it goes into the onchain id (`"3"`).
    pub index: u32,
    pub depository: Address,
    pub depositor: Address,
    pub currency: Address,
    pub amount: Amount,
    /// The order id that the deposit names: `0x` and 64 hex digits, spelled as on the chain;
    /// 64 zeros when it names none.
    pub id: Arc<str>,
    /// Another than the payer may have put the id there (it stands only in calldata that another sent, or the payer's
    /// signature left a place for it): no order is funded by it, and its order sends it to nobody but its depositor.
    pub named_by_other: bool,
    /// The depositor gave it, as far as the transaction itself says so; anybody can deposit in another's name. No part
    /// of evidence: nothing that is attested depends on it.
    #[serde(skip)]
    pub by_depositor: bool,
}

/// How a payment is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PaymentKind {
    /// The transaction itself paid its target; the order id that its data starts with.
    Direct { order: B256 },
    /// A router said so in an event; the emitter counts only if the order names it.
    Router(Address),
    /// The currency's own record (Transfer event, output, balance change) of what the sender of the
    /// transaction gave, or those who signed it as a whole: of what can have been given by nobody else.
    Transfer,
    /// The currency's own record of what this account gave; it counts only if the order names it.
    TransferBy(Address),
}

/// Value that reached `recipient`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// Unique among the payments of its transaction.
    pub index: u32,
    pub kind: PaymentKind,
    pub recipient: Address,
    pub currency: Address,
    pub amount: Amount,
}

/// One call that `router` reports to have made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouterCall {
    pub router: Address,
    pub to: Address,
    pub data: Bytes,
    pub value: Amount,
}

/// A withdrawal that `depository` reports as executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    pub depository: Address,
    pub id: B256,
}

/// Where a withdrawal stands (guide: protocol 8.5). The numbers are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WithdrawalStatus {
    Pending = 0,
    Executed = 1,
    Expired = 2,
}
