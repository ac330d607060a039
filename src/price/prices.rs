//! The prices of a market's currencies, each from all of its feeds.

use std::collections::HashMap;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    Price, PriceError, PriceSource, Rules, bounded,
    cached::Cached,
    chainlink::Chainlink,
    feed::{Doubt, Feed, Observation},
    peg::Peg,
    pyth::Pyth,
};
use crate::{
    chains::HeadCalls,
    market::{Currency, Market, PriceFeed},
};

/// A feed of the market file that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{network}: price of {currency}: {why}")]
pub struct FeedError {
    pub network: String,
    pub currency: String,
    pub why: String,
}

/// Prices by the feeds of the market file. All feeds of a currency are asked; the worst that answers
/// counts unless two are more than the spread apart. Currencies with the same feed share its answers
/// while they make a price: answers that make none were somebody else's, and are asked for again.
pub struct Prices {
    feeds: HashMap<PriceFeed, Cached>,
    rules: Rules,
}

impl Prices {
    /// `head_calls` reads a network's head; `None` is a network that cannot be read, whose feeds are
    /// silent. `client` asks HTTP services and must not follow redirects.
    pub fn new(
        market: &Market,
        client: &reqwest::Client,
        head_calls: impl Fn(&str) -> Option<HeadCalls>,
        rules: Rules,
    ) -> Result<Self, FeedError> {
        let mut feeds = HashMap::new();
        let listed = market
            .networks()
            .iter()
            .flat_map(|network| network.currencies.iter().map(move |of| (network, of)));
        for (network, currency) in listed {
            for feed in &currency.prices {
                if feeds.contains_key(feed) {
                    continue;
                }
                let opened =
                    open(feed, client, &head_calls, rules.spread).map_err(|why| FeedError {
                        network: network.name.clone(),
                        currency: currency.symbol.clone(),
                        why,
                    })?;
                feeds.insert(feed.clone(), Cached::new(opened));
            }
        }
        Ok(Self { feeds, rules })
    }

    /// Where `since` is given, by answers that were asked for later.
    async fn judged(
        &self,
        currency: &Currency,
        now: u64,
        since: Option<Instant>,
    ) -> Result<Price, Doubt> {
        let answers = currency
            .prices
            .iter()
            .map(|feed| self.ask(feed, now, since));
        let answers = futures::future::join_all(answers).await;
        for doubt in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            tracing::debug!(currency = currency.symbol, %doubt, "a price feed is left out");
        }
        let answers: Vec<_> = currency.prices.iter().zip(answers).collect();
        let price = bounded::range(&answers, currency.class, self.rules, now)?;
        for (feed, observed) in &answers {
            if let (Some(feed), Ok(observed)) = (self.feeds.get(feed), observed) {
                feed.accept(observed, now);
            }
        }
        Ok(price)
    }

    async fn ask(
        &self,
        feed: &PriceFeed,
        now: u64,
        since: Option<Instant>,
    ) -> Result<Observation, Doubt> {
        match (self.feeds.get(feed), since) {
            (Some(feed), None) => feed.read(now).await,
            (Some(feed), Some(since)) => feed.anew(since, now).await,
            (None, _) => Err(Doubt::Silent("not a feed of the market".to_owned())),
        }
    }
}

#[async_trait]
impl PriceSource for Prices {
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
        if currency.prices.is_empty() {
            return Err(PriceError::Unknown(currency.symbol.clone()));
        }
        let began = Instant::now();
        let price = match self.judged(currency, now, None).await {
            Err(_) => self.judged(currency, now, Some(began)).await,
            price => price,
        };
        price.map_err(|doubt| PriceError::Unavailable {
            currency: currency.symbol.clone(),
            why: doubt.to_string(),
        })
    }
}

fn open(
    feed: &PriceFeed,
    client: &reqwest::Client,
    head_calls: impl Fn(&str) -> Option<HeadCalls>,
    spread: u32,
) -> Result<Box<dyn Feed>, String> {
    match feed {
        PriceFeed::Chainlink {
            network,
            address,
            max_age,
        } => {
            let Some(head_calls) = head_calls(network) else {
                return Ok(Box::new(Silent));
            };
            let aggregator = head_calls.family.address(address);
            Ok(Box::new(Chainlink {
                aggregator: aggregator.map_err(|error| error.to_string())?,
                head_calls,
                max_age: *max_age,
                spread,
            }))
        }
        PriceFeed::Pyth { url, id, max_age } => {
            let pyth = Pyth::new(client.clone(), url, id, *max_age);
            Ok(Box::new(pyth.map_err(str::to_owned)?))
        }
        PriceFeed::Peg { usd } => {
            let peg = Peg::new(usd).map_err(|_| format!("usd: not a decimal number: {usd}"))?;
            Ok(Box::new(peg))
        }
    }
}

/// A feed on a chain that cannot be read.
struct Silent;

#[async_trait]
impl Feed for Silent {
    async fn read(&self, _: u64) -> Result<Observation, Doubt> {
        Err(Doubt::Silent("the chain cannot be read".to_owned()))
    }

    fn believable(&self, _: &Observation, _: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
