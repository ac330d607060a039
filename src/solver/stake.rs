//! What a request's payments have at stake ([`Stake`]). The solver notes it before a payment is sent, and again at each
//! look, by the request's claim.

use std::sync::{MutexGuard, PoisonError};

use alloy::primitives::B256;
use vm::{
    Address, Amount,
    trade::{Intent, Payout},
};

use super::{
    Solver, SolverError, View,
    account::{Plan, SolverAccount},
    breaker::Breaker,
    claim,
    declinable::has_code,
    stakes::{Id, Pot, Stake},
};
use crate::{
    price::PriceError,
    request::{
        Request,
        fact::{Deposit, Purpose},
    },
    store::rows::claim::{Leg, Stage},
};

/// A fill that hands over more than a token to an account.
#[derive(Clone, Copy, Debug)]
pub struct RiskyFill<'a> {
    /// The API key of its order.
    pub key: Option<&'a str>,
    /// What it costs at most if it fails, in the native currency.
    pub most: Amount,
    /// The account has code, or the order has calls.
    pub code: bool,
}

impl Solver {
    /// What was lost and what is at stake. It is held shortly, never while anything is awaited.
    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the request's payments have at stake.
    pub(super) async fn note_stakes(&self, view: &View) {
        let given = view.facts.deposits.iter().map(|one| Some(one.onchain_id));
        for deposit in given.chain([None]) {
            let id = (view.request.id, deposit);
            let seen = match last(view, deposit) {
                Some(leg) => self.seen(view, &id, leg).await,
                None => Ok(None),
            };
            let mut breaker = self.breaker();
            match seen {
                Ok(Some(stake)) => breaker.see(id, stake, view.now / 1_000),
                Ok(None) => breaker.ended(&id),
                // After an error the last known stake stays.
                Err(_) => {}
            }
        }
    }

    async fn seen(&self, view: &View, id: &Id, leg: &Leg) -> Result<Option<Stake>, SolverError> {
        let Some((spent, failed)) = at_stake(view, leg) else {
            return Ok(None);
        };
        let known = self.breaker().known(id).cloned();
        if spent.is_none() && known.is_some() {
            return Ok(known);
        }
        let account = self.account_of(leg)?;
        let pot = match &known {
            Some(known) => Some(known.pot.clone()),
            None => self.pot_of(view, account, leg).await,
        };
        let Some(pot) = pot else {
            return Ok(None);
        };
        let spent = match spent {
            Some(spent) => spent,
            None => self.most(account, leg).await?,
        };
        let spent = spent.saturating_add(spent_before(view, leg));
        let cost = self.milli(account, spent, view.now).await;
        Ok(Some(Stake {
            network: leg.network.clone(),
            pot,
            // Without a price the last known cost stays.
            cost: cost.or_else(|error| known.map(|known| known.cost).ok_or(error))?,
            failed,
        }))
    }

    /// What a payment under way may cost at most, in the native currency.
    async fn most(&self, account: &SolverAccount, leg: &Leg) -> Result<Amount, SolverError> {
        let found = account.attempt(&leg.attempt).await?;
        let attempt = found.ok_or(SolverError::Fenced)?;
        let Some(newest) = attempt.signed.len().checked_sub(1) else {
            return Ok(Amount::ZERO);
        };
        account.at_most((&leg.attempt, &attempt), newest).await
    }

    async fn pot_of(&self, view: &View, account: &SolverAccount, leg: &Leg) -> Option<Pot> {
        if leg.purpose == Purpose::Fill {
            return self.pot(&view.request).await;
        }
        let deposit = view.deposit(&leg.deposit)?;
        let (to, currency) = super::refund::parties(&view.request, deposit, account).ok()?;
        pot_back(account, view.request.api_key.as_deref(), (&to, &currency)).await
    }

    /// The pot in which the order's fill counts; `None`: its recipient cannot make it fail.
    async fn pot(&self, request: &Request) -> Option<Pot> {
        if !self.hands_over(request) {
            return None;
        }
        if let Some(key) = &request.api_key {
            return Some(Pot::Key(key.clone()));
        }
        Some(match self.runs_code(request).await {
            true => Pot::Code,
            false => Pot::Account,
        })
    }

    /// Notes what a fill may cost if it fails, before it is sent; `false`: it has to wait.
    pub(super) async fn stake(
        &self,
        view: &View,
        account: &SolverAccount,
        plan: &Plan,
    ) -> Result<bool, SolverError> {
        let Some(pot) = self.pot(&view.request).await else {
            return Ok(true);
        };
        let fee = account.fee(&plan.intent.draft, plan.intent.work).await?;
        let most = fee.total();
        let cost = self.milli(account, most, view.now).await?;
        let begun = self.begin_stake(view, None, stake_of(account, pot, cost));
        if !begun {
            let (order, network) = (view.request.order_id, account.chain.name.as_str());
            tracing::warn!(network, %order, cost, "enough is at stake: the order waits");
        }
        Ok(begun)
    }

    /// As [`Self::stake`], of a payment that gives a deposit back. It does not wait for a price.
    pub(super) async fn stake_back(
        &self,
        view: &View,
        deposit: &Deposit,
        payout: &Payout,
        intent: &Intent,
    ) -> Result<bool, SolverError> {
        let (key, account) = (
            view.request.api_key.as_deref(),
            self.account(&deposit.network)?,
        );
        let Some(pot) = pot_back(account, key, (&payout.to, &payout.currency)).await else {
            return Ok(true);
        };
        let deposit = deposit.onchain_id;
        let fee = account.fee(&intent.draft, intent.work).await?;
        let most = fee.total().saturating_add(failed_back(view, &deposit));
        let cost = self
            .milli(account, most, view.now)
            .await
            .unwrap_or_default();
        Ok(self.begin_stake(view, Some(deposit), stake_of(account, pot, cost)))
    }

    fn begin_stake(&self, view: &View, deposit: Option<B256>, stake: Stake) -> bool {
        let id = (view.request.id, deposit);
        self.breaker().begin(id, stake, view.now / 1_000)
    }

    /// `cost`, in the native currency, as thousandths of a dollar; at least one where it is not zero.
    async fn milli(
        &self,
        account: &SolverAccount,
        cost: Amount,
        now: u64,
    ) -> Result<u64, SolverError> {
        let (network, native) = (account.chain.name.as_str(), account.chain.native.text());
        let value = self.value((network, native), cost, now).await;
        let least = u64::from(!cost.is_zero());
        value.map(|value| value.max(least)).ok_or_else(|| {
            SolverError::Price(PriceError::Unavailable {
                currency: native.to_owned(),
                why: format!("what is at stake on {network} has no price"),
            })
        })
    }

    /// Whether a fill would have to wait. `now` in unix seconds.
    pub async fn restrains(
        &self,
        network: &str,
        RiskyFill { key, most, code }: RiskyFill<'_>,
        now: u64,
    ) -> Result<bool, SolverError> {
        let account = self.account(network)?;
        let pot = match (key, code) {
            (Some(key), _) => Pot::Key(key.to_owned()),
            (None, true) => Pot::Code,
            (None, false) => Pot::Account,
        };
        let millis = now.saturating_mul(1_000);
        let stake = Stake {
            network: network.to_owned(),
            pot,
            cost: self.milli(account, most, millis).await?,
            failed: None,
        };
        let mut breaker = self.breaker();
        Ok(!breaker.has_room(&stake, now) || code && breaker.holds((network, key), now))
    }
}

/// The stake of a payment that has not failed.
fn stake_of(account: &SolverAccount, pot: Pot, cost: u64) -> Stake {
    Stake {
        network: account.chain.name.clone(),
        pot,
        cost,
        failed: None,
    }
}

/// The newest payment of an id.
fn last(view: &View, deposit: Option<B256>) -> Option<&Leg> {
    let mut legs = view.claim.legs.iter().rev();
    legs.find(|leg| match deposit {
        Some(deposit) => leg.purpose != Purpose::Fill && leg.deposit == deposit,
        None => leg.purpose == Purpose::Fill,
    })
}

/// What a payment has at stake, in the native currency, and when its final block failed it, in unix seconds. A payment
/// under way has what it may cost at stake (`None`), or what it has cost once it failed in a block. A failed fill has
/// its cost at stake until the refund of its deposit, which pays for it, is confirmed; then nothing, unless a reorg
/// removes that refund. Nobody pays for a failed refund. `None`: nothing is at stake, or the refund is final.
fn at_stake(view: &View, leg: &Leg) -> Option<(Option<Amount>, Option<u64>)> {
    let failed = |cost: Amount| {
        let at = claim::reverted_at(&view.facts, leg)?;
        Some((Some(cost), Some(at)))
    };
    match leg.stage {
        Stage::Open if leg.wasted.is_zero() => Some((None, None)),
        Stage::Open => Some((Some(leg.wasted), None)),
        Stage::Failed if leg.purpose == Purpose::Fill => match given_back(view, leg) {
            Some(Stage::Final) => None,
            Some(Stage::Confirmed) => failed(Amount::ZERO),
            _ => failed(leg.wasted),
        },
        Stage::Failed => failed(leg.wasted),
        Stage::Confirmed | Stage::Final => None,
    }
}

/// What earlier payments that should give the same deposit back have cost.
fn spent_before(view: &View, leg: &Leg) -> Amount {
    if leg.purpose == Purpose::Fill {
        return Amount::ZERO;
    }
    let own = if leg.stage == Stage::Failed {
        leg.wasted
    } else {
        Amount::ZERO
    };
    failed_back(view, &leg.deposit).saturating_sub(own)
}

fn failed_back(view: &View, deposit: &B256) -> Amount {
    let legs = view.claim.legs.iter();
    let failed = legs.filter(|leg| {
        leg.purpose != Purpose::Fill && leg.deposit == *deposit && leg.stage == Stage::Failed
    });
    failed.fold(Amount::ZERO, |sum, leg| sum.saturating_add(leg.wasted))
}

/// The stage of the refund that pays for a failed fill.
fn given_back(view: &View, fill: &Leg) -> Option<Stage> {
    let mut legs = view.claim.live();
    let refund = legs.find(|leg| leg.purpose == Purpose::Refund && leg.deposit == fill.deposit);
    refund.map(|leg| leg.stage)
}

/// The pot in which a payment that gives back counts; `None`: it gives a token back, whose recipient cannot refuse it.
async fn pot_back(
    account: &SolverAccount,
    key: Option<&str>,
    (to, currency): (&Address, &Address),
) -> Option<Pot> {
    if *currency != account.chain.native || account.chain.providers.contracts.is_none() {
        return None;
    }
    if let Some(key) = key {
        return Some(Pot::BackOfKey(key.to_owned()));
    }
    Some(match has_code(account, to).await {
        true => Pot::BackToCode,
        false => Pot::BackToAccount,
    })
}
