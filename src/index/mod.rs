//! The index: what networks show of requests, kept as facts.
//!
//! - [`tail`]: one per network; follows the chain through two providers, block by block.
//! - [`submitted`]: looks for submitted transactions until they are found.
//! - [`mempool`]: one per network whose providers show waiting transactions; sees deposits before their block.
//! - [`confirm`]: asks the quorum; nothing is final before.
//! - [`tx_details`]: one per network; keeps transactions in full, for display.
//! - [`tail_states`]: what stops tails, and which chains are read. [`admin`]: what the operator asks and does.
//! - [`apply`]: how a seen deposit changes facts. [`recorder`]: writes facts and rows in one commit.
//!
//! Everything may happen twice: after a crash or a reorg blocks are read again.

pub mod admin;
mod again;
pub mod apply;
pub mod confirm;
#[cfg(test)]
pub mod fixtures;
mod listed;
mod looks;
pub mod mempool;
mod progress;
pub mod recorder;
pub mod submitted;
pub mod tail;
pub mod tail_states;
pub mod tx_details;

use tokio::sync::Notify;
use vm::ReadError;

use crate::store::{StoreError, by_way_of, requests::RequestsError, rows::RowError};

/// Why the index did not come further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// The provider's chain has nothing in common with what was indexed.
    #[error(
        "no common block with what was indexed: block {0} and all before differ; where the chain was \
         really reorged that deep, `intentd index rewind` reads it again"
    )]
    Foreign(u64),
    /// No second provider has read what the first one shows.
    #[error("no second provider confirms what the index would pass: {0}")]
    Unconfirmed(String),
    /// Another commit moved the cursor.
    #[error("the cursor was moved meanwhile")]
    Moved,
    /// Another tail took the network over.
    #[error("another tail follows this network")]
    Fenced,
}

by_way_of!(IndexError, RequestsError: StoreError, RowError);

/// Wakes a worker that waits for a network. It carries nothing.
#[derive(Debug, Default)]
pub struct Wakeup(Notify);

impl Wakeup {
    /// Makes the worker look now, or as soon as it waits the next time.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits until [`Self::wake`] is called; a call before counts, too.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}
