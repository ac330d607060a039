//! The body of `POST /quote/v2`, `/quote` and `/price` as it comes (guide: protocol 11.3).

pub mod multi;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::code::{Code, Refused};
use crate::json::{self, Cause, Digits, Fault, Flag, Number, Objects, Text};

/// Every field; unknown ones are ignored, and one that is null is not there. What a value must be is
/// decided in [`Intent::of`](super::intent::Intent::of).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteBody)]
pub struct Body {
    pub user: String,
    pub recipient: Option<String>,
    pub origin_chain_id: Number,
    pub destination_chain_id: Number,
    pub origin_currency: String,
    pub destination_currency: String,
    /// Smallest units, from 1 to 2^256 - 1.
    pub amount: Digits,
    #[schema(schema_with = trade_types)]
    pub trade_type: String,
    /// Calls of the fill, with at most 131,072 bytes of data together.
    #[schema(max_items = 50)]
    pub txs: Option<Vec<Tx>>,
    /// Gas that they may take together, from 1 to 1,000,000,000.
    pub txs_gas_limit: Option<Number>,
    #[schema(max_items = 10)]
    pub authorization_list: Option<Vec<Authorization>>,
    pub additional_data: Option<AdditionalData>,
    /// At most 256 bytes.
    #[schema(max_length = 256)]
    pub referrer: Option<String>,
    pub referrer_address: Option<String>,
    pub refund_to: Option<String>,
    pub recovery_address: Option<String>,
    pub refund_on_origin: Option<Flag>,
    pub topup_gas: Option<Flag>,
    pub topup_gas_amount: Option<Digits>,
    pub enable_true_exact_output: Option<Flag>,
    pub explicit_deposit: Option<Flag>,
    pub use_external_liquidity: Option<Flag>,
    /// Second-choice exchanges are asked where no other has an offer.
    pub use_fallbacks: Option<Flag>,
    pub use_permit: Option<Flag>,
    /// Seconds for which a permit may be used. No step asks for one: only 600, the usual, is taken.
    pub permit_expiry: Option<Number>,
    pub include_protocol_data: Option<Flag>,
    pub use_deposit_address: Option<Flag>,
    pub strict: Option<Flag>,
    /// Basis points, from 0 to 10,000.
    pub slippage_tolerance: Option<Digits>,
    /// Basis points, from 0 to 10,000, of the output that gas may take more than it was quoted at, where the
    /// deposit comes after `details.validUntil` and is priced anew. Not for orders with calls or an exchange at the
    /// destination: those are filled as promised or given back.
    pub late_payment_slippage_tolerance: Option<Digits>,
    /// At most 10,000 basis points together. A fee of 0 is as if it were not there.
    #[schema(max_items = 16)]
    pub app_fees: Option<Vec<AppFee>>,
    /// Gas of `txs`, as `txsGasLimit` and within its limits: they run in the fill on every route, never in the deposit's
    /// transaction. Where both are given, the lower one counts.
    pub gas_limit_for_deposit_specified_txs: Option<Number>,
    pub force_solver_execution: Option<Flag>,
    pub subsidize_fees: Option<Flag>,
    pub sponsored_fee_components: Option<Vec<String>>,
    pub max_subsidization_amount: Option<Digits>,
    pub subsidize_rent: Option<Flag>,
    /// Exchanges that the route may go through, by the names of `GET /swap-sources`; every one where the list is
    /// empty. At most 64 names of at most 64 letters, digits, spaces or any of `.-_:/+`, as in the lists below. Shown in
    /// `route` of the listed request.
    #[schema(max_items = 64, max_length = 64)]
    pub included_swap_sources: Option<Vec<String>>,
    /// Exchanges that it may not go through. A name that none here has changes nothing.
    #[schema(max_items = 64, max_length = 64)]
    pub excluded_swap_sources: Option<Vec<String>>,
    /// As `includedSwapSources`, of the origin alone. Where both are given, both must hold.
    #[schema(max_items = 64, max_length = 64)]
    pub included_origin_swap_sources: Option<Vec<String>>,
    /// As `includedSwapSources`, of the destination alone. Where both are given, both must hold.
    #[schema(max_items = 64, max_length = 64)]
    pub included_destination_swap_sources: Option<Vec<String>>,
    /// More gas of the deposit than its transaction takes by itself, at most 1,000,000,000.
    pub origin_gas_overhead: Option<Number>,
    /// Who pays for the deposit's transaction and for new accounts, and signs it before the user. Of Solana origins:
    /// elsewhere whoever sends it pays for it, and only the user is taken.
    pub deposit_fee_payer: Option<String>,
    /// Pools that each exchange of the route goes through at most, one or more. Wrapping goes through none.
    pub max_route_length: Option<Number>,
    /// Whether an exchange goes through accounts of its own where it would need new ones of the user's. Of Solana
    /// origins: elsewhere only false is taken.
    pub use_shared_accounts: Option<Flag>,
    /// Whether the deposit's transaction states its limit of compute units. Of Solana origins: elsewhere only false is
    /// taken.
    pub include_compute_unit_limit: Option<Flag>,
    pub override_price_impact: Option<Flag>,
    pub disable_swap_provider_preference: Option<Flag>,
    pub disable_origin_swaps: Option<Flag>,
    pub fixed_rate: Option<String>,
    /// Seconds after which a deposit that is not filled is given back, from 1 to 604,800.
    pub ttl: Option<Number>,
    /// `v2` or `preferV2`.
    pub protocol_version: Option<String>,
}

/// One destination call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteTx)]
pub struct Tx {
    pub to: String,
    pub value: Option<Digits>,
    pub data: Option<String>,
    pub original_tx_value: Option<Digits>,
}

/// One EIP-7702 authorization.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteAuthorization)]
pub struct Authorization {
    pub chain_id: Number,
    pub address: String,
    pub nonce: Number,
    /// 0 or 1.
    pub y_parity: Number,
    pub r: Digits,
    pub s: Digits,
}

/// What only some routes need.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteAdditionalData)]
pub struct AdditionalData {
    /// Of a Bitcoin `user` whose address is a script's hash, or P2TR.
    pub user_public_key: Option<String>,
}

/// One integrator's fee.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = QuoteAppFee)]
pub struct AppFee {
    pub recipient: String,
    /// Basis points as a decimal text, at most six digits behind the point.
    pub fee: Text,
}

fn trade_types() -> RefOr<Schema> {
    json::schema::one_of(
        "What `amount` is of: the input, the output, or the output that is expected.",
        ["EXACT_INPUT", "EXACT_OUTPUT", "EXPECTED_OUTPUT"],
    )
}

impl Body {
    /// Reads a JSON object. A field that cannot be read is refused with its path, what was expected, and
    /// the code of the cause.
    pub fn read(mut json: Value) -> Result<Self, Refused> {
        leave_out_nulls(&mut json);
        serde_path_to_error::deserialize(Objects(json)).map_err(unread)
    }
}

/// The refusal of a body that cannot be read.
fn unread(error: serde_path_to_error::Error<serde_json::Error>) -> Refused {
    let fault = Fault::of(error);
    Refused::new(code_of(&fault), fault.message("body"))
}

/// Null is nothing.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

/// The code of a cause. A tolerance that is no number, whatever it is, has a code of its own (guide: protocol 11.8).
fn code_of(fault: &Fault) -> Code {
    let tolerance = ["slippageTolerance", "latePaymentSlippageTolerance"].contains(&fault.field());
    match fault.cause {
        Cause::Missing => Code::MissingField,
        Cause::Amount | Cause::Field if tolerance => Code::InvalidSlippageTolerance,
        Cause::Amount => Code::InvalidAmount,
        Cause::Field => Code::InvalidField,
    }
}

/// Whether a flag stands in a body, and is true.
pub fn on(flag: Option<Flag>) -> bool {
    flag == Some(Flag(true))
}
