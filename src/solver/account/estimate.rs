//! What a transaction of the account's would take, and cost.

use vm::{
    Amount,
    trade::{Draft, Fee, FeeRate, Revert, Trial, Unfit},
};

use super::{SolverAccount, attempt};
use crate::solver::SolverError;

impl SolverAccount {
    /// The work of a transaction as it will be sent ([`Self::roomy`]); or why it would fail, by agreement.
    pub async fn simulate(&self, draft: &Draft) -> Result<Result<u64, Revert>, SolverError> {
        let most = self.chain.providers.limits.work;
        match self.bare_work(draft).await? {
            Ok(work) => self.roomy(draft, (work, most)).await,
            Err(revert) => Ok(Err(revert)),
        }
    }

    /// `work` with room for what changes until the transaction is included, at most `most`, with which it still succeeds;
    /// or why it would fail. Providers that agree on its work may be twice apart: where it fails with the room, it is
    /// tried with more, up to twice that.
    pub async fn roomy(
        &self,
        draft: &Draft,
        (work, most): (u64, u64),
    ) -> Result<Result<u64, Revert>, SolverError> {
        let quarter = work.saturating_add(work / 4);
        let five_eighths = work.saturating_add(work / 2).saturating_add(work / 8);
        let mut given = quarter.min(most);
        let mut tried = self.simulate_with(draft, given).await?;
        for more in [five_eighths, quarter.saturating_mul(2)] {
            let more = more.min(most);
            if tried.is_ok() || more <= given {
                break;
            }
            given = more;
            tried = self.simulate_with(draft, given).await?;
        }
        Ok(tried.map(|()| given))
    }

    /// What a transaction takes now; or why it would fail, by agreement.
    pub async fn bare_work(&self, draft: &Draft) -> Result<Result<u64, Revert>, SolverError> {
        self.tried(draft, self.chain.providers.limits.work).await
    }

    /// Whether a transaction still succeeds with so much work and no more, as it will be sent: code can tell a
    /// simulation by the work that it may take.
    pub async fn simulate_with(
        &self,
        draft: &Draft,
        work: u64,
    ) -> Result<Result<(), Revert>, SolverError> {
        Ok(self.tried(draft, work).await?.map(drop))
    }

    async fn tried(&self, draft: &Draft, most: u64) -> Result<Result<u64, Revert>, SolverError> {
        // Nothing is planned above the operator's limit.
        let trial = Trial {
            draft,
            rate: Some(self.recent_rate().await?),
            most: Some(most),
        };
        Ok(self.chain.providers.wallet.simulate(&trial).await?)
    }

    /// Whether nodes take a transaction at all.
    pub async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, SolverError> {
        Ok(self.chain.providers.wallet.admit(draft).await?)
    }

    /// Whether so much work is no more than anybody needs to receive a payment.
    pub async fn is_modest(&self, work: u64) -> Result<bool, SolverError> {
        let wallet = &self.chain.providers.wallet;
        Ok(wallet.is_modest(&self.owner, work).await?)
    }

    /// What a unit of work costs now; an error above the operator's limit.
    pub async fn rate(&self) -> Result<FeeRate, SolverError> {
        self.allowed(self.chain.providers.failover.rate().await?)
    }

    /// The same of a moment ago: to try something, or to tell what it would cost.
    pub async fn recent_rate(&self) -> Result<FeeRate, SolverError> {
        self.allowed(self.chain.providers.failover.recent_rate().await?)
    }

    fn allowed(&self, rate: FeeRate) -> Result<FeeRate, SolverError> {
        match rate.expected() > self.limits.most_rate {
            true => Err(SolverError::Dear(self.chain.name.clone())),
            false => Ok(rate),
        }
    }

    /// What a transaction that takes so much work costs now, where it is signed now.
    pub async fn fee(&self, draft: &Draft, work: u64) -> Result<Fee, SolverError> {
        let rate = self.rate().await?;
        let trial = Trial {
            draft,
            rate: Some(rate),
            most: Some(work),
        };
        let besides = self.chain.providers.fees.besides(&trial).await?;
        Ok(Fee {
            work,
            rate: self.chain.providers.rate_as_signed(rate),
            besides,
        })
    }

    /// What the chain charges for a transaction besides its work.
    pub async fn besides(&self, draft: &Draft) -> Result<Amount, SolverError> {
        let fees = &self.chain.providers.fees;
        Ok(fees.besides(&Trial::free(draft)).await?)
    }

    /// What one of an attempt's transactions may cost now at most, in the native currency.
    pub async fn at_most(
        &self,
        (id, attempt): (&[u8], &attempt::Attempt),
        signed: usize,
    ) -> Result<Amount, SolverError> {
        let made = self.made(id, attempt)?;
        let cost = self.account.costs.at_most(&made, signed).await;
        cost.map_err(|error| self.failure(error))
    }
}
