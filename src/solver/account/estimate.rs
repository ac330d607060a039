//! What a call of the account's would take, and cost.

use vm::{
    Amount,
    trade::{Authorization, Call, Fees, Intended, Revert, Unfit},
};

use super::{Attempt, SolverAccount};
use crate::solver::SolverError;

impl SolverAccount {
    /// Gas units of a call as it will be sent, with room for what changes until it is included; or why it
    /// would revert, by agreement.
    pub async fn estimate(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, SolverError> {
        let most = self.site.providers.limits().gas;
        let estimate = self.bare_estimate(call, authorizations).await?;
        Ok(estimate.map(|gas| gas.saturating_add(gas / 4).min(most)))
    }

    /// As [`Self::estimate`], without room.
    pub async fn bare_estimate(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, SolverError> {
        // Nothing is planned above the operator's limit.
        let fees = self.fees().await?;
        let most = self.site.providers.limits().gas;
        let intended = Intended {
            call,
            authorizations,
            fees: Some(fees),
            most: Some(most),
        };
        Ok(self.site.estimate(&intended).await?)
    }

    /// Whether a call still succeeds with `gas` units and no more, as it will be sent: code can tell an
    /// estimate by the gas that it has.
    pub async fn rehearse(
        &self,
        call: &Call,
        authorizations: &[Authorization],
        gas: u64,
    ) -> Result<Result<(), Revert>, SolverError> {
        let intended = Intended {
            call,
            authorizations,
            fees: Some(self.fees().await?),
            most: Some(gas),
        };
        Ok(self.site.estimate(&intended).await?.map(drop))
    }

    /// Whether nodes take a call with authorizations as a transaction at all.
    pub async fn admit(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<(), Unfit>, SolverError> {
        let intended = Intended {
            authorizations,
            ..Intended::free(call)
        };
        Ok(self.site.admit(&intended).await?)
    }

    /// What a transaction takes here that does nothing, with room.
    pub async fn idle(&self) -> Result<u64, SolverError> {
        Ok(self.site.providers.idle(&self.owner).await?)
    }

    /// What gas costs now; an error above the operator's limit.
    pub async fn fees(&self) -> Result<Fees, SolverError> {
        let fees = self.site.fees().await?;
        if fees.price() > self.gas.most {
            return Err(SolverError::Dear(self.site.name.clone()));
        }
        Ok(fees)
    }

    /// What a call that takes `gas` units costs now in the native currency, with what the chain charges
    /// for its bytes.
    pub async fn cost(&self, call: &Call, gas: u64) -> Result<Amount, SolverError> {
        let fees = self.fees().await?;
        let intended = Intended {
            fees: Some(fees),
            most: Some(gas),
            ..Intended::free(call)
        };
        let data = self.site.data_fee(&intended).await?;
        Ok(fees.of(gas).saturating_add(data))
    }

    /// What the chain charges for the bytes of a call besides gas.
    pub async fn data_fee(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Amount, SolverError> {
        let intended = Intended {
            authorizations,
            ..Intended::free(call)
        };
        Ok(self.site.data_fee(&intended).await?)
    }

    /// What one of an attempt's transactions may cost now at most, in the native currency.
    pub async fn at_most(
        &self,
        (id, attempt): (&[u8], &Attempt),
        signed: usize,
    ) -> Result<Amount, SolverError> {
        let made = self.made(id, attempt)?;
        let cost = self.account.costs.at_most(&made, signed).await;
        cost.map_err(|error| self.told(error))
    }
}
