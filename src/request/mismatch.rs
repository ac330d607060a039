//! Whether a deposit pays for its order (guide: protocol 11.10).

use alloy::primitives::U256;
use vm::spelled_alike;

use super::{Request, fact::Deposit, reason::FailReason};

/// What the order asks for.
pub fn asked(request: &Request) -> Option<U256> {
    let input = request.order.inputs.first()?;
    U256::from_str_radix(&input.payment.amount, 10).ok()
}

/// Why a deposit does not pay for the order.
pub fn mismatch(request: &Request, deposit: &Deposit) -> Option<FailReason> {
    let Some(input) = request.order.inputs.first() else {
        return Some(FailReason::Unknown);
    };
    if deposit.named_by_other {
        return Some(FailReason::Unknown);
    }
    let payment = &input.payment;
    if deposit.network != payment.chain_id {
        return Some(FailReason::DepositChainMismatch);
    }
    if !spelled_alike(&deposit.currency, &payment.currency) {
        return Some(FailReason::IncorrectDepositCurrency);
    }
    let Some(amount) = asked(request) else {
        return Some(FailReason::Unknown);
    };
    (deposit.amount < amount).then_some(FailReason::DepositedAmountTooLowToFill)
}
