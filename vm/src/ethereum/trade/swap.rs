//! Exchanges on EVM chains: Uniswap V3's contracts and those that work alike, and the wrapped native currency.
//!
//! `route`, `quoter` and `router` are pure encodings; `pools` remembers which pools there are; `deployment` asks one
//! exchange's contracts; `search` finds the best way through its pools; `uniswap` and `wrap` are what is offered.

mod deployment;
mod pools;
mod quoter;
mod route;
mod router;
mod search;
mod uniswap;
mod wrap;

use std::sync::Arc;

use self::{deployment::Deployment, uniswap::UniswapV3, wrap::Wrap};
use crate::{
    SpecError,
    trade::{SwapAccess, SwapContracts, SwapSpec, SwapVenue, SwapVenues},
};

/// Opens the exchanges that an EVM chain's configuration names. An error where an address is malformed or missing.
pub fn open(spec: &SwapSpec, access: &SwapAccess) -> Result<SwapVenues, SpecError> {
    let wrong = |why: String| SpecError(format!("{}: {why}", spec.network));
    if !spec.services.is_empty() {
        return Err(wrong("aggregators: none is known of this family".into()));
    }
    let exchange = |name, contracts: &[SwapContracts]| {
        let opened = contracts
            .iter()
            .map(|contracts| Deployment::open(spec, contracts, access));
        let opened = opened.collect::<Result<Vec<_>, String>>().map_err(wrong)?;
        let exchange = (!opened.is_empty()).then(|| UniswapV3 { name, opened });
        Ok::<_, SpecError>(exchange.map(|exchange| Arc::new(exchange) as Arc<dyn SwapVenue>))
    };
    let wrap =
        Wrap::open(spec, access.head_calls.family).map_err(|error| wrong(error.to_string()))?;
    let wrap = wrap.map(|wrap| Arc::new(wrap) as Arc<dyn SwapVenue>);
    let first = exchange(uniswap::NAME, &spec.first)?.into_iter();
    Ok(SwapVenues {
        first: first.chain(wrap).collect(),
        second: exchange(uniswap::SECOND, &spec.second)?
            .into_iter()
            .collect(),
    })
}
