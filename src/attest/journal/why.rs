//! Why statements were signed: their evidence, and how it is found.

use std::collections::BTreeSet;

use alloy::primitives::B256;
use vm::{aside, evidence::Replay, protocol::signature::Signature};

use super::{ATTEMPTS, Journal, JournalError, commit::recording};
use crate::{
    attest::{
        evidence::{self, Evidence},
        statement::{self, Statement},
    },
    store::{
        Batch, Expect, Key, Outcome, Range,
        rows::{
            self, about,
            claimed::Claimed,
            consumption,
            entry::{self, Entry},
            halt, slot,
        },
    },
};

/// A row of more bytes takes long to decode.
const LARGE: usize = 8 << 10;

/// What the journal has about a request.
#[derive(Debug)]
pub enum Repeated {
    /// No equal one was signed, or the statement that it was signed for became void and was signed again since.
    New,
    /// Something was, and only the chains say whether it is signed again.
    Open,
    /// The evidence of the statement that was signed for an equal one, whose blocks are watched no longer. The
    /// statement stands, and can be signed again without a chain.
    Settled(Evidence),
}

impl Journal {
    /// The commit that records `statement` at `now`, or completes its recorded entry `known`, with why it is signed.
    pub(super) async fn explained(
        &self,
        statement: &Statement,
        known: Option<Vec<u8>>,
        now: u64,
    ) -> Result<Batch, JournalError> {
        let Some(known) = known else {
            return self.with_evidence(recording(statement, None, now)?, statement, now);
        };
        let entry = Entry::decode(&known)?;
        let at = entry.at;
        let batch = recording(statement, Some((entry, known)), now)?;
        // An equal claim has added what this one would.
        if !evidence::is_new() || Replay::current().is_some() {
            return Ok(batch);
        }
        self.with_later_evidence(batch, statement, at).await
    }

    /// Adds why a statement is signed, where somebody said so. Evidence in place of the chains records nothing new: it
    /// tells what was, and the statement may have become void since.
    fn with_evidence(
        &self,
        batch: Batch,
        statement: &Statement,
        at: u64,
    ) -> Result<Batch, JournalError> {
        let key = &statement.key;
        if Replay::current().is_some() && !self.judge.replays {
            return Err(JournalError::Unsure(format!("{key} stands no longer")));
        }
        let Some(why) = evidence::now(&self.judge, statement.rule.as_ref())? else {
            return Ok(batch);
        };
        let batch = batch.put(rows::evidence::key(key, at), why.row);
        let Some(claim) = why.claim else {
            return Ok(batch);
        };
        claimed(batch, &claim, key, at)
    }

    /// Adds what a new claim tells of a statement that was recorded at the second `at`: its evidence, in place of a row
    /// that lacks more, and that the statement was signed for it. Of a stranger's claim that only where its evidence is
    /// taken: strangers could else fill the disk with spellings of one claim.
    async fn with_later_evidence(
        &self,
        batch: Batch,
        statement: &Statement,
        at: u64,
    ) -> Result<Batch, JournalError> {
        let key = &statement.key;
        let row_key = rows::evidence::key(key, at);
        let Some(kept) = self.store.read(&row_key).await? else {
            return Ok(batch);
        };
        // A row that cannot be read is no reason not to sign.
        let decoded = aside(kept.len() > LARGE, || Evidence::decode(&kept));
        let Ok(before) = decoded else {
            return Ok(batch);
        };
        // What was judged by other rules stays, since it tells by which.
        let judge = (&self.judge.version, self.judge.configuration);
        let lacks = match (&before.version, before.configuration) == judge {
            true => before.lacks(),
            false => 0,
        };
        let keyed = evidence::has_key();
        if lacks == 0 && !keyed {
            return Ok(batch);
        }
        let Some(why) = evidence::now(&self.judge, statement.rule.as_ref())? else {
            return Ok(batch);
        };
        let is_fuller = lacks > 0 && Evidence::decode(&why.row)?.lacks() < lacks;
        let batch = match is_fuller {
            true => batch.swap(row_key, Some(kept), why.row),
            false => batch,
        };
        match why.claim.filter(|_| is_fuller || keyed) {
            Some(claim) => claimed(batch, &claim, key, at),
            None => Ok(batch),
        }
    }

    /// What was signed for an equal request.
    pub async fn repeated(&self, claim: &B256) -> Result<Repeated, JournalError> {
        let Some(row) = self.store.read(&rows::claimed::key(claim)).await? else {
            return Ok(Repeated::New);
        };
        let of = Claimed::decode(&row)?;
        let Some(entry) = self.entry(&of.statement).await? else {
            return Ok(Repeated::Open);
        };
        if entry.at != of.at {
            return Ok(Repeated::New);
        }
        let watches = entry.facts.iter();
        let watches: Vec<Key> = watches
            .map(|fact| rows::watch::key(fact, &of.statement))
            .collect();
        let watched = self
            .store
            .read_all(&watches)
            .await?
            .iter()
            .any(Option::is_some);
        if watched {
            return Ok(Repeated::Open);
        }
        let evidence = self.why(&of.statement, &entry).await?;
        Ok(evidence.map_or(Repeated::Open, Repeated::Settled))
    }

    /// Why the statement of `entry`, under `key`, was signed; `None` for one that was signed without evidence.
    pub async fn why(&self, key: &str, entry: &Entry) -> Result<Option<Evidence>, JournalError> {
        let row = self.store.read(&rows::evidence::key(key, entry.at)).await?;
        Ok(row.map(|row| Evidence::decode(&row)).transpose()?)
    }

    /// The keys of the statements about a transaction, by its canonical `0x` hex: all for which it was read, void ones
    /// too. Of statements of older versions those that stand: about its deposits, and those that its payments serve.
    pub async fn about(&self, chain: &str, transaction: &str) -> Result<Vec<String>, JournalError> {
        let mut keys = Vec::new();
        for (key, row) in self.store.scan(about::range(chain, transaction)).await? {
            keys.push(about::decode(&key, &row)?.statement);
        }
        for kind in [statement::DEPOSIT, statement::PAYMENT] {
            let prefix = format!("{kind}{chain}/{transaction}/");
            let row = match kind {
                statement::DEPOSIT => rows::SLOT,
                _ => rows::CONSUMPTION,
            };
            let range = Range::new(row, prefix.as_bytes(), None, usize::MAX);
            for (_, row) in self.store.scan(range).await? {
                keys.push(match kind {
                    statement::DEPOSIT => slot::decode(&row)?,
                    _ => consumption::decode(&row)?,
                });
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The signature of the statement that stands under `key`; `None` where none stands, and while signing is halted
    /// for a chain that it depends on. An entry that is read may not be durable yet: a commit that expects it is.
    pub async fn signature_of(&self, key: &str) -> Result<Option<Signature>, JournalError> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.store.read(&entry::key(key)).await? else {
                return Ok(None);
            };
            let entry = Entry::decode(&row)?;
            let chains: BTreeSet<_> = entry.facts.iter().map(|fact| &fact.chain).collect();
            let batch = chains.iter().fold(Batch::new(), |batch, chain| {
                batch.expect(halt::key(chain), Expect::Absent)
            });
            let batch = batch.expect(entry::key(key), Expect::Equals(row));
            match self.store.commit(batch).await? {
                Outcome::Applied { .. } => {
                    return Ok(Some(self.signature(&entry.digest, true).await?));
                }
                Outcome::Refused { key, .. } if key.kind == rows::HALT => return Ok(None),
                // Voided or completed meanwhile.
                Outcome::Refused { .. } => {}
            }
        }
        Err(JournalError::Unsure(format!(
            "the rows of {key} keep changing"
        )))
    }
}

/// Adds that the statement under `key`, recorded at the second `at`, was signed for the claim with this digest.
fn claimed(batch: Batch, claim: &B256, key: &str, at: u64) -> Result<Batch, JournalError> {
    let statement = key.to_owned();
    let of = Claimed { statement, at };
    Ok(batch.put(rows::claimed::key(claim), of.encode()?))
}
