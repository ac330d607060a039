//! A feed: where prices of one currency come from; and the checks of one answer (too old, from the future).

use alloy::primitives::U256;
use async_trait::async_trait;

/// A source's clock may be this many seconds ahead of ours.
const SKEW: u64 = 60;

/// What a feed tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// USD with 18 decimals. Never zero.
    pub usd: U256,
    /// When the source observed it, unix seconds.
    pub at: u64,
    /// How far the feed's answers of the last minutes lie apart, in millionths.
    pub swing: u64,
}

/// Why a feed gives no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It did not answer, or with something else than a price.
    #[error("no answer: {0}")]
    Silent(String),
    /// Zero, negative, or too large to calculate with.
    #[error("not a price")]
    Senseless,
    /// Observed too long ago, or in the future.
    #[error("observed at {0}")]
    Untimely(u64),
    /// It says itself that it knows only roughly.
    #[error("uncertain")]
    Uncertain,
    /// An answer of a round that is not the newest.
    #[error("a round that is not answered yet")]
    Unfinished,
    /// Sources that should agree do not.
    #[error("sources disagree")]
    Disagreement,
    /// Nobody independent says the same.
    #[error("no second independent source")]
    Alone,
}

/// A source of one currency's price.
#[async_trait]
pub trait Feed: Send + Sync {
    /// The price of one whole unit, believable at `now` (unix seconds).
    async fn read(&self, now: u64) -> Result<Observation, Doubt>;
    /// Whether a price that was read before may still be believed.
    fn believable(&self, seen: &Observation, now: u64) -> bool;
}

/// Whether an observation of `at` is neither older than `max_age` seconds nor from the future.
pub fn timely(at: u64, max_age: u64, now: u64) -> bool {
    at != 0 && at <= now.saturating_add(SKEW) && now.saturating_sub(at) <= max_age
}

/// `mantissa × 10^exponent` dollars with 18 decimals, rounded down. Never zero.
pub fn dollars(mantissa: U256, exponent: i32) -> Result<U256, Doubt> {
    let shift = exponent.saturating_add(18);
    let power = U256::from(10).checked_pow(U256::from(shift.unsigned_abs()));
    let scaled = match (power, shift < 0) {
        (Some(power), false) => mantissa.checked_mul(power),
        (Some(power), true) => mantissa.checked_div(power),
        (None, _) => None,
    };
    scaled
        .filter(|usd| !usd.is_zero() && *usd <= LARGEST)
        .ok_or(Doubt::Senseless)
}

/// 10^18 dollars: nothing costs that much, and products with token amounts stay far from 2^256.
const LARGEST: U256 = U256::from_limbs([0xb34b_9f10_0000_0000, 0x00c0_97ce_7bc9_0715, 0, 0]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_have_their_time() {
        for (at, believed) in [
            (0, false),
            (899, false),
            (900, true),
            (1000, true),
            (1060, true),
            (1061, false),
            (u64::MAX, false),
        ] {
            assert_eq!(timely(at, 100, 1000), believed, "{at}");
        }
        assert!(!timely(0, u64::MAX, 1000));
    }

    #[test]
    fn dollars_have_18_decimals_and_a_limit() {
        let e = |power: u64| U256::from(10).pow(U256::from(power));
        assert_eq!(LARGEST, e(36));
        for (mantissa, exponent, usd) in [
            (
                U256::from(250_000_000_000u64),
                -8,
                Ok(U256::from(2500) * e(18)),
            ),
            (U256::from(1), 0, Ok(e(18))),
            (U256::from(3), 2, Ok(U256::from(300) * e(18))),
            (U256::from(19), -19, Ok(U256::from(1))),
            (U256::from(9), -19, Err(Doubt::Senseless)),
            (U256::ZERO, -8, Err(Doubt::Senseless)),
            (U256::from(1), 18, Ok(e(36))),
            (U256::from(2), 18, Err(Doubt::Senseless)),
            (U256::MAX, -18, Err(Doubt::Senseless)),
            (U256::MAX, 0, Err(Doubt::Senseless)),
            (U256::from(1), i32::MAX, Err(Doubt::Senseless)),
            (U256::from(1), i32::MIN, Err(Doubt::Senseless)),
        ] {
            assert_eq!(dollars(mantissa, exponent), usd, "{mantissa}e{exponent}");
        }
    }
}
