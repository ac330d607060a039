//! What every stage of a quote works with.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use alloy::primitives::B256;
use vm::Address;

use super::{
    body::Body,
    code::{Code, Refused},
    holds::Holds,
    intent::{Basis, Intent, Side, Traded},
    pricing_chain::{Capacity, PricingChain},
    swaps::Swaps,
    usd::Rated,
    verdicts::Verdicts,
};
use crate::{
    market::{Currency, Market, Network},
    price::{PriceError, PriceSource, SettlementPrice},
    sign::Signer,
    store::requests::Requests,
};

/// Who asks for a quote.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The label of the API key.
    pub key: Option<&'a str>,
    /// Stands for the key or, without one, the address.
    pub by: u64,
}

/// What quotes are made with.
pub struct Deps {
    pub market: Arc<Market>,
    /// By the network's name.
    pub chains: HashMap<String, PricingChain>,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
    pub swaps: Swaps,
    pub capacity: Arc<dyn Capacity>,
    /// The solver's key.
    pub signer: Arc<dyn Signer>,
    /// The network whose account the solver is paid on.
    pub solver_chain: String,
    pub requests: Requests,
    /// Seconds for which a price holds.
    pub validity: u64,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
    /// 32 bytes that nobody can guess; `None` where the machine has none.
    pub entropy: fn() -> Option<B256>,
}

/// What quotes are made with, and what they remember of each other.
pub struct Context {
    pub deps: Deps,
    /// The solver as orders name it: the account of its key on the chain where it is paid.
    pub solver: Address,
    pub verdicts: Verdicts,
    holds: Mutex<Holds>,
}

impl Context {
    pub fn new(deps: Deps) -> Self {
        let account = deps.signer.address();
        Self {
            solver: Address::from_parts(&format!("{account:#x}"), account.to_vec()),
            deps,
            verdicts: Verdicts::default(),
            holds: Mutex::default(),
        }
    }

    /// Unix seconds.
    pub fn now(&self) -> u64 {
        (self.deps.clock)() / 1000
    }

    pub fn entropy(&self) -> Result<B256, Refused> {
        let none = || Refused::new(Code::ServiceUnavailable, "no randomness");
        (self.deps.entropy)().ok_or_else(none)
    }

    pub fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a body asks for.
    pub fn intent(&self, body: &Body, key: Option<&str>) -> Result<Intent<'_>, Refused> {
        let chain = |name: &str| {
            let chain = self.deps.chains.get(name)?;
            Some(Traded {
                spec: chain.spec.clone(),
                solver: chain.account.clone(),
            })
        };
        let basis = Basis {
            market: &self.deps.market,
            chain: &chain,
            keyed: key.is_some(),
        };
        Intent::of(body, &basis)
    }

    /// The chain of a side.
    pub fn chain(&self, side: &Side<'_>) -> Result<&PricingChain, Refused> {
        self.chain_of(side.network)
    }

    /// The chain of a network.
    pub fn chain_of(&self, network: &Network) -> Result<&PricingChain, Refused> {
        self.deps.chains.get(&network.name).ok_or_else(|| {
            let what = format!("{} is not traded", network.display_name);
            Refused::new(Code::UnsupportedRoute, what)
        })
    }

    /// What a currency is worth at `now`, unix seconds.
    pub async fn worth(&self, currency: Option<&Currency>, now: u64) -> Result<Rated, Refused> {
        let none = || Refused::new(Code::UnsupportedRoute, "no native currency");
        rated(&*self.deps.prices, currency.ok_or_else(none)?, now).await
    }
}

/// What a currency is worth at `now` (unix seconds) to these sources.
pub async fn rated(
    prices: &dyn PriceSource,
    currency: &Currency,
    now: u64,
) -> Result<Rated, Refused> {
    Ok(Rated {
        price: prices.price(currency, now).await?,
        decimals: currency.decimals,
    })
}

impl From<PriceError> for Refused {
    fn from(error: PriceError) -> Self {
        match error {
            PriceError::Unknown(name) => {
                let what = format!("{name}: the currency cannot be priced");
                Self::new(Code::UnsupportedCurrency, what)
            }
            PriceError::Unavailable { currency, why } => {
                tracing::warn!(currency, why, "no quote: no price");
                let what = format!("{currency}: no price that can be believed right now");
                Self::new(Code::PriceFetchFailed, what)
            }
        }
    }
}
