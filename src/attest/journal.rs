//! The journal of signed statements: the same statement always gets the same signature, and no two signed statements
//! contradict each other.
//!
//! A statement is durable before the journal calls the signer. Everything that could contradict it is a precondition
//! of the commit that records it, so concurrent requests are decided by the store, not by the order of their reads.
//! The journal does not judge facts: its callers do.

mod alarm;
mod commit;
mod halts;
mod room;
#[cfg(test)]
mod tests;
mod voids;
mod why;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use alloy::primitives::B256;
use tokio::sync::OnceCell;
use vm::protocol::signature::Signature;
use vm::types::{Block, ChainId, EvmAddress};

use self::alarm::alarm;
pub use self::{halts::Watched, why::Repeated};
pub use crate::store::rows::{entry::Entry, halt::Halt, void::Void};
use crate::{
    attest::{
        basis,
        evidence::{self, Judge},
        statement::{Statement, is_payment},
    },
    sign::{SignError, Signer},
    store::{
        Batch, Expect, Key, Outcome, Preconditions, Store, StoreError,
        rows::{self, RowError, consumption, entry, signature, slot},
    },
};

/// How often the journal retries a decision whose rows change meanwhile.
const ATTEMPTS: usize = 5;

/// Why the journal does not sign a statement.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The statement contradicts a signed one.
    #[error("{key} contradicts {existing}")]
    Conflict {
        key: String,
        existing: String,
        /// The conflict is about a payment that serves another statement; another payment may serve that one later.
        payment: bool,
        /// The key of the statement that has what only one may have, where that is the conflict.
        holder: Option<String>,
    },
    /// The same claim was signed as of another block. If that block is no longer canonical, void `key` and sign
    /// again.
    #[error("{key} has been signed as of block {} of {chain}", block.number)]
    OtherBlock {
        key: String,
        block: Block,
        chain: ChainId,
    },
    #[error("signing for {0} is halted")]
    Halted(ChainId),
    /// The journal cannot tell what was signed.
    #[error("the journal cannot tell what was signed: {0}")]
    Unsure(String),
    #[error(transparent)]
    Signer(#[from] SignError),
}

impl From<StoreError> for JournalError {
    fn from(e: StoreError) -> Self {
        Self::Unsure(e.to_string())
    }
}

impl From<RowError> for JournalError {
    fn from(e: RowError) -> Self {
        Self::Unsure(e.to_string())
    }
}

/// The durable record of everything that the oracle has signed.
pub struct Journal {
    store: Arc<dyn Store>,
    signer: Arc<dyn Signer>,
    judge: Judge,
    /// Signatures in progress, so that concurrent requests share one.
    signing: Mutex<HashMap<B256, Arc<OnceCell<Signature>>>>,
}

/// What a refused precondition means for the statement.
enum Next {
    /// The statement is already recorded, with these bytes.
    Stands(Vec<u8>),
    /// The row in the way is gone, or another claim has completed it: retry.
    Again,
}

impl Journal {
    pub fn new(store: Arc<dyn Store>, signer: Arc<dyn Signer>) -> Self {
        Self {
            store,
            signer,
            judge: Judge::default(),
            signing: Mutex::default(),
        }
    }

    /// Names in the evidence who judged.
    #[must_use]
    pub fn judged_by(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// The account that signs.
    pub fn signer(&self) -> EvmAddress {
        self.signer.address()
    }

    /// Records the statement and signs it; the same statement always gives the same signature. `now` is in unix
    /// seconds.
    pub async fn sign(&self, statement: &Statement, now: u64) -> Result<Signature, JournalError> {
        // Held until the end: the request that recorded the statement first may get the signature last.
        let share = Share::of(&self.signing, statement.digest);
        let stood = self
            .record(statement, now)
            .await
            .inspect_err(|e| alarm(statement, e))?;
        let signature = share
            .cell
            .get_or_try_init(|| self.signature(&statement.digest, stood));
        signature.await.copied()
    }

    /// Whether the [`basis`] of an answer holds. The rows are read one by one, and may not be durable yet: it is for an
    /// answer that was given before, whose rows were durable then.
    pub async fn still_holds(&self, basis: &Preconditions) -> Result<bool, JournalError> {
        Ok(basis.hold(&*self.store).await?)
    }

    /// The entry under a statement's key, with its digest and payload.
    pub async fn entry(&self, key: &str) -> Result<Option<Entry>, JournalError> {
        let row = self.store.read(&entry::key(key)).await?;
        Ok(row.map(|row| Entry::decode(&row)).transpose()?)
    }

    /// Makes the statement durable; returns whether it was already recorded.
    ///
    /// A recorded statement keeps other payments that it is shown. They serve it once another statement needs the
    /// payments that serve it now ([`room`]). So each payment serves one statement, and nobody can block a true claim
    /// by claiming another deposit with its payment first.
    async fn record(&self, statement: &Statement, now: u64) -> Result<bool, JournalError> {
        // What is signed for a new claim is most likely new: its commit finds out.
        let mut known = match evidence::is_new() {
            true => None,
            false => self.known(statement).await?,
        };
        for left in (0..ATTEMPTS).rev() {
            let stood = known.is_some();
            let batch = self.explained(statement, known.take(), now).await?;
            let batch = match stood {
                true => batch,
                false => self.like_voids(statement, batch).await?,
            };
            basis::add(&batch);
            let (key, found) = match self.store.commit(batch).await? {
                Outcome::Applied { .. } => return Ok(stood),
                Outcome::Refused { key, found } => (key, found),
            };
            // What follows reads rows that the batch does not expect.
            basis::not_only_rows();
            if key.kind == rows::CONSUMPTION {
                let what = String::from_utf8_lossy(&key.name);
                let holder = found.as_deref().map(consumption::decode).transpose()?;
                match holder {
                    _ if stood => return Ok(true),
                    // After the last attempt, what is freed is of no use.
                    Some(by) if left > 0 && is_payment(&what) && self.freed(&what, &by).await? => {
                        continue;
                    }
                    _ => {}
                }
            }
            known = match self.refused(statement, &key, found).await? {
                Next::Stands(row) => Some(row),
                Next::Again => None,
            };
        }
        Err(JournalError::Unsure(format!(
            "the rows of {} keep changing",
            statement.key
        )))
    }

    /// The row of the same statement, if it is recorded.
    async fn known(&self, statement: &Statement) -> Result<Option<Vec<u8>>, JournalError> {
        let Some(row) = self.store.read(&entry::key(&statement.key)).await? else {
            return Ok(None);
        };
        let same = Entry::decode(&row)?.digest == statement.digest;
        Ok(same.then_some(row))
    }

    async fn refused(
        &self,
        statement: &Statement,
        key: &Key,
        found: Option<Vec<u8>>,
    ) -> Result<Next, JournalError> {
        let Some(found) = found else {
            return Ok(Next::Again);
        };
        let (mut payment, mut holder) = (false, None);
        let existing = match key.kind {
            rows::HALT => {
                let chain = String::from_utf8_lossy(&key.name);
                return Err(JournalError::Halted(ChainId::new(&chain)));
            }
            rows::SLOT => return self.other(&slot::decode(&found)?).await,
            rows::EVIDENCE | rows::VOID => return Ok(Next::Again),
            rows::CONSUMPTION => {
                let what = String::from_utf8_lossy(&key.name);
                payment = is_payment(&what);
                let by = holder.insert(consumption::decode(&found)?);
                format!("{what}, which serves {by}")
            }
            _ if *key != entry::key(&statement.key) => {
                String::from_utf8_lossy(&key.name).into_owned()
            }
            _ => {
                let digest = Entry::decode(&found)?.digest;
                if digest == statement.digest {
                    return Ok(Next::Stands(found));
                }
                format!("digest {digest} under the same key")
            }
        };
        Err(JournalError::Conflict {
            key: statement.key.clone(),
            existing,
            payment,
            holder,
        })
    }

    /// Decides after the statement `key` was found in the slot.
    async fn other(&self, key: &str) -> Result<Next, JournalError> {
        let Some(entry) = self.entry(key).await? else {
            return Ok(Next::Again);
        };
        let fact = entry.facts.first().ok_or_else(|| {
            JournalError::Unsure(format!("{key} holds a slot and rests on no block"))
        })?;
        let (chain, block) = (ChainId::new(&fact.chain), halts::block(fact));
        Err(JournalError::OtherBlock {
            key: key.to_owned(),
            block,
            chain,
        })
    }

    /// The stored signature over `digest`; makes it if there is none.
    ///
    /// A deterministic signer signs again each time: the result is the same, and storing it would cost more.
    async fn signature(&self, digest: &B256, stood: bool) -> Result<Signature, JournalError> {
        let address = self.signer.address();
        if self.signer.deterministic() {
            return own(self.signer.sign(digest).await?.as_bytes(), digest, &address);
        }
        let key = signature::key(digest, &address);
        let absent = Batch::new().expect(key.clone(), Expect::Absent);
        if stood && let Some(first) = self.first(absent.clone()).await? {
            return own(&first, digest, &address);
        }
        let made = self.signer.sign(digest).await?;
        let made = own(made.as_bytes(), digest, &address)?;
        let batch = absent.put(key, signature::encode(made.as_bytes()));
        match self.first(batch).await? {
            Some(first) => own(&first, digest, &address),
            None => Ok(made),
        }
    }

    /// Commits `batch`, which expects that there is no signature yet; if there is one, returns it.
    async fn first(&self, batch: Batch) -> Result<Option<[u8; 65]>, JournalError> {
        Ok(match self.store.commit(batch).await? {
            Outcome::Refused {
                found: Some(row), ..
            } => Some(signature::decode(&row)?),
            _ => None,
        })
    }
}

/// Parses `bytes` as a signature and checks that `address` made it over `digest`; the journal returns no other.
fn own(bytes: &[u8; 65], digest: &B256, address: &EvmAddress) -> Result<Signature, JournalError> {
    let signature = Signature::from_bytes(bytes).ok();
    let by = |signature: &Signature| signature.recover(digest).is_ok_and(|by| by == *address);
    signature.filter(by).ok_or_else(|| {
        metrics::counter!("intentd_foreign_signatures_total").increment(1);
        tracing::error!(%digest, %address, "the signer returned a signature of another key: the journal rejects it");
        SignError::Foreign.into()
    })
}

/// A request's share in a signature in progress; the last one removes it from the table.
struct Share<'a> {
    table: &'a Mutex<HashMap<B256, Arc<OnceCell<Signature>>>>,
    digest: B256,
    cell: Arc<OnceCell<Signature>>,
}

impl<'a> Share<'a> {
    fn of(table: &'a Mutex<HashMap<B256, Arc<OnceCell<Signature>>>>, digest: B256) -> Self {
        let cell = table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(digest)
            .or_default()
            .clone();
        Self {
            table,
            digest,
            cell,
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // The cell is released under the lock: of two shares that end at once, the second sees that it is the last.
        drop(std::mem::take(&mut self.cell));
        if table
            .get(&self.digest)
            .is_some_and(|cell| Arc::strong_count(cell) == 1)
        {
            table.remove(&self.digest);
        }
    }
}
