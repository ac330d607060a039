//! What carrying an asset from a network to another costs, for those who show it before anybody asks for a quote.

use alloy::primitives::U256;

use super::{
    code::{Code, Refused},
    fees::{self, Level, Terms},
    fill::{self, FillGas},
    reads::GasPrice,
    service::Quoter,
};
use crate::market::{Currency, Network};

/// A network and its currency of the asset.
pub type End<'a> = (&'a Network, &'a Currency);

/// What the solver takes on the way, both in units of the origin's currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Of the greatest deposit, by the usual gas of a plain payment: a quote simulates its own.
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

impl Quoter {
    /// The toll where the solver can give `capacity` units of the destination's currency. On one chain the user
    /// does everything, and there is none.
    pub async fn toll(
        &self,
        origin: End<'_>,
        destination: End<'_>,
        capacity: U256,
    ) -> Result<Toll, Refused> {
        if origin.0.chain_id == destination.0.chain_id {
            return Ok(Toll {
                fee: U256::ZERO,
                most: U256::MAX,
            });
        }
        let native = destination.0.native();
        let now = (self.parts.clock)() / 1000;
        let settlement = async { Ok::<_, Refused>(self.parts.settlement.settlement(now).await?) };
        let (paid, given, gas, price, settlement) = futures::try_join!(
            self.worth(Some(origin.1), now),
            self.worth(Some(destination.1), now),
            self.worth(native, now),
            self.gas_price(destination.0),
            settlement
        )?;
        let units = fill::plain(native.is_some_and(|one| one.address == destination.1.address));
        let wei = price.cost(FillGas {
            units,
            data: U256::ZERO,
        });
        let too_much = || Refused::new(Code::InsufficientLiquidity, "gas costs too much");
        let terms = Terms {
            paid: paid.taken(),
            given: given.given(),
            level: Level::of((origin.1, &paid.price), (destination.1, &given.price)),
            gas: wei
                .and_then(|wei| gas.given().usd(wei))
                .ok_or_else(too_much)?,
            flat: fees::flat().saturating_add(settlement),
            bps: fees::bps(origin.1, destination.1),
            app: &[],
        };
        let sum = terms.backward(capacity)?;
        Ok(Toll {
            fee: sum.gas.saturating_add(sum.flat).saturating_add(sum.relay),
            most: sum.paid,
        })
    }

    async fn gas_price(&self, network: &Network) -> Result<GasPrice, Refused> {
        let venue = self.parts.venues.get(&network.name).ok_or_else(|| {
            let what = format!("{} is not traded", network.display_name);
            Refused::new(Code::UnsupportedRoute, what)
        })?;
        Ok(GasPrice(venue.providers.recent_fees().await?))
    }
}
