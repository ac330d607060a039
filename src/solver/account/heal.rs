//! Gaps: resources that the chain waits for and that no attempt of the solver's holds. Nothing behind a gap lands.
//!
//! A gap is left by a jump that did not last (a reorg removed another user's transactions, or a provider lied), or by a
//! reorg deeper than the chain's finality. The former never had a payment of the solver's and is used up without asking.
//! The latter may have had one, so that the operator decides.

use vm::{
    Bytes,
    trade::{self, Goal, Known, Standing},
};

use super::{SolverAccount, kept};
use crate::{
    solver::SolverError,
    store::{
        Outcome,
        rows::{
            self,
            attempt::{self, Owner},
        },
    },
};

/// An account as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub network: String,
    pub account: String,
    /// The resource that the next attempt holds; unset before the first one, and where its payment decides.
    pub next: Option<String>,
    /// How far the chain is, by agreement of its providers, or why nobody says it.
    pub reached: Result<String, String>,
    /// The attempts that are not done with, each with its resource's label.
    pub attempts: Vec<(String, attempt::Attempt)>,
    /// Labels of the resources that the chain waits for and no attempt holds.
    pub gaps: Vec<String>,
}

impl SolverAccount {
    /// The account as its operator sees it. An error where its rows cannot be read; what its providers do not say is in
    /// the answer.
    pub async fn summary(&self) -> Result<Shown, SolverError> {
        let reached = self.account.submitter.reached().await;
        let reached = reached.map_err(|error| error.to_string());
        let (_, stored) = self.row().await?;
        let attempts = self.attempts().await?;
        let landing = self.chain.landing;
        let next = stored.as_ref().map(|row| landing.next(&row.own));
        let next = next.transpose()?.flatten();
        let next = next.map(|resource| self.text(&resource)).transpose()?;
        let gaps = match (&reached, &stored) {
            (Ok(reached), Some(row)) => standing(landing, row, reached, &attempts)?.gaps,
            _ => Vec::new(),
        };
        let reached = match reached {
            Ok(reached) => Ok(self.text(&reached)?),
            Err(why) => Err(why),
        };
        let named = attempts.into_iter();
        let named = named.map(|(id, attempt)| Ok((self.text(&id)?, attempt)));
        Ok(Shown {
            network: self.chain.name.clone(),
            account: self.owner.text().to_owned(),
            next,
            reached,
            attempts: named.collect::<Result<_, SolverError>>()?,
            gaps: self.texts(&gaps)?,
        })
    }

    fn text(&self, resource: &[u8]) -> Result<String, SolverError> {
        Ok(self.chain.landing.label(resource)?.text)
    }

    fn texts(&self, resources: &[Bytes]) -> Result<Vec<String>, SolverError> {
        let texts = resources.iter().map(|resource| self.text(resource));
        texts.collect()
    }

    /// Uses up all gaps, and goes on where the chain is, however far ahead that is of what is stored: the store is no older
    /// copy. Returns the labels of what was used up. `now` in unix seconds.
    pub async fn heal(&self, now: u64) -> Result<Vec<String>, SolverError> {
        let reached = self.reached().await?;
        let _turn = self.turn.lock().await;
        let (_, stored) = self.row().await?;
        let Some(row) = stored else {
            return Ok(Vec::new());
        };
        let attempts = self.attempts().await?;
        let found = standing(self.chain.landing, &row, &reached, &attempts)?;
        if let Some(own) = found.believing {
            self.put(own).await?;
        }
        self.trust();
        for resource in &found.gaps {
            self.use_up(resource, now).await?;
        }
        self.texts(&found.gaps)
    }

    /// Uses up gaps that never had a payment of the solver's, and reports all others.
    pub(super) async fn unskip(&self, now: u64) -> Result<(), SolverError> {
        if self.row().await?.1.is_none() {
            return Ok(());
        }
        let reached = self.reached().await?;
        let _turn = self.turn.lock().await;
        let (_, stored) = self.row().await?;
        let Some(row) = stored else {
            return Ok(());
        };
        let attempts = self.attempts().await?;
        let found = standing(self.chain.landing, &row, &reached, &attempts)?;
        self.report_gaps(&found)?;
        for resource in &found.spare {
            self.use_up(resource, now).await?;
        }
        match found.tidied {
            Some(own) => self.put(own).await,
            None => Ok(()),
        }
    }

    fn report_gaps(&self, found: &Standing) -> Result<(), SolverError> {
        let gaps = found.gaps.iter();
        let lost: Vec<_> = gaps
            .filter(|gap| !found.spare.contains(gap))
            .cloned()
            .collect();
        let network = self.chain.name.clone();
        metrics::gauge!("intentd_solver_nonce_gaps", "network" => network.clone())
            .set(u32::try_from(lost.len()).unwrap_or(u32::MAX));
        if !lost.is_empty() {
            let lost = self.texts(&lost)?;
            tracing::error!(
                network,
                ?lost,
                "the chain waits for resources that no attempt holds: intentd lane heal"
            );
        }
        Ok(())
    }

    pub(super) async fn reached(&self) -> Result<Bytes, SolverError> {
        let reached = self.account.submitter.reached().await;
        reached.map_err(|error| self.failure(error))
    }

    /// Only while the lock is held.
    async fn use_up(&self, resource: &Bytes, now: u64) -> Result<(), SolverError> {
        let asked = self.account.submitter.look(Goal::UseUp(resource), false);
        let outlook = asked.await.map_err(|error| self.failure(error))?;
        let prepared = outlook.prepare(Known::default()).await;
        let made = prepared.map_err(|error| self.failure(error))?.attempt;
        let attempt = kept(&made, (Owner::Gap, now));
        let batch = self.begin(self.batch(), &made.id, &attempt)?;
        if let Outcome::Refused { .. } = self.store.commit(batch).await? {
            return Err(SolverError::Fenced);
        }
        let (network, resource) = (&self.chain.name, self.chain.landing.label(resource)?);
        tracing::warn!(network, %resource, "a gap is used up");
        self.send(&made.id, &attempt).await?;
        Ok(())
    }

    async fn put(&self, own: Bytes) -> Result<(), SolverError> {
        let key = rows::account::key(&self.name);
        let batch = self.batch().put(key, self.known(own).encode()?);
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(SolverError::Fenced),
        }
    }
}

impl Shown {
    /// What an attempt is for, for people.
    pub fn owner(attempt: &attempt::Attempt) -> String {
        match &attempt.owner {
            Owner::Request(id) => format!("request {id}"),
            Owner::Settlement(id) => format!("settlement of {id}"),
            Owner::Approval { spender, currency } => {
                format!("approval of {currency} for {spender}")
            }
            Owner::Gap => "gap".to_owned(),
        }
    }
}

pub(super) fn standing(
    landing: &dyn trade::Landing,
    row: &rows::account::Account,
    reached: &[u8],
    attempts: &[(Bytes, attempt::Attempt)],
) -> Result<Standing, SolverError> {
    let held = attempts.iter();
    let held: Vec<_> = held
        .flat_map(|(_, attempt)| attempt.resources.iter().cloned())
        .collect();
    Ok(landing.standing(&row.own, reached, &held)?)
}
