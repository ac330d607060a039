//! Prices orders anew whose price does not hold any more, mostly because their deposits came late.

use std::{collections::HashMap, sync::Arc};

use alloy::primitives::U256;
use vm::trade::Fee;

use super::{
    body,
    code::{Code, Refused},
    context::rated,
    fees::{Terms, Valued},
    intent::app_fees,
    late::{self, Offer},
    market_data::rate,
    pricing_chain::PricingChain,
    usd::Rated,
};
use crate::{
    json::Text,
    market::{Currency, Market, Network},
    price::{PriceSource, SettlementPrice, beside},
    request::{Request, quoted::Quoted},
};

/// Prices orders anew by the market of now.
pub struct Repricer {
    pub market: Arc<Market>,
    /// By the network's name.
    pub chains: HashMap<String, PricingChain>,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
    /// Seconds for which the solver signs versions of a fill that is in no block, where payments expire.
    pub patience: u64,
}

/// What such an order's fill costs besides its work.
#[derive(Clone, Copy, Debug)]
pub struct Burden {
    /// What the destination charges besides work, in the native currency's smallest unit.
    pub besides: U256,
    /// The deposit is one of so many that are settled together.
    pub together: u32,
}

/// What the deal is between now.
struct Parties<'m> {
    paid: &'m Currency,
    given: &'m Currency,
    destination: &'m Network,
}

impl Repricer {
    /// What the solver gives for `request` at `now` (unix seconds); an error where that cannot be known now.
    pub async fn offer(
        &self,
        request: &Request,
        burden: Burden,
        now: u64,
    ) -> Result<Offer, Refused> {
        let unlisted = || Refused::new(Code::UnsupportedRoute, "no longer traded");
        let parties = self.parties(request).ok_or_else(unlisted)?;
        let native = parties.destination.native().ok_or_else(unlisted)?;
        let chain = self.chains.get(&parties.destination.name);
        let chain = chain.ok_or_else(unlisted)?;
        let settlement = async { Ok(self.settlement.settlement(now).await?) };
        let prices = &*self.prices;
        let (paid, given, gas, rate, settlement) = futures::try_join!(
            rated(prices, parties.paid, now),
            rated(prices, parties.given, now),
            rated(prices, native, now),
            rate(chain),
            settlement
        )?;
        let fee = Fee {
            work: request.fill_work,
            rate,
            besides: burden.besides,
        };
        let gas = gas.given().usd(fee.total());
        let unknown = || Refused::new(Code::UnknownError, "the order cannot be priced");
        let taken = Quoted::of(request).app_fees;
        let app = taken.iter().map(|fee| body::AppFee {
            recipient: fee.recipient.clone(),
            fee: Text(fee.bps.clone()),
        });
        let app = app_fees(&app.collect::<Vec<_>>())?;
        let settlement = settlement.saturating_add(beside(settlement, burden.together));
        let given = match chain.providers.declinable {
            true => self.optional(given, &parties, chain),
            false => given,
        };
        let paid = Valued::new(parties.paid, paid);
        let given = Valued::new(parties.given, given);
        let terms = Terms::of(paid, given, gas.ok_or_else(unknown)?, settlement);
        let terms = Terms {
            app: &app,
            ..terms.for_operation(request.operation)
        };
        late::offer(request, &terms).ok_or_else(unknown)
    }

    /// The price of what is given, where its recipient can decline the fill: until the last version of it has expired.
    fn optional(&self, given: Rated, parties: &Parties<'_>, chain: &PricingChain) -> Rated {
        let landing = chain.spec.family.landing;
        let blocks = landing.map_or(0, |landing| landing.life());
        let life = blocks.saturating_mul(parties.destination.block_seconds);
        let classes = [parties.paid.class, parties.given.class];
        given.optional(classes, self.patience.saturating_add(life))
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
}
