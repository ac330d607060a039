//! Approvals of the approval proxies, which take the solver's tokens for fills. A proxy takes from its caller only, so
//! that an unlimited approval gives nobody else anything. The solver approves ahead of need, since quotes are simulated
//! with the approval. Where a family has no approvals, everything is approved.

use vm::{
    Address, Amount, CodecError,
    trade::{Draft, Intent, Spend},
};

use super::{
    Solver, SolverError,
    account::{Plan, SolverAccount},
};
use crate::store::{Outcome, requests::RequestsError, rows::attempt::Owner};

/// Units below which an approval is made anew ahead of need: tokens that count in 96 bits can be approved for no
/// more than twice as many.
const ENOUGH: Amount = Amount::from_limbs([0, 1 << 31, 0, 0]);

impl Solver {
    /// Begins the approvals of an account that fills will need; whether all of them are there. `now` in unix
    /// milliseconds.
    pub async fn approve_ahead(
        &self,
        account: &SolverAccount,
        now: u64,
    ) -> Result<bool, SolverError> {
        if self.former.iter().any(|former| former.name == account.name) {
            return Ok(true);
        }
        let market = account.chain.market.as_ref();
        let Some((proxy, network)) = account.chain.proxy()?.zip(market) else {
            return Ok(true);
        };
        // The market file alone does not make a contract the proxy: its chain must have confirmed it.
        if account.chain.sound().is_err() {
            return Ok(!account.chain.is_unsure());
        }
        let (mut all, mut failure) = (true, None);
        for listed in network.currencies.iter().skip(1).filter(|one| one.solver) {
            let currency = account.chain.family().address(&listed.address)?;
            let spend = Spend {
                spender: &proxy,
                currency: &currency,
                amount: ENOUGH,
            };
            match self.approve(account, &spend, now).await {
                Ok(there) => all &= there,
                // One token that cannot be approved holds up no other.
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(all), Err)
    }

    /// Whether `spender` may take what a fill pays besides what payments under way take. If not, an approval is on its
    /// way afterwards.
    pub(super) async fn approved(
        &self,
        account: &SolverAccount,
        spender: &Address,
        spends: &[(Address, Amount)],
        now: u64,
    ) -> Result<bool, SolverError> {
        for (currency, amount) in spends {
            let spend = Spend {
                spender,
                currency,
                amount: account.reserved(currency).await?.saturating_add(*amount),
            };
            if !self.approve(account, &spend, now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether so much is approved. If not, as a quorum says, the approval of everything is on its way afterwards.
    async fn approve(
        &self,
        account: &SolverAccount,
        needed: &Spend<'_>,
        now: u64,
    ) -> Result<bool, SolverError> {
        let (spender, currency) = (needed.spender, needed.currency);
        let chain = &account.chain;
        let Some(steps) = chain.approvals else {
            return Ok(true);
        };
        let providers = &chain.providers;
        if providers.suffices(&account.owner, needed).await? {
            return Ok(true);
        }
        let owner = Owner::Approval {
            spender: spender.text().to_owned(),
            currency: currency.text().to_owned(),
        };
        let mut attempts = account.attempts().await?.into_iter();
        if attempts.any(|(_, attempt)| attempt.owner == owner) {
            return Ok(false);
        }
        let approved = providers
            .approved(&account.owner, spender, currency)
            .await?;
        let listed = chain.listed(currency.text());
        let reset = listed.is_some_and(|listed| listed.approval_reset) && !approved.is_zero();
        let amount = Amount::MAX;
        let spend = Spend {
            spender,
            currency,
            amount,
        };
        for step in steps.approve(&account.owner, &spend, reset)? {
            self.send(account, (owner.clone(), step.draft), now).await?;
        }
        Ok(false)
    }

    async fn send(
        &self,
        account: &SolverAccount,
        (owner, draft): (Owner, Draft),
        now: u64,
    ) -> Result<(), SolverError> {
        let work = account
            .simulate(&draft)
            .await?
            .map_err(|revert| CodecError(format!("approval would revert: {}", revert.reason)))?;
        let plan = Plan {
            owner,
            intent: Intent {
                draft,
                work,
                besides: None,
                spends: Vec::new(),
            },
            keeps: false,
        };
        let mut taken = account.take(&plan, now / 1_000).await?;
        let batch = std::mem::take(&mut taken.batch);
        match self.requests.store().commit(batch).await? {
            Outcome::Applied { .. } => {}
            Outcome::Refused { .. } => return Err(RequestsError::Refused.into()),
        }
        let (id, attempt) = (taken.id.clone(), taken.attempt.clone());
        drop(taken);
        account.send(&id, &attempt).await?;
        Ok(())
    }
}
