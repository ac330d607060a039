//! Chainlink's AggregatorV3 interface on a chain.

use std::sync::Arc;

use alloy::{
    sol,
    sol_types::{SolCall, SolValue},
};
use async_trait::async_trait;
use vm::{Address, trade::Contracts};

use super::{
    bounded,
    feed::{Doubt, Feed, Observation, dollars, timely},
};
use crate::chains::HeadCalls;

sol! {
    /// One round as the aggregator answers it.
    struct Round {
        uint80 roundId;
        int256 answer;
        uint256 startedAt;
        uint256 updatedAt;
        uint80 answeredInRound;
    }

    function latestRoundData();
    function decimals() returns (uint8);
}

/// Every provider of the chain is asked: one of three that lies alone changes nothing; one of two makes the
/// price unavailable, not wrong.
pub struct Chainlink {
    pub head_calls: HeadCalls,
    pub aggregator: Address,
    /// Seconds.
    pub max_age: u64,
    /// How far providers may be apart, in basis points: one may be a round behind.
    pub spread: u32,
}

#[async_trait]
impl Feed for Chainlink {
    async fn read(&self, now: u64) -> Result<Observation, Doubt> {
        let providers = self.head_calls.contracts.iter();
        let answers = providers.map(|contracts| self.one(contracts, now));
        let answers = futures::future::join_all(answers).await;
        bounded::of_most(&answers, self.spread)
    }

    fn believable(&self, seen: &Observation, now: u64) -> bool {
        timely(seen.at, self.max_age, now)
    }
}

impl Chainlink {
    async fn one(&self, contracts: &Arc<dyn Contracts>, now: u64) -> Result<Observation, Doubt> {
        let (round, decimals) = tokio::try_join!(
            self.call(contracts, latestRoundDataCall {}),
            self.call(contracts, decimalsCall {}),
        )?;
        let round = Round::abi_decode_validate(&round).map_err(|_| senseless("latestRoundData"))?;
        let decimals = decimalsCall::abi_decode_returns_validate(&decimals)
            .map_err(|_| senseless("decimals"))?;
        self.judge(&round, decimals, now)
    }

    async fn call(
        &self,
        contracts: &Arc<dyn Contracts>,
        call: impl SolCall,
    ) -> Result<vm::Bytes, Doubt> {
        let data = call.abi_encode().into();
        match self.head_calls.one(contracts, &self.aggregator, data).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(revert)) => Err(Doubt::Silent(format!("reverted: {}", revert.reason))),
            Err(error) => Err(Doubt::Silent(error.to_string())),
        }
    }

    fn judge(&self, round: &Round, decimals: u8, now: u64) -> Result<Observation, Doubt> {
        let at = u64::try_from(round.updatedAt).unwrap_or(u64::MAX);
        if !timely(at, self.max_age, now) {
            return Err(Doubt::Untimely(at));
        }
        if round.answeredInRound < round.roundId {
            return Err(Doubt::Unfinished);
        }
        if !round.answer.is_positive() {
            return Err(Doubt::Senseless);
        }
        let usd = dollars(round.answer.into_raw(), -i32::from(decimals))?;
        Ok(Observation { usd, at, swing: 0 })
    }
}

fn senseless(what: &str) -> Doubt {
    Doubt::Silent(format!("{what} answered something else"))
}
