//! The commits that record a statement and that take it back.

use super::{JournalError, halts};
use crate::{
    attest::statement::Statement,
    store::{
        Batch, Expect,
        rows::{
            consumption,
            entry::{self, Consumed, Entry},
            halt, slot, watch,
        },
    },
};

/// The commit that records a statement, or completes it if it stands as `known`.
pub(super) fn recording(
    statement: &Statement,
    known: Option<Vec<u8>>,
    now: u64,
) -> Result<Batch, JournalError> {
    let key = entry::key(&statement.key);
    let before = known.as_deref().map(Entry::decode).transpose()?;
    let mut batch = Batch::new();
    let chains = statement.facts.iter().map(|fact| &fact.chain);
    for chain in chains.chain(&statement.chains) {
        batch = batch.expect(halt::key(chain.as_str()), Expect::Absent);
    }
    batch = batch.expect(key.clone(), known.map_or(Expect::Absent, Expect::Equals));
    for other in &statement.excludes {
        batch = batch.expect(entry::key(other), Expect::Absent);
    }
    if let Some(slot) = &statement.slot {
        batch = batch.claim(slot::key(slot), slot::encode(&statement.key));
    }
    for consumption in &statement.consumes {
        let by = consumption::encode(&consumption.by);
        batch = batch.claim(consumption::key(&consumption.what), by);
    }
    let entry = match before {
        None => halts::entry_of(statement, now),
        Some(before) => {
            let entry = halts::entry_of(statement, before.at);
            let known = |consumed| before.consumes.contains(consumed);
            if entry.consumes.iter().all(known) {
                return Ok(batch);
            }
            batch = forget(batch, &statement.key, (&before, &entry));
            entry
        }
    };
    for (fact, stated) in entry.facts.iter().zip(&statement.facts) {
        let row = watch::encode(fact, stated.early);
        batch = batch.put(watch::key(fact, &statement.key), row);
    }
    Ok(batch.put(key, entry.encode()?))
}

/// Frees what the statement `key` held before and holds no more: payments, and the blocks that they
/// were in.
fn forget(batch: Batch, key: &str, (before, after): (&Entry, &Entry)) -> Batch {
    let freed = |consumed: &&Consumed| !after.consumes.contains(consumed);
    let batch = before
        .consumes
        .iter()
        .filter(freed)
        .fold(batch, |batch, consumed| {
            let place = consumption::key(&consumed.what);
            let by = consumption::encode(&consumed.by);
            batch
                .expect(place.clone(), Expect::AbsentOrEquals(by))
                .delete(place)
        });
    let gone = before.facts.iter();
    let gone = gone.filter(|fact| !after.facts.contains(fact));
    gone.fold(batch, |batch, fact| batch.delete(watch::key(fact, key)))
}

/// The commit that deletes an entry with everything that it holds, if it still holds it.
pub(super) fn release(key: &str, entry: &Entry) -> Result<Batch, JournalError> {
    let mut batch = Batch::new().delete(entry::key(key));
    if let Some(slot) = &entry.slot {
        let place = slot::key(slot);
        batch = batch.expect(place.clone(), Expect::AbsentOrEquals(slot::encode(key)));
        batch = batch.delete(place);
    }
    for consumption in &entry.consumes {
        let place = consumption::key(&consumption.what);
        let by = consumption::encode(&consumption.by);
        batch = batch
            .expect(place.clone(), Expect::AbsentOrEquals(by))
            .delete(place);
    }
    Ok(entry
        .facts
        .iter()
        .fold(batch, |batch, fact| batch.delete(watch::key(fact, key))))
}
