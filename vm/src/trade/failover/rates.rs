//! What a unit of work costs, as several providers say it.

use std::{
    cmp::Reverse,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use tokio::time::Instant;

use super::{Failover, STEEPEST_RISE, greatest};
use crate::{
    ReadError,
    trade::{FeeRate, TradingProvider},
};

/// How old a rate may be that only tells what something would cost.
const RECENT: Duration = Duration::from_secs(2);

/// A question about the rate: who comes while it is under way waits for the same answer.
type AskedRate = BoxFuture<'static, Result<FeeRate, ReadError>>;

/// What is known of the rate.
#[derive(Default)]
pub(super) struct Rates {
    last: Option<(Instant, FeeRate)>,
    /// The question that is under way, of those without a key and of those with one.
    asked: [Option<WeakShared<AskedRate>>; 2],
}

/// A middle, and who is near it.
struct Agreed {
    middle: u128,
    /// How far the upper one of two in the middle is above it.
    above: u128,
    near: Vec<FeeRate>,
}

impl Failover {
    /// What a unit of work costs now. Base rates that a quorum does not roughly agree on are none. Bids may be far apart,
    /// since nodes know different memory pools.
    pub async fn rate(&self) -> Result<FeeRate, ReadError> {
        let rate = self.agreed_rate(self.said_rates().await?)?;
        self.known().last = Some((Instant::now(), rate));
        Ok(rate)
    }

    /// What a unit of work costs now, its bid included: for what is charged now and paid later, by other bids. Where a
    /// quorum does not roughly agree on both together, its rate.
    pub async fn unit_price(&self) -> Result<u128, ReadError> {
        let said = self.said_rates().await?;
        match self.agreed(said.clone(), FeeRate::expected) {
            Ok(agreed) => Ok(agreed.middle),
            Err(_) => self.agreed_rate(said).map(|rate| rate.expected()),
        }
    }

    async fn said_rates(&self) -> Result<Vec<FeeRate>, ReadError> {
        let ask = |provider: TradingProvider| async move { provider.writer.rate().await };
        // Of a quorum of two the lower bid counts. A provider that lies quickly can therefore lower the bid, not raise it:
        // what is signed is included later, after a replacement, and users are charged less. Where there is no base
        // (Solana) the bid is all that work costs.
        self.gather_near("fees", (has_like_base_and_bid, has_like_base), ask)
            .await
    }

    /// The base rate that a quorum roughly agrees on, and the bid that a quorum of those who do, and at least half of them,
    /// claims at least.
    fn agreed_rate(&self, said: Vec<FeeRate>) -> Result<FeeRate, ReadError> {
        let agreed = self.agreed(said, |rate| rate.base)?;
        let bids: Vec<_> = agreed.near.iter().map(|rate| rate.priority).collect();
        let count = self.required.max(bids.len().div_ceil(2));
        let priority = greatest(bids, count);
        let priority = priority.ok_or_else(|| self.short("fees", "too few answers"))?;
        Ok(FeeRate {
            base: agreed.middle,
            priority,
            above: agreed.above,
        })
    }

    /// What a quorum roughly agrees on in `part`, with the rates of those who do.
    fn agreed(&self, said: Vec<FeeRate>, part: fn(&FeeRate) -> u128) -> Result<Agreed, ReadError> {
        let agreed = near_the_middle(said, part, self.spread);
        let agreed = agreed.filter(|agreed| agreed.near.len() >= self.required);
        agreed.ok_or_else(|| self.short("fees", "too far apart"))
    }

    /// What it cost a moment ago: to tell a price, not to pay one.
    pub async fn recent_rate(&self) -> Result<FeeRate, ReadError> {
        let known = self.known().last;
        match known {
            Some((at, rate)) if at.elapsed() < RECENT => Ok(rate),
            _ => self.asked_rate().await,
        }
    }

    /// The question about the rate that is under way, or a new one. It ends when nobody waits for it any more.
    fn asked_rate(&self) -> Shared<AskedRate> {
        let mut known = self.known();
        let asked = &mut known.asked[usize::from((self.keyed)())];
        let running = asked.as_ref().and_then(WeakShared::upgrade);
        if let Some(running) = running.filter(|running| running.peek().is_none()) {
            return running;
        }
        let own = self.clone();
        let question = async move { own.rate().await }.boxed().shared();
        *asked = question.downgrade();
        question
    }

    fn known(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two base rates are as near as those of blocks that follow each other.
fn has_like_base(one: &FeeRate, other: &FeeRate) -> bool {
    let rise = one.base.min(other.base).div_ceil(STEEPEST_RISE.into());
    one.base.abs_diff(other.base) <= rise
}

/// Whether two rates are so near that a third one changes little: with bids of one size, too.
fn has_like_base_and_bid(one: &FeeRate, other: &FeeRate) -> bool {
    let low = one.priority.min(other.priority);
    let high = one.priority.max(other.priority);
    has_like_base(one, other) && high <= low.saturating_mul(2)
}

/// The middle of what is said in `part`, and all that is near the upper middle. Of two in the middle the lower one counts,
/// so that one liar of two has nobody charged more; the upper one where they are far apart.
fn near_the_middle(
    mut said: Vec<FeeRate>,
    part: fn(&FeeRate) -> u128,
    spread: u128,
) -> Option<Agreed> {
    said.sort_unstable_by_key(|rate| Reverse(part(rate)));
    let upper = said.get(said.len().checked_sub(1)? / 2).map(part)?;
    let lower = said.get(said.len() / 2).map(part)?;
    let is_near = |other: u128| {
        upper <= other.saturating_mul(spread) && other <= upper.saturating_mul(spread)
    };
    let middle = match is_near(lower) {
        true => lower,
        false => upper,
    };
    said.retain(|rate| is_near(part(rate)));
    Some(Agreed {
        middle,
        above: upper.saturating_sub(middle),
        near: said,
    })
}

#[cfg(test)]
mod tests;
