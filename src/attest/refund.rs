//! Whether transactions refund an order (oracle.md 7.4). Pure: no I/O, no clock.

use std::collections::HashSet;

use alloy::primitives::aliases::U1024;
use vm::{Address, Seen};

use super::{
    Refusal,
    claim::{bounded, malformed},
    deposit::Message,
    order::{Difference, RefundTerms, Terms},
    paid::{self, Expected, Ledger, Named, Served},
};

/// What a caller says about the refund of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// Which input of the order this gives back.
    pub input: usize,
    /// Which of that input's refund options.
    pub option: usize,
}

/// Refuses refunds that cannot belong to one order; the option of each input of the order and where
/// in `refunds` its transaction stands.
pub fn chosen<'a>(
    terms: &'a Terms,
    refunds: &[Refund],
) -> Result<Vec<(usize, &'a RefundTerms)>, Refusal> {
    bounded("refunds", refunds.len())?;
    let mut inputs = HashSet::new();
    if !refunds.iter().all(|refund| inputs.insert(refund.input)) {
        return Err(Refusal::RepeatedRefund);
    }
    let of = |(index, input): (usize, &'a super::order::InputTerms)| {
        let at = refunds
            .iter()
            .position(|refund| refund.input == index)
            .ok_or(Refusal::MissingRefund(index))?;
        let option = input.refunds.get(refunds[at].option);
        Ok((at, option.ok_or(Refusal::InvalidRefund(index))?))
    };
    terms.inputs.iter().enumerate().map(of).collect()
}

/// Refuses refunds that fall short; the payments that served.
/// `seen[n]` is the transaction of `refunds[n]` if an input was given back there, `funded[i]` the
/// deposit of input `i`.
pub fn judge(
    terms: &Terms,
    refunds: &[Refund],
    funded: &[Message],
    seen: &[Option<Seen<'_>>],
) -> Result<Vec<Served>, Refusal> {
    let difference = Difference::of(terms, funded)?;
    let mut ledger = Ledger::default();
    for (index, (at, option)) in chosen(terms, refunds)?.into_iter().enumerate() {
        let missing = || Refusal::MissingRefund(index);
        let seen = seen.get(at).and_then(Option::as_ref).ok_or_else(missing)?;
        let deposit = funded.get(index).ok_or_else(missing)?;
        let recipient = recipient(index, option, deposit)?;
        let minimum = difference.scale(option.minimum);
        refund(
            &mut ledger,
            terms,
            (index, option),
            (seen, &recipient),
            minimum,
        )?;
    }
    Ok(ledger.served())
}

fn refund(
    ledger: &mut Ledger,
    terms: &Terms,
    (index, option): (usize, &RefundTerms),
    (seen, recipient): (&Seen<'_>, &Address),
    minimum: U1024,
) -> Result<(), Refusal> {
    let mut expected = Expected {
        order: terms.id,
        recipient,
        currency: &option.currency,
        deadline: option.deadline,
        solver: terms.solver,
        router: None,
    };
    let receipt = paid::usable(seen, terms.id, option.deadline)?;
    let named = Named {
        family: option.family,
        extra_data: &option.extra_data,
        path: &format!("order.inputs[{index}].refunds.extraData"),
    };
    let router = named.needed(receipt, &expected)?;
    expected.router = router.as_ref();
    let paid = ledger.paid(seen, &expected)?;
    // A refund of nothing gives nothing back, whatever its minimum.
    if paid < minimum || paid.is_zero() {
        return Err(Refusal::InsufficientRefund {
            index,
            paid: paid.to_string().into(),
            minimum: minimum.to_string().into(),
        });
    }
    ledger.take(seen, &expected, minimum);
    Ok(())
}

/// Whom the order gives back to: the depositor where the order names the native currency's address.
/// What goes to that address, or to one of zeros, is gone: it gives nothing back to anybody.
fn recipient(index: usize, option: &RefundTerms, deposit: &Message) -> Result<Address, Refusal> {
    let path = format!("order.inputs[{index}].refunds.recipient");
    let native = option.family.native().map_err(|e| malformed(&path, e))?;
    let recipient = match option.recipient == native {
        false => option.recipient.clone(),
        true => {
            let depositor = option.family.account(deposit.deposit.depositor.text());
            depositor.map_err(|error| malformed(&path, error))?
        }
    };
    if recipient == native || recipient.bytes().iter().all(|byte| *byte == 0) {
        return Err(Refusal::NoRefundRecipient(index));
    }
    Ok(recipient)
}
