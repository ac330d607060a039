//! The native currency and its wrapped form, one for one (WETH9).

use std::collections::HashMap;

use alloy::{primitives::U256, sol, sol_types::SolCall};
use async_trait::async_trait;
use vm::{Address, CodecError, Family, trade::Call};

use super::{SwapCall, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms, within};
use crate::market::Market;

sol! {
    function deposit();
    function withdraw(uint256 amount);
}

const NAME: &str = "wrap";

/// Gas units of either call, with a balance that was zero.
const GAS: u64 = 40_000;

/// The networks whose market entry names the wrapped currency.
pub struct Wrap(HashMap<String, Pair>);

struct Pair {
    native: Address,
    wrapped: Address,
}

impl Wrap {
    /// `families` gives the family of a network; one that is not known is not served.
    pub fn new(
        market: &Market,
        families: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<Self, CodecError> {
        let mut pairs = HashMap::new();
        for network in market.networks() {
            let (Some(wrapped), Some(family)) = (&network.wrapped_native, families(&network.name))
            else {
                continue;
            };
            let pair = Pair {
                native: family.native()?,
                wrapped: family.address(wrapped)?,
            };
            pairs.insert(network.name.clone(), pair);
        }
        Ok(Self(pairs))
    }

    /// Whether it is the native currency that goes in, and the wrapped one.
    fn pair(&self, terms: &SwapTerms) -> Result<(bool, &Address), SwapError> {
        let pair = self.0.get(&terms.network).ok_or(SwapError::NoRoute)?;
        let wraps = terms.input == pair.native && terms.output == pair.wrapped;
        let unwraps = terms.input == pair.wrapped && terms.output == pair.native;
        if !(wraps || unwraps) || terms.amount.is_zero() {
            return Err(SwapError::NoRoute);
        }
        Ok((wraps, &pair.wrapped))
    }
}

#[async_trait]
impl SwapSource for Wrap {
    fn name(&self) -> &'static str {
        NAME
    }

    fn serves(&self, network: &str) -> bool {
        self.0.contains_key(network)
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.pair(terms)?;
        Ok(SwapOffer {
            source: NAME,
            terms: terms.clone(),
            input: terms.amount,
            output: terms.amount,
            gas: GAS,
            route: Vec::new(),
        })
    }

    /// Pays nobody but the payer: the contract knows no recipient.
    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        let refused = |what: &str| Err(SwapError::Unavailable(what.to_owned()));
        let (wraps, wrapped) = self.pair(&offer.terms)?;
        if offer.source != NAME || [offer.input, offer.output] != [offer.terms.amount; 2] {
            return refused("another exchange's offer");
        }
        if order.recipient != order.payer {
            return refused("the recipient of a wrap is who pays");
        }
        within(offer, order)?;
        let (data, value) = if wraps {
            (depositCall {}.abi_encode(), offer.input)
        } else {
            let amount = offer.input;
            (withdrawCall { amount }.abi_encode(), U256::ZERO)
        };
        Ok(SwapCall {
            spender: None,
            call: Call {
                from: order.payer.clone(),
                to: wrapped.clone(),
                data: data.into(),
                value,
            },
        })
    }
}
