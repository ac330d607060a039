//! Several providers of one chain for trading, asked together, each with a deadline of its own. What
//! moves money or bars a later payment is what enough of them say: numbers are the greatest that a
//! quorum claims at least, verdicts are those that a quorum gives. One that hangs, lags or lies
//! decides nothing.

mod cost;
mod gather;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};

pub use self::cost::Cost;
use super::{
    Broadcast, Call, Draft, Fate, Fees, Intended, Limits, Revert, Spent, TradingProvider,
    TransactionCodec, Unfit,
};
use crate::{
    ReadError,
    types::{Address, Amount, B256, Bytes, U256},
};

/// How far apart two honest providers' base fees are at most: six blocks of steepest rise.
const SPREAD: u128 = 4;
/// How old fees may be that only tell what something would cost.
const RECENT: Duration = Duration::from_secs(2);
/// Stands for a nonce where only the length of a transaction matters.
const SOME_NONCE: u64 = 1 << 20;

/// What a chain is traded by.
#[derive(Clone)]
pub struct FailoverContext {
    /// For logs.
    pub name: String,
    /// What transactions are signed for.
    pub number: u64,
    pub codec: &'static dyn TransactionCodec,
    pub limits: Limits,
    /// Providers that must agree.
    pub required: usize,
}

/// See the module.
#[derive(Clone)]
pub struct Failover {
    context: Arc<FailoverContext>,
    trades: Arc<[TradingProvider]>,
    fees: Arc<Mutex<Option<(Instant, Fees)>>>,
    /// Who says what bytes cost, once that was asked; unset where the limits say it.
    bytes: Option<Arc<OnceCell<Option<Address>>>>,
}

impl Failover {
    /// At least one provider; `required` is brought into `1..=trades.len()`.
    pub fn new(mut context: FailoverContext, trades: Vec<TradingProvider>) -> Option<Self> {
        if trades.is_empty() {
            return None;
        }
        context.required = context.required.clamp(1, trades.len());
        Some(Self {
            context: Arc::new(context),
            trades: trades.into(),
            fees: Arc::default(),
            bytes: None,
        })
    }

    pub fn name(&self) -> &str {
        &self.context.name
    }

    /// What transactions are made with, and signed for.
    pub fn codec(&self) -> (&'static dyn TransactionCodec, u64) {
        (self.context.codec, self.context.number)
    }

    pub fn limits(&self) -> &Limits {
        &self.context.limits
    }

    pub async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        let ask =
            |trade: TradingProvider| async move { trade.accounts.balance(owner, currency).await };
        self.number("balance", ask).await
    }

    pub async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        let ask = |trade: TradingProvider| async move {
            trade.accounts.allowance(owner, spender, currency).await
        };
        self.number("allowance", ask).await
    }

    /// The number of `owner`'s transactions in blocks, or with those that wait.
    pub async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.writer.nonce(owner, waiting).await };
        self.number("nonce", ask).await
    }

    /// What gas costs now. Base fees that a quorum does not roughly agree on are none.
    pub async fn fees(&self) -> Result<Fees, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.writer.fees().await };
        let said = self.gather("fees", ask).await?;
        let required = self.context.required;
        let short = || self.short("fees", "too far apart");
        let base = said.iter().map(|fees| fees.base).collect();
        let base = greatest(base, required).ok_or_else(short)?;
        let near = |fees: &&Fees| {
            fees.base <= base.saturating_mul(SPREAD) && base <= fees.base.saturating_mul(SPREAD)
        };
        let near: Vec<_> = said.iter().filter(near).collect();
        if near.len() < required {
            return Err(short());
        }
        let tips = near.iter().map(|fees| fees.priority).collect();
        let priority = greatest(tips, required).ok_or_else(short)?;
        let fees = Fees { base, priority };
        *self.known() = Some((Instant::now(), fees));
        Ok(fees)
    }

    /// What gas cost a moment ago: to tell a price, not to pay one.
    pub async fn recent_fees(&self) -> Result<Fees, ReadError> {
        let known = *self.known();
        match known {
            Some((at, fees)) if at.elapsed() < RECENT => Ok(fees),
            _ => self.fees().await,
        }
    }

    /// How many decimals a currency other than the native one has; `None` where there is none.
    pub async fn decimals(&self, currency: &Address) -> Result<Option<u8>, ReadError> {
        let ask = |trade: TradingProvider| async move {
            let said = trade.accounts.currency(currency).await?;
            Ok(said.map(|said| said.decimals))
        };
        self.agree("decimals", ask).await
    }

    /// Whether code lives at an address.
    pub async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.accounts.is_contract(address).await };
        self.agree("code", ask).await
    }

    /// Whether an approval proxy hands calls to `router`.
    pub async fn is_router(&self, proxy: &Address, router: &Address) -> Result<bool, ReadError> {
        let routing = self.context.codec.routing(proxy, router);
        let (question, expected) =
            routing.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let (question, expected) = (&question, &expected);
        let ask = |trade: TradingProvider| async move {
            let said = trade.accounts.call(question).await?;
            Ok(said.is_ok_and(|said| said == *expected))
        };
        self.agree("router", ask).await
    }

    /// Gas units of a transaction, without room; or why it would revert, when a quorum says so.
    pub async fn estimate(
        &self,
        intended: &Intended<'_>,
    ) -> Result<Result<u64, Revert>, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.writer.estimate(intended).await };
        let said = self.gather("estimate", ask).await?;
        let (mut gas, mut reverts) = (Vec::new(), Vec::new());
        for verdict in said {
            match verdict {
                Ok(units) => gas.push(units),
                Err(revert) => reverts.push(revert),
            }
        }
        if let Some(gas) = greatest(gas, self.context.required) {
            return Ok(Ok(gas));
        }
        match reverts.len() >= self.context.required {
            true => Ok(Err(reverts.swap_remove(0))),
            false => Err(self.short("estimate", "no agreement on a revert")),
        }
    }

    /// Whether calls that need each other work one after the other, as a quorum says; see
    /// [`Simulator`](super::Simulator).
    pub async fn rehearse(&self, calls: &[Call]) -> Result<Result<(), Revert>, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.simulator.rehearse(calls).await };
        let said = self.gather("simulation", ask).await?;
        let required = self.context.required;
        if said.iter().filter(|verdict| verdict.is_ok()).count() >= required {
            return Ok(Ok(()));
        }
        let mut reverts: Vec<_> = said.into_iter().filter_map(Result::err).collect();
        match reverts.len() >= required {
            true => Ok(Err(reverts.swap_remove(0))),
            false => Err(self.short("simulation", "no agreement")),
        }
    }

    /// Whether nodes take the transaction at all: its size and kind, and the authorizations that it
    /// carries, whose accounts must stand where those say and have nothing waiting. `Err` inside: why
    /// none does.
    pub async fn admit(&self, intended: &Intended<'_>) -> Result<Result<(), Unfit>, ReadError> {
        let (context, fees) = (&self.context, intended.fees.unwrap_or_default());
        let draft = self.draft(intended, fees);
        let admitted = context.codec.admit(context.number, &draft, &context.limits);
        let authorities = match admitted {
            Ok(authorities) => authorities,
            Err(unfit) => return Ok(Err(unfit)),
        };
        for (at, authority) in authorities.iter().enumerate() {
            let (mined, waiting) =
                futures::try_join!(self.nonce(authority, false), self.nonce(authority, true))?;
            let before = authorities[..at].iter().filter(|one| *one == authority);
            let expected = mined.saturating_add(before.count() as u64);
            let why = match intended.authorizations[at].nonce {
                _ if waiting > mined => "its account has transactions that wait",
                nonce if nonce != expected => "its nonce is not its account's",
                _ => continue,
            };
            return Ok(Err(Unfit::Authorization(at, why.into())));
        }
        Ok(Ok(()))
    }

    /// Hands a transaction to every provider. A verdict against it is what a quorum says.
    pub async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.writer.broadcast(raw).await };
        let said = self.answers(ask).await;
        if said.is_empty() {
            return Err(self.short("broadcast", "no provider answers"));
        }
        let same = |one: &&Broadcast| {
            let kind = std::mem::discriminant(*one);
            let alike = said.iter().map(std::mem::discriminant);
            alike.filter(|other| *other == kind).count() >= self.context.required
        };
        // One that takes it is enough where no quorum speaks against it: not where one does.
        let accepted = said.contains(&Broadcast::Accepted);
        let agreed: Vec<_> = said.iter().filter(same).collect();
        let verdict = match agreed.contains(&&Broadcast::Accepted) {
            true => None,
            false => agreed.first().map(|one| Broadcast::clone(one)),
        };
        Ok(verdict.unwrap_or_else(|| match accepted {
            true => Broadcast::Accepted,
            false => Broadcast::Rejected("providers do not agree".into()),
        }))
    }

    /// What became of a transaction: in a block when a quorum has it in that one, waiting when a quorum
    /// knows it: what is not is sent again.
    pub async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError> {
        let ask = |trade: TradingProvider| async move { trade.writer.fate(transaction).await };
        let said = self.answers(ask).await;
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
            if here.is_some() && same.clone().count() >= self.context.required {
                return Ok(self.costing(fate, same));
            }
        }
        let known = said.iter().filter(|fate| **fate != Fate::Unknown).count();
        Ok(match known >= self.context.required {
            true => Fate::Waiting,
            false => Fate::Unknown,
        })
    }

    /// `fate` with what as many as have to agree say at least that it cost.
    fn costing<'a>(&self, fate: &Fate, same: impl Iterator<Item = &'a Fate>) -> Fate {
        let told = same.filter_map(|fate| match fate {
            Fate::Included { spent, .. } => *spent,
            Fate::Unknown | Fate::Waiting => None,
        });
        let told: Vec<_> = told.collect();
        let most = |said: Vec<U256>| greatest(said, self.context.required);
        let data = most(told.iter().filter_map(|spent| spent.data).collect());
        let agreed = most(told.iter().map(|spent| spent.gas).collect());
        let agreed = agreed.map(|gas| Spent { gas, data });
        let mut fate = fate.clone();
        if let Fate::Included { spent, .. } = &mut fate {
            *spent = agreed;
        }
        fate
    }

    /// The transaction as far as its length and kind go.
    fn draft(&self, intended: &Intended<'_>, fees: Fees) -> Draft {
        Draft {
            call: Call::clone(intended.call),
            authorizations: intended.authorizations.to_vec(),
            nonce: SOME_NONCE,
            gas: intended.most.unwrap_or(self.context.limits.gas),
            max_fee: fees.base.saturating_mul(2).saturating_add(fees.priority),
            max_priority_fee: fees.priority,
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<(Instant, Fees)>> {
        self.fees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The greatest that `required` of them claim at least: fewer liars neither raise it above nor, where
/// one provider can fail, lower it below what an honest one said.
fn greatest<T: Ord>(mut said: Vec<T>, required: usize) -> Option<T> {
    said.sort_unstable_by(|one, other| other.cmp(one));
    said.into_iter().nth(required.checked_sub(1)?)
}

#[cfg(test)]
mod tests;
