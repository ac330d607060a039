//! Forgets what is old: dead deliveries, and events that nobody needs any more.

use super::WebhookError;
use crate::store::{
    Batch, Expect, Key, Range, Store,
    requests::Requests,
    rows::{self, DEAD, MARK, dead::Dead},
};

/// Milliseconds that events and dead deliveries are kept.
pub const KEPT: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Rows looked at, and commits made, at a time.
const PAGE: usize = 256;

/// Rows that were deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub events: u64,
    pub dead: u64,
}

/// Deletes dead deliveries and events that are older than [`KEPT`] at `now` (unix milliseconds). The
/// newest event stays, and so do those that a follower has not come to or a delivery leads to.
pub async fn prune(requests: &Requests, now: u64) -> Result<Pruned, WebhookError> {
    let old = now.saturating_sub(KEPT);
    Ok(Pruned {
        dead: dead(&**requests.store(), old).await?,
        events: events(requests, old).await?,
    })
}

async fn dead(store: &dyn Store, old: u64) -> Result<u64, WebhookError> {
    let mut range = Range {
        kind: DEAD,
        prefix: Vec::new(),
        after: None,
        limit: PAGE,
        reverse: false,
    };
    let mut count = 0;
    loop {
        let page = store.scan(range.clone()).await?;
        let Some((last, _)) = page.last() else {
            return Ok(count);
        };
        range.after = Some(last.name.clone());
        for (key, bytes) in &page {
            if Dead::decode(bytes)?.at < old {
                // Somebody may have it sent again just now.
                let same = Batch::new().expect(key.clone(), Expect::Equals(bytes.clone()));
                store.commit(same.delete(key.clone())).await?;
                count += 1;
            }
        }
    }
}

async fn events(requests: &Requests, old: u64) -> Result<u64, WebhookError> {
    let store = &**requests.store();
    let end = done(store)
        .await?
        .min(requests.told().borrow().saturating_sub(1));
    let (mut after, mut count) = (0, 0);
    loop {
        let page = requests.events(after, PAGE).await?;
        for (number, event) in &page {
            if event.at >= old || *number > end {
                return Ok(count);
            }
            let mut batch = Batch::new().delete(rows::event::key(*number));
            for key in event.key.iter().flat_map(|label| leading(label, *number)) {
                batch = batch.expect(key, Expect::Absent);
            }
            let outcome = store.commit(batch).await?;
            count += u64::from(outcome == crate::store::Outcome::APPLIED);
        }
        match page.last() {
            Some((last, _)) => after = *last,
            None => return Ok(count),
        }
    }
}

/// The rows that may lead to an event.
fn leading(label: &str, number: u64) -> [Key; 2] {
    [
        rows::delivery::key(label, number),
        rows::dead::key(label, number),
    ]
}

/// The last event that every follower has done with.
async fn done(store: &dyn Store) -> Result<u64, WebhookError> {
    let all = Range {
        kind: MARK,
        prefix: Vec::new(),
        after: None,
        limit: usize::MAX,
        reverse: false,
    };
    let mut least = None;
    for (_, bytes) in store.scan(all).await? {
        let mark = rows::mark::decode(&bytes)?;
        least = Some(least.map_or(mark, |least: u64| least.min(mark)));
    }
    Ok(least.unwrap_or_default())
}
