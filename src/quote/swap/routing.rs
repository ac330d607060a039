//! The best of several sources.

use std::{cmp::Reverse, sync::Arc};

use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms};

/// See the module.
#[derive(Clone)]
pub struct SwapRouting {
    first: Sources,
    second: Sources,
}

type Sources = Arc<[Arc<dyn SwapSource>]>;

impl SwapRouting {
    pub fn new(sources: Vec<Arc<dyn SwapSource>>) -> Self {
        Self {
            first: sources.into(),
            second: Arc::new([]),
        }
    }

    /// With sources that are asked only by [`Self::seconds`].
    #[must_use]
    pub fn or_else(self, sources: Vec<Arc<dyn SwapSource>>) -> Self {
        Self {
            second: sources.into(),
            ..self
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn SwapSource>> {
        self.first.iter().chain(self.second.iter())
    }

    /// The names of the sources that work on `network`.
    pub fn names(&self, network: &str) -> impl Iterator<Item = &'static str> {
        let serving = self.all().filter(move |source| source.serves(network));
        serving.map(|source| source.name())
    }

    /// What the sources offer whose name `allows`, the best first: the most output or the least input, then the
    /// least gas. Never empty: `NoRoute` when all say so, `Unavailable` when one could not be asked.
    pub async fn offers(
        &self,
        terms: &SwapTerms,
        allows: impl Fn(&str) -> bool,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        asked(&self.first, terms, allows).await
    }

    /// What the second choices offer, in the same way.
    pub async fn seconds(
        &self,
        terms: &SwapTerms,
        allows: impl Fn(&str) -> bool,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        asked(&self.second, terms, allows).await
    }

    /// What the way of an earlier offer gives for another amount.
    pub async fn again(
        &self,
        offer: &SwapOffer,
        terms: &SwapTerms,
    ) -> Result<SwapOffer, SwapError> {
        self.source(offer)?.again(offer, terms).await
    }

    /// The transaction of an offer of one of the sources.
    pub fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        self.source(offer)?.build(offer, order)
    }

    /// Who made an offer.
    fn source(&self, offer: &SwapOffer) -> Result<&Arc<dyn SwapSource>, SwapError> {
        let source = self.all().find(|source| source.name() == offer.source);
        source.ok_or(SwapError::NoRoute)
    }
}

async fn asked(
    sources: &Sources,
    terms: &SwapTerms,
    allows: impl Fn(&str) -> bool,
) -> Result<Vec<SwapOffer>, SwapError> {
    let able =
        |source: &&Arc<dyn SwapSource>| source.serves(&terms.network) && allows(source.name());
    let asked = sources
        .iter()
        .filter(able)
        .map(|source| source.offer(terms));
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

#[cfg(test)]
mod tests;
