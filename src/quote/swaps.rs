//! The exchanges of all networks, and the best of what they offer.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use alloy::primitives::{U256, uint};
use vm::{
    SpecError,
    trade::{
        SwapAccess, SwapDraft, SwapError, SwapOffer, SwapOrder, SwapSpec, SwapTerms, SwapVenue,
        SwapVenues,
    },
};

use super::{
    code::{Code, Refused},
    intent::{Intent, Side},
    usd::Worth,
};
use crate::market::{Class, Market, Network};

/// The exchanges of each network, by its name.
#[derive(Clone, Default)]
pub struct Swaps(Arc<HashMap<String, SwapVenues>>);

impl Swaps {
    pub fn new(networks: HashMap<String, SwapVenues>) -> Self {
        Self(Arc::new(networks))
    }

    /// Opens what the market file names. A network has no exchange that `access` cannot read, or whose family has none.
    pub fn open(
        market: &Market,
        access: impl Fn(&str) -> Option<SwapAccess>,
    ) -> Result<Self, SpecError> {
        let mut networks = HashMap::new();
        for network in market.networks() {
            let access = access(&network.name);
            let open = access.and_then(|access| Some((access.head_calls.family.swaps?, access)));
            if let Some((open, access)) = open {
                networks.insert(network.name.clone(), open(&spec(network), &access)?);
            }
        }
        Ok(Self::new(networks))
    }

    fn all(&self, network: &str) -> impl Iterator<Item = &Arc<dyn SwapVenue>> {
        let venues = self.0.get(network).into_iter();
        venues.flat_map(|venues| venues.first.iter().chain(&venues.second))
    }

    /// The names of the exchanges on `network`.
    pub fn names(&self, network: &str) -> impl Iterator<Item = &'static str> {
        self.all(network).map(|venue| venue.name())
    }

    /// What those first choices offer whose name `allows`, the best first: the most output or the least input, then
    /// the least work. Never empty: `NoRoute` when all say so, `Unavailable` when one could not be asked.
    pub async fn offers(
        &self,
        terms: &SwapTerms,
        allows: impl Fn(&str) -> bool,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        let venues = self.0.get(&terms.network).map(|venues| &*venues.first);
        asked(venues.unwrap_or_default(), terms, allows).await
    }

    /// What the second choices offer, in the same way.
    pub async fn seconds(
        &self,
        terms: &SwapTerms,
        allows: impl Fn(&str) -> bool,
    ) -> Result<Vec<SwapOffer>, SwapError> {
        let venues = self.0.get(&terms.network).map(|venues| &*venues.second);
        asked(venues.unwrap_or_default(), terms, allows).await
    }

    /// What the way of an earlier offer gives for another amount.
    async fn again(&self, offer: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.venue(offer)?.again(offer, terms).await
    }

    /// The transaction of an offer, by the exchange that made it.
    pub async fn build(
        &self,
        offer: &SwapOffer,
        order: &SwapOrder,
    ) -> Result<SwapDraft, SwapError> {
        self.venue(offer)?.build(offer, order).await
    }

    /// The same, or the refusal of the quote.
    pub async fn transaction(
        &self,
        offer: &SwapOffer,
        order: &SwapOrder,
    ) -> Result<SwapDraft, Refused> {
        self.build(offer, order).await.map_err(|error| {
            tracing::warn!(source = offer.source, why = %error, "an offer cannot be built");
            Refused::new(Code::SwapQuoteFailed, "the swap cannot be built")
        })
    }

    /// Who made an offer.
    fn venue(&self, offer: &SwapOffer) -> Result<&Arc<dyn SwapVenue>, SwapError> {
        let mut venues = self.all(&offer.terms.network);
        let venue = venues.find(|venue| venue.name() == offer.source);
        venue.ok_or(SwapError::NoRoute)
    }

    /// The best offer of all.
    async fn best(&self, wanted: Wanted<'_, '_>, terms: SwapTerms) -> Result<SwapOffer, Refused> {
        let allows = |name: &str| wanted.intent.sources.allow(name, wanted.origin);
        let mut best = first(self.offers(&terms, allows).await);
        if best.is_err() && wanted.intent.use_fallbacks {
            let down = matches!(best, Err(SwapError::Unavailable(_)));
            let second = first(self.seconds(&terms, allows).await);
            // Who could not be asked might have had an offer.
            if !(down && second == Err(SwapError::NoRoute)) {
                best = second;
            }
        }
        best.map_err(|error| match error {
            SwapError::NoRoute => nothing(wanted, false),
            SwapError::Unavailable(why) => {
                tracing::warn!(why, "swap source unavailable");
                nothing(wanted, true)
            }
        })
    }
}

/// The exchanges of a network as the market file has them. Ways lead over what the solver holds of stable currencies.
fn spec(network: &Network) -> SwapSpec {
    let tokens = network.currencies.iter().skip(1);
    let hubs = tokens.filter(|token| token.solver && token.class == Class::Stable);
    SwapSpec {
        network: network.name.clone(),
        wrapped: network.wrapped_native.clone(),
        hubs: hubs.map(|token| token.address.clone()).collect(),
        first: network.uniswap_v3.clone().into_iter().collect(),
        second: network.fallback_exchanges.clone(),
        services: network.aggregators.clone(),
    }
}

async fn asked(
    venues: &[Arc<dyn SwapVenue>],
    terms: &SwapTerms,
    allows: impl Fn(&str) -> bool,
) -> Result<Vec<SwapOffer>, SwapError> {
    let able = venues.iter().filter(|venue| allows(venue.name()));
    let asked = able.map(|venue| venue.offer(terms));
    let (mut offers, mut error) = (Vec::new(), SwapError::NoRoute);
    for answer in futures::future::join_all(asked).await {
        match answer {
            Ok(offer) => offers.push(offer),
            Err(SwapError::NoRoute) => (),
            Err(unavailable) => error = unavailable,
        }
    }
    match terms.exact_input {
        true => offers.sort_by_key(|offer| (Reverse(offer.output), offer.work)),
        false => offers.sort_by_key(|offer| (offer.input, offer.work)),
    }
    match offers.is_empty() {
        true => Err(error),
        false => Ok(offers),
    }
}

/// An exchange to find.
#[derive(Clone, Copy)]
pub struct Wanted<'a, 'm> {
    pub intent: &'a Intent<'m>,
    /// Both on one network.
    pub from: End<'a, 'm>,
    pub to: End<'a, 'm>,
    /// On the origin, or else the destination.
    pub origin: bool,
}

/// A currency, and what it is worth.
#[derive(Clone, Copy)]
pub struct End<'a, 'm> {
    pub side: &'a Side<'m>,
    pub worth: Worth,
}

impl<'a, 'm> End<'a, 'm> {
    pub fn new(side: &'a Side<'m>, worth: Worth) -> Self {
        Self { side, worth }
    }
}

/// Whether an offer exchanges anything.
fn is_some(offer: &SwapOffer) -> bool {
    !offer.input.is_zero() && !offer.output.is_zero()
}

/// The best of sorted offers that exchanges anything.
fn first(offers: Result<Vec<SwapOffer>, SwapError>) -> Result<SwapOffer, SwapError> {
    offers?.into_iter().find(is_some).ok_or(SwapError::NoRoute)
}

fn nothing(wanted: Wanted<'_, '_>, down: bool) -> Refused {
    let pair = format!(
        "{} to {} on {}",
        wanted.from.side.currency.symbol,
        wanted.to.side.currency.symbol,
        wanted.from.side.network.display_name
    );
    if down {
        let what = format!("no swap source answered for {pair}");
        return Refused::new(Code::ServiceUnavailable, what);
    }
    let code = match wanted.intent.own || wanted.origin {
        true => Code::NoSwapRoutesFound,
        false => Code::NoInternalSwapRoutesFound,
    };
    Refused::new(code, format!("no swap from {pair}"))
}

/// The questions of one quote. It prices more than once, with amounts that the fill's fee moves a little: what it has
/// found is not looked for again, and the way that was best is asked alone.
pub struct Search<'a> {
    swaps: &'a Swaps,
    /// On the origin, or else the destination.
    found: Mutex<Vec<(bool, SwapOffer)>>,
}

impl<'a> Search<'a> {
    pub fn new(swaps: &'a Swaps) -> Self {
        Self {
            swaps,
            found: Mutex::default(),
        }
    }

    /// The best offer for `amount`, of what goes in or else of what comes out.
    pub async fn best(
        &self,
        wanted: Wanted<'_, '_>,
        amount: U256,
        exact_input: bool,
    ) -> Result<SwapOffer, Refused> {
        let terms = terms(wanted, amount, exact_input);
        let near = self.near(wanted, &terms);
        if let Some(known) = near.as_ref().filter(|known| known.terms == terms) {
            return Ok(known.clone());
        }
        let mut offer = None;
        if let Some(known) = near {
            let again = self.swaps.again(&known, &terms).await;
            offer = again.ok().filter(is_some);
        }
        let offer = match offer {
            Some(offer) => offer,
            None => self.swaps.best(wanted, terms).await?,
        };
        self.found().push((wanted.origin, offer.clone()));
        Ok(offer)
    }

    /// The latest offer for the same currencies, that for these terms before others; only where the
    /// amounts are alike: of a much larger one another way may be best.
    fn near(&self, wanted: Wanted<'_, '_>, terms: &SwapTerms) -> Option<SwapOffer> {
        let found = self.found();
        let here = found.iter().rev().filter(|(origin, offer)| {
            let same = (
                &offer.terms.network,
                &offer.terms.input,
                &offer.terms.output,
            );
            *origin == wanted.origin && same == (&terms.network, &terms.input, &terms.output)
        });
        let here: Vec<_> = here.map(|(_, offer)| offer).collect();
        let same = here.iter().find(|offer| offer.terms == *terms);
        let alike = |offer: &&&SwapOffer| {
            let before = if terms.exact_input {
                offer.input
            } else {
                offer.output
            };
            before.abs_diff(terms.amount) <= before.min(terms.amount) / ALIKE
        };
        let near = same.or_else(|| here.iter().find(alike));
        near.map(|offer| SwapOffer::clone(offer))
    }

    fn found(&self) -> MutexGuard<'_, Vec<(bool, SwapOffer)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Amounts are alike that differ by at most such a part.
const ALIKE: U256 = uint!(8_U256);

fn terms(wanted: Wanted<'_, '_>, amount: U256, exact_input: bool) -> SwapTerms {
    SwapTerms {
        network: wanted.from.side.network.name.clone(),
        input: wanted.from.side.address.clone(),
        output: wanted.to.side.address.clone(),
        amount,
        exact_input,
        most_pools: wanted.intent.most_pools,
    }
}

#[cfg(test)]
mod tests;
