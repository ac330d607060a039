//! What a request costs (integrator-api.md 16), in units of the currency that is deposited. Pure.
//!
//! What stays of a deposit after all fees is what the solver gives, at market: nothing is lost in
//! between, so that `paid = gas + flat + relay + app + worth of what is given`.

use alloy::primitives::U256;

use super::{
    intent::AppFee,
    usd::{DOLLAR, Round, Worth, mul_div},
};
use crate::market::{Class, Currency};

const BASIS: u64 = 10_000;
/// Millionths of a basis point in one.
const PART: u64 = AppFee::WHOLE / BASIS;

/// The part of the solver's fee that every request pays: two cents, usd e18.
pub fn flat() -> U256 {
    DOLLAR / U256::from(50)
}

/// What decides the fees of one request.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    pub paid: Worth,
    pub given: Worth,
    /// Both are one asset: a unit is a unit, whatever the prices say.
    pub level: bool,
    /// Destination gas, usd e18.
    pub gas: U256,
    /// The solver's share in basis points.
    pub bps: u64,
    pub app: &'a [AppFee],
}

/// One request's money. All but `given` in units of the deposited currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub paid: U256,
    pub gas: U256,
    pub flat: U256,
    /// The share, and what rounding left over.
    pub relay: U256,
    pub app: U256,
    /// What the solver gives, in its own units.
    pub given: U256,
}

/// Why there is no sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing stays after the fees.
    TooLow,
    /// More than 256 bits.
    TooMuch,
}

impl Terms<'_> {
    /// From what is deposited to what is given.
    pub fn forward(&self, paid: U256) -> Result<Sum, Fault> {
        let (gas, flat) = self.fixed().ok_or(Fault::TooMuch)?;
        let bps = U256::from(self.bps);
        let relay = mul_div(paid, bps, U256::from(BASIS), Round::Down).ok_or(Fault::TooMuch)?;
        let app = self.app(paid).ok_or(Fault::TooMuch)?;
        let net = [gas, flat, relay, app]
            .into_iter()
            .try_fold(paid, |left, fee| left.checked_sub(fee))
            .ok_or(Fault::TooLow)?;
        let given = self.exchange(self.paid, self.given, net, Round::Down);
        let given = given.ok_or(Fault::TooMuch)?;
        if given.is_zero() {
            return Err(Fault::TooLow);
        }
        Ok(Sum {
            paid,
            gas,
            flat,
            relay,
            app,
            given,
        })
    }

    /// From what must be given to what must be deposited.
    pub fn backward(&self, given: U256) -> Result<Sum, Fault> {
        let app: u64 = self.app.iter().map(|fee| fee.parts).sum();
        let kept = AppFee::WHOLE
            .checked_sub(app + self.bps * PART)
            .filter(|kept| *kept > 0)
            .ok_or(Fault::TooLow)?;
        let sum = || {
            let (gas, flat) = self.fixed()?;
            let net = self.exchange(self.given, self.paid, given, Round::Up)?;
            let base = net.checked_add(gas)?.checked_add(flat)?;
            let (whole, kept) = (U256::from(AppFee::WHOLE), U256::from(kept));
            let paid = mul_div(base, whole, kept, Round::Up)?;
            let app = self.app(paid)?;
            Some(Sum {
                paid,
                gas,
                flat,
                relay: paid.checked_sub(base)?.checked_sub(app)?,
                app,
                given,
            })
        };
        sum().ok_or(Fault::TooMuch)
    }

    fn fixed(&self) -> Option<(U256, U256)> {
        Some((self.paid.units(self.gas)?, self.paid.units(flat())?))
    }

    fn app(&self, paid: U256) -> Option<U256> {
        self.app
            .iter()
            .try_fold(U256::ZERO, |sum, fee| sum.checked_add(share(paid, fee)?))
    }

    fn exchange(&self, from: Worth, to: Worth, units: U256, round: Round) -> Option<U256> {
        if self.level {
            return mul_div(units, to.coin()?, from.coin()?, round);
        }
        from.exchange(to, units, round)
    }
}

/// One integrator's share of `paid`.
pub fn share(paid: U256, fee: &AppFee) -> Option<U256> {
    mul_div(
        paid,
        U256::from(fee.parts),
        U256::from(AppFee::WHOLE),
        Round::Down,
    )
}

/// The solver's share in basis points.
pub fn bps(input: &Currency, output: &Currency) -> u64 {
    if input.group == output.group {
        return 0;
    }
    match (input.class, output.class) {
        (Class::Stable, Class::Stable) => 1,
        (Class::Other, _) | (_, Class::Other) => 15,
        _ => 6,
    }
}

/// The slippage that is allowed when nobody says: gas moves small amounts more.
pub fn automatic(usd: U256) -> u16 {
    if usd < DOLLAR {
        470
    } else if usd < DOLLAR * U256::from(10) {
        409
    } else {
        200
    }
}

/// What at least stays of `amount`; never nothing, which anybody could deliver.
pub fn minimum(amount: U256, slippage: u16) -> U256 {
    let kept = BASIS.saturating_sub(u64::from(slippage));
    let (kept, basis) = (U256::from(kept), U256::from(BASIS));
    let least = mul_div(amount, kept, basis, Round::Down).unwrap_or_default();
    least.max(U256::from(1)).min(amount)
}

/// What `amount` may grow to.
pub fn maximum(amount: U256, slippage: u16) -> Option<U256> {
    let grown = U256::from(BASIS + u64::from(slippage));
    mul_div(amount, grown, U256::from(BASIS), Round::Up)
}

#[cfg(test)]
mod tests;
