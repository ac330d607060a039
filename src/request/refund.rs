//! What a refund must leave for oracles to attest it. Pure.

use alloy::primitives::{U256, U512};
use vm::protocol::order::{Order, Refund};

/// What [`least`] scales with, as oracles do.
const SCALE: u64 = 1_000_000_000_000_000_000;

/// The least that oracles take for the refund of `deposited` (oracle.md 7.4): the option's minimum,
/// scaled with what was deposited of what the order asked for, in their rounding. Never zero; `None`
/// where the order's texts are no numbers.
pub fn least(order: &Order, option: &Refund, deposited: U256) -> Option<U256> {
    let number = |text: &str| U256::from_str_radix(text, 10).ok().map(U512::from);
    let minimum = number(&option.minimum_amount)?;
    let asked = number(&order.inputs.first()?.payment.amount)?;
    let (deposited, scale) = (U512::from(deposited), U512::from(SCALE));
    let apart = deposited.abs_diff(asked).checked_mul(scale)?;
    let part = minimum.checked_mul(apart.checked_div(asked)?)? / scale;
    let least = match deposited < asked {
        true => minimum.saturating_sub(part),
        false => minimum.checked_add(part)?,
    };
    let fits = least.as_limbs()[4..].iter().all(|limb| *limb == 0);
    let least = U256::from_limbs_slice(&least.as_limbs()[..4]);
    fits.then(|| least.max(U256::from(1)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy::primitives::{B256, aliases::U1024};
    use proptest::prelude::*;
    use vm::ChainId;

    use super::*;
    use crate::{
        attest::{
            deposit::Message,
            order::{Difference, Terms},
        },
        request::scene,
    };

    proptest! {
        #[test]
        fn least_refund_is_the_oracles(asked in 1_u128.., deposited: u128, minimum: u128) {
            let mut order = scene::request(1).order;
            order.inputs[0].payment.amount = asked.to_string();
            order.inputs[0].refunds[0].minimum_amount = minimum.to_string();
            let terms = Terms::new(&order, &|_| Some(vm::SETTLEMENT)).unwrap();
            let account = vm::SETTLEMENT.address(scene::USER).unwrap();
            let message = Message {
                chain: ChainId::new("origin"),
                transaction: Arc::from("0x1"),
                onchain_id: B256::ZERO,
                deposit: vm::Deposit {
                    index: 0,
                    depository: account.clone(),
                    depositor: account,
                    currency: terms.inputs[0].currency.clone(),
                    amount: U256::from(deposited),
                    id: terms.name().into(),
                },
                timestamp: 1,
            };
            let scaled = Difference::of(&terms, &[message]).unwrap().scale(U256::from(minimum));
            let least = least(&order, &order.inputs[0].refunds[0], U256::from(deposited));
            let wanted = scaled.max(U1024::from(1));
            prop_assert_eq!(least.map(U1024::from), Some(wanted));
        }
    }
}
