//! Checks a store: every row must be readable, and rows must agree with each other.
//!
//! Only for a store that nothing writes to: rows that change meanwhile look like defects.

mod journal;
mod requests;
mod solver;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, fmt};

use super::{
    Key, Kind, Store, StoreError,
    rows::{self, Room, Row, RowKind, VOID},
    summaries,
    walk::Walk,
};
use crate::integrator::Integrator;

/// The most defects that a report lists; it counts all of them.
const MOST_LISTED: usize = 100;

/// The rows and defects of a store. [`fmt::Display`] prints a count per kind, then the defects.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of rows of each kind in the store, by the kind's name.
    pub counts: Vec<(&'static str, u64)>,
    /// The first defects.
    pub listed: Vec<Defect>,
    /// The number of all defects.
    pub defects: u64,
}

/// A row that cannot be read, or that another row contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    pub key: Key,
    pub why: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = rows::kind(self.key.kind).map_or("unknown", |kind| kind.name);
        let name = &self.key.name;
        match std::str::from_utf8(name)
            .ok()
            .filter(|name| printable(name))
        {
            Some(name) => write!(out, "{kind} {name}: {}", self.why),
            None => write!(out, "{kind} 0x{}: {}", alloy::hex::encode(name), self.why),
        }
    }
}

fn printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.counts {
            writeln!(out, "{kind:<12} {count:>10}")?;
        }
        for defect in &self.listed {
            writeln!(out, "DEFECT {defect}")?;
        }
        let rows: u64 = self.counts.iter().map(|(_, count)| count).sum();
        write!(out, "{rows} rows, {} defects", self.defects)
    }
}

/// Checks every row of `store`.
pub async fn check(store: &dyn Store) -> Result<Report, StoreError> {
    let mut check = Check {
        store,
        freed: freed(store).await?,
        digests: HashSet::new(),
        complete: summaries::are_complete(store).await.unwrap_or_default(),
        kind: None,
        report: Report::default(),
        errors: Vec::new(),
    };
    let mut walk = Walk::new(store);
    while let Some((key, value)) = walk.next().await? {
        check.row(key, &value).await?;
    }
    Ok(check.report)
}

/// What void statements consumed: it may be free, or serve another statement. Older versions freed all of it.
async fn freed(store: &dyn Store) -> Result<HashSet<String>, StoreError> {
    let (mut walk, mut freed) = (Walk::of(store, VOID), HashSet::new());
    while let Some((key, value)) = walk.next().await? {
        if let Ok(Row::Void { void, .. }) = Row::decode(&key, &value) {
            let consumed = void.entry.consumes.into_iter();
            freed.extend(consumed.map(|consumed| consumed.what));
        }
    }
    Ok(freed)
}

/// A running check.
struct Check<'a> {
    store: &'a dyn Store,
    freed: HashSet<String>,
    /// The digests of integrators' keys so far.
    digests: HashSet<[u8; 32]>,
    /// Whether the store records that every request has a summary.
    complete: bool,
    report: Report,
    /// The kind of the current row; `None` for an unknown kind.
    kind: Option<&'static RowKind>,
    /// The errors of the current row.
    errors: Vec<String>,
}

impl Check<'_> {
    async fn row(&mut self, key: Key, value: &[u8]) -> Result<(), StoreError> {
        self.kind = rows::kind(key.kind);
        let name = self.kind.map_or("unknown", |kind| kind.name);
        match self.report.counts.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => self.report.counts.push((name, 1)),
        }
        match Row::decode(&key, value) {
            Ok(row) => self.judge(&key, &row).await?,
            Err(error) => self.error(error.to_string()),
        }
        for why in std::mem::take(&mut self.errors) {
            self.report.defects += 1;
            if self.report.listed.len() < MOST_LISTED {
                let key = key.clone();
                self.report.listed.push(Defect { key, why });
            }
        }
        Ok(())
    }

    async fn judge(&mut self, key: &Key, row: &Row) -> Result<(), StoreError> {
        match self.kind.map(|kind| kind.room) {
            Some(Room::Journal) => self.journal(row).await,
            Some(Room::Requests) => self.requests(key, row).await,
            Some(Room::Solver) => self.solver(row).await,
            Some(Room::Events) => self.events(row).await,
            Some(Room::Other) | None => Ok(()),
        }
    }

    async fn events(&mut self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Event(number, event) => {
                self.request(&event.request).await?;
                let key = rows::history::key(&event.request, *number);
                self.demand(key, "its request does not lead to it", |_| true)
                    .await
            }
            Row::History { request, number } => {
                let why = format!("event {number} is none of its request");
                let of =
                    |row: &Row| matches!(row, Row::Event(_, event) if event.request == *request);
                self.demand(rows::event::key(*number), why, of).await
            }
            Row::Integrator(label, integrator) => {
                self.integrator(label, integrator);
                Ok(())
            }
            Row::Delivery { label, number, .. } | Row::Dead { label, number, .. } => {
                self.owed(label, *number).await
            }
            Row::Mark(name, _) => {
                if !rows::mark::FOLLOWERS.contains(&name.as_str()) {
                    self.error("nobody follows under this name");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn integrator(&mut self, label: &str, integrator: &Integrator) {
        if integrator.label != label {
            self.error(format!("it is {}", integrator.label));
        }
        for key in &integrator.keys {
            if !self.digests.insert(key.digest) {
                let shown = alloy::hex::encode(&key.digest[..4]);
                self.error(format!("key {shown} stands there twice"));
            }
        }
    }

    /// Checks that the event and its integrator exist.
    async fn owed(&mut self, label: &str, number: u64) -> Result<(), StoreError> {
        let why = format!("no event {number} is one of {label}");
        self.demand(
            rows::event::key(number),
            why,
            |row| matches!(row, Row::Event(_, event) if event.key.as_deref() == Some(label)),
        )
        .await?;
        let why = format!("no integrator is {label}");
        self.demand(rows::integrator::key(label), why, |_| true)
            .await
    }

    /// Whether the table of kinds says that rows of the current kind lead to rows of `kind`.
    fn refers(&self, kind: Kind) -> bool {
        self.kind.is_some_and(|own| own.refers.contains(&kind))
    }

    fn error(&mut self, why: impl Into<String>) {
        self.errors.push(why.into());
    }

    /// Adds the error `why` unless there is a row under `key` that `fits`. An unreadable row has an error of its own.
    async fn demand(
        &mut self,
        key: Key,
        why: impl Into<String>,
        fits: impl Fn(&Row) -> bool,
    ) -> Result<(), StoreError> {
        debug_assert!(self.refers(key.kind), "{:?}", (self.kind, key.kind));
        let fine = match self.store.read(&key).await? {
            None => false,
            Some(value) => Row::decode(&key, &value).map_or(true, |row| fits(&row)),
        };
        if !fine {
            self.error(why);
        }
        Ok(())
    }
}
