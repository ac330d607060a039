//! What the approval proxies may take of the solver's tokens. They take from their caller only, so an
//! allowance without end gives nobody anything; it is made ahead, since quotes are simulated with it.

use vm::{
    Address, Amount, CodecError,
    trade::{Intent, Spend},
};

use super::{
    Solver, SolverError,
    account::{Plan, SolverAccount},
};
use crate::store::{Outcome, requests::RequestsError, rows::attempt::Owner};

/// Units below which an allowance is made anew ahead of need: tokens that count in 96 bits cannot be
/// allowed more than twice as many.
const ENOUGH: Amount = Amount::from_limbs([0, 1 << 31, 0, 0]);

impl Solver {
    /// Sees to the allowances of a network before any fill needs them; whether all are there. `now` in
    /// unix milliseconds.
    pub async fn allow_ahead(&self, lane: &SolverAccount, now: u64) -> Result<bool, SolverError> {
        if self.former.iter().any(|former| former.name == lane.name) {
            return Ok(true);
        }
        let market = lane.site.market.as_ref();
        let Some((proxy, network)) = lane.site.proxy()?.zip(market) else {
            return Ok(true);
        };
        // Nobody is allowed anything whom only the market file calls the proxy.
        if lane.site.sound().is_err() {
            return Ok(!lane.site.is_unsure());
        }
        let (mut all, mut failure) = (true, None);
        for listed in network.currencies.iter().skip(1).filter(|one| one.solver) {
            let currency = lane.site.family().address(&listed.address)?;
            match self.allow(lane, (&proxy, &currency), ENOUGH, now).await {
                Ok(there) => all &= there,
                // One token that cannot be allowed is no reason to leave the others out.
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(all), Err)
    }

    /// Whether `spender` may take what a fill pays beside what others on their way do. Where not, an
    /// allowance is on its way afterwards.
    pub(super) async fn allowed(
        &self,
        lane: &SolverAccount,
        spender: &Address,
        spends: &[(Address, Amount)],
        now: u64,
    ) -> Result<bool, SolverError> {
        for (currency, amount) in spends {
            let needed = lane.reserved(currency).await?.saturating_add(*amount);
            if !self.allow(lane, (spender, currency), needed, now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn allow(
        &self,
        lane: &SolverAccount,
        (spender, currency): (&Address, &Address),
        needed: Amount,
        now: u64,
    ) -> Result<bool, SolverError> {
        let site = &lane.site;
        let allowed = site.allowance(&lane.owner, spender, currency).await?;
        if allowed >= needed {
            return Ok(true);
        }
        let owner = Owner::Allowance {
            spender: spender.text().to_owned(),
            currency: currency.text().to_owned(),
        };
        let mut attempts = lane.attempts().await?.into_iter();
        if attempts.any(|(_, attempt)| attempt.owner == owner) {
            return Ok(false);
        }
        let listed = site.listed(currency.text());
        let reset = listed.is_some_and(|listed| listed.approval_reset) && !allowed.is_zero();
        let amount = Amount::MAX;
        let spend = Spend {
            spender,
            currency,
            amount,
        };
        for step in site.steps.approve(&lane.owner, &spend, reset)? {
            self.send(lane, (owner.clone(), step.call), now).await?;
        }
        Ok(false)
    }

    async fn send(
        &self,
        lane: &SolverAccount,
        (owner, call): (Owner, vm::trade::Call),
        now: u64,
    ) -> Result<(), SolverError> {
        let gas = lane
            .estimate(&call, &[])
            .await?
            .map_err(|revert| CodecError(format!("allowance would revert: {}", revert.reason)))?;
        let plan = Plan {
            owner,
            intent: Intent {
                call,
                authorizations: Vec::new(),
                limit: gas,
                spends: Vec::new(),
            },
        };
        let mut taken = lane.take(&plan, now / 1_000).await?;
        let batch = std::mem::take(&mut taken.batch);
        match self.requests.store().commit(batch).await? {
            Outcome::Applied { .. } => {}
            Outcome::Refused { .. } => return Err(RequestsError::Refused.into()),
        }
        let (id, attempt) = (taken.id.clone(), taken.attempt.clone());
        drop(taken);
        lane.send(&id, &attempt).await?;
        Ok(())
    }
}
