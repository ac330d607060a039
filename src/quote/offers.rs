//! The best of what swap sources offer.

use std::{cmp::Reverse, sync::Arc};

use alloy::primitives::U256;

use super::{
    code::{Code, Refused},
    intent::{Intent, Side},
    swap::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms},
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

/// The sources of a daemon.
#[derive(Clone)]
pub struct Offers(pub Vec<Arc<dyn SwapSource>>);

impl Offers {
    /// The best offer for `amount`, of what goes in or else of what comes out.
    pub async fn best(
        &self,
        wanted: Wanted<'_, '_>,
        amount: U256,
        exact_input: bool,
    ) -> Result<SwapOffer, Refused> {
        let network = &wanted.input.network.name;
        let sources = self.0.iter().filter(|source| {
            source.serves(network) && wanted.intent.sources.allow(source.name(), wanted.origin)
        });
        let terms = SwapTerms {
            network: network.clone(),
            input: wanted.input.address.clone(),
            output: wanted.output.address.clone(),
            amount,
            exact_input,
        };
        let asked = sources.map(|source| source.offer(&terms));
        let answers = futures::future::join_all(asked).await;
        let mut down = false;
        let mut offers = Vec::new();
        for answer in answers {
            match answer {
                Ok(offer) if !offer.input.is_zero() && !offer.output.is_zero() => {
                    offers.push(offer);
                }
                Ok(_) | Err(SwapError::NoRoute) => {}
                Err(SwapError::Unavailable(why)) => {
                    tracing::warn!(why, "swap source unavailable");
                    down = true;
                }
            }
        }
        let best = if exact_input {
            offers.into_iter().max_by_key(|offer| offer.output)
        } else {
            offers.into_iter().max_by_key(|offer| Reverse(offer.input))
        };
        best.ok_or_else(|| Self::nothing(wanted, down))
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
        let source = self.0.iter().find(|one| one.name() == offer.source);
        let source = source.ok_or_else(|| failed("unknown source".into()))?;
        source
            .build(offer, order)
            .map_err(|error| failed(error.to_string()))
    }
}
