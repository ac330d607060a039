//! Dollars and units. USD amounts are integers with 18 decimals ("usd e18"); every conversion says
//! how it rounds. `None` is a number that nothing can be worth: an overflow.

use alloy::primitives::{U256, U512};

use crate::{market::Class, price::Price};

/// One dollar.
pub const DOLLAR: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

/// What decides how much a unit of a currency is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worth {
    /// Usd e18 of one whole coin; never zero.
    pub price: U256,
    pub decimals: u8,
}

/// A currency's price as a deal needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rated {
    pub price: Price,
    pub decimals: u8,
}

impl Rated {
    fn at(self, price: U256) -> Worth {
        Worth {
            price,
            decimals: self.decimals,
        }
    }

    /// For people.
    pub fn shown(self) -> Worth {
        self.at(self.price.usd)
    }

    /// What it counts where the solver takes it.
    pub fn taken(self) -> Worth {
        self.at(self.price.least)
    }

    /// What it counts where the solver gives it.
    pub fn given(self) -> Worth {
        self.at(self.price.most)
    }

    /// What it counts in a deal between currencies of these classes that the other side may decline for so many seconds:
    /// it has room for what both prices may move by until then.
    #[must_use]
    pub fn optional(self, classes: [Class; 2], seconds: u64) -> Self {
        let moving = |price: Price, class| price.optional(class, seconds);
        Self {
            price: classes.into_iter().fold(self.price, moving),
            ..self
        }
    }
}

/// Where a division does not come out even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Down,
    Up,
}

impl Worth {
    /// Smallest units in one whole coin.
    pub fn coin(self) -> Option<U256> {
        U256::from(10).checked_pow(U256::from(self.decimals))
    }

    /// Usd e18 of `units`, rounded down.
    pub fn usd(self, units: U256) -> Option<U256> {
        mul_div(units, self.price, self.coin()?, Round::Down)
    }

    /// The units that `usd` buys, rounded down.
    pub fn units(self, usd: U256) -> Option<U256> {
        mul_div(usd, self.coin()?, self.price, Round::Down)
    }

    /// `units` of this currency in units of `other` at market.
    pub fn exchange(self, other: Self, units: U256, round: Round) -> Option<U256> {
        let up = self.price.checked_mul(other.coin()?)?;
        let down = other.price.checked_mul(self.coin()?)?;
        mul_div(units, up, down, round)
    }
}

/// `a * b / c` without overflow in between; `None` where the result is above 256 bits or `c` is 0.
pub fn mul_div(a: U256, b: U256, c: U256, round: Round) -> Option<U256> {
    if c.is_zero() {
        return None;
    }
    let product: U512 = a.widening_mul(b);
    let (mut quotient, rest) = product.div_rem(U512::from(c));
    if round == Round::Up && !rest.is_zero() {
        quotient += U512::from(1);
    }
    let limbs = quotient.as_limbs();
    limbs[4..]
        .iter()
        .all(|limb| *limb == 0)
        .then(|| U256::from_limbs([limbs[0], limbs[1], limbs[2], limbs[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(price: u64, decimals: u8) -> Worth {
        let price = U256::from(price) * U256::from(1_000_000_000_000_u64);
        Worth { price, decimals }
    }

    #[test]
    fn two_cents_of_a_coin_below_its_peg() {
        // guide: protocol 11.1: $0.02 printed 20003 at price 0.999832.
        let usdc = worth(999_832, 6);
        let cents = DOLLAR / U256::from(50);
        assert_eq!(usdc.units(cents), Some(U256::from(20_003)));
    }

    #[test]
    fn products_above_256_bits_are_divided_exactly() {
        let max = U256::MAX;
        assert_eq!(mul_div(max, max, max, Round::Up), Some(max));
        assert_eq!(mul_div(max, max, max - U256::from(1), Round::Down), None);
        assert_eq!(mul_div(max, max, U256::ZERO, Round::Down), None);
        let third = mul_div(U256::from(10), U256::from(1), U256::from(3), Round::Up);
        assert_eq!(third, Some(U256::from(4)));
    }

    #[test]
    fn currencies_meet_at_their_prices() {
        let (eth, usdc) = (worth(2_500_000_000, 18), worth(1_000_000, 6));
        let one = U256::from(10).pow(U256::from(18));
        let dollars = U256::from(2_500_000_000_u64);
        assert_eq!(eth.exchange(usdc, one, Round::Down), Some(dollars));
        assert_eq!(usdc.exchange(eth, dollars, Round::Up), Some(one));
    }
}
