//! What currencies are worth. Prices are integers with 18 decimals. Where a price would be old or
//! doubtful, there is none.

mod bounded;
mod cached;
mod chainlink;
mod feed;
mod peg;
mod prices;
mod pyth;
pub mod settlement;

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::protocol::BASIS_POINTS;

use crate::market::Currency;

pub use bounded::moved;
pub use prices::{FeedError, Prices};
pub use settlement::{SettlementPrice, beside};

/// Dollars per whole unit of a currency: USD with 18 decimals, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// For people.
    pub usd: U256,
    /// The lowest and the highest that a source tells.
    pub low: U256,
    pub high: U256,
    /// What we count of what we take: the lowest, less what age and volatility make uncertain.
    pub least: U256,
    /// What we count of what we give: the highest, and as much more.
    pub most: U256,
    /// When the oldest source observed it, unix seconds.
    pub at: u64,
}

/// What prices are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How far a currency's feeds may be apart, in basis points.
    pub spread: u32,
    /// Two independent sources are needed, and a feed for every peg.
    pub independent: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            spread: 200,
            independent: false,
        }
    }
}

impl Price {
    /// One that nobody doubts.
    pub fn exact(usd: U256, at: u64) -> Self {
        Self {
            usd,
            low: usd,
            high: usd,
            least: usd,
            most: usd,
            at,
        }
    }

    /// Whether two currencies are worth the same by every source, but for `bps` basis points.
    pub fn agrees(&self, other: &Self, bps: u32) -> bool {
        if (self.low, self.high) == (other.low, other.high) {
            return true;
        }
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        let apart = (high - low).saturating_mul(U256::from(BASIS_POINTS));
        apart <= low.saturating_mul(U256::from(bps))
    }
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
