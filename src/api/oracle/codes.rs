//! The codes of the oracle's refusals and failures, as their pages tell them.

mod payments;

pub use payments::PAYMENTS;

use crate::http::codes::{Code, later, never, varying};

/// What deposits and orders are refused for.
pub const DEPOSITS: &[Code] = &[
    never(
        "CHAIN_NOT_AVAILABLE",
        "The oracle has no chain of this name.",
        "Ask GET /chains/v1 for the names. They are those that orders use.",
    ),
    later(
        "TRANSACTION_MISSING",
        "No provider has the transaction in a block yet.",
        "Ask again after the next blocks. Check chain and transaction id where it stays so.",
    ),
    never(
        "TRANSACTION_REVERTED",
        "The transaction is in a block and failed: nothing of it counts.",
        "Use the transaction that succeeded.",
    ),
    later(
        "TRANSACTION_NOT_FINALIZED",
        "The transaction is in a block that is not final by the chain's rule.",
        "Ask again after more blocks. GET /chains/v1 names the chain; its rule is depth and age.",
    ),
    never(
        "DEPOSIT_UNREADABLE",
        "The transaction cannot be read as a deposit. The message says why.",
        "Check that it pays into the chain's depository in one of the known ways.",
    ),
    never(
        "DEPOSIT_AMBIGUOUS",
        "The transaction has several deposits with one onchain id.",
        "It cannot be attested. Deposit in a way that gives each deposit an id of its own.",
    ),
    never(
        "EXECUTION_TOO_LARGE",
        "What would be signed is larger than one execution can carry.",
        "Claim less at one time. The message says how much there is.",
    ),
    never(
        "INVALID_REQUEST",
        "A part of the body does not belong to its format.",
        "Correct the field that the message names.",
    ),
    never(
        "TOO_MANY_ITEMS",
        "A list of the body has too many items.",
        "Send fewer. The message says how many are read.",
    ),
    later(
        "FAST_MODE_LIMIT_EXCEEDED",
        "Fast attestations of this deposit's value are used up for now.",
        "Ask again later, or ask in slow mode.",
    ),
    never(
        "FAST_MODE_NOT_ALLOWED",
        "Fast mode needs an API key where the hub takes a fee for it, and for a deposit that names an order.",
        "Send an API key, or ask in slow mode.",
    ),
    never(
        "FORCE_NOT_ALLOWED",
        "The caller's key may not force a claim.",
        "Ask without force, or with a key that the operator named for it.",
    ),
    never(
        "INPUT_ONCHAIN_ID_REPEATED",
        "The claim names one deposit more than once.",
        "Name each deposit once.",
    ),
    never(
        "INPUT_REPEATED",
        "The claim names an input of the order more than once.",
        "Name each input index once.",
    ),
    never(
        "ORDER_SIGNATURE_INVALID",
        "The order's signature is not its solver's.",
        "Send the order exactly as the solver signed it, with that signature.",
    ),
    never(
        "ORDER_EMPTY",
        "The order pays nobody and calls nothing.",
        "Use an order with output payments or calls.",
    ),
    never(
        "ORDER_AMOUNT_ZERO",
        "The order asks for an amount of zero.",
        "Use an order that asks for something.",
    ),
    never(
        "INPUT_MISSING",
        "The claim names no deposit for an input of the order.",
        "Add the input information of the index that the message names.",
    ),
    never(
        "INPUT_INVALID",
        "The deposit that the claim names does not pay for the order's input.",
        "Compare chain, order id and onchain id with the deposits that the message lists.",
    ),
    never(
        "INPUT_CURRENCY_MISMATCH",
        "The deposit is in another currency than the order asks for.",
        "It does not pay for this order. It can be given back to its depositor.",
    ),
    never(
        "DEPOSIT_NAMED_BY_OTHER",
        "The order stands only in data that the payer did not send.",
        "Somebody else named the order. The deposit counts for nothing that its payer did not name.",
    ),
    never(
        "INPUT_CHAIN_MISMATCH",
        "The deposit is on another chain than the order's input.",
        "It does not pay for this order. It can be given back to its depositor.",
    ),
];

/// What withdrawals and clients' signatures are refused for.
pub const WITHDRAWALS: &[Code] = &[
    never(
        "WITHDRAWALS_UNSUPPORTED",
        "Withdrawals from this chain, or from this depository of it, are not supported.",
        "Name another depository of the chain, if it has one, or withdraw on another chain.",
    ),
    never(
        "DEPOSITORY_NOT_CONFIGURED",
        "The oracle knows no depository of this chain, or not the named one.",
        "Leave it out, name one that the operator configured, or ask another oracle.",
    ),
    never(
        "WITHDRAWAL_MISMATCH",
        "The request and the withdrawal differ.",
        "Send the request that the withdrawal was made for. The message names the field.",
    ),
    later(
        "WITHDRAW_REQUEST_NOT_AVAILABLE",
        "The hub's allocator has recorded nothing for the withdraw request.",
        "Ask again when it has been submitted. Check that every field is as it was submitted.",
    ),
    never(
        "ORDER_ACCOUNT_MISSING",
        "The executor names no order for the expired withdraw request.",
        "Only a request that the executor made for an order is given back to one.",
    ),
    never(
        "WITHDRAWAL_NOT_IN_TRANSACTION",
        "The transaction does not show the execution of the withdrawal.",
        "Name the transaction in which the depository executed it.",
    ),
    never(
        "OWNER_UNSUPPORTED",
        "Signatures of the owner's family are not verified here.",
        "Ask for an account of another family. Version 1 of the initiation takes ethereum-vm only.",
    ),
    never(
        "OWNER_SIGNATURE_INVALID",
        "The owner's signature does not fit what is asked for.",
        "Sign the request as it is sent, with the owner's key.",
    ),
    never(
        "OWNER_SIGNATURE_MISSING",
        "The request has neither the owner's signature nor a returned deposit.",
        "Send ownerSignature, or recoverMode with the deposit and its order.",
    ),
    never(
        "RECOVERY_INCOMPLETE",
        "recoverMode needs the deposit and its order.",
        "Send depositChainId, depositTransactionId, depositOnchainId, order and orderSignature.",
    ),
    never(
        "ORDER_HAS_SEVERAL_INPUTS",
        "recoverMode is for orders with one input.",
        "Have the owner sign the request instead.",
    ),
    never(
        "RECOVERY_MISMATCH",
        "What is asked for is not the return of the deposit. The message says in what it differs.",
        "Ask for the deposit's amount, to the recipient of the order's refund, for its depositor.",
    ),
    later(
        "DEPOSIT_NOT_RECOVERED",
        "The hub has not moved the deposit back to its depositor's account yet.",
        "Have the deposit's recovery attested and executed first, then ask again.",
    ),
    never(
        "WITHDRAWAL_NONCE_UNBOUND",
        "The nonce does not commit to the withdrawal.",
        "Make the nonce of the withdrawal's own fields; in recoverMode it is the recovery's idempotency key.",
    ),
    never(
        "WITHDRAWAL_ZERO",
        "The withdrawn amount is zero.",
        "Withdraw more than nothing.",
    ),
    never(
        "TRANSFER_ZERO",
        "The transferred amount is zero.",
        "Transfer more than nothing.",
    ),
    later(
        "BALANCE_INSUFFICIENT",
        "The owner's balance is smaller than the amount.",
        "Ask again when the balance has grown, or ask for less.",
    ),
    later(
        "WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT",
        "The withdrawal address does not hold the amount yet.",
        "Ask again when the initiation has been executed.",
    ),
    never(
        "CONTRACT_NOT_CONFIGURED",
        "The oracle does not know a contract of the settlement chain that the statement is for. The message says which.",
        "Ask another oracle, or the operator to name the contract in the hub file.",
    ),
    never(
        "ORDER_NOT_AT_HUB",
        "The hub's executor cannot end the order with the deposit. The message says why.",
        "Fill or refund the order on its chain, or have the deposit recovered.",
    ),
    later(
        "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT",
        "The withdrawal address holds less than the amount. It may hold more.",
        "Ask again when the initiation has been executed.",
    ),
    later(
        "OUTPUTS_DIFFERENT",
        "An output to spend is not what the withdrawal says of it, or its transaction is not known yet.",
        "Correct additionalData. Where it is right, ask again when the transaction is in a block.",
    ),
    later(
        "HASH_TO_SIGN_NOT_SET",
        "The allocator has no hash for the withdraw request at this index, or not in a final block yet.",
        "Ask again when the allocator has made its hashes, for indexes that it has.",
    ),
    later(
        "TRIGGER_NOT_MAPPED",
        "The deposit address manager does not map the trigger to the order, or not in a final block yet.",
        "Send the trigger exactly as the manager took it. Ask again when its transaction is final.",
    ),
    never(
        "SIGNATURE_CHAIN_UNSUPPORTED",
        "The chain that was signed for is not one that is known.",
        "Sign for an EVM chain that GET /chains/v1 lists.",
    ),
    never(
        "SIGNATURE_INVALID",
        "The signature is malformed or another account's.",
        "Sign the message as it is sent, with the account that it names.",
    ),
];

/// What keeps the oracle from signing.
pub const SERVICE: &[Code] = &[
    varying(
        "CONFLICTING_STATEMENT",
        "It contradicts what was signed before.",
        "Final where the opposite was signed. With retryable, a payment serves another statement or the transaction was attested in another block: ask again later.",
    ),
    later(
        "PROVIDERS_INSUFFICIENT",
        "The operator named too few providers of the chain or of the settlement chain.",
        "Ask another oracle. The operator has to name more providers.",
    ),
    later(
        "PROVIDER_UNAVAILABLE",
        "A chain's provider gave no usable answer.",
        "Ask again. Nothing was signed.",
    ),
    later(
        "ALLOCATOR_UNAVAILABLE",
        "The allocator of withdrawals cannot be read by this oracle.",
        "Ask again, or ask another oracle.",
    ),
    later(
        "CHAIN_HALTED",
        "Signing for the chain is halted: something that was signed left it.",
        "Ask another oracle. The operator has to look at it and clear it.",
    ),
    later(
        "JOURNAL_UNAVAILABLE",
        "The journal of signed statements cannot be written.",
        "Ask again. Nothing is signed without it.",
    ),
    later(
        "DISK_RESERVE",
        "The oracle's disk is nearly full: without a key it signs no new mapping, inclusion, transfer, order that ends at the hub, nor an authorization or initiation that an owner signs.",
        "Ask again later, with a key, or ask another oracle.",
    ),
    later(
        "SIGNER_UNAVAILABLE",
        "The signer gave no signature.",
        "Ask again: the same statement gets the same signature.",
    ),
];
