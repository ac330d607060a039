//! The best of several sources.

use std::{cmp::Reverse, sync::Arc};

use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms};

/// See the module.
#[derive(Clone)]
pub struct SwapRouting(Arc<[Arc<dyn SwapSource>]>);

impl SwapRouting {
    pub fn new(sources: Vec<Arc<dyn SwapSource>>) -> Self {
        Self(sources.into())
    }

    /// The names of the sources that work on `network`.
    pub fn names(&self, network: &str) -> impl Iterator<Item = &'static str> {
        let serving = self.0.iter().filter(move |source| source.serves(network));
        serving.map(|source| source.name())
    }

    /// What the sources offer whose name `allows`, the best first: the most output or the least input, then the
    /// least gas. Never empty: `NoRoute` when all say so, `Unavailable` when one could not be asked.
    pub async fn offers(
        &self,
        terms: &SwapTerms,
        allows: impl Fn(&str) -> bool,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        let able =
            |source: &&Arc<dyn SwapSource>| source.serves(&terms.network) && allows(source.name());
        let asked = self.0.iter().filter(able).map(|source| source.offer(terms));
        let (mut offers, mut error) = (Vec::new(), SwapError::NoRoute);
        for answer in futures::future::join_all(asked).await {
            match answer {
                Ok(offer) => offers.push(offer),
                Err(SwapError::NoRoute) => (),
                Err(unavailable) => error = unavailable,
            }
        }
        if terms.exact_input {
            offers.sort_by_key(|offer| (Reverse(offer.output), offer.gas));
        } else {
            offers.sort_by_key(|offer| (offer.input, offer.gas));
        }
        if offers.is_empty() {
            Err(error)
        } else {
            Ok(offers)
        }
    }

    /// The transaction of an offer of one of the sources.
    pub fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        let source = self.0.iter().find(|source| source.name() == offer.source);
        source.ok_or(SwapError::NoRoute)?.build(offer, order)
    }
}

#[cfg(test)]
mod tests;
