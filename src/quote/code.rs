//! Why there is no quote: the wire's codes and what goes with them (guide: protocol 11.8).

use serde::Serialize;
use utoipa::ToSchema;
use vm::trade::{Draft, Revert};

macro_rules! codes {
    ($($(#[$about:meta])* $code:ident = $text:literal,)+) => {
        /// The wire's error codes of quotes and prices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum Code {
            $($(#[$about])* $code,)+
        }

        impl Code {
            /// Each of them, in the order of their declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$code),+];

            /// As `errorCode` spells it.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$code => $text),+
                }
            }
        }
    };
}

codes! {
    AmountTooLow = "AMOUNT_TOO_LOW",
    /// A number that stands where digits do cannot be read.
    InvalidAmount = "INVALID_AMOUNT",
    /// A field has another type, or none of the values that it may have.
    InvalidField = "INVALID_FIELD",
    /// A field that must be there is not.
    MissingField = "MISSING_FIELD",
    ChainDisabled = "CHAIN_DISABLED",
    UnsupportedChain = "UNSUPPORTED_CHAIN",
    ExtraTxsNotSupported = "EXTRA_TXS_NOT_SUPPORTED",
    InvalidExtraTxs = "INVALID_EXTRA_TXS",
    InvalidGasLimitForDepositSpecifiedTxs = "INVALID_GAS_LIMIT_FOR_DEPOSIT_SPECIFIED_TXS",
    Forbidden = "FORBIDDEN",
    Unauthorized = "UNAUTHORIZED",
    InsufficientFunds = "INSUFFICIENT_FUNDS",
    InsufficientLiquidity = "INSUFFICIENT_LIQUIDITY",
    InvalidAddress = "INVALID_ADDRESS",
    InvalidRecipient = "INVALID_RECIPIENT",
    InvalidInputCurrency = "INVALID_INPUT_CURRENCY",
    InvalidOutputCurrency = "INVALID_OUTPUT_CURRENCY",
    UnsupportedCurrency = "UNSUPPORTED_CURRENCY",
    InvalidSlippageTolerance = "INVALID_SLIPPAGE_TOLERANCE",
    NoQuotes = "NO_QUOTES",
    NoSwapRoutesFound = "NO_SWAP_ROUTES_FOUND",
    NoInternalSwapRoutesFound = "NO_INTERNAL_SWAP_ROUTES_FOUND",
    UnsupportedRoute = "UNSUPPORTED_ROUTE",
    PriceFetchFailed = "PRICE_FETCH_FAILED",
    ServiceUnavailable = "SERVICE_UNAVAILABLE",
    RequestTimedOut = "REQUEST_TIMED_OUT",
    RpcHttpError = "RPC_HTTP_ERROR",
    RouteTemporarilyRestricted = "ROUTE_TEMPORARILY_RESTRICTED",
    SanctionedCurrency = "SANCTIONED_CURRENCY",
    SanctionedWalletAddress = "SANCTIONED_WALLET_ADDRESS",
    SolanaTxTooLarge = "SOLANA_TX_TOO_LARGE",
    SwapImpactTooHigh = "SWAP_IMPACT_TOO_HIGH",
    UnsupportedExecutionType = "UNSUPPORTED_EXECUTION_TYPE",
    UserRecipientMismatch = "USER_RECIPIENT_MISMATCH",
    DestinationTxFailed = "DESTINATION_TX_FAILED",
    Erc20RouterAddressNotFound = "ERC20_ROUTER_ADDRESS_NOT_FOUND",
    SwapQuoteFailed = "SWAP_QUOTE_FAILED",
    PermitFailed = "PERMIT_FAILED",
    DiskReserve = "DISK_RESERVE",
    TooManyLargeQuotes = "TOO_MANY_LARGE_QUOTES",
    UnknownError = "UNKNOWN_ERROR",
}

impl Code {
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

    /// The user's transaction is too long for its chain, which the exchange in it makes it.
    pub fn too_large(bytes: usize, most: usize) -> Self {
        let excess = bytes.saturating_sub(most);
        let what = format!(
            "the deposit transaction has {bytes} bytes, {excess} more than the {most} that it may have: allow fewer \
             pools with maxRouteLength"
        );
        Self::new(Code::SolanaTxTooLarge, what)
    }

    /// The destination's transaction reverts. Its data is shown where it is a call.
    pub fn reverted(draft: &Draft, revert: &Revert, block: Option<u64>) -> Self {
        let reason = if revert.reason.is_empty() {
            revert.data.to_string()
        } else {
            revert.reason.clone()
        };
        let message = format!("the destination transaction would fail: {reason}");
        let failed = draft.as_call().map(|call| FailedCall {
            from: call.from.to_string(),
            to: call.to.to_string(),
            data: call.data.to_string(),
            value: call.value.to_string(),
        });
        Self {
            error_data: Some(reason),
            approx_simulated_block: block,
            failed_call_data: failed.map(Box::new),
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

/// A codec's complaint about what was checked before is our mistake.
impl From<vm::CodecError> for Refused {
    fn from(error: vm::CodecError) -> Self {
        tracing::error!(%error, "no quote: a transaction cannot be built");
        Self::new(Code::UnknownError, "the transaction cannot be built")
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
