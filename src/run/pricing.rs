//! Prices for quotes and the solver, and what these two ask of each other.

use std::sync::Arc;

use alloy::primitives::{Bytes, U256};
use anyhow::Context;
use async_trait::async_trait;
use vm::{
    Address,
    trade::{Call, Draft, Trial},
};

use super::parts::Trading;
use crate::{
    chains::{Chains, HeadCalls, Opened},
    market::{Market, Network},
    price::{
        PriceSource, Prices, Rules, SettlementPrice,
        settlement::{Charges, Free, OnChain},
    },
    quote::{
        late::Offer,
        pricing_chain::{Admission, Capacity, CapacityError, Hands, Payment},
        reprice::{self, Repricer},
    },
    request::Request,
    solver::{
        Solver, SolverError,
        chain::TradingChain,
        exposure,
        repricing::{Burden, Repriced, Repricing, Unpriced},
        stake::RiskyFill,
    },
};

/// Prices by the market file; in production they need independent sources.
pub fn prices(
    trading: &Trading,
    head_calls: impl Fn(&str) -> Option<HeadCalls>,
    client: &reqwest::Client,
) -> anyhow::Result<Prices> {
    for (network, currency) in trading.market.lonely() {
        if trading.production {
            tracing::warn!(
                network,
                currency,
                "no second price source: it is not quoted"
            );
        }
    }
    feeds(trading, head_calls, client)
}

/// As [`prices`], with a cache of its own: what charts read does not refresh the prices of quotes.
pub fn feeds(
    trading: &Trading,
    head_calls: impl Fn(&str) -> Option<HeadCalls>,
    client: &reqwest::Client,
) -> anyhow::Result<Prices> {
    let rules = Rules {
        independent: trading.production,
        ..Rules::default()
    };
    Prices::new(&trading.market, client, head_calls, rules).context("MARKET_FILE")
}

/// The price of a settlement. The settlement chain's native currency is worth what that of the solver's chain is worth.
pub fn settlement(
    trading: &Trading,
    chains: &Chains,
    prices: &Arc<dyn PriceSource>,
) -> Arc<dyn SettlementPrice> {
    let market = &trading.market;
    let network = market.by_name(&trading.solver_chain);
    let native = network.or_else(|| market.networks().first());
    match (chains.hub(), native.and_then(Network::native)) {
        (Ok(hub), Some(native)) => {
            let charges = Arc::new(Charged::by(hub));
            Arc::new(OnChain::new(charges, native.clone(), prices.clone()))
        }
        _ => Arc::new(Free),
    }
}

/// The settlement chain, asked through the solver's own providers.
pub fn settling(hub: &Opened) -> anyhow::Result<TradingChain> {
    let spec = &hub.chain.spec;
    let number = u64::try_from(spec.hub_chain_id).context("evmChainId")?;
    let providers = hub.trading_providers.clone();
    let chain = TradingChain::plain(hub.chain.clone(), number, providers, hub.required)?;
    Ok(chain)
}

/// What the settlement chain charges; unset where nobody can ask it.
struct Charged(Option<TradingChain>);

impl Charged {
    /// Through the solver's own providers: the price takes no calls of the strangers' budget.
    fn by(hub: &Opened) -> Self {
        Self(settling(hub).ok())
    }
}

#[async_trait]
impl Charges for Charged {
    async fn unit_price(&self) -> Option<u128> {
        let chain = self.0.as_ref()?;
        chain.providers.failover.unit_price().await.ok()
    }

    async fn byte_fee(&self, data: Bytes) -> Option<U256> {
        let chain = self.0.as_ref()?;
        let draft = Draft::call(Call {
            from: chain.native.clone(),
            to: chain.native.clone(),
            data,
            value: U256::ZERO,
        });
        let fees = &chain.providers.fees;
        fees.besides(&Trial::free(&draft)).await.ok()
    }
}

/// Prices orders anew for the solver.
pub struct Late(pub Repricer);

#[async_trait]
impl Repricing for Late {
    async fn reprice(
        &self,
        request: &Request,
        Burden { besides, together }: Burden,
        now: u64,
    ) -> Result<Repriced, Unpriced> {
        let burden = reprice::Burden { besides, together };
        match self.0.offer(request, burden, now).await {
            Ok(Offer::Promised) => Ok(Repriced::Promised),
            Ok(Offer::Less(amount)) => Ok(Repriced::Less(amount)),
            Ok(Offer::Nothing) => Ok(Repriced::Nothing),
            Err(refused) => Err(Unpriced(refused.message)),
        }
    }
}

/// The solver's funds and limits, as quotes check them.
pub struct Funds {
    pub market: Arc<Market>,
    pub solver: Arc<Solver>,
    pub production: bool,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

#[async_trait]
impl Capacity for Funds {
    async fn sound(&self, network: &str) -> Result<(), CapacityError> {
        self.solver.surveyed(network).await;
        let sound = self.solver.sound(network);
        sound.map_err(|error| CapacityError::Unknown(error.to_string()))?;
        let listed = self.market.by_name(network);
        let Some(most) = listed.and_then(|listed| listed.stalled_after(self.production)) else {
            return Ok(());
        };
        let now = (self.clock)() / 1_000;
        let moves = self.solver.moves(network, most, now).await;
        moves.map_err(|error| match error {
            SolverError::Stalled(..) => CapacityError::Stalled(error.to_string()),
            error => CapacityError::Unknown(error.to_string()),
        })
    }

    async fn available(
        &self,
        network: &str,
        currency: &Address,
    ) -> Result<Option<U256>, CapacityError> {
        let listed = self.market.by_name(network);
        let listed = listed.and_then(|network| network.currency(currency.text()));
        if !listed.is_some_and(|currency| currency.solver) {
            return Ok(None);
        }
        self.solver.surveyed(network).await;
        let available = self.solver.sellable(network, currency.text()).await;
        available
            .map(Some)
            .map_err(|error| CapacityError::Unknown(error.to_string()))
    }

    async fn admits(&self, payment: Payment<'_>) -> Result<Admission, CapacityError> {
        let asked = exposure::Payment {
            network: payment.network,
            currency: payment.currency.text(),
            amount: payment.amount,
            user: Some((payment.user.0, payment.user.1.text())),
        };
        let now = payment.now;
        let admission = async {
            if self.solver.behind().is_some() || self.solver.paused().await?.is_some() {
                return Ok(Admission::Paused);
            }
            let code = payment.hands == Hands::Code;
            let staked = RiskyFill {
                key: payment.key,
                most: payment.fee,
                code,
            };
            if payment.hands != Hands::Nobody
                && self.solver.restrains(payment.network, staked, now).await?
            {
                return Ok(Admission::Held);
            }
            let (native, fee) = (payment.native, payment.fee);
            if !self.solver.affords(payment.network, native, fee).await? {
                return Ok(Admission::Short);
            }
            let besides = payment.besides;
            let admitted = self.solver.admits_besides(asked, besides, now).await?;
            Ok::<_, SolverError>(match admitted {
                true => Admission::Open,
                false => Admission::Capped,
            })
        };
        let failed = |error: SolverError| CapacityError::Unknown(error.to_string());
        admission.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use vm::http::inside;

    use super::*;
    use crate::{chains::asking, config::Config};

    /// A settlement chain with one provider, which takes two calls a second for quotes.
    fn chains(host: &str) -> Chains {
        let url = format!("http://{host}");
        let node = |asked: &inside::Asked<'_>| {
            let calls: Value = serde_json::from_slice(asked.body).unwrap();
            let answer = |call: &Value| {
                let result = match call["method"].as_str().unwrap() {
                    "eth_chainId" => json!("0x83471"),
                    "eth_feeHistory" => json!({"baseFeePerGas": ["0x1e"]}),
                    "eth_maxPriorityFeePerGas" => json!("0x2"),
                    _ => Value::Null,
                };
                json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
            };
            let body: Value = match calls.as_array() {
                Some(calls) => calls.iter().map(answer).collect(),
                None => answer(&calls),
            };
            Some((200, body.to_string().into_bytes()))
        };
        inside::register(host, Arc::new(node));
        let set = [
            ("ENVIRONMENT", "staging"),
            ("ECDSA_PRIVATE_KEY", "0x01"),
            ("CHAINS_FILE", "src/chains/mainnets.prod.json"),
            ("HUB_FILE", "src/chains/hub.mainnets.prod.json"),
            ("RELAY_RPC_URL", url.as_str()),
            ("QUOTE_CALLS_PER_SECOND", "2"),
        ];
        let set = set.map(|(name, text)| (name.to_owned(), text.to_owned()));
        Chains::load(&Config::from_variables(set).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn strangers_who_use_up_their_calls_leave_settlements_their_price() {
        let chains = chains("settlement-price.inside");
        let hub = chains.hub().unwrap();
        let views = hub.asking_head_calls();
        let to = vm::SETTLEMENT.native().unwrap();
        asking::by(false, async {
            let asked = (0..3).map(|_| views.any(&to, Bytes::new()));
            let answers = futures::future::join_all(asked).await;
            let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
            let why: Vec<_> = refused.map(ToString::to_string).collect();
            assert!(why.iter().any(|why| why.contains("try again")), "{why:?}");
            assert_eq!(Charged::by(hub).unit_price().await, Some(32));
        })
        .await;
    }
}
