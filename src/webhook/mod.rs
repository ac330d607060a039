//! Delivers events to integrators' endpoints: at least once each and with the same id at every try, whatever happens
//! to this process (guide: protocol 11.15).
//!
//! The worker follows the event log and keeps a mark. One commit moves the mark and writes a row for each delivery
//! that is owed ([`fan`]). A delivery is sent because its row exists, and the row goes when the outcome is recorded
//! ([`worker`]). After a crash in between, the worker sends the same event again.

pub mod admin;
mod attempt;
pub mod delivery_request;
pub mod fair_queue;
mod fan;
pub mod guard;
pub mod post;
mod prune;
pub mod queue;
mod record;
pub mod schedule;
pub mod sign;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;

use tokio::sync::mpsc;

use self::{admin::AdminHandle, guard::Reach, post::Post};
use crate::store::{
    StoreError,
    integrators::Integrators,
    requests::{Requests, RequestsError},
    rows::{self, RowError},
};

pub use self::worker::Worker;

/// The name of the mark.
pub const FOLLOWER: &str = rows::mark::WEBHOOKS;
/// Replays that may wait for the worker.
const COMMANDS: usize = 64;

/// Why deliveries cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// Rows that only this module writes have changed.
    #[error("somebody else writes deliveries")]
    Contested,
}

/// What the functions of this module share.
pub struct WebhookContext {
    /// The requests whose changes are the events.
    pub requests: Requests,
    pub integrators: Integrators,
    pub post: Arc<dyn Post>,
    pub reach: Reach,
    /// Unix milliseconds.
    pub clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Any random number, for the jitter.
    pub random: fn() -> u64,
}

/// The operator's handle, and the worker, which runs until it is told to stop.
pub fn open(context: WebhookContext) -> (AdminHandle, Worker) {
    let context = Arc::new(context);
    let (commands, asked) = mpsc::channel(COMMANDS);
    let handle = AdminHandle::new(context.clone(), commands);
    (handle, Worker::new(context, asked))
}
