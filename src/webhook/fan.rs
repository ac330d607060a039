//! Turns events into deliveries: which endpoint is owed which event.

use std::collections::BTreeSet;

use super::{FOLLOWER, WebhookContext, WebhookError, fair_queue::Label, schedule::BACKLOG};
use crate::{
    request::event::Event,
    store::{
        Batch, Expect, Outcome, Store,
        rows::{self, dead::Dead, delivery::Delivery},
    },
};

/// Events in one commit.
const PAGE: usize = 512;

/// What one commit did.
#[derive(Debug, Default)]
pub struct Fanned {
    /// Up to which event the log is done with.
    pub mark: u64,
    /// What is owed: label and number of the event.
    pub owed: Vec<(String, u64)>,
    /// What was given up at once because too much is waiting.
    pub over: Vec<(String, u64)>,
    /// Since when it is owed, unix milliseconds.
    pub at: u64,
}

/// Up to which event the log has been followed.
pub async fn mark(store: &dyn Store) -> Result<u64, WebhookError> {
    let found = store.read(&rows::mark::key(FOLLOWER)).await?;
    let found = found.map(|bytes| rows::mark::decode(&bytes)).transpose()?;
    Ok(found.unwrap_or_default())
}

/// Follows the log by one page behind `mark`. When it returns, the rows of what is owed and the new mark are durable
/// together. For the endpoints of `full` nothing more may wait: their new deliveries are given up at once, and can be
/// replayed.
pub async fn further(
    context: &WebhookContext,
    mark: u64,
    full: &BTreeSet<Label>,
) -> Result<Fanned, WebhookError> {
    let events = context.requests.events(mark, PAGE).await?;
    let Some((last, _)) = events.last() else {
        return Ok(Fanned {
            mark,
            ..Fanned::default()
        });
    };
    let (last, at) = (*last, (context.clock)());
    let fresh = Delivery::fresh(at).encode()?;
    let owed = events
        .into_iter()
        .filter_map(|(number, event)| Some((owed(context, event)?, number)));
    let (over, owed): (Vec<_>, Vec<_>) = owed.partition(|(label, _)| full.contains(&**label));
    let key = rows::mark::key(FOLLOWER);
    let before = match mark {
        0 => Expect::Absent,
        _ => Expect::Equals(rows::mark::encode(mark)),
    };
    let batch = Batch::new()
        .expect(key.clone(), before)
        .put(key, rows::mark::encode(last));
    let batch = owed.iter().fold(batch, |batch, (label, number)| {
        batch.put(rows::delivery::key(label, *number), fresh.clone())
    });
    let dead = Dead {
        why: format!("{BACKLOG} deliveries wait already"),
        at,
        delivery: Delivery::fresh(at),
    };
    let dead = dead.encode()?;
    let batch = over.iter().fold(batch, |batch, (label, number)| {
        batch.put(rows::dead::key(label, *number), dead.clone())
    });
    match context.requests.store().commit(batch).await? {
        Outcome::Applied { .. } => Ok(Fanned {
            mark: last,
            owed,
            over,
            at,
        }),
        Outcome::Refused { .. } => Err(WebhookError::Contested),
    }
}

/// The label of the integrator that asked to be told of the event.
fn owed(context: &WebhookContext, event: Event) -> Option<String> {
    let label = event.key?;
    let book = context.integrators.book();
    book.get(&label)?.webhook.is_some().then_some(label)
}
