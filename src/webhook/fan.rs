//! Turns events into deliveries: each event goes to the endpoint of the integrator whose key quoted the request.

use std::collections::BTreeSet;

use super::{FOLLOWER, WebhookContext, WebhookError, fair_queue::Label, schedule::BACKLOG};
use crate::{
    request::event::Event,
    store::{
        Batch, Store,
        rows::{self, dead::Dead, delivery::Delivery},
    },
};

/// The most events per commit.
const PAGE: usize = 512;

/// The result of one commit.
#[derive(Debug, Default)]
pub struct Fanned {
    /// The log is processed up to this event.
    pub mark: u64,
    /// The new deliveries: label and event number.
    pub owed: Vec<(String, u64)>,
    /// Deliveries that were given up at once because too many wait: label and event number.
    pub given_up: Vec<(String, u64)>,
    /// Since when the deliveries are owed, in unix milliseconds.
    pub at: u64,
}

/// The event up to which the log is processed.
pub async fn mark(store: &dyn Store) -> Result<u64, WebhookError> {
    let found = store.read(&rows::mark::key(FOLLOWER)).await?;
    let found = found.map(|bytes| rows::mark::decode(&bytes)).transpose()?;
    Ok(found.unwrap_or_default())
}

/// Processes one page of the log after `mark`; one durable commit writes the new deliveries and the new mark. For the
/// endpoints of `full` it gives new deliveries up at once; the operator can replay them.
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
    let (given_up, owed): (Vec<_>, Vec<_>) = owed.partition(|(label, _)| full.contains(&**label));
    let before = (mark > 0).then(|| rows::mark::encode(mark));
    let batch = Batch::new().swap(rows::mark::key(FOLLOWER), before, rows::mark::encode(last));
    let batch = owed.iter().fold(batch, |batch, (label, number)| {
        batch.put(rows::delivery::key(label, *number), fresh.clone())
    });
    let dead = Dead {
        why: format!("{BACKLOG} deliveries wait already"),
        at,
        delivery: Delivery::fresh(at),
    };
    let dead = dead.encode()?;
    let batch = given_up.iter().fold(batch, |batch, (label, number)| {
        batch.put(rows::dead::key(label, *number), dead.clone())
    });
    if !context.requests.store().commit(batch).await?.is_applied() {
        return Err(WebhookError::Contested);
    }
    Ok(Fanned {
        mark: last,
        owed,
        given_up,
        at,
    })
}

/// The label of the integrator whose webhook gets the event.
fn owed(context: &WebhookContext, event: Event) -> Option<String> {
    let label = event.key?;
    let integrators = context.integrators.all();
    integrators.get(&label)?.webhook.is_some().then_some(label)
}
