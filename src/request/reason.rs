//! Why requests end badly: the wire's words (guide: protocol 11.10).

use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// Why a request was not filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FailReason {
    DepositReorged,
    DepositChainMismatch,
    IncorrectDepositCurrency,
    DepositedAmountTooLowToFill,
    DoubleSpend,
    TtlExpired,
    OrderExpired,
    SolverBalanceTooLow,
    SolverCapacityExceeded,
    NoQuotes,
    GenerateSwapFailed,
    Slippage,
    TooLittleReceived,
    ExecutionReverted,
    TransactionReverted,
    TransactionSubmissionFailed,
    TransactionNotIncluded,
    QuotedGasLimitExceeded,
    /// Somebody asked for the refund path (`referrer = debug-force-refund`, an operator).
    ManualAdminRefund,
    Unknown,
}

/// Why a request that failed was not refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum RefundFailReason {
    AmountTooLowToRefund,
    NegativeNewAmountAfterFees,
    SwapCurrencyNotOnOrigin,
    ManualRefundRequired,
}

impl FailReason {
    /// The wire's word.
    pub fn text(self) -> String {
        self.to_string()
    }
}

impl RefundFailReason {
    /// The wire's word.
    pub fn text(self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_is_the_same_word_in_texts_and_in_rows() {
        for reason in FailReason::VARIANTS {
            assert_eq!(json!(reason), json!(reason.text()));
        }
        for reason in RefundFailReason::VARIANTS {
            assert_eq!(json!(reason), json!(reason.text()));
        }
        let low = FailReason::DepositedAmountTooLowToFill.text();
        assert_eq!(low, "DEPOSITED_AMOUNT_TOO_LOW_TO_FILL");
    }
}
