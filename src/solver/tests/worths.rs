//! What deposits are worth, by prices that come late or never.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use alloy::primitives::{B256, U256};
use async_trait::async_trait;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use super::rig::{Rig, native};
use crate::{
    market::Currency,
    price::{Price, PriceError, PriceSource},
    request::{Request, fact::Deposit},
    solver::{Solver, judge::Worth},
};

/// A currency that is listed and has no price now.
const DOUBTED: &str = "0x00000000000000000000000000000000000000dd";

/// A dollar for everything but [`DOUBTED`]. Questions about that one are answered one after the other, each after so
/// many seconds; without them never.
struct Slow {
    seconds: Option<u64>,
    turn: Mutex<()>,
    asked: AtomicU64,
}

impl Slow {
    fn answering(seconds: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            seconds,
            turn: Mutex::default(),
            asked: AtomicU64::new(0),
        })
    }
}

#[async_trait]
impl PriceSource for Slow {
    async fn price(&self, currency: &Currency, _: u64) -> Result<Price, PriceError> {
        if currency.address != DOUBTED {
            return Ok(Price::exact(U256::from(super::rig::RICH), 0));
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let _turn = self.turn.lock().await;
        match self.seconds {
            Some(seconds) => sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
        Err(PriceError::Unavailable {
            currency: currency.symbol.clone(),
            why: "its feeds are apart".into(),
        })
    }
}

/// A process with these prices, for which [`DOUBTED`] is listed on the origin.
async fn solver(rig: &Rig, prices: &Arc<Slow>) -> Solver {
    let mut solver = rig.solver().await;
    let account = solver.accounts.get_mut("origin").unwrap();
    let account = Arc::get_mut(account).unwrap();
    let mut chain = (*account.chain).clone();
    let currencies = &mut chain.market.as_mut().unwrap().currencies;
    let doubted = Currency {
        address: DOUBTED.into(),
        symbol: "DOUBT".into(),
        ..currencies[1].clone()
    };
    currencies.push(doubted);
    account.chain = Arc::new(chain);
    solver.prices = prices.clone();
    solver
}

/// Somebody's deposit for the order: so much of a currency.
async fn deposit(rig: &Rig, request: &Request, number: u8, (currency, amount): (&str, u64)) {
    let change = |deposit: &mut Deposit| {
        deposit.onchain_id = B256::repeat_byte(number);
        deposit.transaction = B256::repeat_byte(number).to_string();
        deposit.currency = currency.into();
        deposit.amount = U256::from(amount);
        deposit.own = false;
    };
    rig.deposit(request, change).await;
}

/// Each question would take a second, and no payment is begun by a look that has taken half a minute.
#[tokio::test(start_paused = true)]
async fn dust_of_a_listed_currency_without_a_price_delays_no_fill() {
    for seconds in [Some(1), Some(3), None] {
        let rig = Rig::new();
        let prices = Slow::answering(seconds);
        let solver = solver(&rig, &prices).await;
        let request = rig.funded(1).await;
        for number in 1..=40 {
            deposit(&rig, &request, number, (DOUBTED, 1)).await;
        }
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(rig.claim(&request).await.legs.len(), 1, "{seconds:?}");
        // One question for each time that the order was read.
        let asked = prices.asked.load(Ordering::Relaxed);
        assert!((1..=4).contains(&asked), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_price_that_never_comes_hides_no_other_and_each_amount_has_its_worth() {
    let rig = Rig::new();
    let solver = solver(&rig, &Slow::answering(None)).await;
    let request = rig.funded(1).await;
    let unlisted = "0x00000000000000000000000000000000000000ee";
    deposit(&rig, &request, 1, (DOUBTED, 1_000_000)).await;
    deposit(
        &rig,
        &request,
        2,
        (crate::request::fixtures::USDC, 1_000_000),
    )
    .await;
    deposit(&rig, &request, 3, (crate::request::fixtures::USDC, 9_999)).await;
    deposit(&rig, &request, 4, (native(), 1)).await;
    deposit(&rig, &request, 5, (unlisted, 1_000_000)).await;
    let now = (rig.now, Instant::now());
    let view = solver.view(&request.id, now).await.unwrap().unwrap();
    let worth = |number: u8| view.worths.get(&B256::repeat_byte(number)).copied();
    let found = [1, 2, 3, 4, 5].map(worth);
    let [dust, unknown] = [Worth::Dust, Worth::Unknown].map(Some);
    assert_eq!(found, [None, Some(Worth::Something), dust, dust, unknown]);
    // What the order asked for needs none.
    assert_eq!(view.worths.get(&B256::ZERO), None);
}
