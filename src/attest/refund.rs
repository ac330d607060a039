//! Decides whether transactions refund an order (guide: protocol 7.4). Pure: no I/O, no clock.

use std::collections::HashSet;

use alloy::primitives::aliases::U1024;
use vm::{Address, CodecError, Family, Seen};

use super::{
    Refusal,
    backing::Backing,
    claim::{bounded, malformed},
    deposit::Message,
    measured::{Measured, Paid, What},
    order::{RefundTerms, Terms},
    paid::{self, Expected, Ledger, Named, Payer},
    statement::Outcome,
};

/// A caller's statement about the refund of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// The index of the order's input.
    pub input: usize,
    /// The index of that input's refund option.
    pub option: usize,
}

/// Refuses refunds that cannot belong to one order. Returns each input's option, and the index of its transaction in
/// `refunds`.
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

/// Refuses refunds that fall short, or that another account than the solver paid; returns the payments that serve the
/// order, and the rules that they meet. `seen[n]` is the transaction of `refunds[n]`, if that input was refunded.
pub fn judge(
    terms: &Terms,
    refunds: &[Refund],
    backing: &Backing<'_>,
    seen: &[Option<Seen<'_>>],
) -> Result<Paid, Refusal> {
    let difference = backing.check(terms)?;
    let (mut ledger, mut rules) = (Ledger::default(), Vec::new());
    for (index, (at, option)) in chosen(terms, refunds)?.into_iter().enumerate() {
        let missing = || Refusal::MissingRefund(index);
        let seen = seen.get(at).and_then(Option::as_ref).ok_or_else(missing)?;
        let deposit = backing.funded.get(index).ok_or_else(missing)?;
        let given = Given {
            index,
            option,
            recipient: recipient(index, option, deposit)?,
            minimum: difference.scale(option.minimum),
            payer: backing.payer(Outcome::Refund),
        };
        rules.push(given.check(&mut ledger, terms, seen)?);
        let time = seen.receipt()?.block.time;
        rules.push(Measured::in_time(time, option.deadline));
        paid::check_apart(seen, backing.inputs, (terms.id, terms.solver))?;
    }
    Ok(Paid {
        served: ledger.served()?,
        rules,
    })
}

/// The refund of one input.
struct Given<'a> {
    index: usize,
    option: &'a RefundTerms,
    recipient: Address,
    minimum: U1024,
    payer: Payer,
}

impl Given<'_> {
    fn check(
        &self,
        ledger: &mut Ledger,
        terms: &Terms,
        seen: &Seen<'_>,
    ) -> Result<Measured, Refusal> {
        let (index, option) = (self.index, self.option);
        let mut expected = Expected {
            order: terms.id,
            recipient: &self.recipient,
            currency: &option.currency,
            deadline: option.deadline,
            solver: terms.solver,
            router: None,
            payer: self.payer,
        };
        let named = Named {
            family: option.family,
            extra_data: &option.extra_data,
            path: &format!("order.inputs[{index}].refunds.extraData"),
        };
        let router = ledger.router(seen, &expected, &named)?;
        expected.router = router.as_ref();
        let paid = ledger.paid(seen, &expected)?;
        // A refund of nothing refunds nothing, whatever its minimum is.
        let minimum = self.minimum.max(U1024::ONE);
        if paid < minimum {
            let short = Refusal::InsufficientRefund {
                index,
                paid: paid.to_string().into(),
                minimum: self.minimum.to_string().into(),
            };
            return Err(ledger.short(seen, (&expected, &named), short));
        }
        ledger.take(seen, &expected, minimum);
        Ok(Measured {
            what: What::Refund(index),
            found: paid,
            bound: minimum,
        })
    }
}

/// The recipient of a refund: the depositor where the order names the native currency's address. What nobody gets
/// refunds nothing.
pub fn recipient(
    index: usize,
    option: &RefundTerms,
    deposit: &Message,
) -> Result<Address, Refusal> {
    let path = format!("order.inputs[{index}].refunds.recipient");
    let native = option.family.native().map_err(|e| malformed(&path, e))?;
    let recipient = match option.recipient == native {
        false => option.recipient.clone(),
        true => {
            let depositor = option.family.account(deposit.deposit.depositor.text());
            depositor.map_err(|error| malformed(&path, error))?
        }
    };
    match is_nobody(option.family, &recipient).map_err(|e| malformed(&path, e))? {
        true => Err(Refusal::NoRefundRecipient(index)),
        false => Ok(recipient),
    }
}

/// Whether money sent to `address` is lost: no account has the native currency's address, or the zero address.
pub fn is_nobody(family: &Family, address: &Address) -> Result<bool, CodecError> {
    let is_zero = address.bytes().iter().all(|byte| *byte == 0);
    Ok(is_zero || *address == family.native()?)
}

#[cfg(test)]
mod tests {
    use vm::FAMILIES;

    use super::*;
    use crate::attest::fixtures::{self, DEPOSITOR, address};

    #[test]
    fn nobody_has_a_native_currencys_address() {
        for family in FAMILIES {
            let native = family.native().unwrap();
            assert_eq!(is_nobody(family, &native), Ok(true), "{}", family.name);
        }
        let somebody = is_nobody(fixtures::family(), &address(DEPOSITOR));
        assert_eq!(somebody, Ok(false));
    }
}
