//! What currencies were worth and how much of them was bought, for people who look at charts. For display only: it
//! asks prices of its own, and nothing that quotes, pays, signs or decides reads what it keeps.
//!
//! Nobody who asks adds to it: prices are sampled by the daemon's clock, and of currencies of the market file only.

pub mod candle;
pub mod history;
pub mod sampler;
pub mod tally;
pub mod trends;

use crate::store::{StoreError, rows::RowError};

pub use self::{history::History, sampler::Sampler, trends::Trends};
pub use crate::store::rows::candle::{Candle, Series, Step};

/// Why the history cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
}
