//! `GET /config/v2`, `/chains/liquidity` and `/chains/health`: what the solver can pay, and where. `/config`
//! answers as `/config/v2`: its published type has the same fields but for the fee.

use std::time::Duration;

use alloy::primitives::U256;
use moka::future::Cache;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use vm::ReadError;

use super::{Shared, State};
use crate::{
    chains::asking,
    format,
    http::{ApiError, Number, Request, Response},
    market::{Currency, Network},
    quote::{
        code::Refused,
        intent,
        toll::{End, Toll},
    },
};

/// How old an answer of a provider may be.
const FRESH: Duration = Duration::from_secs(1);
/// Answers that are remembered at a time.
const MOST: u64 = 4_096;

/// What providers said a moment ago of balances, by whether a key asked, and network, owner and currency: many who
/// ask the same together cost one question, and a failure is an answer as well. What was asked for strangers, who
/// may have used up their part of the calls, is no answer for a key.
pub struct Recent(Cache<(bool, [String; 3]), Result<U256, ReadError>>);

impl Default for Recent {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(MOST).time_to_live(FRESH);
        Self(cache.build())
    }
}

/// What `/chains/liquidity` reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct OneChain {
    /// The chain's number.
    #[param(value_type = u64)]
    chain_id: Number,
}

/// What `/chains/health` reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct AnyChain {
    /// The chain's number; all that are not switched off where it is left out.
    #[param(value_type = Option<u64>)]
    chain_id: Option<Number>,
}

/// What `/config/v2` and `/config` read of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The chain to deposit on.
    #[param(value_type = u64)]
    origin_chain_id: Number,
    /// The chain to be paid on.
    #[param(value_type = u64)]
    destination_chain_id: Number,
    /// Whose balance to tell; nobody's where it is empty.
    user: Option<String>,
    /// The asset's name, for example `usdc`; the native currency where it is left out.
    currency: Option<String>,
}

/// What the solver holds on a chain.
#[derive(Serialize, ToSchema)]
#[schema(as = ChainLiquidity)]
pub struct Liquidity {
    liquidity: Vec<Held>,
}

/// One currency of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HeldCurrency)]
pub struct Held {
    chain_id: u64,
    currency_id: String,
    symbol: String,
    address: String,
    decimals: u8,
    balance: String,
    /// Six digits behind the point; `0.000000` where nobody tells a price now.
    amount_usd: String,
}

/// Whether a chain can be read.
#[derive(Serialize, ToSchema)]
#[schema(as = ChainHealth)]
pub struct Health {
    healthy: bool,
}

/// What a route can carry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteConfig {
    /// Something can be quoted. Not where a chain is switched off or the solver does not trade the asset, nor while
    /// the route cannot be priced.
    enabled: bool,
    user: Own,
    /// What the solver takes of a deposit, units of the origin's currency: a quote tells it exactly. 0 where the
    /// route is not enabled.
    fee: String,
    solver: Capacity,
    supports_external_liquidity: bool,
}

/// The user's side of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RouteUser)]
pub struct Own {
    balance: String,
    /// What is left of the balance after the fee, as far as the solver can give as much; units of the
    /// origin's currency. The gas of the user's own transaction is not taken off.
    max_bridge_amount: String,
}

/// The solver's side of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RouteSolver)]
pub struct Capacity {
    address: String,
    balance: String,
    capacity_per_request: String,
}

pub async fn liquidity(state: Shared, request: Request) -> Result<Response, ApiError> {
    let asked: OneChain = request.query()?;
    let network = state.network(asked.chain_id.0)?;
    let mut liquidity = Vec::new();
    for currency in network.currencies.iter().filter(|one| one.solver) {
        liquidity.push(held(&state, network, currency).await?);
    }
    Response::json(&Liquidity { liquidity })
}

async fn held(state: &State, network: &Network, currency: &Currency) -> Result<Held, ApiError> {
    let balance = available(state, network, currency).await?;
    let price = state.prices.price(currency, (state.clock)() / 1000).await;
    let price = price.ok().map(|price| price.usd);
    Ok(Held {
        chain_id: network.chain_id,
        currency_id: currency.group.clone(),
        symbol: currency.symbol.clone(),
        address: currency.address.clone(),
        decimals: currency.decimals,
        balance: balance.to_string(),
        amount_usd: dollars(balance, currency.decimals, price),
    })
}

/// Dollars of a balance as amounts have them, six digits behind the point. `price` is usd e18 of a coin; without one,
/// and where the number is too large, there are none.
fn dollars(balance: U256, decimals: u8, price: Option<U256>) -> String {
    let usd = price.and_then(|price| {
        let whole = U256::from(10).checked_pow(U256::from(decimals))?;
        balance.checked_mul(price)?.checked_div(whole)
    });
    let micro = i128::try_from(format::micro(usd.unwrap_or_default()));
    format::usd(format::from_micro(micro.unwrap_or_default()))
}

async fn available(
    state: &State,
    network: &Network,
    currency: &Currency,
) -> Result<U256, ApiError> {
    let Some(spec) = state.spec(network) else {
        return Ok(U256::ZERO);
    };
    let address = spec.family.address(&currency.address);
    let address = address.map_err(ApiError::internal)?;
    let unknown = |error| {
        ApiError::unavailable(
            "SERVICE_UNAVAILABLE",
            "The solver's balances are not known now",
            error,
        )
    };
    let found = state.capacity.available(&network.name, &address).await;
    Ok(found.map_err(unknown)?.unwrap_or_default())
}

pub async fn health(state: Shared, request: Request) -> Result<Response, ApiError> {
    let asked: AnyChain = request.query()?;
    let networks: Vec<&Network> = match asked.chain_id {
        Some(number) => vec![state.network(number.0)?],
        None => {
            let all = state.market.networks().iter();
            all.filter(|network| !network.disabled).collect()
        }
    };
    let now = (state.clock)();
    let healthy = |network: &Network| {
        let open = !network.disabled && state.chains.contains_key(&network.name);
        open && state.tail_states.reads(&network.name, now)
    };
    let healthy = networks.into_iter().all(healthy);
    Response::json(&Health { healthy })
}

pub async fn route(state: Shared, request: Request) -> Result<Response, ApiError> {
    let asked: Asked = request.query()?;
    let origin = state.network(asked.origin_chain_id.0)?;
    let destination = state.network(asked.destination_chain_id.0)?;
    let one = |network: &'static str| {
        ApiError::refused(
            "UNSUPPORTED_CURRENCY",
            format!("currency: not listed on the {network}"),
        )
    };
    let from = named(origin, asked.currency.as_deref()).ok_or_else(|| one("origin"))?;
    let to = named(destination, asked.currency.as_deref()).ok_or_else(|| one("destination"))?;
    let capacity = available(&state, destination, to).await?;
    let keyed = request.key.is_some();
    let user = (keyed, asked.user.as_deref());
    let balance = asking::by(keyed, balance(&state, origin, from, user)).await?;
    let enabled = !origin.disabled && !destination.disabled && from.solver && to.solver;
    let toll = match enabled {
        true => {
            let end = |network, currency| End { network, currency };
            let (from, to) = (end(origin, from), end(destination, to));
            let toll = state.quoter.toll(from, to, capacity);
            asking::by(keyed, toll).await.map(Some)
        }
        false => Ok(None),
    };
    let held = (balance, capacity);
    Response::json(&RouteConfig::of(toll, held, state.solver(destination)))
}

impl RouteConfig {
    /// `held` are the user's balance and what the solver can give. A route whose fee nobody tells now can carry
    /// nothing now.
    fn of(
        toll: Result<Option<Toll>, Refused>,
        (balance, capacity): (U256, U256),
        solver: &str,
    ) -> Self {
        let toll = toll.unwrap_or_else(|why| {
            tracing::debug!(%why, "a route has no fee now");
            None
        });
        let (enabled, toll) = (toll.is_some(), toll.unwrap_or_default());
        Self {
            enabled,
            user: Own {
                balance: balance.to_string(),
                max_bridge_amount: toll.left(balance).to_string(),
            },
            fee: toll.fee.to_string(),
            solver: Capacity {
                address: solver.to_owned(),
                balance: capacity.to_string(),
                capacity_per_request: capacity.to_string(),
            },
            supports_external_liquidity: false,
        }
    }
}

/// The currency of an asset's name; the native one where none is named.
fn named<'a>(network: &'a Network, asset: Option<&str>) -> Option<&'a Currency> {
    let Some(asset) = asset.filter(|asset| !asset.is_empty()) else {
        return network.native();
    };
    let same = |currency: &&Currency| currency.group.eq_ignore_ascii_case(asset);
    network.currencies.iter().find(same)
}

async fn balance(
    state: &State,
    network: &Network,
    currency: &Currency,
    (keyed, user): (bool, Option<&str>),
) -> Result<U256, ApiError> {
    let user = user.filter(|user| !user.is_empty());
    let (Some(user), Some(chain)) = (user, state.chains.get(&network.name)) else {
        return Ok(U256::ZERO);
    };
    let wrong = |_| {
        let what = intent::misspelled(user).unwrap_or("expected an address of its chain");
        ApiError::refused("INVALID_ADDRESS", format!("user: {what}"))
    };
    let owner = chain.spec.family.account(user).map_err(wrong)?;
    let address = chain.spec.family.currency(&currency.address);
    let address = address.map_err(ApiError::internal)?;
    let read = chain.providers.failover.first(|provider| {
        let (owner, address) = (owner.clone(), address.clone());
        async move { provider.accounts.balance(&owner, &address).await }
    });
    let asked = [network.name.as_str(), owner.text(), address.text()].map(ToString::to_string);
    Ok(state.recent.0.get_with((keyed, asked), read).await?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use serde_json::{Value, json};
    use strum::VariantArray;
    use tokio::time::sleep;

    use super::*;
    use crate::quote::code::Code;

    fn shown(toll: Result<Option<Toll>, Refused>) -> Value {
        let held = (U256::from(1_000), U256::from(500));
        serde_json::to_value(RouteConfig::of(toll, held, "0x1")).unwrap()
    }

    #[test]
    fn a_route_that_cannot_be_priced_is_not_enabled_and_tells_what_is_held() {
        let config = |enabled: bool, fee: &str, most: &str| {
            json!({
                "enabled": enabled, "fee": fee, "supportsExternalLiquidity": false,
                "user": {"balance": "1000", "maxBridgeAmount": most},
                "solver": {"address": "0x1", "balance": "500", "capacityPerRequest": "500"},
            })
        };
        let toll = Toll {
            fee: U256::from(7),
            most: U256::from(507),
        };
        assert_eq!(shown(Ok(Some(toll))), config(true, "7", "500"));
        assert_eq!(shown(Ok(None)), config(false, "0", "0"));
        for code in Code::VARIANTS {
            let refused = Refused::new(*code, "no price");
            assert_eq!(shown(Err(refused)), config(false, "0", "0"), "{code:?}");
        }
    }

    #[test]
    fn dollars_of_what_is_held_have_six_digits_behind_the_point() {
        let coin = |number: u64| U256::from(10).pow(U256::from(18)) * U256::from(number);
        for (balance, decimals, price, wanted) in [
            (U256::from(1_500_000), 6, Some(coin(1)), "1.500000"),
            (U256::from(100_000_000), 6, Some(coin(1)), "100.000000"),
            (coin(2), 18, Some(coin(2_500)), "5000.000000"),
            (U256::from(1), 6, Some(coin(1)), "0.000001"),
            (U256::ZERO, 6, Some(coin(1)), "0.000000"),
            (coin(2), 18, None, "0.000000"),
            (U256::MAX, 18, Some(coin(2)), "0.000000"),
            (coin(1), 78, Some(coin(1)), "0.000000"),
        ] {
            let told = dollars(balance, decimals, price);
            assert_eq!(told, wanted, "{balance} of {decimals} decimals");
        }
    }

    #[tokio::test]
    async fn many_who_ask_the_same_together_cost_one_question() {
        let (recent, asked) = (Recent::default(), AtomicU64::new(0));
        let ask = |keyed, owner: &str| {
            let key = (keyed, ["origin", owner, "usd"].map(ToString::to_string));
            recent.0.get_with(key, async {
                sleep(Duration::from_millis(100)).await;
                let count = asked.fetch_add(1, Relaxed) + 1;
                match count {
                    1 => Err(ReadError::Unavailable("try again".into())),
                    count => Ok(U256::from(count)),
                }
            })
        };
        // Who leaves while he asks keeps nobody waiting.
        let mut left = Box::pin(ask(false, "a"));
        assert!(futures::poll!(&mut left).is_pending());
        let leaving = async {
            tokio::task::yield_now().await;
            drop(left);
        };
        let all = futures::future::join_all((0..50).map(|_| ask(false, "a")));
        let ((), all) = futures::future::join(leaving, all).await;
        assert!(all.iter().all(Result::is_err), "{all:?}");
        assert_eq!(asked.load(Relaxed), 1);
        // What a stranger was refused is asked for again for a key, and nobody has another's answer.
        assert_eq!(ask(true, "a").await, Ok(U256::from(2)));
        assert_eq!(ask(false, "b").await, Ok(U256::from(3)));
        // What is older is asked for again.
        sleep(FRESH + Duration::from_millis(100)).await;
        assert_eq!(ask(false, "a").await, Ok(U256::from(4)));
    }
}
