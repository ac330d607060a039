//! Halted chains, and the watched blocks of signed statements.

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
    /// Where the next page starts.
    pub cursor: Key,
    /// The statement's key.
    pub statement: String,
    pub block: Block,
    /// The block was not final by the chain's own rule when the statement was signed, and still is not.
    pub early: bool,
}

impl Journal {
    /// Stops signing about `chain`, durably; `false` if the chain is already halted. The journal then adds the reason
    /// to the halt, because the operator clears only listed reasons.
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
                    set_halted_metric(chain, true);
                    let Some(halt) = Halt::decode(bytes)?.with(why) else {
                        return Ok(false);
                    };
                    (halt.encode()?, Expect::Equals(bytes.clone()))
                }
            };
            let batch = Batch::new().expect(key.clone(), expected);
            let put = batch.put(key.clone(), row);
            if self.store.commit(put).await? == Outcome::APPLIED {
                set_halted_metric(chain, true);
                tracing::error!(%chain, why, "signing is halted");
                return Ok(before.is_none());
            }
        }
    }

    /// Voids the statement `key`, whose `block` left the chain; `false` if no statement about the block is left,
    /// because whoever voided it also halted the chain where needed. Halts signing about `chain` first, unless the
    /// block was never final by the chain's own rule: after a crash in between, the statement is still watched.
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

    /// A block without a watch row was final long ago.
    async fn is_early(
        &self,
        chain: &ChainId,
        number: u64,
        statement: &str,
    ) -> Result<bool, JournalError> {
        let row_key = watch::key_of(chain.as_str(), number, statement);
        let Some(row) = self.store.read(&row_key).await? else {
            return Ok(false);
        };
        Ok(watch::decode(chain.as_str(), &row_key, &row)?.early)
    }

    /// Records that a watched block is now final by its chain's own rule.
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

    /// Resumes signing about `chain` by the operator's decision, which covers everything that the halt `id`
    /// ([`Halt::id`]) lists; `false` if another halt is in force.
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
            set_halted_metric(chain, false);
            tracing::warn!(%chain, "signing resumes");
        }
        Ok(cleared)
    }

    /// The halt of `chain`; `None` if it is not halted.
    pub async fn halted(&self, chain: &ChainId) -> Result<Option<Halt>, JournalError> {
        let row = self.store.read(&halt::key(chain.as_str())).await?;
        set_halted_metric(chain, row.is_some());
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

    /// The watched blocks of `chain`, lowest first, at most `limit` after `cursor`.
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

    /// Deletes watch rows of [`Self::watched`].
    pub async fn unwatch(&self, rows: &[Key]) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        let batch = rows.iter().cloned().fold(Batch::new(), Batch::delete);
        self.store.commit(batch).await?;
        Ok(())
    }
}

fn set_halted_metric(chain: &ChainId, halted: bool) {
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
