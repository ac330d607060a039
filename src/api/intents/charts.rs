//! `GET /currencies/trending`, `/chains/{chainId}/currencies/{address}` and its `/chart` (guide: protocol 11.14).
//! What the network's own service has from markets elsewhere is not known here and left out.

mod chart;
mod currency;
#[cfg(test)]
mod tests;
mod trending;

use std::{collections::HashMap, sync::Arc};

use super::{Answer, currencies, row::get};
use crate::{
    chart::{History, Trends},
    http::{ApiError, Query, Request, Route, Shape, parse::invalid_field},
    json,
    market::{Currency, Market, Network},
    price::PriceSource,
};

/// What the handlers answer from.
pub struct State {
    pub market: Arc<Market>,
    /// What clients call a network's family (`evm`), by the network's name.
    pub families: HashMap<String, &'static str>,
    pub prices: Arc<dyn PriceSource>,
    pub history: History,
    pub trends: Arc<Trends>,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

/// The table of this file.
pub static ROUTES: [Route<State>; 3] = [
    get(
        "/currencies/trending",
        (
            "Currencies",
            "List trending currencies",
            "The currencies that were bought most in the last day, by the requests that this service's solver \
             filled, the most first. What users carry out by themselves, and what is worth less than a dollar, \
             counts for nothing.",
        ),
        (
            Query::of::<trending::Asked>(),
            Shape::of::<trending::Trending>(),
        ),
        |state, request| -> Answer { Box::pin(trending::list(state, request)) },
    ),
    get(
        "/chains/{chainId}/currencies/{address}",
        (
            "Currencies",
            "Get a listed currency",
            "A listed currency with its present price, and how that changed in five minutes, an hour, four hours and \
             a day, by this service's own samples. Unknown values are left out.",
        ),
        (Query::NONE, Shape::of::<currency::Details>()),
        |state, request| -> Answer { Box::pin(currency::details(state, request)) },
    ),
    get(
        "/chains/{chainId}/currencies/{address}/chart",
        (
            "Currencies",
            "Get a currency's chart",
            "What a listed currency was worth over time: points for drawing, of this service's own samples of every \
             five minutes; no quote is made of them. A time without samples has no point.",
        ),
        (Query::of::<chart::Asked>(), Shape::of::<chart::Chart>()),
        |state, request| -> Answer { Box::pin(chart::chart(state, request)) },
    ),
];

impl State {
    /// Over the parts of the other routes.
    pub fn over(common: &super::State, trends: Arc<Trends>) -> Self {
        let families = common.chains.iter();
        let families = families.map(|(name, chain)| (name.clone(), chain.spec.family.short));
        Self {
            market: common.market.clone(),
            families: families.collect(),
            prices: common.prices.clone(),
            history: History::new(common.requests.store().clone()),
            trends,
            clock: common.clock,
        }
    }

    /// Unix seconds.
    fn now(&self) -> u64 {
        (self.clock)() / 1_000
    }

    /// The currency that the path of `request` names.
    fn named(&self, request: &Request) -> Result<(&Network, &Currency), ApiError> {
        let part = |name| request.param(name).unwrap_or_default();
        let number = json::number(part("chainId")).ok_or_else(|| {
            let expected = "expected a whole number from 0 to 9007199254740991";
            invalid_field("chainId", expected)
        })?;
        let network = currencies::network(&self.market, number)?;
        let currency = currencies::currency(network, part("address"))?;
        Ok((network, currency))
    }

    fn listed(&self, network: &Network, currency: &Currency) -> currencies::Listed {
        let family = self.families.get(&network.name);
        currencies::Listed::of(network, currency, family.copied()).plain()
    }
}
