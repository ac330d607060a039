//! What a quote answers, in the fields and order of the guide's protocol 11.4. Every amount is a text already.

use serde::Serialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};
use vm::protocol::order::Order;

use crate::json::schema::one_of;

pub use crate::request::quoted::{Amount, Currency, Metadata};

/// A 200 of `POST /quote/v2`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Quote)]
pub struct Answer {
    pub steps: Vec<Step>,
    pub fees: Fees,
    pub details: Details,
    pub protocol: Protocol,
}

/// A 200 of `POST /execute/swap/multi-input`: an order for each of `origins`, and what they come to.
///
/// Each order is a request of its own, with its id, status, events and webhooks; there is none of them together. One
/// may be filled while another is given back: `GET /intents/status/v3` tells of each, as each step's `check` names it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MultiQuote)]
pub struct MultiAnswer {
    /// The steps of one order after another, `requestId` says which; those of orders that the user carries out alone
    /// come last. They are taken in this order, since an approval is used up by the deposit behind it. No deposit
    /// needs the fill of the one before; what is deposited after its order's `validUntil` is priced anew.
    pub steps: Vec<Step>,
    /// Sums. What is of another currency than the first order's counts in that one's, by the prices of the quotes;
    /// dollars are added up.
    pub fees: Fees,
    /// Sums, as `fees`: `currencyIn` is all inputs in units of the first. `validUntil` is the earliest, `timeEstimate`
    /// the longest; there is no `route`.
    pub details: Details,
    /// The orders, as `origins` has them.
    pub requests: Vec<MultiRequest>,
}

/// One order of several, as `POST /quote/v2` would have quoted it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MultiQuoteRequest)]
pub struct MultiRequest {
    /// To ask for its status by: `GET /intents/status/v3?requestId=`.
    pub request_id: String,
    pub fees: Fees,
    pub details: Details,
    pub protocol: Protocol,
}

/// A 200 of `POST /price`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Price)]
pub struct PriceAnswer {
    pub fees: Fees,
    pub details: Details,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteStep)]
pub struct Step {
    #[schema(schema_with = step_ids)]
    pub id: &'static str,
    pub action: String,
    pub description: String,
    #[schema(schema_with = step_kinds)]
    pub kind: &'static str,
    pub request_id: String,
    /// Empty: deposit addresses are not used.
    pub deposit_address: String,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteItem)]
pub struct Item {
    #[schema(schema_with = item_states)]
    pub status: &'static str,
    #[schema(value_type = StepData)]
    pub data: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub check: Option<Check>,
}

fn step_ids() -> RefOr<Schema> {
    one_of(
        "What is to be done.",
        ["approve", "deposit", "swap", "send"],
    )
}

fn step_kinds() -> RefOr<Schema> {
    one_of("How it is done.", ["transaction"])
}

fn item_states() -> RefOr<Schema> {
    one_of(
        "`incomplete`; clients change it.",
        ["incomplete", "complete"],
    )
}

/// What the user signs, as wallets of the origin chain take it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = QuoteStepData)]
pub enum StepData {
    Transaction(Transaction),
    Psbt(Psbt),
    Instructions(Instructions),
}

/// A call or a payment; numbers are decimal texts but for the chain's.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteTransaction)]
pub struct Transaction {
    pub from: String,
    pub to: String,
    pub data: String,
    pub value: String,
    pub chain_id: u64,
    /// What the transaction may take: a quarter more than was estimated and the usual at least, or three times the usual
    /// where nothing could be. `fees.gas` counts without this room.
    pub gas: String,
    pub max_fee_per_gas: String,
    pub max_priority_fee_per_gas: String,
}

/// A transaction with its inputs and outputs. The wallet signs every input, finalises it and sends it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuotePsbt)]
pub struct Psbt {
    /// BIP 174, in hex.
    pub psbt: String,
}

/// What one transaction does, first to last. The wallet compiles the transaction, signs it and sends it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteInstructions)]
pub struct Instructions {
    pub instructions: Vec<Instruction>,
    /// Tables of addresses that the transaction is compiled with.
    pub address_lookup_table_addresses: Vec<String>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteInstruction)]
pub struct Instruction {
    pub keys: Vec<InstructionKey>,
    pub program_id: String,
    /// Hex without `0x`.
    pub data: String,
}

/// An account that an instruction names.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteInstructionKey)]
pub struct InstructionKey {
    pub pubkey: String,
    pub is_signer: bool,
    pub is_writable: bool,
}

/// What to poll after the transaction.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteCheck)]
pub struct Check {
    /// Behind the base URL.
    pub endpoint: String,
    // Described as any text: the published client's own code puts one here.
    /// `GET`.
    pub method: &'static str,
}

// Described as fields that need not be there: the published client's own code spreads `fees` that may be absent.
/// `gas` in the origin's native currency, the others in the deposited one. All of them are always there.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteFees)]
pub struct Fees {
    #[schema(required = false)]
    pub gas: Amount,
    #[schema(required = false)]
    pub relayer: Amount,
    #[schema(required = false)]
    pub relayer_gas: Amount,
    #[schema(required = false)]
    pub relayer_service: Amount,
    #[schema(required = false)]
    pub app: Amount,
    #[schema(required = false)]
    pub subsidized: Amount,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteDetails)]
pub struct Details {
    pub operation: String,
    pub sender: String,
    pub recipient: String,
    pub currency_in: Amount,
    pub currency_out: Amount,
    pub refund_currency: Amount,
    pub total_impact: Impact,
    pub swap_impact: Impact,
    /// Not in prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expanded_price_impact: Option<Expanded>,
    pub rate: String,
    pub slippage_tolerance: Tolerances,
    /// Seconds.
    pub time_estimate: u64,
    /// Until when the price holds, unix seconds, by the time of the deposit's block. A later deposit is
    /// priced anew: filled with at least `minimumAmount`, or given back; an order with calls or an exchange is
    /// filled as promised, or given back. A quote with large `txs` is forgotten a day later: what is deposited then
    /// is recovered at an oracle. Not in prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub valid_until: Option<u64>,
    pub user_balance: String,
    /// Not in prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub is_fixed_rate: Option<bool>,
    /// Not in prices, nor in what several orders come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub route: Option<Route>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteImpact)]
pub struct Impact {
    pub usd: String,
    pub percent: String,
}

/// The parts of the total impact: they add up to it. Costs are negative.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteExpanded)]
pub struct Expanded {
    pub swap: Usd,
    pub execution: Usd,
    pub relay: Usd,
    pub app: Usd,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteUsd)]
pub struct Usd {
    pub usd: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteTolerances)]
pub struct Tolerances {
    pub origin: Tolerance,
    pub destination: Tolerance,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteTolerance)]
pub struct Tolerance {
    pub usd: String,
    pub value: String,
    pub percent: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteRoute)]
pub struct Route {
    pub origin: RouteLeg,
    /// Left out where both are on one chain: what comes is then the origin's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub destination: Option<RouteLeg>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteRouteLeg)]
pub struct RouteLeg {
    pub input_currency: Amount,
    pub output_currency: Amount,
    /// `relay` for the solver, else the swap source's name.
    pub router: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QuoteProtocol)]
pub struct Protocol {
    pub v2: ProtocolV2,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteProtocolV2)]
pub struct ProtocolV2 {
    pub order_id: String,
    pub hub_type: &'static str,
    #[schema(value_type = Object)]
    pub order_data: Order,
    /// The solver's EIP-191 signature of the order id; only with `includeProtocolData`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order_signature: Option<String>,
    /// What goes into which depository; absent where nothing is deposited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payment_details: Option<PaymentDetails>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotePaymentDetails)]
pub struct PaymentDetails {
    /// The network's name.
    pub chain_id: String,
    pub depository: String,
    pub currency: String,
    pub amount: String,
}
