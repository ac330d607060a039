//! Samples the prices of the market file's currencies every five minutes by the daemon's clock. It requests prices of
//! its own; quotes use none of them.
//!
//! It writes a few rows at a time with pauses in between, so that no other writer waits long, and writes nothing
//! while the disk is low.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{ChartError, History, Series, Step, candle};
use crate::{
    market::{Currency, Market, PriceFeed},
    price::PriceSource,
    store::{Batch, requests::Requests},
};

/// The most concurrent price requests.
const AT_ONCE: usize = 8;
/// The most time per price.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most samples per commit.
const COMMIT: usize = 16;
/// The pause between two commits.
const PAUSE: Duration = Duration::from_millis(250);

/// Takes samples and stores them.
pub struct Sampler {
    market: Arc<Market>,
    prices: Arc<dyn PriceSource>,
    requests: Requests,
    history: History,
}

/// Currencies with the same feeds; they share one price.
struct Alike<'a> {
    first: &'a Currency,
    series: Vec<Series<'a>>,
}

impl Sampler {
    /// Samples the currencies of `market` into the store of `requests`.
    pub fn new(market: Arc<Market>, prices: Arc<dyn PriceSource>, requests: &Requests) -> Self {
        Self {
            market,
            prices,
            requests: requests.clone(),
            history: History::new(requests.store().clone()),
        }
    }

    /// Samples at every multiple of five minutes until `shutdown`. `clock` gives unix milliseconds.
    pub async fn run(self, clock: fn() -> u64, shutdown: CancellationToken) {
        let sampling = async {
            loop {
                sleep(pause(clock())).await;
                match self.round(clock() / 1_000).await {
                    Ok(kept) => {
                        metrics::counter!("intentd_chart_samples_total").increment(kept);
                    }
                    Err(error) => tracing::warn!(%error, "the sampler cannot store prices"),
                }
            }
        };
        shutdown.run_until_cancelled(sampling).await;
    }

    /// Samples every currency once, at `now` (unix seconds), and returns how many prices it stored.
    pub async fn round(&self, now: u64) -> Result<u64, ChartError> {
        if self.requests.room().is_err() {
            return Ok(0);
        }
        let (priced, mut kept) = (self.priced(now).await, 0);
        for some in priced.chunks(COMMIT) {
            let mut batch = Batch::new();
            for (series, usd) in some {
                let sample = candle::sampled(now, *usd);
                // An unreadable history of one currency does not stop the others.
                match self.history.sampled(*series, sample).await {
                    Ok(rows) => {
                        kept += u64::from(!rows.is_empty());
                        let put = |batch: Batch, (key, value)| batch.put(key, value);
                        batch = rows.into_iter().fold(batch, put);
                    }
                    Err(ChartError::Row(error)) => {
                        tracing::warn!(?series, %error, "the sampler skips a price");
                    }
                    Err(error) => return Err(error),
                }
            }
            self.requests.store().commit(batch).await?;
            sleep(PAUSE).await;
        }
        Ok(kept)
    }

    /// The prices that sources have: USD with 18 decimals.
    async fn priced(&self, now: u64) -> Vec<(Series<'_>, u128)> {
        let (all, began) = (self.alike(), Instant::now());
        let mut priced = Vec::new();
        for some in all.chunks(AT_ONCE) {
            // Earlier requests may have taken a while; with the old time a newer price would be of the future.
            let now = now.saturating_add(began.elapsed().as_secs());
            let prices = join_all(some.iter().map(|alike| self.ask(alike.first, now))).await;
            for (alike, usd) in some.iter().zip(prices) {
                let series = alike.series.iter().copied();
                priced.extend(series.filter_map(|series| Some((series, usd?))));
            }
        }
        priced
    }

    fn alike(&self) -> Vec<Alike<'_>> {
        let mut all = HashMap::<&[PriceFeed], Alike<'_>>::new();
        for network in self.market.networks() {
            let fed = network
                .currencies
                .iter()
                .filter(|one| !one.prices.is_empty());
            for currency in fed {
                let alike = all.entry(&currency.prices).or_insert_with(|| Alike {
                    first: currency,
                    series: Vec::new(),
                });
                alike.series.push(Series {
                    network: &network.name,
                    currency: &currency.address,
                });
            }
        }
        all.into_values().collect()
    }

    async fn ask(&self, currency: &Currency, now: u64) -> Option<u128> {
        let price = timeout(PATIENCE, self.prices.price(currency, now)).await;
        let price = price.ok()?.ok()?;
        u128::try_from(price.usd).ok()
    }
}

/// The time from `now` (unix milliseconds) to the next multiple of five minutes.
fn pause(now: u64) -> Duration {
    let step = Step::Minutes.seconds() * 1_000;
    Duration::from_millis(step - now % step)
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Mutex};

    use alloy::primitives::U256;
    use async_trait::async_trait;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        price::{Price, PriceError},
        store::{Store, memory::MemoryStore, reserve::Reserve, rows::candle as row},
    };

    const NOW: u64 = 1_700_000_100;

    /// Prices by symbol, in dollars; other symbols have none. Records the requests and their times.
    #[derive(Default)]
    struct ScriptedPrices {
        usd: HashMap<&'static str, u64>,
        asked: Mutex<Vec<String>>,
        times: Mutex<Vec<u64>>,
    }

    #[async_trait]
    impl PriceSource for ScriptedPrices {
        async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
            let symbol = currency.symbol.clone();
            self.asked.lock().unwrap().push(symbol.clone());
            self.times.lock().unwrap().push(now);
            match self.usd.get(&*symbol) {
                Some(0) => std::future::pending().await,
                Some(usd) => {
                    let usd = U256::from(*usd) * U256::from(10).pow(U256::from(18));
                    Ok(Price::exact(usd, now))
                }
                None => Err(PriceError::Unknown(symbol)),
            }
        }
    }

    fn currency(number: u8, symbol: &str, feeds: Value) -> Value {
        json!({
            "address": format!("0x{number:040x}"), "symbol": symbol, "name": symbol, "decimals": 18,
            "group": symbol, "prices": feeds,
        })
    }

    fn peg(usd: &str) -> Value {
        json!([{"kind": "peg", "usd": usd}])
    }

    /// Two networks with ether at the same feeds, and `others` on the first.
    fn market(others: &[Value]) -> Arc<Market> {
        let network = |name: &str, chain: u64, others: &[Value]| {
            let ether = currency(0, "ETH", peg("2500"));
            let all = [&[ether][..], others].concat();
            json!({"name": name, "chainId": chain, "displayName": name, "currencies": all})
        };
        let file = json!([network("one", 1, others), network("two", 2, &[])]);
        let family = |_: &str| Some(vm::SETTLEMENT);
        Arc::new(Market::parse(&file.to_string(), family).unwrap())
    }

    struct Rig {
        sampler: Sampler,
        prices: Arc<ScriptedPrices>,
        store: Arc<MemoryStore>,
    }

    fn rig(others: &[Value], usd: &[(&'static str, u64)], reserve: Reserve) -> Rig {
        let store = Arc::new(MemoryStore::new());
        let prices = Arc::new(ScriptedPrices {
            usd: usd.iter().copied().collect(),
            ..ScriptedPrices::default()
        });
        let requests = Requests::new(store.clone()).with_reserve(Arc::new(reserve));
        Rig {
            sampler: Sampler::new(market(others), prices.clone(), &requests),
            prices,
            store,
        }
    }

    impl Rig {
        async fn rows(&self) -> usize {
            let rows = self.store.scan(row::range(None, 9_999)).await;
            rows.unwrap().len()
        }

        async fn close(&self, network: &str, number: u8) -> Option<u128> {
            let currency = format!("0x{number:040x}");
            let series = Series {
                network,
                currency: &currency,
            };
            let points = self.sampler.history.points(Step::Minutes, series, 0, NOW);
            points.await.unwrap().last().map(|point| point.close)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn currencies_of_the_market_are_sampled_once_and_who_has_no_price_has_no_sample() {
        let others = [
            currency(1, "USDC", peg("1")),
            currency(2, "GONE", peg("3")),
            currency(3, "HUNG", peg("4")),
            currency(4, "BARE", json!([])),
        ];
        let prices = [("ETH", 2_500), ("USDC", 1), ("HUNG", 0), ("BARE", 7)];
        let rig = rig(&others, &prices, Reserve::default());
        assert_eq!(rig.sampler.round(NOW).await, Ok(3));
        let mut asked = rig.prices.asked.lock().unwrap().clone();
        asked.sort();
        // One request covers ether on both networks; currencies without feeds are not requested.
        assert_eq!(asked, ["ETH", "GONE", "HUNG", "USDC"]);
        let e18 = 10_u128.pow(18);
        for (network, number, usd) in [
            ("one", 0, Some(2_500 * e18)),
            ("two", 0, Some(2_500 * e18)),
            ("one", 1, Some(e18)),
            ("one", 2, None),
            ("one", 3, None),
            ("one", 4, None),
        ] {
            assert_eq!(rig.close(network, number).await, usd, "{network} {number}");
        }
        assert_eq!(rig.rows().await, 3);
        // A second round at the same time stores nothing.
        assert_eq!(rig.sampler.round(NOW).await, Ok(0));
        assert_eq!(rig.rows().await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_behind_slow_ones_is_asked_as_of_then() {
        const HUNG: [&str; 15] = [
            "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O",
        ];
        let one = |(number, symbol): (u8, &str)| currency(number, symbol, peg(&number.to_string()));
        let others: Vec<_> = (1..).zip(HUNG).map(one).collect();
        let mut prices = vec![("ETH", 1)];
        prices.extend(HUNG.map(|symbol| (symbol, 0)));
        let rig = rig(&others, &prices, Reserve::default());
        assert_eq!(rig.sampler.round(NOW).await, Ok(2));
        // Sixteen requests, eight at a time: some of the first eight hang.
        let mut times = rig.prices.times.lock().unwrap().clone();
        times.sort_unstable();
        assert_eq!(times, [[NOW; 8], [NOW + 5; 8]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn more_currencies_than_a_commit_holds_are_all_kept() {
        let symbol = |number: u8| format!("T{number}");
        let others: Vec<_> = (1..=40)
            .map(|number| currency(number, &symbol(number), peg("1")))
            .collect();
        // All have the price of the first one.
        let prices = [("ETH", 1), ("T1", 1)];
        let rig = rig(&others, &prices, Reserve::default());
        assert_eq!(rig.sampler.round(NOW).await, Ok(42));
        assert_eq!(rig.rows().await, 42);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_while_the_disk_is_low() {
        let reserve = Reserve::new(vec![PathBuf::from("/")], u64::MAX);
        reserve.look().unwrap();
        let rig = rig(&[], &[("ETH", 1)], reserve);
        assert_eq!(rig.sampler.round(NOW).await, Ok(0));
        assert_eq!(rig.rows().await, 0);
        assert!(rig.prices.asked.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_cannot_be_read_keeps_no_other_currency_from_being_sampled() {
        let others = [currency(1, "USDC", peg("1"))];
        let rig = rig(&others, &[("ETH", 5), ("USDC", 1)], Reserve::default());
        let series = Series {
            network: "one",
            currency: "0x0000000000000000000000000000000000000000",
        };
        let broken = row::key(Step::Minutes, series, NOW);
        let put = Batch::new().put(broken, vec![9]);
        rig.store.commit(put).await.unwrap();
        assert_eq!(rig.sampler.round(NOW).await, Ok(2));
        assert_eq!(rig.close("two", 0).await, Some(5 * 10_u128.pow(18)));
        // After a store failure the error is returned.
        rig.store.fail("full");
        assert!(rig.sampler.round(NOW + 300).await.is_err());
    }

    #[test]
    fn samples_are_taken_when_five_minutes_begin() {
        for (now, wait) in [(0, 300_000), (1, 299_999), (299_999, 1), (300_000, 300_000)] {
            assert_eq!(pause(now), Duration::from_millis(wait), "{now}");
        }
    }
}
