//! What a request costs (guide: protocol 11.9), in units of the currency that is deposited. Pure.
//!
//! What stays of a deposit after all fees is what the solver gives, at market: nothing is lost in
//! between, so that `paid = gas + flat + relay + app + worth of what is given`.

use alloy::primitives::U256;
use vm::protocol::BASIS_POINTS;

use super::{
    intent::AppFee,
    usd::{DOLLAR, Rated, Round, Worth, mul_div},
};
use crate::{
    market::{Class, Currency},
    price::moved,
    request::Operation,
};

/// Millionths of a basis point in one.
const PART: u64 = AppFee::WHOLE / BASIS_POINTS;

/// The part of the solver's fee that every request pays: two cents, usd e18.
pub fn flat() -> U256 {
    DOLLAR / U256::from(50)
}

/// What decides the fees of one request.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    pub paid: Worth,
    pub given: Worth,
    pub level: Level,
    /// Destination gas, usd e18.
    pub gas: U256,
    /// What every request pays besides: the solver's fixed part and the settlement, usd e18.
    pub flat: U256,
    /// The solver's share in basis points.
    pub bps: u64,
    pub app: &'a [AppFee],
}

/// How the currency that is taken compares with the one that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Two assets, exchanged at market.
    Apart,
    /// One asset: a unit is a unit, whatever prices say.
    Even,
    /// One asset by its group, two prices: the worse of both counts against who pays.
    Worse,
}

/// Basis points that members of a group may be apart and still be one asset.
const EVEN: u32 = 50;
const EVEN_STABLE: u32 = 25;

/// A currency with its price.
#[derive(Clone, Copy)]
pub struct Valued<'a> {
    pub currency: &'a Currency,
    pub rated: Rated,
}

impl<'a> Valued<'a> {
    pub fn new(currency: &'a Currency, rated: Rated) -> Self {
        Self { currency, rated }
    }
}

impl Level {
    /// Of two currencies with their prices.
    pub fn of(paid: Valued<'_>, given: Valued<'_>) -> Self {
        let (one, other) = (paid.currency, given.currency);
        if one.group != other.group {
            return Self::Apart;
        }
        let stable = one.class == Class::Stable || other.class == Class::Stable;
        let bound = if stable { EVEN_STABLE } else { EVEN };
        match paid.rated.price.agrees(&given.rated.price, bound) {
            true => Self::Even,
            false => Self::Worse,
        }
    }
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

impl<'a> Terms<'a> {
    /// Of a deal between two currencies, at prices that favour the solver; `gas` and `settlement` in usd e18. No
    /// integrator takes anything.
    pub fn of(paid: Valued<'_>, given: Valued<'_>, gas: U256, settlement: U256) -> Self {
        Self {
            paid: paid.rated.taken(),
            given: given.rated.given(),
            level: Level::of(paid, given),
            gas,
            flat: flat().saturating_add(settlement),
            bps: bps(paid.currency, given.currency)
                .saturating_add(spread(paid.currency, given.currency)),
            app: &[],
        }
    }

    /// Turning a currency into its wrapped form, or back, has no share.
    #[must_use]
    pub fn for_operation(self, operation: Operation) -> Self {
        match operation {
            Operation::Wrap | Operation::Unwrap => Self { bps: 0, ..self },
            _ => self,
        }
    }

    /// The fees and the given amount of the deposit `paid`.
    pub fn forward(&self, paid: U256) -> Result<Sum, Fault> {
        let (gas, flat) = self.fixed().ok_or(Fault::TooMuch)?;
        let bps = U256::from(self.bps);
        let whole = U256::from(BASIS_POINTS);
        let relay = mul_div(paid, bps, whole, Round::Down).ok_or(Fault::TooMuch)?;
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

    /// What so much of the deposited currency buys.
    pub fn bought(&self, paid: U256) -> Option<U256> {
        self.exchange(self.paid, self.given, paid, Round::Down)
    }

    fn fixed(&self) -> Option<(U256, U256)> {
        Some((self.paid.units(self.gas)?, self.paid.units(self.flat)?))
    }

    fn app(&self, paid: U256) -> Option<U256> {
        self.app
            .iter()
            .try_fold(U256::ZERO, |sum, fee| sum.checked_add(share(paid, fee)?))
    }

    fn exchange(&self, from: Worth, to: Worth, units: U256, round: Round) -> Option<U256> {
        let even = mul_div(units, to.coin()?, from.coin()?, round);
        let market = || from.exchange(to, units, round);
        match (self.level, round) {
            (Level::Apart, _) => market(),
            (Level::Even, _) => even,
            (Level::Worse, Round::Down) => Some(even?.min(market()?)),
            (Level::Worse, Round::Up) => Some(even?.max(market()?)),
        }
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

/// Basis points for the time that a price holds: what the market file says, and no less than either price may move by
/// while a deposit waits for its block, which its user can speed up or take back meanwhile. One asset moves with itself.
fn spread(input: &Currency, output: &Currency) -> u64 {
    let Some(holds) = input.price_holds else {
        return 0;
    };
    let waiting = holds.waiting.filter(|_| input.group != output.group);
    let moves = waiting.map_or(0, |seconds| {
        moved(input.class, seconds).max(moved(output.class, seconds))
    });
    holds.spread.max(moves)
}

/// The solver's share in basis points of what it takes for what it gives.
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
    let kept = BASIS_POINTS.saturating_sub(u64::from(slippage));
    let (kept, whole) = (U256::from(kept), U256::from(BASIS_POINTS));
    let least = mul_div(amount, kept, whole, Round::Down).unwrap_or_default();
    least.max(U256::from(1)).min(amount)
}

/// What `amount` may grow to.
pub fn maximum(amount: U256, slippage: u16) -> Option<U256> {
    let grown = U256::from(BASIS_POINTS + u64::from(slippage));
    mul_div(amount, grown, U256::from(BASIS_POINTS), Round::Up)
}

#[cfg(test)]
mod tests;
