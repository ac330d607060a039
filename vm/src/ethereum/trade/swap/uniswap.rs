//! Uniswap V3 through QuoterV2 and SwapRouter02.

use async_trait::async_trait;

use super::{
    deployment::{Deployment, account},
    quoter::{Quote, best},
    route::Route,
    router::Exchange,
    search::search,
};
use crate::trade::{SwapDraft, SwapError, SwapOffer, SwapOrder, SwapTerms, SwapVenue};

pub const NAME: &str = "uniswap-v3";
pub const SECOND: &str = "uniswap-v3-fallback";

/// Gas units besides the pools': the router, the transfers of two tokens and the allowance.
const OVERHEAD: u64 = 90_000;

/// The contracts of one chain, and what works like them there.
pub struct UniswapV3 {
    pub name: &'static str,
    /// Never empty.
    pub opened: Vec<Deployment>,
}

impl UniswapV3 {
    /// The way of an offer of its own, which leads between the two of `terms`.
    fn way(&self, offer: &SwapOffer, terms: &SwapTerms) -> Result<(&Deployment, Route), SwapError> {
        let none = || SwapError::unavailable("not a route");
        let (at, path) = offer.route.split_first().ok_or_else(none)?;
        let deployment = self.opened.get(usize::from(*at)).ok_or_else(none)?;
        let ends = deployment.ends(terms)?;
        let route = Route::decode(path).ok_or_else(none)?;
        let leads = (route.tokens.first(), route.tokens.last());
        if offer.source != self.name || leads != (Some(&ends.from), Some(&ends.to)) {
            return Err(SwapError::unavailable("another exchange's offer"));
        }
        Ok((deployment, route))
    }

    fn offered(&self, terms: &SwapTerms, quote: Quote, route: Vec<u8>) -> SwapOffer {
        let (input, output) = match terms.exact_input {
            true => (terms.amount, quote.amount),
            false => (quote.amount, terms.amount),
        };
        SwapOffer {
            source: self.name,
            terms: terms.clone(),
            input,
            output,
            work: quote.gas.saturating_add(OVERHEAD),
            route,
        }
    }
}

#[async_trait]
impl SwapVenue for UniswapV3 {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let answers = self.opened.iter().map(|one| search(one, terms));
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
        let note = [&[at], route.path().as_ref()].concat();
        Ok(self.offered(terms, quote, note))
    }

    async fn again(&self, offer: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let (deployment, route) = self.way(offer, terms)?;
        let quote = deployment.quote(&route, terms).await?;
        let quote = quote.ok_or(SwapError::NoRoute)?;
        Ok(self.offered(terms, quote, offer.route.clone()))
    }

    async fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapDraft, SwapError> {
        let (deployment, route) = self.way(offer, &offer.terms)?;
        let recipient = account(&order.recipient)?;
        if !Exchange::is_recipient(recipient) {
            return Err(SwapError::unavailable("not a recipient"));
        }
        offer.within(order)?;
        let exchange = Exchange {
            route: &route,
            recipient,
            exact_input: offer.terms.exact_input,
            amount: offer.terms.amount,
            limit: order.limit,
            native_input: offer.terms.input == deployment.native,
            native_output: offer.terms.output == deployment.native,
            deadline: order.deadline,
        };
        Ok(deployment.call(&exchange, order))
    }
}

#[cfg(test)]
mod tests;
