//! What was bought most.

use std::{cmp::Reverse, sync::Arc};

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    super::currencies::{LIMIT, Listed, MOST, network},
    State,
};
use crate::{
    chart::tally::{ListedCurrency, Sum},
    http::{ApiError, Number, Request, Response},
};

/// What the route reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Only currencies of this chain.
    #[param(value_type = Option<u64>)]
    chain_id: Option<Number>,
    /// By what was bought of each currency: `relay24hBuyUsdVolume` in dollars (the default),
    /// `relay24hBuyTxCount` in requests. Counted are requests of at least a dollar that this service's solver filled
    /// in the last 24 hours, to the hour, at the lower one of both sides' worth in their quotes. What users send,
    /// wrap or exchange by themselves is not counted. `coingecko6hTrending` is not known here: 400.
    #[param(value_type = Option<String>, pattern = "^(relay24hBuyUsdVolume|relay24hBuyTxCount)$")]
    sort_by: Option<Order>,
    /// How many currencies at most: 20 unless it is sent, never more than 1,000.
    #[param(value_type = Option<u64>)]
    limit: Option<Number>,
}

/// See [`Asked`].
#[derive(Clone, Copy, Default, Deserialize)]
pub enum Order {
    #[default]
    #[serde(rename = "relay24hBuyUsdVolume")]
    Volume,
    #[serde(rename = "relay24hBuyTxCount")]
    Count,
}

/// Listed currencies, the one that was bought most first. What nobody bought is not there.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(as = TrendingCurrencies)]
pub struct Trending(Vec<Listed>);

pub async fn list(state: Arc<State>, request: Request) -> Result<Response, ApiError> {
    let asked: Asked = request.query()?;
    if let Some(number) = asked.chain_id {
        network(&state.market, number.0)?;
    }
    let limit = asked.limit.map_or(LIMIT, |limit| {
        usize::try_from(limit.0).unwrap_or(MOST).min(MOST)
    });
    let mut sums = state.trends.sums(state.now());
    let order = asked.sort_by.unwrap_or_default();
    sums.sort_by_cached_key(|one| (Reverse(rank(order, one)), one.0.clone()));
    let wanted =
        |place: &ListedCurrency| asked.chain_id.is_none_or(|number| number.0 == place.chain);
    let listed = sums.iter().filter(|(place, _)| wanted(place));
    let listed = listed.filter_map(|(place, _)| {
        let network = state.market.by_number(place.chain)?;
        let currency = network.currency(&place.currency)?;
        (!network.private).then(|| state.listed(network, currency))
    });
    Response::json(&Trending(listed.take(limit).collect()))
}

/// What a currency is sorted by; of two that are the same, by what the other order goes.
fn rank(order: Order, (_, sum): &(ListedCurrency, Sum)) -> (u64, u64) {
    match order {
        Order::Volume => (sum.micro, sum.count),
        Order::Count => (sum.count, sum.micro),
    }
}
