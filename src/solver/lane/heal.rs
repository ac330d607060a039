//! Nonces that the chain waits for and that no transaction of ours has: nothing behind them lands.
//!
//! They come from a jump that did not last (another user of the key whom a reorg took away, a provider
//! that lied), or from a reorg deeper than a chain's finality, which takes a nonce with it. The former
//! never had a payment of ours and are used up without asking; the latter may have had one, so that an
//! operator decides.

use super::{Lane, MOST_JUMP};
use crate::{
    solver::SolverError,
    store::{
        Expect, Outcome,
        rows::{
            self,
            lane::{self as row, Owner, Slot},
        },
    },
};

/// Skipped nonces that are remembered this far below the chain's count.
const REMEMBERED: u64 = 1_024;

/// A lane as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub network: String,
    pub account: String,
    /// The nonce that the next transaction takes; unset before the first one.
    pub next: Option<u64>,
    /// The chain's count, by agreement of its providers, or why there is none.
    pub mined: Result<u64, String>,
    /// What has a nonce and is not done with.
    pub slots: Vec<(u64, Slot)>,
    /// Nonces that the chain waits for and nobody has.
    pub gaps: Vec<u64>,
}

impl Lane {
    pub async fn show(&self) -> Result<Shown, SolverError> {
        let mined = self.site.nonce(&self.owner, false).await;
        let mined = mined.map_err(|error| error.to_string());
        let (_, stored) = self.row().await?;
        let slots = self.slots().await?;
        let next = stored.map(|lane| lane.next);
        Ok(Shown {
            network: self.site.name.clone(),
            account: self.owner.text().to_owned(),
            next,
            gaps: match &mined {
                Ok(mined) => gaps(*mined, next, &slots),
                Err(_) => Vec::new(),
            },
            mined,
            slots,
        })
    }

    /// Uses up the nonces that the chain waits for and nobody has, and goes on behind what is the
    /// chain's count where that is ahead, however far. What was used up. `now` in unix seconds.
    pub async fn heal(&self, now: u64) -> Result<Vec<u64>, SolverError> {
        let mined = self.site.nonce(&self.owner, false).await?;
        let _turn = self.turn.lock().await;
        let (_, stored) = self.row().await?;
        let Some(mut lane) = stored else {
            return Ok(Vec::new());
        };
        if mined > lane.next {
            lane.skipped
                .extend(lane.next.max(mined.saturating_sub(MOST_JUMP))..mined);
            lane.next = mined;
            self.put(&lane).await?;
        }
        let gaps = gaps(mined, Some(lane.next), &self.slots().await?);
        for nonce in &gaps {
            self.fill_gap(*nonce, now).await?;
        }
        Ok(gaps)
    }

    /// Uses up skipped nonces that the chain waits for after all; tells of other gaps.
    pub(super) async fn unskip(&self, now: u64) -> Result<(), SolverError> {
        let (_, stored) = self.row().await?;
        let Some(lane) = stored else {
            return Ok(());
        };
        let mined = self.site.nonce(&self.owner, false).await?;
        let gaps = gaps(mined, Some(lane.next), &self.slots().await?);
        let (skipped, lost): (Vec<_>, Vec<_>) =
            gaps.into_iter().partition(|gap| lane.skipped.contains(gap));
        let network = self.site.name.clone();
        metrics::gauge!("intentd_solver_nonce_gaps", "network" => network.clone())
            .set(u32::try_from(lost.len()).unwrap_or(u32::MAX));
        if !lost.is_empty() {
            tracing::error!(
                network,
                ?lost,
                "the chain waits for nonces of the solver's: intentd lane heal"
            );
        }
        let _turn = self.turn.lock().await;
        for nonce in &skipped {
            self.fill_gap(*nonce, now).await?;
        }
        let (_, stored) = self.row().await?;
        let Some(mut lane) = stored.filter(|lane| !lane.skipped.is_empty()) else {
            return Ok(());
        };
        let known = lane.skipped.len();
        let kept = |nonce: &u64| !skipped.contains(nonce) && *nonce + REMEMBERED > mined;
        lane.skipped.retain(kept);
        match lane.skipped.len() == known {
            true => Ok(()),
            false => self.put(&lane).await,
        }
    }

    /// Only in turn.
    async fn fill_gap(&self, nonce: u64, now: u64) -> Result<(), SolverError> {
        let slot = self.plug(nonce, now).await?;
        let key = rows::lane::slot_key(&self.name, nonce);
        let batch = self
            .batch()
            .expect(key.clone(), Expect::Absent)
            .put(key, slot.encode()?);
        let batch = super::inventory::reserve(batch, self, &slot, nonce)?;
        if let Outcome::Refused { .. } = self.store.commit(batch).await? {
            return Err(SolverError::Fenced);
        }
        tracing::warn!(network = self.site.name, nonce, "a nonce is used up");
        self.send(&slot).await?;
        Ok(())
    }

    async fn put(&self, lane: &row::Lane) -> Result<(), SolverError> {
        let key = rows::lane::key(&self.name);
        let batch = self.batch().put(key, lane.encode()?);
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(SolverError::Fenced),
        }
    }
}

impl Shown {
    /// Whose a nonce is, for people.
    pub fn owner(slot: &Slot) -> String {
        match &slot.owner {
            Owner::Request(id) => format!("request {id}"),
            Owner::Settlement(id) => format!("settlement of {id}"),
            Owner::Allowance { spender, currency } => {
                format!("allowance of {currency} for {spender}")
            }
            Owner::Gap => "gap".to_owned(),
        }
    }
}

/// The nonces that the chain waits for one after the other until it finds a slot of ours.
fn gaps(mined: u64, next: Option<u64>, slots: &[(u64, Slot)]) -> Vec<u64> {
    let taken = |nonce: &u64| slots.iter().any(|(slot, _)| slot == nonce);
    let waited = mined..next.unwrap_or(mined);
    waited.take(64).filter(|nonce| !taken(nonce)).collect()
}
