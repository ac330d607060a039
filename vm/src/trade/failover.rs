//! Several providers of one chain for trading, asked together, each with a deadline of its own. What
//! moves money or bars a later payment is what enough of them say: numbers are the greatest that a
//! quorum claims at least, base rates are in the middle of what a quorum roughly agrees on, verdicts
//! are those that a quorum gives. One that hangs, lags or lies decides nothing.

mod gather;
mod outputs;

use std::{
    cmp::Reverse,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use tokio::time::Instant;

pub(crate) use self::gather::{Patience, first};
use super::{Broadcast, Fate, FeeRate, Revert, Spent, TradingProvider, Trial};
use crate::{
    ReadError,
    types::{Address, Amount, Bytes},
};

/// How many times another one's rate two honest providers' rates are at most, where their family says nothing else.
const SPREAD: u128 = 4;
/// How far apart the work is that a quorum's providers find, at most.
const APART: u64 = 2;
/// Another answer changes little where two differ by no more than a part in so many: a block's steepest rise.
const PART: u64 = 8;
/// How old a rate may be that only tells what something would cost.
const RECENT: Duration = Duration::from_secs(2);

/// A question about the rate: who comes while it is under way waits for the same answer.
type AskedRate = BoxFuture<'static, Result<FeeRate, ReadError>>;

/// The providers of one chain, and how many of them must agree.
#[derive(Clone)]
pub struct Failover {
    /// The network's name, for logs.
    name: Arc<str>,
    required: usize,
    /// How many times another one's rate two honest providers' rates are at most.
    spread: u128,
    providers: Arc<[TradingProvider]>,
    rate: Arc<Mutex<Option<(Instant, FeeRate)>>>,
    asked: Arc<Mutex<Option<WeakShared<AskedRate>>>>,
}

impl Failover {
    /// `None` of no provider; `required` is brought into `1..=providers.len()`.
    pub fn new(name: &str, required: usize, providers: Vec<TradingProvider>) -> Option<Self> {
        if providers.is_empty() {
            return None;
        }
        Some(Self {
            name: name.into(),
            required: required.clamp(1, providers.len()),
            spread: SPREAD,
            providers: providers.into(),
            rate: Arc::default(),
            asked: Arc::default(),
        })
    }

    /// With another limit on how many times each other's rates two honest providers' rates are.
    #[must_use]
    pub fn with_spread(self, spread: u128) -> Self {
        Self { spread, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many of the providers must agree.
    pub(crate) const fn required(&self) -> usize {
        self.required
    }

    pub async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        let ask = |provider: TradingProvider| async move {
            provider.accounts.balance(owner, currency).await
        };
        self.number("balance", ask).await
    }

    /// How many decimals a currency other than the native one has; `None` where there is none.
    pub async fn decimals(&self, currency: &Address) -> Result<Option<u8>, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let said = provider.accounts.currency(currency).await?;
            Ok(said.map(|said| said.decimals))
        };
        self.agree("decimals", ask).await
    }

    /// What a unit of work costs now. Base rates that a quorum does not roughly agree on are none. Bids may be far apart,
    /// since nodes know different memory pools.
    pub async fn rate(&self) -> Result<FeeRate, ReadError> {
        let rate = self.agreed_rate(self.said_rates().await?)?;
        *self.known() = Some((Instant::now(), rate));
        Ok(rate)
    }

    /// What a unit of work costs now, its bid included: for what is charged now and paid later, by other bids. Where a
    /// quorum does not roughly agree on both together, its rate.
    pub async fn unit_price(&self) -> Result<u128, ReadError> {
        let said = self.said_rates().await?;
        match self.agreed(said.clone(), FeeRate::expected) {
            Ok((price, _)) => Ok(price),
            Err(_) => self.agreed_rate(said).map(|rate| rate.expected()),
        }
    }

    async fn said_rates(&self) -> Result<Vec<FeeRate>, ReadError> {
        let ask = |provider: TradingProvider| async move { provider.writer.rate().await };
        // Where two are heard the lower bid counts. Who is quick and lies takes a bid off, and adds nothing: what is signed
        // waits until it is replaced, and users are charged that much less: where bids are all that is paid, nearly all.
        self.gather_near("fees", (is_beside, is_level), ask).await
    }

    /// The base rate that a quorum roughly agrees on, and the bid that a quorum of those who do, and at least half of them,
    /// claims at least.
    fn agreed_rate(&self, said: Vec<FeeRate>) -> Result<FeeRate, ReadError> {
        let (base, near) = self.agreed(said, |rate| rate.base)?;
        // Those who agree are sorted, the greatest first: of two in the middle this is the greater one.
        let upper = near.get(near.len().saturating_sub(1) / 2);
        let above = upper.map_or(0, |rate| rate.base.saturating_sub(base));
        let bids: Vec<_> = near.iter().map(|rate| rate.priority).collect();
        let count = self.required.max(bids.len().div_ceil(2));
        let priority = greatest(bids, count);
        let priority = priority.ok_or_else(|| self.short("fees", "too few answers"))?;
        Ok(FeeRate {
            base,
            priority,
            above,
        })
    }

    /// What a quorum roughly agrees on in `part`, with the rates of those who do.
    fn agreed(
        &self,
        said: Vec<FeeRate>,
        part: fn(&FeeRate) -> u128,
    ) -> Result<(u128, Vec<FeeRate>), ReadError> {
        let agreed = near_the_middle(said, part, self.spread);
        let agreed = agreed.filter(|(_, near)| near.len() >= self.required);
        agreed.ok_or_else(|| self.short("fees", "too far apart"))
    }

    /// What it cost a moment ago: to tell a price, not to pay one.
    pub async fn recent_rate(&self) -> Result<FeeRate, ReadError> {
        let known = *self.known();
        match known {
            Some((at, rate)) if at.elapsed() < RECENT => Ok(rate),
            _ => self.asked_rate().await,
        }
    }

    /// The question about the rate that is under way, or a new one. It ends when nobody waits for it any more.
    fn asked_rate(&self) -> Shared<AskedRate> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let running = asked.as_ref().and_then(WeakShared::upgrade);
        if let Some(running) = running.filter(|running| running.peek().is_none()) {
            return running;
        }
        let own = self.clone();
        let question = async move { own.rate().await }.boxed().shared();
        *asked = question.downgrade();
        question
    }

    /// The work of a transaction, without room; or why it would fail, when a quorum says so.
    pub async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let ask =
            |provider: TradingProvider| async move { provider.simulator()?.estimate(trial).await };
        let said = self.gather("estimate", is_like_work, ask).await?;
        let (mut work, mut reverts) = (Vec::new(), Vec::new());
        for verdict in said {
            match verdict {
                Ok(units) => work.push(units),
                Err(revert) => reverts.push(revert),
            }
        }
        // With much less work than it takes a transaction fails: one that claims so little is not believed.
        if let Some(units) = greatest(work.clone(), self.required) {
            let near = |other: &&u64| {
                units <= other.saturating_mul(APART) && **other <= units.saturating_mul(APART)
            };
            return match work.iter().filter(near).count() >= self.required {
                true => Ok(Ok(units)),
                false => Err(self.short("estimate", "too far apart")),
            };
        }
        match reverts.len() >= self.required {
            true => Ok(Err(reverts.swap_remove(0))),
            false => Err(self.short("estimate", "no agreement on a revert")),
        }
    }

    /// What a quorum answers, yes or no; an error where neither has a quorum.
    pub(crate) async fn holds<F: Future<Output = Result<bool, ReadError>>>(
        &self,
        what: &'static str,
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<bool, ReadError> {
        let said = self.gather(what, bool::eq, question).await?;
        let count = |verdict: bool| said.iter().filter(|one| **one == verdict).count();
        let mut verdicts = [true, false].into_iter();
        let agreed = verdicts.find(|verdict| count(*verdict) >= self.required);
        agreed.ok_or_else(|| self.short(what, "no agreement"))
    }

    /// Whether what a quorum tried worked, or why it did not.
    pub(crate) fn verdict<T>(
        &self,
        what: &'static str,
        said: Vec<Result<T, Revert>>,
    ) -> Result<Result<(), Revert>, ReadError> {
        if said.iter().filter(|verdict| verdict.is_ok()).count() >= self.required {
            return Ok(Ok(()));
        }
        let mut reverts: Vec<_> = said.into_iter().filter_map(Result::err).collect();
        match reverts.len() >= self.required {
            true => Ok(Err(reverts.swap_remove(0))),
            false => Err(self.short(what, "no agreement")),
        }
    }

    /// Hands a transaction to every provider. A verdict against it is what a quorum says.
    pub async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let ask = |provider: TradingProvider| async move { provider.writer.broadcast(raw).await };
        let alike = |one: &Broadcast, other: &Broadcast| {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        };
        let said = self.answers(alike, ask).await;
        if said.is_empty() {
            return Err(self.short("broadcast", "no provider answers"));
        }
        let same = |one: &&Broadcast| {
            let kind = std::mem::discriminant(*one);
            let alike = said.iter().map(std::mem::discriminant);
            alike.filter(|other| *other == kind).count() >= self.required
        };
        // One that takes it is enough where no quorum speaks against it: not where one does.
        let accepted = said.contains(&Broadcast::Accepted);
        let agreed: Vec<_> = said.iter().filter(same).collect();
        let verdict = match agreed.contains(&&Broadcast::Accepted) {
            true => None,
            false => agreed.first().map(|one| Broadcast::clone(one)),
        };
        // That its time is over is no refusal: refusals count against it only where a quorum refuses, in whatever words.
        let refuses =
            |one: &&Broadcast| matches!(one, Broadcast::Refused(_) | Broadcast::Rejected(_));
        let is_refused = said.iter().filter(refuses).count() >= self.required;
        let expired = said.contains(&Broadcast::Expired) && !is_refused;
        Ok(verdict.unwrap_or_else(|| match (accepted, expired) {
            (true, _) => Broadcast::Accepted,
            (false, true) => Broadcast::Expired,
            (false, false) => Broadcast::Rejected("providers do not agree".into()),
        }))
    }

    /// What became of a transaction: in a block when a quorum has it in that one, waiting when a quorum
    /// knows it: what is not is sent again.
    pub async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let ask = |provider: TradingProvider| async move { provider.writer.fate(id).await };
        let said = self.answers(is_same_fate, ask).await;
        if said.is_empty() {
            return Err(self.short("fate", "no provider answers"));
        }
        let place = |fate: &Fate| match fate {
            Fate::Included { block, success, .. } => Some((block.hash, *success)),
            Fate::Unknown | Fate::Waiting => None,
        };
        for fate in &said {
            let here = place(fate);
            let same = said.iter().filter(|other| place(other) == here);
            if here.is_some() && same.clone().count() >= self.required {
                return Ok(self.costing(fate, same));
            }
        }
        let known = said.iter().filter(|fate| **fate != Fate::Unknown).count();
        Ok(match known >= self.required {
            true => Fate::Waiting,
            false => Fate::Unknown,
        })
    }

    /// `fate` with what as many as have to agree say at least that it cost.
    fn costing<'a>(&self, fate: &Fate, same: impl Iterator<Item = &'a Fate>) -> Fate {
        let spent = same.filter_map(|fate| match fate {
            Fate::Included { spent, .. } => *spent,
            Fate::Unknown | Fate::Waiting => None,
        });
        let spent: Vec<_> = spent.collect();
        let most = |said: Vec<Amount>| greatest(said, self.required);
        let besides = most(spent.iter().filter_map(|spent| spent.besides).collect());
        let work = most(spent.iter().map(|spent| spent.work).collect());
        let agreed = work.map(|work| Spent { work, besides });
        let mut fate = fate.clone();
        if let Fate::Included { spent, .. } = &mut fate {
            *spent = agreed;
        }
        fate
    }

    fn known(&self) -> MutexGuard<'_, Option<(Instant, FeeRate)>> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two base rates are as near as those of blocks that follow each other.
fn is_level(one: &FeeRate, other: &FeeRate) -> bool {
    let part = one.base.min(other.base).div_ceil(PART.into());
    one.base.abs_diff(other.base) <= part
}

/// Whether two rates are so near that a third one changes little: with bids of one size, too.
fn is_beside(one: &FeeRate, other: &FeeRate) -> bool {
    let low = one.priority.min(other.priority);
    let high = one.priority.max(other.priority);
    is_level(one, other) && high <= low.saturating_mul(2)
}

/// Whether two verdicts are the same, with work that is nearly the same.
fn is_like_work(one: &Result<u64, Revert>, other: &Result<u64, Revert>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.abs_diff(*other) <= *one.min(other) / PART,
        (one, other) => one.is_err() == other.is_err(),
    }
}

/// Whether two have a transaction at the same place, at the same cost. Their heads may differ.
fn is_same_fate(one: &Fate, other: &Fate) -> bool {
    let place = |fate: &Fate| match fate {
        Fate::Included {
            block,
            success,
            spent,
            ..
        } => Some((block.hash, *success, *spent)),
        Fate::Unknown | Fate::Waiting => None,
    };
    let kind = std::mem::discriminant(one) == std::mem::discriminant(other);
    kind && place(one) == place(other)
}

/// The greatest that `required` of them claim at least: fewer liars neither raise it above nor, where
/// one provider can fail, lower it below what an honest one said.
fn greatest<T: Ord>(mut said: Vec<T>, required: usize) -> Option<T> {
    said.sort_unstable_by(|one, other| other.cmp(one));
    said.into_iter().nth(required.checked_sub(1)?)
}

/// The middle of what is said in `part`, and all that is near the upper middle. Of two in the middle the lower one counts,
/// so that one liar of two has nobody charged more; the upper one where they are far apart.
fn near_the_middle(
    mut said: Vec<FeeRate>,
    part: fn(&FeeRate) -> u128,
    spread: u128,
) -> Option<(u128, Vec<FeeRate>)> {
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
    Some((middle, said))
}

#[cfg(test)]
pub(crate) mod fakes;
#[cfg(test)]
mod tests;
