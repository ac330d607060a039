//! Exchanges on one chain.
//!
//! A swap at the destination is a call of the fill router's: it holds the input, is the payer and the
//! recipient, and pays the order's recipient itself; only what the router pays counts as a fill.

mod routing;
mod uniswap;
mod wrap;

use std::num::NonZero;

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::{Address, trade::Call};

pub use self::{
    routing::SwapRouting,
    uniswap::{UniswapV3, VenueError},
    wrap::Wrap,
};

/// What is to be exchanged on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapTerms {
    pub network: String,
    pub input: Address,
    pub output: Address,
    pub amount: U256,
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

/// An exchange that a source offers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapOffer {
    /// The source's name, as `GET /swap-sources` lists it.
    pub source: &'static str,
    pub terms: SwapTerms,
    pub input: U256,
    pub output: U256,
    /// Gas units of the exchange alone.
    pub gas: u64,
    /// The source's own note of the way that it found, given back when building.
    pub route: Vec<u8>,
}

/// Who exchanges, for whom, and how much may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapOrder {
    /// Who sends the transaction and holds the input.
    pub payer: Address,
    pub recipient: Address,
    /// The least output of an exact input, the most input of an exact output.
    pub limit: U256,
    /// Unix seconds.
    pub deadline: u64,
}

/// The transaction of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapCall {
    /// Who must be allowed to take the input; `None` where nobody need be.
    pub spender: Option<Address>,
    pub call: Call,
}

/// Why a source does not exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwapError {
    /// The source has no way between the two currencies, or not enough of them.
    #[error("no route")]
    NoRoute,
    #[error("swap source unavailable: {0}")]
    Unavailable(String),
}

/// An on-chain exchange or an aggregator of them.
#[async_trait]
pub trait SwapSource: Send + Sync {
    /// As in `GET /swap-sources`.
    fn name(&self) -> &'static str;
    /// Whether it works on a network at all.
    fn serves(&self, network: &str) -> bool;
    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError>;
    /// What the way of an earlier offer of its own gives for another amount of the same currencies,
    /// without a look at other ways.
    async fn again(&self, _offer: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.offer(terms).await
    }
    /// The transaction of an offer of its own.
    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError>;
}

/// Whether the offer itself keeps to the order's limit.
fn within(offer: &SwapOffer, order: &SwapOrder) -> Result<(), SwapError> {
    let kept = if offer.terms.exact_input {
        order.limit <= offer.output
    } else {
        order.limit >= offer.input
    };
    if kept {
        return Ok(());
    }
    Err(SwapError::Unavailable(
        "the offer is beyond the limit".to_owned(),
    ))
}
