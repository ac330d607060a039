//! Whether a deposit may go back to its depositor out of its order's hub account (guide: protocol 7.6).
//! Pure: no I/O, no clock.
//!
//! A deposit that pays nobody goes back at once: no claim is attested for a deposit in another currency or on another
//! chain than its order's. A deposit that a fill or refund may be claimed for goes back when the solver says at the
//! hub that there is none, or after [`PATIENCE`].

use vm::{B256, Receipt, protocol::limits};

use super::{
    Refusal,
    deposit::{Listed, Message},
    order::Terms,
};

/// Seconds after which a deposit goes back without its order.
pub const PATIENCE: u64 = 604_800;

/// The deposit `onchain` of a transaction, and the order that it names.
pub fn named<'a>(listed: &'a Listed, onchain: &str) -> Result<(&'a Message, B256), Refusal> {
    let unknown = || Refusal::UnknownDeposit(onchain.into());
    let message = listed.find(onchain).ok_or_else(unknown)?;
    let order = message.deposit.id.parse().unwrap_or_default();
    match order == B256::ZERO {
        true => Err(Refusal::NoOrder),
        false => Ok((message, order)),
    }
}

/// Whether a deposit is too young to go back without its order. `now` is unix seconds.
pub fn is_young(message: &Message, now: u64) -> bool {
    now.saturating_sub(message.timestamp) <= PATIENCE
}

/// Refuses an order that the deposit does not name.
pub fn check_order(terms: &Terms, order: B256) -> Result<(), Refusal> {
    match terms.id == order {
        true => Ok(()),
        false => Err(Refusal::OtherOrder),
    }
}

/// Whether a fill or a refund of the order may be attested for this deposit.
pub fn is_claimable(terms: &Terms, message: &Message) -> bool {
    let wanted = terms.inputs.iter().any(|input| {
        input.chain == message.chain.as_str() && input.currency == message.deposit.currency
    });
    wanted && !message.deposit.named_by_other
}

/// Whether this oracle mints the deposit for anybody who asks, and nobody else's calldata chose its order. What is
/// paid out before that returns to the account with the mint.
pub fn is_mintable(receipt: &Receipt, message: &Message) -> bool {
    limits::attestable(receipt).is_ok() && !message.deposit.named_by_other
}

/// Until when the order may be filled or refunded for this deposit, in unix seconds: no solver pays for what its
/// depositor may take back.
pub fn open_until(terms: &Terms, message: &Message) -> u64 {
    let refunds = terms.inputs.iter().flat_map(|input| &input.refunds);
    let refunds = refunds.map(|refund| refund.deadline).max();
    let last = refunds.unwrap_or_default().max(terms.output.deadline);
    last.min(message.timestamp.saturating_add(PATIENCE))
}
