//! Decides whether a deposit may return to its depositor from its order's hub account (guide: protocol 7.6). Pure: no
//! I/O, no clock.
//!
//! A deposit in another currency or on another chain than its order's, or that spells the order's id otherwise, can
//! return at once, because no claim for it is attested. A deposit that a fill or refund may be claimed for can return
//! when the solver states at the hub that there is none, or after [`PATIENCE`].
//!
//! A deposit that returned may leave the hub without its depositor's signature, the way its order says; where another
//! than its payer named the order, to its depositor only.

use vm::{Address, Amount, B256, Receipt, protocol::limits};

use super::{
    Refusal,
    claim::malformed,
    deposit::{Listed, Message},
    order::{RefundTerms, Terms},
    refund::is_nobody,
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

/// Where a deposit that returned is to go, and whose it is said to be.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    pub chain: &'a str,
    pub currency: &'a Address,
    pub amount: Amount,
    pub owner_chain: &'a str,
    pub owner: &'a Address,
    pub recipient: &'a Address,
}

impl Destination<'_> {
    /// Refuses all but the whole deposit of `message`, for its depositor, to the recipient of the only refund of
    /// `terms` in this currency of this chain. The order must have one input, and name an account as that recipient.
    /// Where another than the payer named the order, the recipient must be the depositor.
    pub fn check(&self, terms: &Terms, message: &Message) -> Result<(), Refusal> {
        let other = |what: &str| Err(Refusal::OtherReturn(what.into()));
        let refunds = terms.inputs.iter().flat_map(|input| &input.refunds);
        let same =
            |refund: &&RefundTerms| refund.chain == self.chain && refund.currency == *self.currency;
        let same: Vec<_> = refunds.filter(same).collect();
        let [refund] = same[..] else {
            let (chain, currency) = (self.chain, self.currency.text());
            let count = same.len();
            return other(&format!(
                "Expected exactly 1 refund entry for chain {chain} currency {currency}, got {count}"
            ));
        };
        if refund.recipient != *self.recipient {
            return other("Recipient does not match the order refund entry");
        }
        // A refund to the native currency's address is the depositor's: a withdrawal pays what it names.
        let nobody = is_nobody(refund.family, self.recipient);
        if nobody.map_err(|why| malformed("body/recipient", why))? {
            return other("The order refund entry names no account as its recipient");
        }
        let deposit = &message.deposit;
        if deposit.amount != self.amount {
            return other(
                "Amount does not match the deposit amount (slow refund is full-amount only)",
            );
        }
        // What the hub gave back is this currency; the owner's others are none of the order's.
        if message.chain.as_str() != self.chain || deposit.currency != *self.currency {
            return other("Currency does not match the deposit currency");
        }
        if message.chain.as_str() != self.owner_chain {
            return other("Owner chain does not match the deposit chain");
        }
        if deposit.depositor != *self.owner {
            return other("Owner does not match the deposit's depositor");
        }
        // Whoever named the order may have written its refund entry, too.
        if deposit.named_by_other && *self.recipient != deposit.depositor {
            let onchain = message.onchain_id.to_string();
            return Err(Refusal::NamedByOther(onchain.into()));
        }
        Ok(())
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
    let named = *message.deposit.id == *terms.name();
    wanted && named && !message.deposit.named_by_other
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
