//! One price from the answers of several feeds: how far they may be apart, and the worst of them. Pure.

use alloy::primitives::U256;
use vm::protocol::BASIS_POINTS;

use super::{
    Price, Rules,
    feed::{Doubt, Observation},
};
use crate::market::{Class, PriceFeed};

/// The whole in millionths.
const MILLION: u64 = 1_000_000;
const HOUR: u64 = 3_600;
/// No price is more uncertain than this, in millionths.
const MOST_SPREAD: u64 = 200_000;

/// The first answer of several providers of one feed, restless enough that what the others say counts as
/// well: whoever is asked first moves no price. `Err` when nobody gave one (the first doubt), or when two
/// are more than `spread` basis points apart: then one of them is wrong, and nobody knows which.
pub fn agreed(answers: &[Result<Observation, Doubt>], spread: u32) -> Result<Observation, Doubt> {
    let mut observed = answers.iter().flatten();
    let Some(first) = observed.next() else {
        let doubt = answers.iter().find_map(|answer| answer.as_ref().err());
        return Err(doubt.cloned().unwrap_or(Doubt::Silent("nobody".to_owned())));
    };
    let (low, high) = extremes(answers.iter().flatten(), first, spread)?;
    // Half of a swing counts in each direction.
    let apart = (high - low).saturating_mul(U256::from(2 * MILLION));
    let apart = u64::try_from(apart.div_ceil(low)).unwrap_or(u64::MAX);
    Ok(Observation {
        swing: first.swing.max(apart),
        ..*first
    })
}

/// As [`agreed`], of the providers of one feed: with three or more, whoever is farthest from what most of them tell
/// is left out as long as they are too far apart and most are left, so that one alone neither moves a price nor
/// takes it away. One that tells nothing is none of the most.
pub fn of_most(answers: &[Result<Observation, Doubt>], spread: u32) -> Result<Observation, Doubt> {
    let mut observed: Vec<&Observation> = answers.iter().flatten().collect();
    observed.sort_by_key(|observed| observed.usd);
    let most = answers.len() / 2 + 1;
    let mut near = observed.as_slice();
    while answers.len() > 2
        && near.len() > most
        && let [low, .., high] = near
        && extremes([*low].into_iter(), high, spread).is_err()
    {
        let middle = near[near.len() / 2].usd;
        near = match middle - low.usd > high.usd - middle {
            true => &near[1..],
            false => &near[..near.len() - 1],
        };
    }
    let [low, .., high] = near else {
        return agreed(answers, spread);
    };
    let kept = |answer: &&Result<Observation, Doubt>| {
        let observed = answer.as_ref().ok();
        observed.is_none_or(|observed| (low.usd..=high.usd).contains(&observed.usd))
    };
    let kept: Vec<_> = answers.iter().filter(kept).cloned().collect();
    agreed(&kept, spread)
}

/// A currency's price from its feeds, in the order in which they are believed: the first is shown, and
/// the worst counts for us in both directions. Each is widened by its age and by how restless it is.
pub fn range(
    answers: &[(&PriceFeed, Result<Observation, Doubt>)],
    class: Class,
    rules: Rules,
    now: u64,
) -> Result<Price, Doubt> {
    let all: Vec<_> = answers.iter().map(|(_, answer)| answer.clone()).collect();
    let first = agreed(&all, rules.spread)?;
    let observed = || {
        answers
            .iter()
            .filter_map(|(feed, answer)| Some((*feed, answer.as_ref().ok()?)))
    };
    if rules.independent && !confirmed(observed().map(|(feed, _)| feed)) {
        return Err(Doubt::Alone);
    }
    let (low, high) = extremes(
        observed().map(|(_, observed)| observed),
        &first,
        rules.spread,
    )?;
    let (mut least, mut most, mut at) = (low, high, first.at);
    for (_, observed) in observed() {
        let spread = spread(class, now.saturating_sub(observed.at), observed.swing);
        let part = observed
            .usd
            .saturating_mul(U256::from(spread))
            .div_ceil(U256::from(MILLION));
        least = least.min(observed.usd.saturating_sub(part));
        most = most.max(observed.usd.saturating_add(part));
        at = at.min(observed.at);
    }
    Ok(Price {
        usd: first.usd,
        low,
        high,
        least: least.max(U256::from(1)),
        most,
        at,
    })
}

/// Two sources that have nothing to do with each other, and one of them a feed: a peg is a wish.
fn confirmed<'a>(observed: impl Iterator<Item = &'a PriceFeed>) -> bool {
    let mut sources: Vec<_> = observed.map(PriceFeed::source).collect();
    sources.sort_unstable();
    sources.dedup();
    sources.len() > 1
}

fn extremes<'a>(
    observed: impl Iterator<Item = &'a Observation>,
    first: &Observation,
    spread: u32,
) -> Result<(U256, U256), Doubt> {
    let (low, high) = observed.fold((first.usd, first.usd), |(low, high), observed| {
        (low.min(observed.usd), high.max(observed.usd))
    });
    let apart = (high - low).saturating_mul(U256::from(BASIS_POINTS));
    if apart > low.saturating_mul(U256::from(spread)) {
        return Err(Doubt::Disagreement);
    }
    Ok((low, high))
}

/// Millionths that a price of this class may move by in an hour, and up to which its feeds tell nothing.
fn moves(class: Class) -> (u64, u64) {
    match class {
        Class::Stable => (500, 2_500),
        Class::Major => (5_000, 10_000),
        Class::Other => (20_000, 50_000),
    }
}

/// By how many millionths a price may be off: what its class may move in an hour, up to what feeds
/// tell at once whatever their age, and half of its swing.
fn spread(class: Class, age: u64, swing: u64) -> u64 {
    let (hourly, most) = moves(class);
    let aged = age.saturating_mul(hourly) / HOUR;
    aged.min(most).saturating_add(swing / 2).min(MOST_SPREAD)
}

/// By how many millionths a price may move within so many seconds: as much as its class in an hour, and with
/// the root of the time, up to what feeds tell at once.
fn wander(class: Class, seconds: u64) -> u64 {
    let (hourly, most) = moves(class);
    let root = seconds.min(HOUR).isqrt();
    (hourly.saturating_mul(root) / HOUR.isqrt()).min(most)
}

/// By how many basis points, rounded up, a price of this class may move within so many seconds.
pub fn moved(class: Class, seconds: u64) -> u64 {
    wander(class, seconds).div_ceil(MILLION / BASIS_POINTS)
}

impl Price {
    /// For a deal that the other side may still decline after so many seconds: it does where the price moved
    /// against it, and takes what it gains where not.
    #[must_use]
    pub fn optional(self, class: Class, seconds: u64) -> Self {
        let part = self
            .usd
            .saturating_mul(U256::from(wander(class, seconds)))
            .div_ceil(U256::from(MILLION));
        Self {
            least: self.least.saturating_sub(part).max(U256::from(1)),
            most: self.most.saturating_add(part),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_still_decline_pays_for_what_a_price_moves_meanwhile() {
        for (class, seconds, part) in [
            (Class::Major, 0, 0),
            (Class::Major, 36, 500),
            (Class::Major, 900, 2_500),
            (Class::Major, 3_600, 5_000),
            (Class::Major, 86_400, 5_000),
            (Class::Stable, 900, 250),
            (Class::Other, 900, 10_000),
        ] {
            let price = Price::exact(U256::from(MILLION), 1).optional(class, seconds);
            let expected = (U256::from(MILLION - part), U256::from(MILLION + part));
            assert_eq!((price.least, price.most), expected, "{seconds}");
            assert_eq!((price.usd, price.low), (U256::from(MILLION), price.high));
        }
    }

    #[test]
    fn what_a_price_moves_by_is_told_in_basis_points_rounded_up() {
        for (class, seconds, bps) in [
            (Class::Major, 0, 0),
            (Class::Major, 900, 25),
            (Class::Major, 7_200, 50),
            (Class::Stable, 900, 3),
            (Class::Other, 3_600, 200),
        ] {
            assert_eq!(moved(class, seconds), bps, "{seconds}");
        }
    }

    fn observed(usd: u64) -> Result<Observation, Doubt> {
        let usd = U256::from(usd);
        Ok(Observation {
            usd,
            at: 1,
            swing: 0,
        })
    }

    fn seen(usd: u64, at: u64, swing: u64) -> Result<Observation, Doubt> {
        let usd = U256::from(usd);
        Ok(Observation { usd, at, swing })
    }

    #[test]
    fn first_price_that_the_others_do_not_contradict() {
        let silent = || Err(Doubt::Silent("x".to_owned()));
        for (answers, expected) in [
            (vec![observed(10_000)], observed(10_000)),
            // 2 % apart, which counts in full in both directions.
            (
                vec![observed(10_000), observed(10_200)],
                seen(10_000, 1, 40_000),
            ),
            (
                vec![observed(10_200), observed(10_000)],
                seen(10_200, 1, 40_000),
            ),
            (
                vec![observed(10_000), observed(10_201)],
                Err(Doubt::Disagreement),
            ),
            (
                vec![observed(10_201), observed(10_000)],
                Err(Doubt::Disagreement),
            ),
            (
                vec![observed(10_000), observed(10_150), observed(9_900)],
                Err(Doubt::Disagreement),
            ),
            (vec![silent(), observed(7)], observed(7)),
            (vec![Err(Doubt::Senseless), silent()], Err(Doubt::Senseless)),
            (vec![], Err(Doubt::Silent("nobody".to_owned()))),
        ] {
            assert_eq!(agreed(&answers, 200), expected);
        }
    }

    #[test]
    fn one_provider_of_three_takes_no_price_away() {
        let silent = || Err(Doubt::Silent("x".to_owned()));
        for (answers, expected) in [
            (
                vec![observed(5_000), observed(10_000), observed(10_000)],
                observed(10_000),
            ),
            (
                vec![observed(10_000), observed(10_000), observed(20_000)],
                observed(10_000),
            ),
            // Two that are not the same count in full in both directions.
            (
                vec![observed(10_200), observed(1), observed(10_000)],
                seen(10_200, 1, 40_000),
            ),
            // One that is near the middle of them and too far from one of them.
            (
                vec![observed(9_849), observed(10_000), observed(10_050)],
                seen(10_000, 1, 10_000),
            ),
            (
                vec![observed(10_201), observed(10_000), observed(10_050)],
                seen(10_000, 1, 10_000),
            ),
            (
                vec![
                    observed(10_000),
                    observed(10_100),
                    observed(10_150),
                    observed(10_301),
                ],
                seen(10_000, 1, 30_000),
            ),
            (
                vec![observed(5_000), observed(10_000), silent()],
                Err(Doubt::Disagreement),
            ),
            (
                vec![observed(5_000), observed(10_000)],
                Err(Doubt::Disagreement),
            ),
            (
                vec![
                    observed(5_000),
                    observed(5_000),
                    observed(10_000),
                    observed(10_000),
                ],
                Err(Doubt::Disagreement),
            ),
            (vec![silent(), silent(), observed(7)], observed(7)),
            (vec![silent()], silent()),
        ] {
            assert_eq!(of_most(&answers, 200), expected, "{answers:?}");
        }
    }

    fn feeds() -> [PriceFeed; 3] {
        [
            PriceFeed::Chainlink {
                network: "one".into(),
                address: "0x".into(),
                max_age: 1,
            },
            PriceFeed::Pyth {
                url: "http://x".into(),
                id: "0x".into(),
                max_age: 1,
            },
            PriceFeed::Peg { usd: "1".into() },
        ]
    }

    fn ranged(
        answers: &[(usize, Result<Observation, Doubt>)],
        independent: bool,
    ) -> Result<Price, Doubt> {
        let (feeds, rules) = (
            feeds(),
            Rules {
                spread: 200,
                independent,
            },
        );
        let answers: Vec<_> = answers
            .iter()
            .map(|(feed, answer)| (&feeds[*feed], answer.clone()))
            .collect();
        range(&answers, Class::Major, rules, 3_600)
    }

    #[test]
    fn worst_price_counts_in_both_directions() {
        let now = 3_600;
        let price = ranged(
            &[(0, seen(1_000_000, now, 0)), (1, seen(1_010_000, now, 0))],
            true,
        );
        let price = price.unwrap();
        let numbers = [price.usd, price.low, price.high, price.least, price.most];
        let wanted = [1_000_000, 1_000_000, 1_010_000, 1_000_000, 1_010_000];
        assert_eq!(numbers, wanted.map(U256::from));
    }

    #[test]
    fn old_and_restless_prices_are_wide() {
        for (at, swing, wanted) in [
            (3_600, 0, 0),
            (1_800, 0, 2_500),
            (0, 0, 5_000),
            (3_600, 20_000, 10_000),
            (0, 20_000, 15_000),
            (3_600, u64::MAX, 200_000),
        ] {
            let price = ranged(&[(0, seen(1_000_000, at, swing))], false).unwrap();
            let part = U256::from(wanted);
            let million = U256::from(1_000_000);
            assert_eq!((price.least, price.most), (million - part, million + part));
            assert_eq!((price.low, price.high), (million, million));
        }
        assert_eq!(spread(Class::Stable, 86_400, 0), 2_500);
        assert!(spread(Class::Other, 60, 0) > spread(Class::Major, 60, 0));
    }

    #[test]
    fn one_source_alone_is_no_price_in_production() {
        let one = || observed(1_000);
        let silent = || Err(Doubt::Silent("x".to_owned()));
        for (answers, believed) in [
            (vec![(0, one())], false),
            (vec![(1, one())], false),
            // A peg that no feed confirms, and one that a feed does.
            (vec![(2, one())], false),
            (vec![(2, one()), (2, one())], false),
            (vec![(2, one()), (0, one())], true),
            (vec![(2, one()), (0, silent())], false),
            // The same source twice is one.
            (vec![(0, one()), (0, one())], false),
            (vec![(0, one()), (1, one())], true),
            (vec![(0, one()), (1, silent())], false),
        ] {
            let strict = ranged(&answers, true);
            assert_eq!(strict.is_ok(), believed, "{answers:?}");
            assert!(believed || strict == Err(Doubt::Alone));
            assert!(ranged(&answers, false).is_ok());
        }
        let apart = [(2, observed(1_000)), (0, observed(979))];
        assert_eq!(ranged(&apart, true), Err(Doubt::Disagreement));
    }
}
