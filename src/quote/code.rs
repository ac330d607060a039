//! Why there is no quote: the wire's codes and what goes with them (guide: protocol 11.8).

use serde::Serialize;
use utoipa::ToSchema;
use vm::trade::{Call, Revert};

/// The wire's error codes of quotes and prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    AmountTooLow,
    /// A number that stands where digits do cannot be read.
    InvalidAmount,
    /// A field has another type, or none of the values that it may have.
    InvalidField,
    /// A field that must be there is not.
    MissingField,
    ChainDisabled,
    UnsupportedChain,
    ExtraTxsNotSupported,
    InvalidExtraTxs,
    InvalidGasLimitForDepositSpecifiedTxs,
    Forbidden,
    Unauthorized,
    InsufficientFunds,
    InsufficientLiquidity,
    InvalidAddress,
    InvalidRecipient,
    InvalidInputCurrency,
    InvalidOutputCurrency,
    UnsupportedCurrency,
    InvalidSlippageTolerance,
    NoQuotes,
    NoSwapRoutesFound,
    NoInternalSwapRoutesFound,
    UnsupportedRoute,
    PriceFetchFailed,
    ServiceUnavailable,
    RequestTimedOut,
    RpcHttpError,
    RouteTemporarilyRestricted,
    SanctionedCurrency,
    SanctionedWalletAddress,
    SolanaTxTooLarge,
    SwapImpactTooHigh,
    UnsupportedExecutionType,
    UserRecipientMismatch,
    DestinationTxFailed,
    Erc20RouterAddressNotFound,
    SwapQuoteFailed,
    PermitFailed,
    DiskReserve,
    TooManyLargeQuotes,
    UnknownError,
}

impl Code {
    /// Each of them, in the order of their declaration.
    pub const ALL: [Self; 41] = [
        Self::AmountTooLow,
        Self::InvalidAmount,
        Self::InvalidField,
        Self::MissingField,
        Self::ChainDisabled,
        Self::UnsupportedChain,
        Self::ExtraTxsNotSupported,
        Self::InvalidExtraTxs,
        Self::InvalidGasLimitForDepositSpecifiedTxs,
        Self::Forbidden,
        Self::Unauthorized,
        Self::InsufficientFunds,
        Self::InsufficientLiquidity,
        Self::InvalidAddress,
        Self::InvalidRecipient,
        Self::InvalidInputCurrency,
        Self::InvalidOutputCurrency,
        Self::UnsupportedCurrency,
        Self::InvalidSlippageTolerance,
        Self::NoQuotes,
        Self::NoSwapRoutesFound,
        Self::NoInternalSwapRoutesFound,
        Self::UnsupportedRoute,
        Self::PriceFetchFailed,
        Self::ServiceUnavailable,
        Self::RequestTimedOut,
        Self::RpcHttpError,
        Self::RouteTemporarilyRestricted,
        Self::SanctionedCurrency,
        Self::SanctionedWalletAddress,
        Self::SolanaTxTooLarge,
        Self::SwapImpactTooHigh,
        Self::UnsupportedExecutionType,
        Self::UserRecipientMismatch,
        Self::DestinationTxFailed,
        Self::Erc20RouterAddressNotFound,
        Self::SwapQuoteFailed,
        Self::PermitFailed,
        Self::DiskReserve,
        Self::TooManyLargeQuotes,
        Self::UnknownError,
    ];

    /// As `errorCode` spells it.
    pub fn text(self) -> &'static str {
        match self {
            Self::AmountTooLow => "AMOUNT_TOO_LOW",
            Self::InvalidAmount => "INVALID_AMOUNT",
            Self::InvalidField => "INVALID_FIELD",
            Self::MissingField => "MISSING_FIELD",
            Self::ChainDisabled => "CHAIN_DISABLED",
            Self::UnsupportedChain => "UNSUPPORTED_CHAIN",
            Self::ExtraTxsNotSupported => "EXTRA_TXS_NOT_SUPPORTED",
            Self::InvalidExtraTxs => "INVALID_EXTRA_TXS",
            Self::InvalidGasLimitForDepositSpecifiedTxs => {
                "INVALID_GAS_LIMIT_FOR_DEPOSIT_SPECIFIED_TXS"
            }
            Self::Forbidden => "FORBIDDEN",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::InsufficientFunds => "INSUFFICIENT_FUNDS",
            Self::InsufficientLiquidity => "INSUFFICIENT_LIQUIDITY",
            Self::InvalidAddress => "INVALID_ADDRESS",
            Self::InvalidRecipient => "INVALID_RECIPIENT",
            Self::InvalidInputCurrency => "INVALID_INPUT_CURRENCY",
            Self::InvalidOutputCurrency => "INVALID_OUTPUT_CURRENCY",
            Self::UnsupportedCurrency => "UNSUPPORTED_CURRENCY",
            Self::InvalidSlippageTolerance => "INVALID_SLIPPAGE_TOLERANCE",
            Self::NoQuotes => "NO_QUOTES",
            Self::NoSwapRoutesFound => "NO_SWAP_ROUTES_FOUND",
            Self::NoInternalSwapRoutesFound => "NO_INTERNAL_SWAP_ROUTES_FOUND",
            Self::UnsupportedRoute => "UNSUPPORTED_ROUTE",
            Self::PriceFetchFailed => "PRICE_FETCH_FAILED",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            Self::RequestTimedOut => "REQUEST_TIMED_OUT",
            Self::RpcHttpError => "RPC_HTTP_ERROR",
            Self::RouteTemporarilyRestricted => "ROUTE_TEMPORARILY_RESTRICTED",
            Self::SanctionedCurrency => "SANCTIONED_CURRENCY",
            Self::SanctionedWalletAddress => "SANCTIONED_WALLET_ADDRESS",
            Self::SolanaTxTooLarge => "SOLANA_TX_TOO_LARGE",
            Self::SwapImpactTooHigh => "SWAP_IMPACT_TOO_HIGH",
            Self::UnsupportedExecutionType => "UNSUPPORTED_EXECUTION_TYPE",
            Self::UserRecipientMismatch => "USER_RECIPIENT_MISMATCH",
            Self::DestinationTxFailed => "DESTINATION_TX_FAILED",
            Self::Erc20RouterAddressNotFound => "ERC20_ROUTER_ADDRESS_NOT_FOUND",
            Self::SwapQuoteFailed => "SWAP_QUOTE_FAILED",
            Self::PermitFailed => "PERMIT_FAILED",
            Self::DiskReserve => "DISK_RESERVE",
            Self::TooManyLargeQuotes => "TOO_MANY_LARGE_QUOTES",
            Self::UnknownError => "UNKNOWN_ERROR",
        }
    }

    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::TooManyLargeQuotes => 429,
            Self::PriceFetchFailed
            | Self::ServiceUnavailable
            | Self::DiskReserve
            | Self::RequestTimedOut
            | Self::RpcHttpError => 503,
            Self::Erc20RouterAddressNotFound
            | Self::SwapQuoteFailed
            | Self::PermitFailed
            | Self::UnknownError => 500,
            _ => 400,
        }
    }
}

/// No quote, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// Names the field and what was expected of it.
    pub message: String,
    pub code: Code,
    /// What the contract said; set, as the next two are, where a simulation reverted.
    pub error_data: Option<String>,
    /// The head at which it reverted.
    pub approx_simulated_block: Option<u64>,
    pub failed_call_data: Option<Box<FailedCall>>,
    /// The HTTP status that goes with the code.
    pub status_code: u16,
}

/// The call that reverted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = QuoteFailedCall)]
pub struct FailedCall {
    pub from: String,
    pub to: String,
    pub data: String,
    pub value: String,
}

impl Refused {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            error_data: None,
            approx_simulated_block: None,
            failed_call_data: None,
            status_code: code.status(),
        }
    }

    /// The destination's transaction reverts.
    pub fn reverted(call: &Call, revert: &Revert, block: Option<u64>) -> Self {
        let reason = if revert.reason.is_empty() {
            revert.data.to_string()
        } else {
            revert.reason.clone()
        };
        let message = format!("the destination transaction would fail: {reason}");
        let failed = FailedCall {
            from: call.from.to_string(),
            to: call.to.to_string(),
            data: call.data.to_string(),
            value: call.value.to_string(),
        };
        Self {
            error_data: Some(reason),
            approx_simulated_block: block,
            failed_call_data: Some(Box::new(failed)),
            ..Self::new(Code::DestinationTxFailed, message)
        }
    }
}

/// A chain could not be read: the caller may try again.
impl From<vm::ReadError> for Refused {
    fn from(error: vm::ReadError) -> Self {
        tracing::warn!(%error, "no quote: a chain cannot be read");
        Self::new(Code::RpcHttpError, "a chain cannot be read right now")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_status_and_its_word() {
        let refused = Refused::new(Code::InvalidGasLimitForDepositSpecifiedTxs, "why");
        assert_eq!(refused.status_code, 400);
        for code in [
            refused.code,
            Code::Erc20RouterAddressNotFound,
            Code::PriceFetchFailed,
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.text());
        }
        assert_eq!(Code::PriceFetchFailed.status(), 503);
    }

    #[test]
    fn each_code_is_listed_once_and_written_as_serde_does() {
        for (at, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at, "{code:?}");
            assert_eq!(serde_json::to_value(code).unwrap(), code.text());
        }
        assert_eq!(Code::ALL.len(), Code::UnknownError as usize + 1);
    }
}
