//! Uniswap V3 through QuoterV2 and SwapRouter02.

mod quoter;
mod route;
mod router;
mod venue;

use std::collections::HashMap;

use async_trait::async_trait;

use self::{
    quoter::Quote,
    route::{Route, candidates},
    router::Exchange,
    venue::{Venue, account},
};
use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms};
use crate::{chains::Views, market::Market};

pub use venue::VenueError;

const NAME: &str = "uniswap-v3";

/// Gas units besides the pools': the router, the transfers of two tokens and the allowance.
const OVERHEAD: u64 = 90_000;

/// The networks whose market entry names the contracts.
pub struct UniswapV3(HashMap<String, Venue>);

impl UniswapV3 {
    /// `views` shows a network's head; a network that cannot be read is not served.
    pub fn new(market: &Market, views: impl Fn(&str) -> Option<Views>) -> Result<Self, VenueError> {
        let mut venues = HashMap::new();
        for network in market.networks() {
            if let Some(venue) = Venue::open(network, &views)? {
                venues.insert(network.name.clone(), venue);
            }
        }
        Ok(Self(venues))
    }

    fn venue(&self, network: &str) -> Result<&Venue, SwapError> {
        self.0.get(network).ok_or(SwapError::NoRoute)
    }
}

#[async_trait]
impl SwapSource for UniswapV3 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn serves(&self, network: &str) -> bool {
        self.0.contains_key(network)
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let venue = self.venue(&terms.network)?;
        let (input, output) = venue.pair(terms)?;
        let routes = candidates(input, output, &venue.hubs, &venue.fees);
        let answers = routes.iter().map(|route| venue.quote(route, terms));
        let answers = futures::future::join_all(answers).await;
        let mut found = Vec::new();
        let mut broken = None;
        for (route, answer) in routes.iter().zip(answers) {
            match answer {
                Ok(Some(quote)) => found.push((route, quote)),
                Ok(None) => (),
                Err(error) => broken = Some(error),
            }
        }
        match best(found, terms.exact_input) {
            Some((route, quote)) => Ok(offered(terms, route, quote)),
            None => Err(broken.unwrap_or(SwapError::NoRoute)),
        }
    }

    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        let venue = self.venue(&offer.terms.network)?;
        let (input, output) = venue.pair(&offer.terms)?;
        let route = Route::decode(&offer.route).ok_or_else(|| refused("not a route"))?;
        let ends = (route.tokens.first(), route.tokens.last());
        if offer.source != NAME || ends != (Some(&input), Some(&output)) {
            return Err(refused("another exchange's offer"));
        }
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
fn best(found: Vec<(&Route, Quote)>, exact_input: bool) -> Option<(&Route, Quote)> {
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

fn offered(terms: &SwapTerms, route: &Route, quote: Quote) -> SwapOffer {
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
        route: route.path().to_vec(),
    }
}

fn refused(what: &str) -> SwapError {
    SwapError::Unavailable(what.to_owned())
}
