//! What it costs to have an order settled.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use alloy::primitives::{Bytes, U256, keccak256};
use async_trait::async_trait;
use vm::{
    protocol::limits::{ACTION_GAS, SETTLEMENT_BYTES, SETTLEMENT_TOGETHER, SETTLEMENT_WORK},
    trade::FeeRate,
};

use super::{PriceError, PriceSource};
use crate::market::Currency;

/// For what the chain charges.
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

/// What it costs more than `usd` to settle an order whose deposit is one of so many in its transaction:
/// whoever wants one of them executed pays for the others, too.
pub fn beside(usd: U256, together: u32) -> U256 {
    let others = U256::from(together.saturating_sub(SETTLEMENT_TOGETHER));
    let work = others.saturating_mul(U256::from(ACTION_GAS));
    usd.saturating_mul(work)
        .div_ceil(U256::from(SETTLEMENT_WORK))
}

/// Where nothing is settled.
pub struct Free;

#[async_trait]
impl SettlementPrice for Free {
    async fn settlement(&self, _: u64) -> Result<U256, PriceError> {
        Ok(U256::ZERO)
    }
}

/// What a chain charges for transactions, by providers of which enough agree; `None` where they do not.
#[async_trait]
pub trait Charges: Send + Sync {
    /// What a unit of work costs now.
    async fn rate(&self) -> Option<FeeRate>;
    /// What a transaction with this data costs besides its work, in the native currency's smallest unit: nothing on
    /// most chains.
    async fn byte_fee(&self, data: Bytes) -> Option<U256>;
}

/// On a chain whose fees are paid in what is worth the same as `native`.
pub struct OnChain {
    pub charges: Arc<dyn Charges>,
    pub native: Currency,
    pub prices: Arc<dyn PriceSource>,
    /// What one settlement costs in the native currency's smallest unit, and when that was read.
    pub last: Mutex<Option<(U256, u64)>>,
}

impl OnChain {
    fn known(&self, age: u64, now: u64) -> Option<U256> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (cost, at) = (*last)?;
        (at.abs_diff(now) < age).then_some(cost)
    }

    /// What one settlement costs, in the native currency's smallest unit.
    async fn cost(&self, now: u64) -> Result<U256, PriceError> {
        if let Some(cost) = self.known(FRESH, now) {
            return Ok(cost);
        }
        let asked =
            async { futures::join!(self.charges.rate(), self.charges.byte_fee(some_data())) };
        let said = tokio::time::timeout(PATIENCE, asked).await;
        let Ok((Some(rate), Some(bytes))) = said else {
            let known = self.known(LINGER, now);
            return known.ok_or_else(|| unavailable("too few providers agree about it".to_owned()));
        };
        let work = rate.of(SETTLEMENT_WORK);
        // Two transactions.
        let bytes = bytes.saturating_mul(U256::from(2));
        let cost = work.saturating_add(bytes);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((cost, now));
        Ok(cost)
    }
}

#[async_trait]
impl SettlementPrice for OnChain {
    async fn settlement(&self, now: u64) -> Result<U256, PriceError> {
        let price = self.prices.price(&self.native, now);
        let (cost, price) = futures::try_join!(self.cost(now), price)?;
        let coin = U256::from(10).checked_pow(U256::from(self.native.decimals));
        let usd = coin.and_then(|coin| Some(cost.checked_mul(price.most)?.div_ceil(coin)));
        usd.ok_or_else(|| unavailable("its cost is no number".to_owned()))
    }
}

/// As much as a transaction that settles has, as hard to compress as its hashes and signatures.
fn some_data() -> Bytes {
    let words = (0_u64..).map(|at| keccak256(at.to_be_bytes()));
    words.flatten().take(SETTLEMENT_BYTES).collect()
}

fn unavailable(why: String) -> PriceError {
    PriceError::Unavailable {
        currency: "settlement".to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::price::Price;

    /// What a unit of work and every byte cost.
    struct Tariff(Option<u128>, Option<u64>);

    #[async_trait]
    impl Charges for Tariff {
        async fn rate(&self) -> Option<FeeRate> {
            self.0.map(|base| FeeRate { base, priority: 0 })
        }

        async fn byte_fee(&self, data: Bytes) -> Option<U256> {
            self.1.map(|each| U256::from(each) * U256::from(data.len()))
        }
    }

    struct Unasked;

    #[async_trait]
    impl PriceSource for Unasked {
        async fn price(&self, currency: &Currency, _: u64) -> Result<Price, PriceError> {
            Err(PriceError::Unknown(currency.symbol.clone()))
        }
    }

    #[tokio::test]
    async fn settlement_costs_its_work_and_what_its_chain_takes_for_bytes() {
        let native = json!({"address": "0x", "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth"});
        let mut chain = OnChain {
            charges: Arc::new(Tariff(Some(7), Some(0))),
            native: serde_json::from_value(native).unwrap(),
            prices: Arc::new(Unasked),
            last: Mutex::default(),
        };
        let work = U256::from(7 * SETTLEMENT_WORK);
        assert_eq!(chain.cost(100).await, Ok(work));
        chain.charges = Arc::new(Tariff(Some(7), Some(1_000)));
        assert_eq!(chain.cost(100).await, Ok(work), "it is asked for again");
        let both = work + U256::from(2 * SETTLEMENT_BYTES * 1_000);
        assert_eq!(chain.cost(100 + FRESH).await, Ok(both));
        // Where nobody can say what either costs, what was said before serves for a while.
        chain.charges = Arc::new(Tariff(Some(7), None));
        assert_eq!(chain.cost(100 + 2 * FRESH).await, Ok(both));
        chain.charges = Arc::new(Tariff(None, Some(0)));
        assert_eq!(chain.cost(100 + 2 * FRESH).await, Ok(both));
        assert!(chain.cost(100 + FRESH + LINGER).await.is_err());
    }

    #[test]
    fn what_else_was_deposited_in_a_transaction_is_paid_for_by_whoever_is_settled() {
        let dollar = U256::from(1_000_000);
        for (together, cost) in [(0, 0), (1, 0), (3, 0), (4, 200_000), (150, 29_400_000)] {
            assert_eq!(beside(dollar, together), U256::from(cost), "{together}");
        }
        assert_eq!(beside(U256::ZERO, u32::MAX), U256::ZERO);
    }
}
