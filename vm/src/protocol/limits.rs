//! The size limits of everything between a chain and the hub: what an oracle attests, what its peers and the solver
//! can carry, and what the settlement chain accepts. A payer checks [`fits`] before it pays for a deposit.

use crate::types::Receipt;

/// The most bytes of one provider's answer: the receipts of a block that is full of logs.
pub const PROVIDER_ANSWER: usize = 64 << 20;

/// The same for an answer to a stranger's question (a quote's calls, whose answers may have megabytes): small enough
/// not to displace others in memory.
pub const STRANGERS_ANSWER: usize = 1 << 20;

/// The most bytes of a request's body.
pub const REQUEST: usize = 1 << 20;

/// Gas of an execution: below the 2^24 that a transaction may have (EIP-7825), and half of the blocks of
/// 30 million that settlement chains begin with.
const EXECUTION_GAS: usize = 15_000_000;
/// Gas of an action, its calldata included. A credit to an empty balance costs about 60,000.
pub const ACTION_GAS: usize = 100_000;
/// The most actions of an execution.
pub const ACTIONS: usize = EXECUTION_GAS / ACTION_GAS;
/// Gas that the two transactions which settle an order may take: its deposit's execution and its outcome's. With the
/// contracts of the development network, two signatures each, a fill with a fee takes 271,000 and a refund 205,000
/// (`tests/daemon/settler.rs`); more signatures, fees and calldata need room.
pub const SETTLEMENT_WORK: u64 = 500_000;
/// Deposits of one transaction that this has room for: they are all executed together.
pub const SETTLEMENT_TOGETHER: u32 = 3;
/// Bytes of calldata of each of the two: three deposits, or a fill with fees, and two signatures.
pub const SETTLEMENT_BYTES: usize = 1_536;
/// The most signatures that an execution is submitted with.
pub const SIGNATURES: usize = 64;

/// The most bytes of a transaction that nodes relay.
pub const TRANSACTION: usize = 128 << 10;
/// Bytes of calldata of the longest action, a fast mint, with its position in the list.
const ACTION_CALLDATA: usize = 12 * 32;
/// Bytes of calldata of a signature.
const SIGNATURE_CALLDATA: usize = 5 * 32;
/// Bytes of the rest of the transaction.
const ENVELOPE: usize = 1 << 10;
const _: () = assert!(
    ACTIONS * ACTION_CALLDATA + SIGNATURES * SIGNATURE_CALLDATA + ENVELOPE <= TRANSACTION,
    "an execution is a transaction that nodes pass on"
);

/// Bytes of JSON that an action adds to an answer: its hex, its deposit, and its currency.
const ACTION_JSON: usize = 3 << 10;
/// Bytes of JSON of a signature.
const SIGNATURE_JSON: usize = 512;
/// The most bytes of an oracle's answer: it repeats the request and adds actions and signatures.
pub const ANSWER: usize = REQUEST + ACTIONS * ACTION_JSON + SIGNATURES * SIGNATURE_JSON;
const _: () = assert!(ANSWER <= 2 << 20, "other oracles read no more of a peer");

/// The most events of all transactions of one request: judging them takes a few tenths of a second on one core.
pub const EVENTS: usize = 300_000;
/// The most events of a transaction whose deposits are attested; the other half is for the payment. On every known
/// chain a block has gas for fewer.
pub const TRANSACTION_EVENTS: usize = EVENTS / 2;

/// The most inputs, refunds, payments, calls or fees of one claim: each input and fee of an order is an action. And the most
/// inputs of an allocator's transaction whose signatures are read, each by itself.
pub const ITEMS: usize = 64;
/// The transactions that one read of outputs asks a provider for at a time.
pub const OUTPUTS_AT_ONCE: usize = 8;
const _: () = assert!(2 * ITEMS <= ACTIONS, "an order's outcome is one execution");
/// Bytes of JSON of an item of a claim, without its calldata.
const ITEM_JSON: usize = 1 << 10;
const _: () = assert!(
    2 * TRANSACTION + 5 * ITEMS * ITEM_JSON <= REQUEST,
    "whoever filled an order with the most calldata, in hex, can claim it"
);
/// The most payments that one claim may need: each is a row for ever.
pub const PAYMENTS: usize = 1_024;

/// A transaction that is too large for an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("{0} deposits in one transaction; an execution has room for {ACTIONS}")]
    Actions(usize),
    #[error("{0} events in one transaction; {TRANSACTION_EVENTS} are looked at")]
    Events(usize),
}

/// Checks that an execution has room for `actions`.
pub fn fits(actions: usize) -> Result<(), TooLarge> {
    if actions <= ACTIONS {
        return Ok(());
    }
    Err(TooLarge::Actions(actions))
}

/// Checks that the deposits of a transaction can be attested together, as they always are: every deposit of a
/// non-zero amount is an action.
pub fn attestable(receipt: &Receipt) -> Result<(), TooLarge> {
    readable(receipt)?;
    fits(actions(receipt))
}

/// Checks that a transaction is small enough to be judged.
pub fn readable(receipt: &Receipt) -> Result<(), TooLarge> {
    match events(receipt) {
        events if events > TRANSACTION_EVENTS => Err(TooLarge::Events(events)),
        _ => Ok(()),
    }
}

/// The number of actions that attest the deposits of a transaction.
pub fn actions(receipt: &Receipt) -> usize {
    let deposits = receipt.deposits.iter().flatten();
    deposits.filter(|deposit| !deposit.amount.is_zero()).count()
}

/// The number of events to judge in a transaction.
pub fn events(receipt: &Receipt) -> usize {
    let deposits = receipt.deposits.as_ref().map_or(0, Vec::len);
    deposits + receipt.payments.len() + receipt.calls.len() + receipt.executions.len()
}
