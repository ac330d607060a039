//! What currencies were worth and how much of them was bought, for charts. For display only: prices are asked for
//! separately, and nothing that quotes, pays, signs or decides reads what is kept here.
//!
//! Callers cannot add to it: the daemon's clock decides when prices are sampled, and only currencies of the market
//! file are.

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
