//! Builds the commits that record a statement and that void one.

use std::collections::BTreeSet;

use super::{JournalError, halts};
use crate::{
    attest::{
        claim::MOST_ITEMS,
        evidence,
        statement::{Consumption, Statement, is_freed, is_payment},
    },
    store::{
        Batch, Expect,
        rows::{
            about, consumption,
            entry::{self, Consumed, Entry, Shown},
            halt, slot, watch,
        },
    },
};

/// Records a statement, or completes the recorded entry `known`, which comes with its row.
pub(super) fn recording(
    statement: &Statement,
    known: Option<(Entry, Vec<u8>)>,
    now: u64,
) -> Result<Batch, JournalError> {
    let key = entry::key(&statement.key);
    let (before, row) = known.unzip();
    let mut batch = Batch::new();
    let chains = statement.facts.iter().map(|fact| &fact.chain);
    let chains: BTreeSet<_> = chains.chain(&statement.chains).collect();
    for chain in chains {
        batch = batch.expect(halt::key(chain.as_str()), Expect::Absent);
    }
    batch = batch.expect(key.clone(), Expect::unchanged(row));
    for other in &statement.excludes {
        batch = batch.expect(entry::key(other), Expect::Absent);
    }
    if let Some(slot) = &statement.slot {
        batch = batch.claim(slot::key(slot), slot::encode(&statement.key));
    }
    let Some(before) = before else {
        let entry = halts::entry_of(statement, now);
        batch = claiming(batch, &statement.consumes);
        for what in &statement.free {
            batch = batch.expect(consumption::key(what), Expect::Absent);
        }
        for only in &statement.only {
            let by = consumption::encode(&only.by);
            batch = batch.expect(consumption::key(&only.what), Expect::AbsentOrEquals(by));
        }
        return watching(batch, statement, entry);
    };
    let entry = halts::entry_of(statement, before.at);
    let held = payments(&before);
    let shown = payments(&entry);
    let known = before.shown.iter().any(|known| known.payments == shown);
    if known || shown.iter().all(|payment| held.contains(payment)) {
        return Ok(batch);
    }
    // The first payment that a caller shows serves a statement that needed none when it was signed.
    if held.is_empty() {
        batch = claiming(batch, &statement.consumes);
        return watching(batch, statement, entry);
    }
    let own = statement.own;
    let like = before.shown.iter().filter(|known| known.own == own);
    let taken: usize = like.map(|known| known.payments.len()).sum();
    if taken + shown.len() > MOST_SHOWN {
        return Ok(batch);
    }
    let mut next = before;
    next.shown.push(Shown {
        payments: shown,
        own,
    });
    let new = entry.facts.iter().filter(|fact| !next.facts.contains(fact));
    let new: Vec<_> = new.cloned().collect();
    next.facts.extend(new);
    watching(batch, statement, next)
}

/// The journal keeps at most this many further payments of a statement: so many of the solver's own, and so many of
/// others.
const MOST_SHOWN: usize = 64;

fn claiming(batch: Batch, consumes: &[Consumption]) -> Batch {
    consumes.iter().fold(batch, |batch, consumption| {
        let by = consumption::encode(&consumption.by);
        batch.claim(consumption::key(&consumption.what), by)
    })
}

/// The most transactions by which a statement is found: no claim names more inputs and refunds.
const MOST_READ: usize = 2 * MOST_ITEMS;

/// Has the statement found by each transaction that was read for it. Nothing deletes these rows: a void statement is
/// found, too.
fn finding(batch: Batch, statement: &Statement) -> Batch {
    let consumed = statement.consumes.iter().map(|one| &one.what);
    let payments = consumed.filter(|what| is_payment(what));
    let named = payments.chain(&statement.slot);
    let own = named.filter_map(|name| transaction_of(name));
    let all: BTreeSet<_> = own.chain(evidence::transactions()).collect();
    let all = all.iter().take(MOST_READ);
    all.fold(batch, |batch, (chain, transaction)| {
        let key = about::key(chain, transaction, &statement.key);
        batch.put(key, about::encode())
    })
}

/// The chain and the transaction in the name of a payment or of the slot of deposits:
/// `<kind>/<chain>/<transaction>/<which>`.
fn transaction_of(name: &str) -> Option<(String, String)> {
    let (_, rest) = name.split_once('/')?;
    let (rest, _) = rest.rsplit_once('/')?;
    let (chain, transaction) = rest.rsplit_once('/')?;
    Some((chain.to_owned(), transaction.to_owned()))
}

/// Stores `entry` under the statement's key, has it found, and watches its blocks.
fn watching(batch: Batch, statement: &Statement, entry: Entry) -> Result<Batch, JournalError> {
    let stated = |fact: &&entry::Fact| {
        let mut all = statement.facts.iter();
        all.any(|stated| halts::fact_of(stated) == **fact)
    };
    let early = statement.facts.iter().any(|fact| fact.early);
    let rows = entry.facts.iter().filter(stated);
    let batch = rows.fold(batch, |batch, fact| {
        let row = watch::encode(fact, early);
        batch.put(watch::key(fact, &statement.key), row)
    });
    let batch = finding(batch, statement);
    Ok(batch.put(entry::key(&statement.key), entry.encode()?))
}

/// The payments that an entry consumes.
fn payments(entry: &Entry) -> Vec<String> {
    let what = entry.consumes.iter().map(|consumed| &consumed.what);
    what.filter(|what| is_payment(what)).cloned().collect()
}

/// Makes `payments`, which the statement `key` was shown, serve it, and frees the payments that served it.
pub(super) fn serving(
    key: &str,
    (before, found): (&Entry, Vec<u8>),
    shown: &Shown,
) -> Result<Batch, JournalError> {
    let serving = &shown.payments;
    let by = || consumption::encode(key);
    let mut batch = Batch::new().expect(entry::key(key), Expect::Equals(found));
    let held = payments(before);
    for payment in held.iter().filter(|payment| !serving.contains(payment)) {
        let row_key = consumption::key(payment);
        batch = batch
            .expect(row_key.clone(), Expect::AbsentOrEquals(by()))
            .delete(row_key);
    }
    for payment in serving {
        batch = batch.claim(consumption::key(payment), by());
    }
    let mut next = before.clone();
    next.consumes.retain(|consumed| !is_payment(&consumed.what));
    next.consumes.extend(serving.iter().map(|what| Consumed {
        what: what.clone(),
        by: key.to_owned(),
    }));
    next.shown.retain(|known| known != shown);
    next.shown.push(Shown {
        payments: held,
        own: before.own,
    });
    next.own = shown.own;
    Ok(batch.put(entry::key(key), next.encode()?))
}

/// Deletes an entry with its slot, deposits and payments, if it still holds them. What else it consumes still serves
/// it: see [`is_freed`]. It is still found by its transactions.
pub(super) fn release(key: &str, entry: &Entry) -> Result<Batch, JournalError> {
    let mut batch = Batch::new().delete(entry::key(key));
    if let Some(slot) = &entry.slot {
        let row_key = slot::key(slot);
        batch = batch.expect(row_key.clone(), Expect::AbsentOrEquals(slot::encode(key)));
        batch = batch.delete(row_key);
    }
    let consumed = entry.consumes.iter();
    for freed in consumed.filter(|consumed| is_freed(&consumed.what)) {
        let row_key = consumption::key(&freed.what);
        let by = consumption::encode(&freed.by);
        batch = batch
            .expect(row_key.clone(), Expect::AbsentOrEquals(by))
            .delete(row_key);
    }
    Ok(entry
        .facts
        .iter()
        .fold(batch, |batch, fact| batch.delete(watch::key(fact, key))))
}
