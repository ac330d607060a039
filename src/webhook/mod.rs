//! Delivers events to integrators' endpoints: each at least once, with the same id at every try, also across crashes
//! (guide: protocol 11.15).
//!
//! The worker follows the event log and keeps a mark. One commit moves the mark and writes a row per owed delivery
//! ([`fan`]). The worker sends a delivery while its row exists and deletes the row with the outcome ([`worker`]).
//! After a crash in between it sends the same event again.

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

/// The name of the worker's mark in the event log.
pub const FOLLOWER: &str = rows::mark::WEBHOOKS;
/// The most commands that wait for the worker.
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
    /// Another writer changed rows that only this module writes.
    #[error("another writer changed the deliveries")]
    Contested,
}

/// The dependencies that the functions of this module share.
pub struct WebhookContext {
    /// The requests whose status changes are the events.
    pub requests: Requests,
    pub integrators: Integrators,
    pub post: Arc<dyn Post>,
    pub reach: Reach,
    /// Unix milliseconds.
    pub clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Returns a random number, for the jitter.
    pub random: fn() -> u64,
}

/// Opens the operator's handle and the worker; the worker runs until its shutdown token is cancelled.
pub fn open(context: WebhookContext) -> (AdminHandle, Worker) {
    let context = Arc::new(context);
    let (commands, asked) = mpsc::channel(COMMANDS);
    let handle = AdminHandle::new(context.clone(), commands);
    (handle, Worker::new(context, asked))
}
