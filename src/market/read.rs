//! `MARKET_FILE` → [`Market`]: everything that is wrong with it is found here.

use std::collections::HashMap;

use super::{Market, Network, PriceHolds};

/// A market file that cannot be used; the text names the network and the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MarketError(String);

/// The greatest number that JavaScript reads as it is written.
const JSON_INTEGER: u64 = (1 << 53) - 1;
/// The most seconds between blocks. The solver begins no payment in the usual time of 24 blocks before an order's deadline,
/// which is a week after its quote.
const SLOWEST: u64 = 3_600;

impl Market {
    /// Reads the file's text: a JSON array of networks. `families` gives the family of a network
    /// that the chains file knows; a network that it does not know is refused.
    pub fn parse(
        text: &str,
        families: impl Fn(&str) -> Option<&'static vm::Family>,
    ) -> Result<Self, MarketError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let mut networks: Vec<Network> = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| MarketError(error.to_string()))?;
        let (mut by_number, mut by_name) = (HashMap::new(), HashMap::new());
        for (at, network) in networks.iter_mut().enumerate() {
            let wrong = |what: String| MarketError(format!("{}: {what}", network.name));
            let family = families(&network.name)
                .ok_or_else(|| wrong("not a chain of the chains file".to_owned()))?;
            if network.block_seconds == 0 {
                network.block_seconds = family.finality.block_seconds;
            }
            check(network, family).map_err(wrong)?;
            let twice = by_number.insert(network.chain_id, at).is_some()
                || by_name.insert(network.name.clone(), at).is_some();
            if twice {
                return Err(wrong("stands there twice".to_owned()));
            }
        }
        Ok(Self {
            networks,
            by_number,
            by_name,
        })
    }
}

fn check(network: &Network, family: &vm::Family) -> Result<(), String> {
    let native = network.native().ok_or("currencies: must not be empty")?;
    if network.chain_id > JSON_INTEGER {
        return Err("chainId: above 2^53, which clients cannot read".to_owned());
    }
    if network.block_seconds > SLOWEST {
        return Err(format!("blockSeconds: expected at most {SLOWEST}"));
    }
    let sentinel = family.native().map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    for currency in &network.currencies {
        let address = family
            .address(&currency.address)
            .map_err(|error| format!("currencies: {}: {error}", currency.symbol))?;
        if seen.contains(&address) {
            return Err(format!("currencies: {} stands there twice", address));
        }
        seen.push(address);
        if let Some(holds) = &currency.price_holds {
            bounded(holds).map_err(|what| format!("{}: priceHolds: {what}", currency.symbol))?;
        }
    }
    if family.address(&native.address).ok() != Some(sentinel) {
        return Err("currencies: the native currency comes first".to_owned());
    }
    if let Some(decimals) = family.native_decimals.filter(|one| *one != native.decimals) {
        let symbol = &native.symbol;
        return Err(format!("currencies: {symbol} has {decimals} decimals"));
    }
    network.limits(family).map_err(|error| error.to_string())?;
    let exchanges = network.uniswap_v3.iter().chain(&network.fallback_exchanges);
    let exchanges = exchanges.flat_map(|one| [&one.quoter, &one.router]);
    let own = [&network.approval_proxy, &network.wrapped_native];
    let own = own.into_iter().flatten();
    let own = own.chain(network.fill_routers());
    for contract in own.chain(exchanges) {
        family
            .address(contract)
            .map_err(|error| format!("{contract}: {error}"))?;
    }
    Ok(())
}

/// A price that holds for hours is a free option, and a spread above a tenth a mistake.
fn bounded(holds: &PriceHolds) -> Result<(), &'static str> {
    if !(1..=3_600).contains(&holds.seconds) {
        return Err("seconds: expected 1 to 3600");
    }
    if holds.waiting.is_some_and(|most| most > 7_200) {
        return Err("waiting: expected at most 7200 seconds");
    }
    if holds.spread > 1_000 {
        return Err("spread: expected at most 1000 basis points");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
