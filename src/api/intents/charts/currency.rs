//! What is known of one currency.

use std::{sync::Arc, time::Duration};

use alloy::primitives::U256;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{
    super::{chains::families, currencies::Metadata, prices::dollars},
    State,
};
use crate::{
    chart::{Candle, Series, Step, candle},
    http::{ApiError, Request, Response},
    market::Currency,
};

/// How long the price of now is waited for; without it the rest is told.
const PATIENCE: Duration = Duration::from_secs(2);
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// A listed currency with its price. Only what this service knows by itself is there: `marketCap`, `fdv`,
/// `liquidity`, `volume`, `createdAt`, `socialLinks`, `pair`, `codexChainName` and `codexChainShortName`, which the
/// network's own service has from markets elsewhere, are left out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CurrencyDetails)]
pub struct Details {
    chain_id: u64,
    address: String,
    symbol: String,
    name: String,
    decimals: u8,
    /// Left out where the chain is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = families)]
    vm_type: Option<&'static str>,
    metadata: Metadata,
    /// Dollars of one whole unit; left out where nobody tells a price now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    price: Option<serde_json::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    price_change: Option<Change>,
}

/// How the price moved until now, in per cent of what it was then: `-0.42`. By samples of every five minutes that
/// this service took; where there are none around that time, the field is left out.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CurrencyPriceChange)]
pub struct Change {
    /// In five minutes.
    #[serde(rename = "5m", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    minutes: Option<String>,
    /// In an hour.
    #[serde(rename = "1h", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hour: Option<String>,
    /// In four hours.
    #[serde(rename = "4h", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hours: Option<String>,
    /// In a day.
    #[serde(rename = "24h", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    day: Option<String>,
}

pub async fn details(state: Arc<State>, request: Request) -> Result<Response, ApiError> {
    let (network, currency) = state.named(&request)?;
    let now = state.now();
    let usd = price(&state, currency, now).await;
    let mut change = Change::default();
    if let Some(usd) = usd {
        let series = Series {
            network: &network.name,
            currency: &currency.address,
        };
        // A day, and the sample before it.
        let from = now.saturating_sub(25 * HOUR);
        let known = state.history.points(Step::Minutes, series, from, now);
        match known.await {
            Ok(known) => change = Change::of(known, usd, now),
            // The price is told all the same.
            Err(error) => tracing::warn!(?series, %error, "how a price moved is not told"),
        }
    }
    let listed = state.listed(network, currency);
    Response::json(&Details {
        chain_id: listed.chain_id,
        address: listed.address,
        symbol: listed.symbol,
        name: listed.name,
        decimals: listed.decimals,
        vm_type: listed.vm_type,
        metadata: listed.metadata,
        price: usd.map(dollars).transpose().map_err(ApiError::internal)?,
        price_change: Some(change).filter(|change| *change != Change::default()),
    })
}

/// The price of now, where somebody tells it in time. The question goes on when it is not waited for any more: given
/// up half-way it would leave no answer, and quotes would have prices of before as long as somebody asks here.
async fn price(state: &State, currency: &Currency, now: u64) -> Option<U256> {
    let (prices, currency) = (state.prices.clone(), currency.clone());
    let asked = tokio::spawn(async move { prices.price(&currency, now).await });
    let price = timeout(PATIENCE, asked).await.ok()?;
    Some(price.ok()?.ok()?.usd)
}

impl Change {
    /// By the samples of the last day and `usd`, the price at `now`.
    fn of(mut known: Vec<Candle>, usd: U256, now: u64) -> Self {
        known.retain(|sample| sample.at < now);
        let latest = u128::try_from(usd).ok();
        known.extend(latest.map(|usd| candle::sampled(now, usd)));
        let since = |seconds: u64| {
            let then = candle::worth(&known, now.checked_sub(seconds)?)?;
            Some(candle::change(then, usd))
        };
        Self {
            minutes: since(5 * MINUTE),
            hour: since(HOUR),
            hours: since(4 * HOUR),
            day: since(24 * HOUR),
        }
    }
}
