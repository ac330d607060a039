//! Why the oracle refuses a claim, in the words and codes that callers know. Pure.
//!
//! The texts are the recorded ones wherever the reference has a reason of its own. A refusal is final: the same
//! request fails again, except for [`RETRYABLE`] ones.

mod code;
mod shown;

use vm::{Unusable, protocol::limits::TooLarge};

pub use code::RETRYABLE;
pub use shown::{QUOTED, Shown};

/// Why the oracle refuses a claim. [`std::fmt::Display`] is the answer's `message`, [`Refusal::code`] its `code`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("Chain {0} is not available")]
    ChainNotAvailable(Shown),
    #[error("Missing transaction {transaction} on chain {chain}")]
    MissingTransaction { transaction: Shown, chain: Shown },
    #[error("Reverted transaction {transaction} on chain {chain}")]
    RevertedTransaction { transaction: Shown, chain: Shown },
    #[error("Transaction {0} is not finalized")]
    NotFinalized(Shown),
    /// The family's reason why a transaction cannot be read as a deposit.
    #[error("{0}")]
    UnreadableDeposit(Shown),
    /// More than one execution can carry; the text says how many.
    #[error("{0}")]
    ExecutionTooLarge(Shown),
    #[error("Transaction {0} is larger than what is read of one")]
    TransactionTooLarge(Shown),
    #[error("Transaction {0} has several deposits with one onchain id")]
    AmbiguousDeposit(Shown),
    /// A part of the body with a wrong format; the text names the field.
    #[error("{0}")]
    Malformed(Shown),
    #[error("{field} must not have more than {most} items")]
    TooMany { field: &'static str, most: usize },
    #[error("Fast mode rate limit exceeded")]
    FastLimit,
    #[error("Unauthorized to use the `force` option")]
    ForceNotAllowed,

    #[error("Input information contains non-unique onchain ids")]
    RepeatedOnchainId,
    #[error("Input information names an input index more than once")]
    RepeatedInput,
    #[error("Invalid order signature")]
    OrderSignature,
    #[error("Order has neither output payments nor calls")]
    NothingOrdered,
    #[error("Order requests an amount of zero")]
    ZeroRequested,
    #[error("Missing input information for order input payment {0}")]
    MissingInput(usize),
    #[error(
        "Invalid input information for order input payment {index} (orderId={order} onchainId={onchain} depositoryDeposits={deposits})"
    )]
    InvalidInput {
        index: usize,
        order: Shown,
        onchain: Shown,
        deposits: Shown,
    },
    #[error(
        "Deposit currency {deposited} does not match the currency {ordered} of order input payment {index}"
    )]
    WrongCurrency {
        index: usize,
        deposited: Shown,
        ordered: Shown,
    },
    #[error("The order of deposit {0} stands only in calldata that its payer did not send")]
    NamedByOther(Shown),

    #[error("Transaction {0} executed after deadline")]
    AfterDeadline(Shown),
    #[error("Transaction {0} does not reference order id")]
    NoReference(Shown),
    #[error("Transaction {0} references multiple order ids; a fill must reference exactly one")]
    SeveralReferences(Shown),
    #[error(
        "Insufficient fill amount for order output payment {index} (paidAmount={paid}, minimumAmount={minimum})"
    )]
    InsufficientFill {
        index: usize,
        paid: Shown,
        minimum: Shown,
    },
    #[error("Fill router {router} is not among those that count on chain {chain}")]
    RouterNotListed { router: Shown, chain: Shown },
    #[error("Missing call executions")]
    MissingCalls,
    #[error("Calls on chain {0} cannot be verified")]
    CallsUnsupported(Shown),
    #[error("Missing refund information for order input payment {0}")]
    MissingRefund(usize),
    #[error("Refund information names an input index more than once")]
    RepeatedRefund,
    #[error("Invalid refund information for order input payment {0}")]
    InvalidRefund(usize),
    #[error("Nobody to refund order input payment {0} to")]
    NoRefundRecipient(usize),
    #[error(
        "Insufficient refund amount for order input payment {index} (paidAmount={paid}, minimumAmount={minimum})"
    )]
    InsufficientRefund {
        index: usize,
        paid: Shown,
        minimum: Shown,
    },
    #[error(
        "Fast mode needs an API key where the hub takes a fee for it or a deposit names an order"
    )]
    FastNotAllowed,
    #[error("Deposit with onchainId {0} not found in transaction")]
    UnknownDeposit(Shown),
    #[error("Deposit does not have a depositId")]
    NoOrder,
    #[error("Insufficient balance at order address for recovery")]
    NothingToRecover,
    #[error("The deposit has not been minted at the hub yet")]
    NotMinted,
    #[error("Order data and signature are required for deposits less than 7 days old")]
    OrderRequired,
    #[error("Deposit depositId does not match the computed orderId")]
    OtherOrder,
    #[error("No fill or refund entry not found for this order")]
    NotGivenUp,
    #[error("The deposit has been paid for by its order's solver")]
    PaymentVisible,
    #[error("The order may be filled or refunded until {0}")]
    OrderOpen(u64),
    #[error("Nothing of the order's is deposited")]
    NoDeposit,
    #[error("The fees exceed what is deposited")]
    Uncovered,
    #[error("The deposit is not on the chain of order input payment {0}")]
    WrongChain(usize),
    #[error("Transaction {0} funds the order; it pays nobody")]
    FundsOrder(Shown),
    #[error("The deposits fall short of the order: the claim needs its solver's signature")]
    ShortClaim,
    #[error("The order asks for its solver's signature in every claim")]
    Unvouched,
    #[error("Invalid solver signature of the claim")]
    ClaimSignature,

    #[error("Withdrawals on chain {0} are not supported")]
    WithdrawalsUnsupported(Shown),
    #[error("Depository {depository} is not configured for chain {chain}")]
    OtherDepository { depository: Shown, chain: Shown },
    #[error("No depository is configured for chain {0}")]
    NoDepository(Shown),
    #[error("withdrawalAddressRequest.{field} does not match the withdrawal")]
    WithdrawalMismatch { field: &'static str },
    #[error("The allocator has recorded another withdrawal for this withdrawalAddressRequest")]
    OtherWithdrawal,
    #[error("Withdraw request not yet available")]
    RequestUnavailable,
    #[error("Withdrawal has no corresponding order address")]
    NoOrderAccount,
    #[error("Transaction {0} does not show the execution of the withdrawal")]
    NotExecutedHere(Shown),
    #[error("Only 'ethereum-vm' signatures are supported")]
    OwnerUnsupported,
    #[error("Signature verification not supported for owner chain")]
    OwnerFamily,
    #[error("Invalid signature. Can't trigger withdrawal")]
    OwnerSignature,
    /// The family's reason why a signature is not its owner's.
    #[error("{0}")]
    OwnerDenied(Shown),
    #[error("ownerSignature is required")]
    OwnerSignatureMissing,
    #[error(
        "recoverMode requires depositChainId, depositTransactionId, depositOnchainId, order, and orderSignature"
    )]
    ReturnIncomplete,
    #[error("recoverMode only supports single-input orders")]
    ReturnOfSeveral,
    /// What is asked for is not the return of the deposit; the text says in what it differs.
    #[error("{0}")]
    OtherReturn(Shown),
    #[error("The deposit has not been recovered at the hub yet")]
    NotRecovered,
    #[error("nonce is not the idempotency key of the deposit's recovery")]
    UnboundReturn,
    #[error("withdrawalNonce does not commit to the withdrawal")]
    UnboundNonce,
    #[error("Withdrawn amount must be non-zero")]
    ZeroWithdrawal,
    #[error("Transfer amount must be non-zero")]
    ZeroTransfer,
    #[error("Insufficient initial withdrawal balance")]
    InsufficientBalance,
    #[error("Insufficient balance for requested {0}")]
    InsufficientFor(&'static str),
    #[error("Insufficient withdrawal address balance")]
    InsufficientAddressBalance,

    /// The hub file does not name a contract that the statement needs; the text says which.
    #[error("Missing {0} config")]
    NotConfigured(&'static str),
    /// An order that the hub's executor cannot end, or a deposit with which it cannot; the text says why.
    #[error("{0}")]
    NotAtHub(&'static str),
    #[error("No depository-deposit messages attested")]
    NothingAttested,
    #[error("Could not find corresponding deposit")]
    NoSuchDeposit,
    #[error("Deposit does not reference order id")]
    OtherDeposit,
    #[error("Withdrawn amount different from withdrawal address balance")]
    OtherAddressBalance,
    /// What a withdrawal says of an output to spend is not what the chain shows; the text names the part that says it.
    #[error("{0}: an output to spend is not what is said of it, or is not known yet")]
    OtherOutputs(Shown),
    #[error("Hash to sign not set for withdraw request at index {0}")]
    NoHashToSign(u64),
    #[error("Withdrawals on {0} are not supported by this endpoint")]
    NotAuthorizable(&'static str),
    /// What only the owner may choose, and a returned deposit has no word of.
    #[error("additionalData needs the owner's signature")]
    AdditionalUnsigned,
    #[error("Trigger hash does not map to the provided order id")]
    NotTriggered,
    #[error("Unsupported signature chain")]
    SignatureChain,
    /// A client's typed message is malformed, or another account signed it.
    #[error("Invalid signature")]
    ClientSignature,
}

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Self {
        Self::ExecutionTooLarge(error.to_string().into())
    }
}

impl From<Unusable> for Refusal {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Missing { transaction, chain } => Self::MissingTransaction {
                transaction: transaction.into(),
                chain: chain.as_str().into(),
            },
            Unusable::Failed { transaction, chain } => Self::RevertedTransaction {
                transaction: transaction.into(),
                chain: chain.as_str().into(),
            },
            Unusable::Early(transaction) => Self::NotFinalized(transaction.into()),
        }
    }
}
