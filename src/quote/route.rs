//! Which currencies a request goes through. Pure.

use super::{
    code::{Code, Refused},
    intent::{Intent, Side},
};
use crate::market::{Class, Currency};

/// What is deposited and what the solver gives. Where they differ from what the user has and wants,
/// an exchange stands between.
#[derive(Clone, Debug)]
pub struct Route<'m> {
    pub paid: Side<'m>,
    pub given: Side<'m>,
    pub swap_in: bool,
    pub swap_out: bool,
}

impl<'m> Route<'m> {
    /// The route of an intent; one that the user executes alone has no other currencies.
    pub fn of(intent: &Intent<'m>) -> Result<Self, Refused> {
        let (input, output) = (&intent.origin, &intent.destination);
        if intent.own {
            return Ok(Self {
                paid: input.clone(),
                given: output.clone(),
                swap_in: false,
                swap_out: false,
            });
        }
        if input.spec.depository.is_none() {
            let what = "originChainId: the chain has no depository";
            return Err(Refused::new(Code::UnsupportedRoute, what));
        }
        let swap_in = !input.currency.solver;
        let swap_out = !output.currency.solver;
        if swap_in && intent.disable_origin_swaps {
            let what = "disableOriginSwaps: the origin currency cannot be deposited without a swap";
            return Err(Refused::new(Code::NoSwapRoutesFound, what));
        }
        let routed = output.network.fill_router.is_some() && output.spec.family.orders.is_some();
        if swap_out && !routed {
            let what = "destinationCurrency: the chain has no contract that swaps for the solver";
            return Err(Refused::new(Code::UnsupportedRoute, what));
        }
        let paid = held(input, output.currency)?;
        let given = held(output, paid.currency)?;
        Ok(Self {
            paid,
            given,
            swap_in,
            swap_out,
        })
    }
}

/// The solver's currency that stands for `side`: itself, its own group, that of `other`, a stable
/// one, any.
fn held<'m>(side: &Side<'m>, other: &Currency) -> Result<Side<'m>, Refused> {
    if side.currency.solver {
        return Ok(side.clone());
    }
    let rank = |currency: &Currency| {
        if currency.group == side.currency.group {
            0
        } else if currency.group == other.group {
            1
        } else if currency.class == Class::Stable {
            2
        } else {
            3
        }
    };
    let held = side.network.currencies.iter().filter(|one| one.solver);
    let currency = held.min_by_key(|currency| rank(currency));
    let found = currency.and_then(|currency| {
        let address = side.spec.family.currency(&currency.address).ok()?;
        Some(Side {
            currency,
            address,
            ..side.clone()
        })
    });
    found.ok_or_else(|| {
        let what = format!("the solver holds nothing on {}", side.network.name);
        Refused::new(Code::UnsupportedRoute, what)
    })
}
