//! How large things may be on their way from a chain to the hub, in one place: what an oracle attests,
//! its peers and the solver can carry, and the settlement chain takes. Whoever is about to pay for a
//! deposit asks [`fits`] first.

use crate::types::Receipt;

/// Bytes of one provider's answer: the receipt of a block that is full of logs.
pub const PROVIDER_ANSWER: usize = 64 << 20;

/// The same where a stranger's question is passed on (a quote's calls, which may answer with megabytes): so much
/// takes nobody's place in memory.
pub const STRANGERS_ANSWER: usize = 1 << 20;

/// Bytes of a request's body.
pub const REQUEST: usize = 1 << 20;

/// Gas of an execution: below the 2^24 that a transaction may have (EIP-7825), and half of the blocks of
/// 30 million that settlement chains begin with.
const EXECUTION_GAS: usize = 15_000_000;
/// Gas of an action, its calldata included. A balance that was empty costs about 60,000.
pub const ACTION_GAS: usize = 100_000;
/// Actions of an execution.
pub const ACTIONS: usize = EXECUTION_GAS / ACTION_GAS;
/// Signatures that an execution is submitted with.
pub const SIGNATURES: usize = 64;

/// Bytes of a transaction that nodes pass on.
pub const TRANSACTION: usize = 128 << 10;
/// Bytes of calldata of the longest action, a fast mint, with its place in the list.
const ACTION_CALLDATA: usize = 12 * 32;
/// The same of a signature.
const SIGNATURE_CALLDATA: usize = 5 * 32;
/// The transaction around them.
const ENVELOPE: usize = 1 << 10;
const _: () = assert!(
    ACTIONS * ACTION_CALLDATA + SIGNATURES * SIGNATURE_CALLDATA + ENVELOPE <= TRANSACTION,
    "an execution is a transaction that nodes pass on"
);

/// Bytes of JSON that an action adds to an answer: itself in hex, the deposit that it is about, and what
/// its currency is.
const ACTION_JSON: usize = 3 << 10;
/// Bytes of JSON of a signature.
const SIGNATURE_JSON: usize = 512;
/// Bytes of an oracle's answer: it repeats the request and adds actions and signatures.
pub const ANSWER: usize = REQUEST + ACTIONS * ACTION_JSON + SIGNATURES * SIGNATURE_JSON;
const _: () = assert!(ANSWER <= 2 << 20, "other oracles read no more of a peer");

/// Events of all transactions of one request together: judging them takes a few tenths of a second of one
/// core.
pub const EVENTS: usize = 300_000;
/// Events of a transaction whose deposits are attested: what pays for them has room beside it. A block's gas
/// pays for fewer on every chain that is known.
pub const TRANSACTION_EVENTS: usize = EVENTS / 2;

/// Inputs, refunds, payments, calls or fees of one claim: each of an order's inputs and fees is an action.
pub const ITEMS: usize = 64;
const _: () = assert!(2 * ITEMS <= ACTIONS, "an order's outcome is one execution");
/// Bytes of JSON of an item of a claim, its calldata apart.
const ITEM_JSON: usize = 1 << 10;
const _: () = assert!(
    2 * TRANSACTION + 5 * ITEMS * ITEM_JSON <= REQUEST,
    "whoever filled an order with the most calldata, in hex, can claim it"
);
/// Payments that one claim may need: each is a row for ever.
pub const PAYMENTS: usize = 1_024;

/// A transaction that no execution has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("{0} deposits in one transaction; an execution has room for {ACTIONS}")]
    Actions(usize),
    #[error("{0} events in one transaction; {TRANSACTION_EVENTS} are looked at")]
    Events(usize),
}

/// Whether an execution has room for `actions`.
pub fn fits(actions: usize) -> Result<(), TooLarge> {
    if actions <= ACTIONS {
        return Ok(());
    }
    Err(TooLarge::Actions(actions))
}

/// Whether the deposits of a transaction can be attested together, as they always are: every deposit that
/// moved something is an action.
pub fn attestable(receipt: &Receipt) -> Result<(), TooLarge> {
    readable(receipt)?;
    fits(actions(receipt))
}

/// Whether a transaction is looked at.
pub fn readable(receipt: &Receipt) -> Result<(), TooLarge> {
    match events(receipt) {
        events if events > TRANSACTION_EVENTS => Err(TooLarge::Events(events)),
        _ => Ok(()),
    }
}

/// How many actions attest the deposits of a transaction.
pub fn actions(receipt: &Receipt) -> usize {
    let deposits = receipt.deposits.iter().flatten();
    deposits.filter(|deposit| !deposit.amount.is_zero()).count()
}

/// How much there is to look at in a transaction.
pub fn events(receipt: &Receipt) -> usize {
    let deposits = receipt.deposits.as_ref().map_or(0, Vec::len);
    deposits + receipt.payments.len() + receipt.calls.len() + receipt.executions.len()
}
