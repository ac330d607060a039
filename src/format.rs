//! Numbers and times as the API writes them (guide: protocol 11.1). Nowhere else are texts made of
//! amounts. Pure.

use alloy::primitives::{I256, U256};

/// Digits of a dollar that the API shows.
const SHOWN: u8 = 6;

/// Amount / 10^decimals, exact, without zeros at the end but with one digit after the point.
pub fn units(amount: U256, decimals: u8) -> String {
    let text = fixed(amount, decimals);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    format!("{whole}.{fraction}")
}

/// [`units`] of an amount that may be negative.
pub fn signed_units(amount: I256, decimals: u8) -> String {
    sign(amount) + &units(amount.unsigned_abs(), decimals)
}

/// Millionths of a dollar out of usd e18, rounded half up.
pub fn micro(usd: U256) -> U256 {
    let unit = U256::from(1_000_000_000_000_u64);
    let half = unit / U256::from(2);
    usd.saturating_add(half) / unit
}

/// Dollars out of millionths, six decimals.
pub fn usd(micro: I256) -> String {
    sign(micro) + &fixed(micro.unsigned_abs(), SHOWN)
}

/// Dollars without zeros at the end; `0` for nothing.
pub fn usd_short(micro: I256) -> String {
    let text = usd(micro);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Dollars of a fee: six decimals, `0` for nothing.
pub fn usd_fee(micro: I256) -> String {
    if micro.is_zero() {
        return "0".to_owned();
    }
    usd(micro)
}

/// `part` of `whole` in percent, rounded to two decimals, half away from zero.
pub fn percent(part: I256, whole: U256) -> String {
    let share = hundredths(part.unsigned_abs(), whole, whole / U256::from(2));
    sign(part) + &fixed(share, 2)
}

/// `part` of `whole` in percent, cut to two decimals.
pub fn percent_cut(part: U256, whole: U256) -> String {
    fixed(hundredths(part, whole, U256::ZERO), 2)
}

fn hundredths(part: U256, whole: U256, round: U256) -> U256 {
    let scaled = part
        .saturating_mul(U256::from(10_000))
        .saturating_add(round);
    scaled.checked_div(whole).unwrap_or_default()
}

/// Millionths of a dollar out of a decimal text; digits behind the sixth are cut off. `None` for what
/// is no plain decimal number or above 96 bits.
pub fn micro_of(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) {
        return None;
    }
    let shown = usize::from(SHOWN);
    let fraction = &fraction[..fraction.len().min(shown)];
    let number: u128 = format!("{whole}{fraction:0<shown$}").parse().ok()?;
    let number = i128::try_from(number)
        .ok()
        .filter(|micro| *micro >> 96 == 0)?;
    Some(if negative { -number } else { number })
}

/// A number of millionths, for those who write it.
pub fn from_micro(micro: i128) -> I256 {
    I256::try_from(micro).unwrap_or_default()
}

/// `units` × `micro` / `of`, rounded down; zero where nothing can be said.
pub fn share(units: U256, micro: U256, of: U256) -> i128 {
    let all = units.checked_mul(micro);
    let share = all.and_then(|all| all.checked_div(of)).unwrap_or_default();
    i128::try_from(share).unwrap_or_default()
}

/// ISO 8601 with milliseconds and `Z`; what no calendar has is its beginning.
pub fn iso(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    format!("{time:.3}")
}

/// What one coin of the input fetches: the shortest text that reads back as the same double.
#[expect(
    clippy::float_arithmetic,
    reason = "shown only; clients parse a double"
)]
pub fn rate(input: (U256, u8), output: (U256, u8)) -> String {
    let coins = |(amount, decimals)| units(amount, decimals).parse::<f64>().unwrap_or(0.0);
    let rate = coins(output) / coins(input);
    if rate.is_finite() {
        rate.to_string()
    } else {
        "0".to_owned()
    }
}

fn sign(amount: I256) -> String {
    if amount.is_negative() {
        "-".to_owned()
    } else {
        String::new()
    }
}

fn fixed(amount: U256, decimals: u8) -> String {
    let width = usize::from(decimals) + 1;
    let digits = format!("{:0>width$}", amount.to_string());
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(decimals));
    if fraction.is_empty() {
        return whole.to_owned();
    }
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(number: i64) -> I256 {
        I256::try_from(number).unwrap()
    }

    #[test]
    fn dollars_are_read_as_they_are_written() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("12.5", Some(12_500_000)),
            ("-0.02294", Some(-22_940)),
            ("1.2345679", Some(1_234_567)),
            ("", None),
            (".5", None),
            ("1.", None),
            ("1e18", None),
            ("+1", None),
            ("99999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(micro_of(text), wanted, "{text}");
        }
    }

    #[test]
    fn times_are_written_with_milliseconds() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(1_784_678_400_007), "2026-07-22T00:00:00.007Z");
        assert_eq!(iso(u64::MAX), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn published_examples() {
        let amount = |text: &str| U256::from_str_radix(text, 10).unwrap();
        for (number, decimals, wanted) in [
            ("100000000", 6, "100.0"),
            ("0", 18, "0.0"),
            ("6600000000000", 18, "0.0000066"),
            ("99950900", 6, "99.9509"),
            ("7", 0, "7.0"),
        ] {
            assert_eq!(units(amount(number), decimals), wanted);
        }
        assert_eq!(signed_units(int(-1_500_000), 6), "-1.5");
        assert_eq!(usd(int(302)), "0.000302");
        assert_eq!(usd_fee(int(0)), "0");
        assert_eq!(usd(int(0)), "0.000000");
        assert_eq!(usd_short(int(-22_940)), "-0.02294");
        assert_eq!(usd_short(int(0)), "0");
        assert_eq!(usd_short(int(100_000_000)), "100");
        assert_eq!(percent(int(-1), U256::from(100_000_000)), "-0.00");
        assert_eq!(percent(int(-72_445), U256::from(99_983_200)), "-0.07");
        assert_eq!(percent(int(5), U256::ZERO), "0.00");
        // A tolerance of 2 % whose units were rounded.
        assert_eq!(percent_cut(U256::from(199), U256::from(9_999)), "1.99");
        let hundred = (U256::from(100_000_000), 6);
        assert_eq!(
            rate(hundred, (U256::from(99_950_900), 6)),
            "0.9995090000000001"
        );
        assert_eq!(rate(hundred, hundred), "1");
        assert_eq!(rate((U256::ZERO, 6), hundred), "0");
    }

    #[test]
    fn dollars_are_rounded_half_up() {
        let e12 = U256::from(1_000_000_000_000_u64);
        assert_eq!(micro(e12 / U256::from(2)), U256::from(1));
        assert_eq!(micro(e12 / U256::from(2) - U256::from(1)), U256::ZERO);
        assert!(micro(U256::MAX) > U256::ZERO);
    }
}
