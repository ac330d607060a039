//! What it costs to have an order settled.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use alloy::primitives::{Bytes, U256, keccak256};
use async_trait::async_trait;
use vm::{protocol::limits::ACTION_GAS, trade::Writer};

use super::{PriceError, PriceSource};
use crate::market::Currency;

/// Gas units that the two transactions that settle an order may take: its deposit's execution and its
/// outcome's. With the contracts of the development network, two signatures each, a fill with a fee takes
/// 271,000 and a refund 205,000 (`tests/daemon/settler.rs`); more signatures and fees, and calldata, need room.
pub const GAS: u64 = 500_000;
/// Deposits of one transaction that this has room for: they are all executed together.
pub const TOGETHER: u32 = 3;
/// Bytes of calldata of each of the two: three deposits, or a fill with fees, and two signatures.
pub const BYTES: usize = 1_536;
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

/// What a chain charges for a transaction's bytes besides gas: nothing on most.
#[async_trait]
pub trait ByteFee: Send + Sync {
    /// Wei for a transaction with this calldata now; `None` where nobody can say.
    async fn byte_fee(&self, data: Bytes) -> Option<U256>;
}

/// On a chain, whose gas is paid in what is worth the same as `native`.
pub struct OnChain {
    /// One for each provider.
    pub writers: Vec<Arc<dyn Writer>>,
    pub bytes: Arc<dyn ByteFee>,
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
        let asked = self.writers.iter().map(|writer| async move {
            let fees = tokio::time::timeout(PATIENCE, writer.fees()).await;
            Some(fees.ok()?.ok()?.of(GAS))
        });
        let bytes = tokio::time::timeout(PATIENCE, self.bytes.byte_fee(calldata()));
        let (said, bytes) = futures::join!(futures::future::join_all(asked), bytes);
        let gas = middle(said.into_iter().flatten().collect());
        let Some((gas, bytes)) = gas.zip(bytes.ok().flatten()) else {
            let known = self.known(LINGER, now);
            return known.ok_or_else(|| unavailable("no provider answers".to_owned()));
        };
        // Two transactions.
        let bytes = bytes.saturating_mul(U256::from(2));
        let wei = gas.saturating_add(bytes);
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

/// As much as a transaction that settles has, as hard to compress as its hashes and signatures.
fn calldata() -> Bytes {
    let words = (0_u64..).map(|at| keccak256(at.to_be_bytes()));
    words.flatten().take(BYTES).collect()
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
    use alloy::primitives::B256;
    use serde_json::json;
    use vm::{
        Address, ReadError,
        trade::{Broadcast, Fate, Fees, Intended, Revert},
    };

    use super::*;
    use crate::price::Price;

    /// Gas for so many wei.
    struct Gas(u128);

    #[async_trait]
    impl Writer for Gas {
        async fn estimate(&self, _: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError> {
            Err(silent())
        }

        async fn fees(&self) -> Result<Fees, ReadError> {
            let fees = Fees {
                base: self.0,
                priority: 0,
            };
            (self.0 > 0).then_some(fees).ok_or_else(silent)
        }

        async fn nonce(&self, _: &Address, _: bool) -> Result<u64, ReadError> {
            Err(silent())
        }

        async fn broadcast(&self, _: &Bytes) -> Result<Broadcast, ReadError> {
            Err(silent())
        }

        async fn fate(&self, _: &B256) -> Result<Fate, ReadError> {
            Err(silent())
        }
    }

    fn silent() -> ReadError {
        ReadError::Unavailable("silent".into())
    }

    /// Every byte for so many wei.
    struct Bytewise(Option<u64>);

    #[async_trait]
    impl ByteFee for Bytewise {
        async fn byte_fee(&self, data: Bytes) -> Option<U256> {
            self.0.map(|wei| U256::from(wei) * U256::from(data.len()))
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
    async fn settlement_costs_gas_and_what_its_chain_takes_for_bytes() {
        let native = json!({"address": "0x", "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth"});
        let mut chain = OnChain {
            writers: vec![Arc::new(Gas(7))],
            bytes: Arc::new(Bytewise(Some(0))),
            native: serde_json::from_value(native).unwrap(),
            prices: Arc::new(Unasked),
            last: Mutex::default(),
        };
        let gas = U256::from(7 * GAS);
        assert_eq!(chain.wei(100).await, Ok(gas));
        chain.bytes = Arc::new(Bytewise(Some(1_000)));
        assert_eq!(chain.wei(100).await, Ok(gas), "it is asked for again");
        let both = gas + U256::from(2 * BYTES * 1_000);
        assert_eq!(chain.wei(100 + FRESH).await, Ok(both));
        // Where nobody can say what either costs, what was said before serves for a while.
        chain.bytes = Arc::new(Bytewise(None));
        assert_eq!(chain.wei(100 + 2 * FRESH).await, Ok(both));
        chain.bytes = Arc::new(Bytewise(Some(0)));
        chain.writers = vec![Arc::new(Gas(0))];
        assert_eq!(chain.wei(100 + 2 * FRESH).await, Ok(both));
        assert!(chain.wei(100 + FRESH + LINGER).await.is_err());
    }

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
