//! What carrying an asset from a network to another costs, for those who show it before anybody asks for a quote.

use alloy::primitives::U256;
use vm::trade::{Fee, Work};

use super::{
    code::{Code, Refused},
    context::Context,
    fees::{Terms, Valued},
    market_data::rate,
};
use crate::market::{Currency, Network};

/// A network and its currency of the asset.
#[derive(Clone, Copy)]
pub struct End<'a> {
    pub network: &'a Network,
    pub currency: &'a Currency,
}

/// What the solver takes on the way, both in units of the origin's currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Of the greatest deposit, by the usual work of a plain payment: a quote simulates its own.
    pub fee: U256,
    /// The greatest deposit: what the solver can give is given for it.
    pub most: U256,
}

impl Toll {
    /// What of `balance` can be carried, after the fee.
    pub fn left(&self, balance: U256) -> U256 {
        balance.min(self.most).saturating_sub(self.fee)
    }
}

/// The toll where the solver can give `capacity` units of the destination's currency. On one chain the user
/// does everything, and there is none.
pub async fn toll(
    context: &Context,
    origin: End<'_>,
    destination: End<'_>,
    capacity: U256,
) -> Result<Toll, Refused> {
    if origin.network.chain_id == destination.network.chain_id {
        return Ok(Toll {
            fee: U256::ZERO,
            most: U256::MAX,
        });
    }
    let native = destination.network.native();
    let now = context.now();
    let settlement = async { Ok(context.deps.settlement.settlement(now).await?) };
    let chain = context.chain_of(destination.network)?;
    let (paid, given, gas, rate, settlement) = futures::try_join!(
        context.worth(Some(origin.currency), now),
        context.worth(Some(destination.currency), now),
        context.worth(native, now),
        rate(chain),
        settlement
    )?;
    let native = native.is_some_and(|one| one.address == destination.currency.address);
    let fee = Fee {
        work: (chain.providers.usual)(Work::Payment { native }),
        rate,
        ..Fee::default()
    };
    let too_much = || Refused::new(Code::InsufficientLiquidity, "gas costs too much");
    let gas = gas.given().usd(fee.total());
    let paid = Valued::new(origin.currency, paid);
    let given = Valued::new(destination.currency, given);
    let terms = Terms::of(paid, given, gas.ok_or_else(too_much)?, settlement);
    let sum = terms.backward(capacity)?;
    Ok(Toll {
        fee: sum.gas.saturating_add(sum.flat).saturating_add(sum.relay),
        most: sum.paid,
    })
}
