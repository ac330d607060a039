//! What a currency was worth over time.

use std::sync::Arc;

use alloy::primitives::U256;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::{IntoParams, ToSchema};

use super::{super::prices::dollars, State};
use crate::{
    chart::{Candle, Series, Step},
    http::{ApiError, Request, Response},
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// What the route reads of the query.
#[derive(Deserialize, IntoParams)]
pub struct Asked {
    /// How far back the chart goes: `5M`, `1H`, `4H` and `24H` (the default) in points of five minutes, `7D` and
    /// `30D` in points of an hour, `MAX` as far as anything is kept: two days in points of five minutes, a month in
    /// points of an hour, five years in points of a day.
    #[param(value_type = Option<String>, pattern = "^(5M|1H|4H|24H|7D|30D|MAX)$")]
    timeframe: Option<Timeframe>,
}

/// See [`Asked`].
#[derive(Clone, Copy, Default, Deserialize)]
pub enum Timeframe {
    #[serde(rename = "5M")]
    Minutes,
    #[serde(rename = "1H")]
    Hour,
    #[serde(rename = "4H")]
    Hours,
    #[default]
    #[serde(rename = "24H")]
    Day,
    #[serde(rename = "7D")]
    Week,
    #[serde(rename = "30D")]
    Month,
    #[serde(rename = "MAX")]
    Max,
}

/// Prices of a currency in dollars of one whole unit, by the samples that this service takes every five minutes since
/// it serves the currency: five arrays of one length, the oldest point first, empty where there are no samples yet.
/// A time without samples has no point. Trades on markets elsewhere (`volume`, `buys`, `sells`, `traders`,
/// `transactions` and the like) are not known here and left out.
#[derive(Serialize, ToSchema)]
#[schema(as = CurrencyChart)]
pub struct Chart {
    /// Unix seconds at which each point's time begins.
    t: Vec<u64>,
    /// The first price of each point's time.
    #[schema(value_type = Vec<f64>)]
    o: Vec<Number>,
    /// The highest.
    #[schema(value_type = Vec<f64>)]
    h: Vec<Number>,
    /// The lowest.
    #[schema(value_type = Vec<f64>)]
    l: Vec<Number>,
    /// The last.
    #[schema(value_type = Vec<f64>)]
    c: Vec<Number>,
}

pub async fn chart(state: Arc<State>, request: Request) -> Result<Response, ApiError> {
    let (network, currency) = state.named(&request)?;
    let asked: Asked = request.query()?;
    let series = Series {
        network: &network.name,
        currency: &currency.address,
    };
    let (now, history) = (state.now(), &state.history);
    let (step, points) = match asked.timeframe.unwrap_or_default().window() {
        Some((step, seconds)) => {
            let from = now.saturating_sub(seconds);
            (step, history.points(step, series, from, now).await?)
        }
        None => history.all(series, now).await?,
    };
    let chart = Chart::of(step, &points).map_err(ApiError::internal)?;
    Response::json(&chart)
}

impl Timeframe {
    /// In which points it is told, and how many seconds of them; `None`: all that is kept.
    fn window(self) -> Option<(Step, u64)> {
        match self {
            Self::Minutes => Some((Step::Minutes, 5 * MINUTE)),
            Self::Hour => Some((Step::Minutes, HOUR)),
            Self::Hours => Some((Step::Minutes, 4 * HOUR)),
            Self::Day => Some((Step::Minutes, DAY)),
            Self::Week => Some((Step::Hour, 7 * DAY)),
            Self::Month => Some((Step::Hour, 30 * DAY)),
            Self::Max => None,
        }
    }
}

impl Chart {
    fn of(step: Step, points: &[Candle]) -> Result<Self, serde_json::Error> {
        let column = |price: fn(&Candle) -> u128| -> Result<Vec<Number>, serde_json::Error> {
            let prices = points.iter().map(|point| dollars(U256::from(price(point))));
            prices.collect()
        };
        Ok(Self {
            t: points.iter().map(|point| step.start(point.at)).collect(),
            o: column(|point| point.open)?,
            h: column(|point| point.high)?,
            l: column(|point| point.low)?,
            c: column(|point| point.close)?,
        })
    }
}
