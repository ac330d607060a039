//! Deletes old dead deliveries and old events that nothing refers to.

use super::WebhookError;
use crate::{
    request::event::Event,
    store::{
        Batch, Expect, Key, Store,
        requests::Requests,
        rows::{self, DEAD, dead::Dead, mark::FOLLOWERS},
        walk::Walk,
    },
};

/// Milliseconds that events and dead deliveries are kept.
pub const KEPT: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The most rows per read and per commit.
const PAGE: usize = 256;

/// The numbers of deleted rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub events: u64,
    pub dead: u64,
}

/// Deletes dead deliveries and events that are older than [`KEPT`] at `now` (unix milliseconds). It keeps the newest
/// event, events that a follower has not reached, and events that a delivery refers to.
pub async fn prune(requests: &Requests, now: u64) -> Result<Pruned, WebhookError> {
    let old = now.saturating_sub(KEPT);
    Ok(Pruned {
        dead: dead(&**requests.store(), old).await?,
        events: events(requests, old).await?,
    })
}

async fn dead(store: &dyn Store, old: u64) -> Result<u64, WebhookError> {
    let (mut walk, mut count) = (Walk::of(store, DEAD), 0);
    loop {
        let page = walk.page().await?;
        if page.is_empty() {
            return Ok(count);
        }
        let (mut batch, mut some) = (Batch::new(), 0);
        for (key, bytes) in page {
            if Dead::decode(&bytes)?.at < old {
                // The operator may replay the delivery at this moment.
                batch = batch.remove(key, bytes);
                some += 1;
            }
        }
        count += commit(store, batch, some).await?;
    }
}

async fn events(requests: &Requests, old: u64) -> Result<u64, WebhookError> {
    let store = &**requests.store();
    let newest = *requests.newest_event().borrow();
    let end = done(store).await?.min(newest.saturating_sub(1));
    let (mut after, mut count) = (0, 0);
    loop {
        let page = requests.events(after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(count);
        };
        after = *last;
        let (mut batch, mut some, all) = (Batch::new(), 0, page.len());
        let needed = |(number, event): &(u64, Event)| event.at >= old || *number > end;
        let gone: Vec<_> = page.into_iter().take_while(|row| !needed(row)).collect();
        let complete = gone.len() == all;
        for (number, event) in gone {
            let label = event.key.as_deref();
            let leading = label
                .map(|label| leading(label, number))
                .into_iter()
                .flatten();
            let leading: Vec<_> = leading.collect();
            if !led(store, &leading).await? {
                let absent = |batch: Batch, key| batch.expect(key, Expect::Absent);
                batch = leading.into_iter().fold(batch, absent);
                batch = batch
                    .delete(rows::event::key(number))
                    .delete(rows::history::key(&event.request, number));
                some += 1;
            }
        }
        count += commit(store, batch, some).await?;
        if !complete {
            return Ok(count);
        }
    }
}

/// Deletes `some` rows in one commit and returns how many. When one of them was needed meanwhile, it deletes none;
/// the next run tries again.
async fn commit(store: &dyn Store, batch: Batch, some: u64) -> Result<u64, WebhookError> {
    if some == 0 {
        return Ok(0);
    }
    let applied = store.commit(batch).await?.is_applied();
    Ok(if applied { some } else { 0 })
}

async fn led(store: &dyn Store, leading: &[Key]) -> Result<bool, WebhookError> {
    for key in leading {
        if store.read(key).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The delivery rows that may refer to an event.
fn leading(label: &str, number: u64) -> [Key; 2] {
    [
        rows::delivery::key(label, number),
        rows::dead::key(label, number),
    ]
}

/// The last event that every follower has processed; 0 while one has not begun.
async fn done(store: &dyn Store) -> Result<u64, WebhookError> {
    let marks = FOLLOWERS.map(rows::mark::key);
    let mut least = u64::MAX;
    for found in store.read_all(&marks).await? {
        let mark = found.map(|bytes| rows::mark::decode(&bytes)).transpose()?;
        least = least.min(mark.unwrap_or_default());
    }
    Ok(least)
}
