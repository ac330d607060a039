//! What currencies are worth. Prices are integers with 18 decimals; there is no price rather than an
//! old or a doubtful one.

mod bounded;
mod cached;
mod chainlink;
mod feed;
mod peg;
mod prices;
mod pyth;

use alloy::primitives::U256;
use async_trait::async_trait;

use crate::market::Currency;

pub use prices::{FeedError, Prices, SPREAD};

/// Dollars per whole unit of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// USD with 18 decimals. Never zero.
    pub usd: U256,
    /// When the source observed it, unix seconds.
    pub at: u64,
}

/// Why there is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// Nobody is asked for this currency's price.
    #[error("no price source for {0}")]
    Unknown(String),
    /// The sources gave nothing that can be believed now.
    #[error("no price of {currency}: {why}")]
    Unavailable { currency: String, why: String },
}

/// Tells prices.
#[async_trait]
pub trait PriceSource: Send + Sync {
    /// The price of one whole unit at `now` (unix seconds).
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError>;
}
