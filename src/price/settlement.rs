//! What it costs to have an order settled.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::{protocol::limits::ACTION_GAS, trade::Trade};

use super::{PriceError, PriceSource};
use crate::market::Currency;

/// Gas units that the two transactions that settle an order may take: its deposit's execution and its
/// outcome's. With the contracts of the development network, two signatures each, a fill with a fee takes
/// 271,000 and a refund 205,000 (`tests/settler.rs`); more signatures and fees, and calldata, need room.
pub const GAS: u64 = 500_000;
/// Deposits of one transaction that this has room for: they are all executed together.
pub const TOGETHER: u32 = 3;
/// For one provider.
const PATIENCE: Duration = Duration::from_secs(3);
/// Seconds for which an answer is not asked for again, and for which it serves while nobody answers.
const FRESH: u64 = 10;
const LINGER: u64 = 900;

/// Tells what the settlement of one order, fill or refund, costs the solver.
#[async_trait]
pub trait SettlementPrice: Send + Sync {
    /// USD with 18 decimals at `now` (unix seconds).
    async fn settlement(&self, now: u64) -> Result<U256, PriceError>;
}

/// What more it costs than `usd` to settle an order whose deposit is one of so many in its transaction:
/// whoever wants one of them executed pays for the others, too.
pub fn beside(usd: U256, together: u32) -> U256 {
    let others = U256::from(together.saturating_sub(TOGETHER));
    let gas = others.saturating_mul(U256::from(ACTION_GAS));
    usd.saturating_mul(gas).div_ceil(U256::from(GAS))
}

/// Where nothing is settled.
pub struct Free;

#[async_trait]
impl SettlementPrice for Free {
    async fn settlement(&self, _: u64) -> Result<U256, PriceError> {
        Ok(U256::ZERO)
    }
}

/// On a chain, whose gas is paid in what is worth the same as `native`.
pub struct OnChain {
    pub trades: Vec<Trade>,
    pub native: Currency,
    pub prices: Arc<dyn PriceSource>,
    /// Wei of one settlement, and when it was read.
    pub last: Mutex<Option<(U256, u64)>>,
}

impl OnChain {
    fn known(&self, age: u64, now: u64) -> Option<U256> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (wei, at) = (*last)?;
        (at.abs_diff(now) < age).then_some(wei)
    }

    async fn wei(&self, now: u64) -> Result<U256, PriceError> {
        if let Some(wei) = self.known(FRESH, now) {
            return Ok(wei);
        }
        let asked = self.trades.iter().map(|trade| async move {
            let fees = tokio::time::timeout(PATIENCE, trade.writer.fees()).await;
            let fees = fees.ok()?.ok()?;
            Some(U256::from(fees.base).saturating_add(U256::from(fees.priority)))
        });
        let said = futures::future::join_all(asked).await;
        let known = self.known(LINGER, now);
        let Some(price) = middle(said.into_iter().flatten().collect()) else {
            return known.ok_or_else(|| unavailable("no provider answers".to_owned()));
        };
        let wei = price.saturating_mul(U256::from(GAS));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((wei, now));
        Ok(wei)
    }
}

#[async_trait]
impl SettlementPrice for OnChain {
    async fn settlement(&self, now: u64) -> Result<U256, PriceError> {
        let (wei, price) = futures::try_join!(self.wei(now), self.prices.price(&self.native, now))?;
        let coin = U256::from(10).checked_pow(U256::from(self.native.decimals));
        let usd = coin.and_then(|coin| Some(wei.checked_mul(price.most)?.div_ceil(coin)));
        usd.ok_or_else(|| unavailable("its cost is no number".to_owned()))
    }
}

/// What half of them do not exceed: one of three decides nothing.
fn middle(mut said: Vec<U256>) -> Option<U256> {
    said.sort_unstable();
    said.get(said.len() / 2).copied()
}

fn unavailable(why: String) -> PriceError {
    PriceError::Unavailable {
        currency: "settlement".to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_was_deposited_in_a_transaction_is_paid_for_by_whoever_is_settled() {
        let dollar = U256::from(1_000_000);
        for (together, cost) in [(0, 0), (1, 0), (3, 0), (4, 200_000), (150, 29_400_000)] {
            assert_eq!(beside(dollar, together), U256::from(cost), "{together}");
        }
        assert_eq!(beside(U256::ZERO, u32::MAX), U256::ZERO);
    }

    #[test]
    fn one_provider_of_three_makes_settlement_neither_free_nor_dear() {
        let of = |said: &[u64]| {
            let said = said.iter().map(|wei| U256::from(*wei)).collect();
            middle(said).map(|wei| wei.to::<u64>())
        };
        for (said, wanted) in [
            (&[][..], None),
            (&[5], Some(5)),
            (&[5, 6], Some(6)),
            (&[5, 6, 0], Some(5)),
            (&[5, 6, 10_000], Some(6)),
        ] {
            assert_eq!(of(said), wanted);
        }
    }
}
