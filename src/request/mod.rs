//! The request record: what was promised, what has been seen since, and where the request therefore
//! stands. Pure: no I/O, no clock.
//!
//! A [`Request`] is written once, when its quote is given. [`Facts`](fact::Facts) grow and, after a
//! reorg, shrink. The status is derived from both by [`status::of`] and stored nowhere.

pub mod event;
pub mod fact;
pub mod filter;
#[cfg(test)]
pub mod fixtures;
pub mod listing;
pub mod mismatch;
pub mod name;
pub mod quoted;
pub mod reason;
pub mod render;
pub mod status;
pub mod summary;
pub mod tx_details;
pub mod words;

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vm::protocol::order::Order;

use self::quoted::Quote;

/// What a quote promised. Rows hold it in JSON: what a field is called there stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What the API calls it; never on chain.
    pub id: B256,
    /// What deposits and fills name on chain: the id of `order`.
    pub order_id: B256,
    pub order: Order,
    /// The solver's 65 bytes over the order id (EIP-191).
    pub order_signature: Bytes,
    pub operation: Operation,
    pub execution: Execution,
    pub trade_type: TradeType,
    /// Addresses as the caller spelled them.
    pub user: String,
    pub recipient: String,
    pub refund_to: String,
    pub origin: Leg,
    pub destination: Leg,
    /// What the destination transaction does besides paying.
    pub calls: Vec<Call>,
    /// Work that `calls` may take, as the caller limited it.
    #[serde(rename = "calls_gas")]
    pub calls_work: Option<u64>,
    /// EIP-7702 authorizations to run on the destination, with the fields that bodies have.
    pub authorizations: Vec<Value>,
    /// Basis points of the destination amount that the user would lose on a fill that became dearer, where
    /// the deposit comes after [`Self::valid_until`].
    pub late_slippage_bps: Option<u16>,
    /// Surplus of an exact output goes to the solver instead of the recipient.
    pub true_exact_output: bool,
    /// Work of the destination transaction as it was simulated.
    #[serde(rename = "fill_gas")]
    pub fill_work: u64,
    /// What a unit of it was charged at, in the chain's native currency.
    #[serde(rename = "fill_price")]
    pub fill_rate: U256,
    /// What its chain charged then besides its work, likewise.
    #[serde(rename = "fill_data")]
    pub fill_besides: U256,
    /// The user's own transaction, who sends it included ([`vm::trade::Draft::digest`]); `None` where a
    /// solver acts.
    pub own_call: Option<B256>,
    pub referrer: Option<String>,
    /// The label of the key that asked.
    pub api_key: Option<String>,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix seconds until which the price holds, by the time of the deposit's block (see [`Self::mined_until`]). What
    /// comes later is priced anew.
    pub valid_until: u64,
    /// Where set, the price holds for a deposit that a quorum showed waiting for a block until [`Self::valid_until`],
    /// and whose block's time is at most this, in unix seconds; for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mined_until: Option<u64>,
    /// Unix seconds after which an unfilled request is refunded.
    pub expires_at: Option<u64>,
    /// For those who list requests and claim fees: `fees` and `details` as the quote gave them,
    /// `appFees` with recipient, basis points and amount, `referrerAddress`, whether both sides are
    /// of `oneAsset`, and `swapSources` where the caller named some.
    pub quoted: Quote,
}

impl Request {
    /// Whether both of its sides are on one chain.
    pub fn is_same_chain(&self) -> bool {
        self.origin.chain == self.destination.chain
    }
}

/// The id of a request made at `now` (unix milliseconds): the time in 6 bytes, big endian, and the rest
/// of `entropy`. What is made together then lies together in the store.
pub fn id(now: u64, entropy: B256) -> B256 {
    let mut id = entropy;
    id.0[..6].copy_from_slice(&now.to_be_bytes()[2..]);
    id
}

/// The time that an id begins with, unix milliseconds.
pub fn time_of(id: &B256) -> u64 {
    let time = id.0[..6].iter();
    time.fold(0, |time, byte| (time << 8) | u64::from(*byte))
}

/// Unix seconds after which no fill and no refund of `order` counts any more.
pub fn last_deadline(order: &Order) -> u64 {
    let refunds = order.inputs.iter().flat_map(|input| &input.refunds);
    let refunds = refunds.map(|refund| u64::from(refund.deadline));
    refunds.fold(order.output.deadline.into(), u64::max)
}

/// One side of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// The chain as the API numbers it.
    pub chain: u64,
    /// The chain as orders and the chains file name it.
    pub network: String,
    /// The currency's address text.
    pub currency: String,
    /// Smallest units.
    pub amount: U256,
    /// The least that slippage may leave of `amount`.
    pub minimum: U256,
}

/// What the user sees happening (`details.operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Bridge,
    Swap,
    Send,
    Wrap,
    Unwrap,
}

/// Who acts after the user's own transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Execution {
    /// The user deposits, a solver fills.
    Solver,
    /// The user's own transaction does everything; it names the order.
    User,
}

/// Which side of the trade is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TradeType {
    ExactInput,
    ExactOutput,
    ExpectedOutput,
}

/// One call on the destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub to: String,
    pub value: U256,
    pub data: Bytes,
}
