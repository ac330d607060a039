//! Whether a store is whole: every row can be read, and what rows say of each other is so.
//!
//! Meant for a store that nobody writes to: rows that change meanwhile look like defects.

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

/// Defects that are told one by one; all are counted.
const TOLD: usize = 100;

/// What a store holds and what is wrong with it. Shown as lines: a count per kind, then defects.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows of each kind that has any, by the kind's name.
    pub counts: Vec<(&'static str, u64)>,
    /// The first ones.
    pub told: Vec<Defect>,
    /// How many there are.
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
        for defect in &self.told {
            writeln!(out, "DEFECT {defect}")?;
        }
        let rows: u64 = self.counts.iter().map(|(_, count)| count).sum();
        write!(out, "{rows} rows, {} defects", self.defects)
    }
}

/// Checks every row of `store`.
pub async fn check(store: &dyn Store) -> Result<Report, StoreError> {
    let mut desk = Check {
        store,
        freed: freed(store).await?,
        digests: HashSet::new(),
        complete: summaries::are_complete(store).await.unwrap_or_default(),
        kind: None,
        report: Report::default(),
        complaints: Vec::new(),
    };
    let mut walk = Walk::new(store);
    loop {
        let page = walk.page().await?;
        if page.is_empty() {
            return Ok(desk.report);
        }
        for (key, value) in page {
            desk.row(key, &value).await?;
        }
    }
}

/// What void statements had consumed: it may be free, or somebody else's.
async fn freed(store: &dyn Store) -> Result<HashSet<String>, StoreError> {
    let (mut walk, mut freed) = (Walk::of(store, VOID), HashSet::new());
    loop {
        let page = walk.page().await?;
        if page.is_empty() {
            return Ok(freed);
        }
        for (key, value) in page {
            if let Ok(Row::Void { void, .. }) = Row::decode(&key, &value) {
                freed.extend(
                    void.entry
                        .consumes
                        .into_iter()
                        .map(|consumed| consumed.what),
                );
            }
        }
    }
}

/// The check under way.
struct Check<'a> {
    store: &'a dyn Store,
    freed: HashSet<String>,
    /// Of integrators' keys so far.
    digests: HashSet<[u8; 32]>,
    /// Every request has a summary, the store says.
    complete: bool,
    report: Report,
    /// Of the row at hand; `None` for one of no kind.
    kind: Option<&'static RowKind>,
    /// About the row at hand.
    complaints: Vec<String>,
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
            Err(error) => self.complain(error.to_string()),
        }
        for why in std::mem::take(&mut self.complaints) {
            self.report.defects += 1;
            if self.report.told.len() < TOLD {
                let key = key.clone();
                self.report.told.push(Defect { key, why });
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
                    self.complain("nobody follows under this name");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn integrator(&mut self, label: &str, integrator: &Integrator) {
        if integrator.label != label {
            self.complain(format!("it is {}", integrator.label));
        }
        for key in &integrator.keys {
            if !self.digests.insert(key.digest) {
                let shown = alloy::hex::encode(&key.digest[..4]);
                self.complain(format!("key {shown} stands there twice"));
            }
        }
    }

    /// Somebody who is known has asked to be told of the event.
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

    /// Whether the table of kinds says that rows like the one at hand lead to those of `kind`.
    fn refers(&self, kind: Kind) -> bool {
        self.kind.is_some_and(|own| own.refers.contains(&kind))
    }

    fn complain(&mut self, why: impl Into<String>) {
        self.complaints.push(why.into());
    }

    /// Complains unless a row is under `key` that `fits`. One that cannot be read has a complaint of
    /// its own.
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
            self.complain(why);
        }
        Ok(())
    }
}
