//! Exchanges on one chain.
//!
//! A swap at the destination is a call of the fill router's: it holds the input, is the payer and the
//! recipient, and pays the order's recipient itself; only what the router pays counts as a fill.

use std::{num::NonZero, sync::Arc};

use async_trait::async_trait;
use serde::Deserialize;

use crate::{
    SpecError,
    trade::{Choices, Draft, HeadCalls},
    types::{Address, Amount},
};

/// Opens the exchanges that a chain's configuration names. An error where it does not fit the family.
pub type OpenSwaps = fn(&SwapSpec, &SwapAccess) -> Result<SwapVenues, SpecError>;

/// The exchanges of one chain as configured. Addresses are texts of its family.
#[derive(Clone, Debug, Default)]
pub struct SwapSpec {
    /// The chain's name: offers are told apart by it, and mistakes name it.
    pub network: String,
    /// The wrapped form of the native currency.
    pub wrapped: Option<String>,
    /// What else a way of two pools may lead over.
    pub hubs: Vec<String>,
    /// The first choice.
    pub first: Vec<SwapContracts>,
    /// Asked only where no first choice has an offer, and the caller allows them.
    pub second: Vec<SwapContracts>,
    /// Services that find ways through a chain's exchanges; among the first choices.
    pub services: Vec<SwapService>,
}

/// An HTTP service that finds ways through a chain's exchanges, as the market file has it.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwapService {
    /// Below it are the service's questions.
    pub url: url::Url,
    /// What it is asked with, where it wants a key. Never printed.
    #[serde(default)]
    pub api_key: Option<String>,
}

impl std::fmt::Debug for SwapService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.url.host_str().unwrap_or("?"))
    }
}

/// The contracts of one exchange, as the market file has them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwapContracts {
    /// Tells what an exchange would give (Uniswap V3: QuoterV2).
    pub quoter: String,
    /// Makes the exchange (SwapRouter02).
    pub router: String,
    /// Fee tiers to try, in hundredths of a basis point (`500`, `3000`, `10000`).
    pub fees: Vec<u32>,
}

/// How exchanges read their chain.
#[derive(Clone)]
pub struct SwapAccess {
    pub head_calls: HeadCalls,
    /// Whether what is done now is done for somebody with a key.
    pub keyed: fn() -> bool,
}

/// The opened exchanges of one chain.
#[derive(Clone, Default)]
pub struct SwapVenues {
    pub first: Vec<Arc<dyn SwapVenue>>,
    pub second: Vec<Arc<dyn SwapVenue>>,
}

/// What is to be exchanged on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapTerms {
    pub network: String,
    pub input: Address,
    pub output: Address,
    pub amount: Amount,
    /// `amount` is what goes in; otherwise what must come out.
    pub exact_input: bool,
    /// Pools that the way may lead through; any number where nobody says.
    pub most_pools: Option<NonZero<u64>>,
}

impl SwapTerms {
    /// Whether a way may lead through so many pools.
    pub fn allow(&self, pools: u64) -> bool {
        self.most_pools.is_none_or(|most| pools <= most.get())
    }
}

/// An exchange that a venue offers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapOffer {
    /// The venue's name, as `GET /swap-sources` lists it.
    pub source: &'static str,
    pub terms: SwapTerms,
    pub input: Amount,
    pub output: Amount,
    /// Work of the exchange alone.
    pub work: u64,
    /// The venue's own note of the way that it found, given back when building.
    pub route: Vec<u8>,
}

/// Who exchanges, for whom, and how much may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapOrder {
    /// Who sends the transaction and holds the input.
    pub payer: Address,
    pub recipient: Address,
    /// The least output of an exact input, the most input of an exact output.
    pub limit: Amount,
    /// Unix seconds.
    pub deadline: u64,
    pub choices: Choices,
}

/// The transaction of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapDraft {
    /// Who must be let to take the input; `None` where nobody need be.
    pub spender: Option<Address>,
    pub draft: Draft,
}

/// Why a venue does not exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwapError {
    /// The venue has no way between the two currencies, or not enough of them.
    #[error("no route")]
    NoRoute,
    #[error("swap source unavailable: {0}")]
    Unavailable(String),
}

impl SwapError {
    pub(crate) fn unavailable(why: &str) -> Self {
        Self::Unavailable(why.to_owned())
    }
}

/// An exchange of one chain, on it or an aggregator of those.
#[async_trait]
pub trait SwapVenue: Send + Sync {
    /// As in `GET /swap-sources`.
    fn name(&self) -> &'static str;
    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError>;
    /// What the way of an earlier offer of its own gives for another amount of the same currencies,
    /// without a look at other ways.
    async fn again(&self, _offer: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.offer(terms).await
    }
    /// The transaction of an offer of its own.
    async fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapDraft, SwapError>;
}

impl SwapOffer {
    /// Whether the offer itself keeps to the order's limit.
    pub fn within(&self, order: &SwapOrder) -> Result<(), SwapError> {
        let kept = match self.terms.exact_input {
            true => order.limit <= self.output,
            false => order.limit >= self.input,
        };
        let beyond = || SwapError::unavailable("the offer is beyond the limit");
        kept.then_some(()).ok_or_else(beyond)
    }
}
