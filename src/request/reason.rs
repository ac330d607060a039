//! Why requests end badly: the wire's words (guide: protocol 11.10).

use serde::{Deserialize, Serialize};

/// Why a request was not filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefundFailReason {
    AmountTooLowToRefund,
    NegativeNewAmountAfterFees,
    SwapCurrencyNotOnOrigin,
    ManualRefundRequired,
}

impl FailReason {
    /// The wire's word.
    pub fn text(self) -> String {
        text(self)
    }
}

impl RefundFailReason {
    /// The wire's word.
    pub fn text(self) -> String {
        text(self)
    }
}

/// Both are written as one word.
fn text(reason: impl Serialize) -> String {
    let written = serde_json::to_value(reason).ok();
    let word = written.as_ref().and_then(|word| word.as_str());
    word.unwrap_or_default().to_owned()
}
