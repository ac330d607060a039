//! Which accounts are contracts, and whether those of the market file are what it says.

use async_trait::async_trait;

use super::Wallet;
use crate::{
    CodecError, ReadError,
    trade::{ContractChecks, Draft, ListedContracts, Revert, TradingProvider},
    types::Address,
};

#[async_trait]
impl ContractChecks for Wallet {
    async fn is_contract(&self, account: &Address) -> Result<bool, ReadError> {
        let ask = |provider: TradingProvider| async move {
            provider.contracts()?.is_contract(account).await
        };
        self.failover.agree("code", ask).await
    }

    async fn simulate_all(&self, drafts: &[Draft]) -> Result<Result<(), Revert>, ReadError> {
        let calls = drafts.iter().map(Draft::as_call);
        let calls = calls.collect::<Option<Vec<_>>>();
        let calls = &calls.ok_or_else(|| ReadError::Doubtful("not a call".into()))?;
        let ask =
            |provider: TradingProvider| async move { provider.simulator()?.simulate(calls).await };
        let alike =
            |one: &Result<_, Revert>, other: &Result<_, Revert>| one.is_ok() == other.is_ok();
        let said = self.failover.gather("simulation", alike, ask).await?;
        self.failover.verdict("simulation", said)
    }

    async fn mismatches(&self, listed: ListedContracts<'_>) -> Result<Vec<String>, ReadError> {
        let (contracts, bytes) =
            futures::try_join!(self.contract_mismatches(listed), self.byte_mismatch())?;
        Ok(contracts.into_iter().chain(bytes).collect())
    }
}

impl Wallet {
    /// A chain that charges for bytes would be traded on at a loss where the market file does not say so.
    async fn byte_mismatch(&self) -> Result<Option<String>, ReadError> {
        if self.data_fees.is_some() {
            return Ok(None);
        }
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let anybody = self.family.native().map_err(doubtful)?;
        let found = self.usual_data_fees(&anybody).await?;
        let unsaid = |contract| format!("limits.dataFees: {contract} charges for bytes here");
        Ok(found.map(unsaid))
    }

    async fn contract_mismatches(
        &self,
        listed: ListedContracts<'_>,
    ) -> Result<Vec<String>, ReadError> {
        let ListedContracts { router, proxy } = listed;
        let mut wrong = Vec::new();
        if let Some(router) = router
            && !self.is_contract(router).await?
        {
            wrong.push(format!("fillRouter: no contract at {router}"));
        }
        match (proxy, router) {
            (Some(proxy), Some(router)) => {
                if !self.is_router(proxy, router).await? {
                    let what = format!("{proxy} does not hand calls to {router}");
                    wrong.push(format!("approvalProxy: {what}"));
                }
            }
            (Some(_), None) => wrong.push("approvalProxy: without a fillRouter".to_owned()),
            (None, _) => {}
        }
        Ok(wrong)
    }

    /// Whether an approval proxy hands calls to `router`.
    async fn is_router(&self, proxy: &Address, router: &Address) -> Result<bool, ReadError> {
        let routing = self.codec.routing(proxy, router);
        let (question, expected) =
            routing.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let (question, expected) = (&question, &expected);
        let ask = |provider: TradingProvider| async move {
            let said = provider.contracts()?.call(question).await?;
            Ok(said.is_ok_and(|said| said == *expected))
        };
        self.failover.agree("router", ask).await
    }
}
