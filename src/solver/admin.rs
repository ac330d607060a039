//! What the operator can see of the solver, and do: parked deposits, payments that are not settled,
//! and the pause.

use std::cmp::Reverse;

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{claim, reconciliation::Reconciliation};
use crate::{
    request::{Execution, Request, fact::Facts, mismatch::mismatch},
    store::{
        Batch, Expect, Key, Kind, Outcome, StoreError,
        requests::{Requests, RequestsError},
        rows::{
            self, RowError,
            claim::Claim,
            parked::Parked,
            pause::{self, Paused},
            settlement::{Part, Settlement},
        },
        walk::Walk,
    },
};

/// Rows that are shown at once.
pub const MOST: usize = 1_000;

/// What the operator asks the running solver through. Clones share it.
#[derive(Clone)]
pub struct AdminHandle {
    pub requests: Requests,
    /// The newest reconciliation.
    pub reconciliation: watch::Receiver<Option<Reconciliation>>,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

/// Why a question was not answered, or a command not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("no such deposit is listed: {0}")]
    Unknown(B256),
    #[error(
        "its order's record has no place for it: its depositor recovers it at an oracle; dismiss it"
    )]
    LeftOut,
    #[error(
        "its order's user acts by himself, no solver pays: its depositor recovers it at an oracle; dismiss it"
    )]
    NobodyPays,
    #[error("its execution is on its way: wait for it")]
    OnItsWay,
    #[error("it changed meanwhile: look again")]
    Changed,
}

/// A parked deposit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub request: B256,
    pub deposit: B256,
    #[serde(flatten)]
    pub parked: Parked,
}

/// A payment that is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsettled {
    pub request: B256,
    pub deposit: B256,
    pub purpose: String,
    pub transaction: String,
    /// The hub has taken the deposit's execution; the outcome's is missing.
    pub deposited: bool,
    /// Unix milliseconds since when the payment is final.
    pub since: u64,
    pub tries: u32,
    pub refused: bool,
    pub why: Option<String>,
}

/// How the solver stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub paused: Option<Paused>,
    /// As of the last reconciliation.
    #[serde(rename = "books")]
    pub reconciliation: Option<Reconciliation>,
}

impl AdminHandle {
    pub async fn standing(&self) -> Result<Standing, AdminError> {
        let store = self.requests.store();
        let paused = store.read(&pause::key()).await?;
        Ok(Standing {
            paused: paused.as_deref().map(Paused::decode).transpose()?,
            reconciliation: self.reconciliation.borrow().clone(),
        })
    }

    /// Pauses fills: none is begun from now on. Refunds go on, and fills that were begun are finished.
    pub async fn pause(&self, why: &str) -> Result<(), AdminError> {
        let paused = Paused {
            why: why.to_owned(),
            since: (self.clock)(),
        };
        tracing::warn!(why, "the solver is paused");
        let batch = Batch::new().put(pause::key(), paused.encode()?);
        self.requests.store().commit(batch).await?;
        Ok(())
    }

    /// Lets fills go on; whether they were paused.
    pub async fn resume(&self) -> Result<bool, AdminError> {
        let store = self.requests.store();
        let was = store.read(&pause::key()).await?.is_some();
        store.commit(Batch::new().delete(pause::key())).await?;
        tracing::warn!("the solver is resumed");
        Ok(was)
    }

    /// Parked deposits, the newest first; those that are worth something, or `all`.
    pub async fn parked(&self, all: bool) -> Result<Vec<Left>, AdminError> {
        let mut found = Vec::new();
        for (key, value) in self.rows(rows::PARKED).await? {
            let ((request, deposit), parked) = (rows::parked::ids(&key)?, Parked::decode(&value)?);
            if all || !parked.minor {
                found.push(Left {
                    request,
                    deposit,
                    parked,
                });
            }
        }
        found.sort_by_key(|left| Reverse(left.parked.since));
        Ok(found)
    }

    /// Payments that are not settled: those that are refused, then the oldest.
    pub async fn unsettled(&self) -> Result<Vec<Unsettled>, AdminError> {
        let mut found = Vec::new();
        for (key, value) in self.rows(rows::SETTLEMENT).await? {
            let (request, deposit) = rows::settlement::ids(&key)?;
            let row = Settlement::decode(&value)?;
            found.push(Unsettled {
                request,
                deposit,
                purpose: format!("{:?}", row.purpose).to_lowercase(),
                transaction: row.transaction,
                deposited: row.deposited == Part::Applied,
                since: row.since,
                tries: row.tries,
                refused: row.refused,
                why: row.why,
            });
        }
        found.sort_by_key(|one| (!one.refused, one.since));
        found.truncate(MOST);
        Ok(found)
    }

    /// Has the solver decide about a parked deposit anew: it gives the deposit back if that can be attested.
    pub async fn release(&self, deposit: B256) -> Result<(), AdminError> {
        let (key, value) = self.row(rows::PARKED, deposit).await?;
        let (request, _) = rows::parked::ids(&key)?;
        let (row, now) = (rows::claim::key(&request), (self.clock)());
        let found = self.requests.store().read(&row).await?;
        let batch = Batch::new()
            .expect(key.clone(), Expect::Equals(value))
            .delete(key)
            .put(rows::open::key(&request), rows::open::encode(now, &deposit));
        let batch = match found {
            // The index parked the deposit: the solver has not decided anything.
            None => batch.expect(row, Expect::Absent),
            Some(found) => {
                let next = claim::release(&Claim::decode(&found)?, deposit);
                let batch = batch.expect(row.clone(), Expect::Equals(found));
                batch.put(row, next.encode()?)
            }
        };
        let order = self.requests.by_id(&request).await?;
        let order = order.ok_or(AdminError::Unknown(deposit))?;
        if order.execution == Execution::User {
            return Err(AdminError::NobodyPays);
        }
        let facts = self.requests.facts(&request).await?;
        if !facts.deposits.iter().any(|one| one.onchain_id == deposit) {
            return Err(AdminError::LeftOut);
        }
        let forget = |facts: &mut Facts| forget(&order, facts, deposit);
        let recorded = self.requests.record(&request, now, batch, forget).await;
        self.refused(recorded.map(drop))
    }

    /// Removes a parked deposit, with which the operator has dealt, from the list.
    pub async fn dismiss(&self, deposit: B256) -> Result<(), AdminError> {
        let (key, value) = self.row(rows::PARKED, deposit).await?;
        tracing::warn!(%deposit, "a parked deposit is dismissed");
        self.replace(key, value, None).await
    }

    /// Has the settler ask the oracle about a payment at once.
    pub async fn retry(&self, deposit: B256) -> Result<(), AdminError> {
        let (key, value) = self.row(rows::SETTLEMENT, deposit).await?;
        let mut row = Settlement::decode(&value)?;
        row.not_before = 0;
        self.replace(key, value, Some(row.encode()?)).await
    }

    /// Writes a payment off: the settler does not ask about it any more.
    pub async fn write_off(&self, deposit: B256) -> Result<(), AdminError> {
        let (key, value) = self.row(rows::SETTLEMENT, deposit).await?;
        let row = Settlement::decode(&value)?;
        let sent = |part: &Part| matches!(part, Part::Sent { .. });
        if sent(&row.deposited) || sent(&row.outcome) {
            return Err(AdminError::OnItsWay);
        }
        tracing::warn!(%deposit, transaction = row.transaction, "a payment is written off");
        metrics::counter!("intentd_solver_written_off_total").increment(1);
        self.replace(key, value, None).await
    }

    async fn replace(
        &self,
        key: Key,
        before: Vec<u8>,
        after: Option<Vec<u8>>,
    ) -> Result<(), AdminError> {
        let batch = Batch::new().expect(key.clone(), Expect::Equals(before));
        let batch = match after {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        };
        match self.requests.store().commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(AdminError::Changed),
        }
    }

    fn refused(&self, done: Result<(), RequestsError>) -> Result<(), AdminError> {
        match done {
            Err(RequestsError::Refused) => Err(AdminError::Changed),
            other => Ok(other?),
        }
    }

    /// The row of `kind` whose name ends with `deposit`.
    async fn row(&self, kind: Kind, deposit: B256) -> Result<(Key, Vec<u8>), AdminError> {
        let rows = self.rows(kind).await?;
        let mut rows = rows.into_iter();
        rows.find(|(key, _)| key.name.ends_with(deposit.as_slice()))
            .ok_or(AdminError::Unknown(deposit))
    }

    async fn rows(&self, kind: Kind) -> Result<Vec<(Key, Vec<u8>)>, AdminError> {
        let (mut walk, mut all) = (Walk::of(&**self.requests.store(), kind), Vec::new());
        while let Some(row) = walk.next().await? {
            all.push(row);
        }
        Ok(all)
    }
}

/// Removes the ending of `deposit`. The request's refund failure is then what its other paying deposits ended with.
fn forget(order: &Request, facts: &mut Facts, deposit: B256) {
    facts.endings.retain(|ending| ending.deposit != deposit);
    let pays = |id: B256| {
        let mut deposits = facts.deposits.iter();
        deposits.any(|one| one.onchain_id == id && mismatch(order, one).is_none())
    };
    if pays(deposit) {
        let mut others = facts.endings.iter().filter(|one| pays(one.deposit));
        facts.refund_failure = others.find_map(|one| one.refused);
    }
}
