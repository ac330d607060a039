//! The best of what swap sources offer.

use alloy::primitives::U256;

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

impl Offers {
    /// The best offer for `amount`, of what goes in or else of what comes out.
    pub async fn best(
        &self,
        wanted: Wanted<'_, '_>,
        amount: U256,
        exact_input: bool,
    ) -> Result<SwapOffer, Refused> {
        let terms = SwapTerms {
            network: wanted.input.network.name.clone(),
            input: wanted.input.address.clone(),
            output: wanted.output.address.clone(),
            amount,
            exact_input,
        };
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
