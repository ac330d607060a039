//! The best way through a venue's pools, in two rounds of questions.
//!
//! What a way of two pools gives is what its second gives for what its first gives: of the pools between
//! two tokens the best one is on the best way, so each pool is asked by itself, and no combination is.

use alloy::primitives::{Address as Token, U256};

use super::{best, quoter::Quote, route::Route, venue::Venue};
use crate::quote::swap::{SwapError, SwapTerms};

/// Pools that are asked in a round: ways beyond are not looked at.
pub const MOST: usize = 40;

/// One pool, and what goes in (or else must come out).
pub struct Hop {
    pub ends: (Token, Token),
    pub fee: u32,
    pub amount: U256,
}

impl Hop {
    /// The way of this pool alone.
    pub fn route(&self) -> Route {
        Route {
            tokens: vec![self.ends.0, self.ends.1],
            fees: vec![self.fee],
        }
    }
}

/// Every pool between two tokens, asked about one amount.
fn hops(ends: (Token, Token), fees: &[u32], amount: U256) -> impl Iterator<Item = Hop> {
    let fees = fees.iter();
    fees.map(move |fee| Hop {
        ends,
        fee: *fee,
        amount,
    })
}

/// A way over a hub, with the fees of its pools.
struct Over {
    hub: Token,
    first: Vec<u32>,
    second: Vec<u32>,
}

/// The best way and what it gives.
pub async fn search(venue: &Venue, terms: &SwapTerms) -> Result<(Route, Quote), SwapError> {
    let (input, output) = venue.pair(terms)?;
    let exact = terms.exact_input;
    // Over a hub there are two.
    let hubs: &[Token] = if terms.allow(2) { &venue.hubs } else { &[] };
    let (straight, overs) = ways(venue, (input, output), hubs).await?;
    let mut asked: Vec<Hop> = hops((input, output), &straight, terms.amount).collect();
    // What goes in is known of the first pool, what must come out of the last.
    for over in &overs {
        let (ends, fees) = match exact {
            true => ((input, over.hub), &over.first),
            false => ((over.hub, output), &over.second),
        };
        asked.extend(hops(ends, fees, terms.amount));
    }
    let mut broken = None;
    let mut told = answers(venue, &asked, exact, &mut broken).await?;
    let mut found: Vec<(Route, Quote)> = told
        .extract_if(.., |(hop, _)| hop.ends == (input, output))
        .map(|(hop, quote)| (hop.route(), quote))
        .collect();
    let nearest = nearest(&overs, told, exact);
    let next = nearest.iter().flat_map(|(over, (_, quote))| {
        let (ends, fees) = match exact {
            true => ((over.hub, output), &over.second),
            false => ((input, over.hub), &over.first),
        };
        hops(ends, fees, quote.amount)
    });
    let next: Vec<Hop> = next.collect();
    for (hop, quote) in answers(venue, &next, exact, &mut broken).await? {
        let known = nearest
            .iter()
            .find(|(over, _)| [hop.ends.0, hop.ends.1].contains(&over.hub));
        if let Some((over, (fee, near))) = known {
            let fees = if exact {
                [*fee, hop.fee]
            } else {
                [hop.fee, *fee]
            };
            let route = Route {
                tokens: vec![input, over.hub, output],
                fees: fees.to_vec(),
            };
            let gas = quote.gas.saturating_add(near.gas);
            found.push((route, Quote { gas, ..quote }));
        }
    }
    best(found, exact).ok_or_else(|| broken.unwrap_or(SwapError::NoRoute))
}

/// Of each hub the best pool of the first round.
fn nearest<'o>(
    overs: &'o [Over],
    told: Vec<(&Hop, Quote)>,
    exact: bool,
) -> Vec<(&'o Over, (u32, Quote))> {
    let of = |over: &Over| {
        let here = told
            .iter()
            .filter(|(hop, _)| [hop.ends.0, hop.ends.1].contains(&over.hub));
        let here = here.map(|(hop, quote)| (hop.fee, *quote));
        best(here.collect(), exact)
    };
    let nearest = overs.iter().filter_map(|over| Some((over, of(over)?)));
    nearest.collect()
}

/// What the pools give; those that give nothing are left out.
async fn answers<'h>(
    venue: &Venue,
    hops: &'h [Hop],
    exact_input: bool,
    broken: &mut Option<SwapError>,
) -> Result<Vec<(&'h Hop, Quote)>, SwapError> {
    let mut told = Vec::new();
    let answers = venue.quotes(hops, exact_input).await?;
    for (hop, answer) in hops.iter().zip(answers) {
        match answer {
            Ok(Some(quote)) => told.push((hop, quote)),
            Ok(None) => (),
            Err(error) => *broken = Some(error),
        }
    }
    Ok(told)
}

/// The fees of the pools that there are, straight and over each of the hubs, as far as they are asked.
async fn ways(
    venue: &Venue,
    (input, output): (Token, Token),
    hubs: &[Token],
) -> Result<(Vec<u32>, Vec<Over>), SwapError> {
    let hubs = hubs.iter().copied();
    let hubs: Vec<Token> = hubs.filter(|hub| ![input, output].contains(hub)).collect();
    let legs = hubs.iter().flat_map(|hub| [(input, *hub), (*hub, output)]);
    let pairs: Vec<_> = std::iter::once((input, output)).chain(legs).collect();
    let mut fees = venue.pools(&pairs).await?.into_iter();
    let straight = fees.next().unwrap_or_default();
    let (mut overs, mut left) = (Vec::new(), MOST.saturating_sub(straight.len()));
    for hub in hubs {
        let first = fees.next().unwrap_or_default();
        let second = fees.next().unwrap_or_default();
        let pools = first.len().max(second.len());
        if !first.is_empty() && !second.is_empty() && pools <= left {
            left -= pools;
            overs.push(Over { hub, first, second });
        }
    }
    Ok((straight, overs))
}
