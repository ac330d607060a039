//! Statements that became void, and what their signatures, which are out, still forbid.

use super::{ATTEMPTS, Entry, Journal, JournalError, Void, commit::release};
use crate::{
    attest::{
        basis,
        statement::{Statement, is_freed},
    },
    store::{
        Batch, Expect, Key, Outcome,
        rows::{entry, void},
    },
};

impl Journal {
    /// The void entries under a statement's key, oldest first.
    pub async fn voids(&self, key: &str) -> Result<Vec<Void>, JournalError> {
        let rows = self.store.scan(void::range(key)).await?;
        let rows = rows.iter().map(|(_, row)| Void::decode(row));
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Voids a signed statement whose facts no longer hold, and frees its slot, deposits and payments; `false` if there
    /// is none under `key`. Its signature may already be in use: what else it consumes stays its own, so that it may be
    /// signed again, and what contradicts it may not.
    pub async fn void(&self, key: &str, why: &str, now: u64) -> Result<bool, JournalError> {
        self.void_if(key, why, now, |_| true).await
    }

    /// [`Journal::void`], only for a statement that `due` accepts.
    pub(super) async fn void_if(
        &self,
        key: &str,
        why: &str,
        now: u64,
        due: impl Fn(&Entry) -> bool,
    ) -> Result<bool, JournalError> {
        for _ in 0..ATTEMPTS {
            let Some(found) = self.store.read(&entry::key(key)).await? else {
                return Ok(false);
            };
            let count = self.store.scan(void::range(key)).await?.len();
            let entry = Entry::decode(&found)?;
            if !due(&entry) {
                return Ok(false);
            }
            let batch = release(key, &entry)?.expect(entry::key(key), Expect::Equals(found));
            let row_key = next(key, count);
            let row = Void {
                entry,
                why: why.to_owned(),
                at: now,
            }
            .encode()?;
            let batch = batch
                .expect(row_key.clone(), Expect::Absent)
                .put(row_key, row);
            if self.store.commit(batch).await? == Outcome::APPLIED {
                metrics::counter!("intentd_void_statements_total").increment(1);
                tracing::error!(key, why, "the journal voids a signed statement");
                return Ok(true);
            }
        }
        Err(JournalError::Unsure(format!(
            "the rows of {key} keep changing"
        )))
    }

    /// Has `batch`, which records a statement that does not stand, refused where one under its key becomes void
    /// meanwhile. Refuses another digest than that of a void statement under the key, where what it consumed still
    /// serves the key: its signature is out.
    pub(super) async fn like_voids(
        &self,
        statement: &Statement,
        batch: Batch,
    ) -> Result<Batch, JournalError> {
        if statement.consumes.iter().all(|one| is_freed(&one.what)) {
            return Ok(batch);
        }
        let key = &statement.key;
        let voids = self.voids(key).await?;
        let mut digests = voids.iter().rev().map(|void| void.entry.digest);
        let other = digests.find(|digest| *digest != statement.digest);
        // The commit tells of one that stands.
        if let Some(digest) = other
            && self.entry(key).await?.is_none()
        {
            basis::not_only_rows();
            return Err(JournalError::Conflict {
                key: key.clone(),
                existing: format!("digest {digest} under the same key, which is void"),
                payment: false,
                holder: None,
            });
        }
        Ok(batch.expect(next(key, voids.len()), Expect::Absent))
    }
}

/// The row of a statement that becomes void after `count` others under its key.
fn next(key: &str, count: usize) -> Key {
    void::key(key, u32::try_from(count).unwrap_or(u32::MAX))
}
