//! `GET /currencies/token/price`, `/currencies/token/price/v2` and `/swap-sources`.

use alloy::primitives::U256;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Shared, State, currencies};
use crate::{
    format,
    http::{ApiError, Number, Request, Response},
    price::{Price, PriceError},
};

/// Of the dollars in which prices are told.
const DECIMALS: u8 = 18;

/// What both editions of `/currencies/token/price` read of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The currency.
    address: String,
    /// Its chain's number.
    #[param(value_type = u64)]
    chain_id: Number,
}

/// What `/swap-sources` reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct OfChain {
    /// Only those of this chain.
    #[param(value_type = Option<u64>)]
    chain_id: Option<Number>,
}

/// A price for display: decisions are made with integers.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenPrice)]
pub struct Body {
    /// Dollars of one whole unit.
    #[schema(value_type = f64)]
    price: serde_json::Number,
}

/// A price with all its digits.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenPriceV2)]
pub struct Exact {
    /// Dollars of one whole unit, a decimal number.
    price: String,
}

/// Names of exchanges.
#[derive(Serialize, ToSchema)]
#[schema(as = SwapSources)]
pub struct Sources {
    sources: Vec<&'static str>,
}

pub async fn token(state: Shared, request: Request) -> Result<Response, ApiError> {
    let price = priced(&state, &request).await?;
    let price = dollars(price.usd).map_err(ApiError::internal)?;
    Response::json(&Body { price })
}

pub async fn exact(state: Shared, request: Request) -> Result<Response, ApiError> {
    let price = priced(&state, &request).await?;
    let price = format::units(price.usd, DECIMALS);
    Response::json(&Exact { price })
}

/// The price of the currency that is asked for.
async fn priced(state: &State, request: &Request) -> Result<Price, ApiError> {
    let asked: Token = request.query()?;
    let network = state.network(asked.chain_id.0)?;
    let currency = currencies::currency(network, &asked.address)?;
    let now = (state.clock)() / 1000;
    state.prices.price(currency, now).await.map_err(|error| {
        let unknown = matches!(error, PriceError::Unknown(_));
        match unknown {
            true => ApiError::refused("UNSUPPORTED_CURRENCY", error.to_string()),
            false => ApiError::unavailable("PRICE_FETCH_FAILED", "There is no price now", error),
        }
    })
}

/// A number as JSON has it, of USD with 18 decimals.
pub(super) fn dollars(usd: U256) -> Result<serde_json::Number, serde_json::Error> {
    serde_json::from_str(&format::units(usd, DECIMALS))
}

pub async fn sources(state: Shared, request: Request) -> Result<Response, ApiError> {
    let asked: OfChain = request.query()?;
    let network = asked
        .chain_id
        .map(|number| state.network(number.0))
        .transpose()?;
    let networks = match network {
        Some(network) => std::slice::from_ref(network),
        None => state.market.networks(),
    };
    let names = networks.iter().flat_map(|one| state.swaps.names(&one.name));
    let mut sources: Vec<_> = names.collect();
    sources.sort_unstable();
    sources.dedup();
    Response::json(&Sources { sources })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_shown_as_numbers() {
        let e18 = U256::from(10).pow(U256::from(18));
        for (usd, shown) in [
            (e18, "1.0"),
            (e18 * U256::from(2500), "2500.0"),
            (e18 / U256::from(4), "0.25"),
        ] {
            assert_eq!(dollars(usd).unwrap().to_string(), shown);
        }
    }
}
