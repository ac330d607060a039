//! Decides whether a deposit may return to its depositor from its order's hub account (guide: protocol 7.6). Pure: no
//! I/O, no clock.
//!
//! A deposit in another currency or on another chain than its order's can return at once, because no claim for it is
//! attested. A deposit that a fill or refund may be claimed for can return when the solver states at the hub that
//! there is none, or after [`PATIENCE`].

use vm::{B256, Receipt, protocol::limits};

use super::{
    Refusal,
    deposit::{Listed, Message},
    order::Terms,
};

/// The age in seconds after which a deposit can return without its order.
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

/// Whether a deposit is too young to return without its order. `now` is in unix seconds.
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

/// Whether this oracle attests the deposit's mint for any caller, and the deposit's own payer chose its order. What
/// the order's account pays before that returns to it with the mint.
pub fn is_mintable(receipt: &Receipt, message: &Message) -> bool {
    limits::attestable(receipt).is_ok() && !message.deposit.named_by_other
}

/// The unix second until which the order may be filled or refunded for this deposit: after it the depositor may take
/// the deposit back, so no solver pays.
pub fn open_until(terms: &Terms, message: &Message) -> u64 {
    let refunds = terms.inputs.iter().flat_map(|input| &input.refunds);
    let refunds = refunds.map(|refund| refund.deadline).max();
    let last = refunds.unwrap_or_default().max(terms.output.deadline);
    last.min(message.timestamp.saturating_add(PATIENCE))
}
