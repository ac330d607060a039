//! The body of `POST /quote/v2`, `/quote` and `/price` as it comes (interface.md, Quote request body).

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use utoipa::ToSchema;

use super::code::{Code, Refused};

/// Every field; unknown ones are ignored. What a value must be is decided in
/// [`Intent::of`](super::intent::Intent::of).
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = QuoteBody)]
pub struct Body {
    #[schema(required)]
    pub user: String,
    pub recipient: Option<String>,
    #[schema(required)]
    pub origin_chain_id: u64,
    #[schema(required)]
    pub destination_chain_id: u64,
    #[schema(required)]
    pub origin_currency: String,
    #[schema(required)]
    pub destination_currency: String,
    /// Digits only, smallest units.
    #[schema(required)]
    pub amount: String,
    /// `EXACT_INPUT`, `EXACT_OUTPUT` or `EXPECTED_OUTPUT`.
    #[schema(required)]
    pub trade_type: String,
    pub txs: Option<Vec<Tx>>,
    pub txs_gas_limit: Option<u64>,
    pub authorization_list: Option<Vec<Value>>,
    pub additional_data: Option<Value>,
    pub referrer: Option<String>,
    pub referrer_address: Option<String>,
    pub refund_to: Option<String>,
    pub recovery_address: Option<String>,
    pub refund_on_origin: Option<bool>,
    pub topup_gas: Option<bool>,
    pub topup_gas_amount: Option<String>,
    pub enable_true_exact_output: Option<bool>,
    pub explicit_deposit: Option<bool>,
    pub use_external_liquidity: Option<bool>,
    /// Second-choice exchanges are asked where no other has an offer.
    pub use_fallbacks: Option<bool>,
    pub use_permit: Option<bool>,
    pub permit_expiry: Option<u64>,
    pub include_protocol_data: Option<bool>,
    pub use_deposit_address: Option<bool>,
    pub strict: Option<bool>,
    pub slippage_tolerance: Option<String>,
    /// What may be lost on gas where the deposit lands after the order's deadline. None of it is ever
    /// taken: an order is not filled after its deadline, such a deposit is refunded.
    pub late_payment_slippage_tolerance: Option<String>,
    pub app_fees: Option<Vec<AppFee>>,
    pub gas_limit_for_deposit_specified_txs: Option<u64>,
    pub force_solver_execution: Option<bool>,
    pub subsidize_fees: Option<bool>,
    pub sponsored_fee_components: Option<Vec<String>>,
    pub max_subsidization_amount: Option<String>,
    pub subsidize_rent: Option<bool>,
    pub included_swap_sources: Option<Vec<String>>,
    pub excluded_swap_sources: Option<Vec<String>>,
    pub included_origin_swap_sources: Option<Vec<String>>,
    pub included_destination_swap_sources: Option<Vec<String>>,
    /// Clients send a number or its digits.
    #[serde(deserialize_with = "count")]
    pub origin_gas_overhead: Option<u64>,
    pub deposit_fee_payer: Option<String>,
    pub max_route_length: Option<u64>,
    pub use_shared_accounts: Option<bool>,
    pub include_compute_unit_limit: Option<bool>,
    pub override_price_impact: Option<bool>,
    pub disable_swap_provider_preference: Option<bool>,
    pub disable_origin_swaps: Option<bool>,
    pub fixed_rate: Option<String>,
    pub ttl: Option<u64>,
    pub protocol_version: Option<String>,
}

/// One destination call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = QuoteTx)]
pub struct Tx {
    pub to: String,
    pub value: Option<String>,
    pub data: Option<String>,
    pub original_tx_value: Option<String>,
}

/// One integrator's fee.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = QuoteAppFee)]
pub struct AppFee {
    pub recipient: String,
    /// Basis points as a decimal text.
    pub fee: String,
}

impl Body {
    /// Reads a JSON object; a field of the wrong type is refused with the code of that field.
    pub fn read(json: Value) -> Result<Self, Refused> {
        if !json.is_object() {
            let what = "body: expected a JSON object";
            return Err(Refused::new(Code::UnsupportedExecutionType, what));
        }
        serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            let field = path.split(['.', '[']).next().unwrap_or_default();
            Refused::new(code_of(field), format!("{path}: {}", error.inner()))
        })
    }
}

/// The code that says that `field` is malformed.
fn code_of(field: &str) -> Code {
    match field {
        "user" | "recipient" | "refundTo" | "recoveryAddress" | "referrerAddress"
        | "depositFeePayer" => Code::InvalidAddress,
        "originChainId" | "destinationChainId" => Code::UnsupportedChain,
        "originCurrency" => Code::InvalidInputCurrency,
        "destinationCurrency" => Code::InvalidOutputCurrency,
        "amount" => Code::AmountTooLow,
        "txs" | "txsGasLimit" | "authorizationList" => Code::InvalidExtraTxs,
        "slippageTolerance" | "latePaymentSlippageTolerance" => Code::InvalidSlippageTolerance,
        "gasLimitForDepositSpecifiedTxs" => Code::InvalidGasLimitForDepositSpecifiedTxs,
        "includedSwapSources"
        | "excludedSwapSources"
        | "includedOriginSwapSources"
        | "includedDestinationSwapSources" => Code::NoSwapRoutesFound,
        _ => Code::UnsupportedExecutionType,
    }
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Count {
        Number(u64),
        Text(String),
    }
    match Option::<Count>::deserialize(from)? {
        None => Ok(None),
        Some(Count::Number(number)) => Ok(Some(number)),
        Some(Count::Text(text)) => {
            let clean = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = clean.then(|| text.parse().ok()).flatten();
            let wrong = || D::Error::custom("expected a number or its digits");
            number.map(Some).ok_or_else(wrong)
        }
    }
}
