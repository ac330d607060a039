//! Deliveries in the store: records how tries ended, and reads what is still owed.

use super::{WebhookContext, WebhookError, attempt::Change, fair_queue::Label};
use crate::store::{
    Batch,
    rows::{self, DELIVERY, delivery::Delivery},
};

/// An ended try to be recorded.
#[derive(Clone, Debug)]
pub struct Record {
    pub label: Label,
    pub number: u64,
    pub change: Change,
}

/// Rows as (number, since, due), times in unix milliseconds.
pub type Rows = Vec<(u64, u64, u64)>;

/// Records how tries ended, durably, in one commit.
pub async fn write(context: &WebhookContext, records: &[Record]) -> Result<(), WebhookError> {
    let mut batch = Batch::new();
    for Record {
        label,
        number,
        change,
    } in records
    {
        let key = rows::delivery::key(label, *number);
        batch = match change {
            Change::Delivered => batch.delete(key),
            Change::Again(delivery) => batch.put(key, delivery.encode()?),
            Change::Dead(dead) => {
                let row = rows::dead::key(label, *number);
                batch.delete(key).put(row, dead.encode()?)
            }
        };
    }
    if batch.is_empty() {
        return Ok(());
    }
    let written = context.requests.store().commit(batch).await?;
    let applied = written.is_applied().then_some(());
    applied.ok_or(WebhookError::Contested)
}

/// Rows of `label` after event `after`.
pub async fn page(
    context: &WebhookContext,
    label: &str,
    after: u64,
    limit: usize,
) -> Result<Rows, WebhookError> {
    let range = rows::delivery::of(DELIVERY, label, after, limit);
    let mut read = Vec::new();
    for (key, bytes) in context.requests.store().scan(range).await? {
        if let Some((_, number)) = rows::delivery::parts(&key.name) {
            let Delivery { since, due, .. } = Delivery::decode(&bytes)?;
            read.push((number, since, due));
        }
    }
    Ok(read)
}
