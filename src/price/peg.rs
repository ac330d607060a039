//! A price that the market file states.

use alloy::primitives::{U256, utils::parse_units};
use async_trait::async_trait;

use super::feed::{Doubt, Feed, Observation, dollars};

/// Always the same price, observed now.
pub struct Peg(U256);

impl Peg {
    /// `text` is a decimal number of dollars with at most 18 decimals: `1`, `0.9995`.
    pub fn new(text: &str) -> Result<Self, Doubt> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 18 {
            return Err(Doubt::Senseless);
        }
        let units = parse_units(text, 18).map_err(|_| Doubt::Senseless)?;
        dollars(units.get_absolute(), -18).map(Self)
    }
}

#[async_trait]
impl Feed for Peg {
    async fn read(&self, now: u64) -> Result<Observation, Doubt> {
        Ok(Observation {
            usd: self.0,
            at: now,
            swing: 0,
        })
    }

    fn believable(&self, _: &Observation, _: u64) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pegs_are_decimal_texts() {
        let e18 = U256::from(10).pow(U256::from(18));
        for (text, usd) in [
            ("1", Some(e18)),
            ("1.00", Some(e18)),
            ("0.5", Some(e18 / U256::from(2))),
            ("0.000000000000000001", Some(U256::from(1))),
            ("0.0000000000000000001", None),
            ("1.0000000000000000000", None),
            ("0", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("1,5", None),
            ("1_000", None),
            (".5", None),
            ("1.", None),
            ("", None),
            (" 1", None),
            ("1.2.3", None),
        ] {
            assert_eq!(Peg::new(text).ok().map(|peg| peg.0), usd, "{text}");
        }
        assert!(Peg::new(&"9".repeat(100)).is_err());
    }
}
