//! What transactions cost, in the native currency: their gas, and their bytes where a chain charges for those.

use std::sync::Arc;

use super::Failover;
use crate::{
    ReadError,
    trade::{Call, Fees, Intended, Revert, TradingProvider},
    types::{Address, Amount, U256},
};

/// What a transaction costs now, in units of the native currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Gas units by estimate, without room.
    pub gas: u64,
    pub fees: Fees,
    /// What the chain charges for the bytes besides gas.
    pub data: Amount,
    /// All of it.
    pub total: Amount,
}

impl Failover {
    /// Of a chain about which no limits are told: it is asked once whether it has the contract that says what
    /// bytes cost where most such chains have one.
    #[must_use]
    pub fn asking_for_bytes(mut self) -> Self {
        self.bytes = Some(Arc::default());
        self
    }

    /// Gas units of a transaction that does nothing, with room for what changes until it is included.
    pub async fn idle(&self, account: &Address) -> Result<u64, ReadError> {
        let nothing = Call::nothing(account);
        let gas = self.estimate(&Intended::free(&nothing)).await?;
        let gas = gas.map_err(|Revert { reason, .. }| {
            ReadError::Doubtful(format!("a transaction that does nothing reverts: {reason}"))
        })?;
        Ok(gas.saturating_add(gas / 4))
    }

    /// What the chain charges for a transaction's bytes besides gas; nothing on most.
    pub async fn data_fee(&self, intended: &Intended<'_>) -> Result<Amount, ReadError> {
        let contract = match &self.bytes {
            None => self.context.limits.data_fees.as_ref(),
            Some(asked) => {
                let ask = || self.data_fees(&intended.call.from);
                asked.get_or_try_init(ask).await?.as_ref()
            }
        };
        match contract {
            None => Ok(Amount::ZERO),
            Some(contract) => self.data_fee_by(contract, intended).await,
        }
    }

    /// The same, as `contract` says it.
    async fn data_fee_by(
        &self,
        contract: &Address,
        intended: &Intended<'_>,
    ) -> Result<Amount, ReadError> {
        let draft = self.draft(intended, intended.fees.unwrap_or_default());
        let codec = self.context.codec;
        let question = codec.data_fee(self.context.number, &draft, Some(contract));
        let question = question.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let question = &question;
        let ask = |trade: TradingProvider| async move {
            let answer = trade.accounts.call(question).await?;
            let word = answer.ok().and_then(|said| said.first_chunk().copied());
            word.map(U256::from_be_bytes::<32>).ok_or_else(|| {
                ReadError::Unavailable("the contract of data fees does not answer".into())
            })
        };
        self.number("data fee", ask).await
    }

    /// The contract that prices bytes where most such chains have one, if this chain has it. `account` is
    /// any.
    pub async fn data_fees(&self, account: &Address) -> Result<Option<Address>, ReadError> {
        let nothing = Call::nothing(account);
        let draft = self.draft(&Intended::free(&nothing), Fees::default());
        let codec = self.context.codec;
        let Ok(question) = codec.data_fee(self.context.number, &draft, None) else {
            return Ok(None);
        };
        let there = self.is_contract(&question.to).await?;
        Ok(there.then_some(question.to))
    }

    /// What a payment that somebody plans would cost now in the native currency: its gas at what gas
    /// costs, and what the chain charges for its bytes. `Err` inside: it would revert. The real call with
    /// its real sender is tried.
    pub async fn cost(&self, intended: &Intended<'_>) -> Result<Result<Cost, Revert>, ReadError> {
        let fees = self.recent_fees().await?;
        let priced = Intended {
            fees: Some(fees),
            most: intended.most.or(Some(self.context.limits.gas)),
            ..*intended
        };
        let (gas, data) = futures::try_join!(self.estimate(&priced), self.data_fee(&priced))?;
        Ok(gas.map(|gas| {
            let total = fees.of(gas).saturating_add(data);
            Cost {
                gas,
                fees,
                data,
                total,
            }
        }))
    }
}
