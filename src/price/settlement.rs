//! What it costs to have an order settled.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alloy::primitives::{Bytes, U256, keccak256};
use async_trait::async_trait;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::time::timeout;
use vm::protocol::limits::{ACTION_GAS, SETTLEMENT_BYTES, SETTLEMENT_TOGETHER, SETTLEMENT_WORK};

use super::{PriceError, PriceSource};
use crate::market::Currency;

/// Seconds from one question about what the chain charges to the next, whatever the answer.
const FRESH: u64 = 10;
/// How long one question may take: longer than any of its providers.
const DEADLINE: Duration = Duration::from_secs(FRESH);
/// Seconds for which an answer serves while there is no newer one.
const LINGER: u64 = 900;
/// How long a newer answer is waited for where the last one serves.
const PATIENCE: Duration = Duration::from_secs(3);

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
    /// What a unit of work costs now, in the native currency's smallest unit.
    async fn unit_price(&self) -> Option<u128>;
    /// What a transaction with this data costs besides its work, in the native currency's smallest unit: nothing on
    /// most chains.
    async fn byte_fee(&self, data: Bytes) -> Option<U256>;
}

/// What one settlement costs in the native currency's smallest unit, and when that was asked (unix seconds).
type Known = Arc<Mutex<Option<(U256, u64)>>>;
/// A question about what the chain charges: many wait for it, and it goes on when nobody does any more.
type Question = Shared<BoxFuture<'static, ()>>;

/// On a chain whose fees are paid in what is worth the same as a currency. There is one question at a time, whoever
/// needs the answer.
pub struct OnChain {
    charges: Arc<dyn Charges>,
    native: Currency,
    prices: Arc<dyn PriceSource>,
    last: Known,
    /// The last question, and when it was asked.
    asked: Mutex<Option<(Question, u64)>>,
}

impl OnChain {
    /// `native` is worth what fees are paid in.
    pub fn new(charges: Arc<dyn Charges>, native: Currency, prices: Arc<dyn PriceSource>) -> Self {
        Self {
            charges,
            native,
            prices,
            last: Known::default(),
            asked: Mutex::default(),
        }
    }

    /// What one settlement costs, in the native currency's smallest unit.
    async fn cost(&self, now: u64) -> Result<U256, PriceError> {
        let question = self.question(now);
        match self.known(now) {
            Some(_) => {
                let _in_time = timeout(PATIENCE, question).await;
            }
            None => question.await,
        }
        let known = self.known(now);
        known.ok_or_else(|| unavailable("too few providers agree about it".to_owned()))
    }

    fn known(&self, now: u64) -> Option<U256> {
        let (cost, at) = (*lock(&self.last))?;
        (at.abs_diff(now) < LINGER).then_some(cost)
    }

    /// The question of a moment ago, also one without an answer; else a new one.
    fn question(&self, now: u64) -> Question {
        let mut asked = lock(&self.asked);
        match &*asked {
            Some((question, at)) if at.abs_diff(now) < FRESH => question.clone(),
            _ => {
                let question = ask(self.charges.clone(), self.last.clone(), now);
                *asked = Some((question.clone(), now));
                question
            }
        }
    }
}

fn ask(charges: Arc<dyn Charges>, last: Known, now: u64) -> Question {
    let asked = async move {
        if let Ok(Some(cost)) = timeout(DEADLINE, charged(&*charges)).await {
            *lock(&last) = Some((cost, now));
        }
    };
    tokio::spawn(asked).map(drop).boxed().shared()
}

/// What the chain charges for one settlement.
async fn charged(charges: &dyn Charges) -> Option<U256> {
    let (price, bytes) = futures::join!(charges.unit_price(), charges.byte_fee(some_data()));
    let work = U256::from(price?).saturating_mul(U256::from(SETTLEMENT_WORK));
    // Two transactions.
    let bytes = bytes?.saturating_mul(U256::from(2));
    Some(work.saturating_add(bytes))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
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
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use futures::future::join_all;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::price::Price;

    /// What a unit of work and every byte cost.
    struct Tariff(Option<u128>, Option<u64>);

    #[async_trait]
    impl Charges for Tariff {
        async fn unit_price(&self) -> Option<u128> {
            self.0
        }

        async fn byte_fee(&self, data: Bytes) -> Option<U256> {
            self.1.map(|each| U256::from(each) * U256::from(data.len()))
        }
    }

    /// Answers after so many seconds, if at all, with the number of the question.
    #[derive(Default)]
    struct Slow {
        seconds: AtomicU64,
        asked: AtomicU64,
        silent: AtomicBool,
    }

    #[async_trait]
    impl Charges for Slow {
        async fn unit_price(&self) -> Option<u128> {
            let number = self.asked.fetch_add(1, Relaxed) + 1;
            tokio::time::sleep(Duration::from_secs(self.seconds.load(Relaxed))).await;
            (!self.silent.load(Relaxed)).then(|| number.into())
        }

        async fn byte_fee(&self, _: Bytes) -> Option<U256> {
            Some(U256::ZERO)
        }
    }

    struct Unasked;

    #[async_trait]
    impl PriceSource for Unasked {
        async fn price(&self, currency: &Currency, _: u64) -> Result<Price, PriceError> {
            Err(PriceError::Unknown(currency.symbol.clone()))
        }
    }

    fn on_chain(charges: Arc<dyn Charges>) -> OnChain {
        let native = json!({"address": "0x", "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth"});
        let native = serde_json::from_value(native).unwrap();
        OnChain::new(charges, native, Arc::new(Unasked))
    }

    /// What one settlement costs at this price of work.
    fn at(price: u64) -> Result<U256, PriceError> {
        Ok(U256::from(price * SETTLEMENT_WORK))
    }

    #[tokio::test]
    async fn settlement_costs_its_work_and_what_its_chain_takes_for_bytes() {
        let mut chain = on_chain(Arc::new(Tariff(Some(7), Some(0))));
        assert_eq!(chain.cost(100).await, at(7));
        chain.charges = Arc::new(Tariff(Some(7), Some(1_000)));
        assert_eq!(chain.cost(100).await, at(7), "it is asked for again");
        let both = at(7).map(|work| work + U256::from(2 * SETTLEMENT_BYTES * 1_000));
        assert_eq!(chain.cost(100 + FRESH).await, both);
        // Where nobody can say what either costs, what was said before serves for a while.
        chain.charges = Arc::new(Tariff(Some(7), None));
        assert_eq!(chain.cost(100 + 2 * FRESH).await, both);
        chain.charges = Arc::new(Tariff(None, Some(0)));
        assert_eq!(chain.cost(100 + 3 * FRESH).await, both);
        assert!(chain.cost(100 + FRESH + LINGER).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_answers_late_is_waited_for_and_heard_when_nobody_waits() {
        let slow = Arc::new(Slow::default());
        slow.seconds.store(8, Relaxed);
        let chain = on_chain(slow.clone());
        // Nothing serves yet: who gives up leaves the question to the others.
        let given_up = timeout(Duration::from_secs(1), chain.cost(100)).await;
        assert!(given_up.is_err());
        assert_eq!(chain.cost(101).await, at(1));
        let begun = Instant::now();
        assert_eq!(chain.cost(100 + FRESH).await, at(1));
        assert_eq!(begun.elapsed(), PATIENCE);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(chain.cost(108 + FRESH).await, at(2));
        assert_eq!(slow.asked.load(Relaxed), 2);
        // Who never answers is no question without end.
        slow.seconds.store(86_400, Relaxed);
        let begun = Instant::now();
        assert!(chain.cost(100 + FRESH + LINGER).await.is_err());
        assert_eq!(begun.elapsed(), DEADLINE);
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_need_it_the_chain_is_asked_once_also_where_it_fails() {
        let slow = Arc::new(Slow::default());
        slow.seconds.store(1, Relaxed);
        slow.silent.store(true, Relaxed);
        let chain = on_chain(slow.clone());
        let all = join_all((0..50).map(|_| chain.cost(100))).await;
        assert!(all.iter().all(Result::is_err), "{all:?}");
        assert!(chain.cost(99 + FRESH).await.is_err());
        assert_eq!(slow.asked.load(Relaxed), 1);
        slow.silent.store(false, Relaxed);
        assert_eq!(chain.cost(100 + FRESH).await, at(2));
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
