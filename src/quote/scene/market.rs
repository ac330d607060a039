//! Prices, and what the solver has.

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::Address;

use super::{Scene, USDC, cents};
use crate::{
    market::Currency,
    price::{Price, PriceError, PriceSource, SettlementPrice},
    quote::{
        usd::Worth,
        venue::{Admission, Capacity, CapacityError, Payment},
    },
};

/// Usd e18 of all that a payment counts with.
fn usd(payment: &Payment<'_>) -> U256 {
    let (symbol, decimals) = match payment.currency.text().eq_ignore_ascii_case(USDC) {
        true => ("USDC", 6),
        false => ("ETH", 18),
    };
    let cents = U256::from(cents(symbol).unwrap_or_default());
    let price = cents * U256::from(10_000_000_000_000_000_u64);
    let worth = Worth { price, decimals };
    let usd = worth.usd(payment.amount).unwrap_or(U256::MAX);
    usd.saturating_add(payment.besides)
}

#[async_trait]
impl PriceSource for Scene {
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
        let name = currency.symbol.clone();
        let cents = self.with(|world| (world.prices)(&currency.symbol));
        let cents = cents.map_err(|unknown| match unknown {
            true => PriceError::Unknown(name.clone()),
            false => PriceError::Unavailable {
                currency: name,
                why: "old".into(),
            },
        })?;
        let usd = U256::from(cents) * U256::from(10_000_000_000_000_000_u64);
        Ok(Price::exact(usd, now))
    }
}

#[async_trait]
impl SettlementPrice for Scene {
    async fn settlement(&self, _: u64) -> Result<U256, PriceError> {
        Ok(self.with(|world| world.settlement))
    }
}

#[async_trait]
impl Capacity for Scene {
    async fn sound(&self, network: &str) -> Result<(), CapacityError> {
        let wrong = self.with(|world| world.unsound == Some(network.to_owned()));
        if self.with(|world| world.stalled == Some(network.to_owned())) {
            return Err(CapacityError::Stalled(format!("{network} stands")));
        }
        match wrong {
            false => Ok(()),
            true => Err(CapacityError::Unknown("another router".into())),
        }
    }

    async fn available(&self, _: &str, _: &Address) -> Result<Option<U256>, CapacityError> {
        Ok(self.with(|world| world.available))
    }

    async fn admits(&self, payment: Payment<'_>) -> Result<Admission, CapacityError> {
        Ok(self.with(|world| match payment.native > world.native {
            true => Admission::Short,
            false if world.held == Some(payment.hands) => Admission::Held,
            false if usd(&payment) > world.hourly => Admission::Capped,
            false => world.admission,
        }))
    }
}
