//! Two exchanges: a first choice and a second.

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::{
    Address,
    trade::{Call, SwapCall, SwapError, SwapOffer, SwapOrder, SwapTerms, SwapVenue},
};

use super::{EXCHANGE, NATIVE, Scene, address, cents, market};

#[async_trait]
impl SwapVenue for Scene {
    fn name(&self) -> &'static str {
        "exchange"
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.with(|world| world.searches += 1);
        let (loss, pools) = self.with(|world| (world.loss, world.pools));
        let loss = loss.filter(|_| terms.allow(pools));
        Ok(offer("exchange", terms, loss.ok_or(SwapError::NoRoute)?))
    }

    async fn again(&self, _: &SwapOffer, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let loss = self.with(|world| world.loss).ok_or(SwapError::NoRoute)?;
        Ok(offer("exchange", terms, loss))
    }

    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        self.with(|world| world.deadlines.push(order.deadline));
        let native = offer.terms.input == address(NATIVE);
        let data = [order.recipient.bytes(), &order.limit.to_be_bytes::<32>()].concat();
        Ok(SwapCall {
            spender: (!native).then(|| address(EXCHANGE)),
            call: Call {
                from: order.payer.clone(),
                to: address(EXCHANGE),
                data: data.into(),
                value: if native { offer.input } else { U256::ZERO },
            },
        })
    }
}

/// The second choice among exchanges.
pub struct Second(pub Scene);

#[async_trait]
impl SwapVenue for Second {
    fn name(&self) -> &'static str {
        "second"
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let loss = self.0.with(|world| world.second_loss);
        Ok(offer(self.name(), terms, loss.ok_or(SwapError::NoRoute)?))
    }

    fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapCall, SwapError> {
        self.0.build(offer, order)
    }
}

/// What an exchange offers that loses so many basis points.
fn offer(source: &'static str, terms: &SwapTerms, loss: u64) -> SwapOffer {
    let market = market();
    let network = market.by_name(&terms.network).unwrap();
    let worth = |address: &Address| {
        let currency = network.currency(address.text()).unwrap();
        let cents = cents(&currency.symbol).unwrap();
        (
            U256::from(cents),
            U256::from(10).pow(U256::from(currency.decimals)),
        )
    };
    let ((from, from_coin), (to, to_coin)) = (worth(&terms.input), worth(&terms.output));
    let (kept, whole) = (U256::from(10_000 - loss), U256::from(10_000));
    let (up, down) = (from * to_coin * kept, to * from_coin * whole);
    let (input, output) = if terms.exact_input {
        (terms.amount, terms.amount * up / down)
    } else {
        ((terms.amount * down).div_ceil(up), terms.amount)
    };
    SwapOffer {
        source,
        terms: terms.clone(),
        input,
        output,
        gas: 120_000,
        route: Vec::new(),
    }
}
