//! Turns samples into candles, and candles into those of a coarser step; interpolates a price between two candles.
//! Prices are USD with 18 decimals, times are unix seconds. Pure.

use alloy::primitives::{I256, U256};

use super::{Candle, Step};
use crate::format;

/// If two samples are this many seconds apart or more, the price between them is unknown.
const GAP: u64 = 3 * Step::Minutes.seconds();

/// A candle of one sample.
pub fn sampled(at: u64, usd: u128) -> Candle {
    Candle {
        at,
        open: usd,
        high: usd,
        low: usd,
        close: usd,
    }
}

/// Merges two candles; `later` follows `first`.
fn merged(first: Candle, later: Candle) -> Candle {
    Candle {
        at: later.at,
        open: first.open,
        high: first.high.max(later.high),
        low: first.low.min(later.low),
        close: later.close,
    }
}

/// Merges candles in the order of time; `None` for an empty list.
pub fn summed(candles: Vec<Candle>) -> Option<Candle> {
    candles.into_iter().reduce(merged)
}

/// Merges the candles of each `step` of time into one.
pub fn grouped(candles: &[Candle], step: Step) -> Vec<Candle> {
    let mut groups = Vec::<Candle>::with_capacity(candles.len());
    for candle in candles {
        match groups.last_mut() {
            Some(last) if step.start(last.at) == step.start(candle.at) => {
                *last = merged(*last, *candle);
            }
            _ => groups.push(*candle),
        }
    }
    groups
}

/// Appends a candle to a page of `step`; `None` where the page's last candle is as late or later, as after a clock
/// that went back.
pub fn joined(mut page: Vec<Candle>, candle: Candle, step: Step) -> Option<Vec<Candle>> {
    match page.last_mut() {
        Some(last) if last.at >= candle.at => return None,
        Some(last) if step.start(last.at) == step.start(candle.at) => {
            *last = merged(*last, candle);
        }
        _ => page.push(candle),
    }
    Some(page)
}

/// The price at `at`, interpolated between the sample before and the one after. `None` when one is missing or they
/// are [`GAP`] or more apart.
pub fn worth(candles: &[Candle], at: u64) -> Option<U256> {
    let behind = candles.iter().position(|candle| candle.at >= at)?;
    let after = candles.get(behind)?;
    if after.at == at {
        return Some(U256::from(after.close));
    }
    let before = candles.get(behind.checked_sub(1)?)?;
    let span = after.at - before.at;
    if span >= GAP {
        return None;
    }
    let moved = U256::from(after.close.abs_diff(before.close));
    let part = moved * U256::from(at - before.at) / U256::from(span);
    let from = U256::from(before.close);
    Some(match after.close >= before.close {
        true => from + part,
        false => from - part,
    })
}

/// A price change in per cent of `then`, with two decimals: `-0.42`.
pub fn change(then: U256, now: U256) -> String {
    let signed = |usd: U256| I256::try_from(usd).unwrap_or(I256::MAX);
    format::percent(signed(now).saturating_sub(signed(then)), then)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(at: u64, [open, high, low, close]: [u128; 4]) -> Candle {
        Candle {
            at,
            open,
            high,
            low,
            close,
        }
    }

    #[test]
    fn candles_of_one_step_are_one() {
        let all = [
            candle(10, [5, 6, 4, 5]),
            candle(299, [5, 9, 5, 7]),
            candle(300, [7, 8, 3, 4]),
            candle(3_599, [4, 4, 2, 3]),
            candle(3_600, [3, 3, 3, 3]),
        ];
        assert_eq!(
            grouped(&all, Step::Minutes),
            [
                candle(299, [5, 9, 4, 7]),
                candle(300, [7, 8, 3, 4]),
                candle(3_599, [4, 4, 2, 3]),
                candle(3_600, [3, 3, 3, 3]),
            ]
        );
        let hours = [candle(3_599, [5, 9, 2, 3]), candle(3_600, [3, 3, 3, 3])];
        assert_eq!(grouped(&all, Step::Hour), hours);
        assert_eq!(grouped(&hours, Step::Hour), hours);
        let day = candle(3_600, [5, 9, 2, 3]);
        assert_eq!(grouped(&all, Step::Day), [day]);
        assert_eq!(summed(all.to_vec()), Some(day));
        // Duplicates change nothing.
        let twice = [&hours[..1], &all[2..]].concat();
        assert_eq!(grouped(&twice, Step::Hour), hours);
        assert!(grouped(&[], Step::Day).is_empty());
        assert_eq!(summed(Vec::new()), None);
    }

    #[test]
    fn a_page_grows_at_its_end_only() {
        let page = vec![candle(300, [5, 5, 5, 5])];
        let one = |at| sampled(at, 7);
        let same = joined(page.clone(), one(599), Step::Minutes).unwrap();
        assert_eq!(same, [candle(599, [5, 7, 5, 7])]);
        let next = joined(same.clone(), one(600), Step::Minutes).unwrap();
        assert_eq!(next, [same[0], one(600)]);
        for early in [0, 299, 300] {
            assert_eq!(joined(page.clone(), one(early), Step::Minutes), None);
        }
        assert_eq!(joined(Vec::new(), one(1), Step::Day), Some(vec![one(1)]));
    }

    #[test]
    fn between_two_samples_a_price_moves_along_a_line() {
        let samples = [
            sampled(1_000, 100),
            sampled(1_300, 400),
            sampled(1_600, 100),
            sampled(2_499, 900),
            sampled(3_399, 1),
        ];
        for (at, wanted) in [
            (999, None),
            (1_000, Some(100)),
            (1_001, Some(101)),
            (1_150, Some(250)),
            (1_300, Some(400)),
            (1_450, Some(250)),
            (1_599, Some(101)),
            // The greatest allowed gap, and one second more.
            (1_601, Some(100)),
            (2_498, Some(899)),
            (2_500, None),
            (3_399, Some(1)),
            (3_400, None),
        ] {
            assert_eq!(worth(&samples, at), wanted.map(U256::from), "{at}");
        }
        assert_eq!(worth(&[], 5), None);
    }

    #[test]
    fn no_price_is_too_large_to_be_between_two() {
        let most = 10_u128.pow(36);
        let samples = [sampled(0, 1), sampled(899, most)];
        let half = worth(&samples, 450).unwrap();
        assert!(half > U256::from(most / 2) && half < U256::from(most));
    }

    #[test]
    fn a_change_is_told_in_per_cent_of_what_was() {
        let e18 = |dollars: u64| U256::from(dollars) * U256::from(10).pow(U256::from(18));
        for (then, now, wanted) in [
            (2_000, 2_100, "5.00"),
            (2_100, 2_000, "-4.76"),
            (3, 3, "0.00"),
            (1, 3, "200.00"),
            (10_000, 9_999, "-0.01"),
        ] {
            assert_eq!(change(e18(then), e18(now)), wanted);
        }
    }
}
