//! Resources that the chain waits for and that no attempt of ours holds: nothing behind them lands.
//!
//! They come from a jump that did not last (another user of the key whom a reorg took away, a provider
//! that lied), or from a reorg deeper than a chain's finality, which takes them with it. The former
//! never had a payment of ours and are used up without asking; the latter may have had one, so that an
//! operator decides.

use vm::{
    Bytes,
    trade::{self, Goal, Standing},
};

use super::{SolverAccount, attempt::Attempt, kept};
use crate::{
    solver::SolverError,
    store::{
        Outcome,
        rows::{self, attempt::Owner},
    },
};

/// A lane as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub network: String,
    pub account: String,
    /// What the next attempt holds; unset before the first one.
    pub next: Option<String>,
    /// How far the chain is, by agreement of its providers, or why nobody says it.
    pub reached: Result<String, String>,
    /// What is not done with, by what it is called.
    pub attempts: Vec<(String, Attempt)>,
    /// What the chain waits for and nobody holds.
    pub gaps: Vec<String>,
}

impl SolverAccount {
    pub async fn show(&self) -> Result<Shown, SolverError> {
        let reached = self.account.submitter.reached().await;
        let reached = reached.map_err(|error| error.to_string());
        let (_, stored) = self.row().await?;
        let attempts = self.attempts().await?;
        let landing = self.site.landing;
        let next = stored
            .as_ref()
            .map(|lane| self.text(&landing.next(&lane.own)?));
        let gaps = match (&reached, &stored) {
            (Ok(reached), Some(lane)) => standing(landing, lane, reached, &attempts)?.gaps,
            _ => Vec::new(),
        };
        let reached = match reached {
            Ok(reached) => Ok(self.text(&reached)?),
            Err(why) => Err(why),
        };
        let named = attempts.into_iter();
        let named = named.map(|(id, attempt)| Ok((self.text(&id)?, attempt)));
        Ok(Shown {
            network: self.site.name.clone(),
            account: self.owner.text().to_owned(),
            next: next.transpose()?,
            reached,
            attempts: named.collect::<Result<_, SolverError>>()?,
            gaps: self.texts(&gaps)?,
        })
    }

    fn text(&self, resource: &[u8]) -> Result<String, SolverError> {
        Ok(self.site.landing.label(resource)?.text)
    }

    fn texts(&self, resources: &[Bytes]) -> Result<Vec<String>, SolverError> {
        let texts = resources.iter().map(|resource| self.text(resource));
        texts.collect()
    }

    /// Uses up what the chain waits for and nobody holds, and goes on behind what it has reached where that is
    /// ahead, however far. What was used up. `now` in unix seconds.
    pub async fn heal(&self, now: u64) -> Result<Vec<String>, SolverError> {
        let reached = self.reached().await?;
        let _turn = self.turn.lock().await;
        let (_, stored) = self.row().await?;
        let Some(lane) = stored else {
            return Ok(Vec::new());
        };
        let attempts = self.attempts().await?;
        let found = standing(self.site.landing, &lane, &reached, &attempts)?;
        if let Some(own) = found.believing {
            self.put(own).await?;
        }
        for resource in &found.gaps {
            self.use_up(resource, now).await?;
        }
        self.texts(&found.gaps)
    }

    /// Uses up what was passed and the chain waits for after all; tells of other gaps.
    pub(super) async fn unskip(&self, now: u64) -> Result<(), SolverError> {
        if self.row().await?.1.is_none() {
            return Ok(());
        }
        let reached = self.reached().await?;
        let _turn = self.turn.lock().await;
        let (_, stored) = self.row().await?;
        let Some(lane) = stored else {
            return Ok(());
        };
        let attempts = self.attempts().await?;
        let found = standing(self.site.landing, &lane, &reached, &attempts)?;
        self.tell_lost(&found)?;
        for resource in &found.spare {
            self.use_up(resource, now).await?;
        }
        match found.tidied {
            Some(own) => self.put(own).await,
            None => Ok(()),
        }
    }

    fn tell_lost(&self, found: &Standing) -> Result<(), SolverError> {
        let gaps = found.gaps.iter();
        let lost: Vec<_> = gaps
            .filter(|gap| !found.spare.contains(gap))
            .cloned()
            .collect();
        let network = self.site.name.clone();
        metrics::gauge!("intentd_solver_nonce_gaps", "network" => network.clone())
            .set(u32::try_from(lost.len()).unwrap_or(u32::MAX));
        if !lost.is_empty() {
            let lost = self.texts(&lost)?;
            tracing::error!(
                network,
                ?lost,
                "the chain waits for nonces of the solver's: intentd lane heal"
            );
        }
        Ok(())
    }

    async fn reached(&self) -> Result<Bytes, SolverError> {
        let reached = self.account.submitter.reached().await;
        reached.map_err(|error| self.told(error))
    }

    /// Only in turn.
    async fn use_up(&self, resource: &Bytes, now: u64) -> Result<(), SolverError> {
        let asked = self.account.submitter.look(Goal::UseUp(resource), false);
        let outlook = asked.await.map_err(|error| self.told(error))?;
        let prepared = outlook.prepare(None).await;
        let made = prepared.map_err(|error| self.told(error))?.attempt;
        let attempt = kept(&made, (Owner::Gap, now));
        let batch = self.begin(self.batch(), &made.id, &attempt)?;
        if let Outcome::Refused { .. } = self.store.commit(batch).await? {
            return Err(SolverError::Fenced);
        }
        let (network, resource) = (self.site.name.as_str(), self.text(resource)?);
        tracing::warn!(network, resource, "a nonce is used up");
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
    /// Whose an attempt is, for people.
    pub fn owner(attempt: &Attempt) -> String {
        match &attempt.owner {
            Owner::Request(id) => format!("request {id}"),
            Owner::Settlement(id) => format!("settlement of {id}"),
            Owner::Allowance { spender, currency } => {
                format!("allowance of {currency} for {spender}")
            }
            Owner::Gap => "gap".to_owned(),
        }
    }
}

fn standing(
    landing: &dyn trade::Landing,
    lane: &rows::account::Account,
    reached: &[u8],
    attempts: &[(Bytes, Attempt)],
) -> Result<Standing, SolverError> {
    let held = attempts.iter();
    let held: Vec<_> = held
        .flat_map(|(_, attempt)| attempt.resources.iter().cloned())
        .collect();
    Ok(landing.standing(&lane.own, reached, &held)?)
}
