//! Halted chains, and the blocks under signed statements that are still watched.

use vm::types::{Block, ChainId};

use super::{Entry, Halt, Journal, JournalError};
use crate::{
    attest::statement::{Fact, Statement},
    store::{
        Batch, Expect, Key, Outcome, Range,
        rows::{self, entry, halt, watch},
    },
};

/// A block that a signed statement depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Where to go on after this one.
    pub cursor: Key,
    /// The statement's key.
    pub statement: String,
    pub block: Block,
    /// It was not final by the chain's own rule when the statement was signed, and has not been since.
    pub early: bool,
}

impl Journal {
    /// Stops signing about `chain`, durably; `false` if it was stopped already. The new reason is then added to the
    /// halt: the operator clears only listed reasons.
    pub async fn halt(&self, chain: &ChainId, why: &str, now: u64) -> Result<bool, JournalError> {
        let key = halt::key(chain.as_str());
        loop {
            let before = self.store.read(&key).await?;
            let (row, expected) = match &before {
                None => {
                    let halt = Halt {
                        why: why.to_owned(),
                        at: now,
                        ..Halt::default()
                    };
                    (halt.encode()?, Expect::Absent)
                }
                Some(bytes) => {
                    show(chain, true);
                    let Some(halt) = Halt::decode(bytes)?.with(why) else {
                        return Ok(false);
                    };
                    (halt.encode()?, Expect::Equals(bytes.clone()))
                }
            };
            let batch = Batch::new().expect(key.clone(), expected);
            let put = batch.put(key.clone(), row);
            if self.store.commit(put).await? == Outcome::APPLIED {
                show(chain, true);
                tracing::error!(%chain, why, "signing is halted");
                return Ok(before.is_none());
            }
        }
    }

    /// Takes back the statement `key`, whose `block` left the chain; `false` if no statement about the block is left:
    /// whoever took it back halted the chain where needed. Halts signing for `chain`, unless the block was never
    /// final by the chain's own rule. It halts first: after a crash in between, the statement is still among the
    /// watched ones.
    pub async fn reorged(
        &self,
        key: &str,
        chain: &ChainId,
        block: &Block,
        now: u64,
    ) -> Result<bool, JournalError> {
        let (number, hash) = (block.number, block.hash);
        let rests = |entry: &Entry| {
            let on = |fact: &entry::Fact| {
                fact.chain == chain.as_str() && (fact.number, fact.hash) == (number, hash)
            };
            entry.facts.iter().any(on)
        };
        if !self.entry(key).await?.as_ref().is_some_and(rests) {
            return Ok(false);
        }
        let why = format!("block {number} ({hash}) is no longer canonical");
        if !self.is_early(chain, number, key).await? {
            self.halt(chain, &format!("{why}; {key} rested on it"), now)
                .await?;
        }
        let chain = chain.to_string();
        metrics::counter!("intentd_reorged_statements_total", "chain" => chain).increment(1);
        self.void_if(key, &why, now, rests).await
    }

    /// A block that is no longer watched was final long ago.
    async fn is_early(
        &self,
        chain: &ChainId,
        number: u64,
        statement: &str,
    ) -> Result<bool, JournalError> {
        let place = watch::place(chain.as_str(), number, statement);
        let Some(row) = self.store.read(&place).await? else {
            return Ok(false);
        };
        Ok(watch::decode(chain.as_str(), &place, &row)?.early)
    }

    /// Notes that a watched block is now final by its chain's own rule.
    pub async fn settled(&self, watched: &Watched) -> Result<(), JournalError> {
        let key = watched.cursor.clone();
        let Some(row) = self.store.read(&key).await? else {
            return Ok(());
        };
        let Some(settled) = watch::settled(&row) else {
            return Ok(());
        };
        let batch = Batch::new().expect(key.clone(), Expect::Equals(row));
        self.store.commit(batch.put(key, settled)).await?;
        Ok(())
    }

    /// Lets signing for `chain` go on, by the operator's decision, in spite of all that the halt called `id`
    /// ([`Halt::id`]) lists; `false` if another halt is in force now.
    pub async fn clear(&self, chain: &ChainId, id: &str) -> Result<bool, JournalError> {
        let key = halt::key(chain.as_str());
        let Some(row) = self.store.read(&key).await? else {
            return Ok(false);
        };
        if Halt::decode(&row)?.id() != id {
            return Ok(false);
        }
        let batch = Batch::new()
            .expect(key.clone(), Expect::Equals(row))
            .delete(key);
        let cleared = self.store.commit(batch).await? == Outcome::APPLIED;
        if cleared {
            show(chain, false);
            tracing::warn!(%chain, "signing goes on");
        }
        Ok(cleared)
    }

    /// Why and since when `chain` is halted.
    pub async fn halted(&self, chain: &ChainId) -> Result<Option<Halt>, JournalError> {
        let row = self.store.read(&halt::key(chain.as_str())).await?;
        show(chain, row.is_some());
        Ok(row.map(|row| Halt::decode(&row)).transpose()?)
    }

    /// All halts.
    pub async fn halts(&self) -> Result<Vec<(ChainId, Halt)>, JournalError> {
        let range = Range {
            kind: rows::HALT,
            prefix: Vec::new(),
            after: None,
            limit: usize::MAX,
            reverse: false,
        };
        let rows = self.store.scan(range).await?;
        rows.iter()
            .map(|(key, row)| {
                let chain = ChainId::new(&String::from_utf8_lossy(&key.name));
                Ok((chain, Halt::decode(row)?))
            })
            .collect()
    }

    /// The blocks of `chain` under signed statements, lowest first, at most `limit` after `cursor`.
    pub async fn watched(
        &self,
        chain: &ChainId,
        cursor: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Watched>, JournalError> {
        let rows = self
            .store
            .scan(watch::range(chain.as_str(), cursor, limit))
            .await?;
        rows.into_iter()
            .map(|(cursor, row)| {
                let row = watch::decode(chain.as_str(), &cursor, &row)?;
                let (number, hash, parent, time) = (row.number, row.hash, row.parent, row.time);
                let block = Block {
                    number,
                    hash,
                    parent,
                    time,
                };
                Ok(Watched {
                    cursor,
                    statement: row.statement,
                    block,
                    early: row.early,
                })
            })
            .collect()
    }

    /// Ends the watch over rows that [`Self::watched`] gave.
    pub async fn unwatch(&self, rows: &[Key]) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        let batch = rows.iter().cloned().fold(Batch::new(), Batch::delete);
        self.store.commit(batch).await?;
        Ok(())
    }
}

fn show(chain: &ChainId, halted: bool) {
    let chain = chain.to_string();
    metrics::gauge!("intentd_halted_chains", "chain" => chain).set(u32::from(halted));
}

pub(super) fn entry_of(statement: &Statement, now: u64) -> Entry {
    let facts = statement.facts.iter().map(fact_of);
    let consumes = statement
        .consumes
        .iter()
        .map(|consumption| entry::Consumed {
            what: consumption.what.clone(),
            by: consumption.by.clone(),
        });
    Entry {
        digest: statement.digest,
        at: now,
        slot: statement.slot.clone(),
        consumes: consumes.collect(),
        facts: facts.collect(),
        own: statement.own,
        shown: Vec::new(),
        payload: statement.payload.clone(),
    }
}

pub(super) fn fact_of(fact: &Fact) -> entry::Fact {
    entry::Fact {
        chain: fact.chain.as_str().to_owned(),
        transaction: fact.transaction.clone(),
        number: fact.block.number,
        hash: fact.block.hash,
        parent: fact.block.parent,
        time: fact.block.time,
    }
}

pub(super) fn block(fact: &entry::Fact) -> Block {
    Block {
        number: fact.number,
        hash: fact.hash,
        parent: fact.parent,
        time: fact.time,
    }
}
