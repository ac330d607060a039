//! Inventory that quotes hold for those who asked with a key. Pure: time is an argument.
//!
//! A stranger's quotes hold nothing: a thousand of them leave as much as none. A key's quotes hold what
//! they promise until their price ends, up to its part; what is above is quoted and not held.

use std::collections::HashMap;

use alloy::primitives::U256;
use vm::Address;

use super::route::Route;

/// Of what is there, the parts that one key and all keys together may hold: a tenth, a half.
const ONE_KEY: u64 = 10;
const ALL_KEYS: u64 = 2;
/// Holds of one key: beyond that nothing more is held for it.
const MOST: usize = 256;

/// A network's name and a currency.
pub type Stock = (String, Address);

/// What is held of each stock.
#[derive(Debug, Default)]
pub struct Holds(HashMap<Stock, Vec<Hold>>);

/// A hold that somebody wants.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub key: &'a str,
    pub amount: U256,
    /// What nobody holds yet.
    pub free: U256,
    /// Unix seconds.
    pub until: u64,
}

#[derive(Clone, Debug)]
struct Hold {
    key: String,
    amount: U256,
    /// Unix seconds.
    until: u64,
}

impl Holds {
    /// What is held of `stock` at `now` (unix seconds).
    pub fn held(&mut self, stock: &Stock, now: u64) -> U256 {
        let Some(holds) = self.0.get_mut(stock) else {
            return U256::ZERO;
        };
        holds.retain(|hold| now <= hold.until);
        sum(holds.iter())
    }

    /// What of `available` nobody holds at `now`.
    pub fn free(&mut self, stock: &Stock, available: U256, now: u64) -> U256 {
        available.saturating_sub(self.held(stock, now))
    }

    /// Holds what `asked` says from `now` on; whether it may.
    pub fn hold(&mut self, stock: &Stock, asked: Asked<'_>, now: u64) -> bool {
        let Asked {
            key,
            amount,
            free,
            until,
        } = asked;
        let held = self.held(stock, now);
        let whole = free.saturating_add(held);
        let holds = self.0.entry(stock.clone()).or_default();
        let own = || holds.iter().filter(|hold| hold.key == key);
        let mine = sum(own()).saturating_add(amount);
        let all = held.saturating_add(amount);
        let fits = mine <= whole / U256::from(ONE_KEY) && all <= whole / U256::from(ALL_KEYS);
        if !fits || own().count() >= MOST {
            return false;
        }
        holds.push(Hold {
            key: key.to_owned(),
            amount,
            until,
        });
        true
    }
}

fn sum<'a>(holds: impl Iterator<Item = &'a Hold>) -> U256 {
    holds.fold(U256::ZERO, |sum, hold| sum.saturating_add(hold.amount))
}

/// What the solver gives, as it is held.
pub fn stock(route: &Route<'_>) -> Stock {
    let given = &route.given;
    (given.network.name.clone(), given.address.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock() -> Stock {
        of("0x", 0)
    }

    fn of(text: &str, byte: u8) -> Stock {
        ("base".into(), Address::from_parts(text, vec![byte]))
    }

    fn n(number: u64) -> U256 {
        U256::from(number)
    }

    fn asked(key: &str, amount: u64, free: U256, until: u64) -> Asked<'_> {
        Asked {
            key,
            amount: n(amount),
            free,
            until,
        }
    }

    #[test]
    fn a_key_holds_its_part_and_keys_together_theirs() {
        let mut holds = Holds::default();
        let mut hold = |key: &str, amount: u64| {
            let free = holds.free(&stock(), n(1_000), 5);
            holds.hold(&stock(), asked(key, amount, free, 60), 5)
        };
        assert!(hold("a", 60) && hold("a", 40));
        assert!(!hold("a", 1));
        assert!(hold("b", 100) && hold("c", 100) && hold("d", 100) && hold("e", 100));
        assert!(!hold("f", 1), "half of it is held");
        assert_eq!(holds.held(&stock(), 60), n(500));
        assert_eq!(holds.held(&of("0x1", 1), 60), n(0));
        // However it is spelled: only its family knows what is one currency.
        assert_eq!(holds.held(&of("0X", 0), 60), n(500));
        assert_eq!(holds.held(&of("0x", 1), 60), n(0));
    }

    #[test]
    fn what_is_held_is_free_when_its_price_ends() {
        let mut holds = Holds::default();
        assert!(holds.hold(&stock(), asked("a", 100, n(1_000), 60), 0));
        assert_eq!(holds.held(&stock(), 60), n(100));
        assert_eq!(holds.held(&stock(), 61), n(0));
        assert!(holds.hold(&stock(), asked("a", 100, n(1_000), 120), 61));
    }

    #[test]
    fn many_small_holds_end_somewhere() {
        let mut holds = Holds::default();
        let held = (0..1_000).filter(|_| holds.hold(&stock(), asked("a", 1, n(1 << 40), 60), 0));
        assert_eq!(held.count(), MOST);
    }
}
