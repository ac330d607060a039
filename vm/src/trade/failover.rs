//! Several providers of one chain for trading, asked together, each with a deadline of its own. What
//! moves money or bars a later payment is what enough of them say: numbers are the greatest that a
//! quorum claims at least, base rates are in the middle of what a quorum roughly agrees on, verdicts
//! are those that a quorum gives. One that hangs, lags or lies decides nothing.

mod gather;
mod outputs;
mod rates;

use std::sync::{Arc, Mutex};

pub(crate) use self::gather::{Patience, first};
use self::rates::Rates;
use super::{Broadcast, Fate, Revert, Spent, TradingProvider, Trial};
use crate::{
    ReadError,
    types::{Address, Amount, Bytes},
};

/// How many times another one's rate two honest providers' rates are at most, where their family says nothing else.
const SPREAD: u128 = 4;
/// How far apart the work is that a quorum's providers find, at most.
const APART: u64 = 2;
/// A base rate rises from one block to the next by one part in so many at most. Where two answers differ by no more,
/// another one changes little.
const STEEPEST_RISE: u64 = 8;

/// The providers of one chain, and how many of them must agree.
#[derive(Clone)]
pub struct Failover {
    /// The network's name, for logs.
    name: Arc<str>,
    required: usize,
    /// How many times another one's rate two honest providers' rates are at most.
    spread: u128,
    providers: Arc<[TradingProvider]>,
    rates: Arc<Mutex<Rates>>,
    /// Whether somebody with a key asks.
    keyed: fn() -> bool,
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
            rates: Arc::default(),
            keyed: || false,
        })
    }

    /// With another limit on how many times each other's rates two honest providers' rates are.
    #[must_use]
    pub fn with_spread(self, spread: u128) -> Self {
        Self { spread, ..self }
    }

    /// For providers that serve those with a key and those without one from budgets of their own: who has a key waits for
    /// no question of somebody without.
    #[must_use]
    pub fn with_keys(self, keyed: fn() -> bool) -> Self {
        Self { keyed, ..self }
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

    /// How many decimals a currency other than the native one has, and whether its amounts are scaled
    /// ([`CurrencyInfo::scaled`](super::CurrencyInfo::scaled)); `None` where there is no currency.
    pub async fn decimals(&self, currency: &Address) -> Result<Option<(u8, bool)>, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let said = provider.accounts.currency(currency).await?;
            Ok(said.map(|said| (said.decimals, said.scaled)))
        };
        self.agree("decimals", ask).await
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

    /// What a quorum answers, yes or no; an error where neither has a quorum. Where both have one (two of four providers say
    /// yes, and two say no) it is yes. [`Self::agree`] takes the one that is heard first.
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
}

/// Whether two verdicts are the same, with work that is nearly the same.
fn is_like_work(one: &Result<u64, Revert>, other: &Result<u64, Revert>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.abs_diff(*other) <= *one.min(other) / STEEPEST_RISE,
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

#[cfg(test)]
pub(crate) mod fakes;
#[cfg(test)]
mod tests;
