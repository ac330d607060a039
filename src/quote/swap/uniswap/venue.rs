//! Uniswap V3 on one network.

use alloy::primitives::Address as Token;
use vm::{Address, trade::Call};

use super::{
    quoter::{self, Quote},
    refused,
    route::{Route, is_fee},
    router::Exchange,
};
use crate::{
    chains::Views,
    market::{Class, Network, UniswapV3},
    quote::swap::{SwapCall, SwapError, SwapOrder, SwapTerms},
};

/// A market entry with which nothing can be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{network}: {why}")]
pub struct VenueError {
    pub network: String,
    pub why: String,
}

/// See the module.
pub struct Venue {
    views: Views,
    pub native: Address,
    wrapped: Token,
    quoter: Address,
    router: Address,
    /// Hundredths of a basis point.
    pub fees: Vec<u32>,
    /// What ways of two pools may lead over.
    pub hubs: Vec<Token>,
}

impl Venue {
    /// `None`: the network cannot be read.
    pub fn open(
        network: &Network,
        contracts: &UniswapV3,
        views: impl Fn(&str) -> Option<Views>,
    ) -> Result<Option<Self>, VenueError> {
        let wrong = |why: String| VenueError {
            network: network.name.clone(),
            why,
        };
        let Some(views) = views(&network.name) else {
            return Ok(None);
        };
        let family = views.family;
        let address = |text: &str| {
            family
                .address(text)
                .map_err(|error| wrong(error.to_string()))
        };
        let token = |text: &str| {
            account(&address(text)?).map_err(|_| wrong(format!("{text}: not an account")))
        };
        let wrapped = network.wrapped_native.as_deref();
        let wrapped = token(wrapped.ok_or_else(|| wrong("wrappedNative: not set".to_owned()))?)?;
        if let Some(fee) = contracts.fees.iter().find(|fee| !is_fee(**fee)) {
            return Err(wrong(format!("uniswapV3.fees: {fee} is no fee")));
        }
        let mut hubs = vec![wrapped];
        for currency in network.currencies.iter().skip(1) {
            if currency.solver && currency.class == Class::Stable {
                hubs.push(token(&currency.address)?);
            }
        }
        Ok(Some(Self {
            native: family.native().map_err(|error| wrong(error.to_string()))?,
            wrapped,
            quoter: address(&contracts.quoter)?,
            router: address(&contracts.router)?,
            fees: contracts.fees.clone(),
            hubs,
            views,
        }))
    }

    /// The tokens whose pools are asked: the native currency is wrapped for them.
    pub fn pair(&self, terms: &SwapTerms) -> Result<(Token, Token), SwapError> {
        let (input, output) = (self.token(&terms.input)?, self.token(&terms.output)?);
        if input == output || terms.amount.is_zero() {
            return Err(SwapError::NoRoute);
        }
        Ok((input, output))
    }

    fn token(&self, currency: &Address) -> Result<Token, SwapError> {
        if *currency == self.native {
            return Ok(self.wrapped);
        }
        account(currency)
    }

    /// `None` when the route's pools do not exist or do not have enough.
    pub async fn quote(
        &self,
        route: &Route,
        terms: &SwapTerms,
    ) -> Result<Option<Quote>, SwapError> {
        let question = quoter::question(route, terms.amount, terms.exact_input);
        match self.views.any(&self.quoter, question).await {
            Ok(Ok(answer)) => Ok(quoter::answer(route, &answer)),
            Ok(Err(_revert)) => Ok(None),
            Err(error) => Err(SwapError::Unavailable(error.to_string())),
        }
    }

    pub fn call(&self, exchange: &Exchange<'_>, order: &SwapOrder) -> SwapCall {
        SwapCall {
            spender: (!exchange.native_input).then(|| self.router.clone()),
            call: Call {
                from: order.payer.clone(),
                to: self.router.clone(),
                data: exchange.data(),
                value: exchange.value(),
            },
        }
    }
}

/// The 20 bytes of an address.
pub fn account(address: &Address) -> Result<Token, SwapError> {
    let bytes = <[u8; 20]>::try_from(address.bytes());
    bytes
        .map(Token::from)
        .map_err(|_| refused("not an address of 20 bytes"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::market::Market;

    fn open(changes: &Value) -> Result<Option<Venue>, VenueError> {
        let currency = |address: &str, solver: bool, class: &str| {
            json!({
                "address": address, "symbol": address, "name": address, "decimals": 6,
                "group": address, "solver": solver, "class": class,
            })
        };
        let mut entry = json!({
            "name": "one", "chainId": 1, "displayName": "One",
            "wrappedNative": format!("0x{:040x}", 1),
            "uniswapV3": {
                "quoter": format!("0x{:040x}", 2), "router": format!("0x{:040x}", 3),
                "fees": [500],
            },
            "currencies": [
                currency(&format!("0x{:040x}", 0), true, "stable"),
                currency(&format!("0x{:040x}", 4), true, "stable"),
                currency(&format!("0x{:040x}", 5), false, "stable"),
                currency(&format!("0x{:040x}", 6), true, "other"),
            ],
        });
        let changes = changes.as_object().unwrap().clone();
        entry.as_object_mut().unwrap().extend(changes);
        let family = &vm::ethereum::FAMILY;
        let market = Market::parse(&json!([entry]).to_string(), |_| Some(family)).unwrap();
        let views = Views {
            family,
            accounts: Vec::new(),
        };
        let network = &market.networks()[0];
        let contracts = network.uniswap_v3.as_ref().unwrap();
        Venue::open(network, contracts, |_| Some(views.clone()))
    }

    #[test]
    fn ways_lead_over_the_wrapped_currency_and_the_solvers_stable_ones() {
        let venue = open(&json!({})).unwrap().unwrap();
        assert_eq!(venue.hubs, [1, 4].map(Token::with_last_byte));
    }

    #[test]
    fn wrong_entry_is_an_error() {
        let fees = |fees: &[u32]| {
            let quoter = format!("0x{:040x}", 2);
            json!({"uniswapV3": {"quoter": quoter, "router": quoter, "fees": fees}})
        };
        for (changes, expected) in [
            (json!({"wrappedNative": null}), "wrappedNative: not set"),
            (fees(&[500, 0]), "uniswapV3.fees: 0 is no fee"),
            (fees(&[1_000_000]), "uniswapV3.fees: 1000000 is no fee"),
        ] {
            let error = open(&changes).err().unwrap();
            assert_eq!(error.to_string(), format!("one: {expected}"));
        }
    }
}
