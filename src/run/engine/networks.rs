//! The networks of the market that can be traded on, with their chains.

use std::{collections::HashMap, sync::Arc};

use anyhow::{Context, anyhow};
use vm::{
    Address, Family,
    trade::{Providers, SwapAccess, TradingProvider},
};

use crate::{
    chains::{Chains, HeadCalls, Opened, asking},
    index::Wakeup,
    market::{Market, Network},
    quote::{pricing_chain::PricingChain, swaps::Swaps},
    run::parts::Trading,
    solver::chain,
};

/// A network of the market with its chain.
pub struct TradedNetwork<'a> {
    pub listed: &'a Network,
    pub opened: &'a Opened,
    pub providers: Providers,
    /// The same, for what strangers have asked.
    pub asking: Providers,
    /// The solver's account there.
    pub account: Address,
    pub wakeup: Arc<Wakeup>,
}

/// The networks whose chains are opened and have providers for trading. An error where the solver has no key for its
/// account on one of them.
pub fn traded_networks<'a>(
    trading: &'a Trading,
    chains: &'a Chains,
) -> anyhow::Result<Vec<TradedNetwork<'a>>> {
    let listed = trading.market.networks().iter();
    let opened = listed.filter_map(|network| {
        let opened = chains.get(&network.name)?.chain.as_ref().ok()?;
        (!opened.trading_providers.is_empty()).then_some((network, opened))
    });
    let networks = opened.map(|(network, opened)| {
        let providers = |trading_providers: &[TradingProvider]| {
            let trading_providers = trading_providers.to_vec();
            chain::providers(network, &opened.chain, trading_providers, opened.required)
        };
        let account = trading.keys.account(opened.chain.spec.family);
        let mut asking = providers(&opened.asking)?;
        asking.failover = asking.failover.with_keys(asking::is_keyed);
        Ok(TradedNetwork {
            listed: network,
            opened,
            providers: providers(&opened.trading_providers)?,
            asking,
            account: account.map_err(|error| anyhow!("{}: {error}", network.name))?,
            wakeup: Arc::new(Wakeup::default()),
        })
    });
    networks.collect()
}

/// The family of each configured chain, by the chain's name. Those that this build does not have are left out.
pub fn families(chains: &Chains) -> HashMap<String, &'static Family> {
    let all = chains.judged().filter_map(|(loaded, spec)| {
        let family = spec.map_or_else(|| loaded.family(), |spec| Some(spec.family))?;
        Some((loaded.id.clone(), family))
    });
    all.collect()
}

impl Trading {
    /// Why a network of the market is not opened: nothing is quoted, filled or given back there until a start that opens
    /// it. `None` where it is.
    pub fn unopened(network: &Network, chains: &Chains) -> Option<String> {
        match &chains.get(&network.name)?.chain {
            Err(why) => Some(why.to_string()),
            Ok(opened) if opened.trading_providers.is_empty() => {
                Some("this version does not trade there".to_owned())
            }
            Ok(_) => None,
        }
    }

    /// Warns of networks of the market that are not opened and not disabled.
    pub(super) fn warn_about_networks(&self, chains: &Chains) {
        for network in self.market.networks().iter().filter(|one| !one.disabled) {
            if let Some(why) = Self::unopened(network, chains) {
                let network = network.name.as_str();
                tracing::warn!(
                    network,
                    why,
                    "not opened: its orders wait; to take it out, leave its providers and set disabled"
                );
            }
        }
    }
}

impl TradedNetwork<'_> {
    pub fn name(&self) -> &str {
        &self.listed.name
    }

    /// The chain as the solver has it priced.
    pub fn pricing_chain(&self) -> PricingChain {
        self.priced_by(&self.providers)
    }

    /// The chain as strangers have it priced.
    pub fn asking_pricing_chain(&self) -> PricingChain {
        self.priced_by(&self.asking)
    }

    fn priced_by(&self, providers: &Providers) -> PricingChain {
        PricingChain {
            spec: self.opened.chain.spec.clone(),
            providers: providers.clone(),
            account: self.account.clone(),
        }
    }
}

fn named<'n, 'a>(networks: &'n [TradedNetwork<'a>], name: &str) -> Option<&'n TradedNetwork<'a>> {
    networks.iter().find(|network| network.name() == name)
}

/// The head of a network's chain, as its providers show it.
pub fn head_calls(networks: &[TradedNetwork<'_>], name: &str) -> Option<HeadCalls> {
    Some(named(networks, name)?.opened.head_calls())
}

/// The exchanges of the market, asked as strangers have them asked.
pub fn swaps(market: &Market, networks: &[TradedNetwork<'_>]) -> anyhow::Result<Swaps> {
    let access = |name: &str| {
        Some(SwapAccess {
            head_calls: named(networks, name)?.opened.asking_head_calls(),
            keyed: asking::is_keyed,
        })
    };
    Swaps::open(market, access).context("MARKET_FILE")
}
