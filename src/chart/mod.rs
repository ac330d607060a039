//! Price history and purchase volume of currencies, for charts. For display only: quotes, payments, signatures and
//! decisions use prices of their own and never read these.
//!
//! Callers cannot add data: the daemon's clock triggers the samples, and only currencies of the market file have any.

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
