//! Uniswap V3 through QuoterV2 and SwapRouter02.

mod pools;
mod quoter;
mod route;
mod router;
mod search;
#[cfg(test)]
mod tests;
mod venue;

use std::collections::HashMap;

use async_trait::async_trait;

use self::{
    quoter::Quote,
    route::Route,
    router::Exchange,
    search::search,
    venue::{Venue, account},
};
use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms};
use crate::{
    chains::Views,
    market::{Market, Network, UniswapV3 as Contracts},
};

pub use venue::VenueError;

const NAME: &str = "uniswap-v3";
const SECOND: &str = "uniswap-v3-fallback";

/// Gas units besides the pools': the router, the transfers of two tokens and the allowance.
const OVERHEAD: u64 = 90_000;

/// The networks whose market entry names the contracts, and what works like them there.
pub struct UniswapV3 {
    name: &'static str,
    /// Never empty.
    venues: HashMap<String, Vec<Venue>>,
}

impl UniswapV3 {
    /// `views` shows a network's head; a network that cannot be read is not served.
    pub fn new(market: &Market, views: impl Fn(&str) -> Option<Views>) -> Result<Self, VenueError> {
        let contracts = |network: &Network| network.uniswap_v3.clone().into_iter().collect();
        Self::of(NAME, market, contracts, views)
    }

    /// The networks' second choices.
    pub fn fallbacks(
        market: &Market,
        views: impl Fn(&str) -> Option<Views>,
    ) -> Result<Self, VenueError> {
        Self::of(
            SECOND,
            market,
            |network| network.fallback_exchanges.clone(),
            views,
        )
    }

    fn of(
        name: &'static str,
        market: &Market,
        contracts: impl Fn(&Network) -> Vec<Contracts>,
        views: impl Fn(&str) -> Option<Views>,
    ) -> Result<Self, VenueError> {
        let mut venues = HashMap::new();
        for network in market.networks() {
            let mut opened = Vec::new();
            for contracts in contracts(network) {
                opened.extend(Venue::open(network, &contracts, &views)?);
            }
            if !opened.is_empty() {
                venues.insert(network.name.clone(), opened);
            }
        }
        Ok(Self { name, venues })
    }

    fn on(&self, network: &str) -> Result<&[Venue], SwapError> {
        let venues = self.venues.get(network).map(Vec::as_slice);
        venues.ok_or(SwapError::NoRoute)
    }

    /// The way of an offer of its own, which leads between the two of `terms`.
    fn way(&self, offer: &SwapOffer, terms: &SwapTerms) -> Result<(&Venue, Route), SwapError> {
        let none = || refused("not a route");
        let (at, path) = offer.route.split_first().ok_or_else(none)?;
        let venue = self.on(&terms.network)?.get(usize::from(*at));
        let venue = venue.ok_or_else(none)?;
        let (input, output) = venue.pair(terms)?;
        let route = Route::decode(path).ok_or_else(none)?;
        let ends = (route.tokens.first(), route.tokens.last());
        if offer.source != self.name || ends != (Some(&input), Some(&output)) {
            return Err(refused("another exchange's offer"));
        }
        Ok((venue, route))
    }
}

#[async_trait]
impl SwapSource for UniswapV3 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn serves(&self, network: &str) -> bool {
        self.venues.contains_key(network)
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let venues = self.on(&terms.network)?;
        let answers = venues.iter().map(|venue| search(venue, terms));
        let answers = futures::future::join_all(answers).await;
        let mut found = Vec::new();
        let mut error = SwapError::NoRoute;
        for (at, answer) in (0_u8..).zip(answers) {
            match answer {
                Ok((route, quote)) => found.push(((at, route), quote)),
                Err(SwapError::NoRoute) => (),
                Err(unavailable) => error = unavailable,
            }
        }
        let ((at, route), quote) = best(found, terms.exact_input).ok_or(error)?;
        Ok(SwapOffer {
            source: self.name,
            route: [&[at], route.path().as_ref()].concat(),
            ..offered(terms, quote)
        })
    }

    async fn again(&self, offer: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let (venue, route) = self.way(offer, terms)?;
        let quote = venue.quote(&route, terms).await?;
        Ok(SwapOffer {
            source: self.name,
            route: offer.route.clone(),
            ..offered(terms, quote.ok_or(SwapError::NoRoute)?)
        })
    }

    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        let (venue, route) = self.way(offer, &offer.terms)?;
        let recipient = account(&order.recipient)?;
        if !Exchange::is_recipient(recipient) {
            return Err(refused("not a recipient"));
        }
        super::within(offer, order)?;
        let exchange = Exchange {
            route: &route,
            recipient,
            exact_input: offer.terms.exact_input,
            amount: offer.terms.amount,
            limit: order.limit,
            native_input: offer.terms.input == venue.native,
            native_output: offer.terms.output == venue.native,
            deadline: order.deadline,
        };
        Ok(venue.call(&exchange, order))
    }
}

/// The most output or the least input, then the least gas.
fn best<T>(found: Vec<(T, Quote)>, exact_input: bool) -> Option<(T, Quote)> {
    found.into_iter().reduce(|one, other| {
        let better = if exact_input {
            other.1.amount > one.1.amount
        } else {
            other.1.amount < one.1.amount
        };
        let cheaper = other.1.amount == one.1.amount && other.1.gas < one.1.gas;
        if better || cheaper { other } else { one }
    })
}

fn offered(terms: &SwapTerms, quote: Quote) -> SwapOffer {
    let (input, output) = if terms.exact_input {
        (terms.amount, quote.amount)
    } else {
        (quote.amount, terms.amount)
    };
    SwapOffer {
        source: NAME,
        terms: terms.clone(),
        input,
        output,
        gas: quote.gas.saturating_add(OVERHEAD),
        route: Vec::new(),
    }
}

fn refused(what: &str) -> SwapError {
    SwapError::Unavailable(what.to_owned())
}
