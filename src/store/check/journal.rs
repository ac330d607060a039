//! Checks the journal's rows.

use vm::protocol::signature::Signature;

use super::Check;
use crate::store::{
    StoreError,
    rows::{Row, consumption, entry, evidence, slot, void},
};

impl Check<'_> {
    pub(super) async fn journal(&mut self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Entry(statement, entry) => self.entry(statement, entry).await,
            Row::Slot { holder, .. } => {
                let why = format!("it is held by {holder}, which does not stand");
                self.demand(entry::key(holder), why, |_| true).await
            }
            Row::Watch(chain, watch) => {
                let on = |fact: &entry::Fact| {
                    fact.chain == *chain && (fact.number, fact.hash) == (watch.number, watch.hash)
                };
                let why = "no statement rests on this block";
                self.demand(
                    entry::key(&watch.statement),
                    why,
                    |row| matches!(row, Row::Entry(_, entry) if entry.facts.iter().any(on)),
                )
                .await
            }
            Row::Void {
                statement, count, ..
            } => match count.checked_sub(1) {
                Some(before) => {
                    let why = "the void before it is missing";
                    self.demand(void::key(statement, before), why, |_| true)
                        .await
                }
                None => Ok(()),
            },
            Row::Claimed(_, of) => {
                let why = "its statement has no evidence";
                self.demand(evidence::key(&of.statement, of.at), why, |_| true)
                    .await
            }
            Row::About(about) => self.about(&about.statement).await,
            Row::Signature {
                digest,
                signer,
                signature,
            } => {
                let by = Signature::from_bytes(signature).and_then(|made| made.recover(digest));
                if by.ok() != Some(*signer) {
                    self.error("it is not the signer's");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks that what a transaction leads to was signed: it stands, or is void.
    async fn about(&mut self, statement: &str) -> Result<(), StoreError> {
        if self.store.read(&void::key(statement, 0)).await?.is_some() {
            return Ok(());
        }
        let why = format!("{statement} was never signed");
        self.demand(entry::key(statement), why, |_| true).await
    }

    async fn entry(&mut self, statement: &str, entry: &entry::Entry) -> Result<(), StoreError> {
        if let Some(name) = &entry.slot {
            let why = format!("it does not hold its slot {name}");
            self.demand(
                slot::key(name),
                why,
                |row| matches!(row, Row::Slot { holder, .. } if holder == statement),
            )
            .await?;
        }
        for consumed in &entry.consumes {
            // A void statement shared it, and the void of an older version freed it for both.
            if self.freed.contains(&consumed.what) {
                continue;
            }
            let why = format!("what it consumes is not its own: {}", consumed.what);
            self.demand(
                consumption::key(&consumed.what),
                why,
                |row| matches!(row, Row::Consumption { by, .. } if *by == consumed.by),
            )
            .await?;
        }
        Ok(())
    }
}
