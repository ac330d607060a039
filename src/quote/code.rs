//! Why there is no quote: the wire's codes and what goes with them (guide: protocol 11.8).

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;
use vm::trade::{Draft, Revert, Unfunded};

/// The wire's error codes of quotes and prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
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
    Unauthorized,
    InsufficientFunds,
    InsufficientLiquidity,
    InvalidAddress,
    InvalidRecipient,
    InvalidInputCurrency,
    InvalidOutputCurrency,
    UnsupportedCurrency,
    InvalidSlippageTolerance,
    NoSwapRoutesFound,
    NoInternalSwapRoutesFound,
    UnsupportedRoute,
    PriceFetchFailed,
    ServiceUnavailable,
    RpcHttpError,
    RouteTemporarilyRestricted,
    SolanaTxTooLarge,
    SwapImpactTooHigh,
    UnsupportedExecutionType,
    UserRecipientMismatch,
    DestinationTxFailed,
    Erc20RouterAddressNotFound,
    SwapQuoteFailed,
    DiskReserve,
    TooManyLargeQuotes,
    UnknownError,
}

impl Code {
    /// As `errorCode` spells it.
    pub fn text(self) -> &'static str {
        self.into()
    }

    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::TooManyLargeQuotes => 429,
            Self::PriceFetchFailed
            | Self::ServiceUnavailable
            | Self::DiskReserve
            | Self::RpcHttpError => 503,
            Self::Erc20RouterAddressNotFound | Self::SwapQuoteFailed | Self::UnknownError => 500,
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

/// The user cannot make the deposit.
impl From<Unfunded> for Refused {
    fn from(why: Unfunded) -> Self {
        let (code, field) = match why {
            Unfunded::Short { .. } => (Code::InsufficientFunds, "user"),
            Unfunded::Small { .. } => (Code::AmountTooLow, "amount"),
            Unfunded::Key(_) => (Code::InvalidField, "additionalData.userPublicKey"),
            Unfunded::Unable(_) => (Code::UnsupportedRoute, "user"),
        };
        Self::new(code, format!("{field}: {why}"))
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
    fn each_code_is_written_as_serde_does() {
        for code in Code::VARIANTS {
            assert_eq!(serde_json::to_value(code).unwrap(), code.text());
        }
    }
}
