//! What the oracle will reimburse, by the oracle's own judgements: nothing else is paid. Pure.

use std::sync::Arc;

use vm::{Amount, ChainId, U256, protocol::limits};

use crate::{
    attest::{
        Refusal,
        claim::Families,
        deposit::{Deposits, Message},
        fill,
        order::{self, Difference, Input, Terms},
    },
    request::{Request, fact::Deposit},
};

/// How a deposit can be given back so that the oracle attests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The refund option of the order's input.
    pub option: usize,
    /// The least that has to be paid.
    pub minimum: Amount,
    /// Unix seconds; the refund must be in a block before it.
    pub deadline: u64,
}

/// An order with one deposit in place of its inputs.
struct Funded {
    terms: Terms,
    message: Message,
}

/// Whether a fill of the order would be attested with this deposit.
pub fn fill(request: &Request, deposit: &Deposit, families: Families<'_>) -> Result<(), Refusal> {
    let funded = Funded::new(request, deposit, families)?;
    fill::check_ordered(&funded.terms.output)
}

/// How the deposit can be given back.
pub fn refund(
    request: &Request,
    deposit: &Deposit,
    families: Families<'_>,
) -> Result<Way, Refusal> {
    let Funded { terms, message } = Funded::new(request, deposit, families)?;
    let difference = Difference::of(&terms, std::slice::from_ref(&message))?;
    let options = terms.inputs[0].refunds.iter().enumerate();
    let mut here = options.filter(|(_, option)| {
        option.chain == deposit.network && option.currency == message.deposit.currency
    });
    let (at, option) = here.next().ok_or(Refusal::InvalidRefund(0))?;
    Ok(Way {
        option: at,
        minimum: U256::saturating_from(difference.scale(option.minimum)),
        deadline: option.deadline,
    })
}

impl Funded {
    fn new(request: &Request, deposit: &Deposit, families: Families<'_>) -> Result<Self, Refusal> {
        let terms = Terms::new(&request.order, families)?;
        // All deposits of a transaction are attested together, or none of them is.
        limits::fits(usize::try_from(deposit.together).unwrap_or(usize::MAX))?;
        let missing = || Refusal::MissingInput(0);
        let [input] = terms.inputs.as_slice() else {
            return Err(missing());
        };
        // A deposit on another chain is not there where the oracle looks for it.
        if input.chain != deposit.network {
            return Err(missing());
        }
        let message = message(&terms, deposit, families)?;
        let named = Input {
            onchain_id: deposit.onchain_id.to_string(),
            index: 0,
        };
        let deposits = Deposits::known(vec![message.clone()]);
        order::funded(&terms, &[named], &deposits)?;
        Ok(Self { terms, message })
    }
}

/// The deposit as the oracle reads it.
fn message(terms: &Terms, deposit: &Deposit, families: Families<'_>) -> Result<Message, Refusal> {
    let missing = || Refusal::ChainNotAvailable(deposit.network.as_str().into());
    let family = families(&deposit.network).ok_or_else(missing)?;
    let address = |text: &str| {
        let read = family.address(text);
        read.map_err(|why| Refusal::Malformed(why.to_string().into()))
    };
    Ok(Message {
        chain: ChainId::new(&deposit.network),
        transaction: Arc::from(deposit.transaction.as_str()),
        onchain_id: deposit.onchain_id,
        deposit: vm::Deposit {
            index: 0,
            id: terms.name().into(),
            depository: address(&deposit.depository)?,
            depositor: address(&deposit.depositor)?,
            currency: address(&deposit.currency)?,
            amount: deposit.amount,
        },
        timestamp: deposit.place.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{fact::Standing, scene};

    fn family(_: &str) -> Option<&'static vm::Family> {
        Some(vm::SETTLEMENT)
    }

    fn judged(change: fn(&mut Request, &mut Deposit)) -> (bool, Option<Way>) {
        let (mut request, mut deposit) = (scene::request(1), scene::deposit(1, Standing::Final));
        change(&mut request, &mut deposit);
        let filled = fill(&request, &deposit, &family).is_ok();
        (filled, refund(&request, &deposit, &family).ok())
    }

    fn way(option: usize, minimum: u64) -> Option<Way> {
        Some(Way {
            option,
            minimum: U256::from(minimum),
            deadline: scene::REFUND_BY.into(),
        })
    }

    #[test]
    fn what_the_oracle_refuses_for_ever_is_not_claimable() {
        assert_eq!(judged(|_, _| ()), (true, way(0, 0)));
        let elsewhere = judged(|request, deposit| {
            let mut there = request.order.inputs[0].refunds[0].clone();
            there.chain_id = "destination".into();
            request.order.inputs[0].refunds.push(there);
            deposit.network = "destination".into();
        });
        assert_eq!(elsewhere, (false, None));
        let foreign = judged(|_, deposit| deposit.currency = vm::SETTLEMENT.codec.native().into());
        assert_eq!(foreign, (false, None));
        let without = judged(|request, _| request.order.inputs[0].refunds.clear());
        assert_eq!(without, (true, None));
        let broken = judged(|request, _| request.order.output.payments[0].currency = "x".into());
        assert_eq!(broken, (false, None));
        let crowded = judged(|_, deposit| deposit.together = 1 + limits::ACTIONS as u32);
        assert_eq!(crowded, (false, None));
        let full = judged(|_, deposit| deposit.together = limits::ACTIONS as u32);
        assert_eq!(full, (true, way(0, 0)));
        let nothing = judged(|request, _| request.order.output.payments.clear());
        assert_eq!(nothing, (false, way(0, 0)));
    }

    #[test]
    fn minimum_of_a_refund_follows_what_was_deposited() {
        let with = |amount: u64| {
            let (mut request, mut deposit) =
                (scene::request(1), scene::deposit(1, Standing::Final));
            request.order.inputs[0].refunds[0].minimum_amount = "90000000".into();
            deposit.amount = U256::from(amount);
            refund(&request, &deposit, &family).ok()
        };
        assert_eq!(with(100_000_000), way(0, 90_000_000));
        assert_eq!(with(1_000_000), way(0, 900_000));
        assert_eq!(with(200_000_000), way(0, 180_000_000));
    }
}
