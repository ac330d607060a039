//! The codes of refusals, and which of them time may end. Pure.

use super::Refusal;

/// The codes of refusals after which the same request may succeed later: a transaction arrives, a limit refills, a
/// balance grows, seven days pass, a payment fails.
pub const RETRYABLE: &[&str] = &[
    "TRANSACTION_MISSING",
    "TRANSACTION_NOT_FINALIZED",
    "FAST_MODE_LIMIT_EXCEEDED",
    "BALANCE_INSUFFICIENT",
    "WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT",
    // The allocator may record it later.
    "WITHDRAW_REQUEST_NOT_AVAILABLE",
    // The hub may credit the order's account later.
    "ORDER_BALANCE_INSUFFICIENT",
    // The hub may mint the deposit later.
    "DEPOSIT_NOT_MINTED",
    // The hub may apply the recovery later.
    "DEPOSIT_NOT_RECOVERED",
    "ORDER_REQUIRED",
    "ORDER_NOT_GIVEN_UP",
    "ORDER_OPEN",
    // The initiation may be executed later.
    "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT",
    // The output's transaction may be in a block later.
    "OUTPUTS_DIFFERENT",
    // The allocator may have it later.
    "HASH_TO_SIGN_NOT_SET",
    // The manager may map it later.
    "TRIGGER_NOT_MAPPED",
    // The payment in progress may fail.
    "PAYMENT_VISIBLE",
];

impl Refusal {
    /// Whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        RETRYABLE.contains(&self.code())
    }

    /// The stable code for programs; part of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ChainNotAvailable(_) => "CHAIN_NOT_AVAILABLE",
            Self::MissingTransaction { .. } => "TRANSACTION_MISSING",
            Self::RevertedTransaction { .. } => "TRANSACTION_REVERTED",
            Self::NotFinalized(_) => "TRANSACTION_NOT_FINALIZED",
            Self::UnreadableDeposit(_) => "DEPOSIT_UNREADABLE",
            Self::AmbiguousDeposit(_) => "DEPOSIT_AMBIGUOUS",
            Self::ExecutionTooLarge(_) => "EXECUTION_TOO_LARGE",
            Self::TransactionTooLarge(_) => "TRANSACTION_TOO_LARGE",
            Self::Malformed(_) => "INVALID_REQUEST",
            Self::TooMany { .. } => "TOO_MANY_ITEMS",
            Self::FastLimit => "FAST_MODE_LIMIT_EXCEEDED",
            Self::FastNotAllowed => "FAST_MODE_NOT_ALLOWED",
            Self::ForceNotAllowed => "FORCE_NOT_ALLOWED",
            Self::RepeatedOnchainId => "INPUT_ONCHAIN_ID_REPEATED",
            Self::RepeatedInput => "INPUT_REPEATED",
            Self::OrderSignature => "ORDER_SIGNATURE_INVALID",
            Self::NothingOrdered => "ORDER_EMPTY",
            Self::ZeroRequested => "ORDER_AMOUNT_ZERO",
            Self::MissingInput(_) => "INPUT_MISSING",
            Self::InvalidInput { .. } => "INPUT_INVALID",
            Self::WrongCurrency { .. } => "INPUT_CURRENCY_MISMATCH",
            Self::NamedByOther(_) => "DEPOSIT_NAMED_BY_OTHER",
            other => other.settlement_code(),
        }
    }

    /// The codes of refused payments and withdrawals.
    fn settlement_code(&self) -> &'static str {
        match self {
            Self::AfterDeadline(_) => "AFTER_DEADLINE",
            Self::NoReference(_) => "ORDER_NOT_REFERENCED",
            Self::SeveralReferences(_) => "SEVERAL_ORDERS_REFERENCED",
            Self::InsufficientFill { .. } => "FILL_INSUFFICIENT",
            Self::RouterNotListed { .. } => "FILL_ROUTER_NOT_LISTED",
            Self::MissingCalls => "CALLS_MISSING",
            Self::CallsUnsupported(_) => "CALLS_UNSUPPORTED",
            Self::MissingRefund(_) => "REFUND_MISSING",
            Self::RepeatedRefund => "REFUND_REPEATED",
            Self::InvalidRefund(_) => "REFUND_INVALID",
            Self::NoRefundRecipient(_) => "REFUND_RECIPIENT_MISSING",
            Self::InsufficientRefund { .. } => "REFUND_INSUFFICIENT",
            Self::NoDeposit => "DEPOSIT_MISSING",
            Self::Uncovered => "FEES_NOT_COVERED",
            Self::WrongChain(_) => "INPUT_CHAIN_MISMATCH",
            Self::FundsOrder(_) => "TRANSACTION_FUNDS_ORDER",
            Self::ShortClaim | Self::Unvouched => "SOLVER_SIGNATURE_REQUIRED",
            Self::ClaimSignature => "SOLVER_SIGNATURE_INVALID",
            Self::WithdrawalsUnsupported(_) => "WITHDRAWALS_UNSUPPORTED",
            Self::NoDepository(_) | Self::OtherDepository { .. } => "DEPOSITORY_NOT_CONFIGURED",
            Self::WithdrawalMismatch { .. } | Self::OtherWithdrawal => "WITHDRAWAL_MISMATCH",
            Self::RequestUnavailable => "WITHDRAW_REQUEST_NOT_AVAILABLE",
            Self::NoOrderAccount => "ORDER_ACCOUNT_MISSING",
            Self::NotExecutedHere(_) => "WITHDRAWAL_NOT_IN_TRANSACTION",
            Self::OwnerUnsupported | Self::OwnerFamily => "OWNER_UNSUPPORTED",
            Self::OwnerSignature | Self::OwnerDenied(_) => "OWNER_SIGNATURE_INVALID",
            Self::OwnerSignatureMissing => "OWNER_SIGNATURE_MISSING",
            Self::UnboundNonce | Self::UnboundReturn => "WITHDRAWAL_NONCE_UNBOUND",
            Self::ZeroWithdrawal => "WITHDRAWAL_ZERO",
            Self::ZeroTransfer => "TRANSFER_ZERO",
            Self::InsufficientBalance | Self::InsufficientFor(_) => "BALANCE_INSUFFICIENT",
            Self::InsufficientAddressBalance => "WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT",
            Self::NotConfigured(_) => "CONTRACT_NOT_CONFIGURED",
            Self::OtherAddressBalance => "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT",
            Self::OtherOutputs(_) => "OUTPUTS_DIFFERENT",
            Self::NoHashToSign(_) => "HASH_TO_SIGN_NOT_SET",
            Self::NotAuthorizable(_) => "WITHDRAWALS_UNSUPPORTED",
            Self::AdditionalUnsigned => "OWNER_SIGNATURE_MISSING",
            Self::NotTriggered => "TRIGGER_NOT_MAPPED",
            Self::SignatureChain => "SIGNATURE_CHAIN_UNSUPPORTED",
            Self::ClientSignature => "SIGNATURE_INVALID",
            other => other.recovery_code(),
        }
    }

    /// The codes of refused recoveries.
    fn recovery_code(&self) -> &'static str {
        match self {
            Self::NotAtHub(_) => "ORDER_NOT_AT_HUB",
            Self::NothingAttested => "DEPOSIT_MISSING",
            Self::UnknownDeposit(_) | Self::NoSuchDeposit => "DEPOSIT_NOT_FOUND",
            Self::NoOrder => "DEPOSIT_WITHOUT_ORDER",
            Self::NothingToRecover => "ORDER_BALANCE_INSUFFICIENT",
            Self::NotMinted => "DEPOSIT_NOT_MINTED",
            Self::NotRecovered => "DEPOSIT_NOT_RECOVERED",
            Self::ReturnIncomplete => "RECOVERY_INCOMPLETE",
            Self::ReturnOfSeveral => "ORDER_HAS_SEVERAL_INPUTS",
            Self::OtherReturn(_) => "RECOVERY_MISMATCH",
            Self::OrderRequired => "ORDER_REQUIRED",
            Self::OtherOrder | Self::OtherDeposit => "ORDER_MISMATCH",
            Self::NotGivenUp => "ORDER_NOT_GIVEN_UP",
            Self::PaymentVisible => "PAYMENT_VISIBLE",
            Self::OrderOpen(_) => "ORDER_OPEN",
            _ => "REFUSED",
        }
    }
}
