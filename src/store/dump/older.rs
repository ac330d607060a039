//! An export of a store of format 1, row by row.
//!
//! | rows | what becomes of them |
//! |---|---|
//! | the journal's | carried over; what was called `fill/…` or `refund/…` is `outcome/…` now, so that it bars its opposite as it did |
//! | integrator | carried over |
//! | open, a lane's payments, reservation, settlement, delivery; claims with a payment that is not final, or that no statement covers | the import is refused: money is under way, and rows of the solver mean something else now |
//! | all others | left out and counted |
//!
//! An outcome never stood there under both names, since each barred the other. An export that has both all the
//! same is refused.

use std::collections::{BTreeMap, HashMap};

use alloy::primitives::{B256, Bytes};
use serde::Deserialize;

use super::{DumpError, Imported};
use crate::store::{
    Key, Kind, Store, StoreError,
    rows::{
        self, KINDS, RowError,
        claim::Stage,
        consumption,
        entry::{self, Consumed, Fact},
        halt, slot, void,
    },
    walk::{Stored, Walk},
};

/// The format byte that all rows read here had.
const FORMAT: u8 = 1;
/// The last kind that there was.
const LAST: Kind = rows::MARK;

/// An entry as format 1 has it.
#[derive(Deserialize)]
struct Entry {
    digest: B256,
    at: u64,
    slot: Option<String>,
    consumes: Vec<Consumed>,
    facts: Vec<Fact>,
    payload: Bytes,
}

#[derive(Deserialize)]
struct Void {
    entry: Entry,
    why: String,
    at: u64,
}

#[derive(Deserialize)]
struct Halt {
    why: String,
    at: u64,
}

/// Of a claim, what tells whether it is finished.
#[derive(Deserialize)]
struct Claim {
    legs: Vec<Leg>,
}

#[derive(Deserialize)]
struct Leg {
    deposit: B256,
    stage: Stage,
}

impl Entry {
    fn now(self) -> entry::Entry {
        let consumes = self.consumes.into_iter().map(|one| Consumed {
            by: renamed(&one.by),
            what: one.what,
        });
        entry::Entry {
            digest: self.digest,
            at: self.at,
            slot: self.slot,
            consumes: consumes.collect(),
            facts: self.facts,
            own: false,
            shown: Vec::new(),
            payload: self.payload,
        }
    }
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct Older {
    /// Carried over.
    rows: u64,
    /// Of those, entries of the journal.
    entries: u64,
    /// How many, of each statement that has any.
    voids: HashMap<String, u32>,
    /// Deposits that the solver paid for.
    paid: Vec<B256>,
    unfinished: BTreeMap<Kind, u64>,
    left_out: BTreeMap<Kind, u64>,
}

impl Older {
    /// The row as it is now; `None` if it is not carried over.
    pub(super) fn row(&mut self, (key, value): Stored) -> Result<Option<Stored>, RowError> {
        let row = match key.kind {
            rows::ENTRY => {
                self.entries += 1;
                let entry: Entry = rows::decode("entry", FORMAT, &value)?;
                (
                    entry::key(&renamed(text(&key.name)?)),
                    entry.now().encode()?,
                )
            }
            rows::CONSUMPTION => {
                let by = renamed(&consumption::decode(&value)?);
                (key, consumption::encode(&by))
            }
            rows::SLOT => (key, slot::encode(&renamed(&slot::decode(&value)?))),
            rows::WATCH => (watched(&key.name)?, value),
            rows::VOID => self.void(&key.name, &value)?,
            rows::HALT => {
                let Halt { why, at } = rows::decode("halt", FORMAT, &value)?;
                let halt = halt::Halt {
                    why,
                    at,
                    ..halt::Halt::default()
                };
                (key, halt.encode()?)
            }
            rows::SIGNATURE | rows::INTEGRATOR => (key, value),
            _ => return self.leave(&key, &value).map(|()| None),
        };
        self.rows += 1;
        Ok(Some(row))
    }

    /// A statement's voids are numbered from zero on: those of its two names are numbered together now.
    fn void(&mut self, name: &[u8], value: &[u8]) -> Result<Stored, RowError> {
        let wrong = || RowError::new("void", "its name is not one of this kind");
        let (statement, _) = name.split_last_chunk::<4>().ok_or_else(wrong)?;
        let statement = renamed(text(statement.strip_suffix(&[0]).ok_or_else(wrong)?)?);
        let old: Void = rows::decode("void", FORMAT, value)?;
        let void = void::Void {
            entry: old.entry.now(),
            why: old.why,
            at: old.at,
        };
        let count = self.voids.entry(statement.clone()).or_default();
        let key = void::key(&statement, *count);
        *count += 1;
        Ok((key, void.encode()?))
    }

    fn leave(&mut self, key: &Key, value: &[u8]) -> Result<(), RowError> {
        let unfinished = match key.kind {
            rows::OPEN | rows::RESERVATION | rows::SETTLEMENT | rows::DELIVERY => true,
            rows::LANE => key.name.contains(&0),
            rows::CLAIM => {
                let claim: Claim = rows::decode_json("claim", FORMAT, value)?;
                let is = |wanted: Stage| move |leg: &&Leg| leg.stage == wanted;
                let paid = claim.legs.iter().filter(is(Stage::Final));
                self.paid.extend(paid.map(|leg| leg.deposit));
                let mut legs = claim.legs.iter();
                legs.any(|leg| !matches!(leg.stage, Stage::Final | Stage::Failed))
            }
            kind if kind > LAST => return Err(RowError::new("foreign", "unknown kind")),
            _ => false,
        };
        let counts = match unfinished {
            true => &mut self.unfinished,
            false => &mut self.left_out,
        };
        *counts.entry(key.kind).or_default() += 1;
        Ok(())
    }

    /// Checks, behind the last row, that what was carried over into `store` is all that counts.
    pub(super) async fn end(mut self, store: &dyn Store) -> Result<Imported, DumpError> {
        for deposit in &self.paid {
            let key = consumption::key(&format!("deposit/{deposit}"));
            if store.read(&key).await?.is_none() {
                *self.unfinished.entry(rows::CLAIM).or_default() += 1;
            }
        }
        if !self.unfinished.is_empty() {
            return Err(DumpError::Unfinished(listed(&named(&self.unfinished))));
        }
        match count(store, rows::ENTRY).await? == self.entries {
            true => Ok(Imported {
                rows: self.rows,
                left_out: named(&self.left_out),
            }),
            false => Err(DumpError::Opposites),
        }
    }
}

/// The name that a statement has now.
fn renamed(statement: &str) -> String {
    let mut old = ["fill/", "refund/"].into_iter();
    match old.find_map(|old| statement.strip_prefix(old)) {
        Some(subject) => format!("outcome/{subject}"),
        None => statement.to_owned(),
    }
}

fn watched(name: &[u8]) -> Result<Key, RowError> {
    let wrong = || RowError::new("watch", "its name is not one of this kind");
    let zero = name.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    let (place, statement) = name.split_at_checked(zero + 9).ok_or_else(wrong)?;
    let statement = renamed(text(statement)?);
    Ok(Key::new(
        rows::WATCH,
        [place, statement.as_bytes()].concat(),
    ))
}

fn text(name: &[u8]) -> Result<&str, RowError> {
    std::str::from_utf8(name).map_err(|error| RowError::new("journal", error))
}

async fn count(store: &dyn Store, kind: Kind) -> Result<u64, StoreError> {
    let (mut walk, mut count) = (Walk::of(store, kind), 0);
    while walk.next().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn named(counts: &BTreeMap<Kind, u64>) -> Vec<(&'static str, u64)> {
    let kinds = KINDS.iter();
    let named = kinds.filter_map(|one| Some((one.name, *counts.get(&one.kind)?)));
    named.collect()
}

/// `open 2, settlement 1`
pub(super) fn listed(counts: &[(&'static str, u64)]) -> String {
    let counts = counts.iter().map(|(kind, count)| format!("{kind} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}
