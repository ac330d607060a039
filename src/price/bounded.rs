//! Several answers to one question. Pure.

use alloy::primitives::U256;

use super::{Price, feed::Doubt};

/// The whole in basis points.
const WHOLE: u64 = 10_000;

/// The first price among `answers`, which come in the order in which they are believed. `Err` when
/// nobody gave one (the first doubt), or when two are more than `spread` basis points apart: then
/// one of them is wrong, and nobody knows which.
pub fn agreed(answers: &[Result<Price, Doubt>], spread: u32) -> Result<Price, Doubt> {
    let prices = || answers.iter().flatten();
    let Some(first) = prices().next() else {
        let doubt = answers.iter().find_map(|answer| answer.as_ref().err());
        return Err(doubt.cloned().unwrap_or(Doubt::Silent("nobody".to_owned())));
    };
    let (least, most) = prices().fold((first.usd, first.usd), |(least, most), price| {
        (least.min(price.usd), most.max(price.usd))
    });
    let apart = (most - least).saturating_mul(U256::from(WHOLE));
    if apart > least.saturating_mul(U256::from(spread)) {
        return Err(Doubt::Disagreement);
    }
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(usd: u64) -> Result<Price, Doubt> {
        let usd = U256::from(usd);
        Ok(Price { usd, at: 1 })
    }

    #[test]
    fn first_price_that_the_others_do_not_contradict() {
        let silent = || Err(Doubt::Silent("x".to_owned()));
        for (answers, expected) in [
            (vec![told(10_000)], told(10_000)),
            (vec![told(10_000), told(10_200)], told(10_000)),
            (vec![told(10_200), told(10_000)], told(10_200)),
            (vec![told(10_000), told(10_201)], Err(Doubt::Disagreement)),
            (vec![told(10_201), told(10_000)], Err(Doubt::Disagreement)),
            (
                vec![told(10_000), told(10_150), told(9_900)],
                Err(Doubt::Disagreement),
            ),
            (vec![silent(), told(7)], told(7)),
            (vec![Err(Doubt::Senseless), silent()], Err(Doubt::Senseless)),
            (vec![], Err(Doubt::Silent("nobody".to_owned()))),
        ] {
            assert_eq!(agreed(&answers, 200), expected);
        }
    }
}
