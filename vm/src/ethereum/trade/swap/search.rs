//! The best way through an exchange's pools, in two rounds of questions.
//!
//! The second pool of a way takes what the first one gives. So the best pool between two tokens is on the
//! best way, and each pool is asked by itself, without the combinations.

use alloy::primitives::{Address as Token, U256};

use super::{
    deployment::Deployment,
    quoter::{Quote, best},
    route::{Ends, Hop, Route},
};
use crate::trade::{SwapError, SwapTerms};

/// Pools that are asked in a round: ways beyond are not looked at.
pub const MOST: usize = 40;

/// Every pool between two tokens, asked about one amount.
fn hops(ends: Ends, fees: &[u32], amount: U256) -> impl Iterator<Item = Hop> {
    let fees = fees.iter();
    fees.map(move |fee| Hop {
        ends,
        fee: *fee,
        amount,
    })
}

/// A way over a hub, with the fees of its pools.
struct Detour {
    hub: Token,
    /// Into the hub, and out of it.
    into: Ends,
    first: Vec<u32>,
    out: Ends,
    second: Vec<u32>,
}

impl Detour {
    /// What is asked in the first round, and in the second: what goes in is known of the first pool, what must come
    /// out of the last.
    fn rounds(&self, exact_input: bool) -> [(Ends, &[u32]); 2] {
        let (first, second) = ((self.into, &*self.first), (self.out, &*self.second));
        match exact_input {
            true => [first, second],
            false => [second, first],
        }
    }
}

/// The best way and what it gives.
pub async fn search(
    deployment: &Deployment,
    terms: &SwapTerms,
) -> Result<(Route, Quote), SwapError> {
    let (straight, exact) = (deployment.ends(terms)?, terms.exact_input);
    // Over a hub there are two.
    let hubs: &[Token] = match terms.allow(2) {
        true => &deployment.hubs,
        false => &[],
    };
    let (fees, detours) = ways(deployment, straight, hubs).await?;
    let mut asked: Vec<Hop> = hops(straight, &fees, terms.amount).collect();
    for detour in &detours {
        let [(ends, fees), _] = detour.rounds(exact);
        asked.extend(hops(ends, fees, terms.amount));
    }
    let mut broken = None;
    let mut quotes = answers(deployment, &asked, exact, &mut broken).await?;
    let mut found: Vec<(Route, Quote)> = quotes
        .extract_if(.., |(hop, _)| hop.ends == straight)
        .map(|(hop, quote)| (hop.route(), quote))
        .collect();
    let nearest = nearest(&detours, quotes, exact);
    let next = nearest.iter().flat_map(|(detour, (_, quote))| {
        let [_, (ends, fees)] = detour.rounds(exact);
        hops(ends, fees, quote.amount)
    });
    let next: Vec<Hop> = next.collect();
    for (hop, quote) in answers(deployment, &next, exact, &mut broken).await? {
        let known = nearest.iter().find(|(detour, _)| hop.ends.has(detour.hub));
        if let Some((detour, (fee, near))) = known {
            let fees = match exact {
                true => [*fee, hop.fee],
                false => [hop.fee, *fee],
            };
            let route = Route {
                tokens: vec![straight.from, detour.hub, straight.to],
                fees: fees.to_vec(),
            };
            let gas = quote.gas.saturating_add(near.gas);
            found.push((route, Quote { gas, ..quote }));
        }
    }
    best(found, exact).ok_or_else(|| broken.unwrap_or(SwapError::NoRoute))
}

/// Of each hub the best pool of the first round.
fn nearest<'d>(
    detours: &'d [Detour],
    quotes: Vec<(&Hop, Quote)>,
    exact: bool,
) -> Vec<(&'d Detour, (u32, Quote))> {
    let of = |detour: &Detour| {
        let here = quotes.iter().filter(|(hop, _)| hop.ends.has(detour.hub));
        let here = here.map(|(hop, quote)| (hop.fee, *quote));
        best(here.collect(), exact)
    };
    let nearest = detours
        .iter()
        .filter_map(|detour| Some((detour, of(detour)?)));
    nearest.collect()
}

/// What the pools give; those that give nothing are left out.
async fn answers<'h>(
    deployment: &Deployment,
    hops: &'h [Hop],
    exact_input: bool,
    broken: &mut Option<SwapError>,
) -> Result<Vec<(&'h Hop, Quote)>, SwapError> {
    let mut quotes = Vec::new();
    let answers = deployment.quotes(hops, exact_input).await?;
    for (hop, answer) in hops.iter().zip(answers) {
        match answer {
            Ok(Some(quote)) => quotes.push((hop, quote)),
            Ok(None) => (),
            Err(error) => *broken = Some(error),
        }
    }
    Ok(quotes)
}

/// The fees of the pools that there are, straight and over each of the hubs, as far as they are asked.
async fn ways(
    deployment: &Deployment,
    ends: Ends,
    hubs: &[Token],
) -> Result<(Vec<u32>, Vec<Detour>), SwapError> {
    let hubs = hubs.iter().copied().filter(|hub| !ends.has(*hub));
    let legs = hubs.map(|hub| {
        let (into, out) = (Ends { to: hub, ..ends }, Ends { from: hub, ..ends });
        (hub, into, out)
    });
    let legs: Vec<_> = legs.collect();
    let pairs = legs.iter().flat_map(|(_, into, out)| [*into, *out]);
    let pairs: Vec<_> = std::iter::once(ends).chain(pairs).collect();
    let mut fees = deployment.pools(&pairs).await?.into_iter();
    let straight = fees.next().unwrap_or_default();
    let (mut detours, mut left) = (Vec::new(), MOST.saturating_sub(straight.len()));
    for (hub, into, out) in legs {
        let first = fees.next().unwrap_or_default();
        let second = fees.next().unwrap_or_default();
        let pools = first.len().max(second.len());
        if !first.is_empty() && !second.is_empty() && pools <= left {
            left -= pools;
            detours.push(Detour {
                hub,
                into,
                first,
                out,
                second,
            });
        }
    }
    Ok((straight, detours))
}
