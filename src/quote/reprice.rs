//! Prices orders anew whose deposits came late.

use std::{collections::HashMap, sync::Arc};

use super::{
    body,
    code::{Code, Refused},
    fees::{self, Level, Terms},
    fill::FillGas,
    intent::app_fees,
    late::{self, Offer},
    reads::GasPrice,
    usd::Rated,
    venue::Venue,
};
use crate::{
    json::Text,
    market::{Currency, Market, Network},
    price::{PriceSource, SettlementPrice, beside},
    request::{Operation, Request, quoted::Quoted},
};
use alloy::primitives::U256;

/// See the module.
pub struct Repricer {
    pub market: Arc<Market>,
    /// By the network's name.
    pub venues: HashMap<String, Venue>,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
}

/// What the deal is between now.
struct Parties<'m> {
    paid: &'m Currency,
    given: &'m Currency,
    destination: &'m Network,
}

impl Repricer {
    /// What the solver gives for `request` at `now` (unix seconds), where the destination charges `data`
    /// wei for its fill's bytes, and its deposit is one of so many `together`; an error where that cannot be
    /// known now.
    pub async fn offer(
        &self,
        request: &Request,
        (data, together): (U256, u32),
        now: u64,
    ) -> Result<Offer, Refused> {
        let unlisted = || Refused::new(Code::UnsupportedRoute, "no longer traded");
        let parties = self.parties(request).ok_or_else(unlisted)?;
        let native = parties.destination.native().ok_or_else(unlisted)?;
        let venue = self.venues.get(&parties.destination.name);
        let venue = venue.ok_or_else(unlisted)?;
        let fees = async { Ok::<_, Refused>(GasPrice(venue.providers.recent_fees().await?)) };
        let settlement = async { Ok(self.settlement.settlement(now).await?) };
        let (paid, given, gas, fees, settlement) = futures::try_join!(
            self.rated(parties.paid, now),
            self.rated(parties.given, now),
            self.rated(native, now),
            fees,
            settlement
        )?;
        let units = request.fill_gas;
        let gas = fees
            .cost(FillGas { units, data })
            .and_then(|wei| gas.given().usd(wei));
        let unknown = || Refused::new(Code::UnknownError, "the order cannot be priced");
        let taken = Quoted::of(request).app_fees;
        let app = taken.iter().map(|fee| body::AppFee {
            recipient: fee.recipient.clone(),
            fee: Text(fee.bps.clone()),
        });
        let app = app_fees(&app.collect::<Vec<_>>())?;
        let turning = matches!(request.operation, Operation::Wrap | Operation::Unwrap);
        let terms = Terms {
            paid: paid.taken(),
            given: given.given(),
            level: Level::of((parties.paid, &paid.price), (parties.given, &given.price)),
            gas: gas.ok_or_else(unknown)?,
            flat: fees::flat()
                .saturating_add(settlement)
                .saturating_add(beside(settlement, together)),
            bps: if turning {
                0
            } else {
                fees::bps(parties.paid, parties.given)
            },
            app: &app,
        };
        late::offer(request, &terms).ok_or_else(unknown)
    }

    fn parties(&self, request: &Request) -> Option<Parties<'_>> {
        let payment = &request.order.inputs.first()?.payment;
        let output = &request.order.output;
        let origin = self.market.by_name(&payment.chain_id)?;
        let destination = self.market.by_name(&output.chain_id)?;
        Some(Parties {
            paid: origin.currency(&payment.currency)?,
            given: destination.currency(&output.payments.first()?.currency)?,
            destination,
        })
    }

    async fn rated(&self, currency: &Currency, now: u64) -> Result<Rated, Refused> {
        Ok(Rated {
            price: self.prices.price(currency, now).await?,
            decimals: currency.decimals,
        })
    }
}
