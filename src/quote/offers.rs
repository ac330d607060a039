//! The best of what swap sources offer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy::primitives::{U256, uint};

use super::{
    code::{Code, Refused},
    intent::{Intent, Side},
    swap::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapRouting, SwapTerms},
};

/// An exchange to find.
#[derive(Clone, Copy)]
pub struct Wanted<'a, 'm> {
    pub intent: &'a Intent<'m>,
    /// Both on one network.
    pub input: &'a Side<'m>,
    pub output: &'a Side<'m>,
    /// On the origin, or else the destination.
    pub origin: bool,
}

/// The best of sorted offers that exchanges anything.
fn first(offers: Result<Vec<SwapOffer>, SwapError>) -> Result<SwapOffer, SwapError> {
    let mut offers = offers?.into_iter();
    let some = |offer: &SwapOffer| !offer.input.is_zero() && !offer.output.is_zero();
    offers.find(some).ok_or(SwapError::NoRoute)
}

/// The swap sources of a daemon, as quotes ask them.
#[derive(Clone)]
pub struct Offers(pub SwapRouting);

/// The questions of one quote. It prices more than once, with amounts that gas moves a little: what it has
/// found is not looked for again, and the way that was best is asked alone.
pub struct Search<'a> {
    offers: &'a Offers,
    /// On the origin, or else the destination.
    found: Mutex<Vec<(bool, SwapOffer)>>,
}

impl<'a> Search<'a> {
    pub fn new(offers: &'a Offers) -> Self {
        Self {
            offers,
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
            let again = self.offers.0.again(&known, &terms).await;
            let some = |offer: &SwapOffer| !offer.input.is_zero() && !offer.output.is_zero();
            offer = again.ok().filter(some);
        }
        let offer = match offer {
            Some(offer) => offer,
            None => self.offers.best(wanted, terms).await?,
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
        network: wanted.input.network.name.clone(),
        input: wanted.input.address.clone(),
        output: wanted.output.address.clone(),
        amount,
        exact_input,
        most_pools: wanted.intent.most_pools,
    }
}

impl Offers {
    /// The best offer of all.
    async fn best(&self, wanted: Wanted<'_, '_>, terms: SwapTerms) -> Result<SwapOffer, Refused> {
        let allows = |name: &str| wanted.intent.sources.allow(name, wanted.origin);
        let mut best = first(self.0.offers(&terms, allows).await);
        if best.is_err() && wanted.intent.use_fallbacks {
            let down = matches!(best, Err(SwapError::Unavailable(_)));
            let second = first(self.0.seconds(&terms, allows).await);
            // Who could not be asked might have had an offer.
            if !(down && second == Err(SwapError::NoRoute)) {
                best = second;
            }
        }
        best.map_err(|error| match error {
            SwapError::NoRoute => Self::nothing(wanted, false),
            SwapError::Unavailable(why) => {
                tracing::warn!(why, "swap source unavailable");
                Self::nothing(wanted, true)
            }
        })
    }

    fn nothing(wanted: Wanted<'_, '_>, down: bool) -> Refused {
        let pair = format!(
            "{} to {} on {}",
            wanted.input.currency.symbol,
            wanted.output.currency.symbol,
            wanted.input.network.display_name
        );
        if down {
            let what = format!("no swap source answered for {pair}");
            return Refused::new(Code::ServiceUnavailable, what);
        }
        let code = if wanted.intent.own || wanted.origin {
            Code::NoSwapRoutesFound
        } else {
            Code::NoInternalSwapRoutesFound
        };
        Refused::new(code, format!("no swap from {pair}"))
    }

    /// The transaction of an offer, by the source that made it.
    pub fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, Refused> {
        let failed = |why: String| {
            tracing::warn!(source = offer.source, why, "an offer cannot be built");
            Refused::new(Code::SwapQuoteFailed, "the swap cannot be built")
        };
        self.0
            .build(offer, order)
            .map_err(|error| failed(error.to_string()))
    }
}
