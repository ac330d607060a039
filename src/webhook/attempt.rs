//! One try of one delivery: reads its row, sends the request, and says what to record.

use super::{
    WebhookContext, WebhookError,
    delivery_request::{Content, DeliveryRequest},
    fair_queue::Turn,
    queue::Ended,
    schedule::{self, Next, Reply},
};
use crate::store::rows::{
    self, DEAD,
    dead::Dead,
    delivery::{Delivery, Try},
};

/// The change of the row after a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Delivered,
    Again(Delivery),
    Dead(Dead),
}

/// How a try ended.
#[derive(Debug)]
pub enum Tried {
    /// The row is gone, so there is nothing to deliver.
    Gone,
    Unread(WebhookError),
    Made(Ended, Change),
}

/// Makes the try. The caller records the change.
pub async fn make(context: &WebhookContext, turn: &Turn) -> Tried {
    match tried(context, turn).await {
        Ok(Some((ended, change))) => Tried::Made(ended, change),
        Ok(None) => Tried::Gone,
        Err(error) => Tried::Unread(error),
    }
}

async fn tried(
    context: &WebhookContext,
    turn: &Turn,
) -> Result<Option<(Ended, Change)>, WebhookError> {
    let store = context.requests.store();
    let key = rows::delivery::key(&turn.label, turn.number);
    let Some(bytes) = store.read(&key).await? else {
        return Ok(None);
    };
    let mut delivery = Delivery::decode(&bytes)?;
    let now = (context.clock)();
    if let Some(why) = schedule::too_old(delivery.since, now) {
        return Ok(Some(given_up(delivery, why, now)));
    }
    let key = rows::event::key(turn.number);
    let delivery_request = match store.read(&key).await? {
        None => Err("the event is gone".to_owned()),
        Some(bytes) => {
            let (number, event) = rows::event::row(&key, &bytes)?;
            let integrators = context.integrators.all();
            let to = integrators.get(&*turn.label).map(AsRef::as_ref);
            let content = Content {
                number,
                body: event.body(true),
                given_up: newest_dead(context, &turn.label).await?,
            };
            DeliveryRequest::write(to, content, now, context.reach)
        }
    };
    let reply = match delivery_request {
        Ok(delivery_request) => context.post.send(delivery_request, now).await,
        Err(why) => Reply::Barred(why),
    };
    let at = (context.clock)();
    let took = at.saturating_sub(now);
    delivery.tries.push(Try {
        at: now,
        took,
        said: schedule::said(&reply),
    });
    let next = schedule::after(&reply, delivery.tries.len(), at, (context.random)());
    Ok(Some(outcome(delivery, (&reply, next), at, took)))
}

/// The number of the newest dead delivery of `label`.
pub(super) async fn newest_dead(
    context: &WebhookContext,
    label: &str,
) -> Result<Option<u64>, WebhookError> {
    let newest = rows::delivery::newest(DEAD, label);
    let found = context.requests.store().scan(newest).await?;
    let number = found
        .first()
        .and_then(|(key, _)| rows::delivery::parts(&key.name));
    Ok(number.map(|(_, number)| number))
}

/// Ends a delivery without sending it.
fn given_up(delivery: Delivery, why: String, at: u64) -> (Ended, Change) {
    let ended = Ended {
        at,
        took: 0,
        failure: Some(why.clone()),
        quiet_until: 0,
    };
    (ended, Change::Dead(Dead { why, at, delivery }))
}

fn outcome(
    mut delivery: Delivery,
    (reply, next): (&Reply, Next),
    at: u64,
    took: u64,
) -> (Ended, Change) {
    let quiet_until = match (reply, &next) {
        // A receiver that asks for a pause gets the whole pause.
        (Reply::Status(_, Some(asked)), Next::Again(_)) => (*asked).min(at + schedule::LONGEST),
        _ => 0,
    };
    let failure = (next != Next::Delivered).then(|| schedule::said(reply));
    let change = match next {
        Next::Delivered => Change::Delivered,
        Next::Again(due) => {
            delivery.due = due;
            Change::Again(delivery)
        }
        Next::Dead(why) => Change::Dead(Dead { why, at, delivery }),
    };
    let ended = Ended {
        at,
        took,
        failure,
        quiet_until,
    };
    (ended, change)
}
