//! What an order is worth when its deposit comes after the time that its quote held for. Pure.

use alloy::primitives::U256;
use vm::protocol::BASIS_POINTS;

use super::{
    fees::{Fault, Terms},
    usd::{Round, mul_div},
};
use crate::request::{Request, quoted::Quoted};

/// What the solver gives for it now. Never more than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Everything that was promised.
    Promised,
    /// So much of the order's one payment: at least its minimum.
    Less(U256),
    /// Too little for the order: its deposit goes back.
    Nothing,
}

/// What `request` gets by `terms`, which are those of now. `None`: the request's texts are no numbers.
pub fn offer(request: &Request, terms: &Terms<'_>) -> Option<Offer> {
    let (order, output) = (&request.order, &request.order.output);
    let paid = number(&order.inputs.first()?.payment.amount)?;
    let promised = output
        .payments
        .iter()
        .try_fold(U256::ZERO, |sum, payment| {
            sum.checked_add(payment.promised().ok()?)
        })?;
    let sum = match terms.forward(paid) {
        Ok(sum) => sum,
        Err(Fault::TooLow) => return Some(Offer::Nothing),
        Err(Fault::TooMuch) => return None,
    };
    if sum.given >= promised {
        return Some(Offer::Promised);
    }
    let [payment] = output.payments.as_slice() else {
        return Some(Offer::Nothing);
    };
    // Calls are written for one amount.
    if !output.calls.is_empty() {
        return Some(Offer::Nothing);
    }
    let quoted = request.destination.minimum;
    let forgiven = forgiven(request, terms, sum.gas).unwrap_or_default();
    let least = number(&payment.minimum_amount)?.max(quoted.saturating_sub(forgiven));
    Some(match sum.given >= least {
        true => Offer::Less(sum.given),
        false => Offer::Nothing,
    })
}

/// What of the output the user would lose to gas that became dearer (`latePaymentSlippageTolerance`).
fn forgiven(request: &Request, terms: &Terms<'_>, gas: U256) -> Option<U256> {
    let tolerated = tolerated(request.destination.amount, request.late_slippage_bps);
    let quoted = Quoted::of(request).fees?.relayer_gas.units();
    let dearer = gas.saturating_sub(quoted);
    Some(terms.bought(dearer)?.min(tolerated))
}

/// The part of an output that late gas may take.
pub fn tolerated(output: U256, late_slippage: Option<u16>) -> U256 {
    let bps = U256::from(late_slippage.unwrap_or_default());
    mul_div(output, bps, U256::from(BASIS_POINTS), Round::Down).unwrap_or_default()
}

fn number(text: &str) -> Option<U256> {
    U256::from_str_radix(text, 10).ok()
}
