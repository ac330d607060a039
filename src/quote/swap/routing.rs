//! The best of several sources.

use std::{cmp::Reverse, sync::Arc};

use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms};

/// Which sources a caller wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed<'a> {
    /// Only these; `None`: all.
    pub included: Option<&'a [String]>,
    /// None of these, included or not.
    pub excluded: &'a [String],
}

impl Allowed<'_> {
    fn allows(&self, name: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|one| one == name);
        self.included.is_none_or(named) && !named(self.excluded)
    }
}

/// See the module.
#[derive(Clone)]
pub struct SwapRouting(Arc<[Arc<dyn SwapSource>]>);

impl SwapRouting {
    pub fn new(sources: Vec<Arc<dyn SwapSource>>) -> Self {
        Self(sources.into())
    }

    /// The names of the sources that work on `network`; on any where it is `None`.
    pub fn names(&self, network: Option<&str>) -> Vec<&'static str> {
        let serves = |source: &&Arc<dyn SwapSource>| network.is_none_or(|on| source.serves(on));
        self.0
            .iter()
            .filter(serves)
            .map(|source| source.name())
            .collect()
    }

    /// What the allowed sources offer, the best first: the most output or the least input, then the
    /// least gas. Never empty: `NoRoute` when all say so, `Unavailable` when one could not be asked.
    pub async fn offers(
        &self,
        terms: &SwapTerms,
        allowed: Allowed<'_>,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        let able = |source: &&Arc<dyn SwapSource>| {
            source.serves(&terms.network) && allowed.allows(source.name())
        };
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
