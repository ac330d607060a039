//! What a request's payments have at stake ([`Stake`]): noted before they are sent, and again at each look, as the
//! request's claim says.

use std::sync::PoisonError;

use alloy::primitives::B256;
use vm::{Address, Amount, spelled_alike};

use super::{
    Solver, SolverError, View,
    account::{Plan, SolverAccount},
    stakes::{Id, Pot, Stake},
    waste::reverted_at,
};
use crate::{
    price::PriceError,
    request::{Request, fact::Purpose},
    store::rows::claim::{Leg, Stage},
};

impl Solver {
    /// Notes what the request has at stake.
    pub(super) async fn see(&self, view: &View) {
        let given = view.facts.deposits.iter().map(|one| Some(one.onchain_id));
        for deposit in given.chain([None]) {
            let id = (view.request.id, deposit);
            let seen = match last(view, deposit) {
                Some(leg) => self.seen(view, &id, leg).await,
                None => Ok(None),
            };
            let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
            match seen {
                Ok(Some(stake)) => breaker.see(id, stake, view.now / 1_000),
                Ok(None) => breaker.ended(&id),
                // What is known of it stays.
                Err(_) => {}
            }
        }
    }

    async fn seen(&self, view: &View, id: &Id, leg: &Leg) -> Result<Option<Stake>, SolverError> {
        let Some((spent, failed)) = at_stake(view, leg) else {
            return Ok(None);
        };
        let known = {
            let breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
            breaker.known(id).cloned()
        };
        if spent.is_none() && known.is_some() {
            return Ok(known);
        }
        let lane = self.lane_of(leg)?;
        let pot = match &known {
            Some(known) => Some(known.pot.clone()),
            None => self.pot_of(view, lane, leg).await,
        };
        let Some(pot) = pot else {
            return Ok(None);
        };
        let spent = match spent {
            Some(spent) => spent,
            None => self.most(lane, leg).await?,
        };
        let spent = spent.saturating_add(spent_before(view, leg));
        let cost = self.milli(lane, spent, view.now).await;
        Ok(Some(Stake {
            network: leg.network.clone(),
            pot,
            // Without a price it is what it was.
            cost: cost.or_else(|error| known.map(|known| known.cost).ok_or(error))?,
            failed,
        }))
    }

    /// What a payment on its way may cost at most, in wei.
    async fn most(&self, lane: &SolverAccount, leg: &Leg) -> Result<Amount, SolverError> {
        let found = lane.attempt(&leg.attempt).await?;
        let attempt = found.ok_or(SolverError::Fenced)?;
        let Some(newest) = attempt.signed.len().checked_sub(1) else {
            return Ok(Amount::ZERO);
        };
        lane.at_most((&leg.attempt, &attempt), newest).await
    }

    async fn pot_of(&self, view: &View, lane: &SolverAccount, leg: &Leg) -> Option<Pot> {
        if leg.purpose == Purpose::Fill {
            return self.pot(&view.request).await;
        }
        let deposit = view.deposit(&leg.deposit)?;
        let (to, currency) = super::refund::parties(&view.request, deposit, lane).ok()?;
        pot_back(lane, view.request.api_key.as_deref(), (&to, &currency)).await
    }

    /// Where the order's fill counts; `None`: nobody can let it fail for its own sake.
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

    /// Whether the order's fill hands over to somebody's account, whether it has code now or not. What an
    /// exchange ends in may be native.
    pub(super) fn hands_over(&self, request: &Request) -> bool {
        let output = &request.order.output;
        let lane = self.lanes.get(&output.chain_id);
        let native = lane.map_or("", |lane| lane.site.native.text());
        let mut paid = output.payments.iter();
        !request.calls.is_empty()
            || !request.authorizations.is_empty()
            || !output.calls.is_empty()
            || paid.any(|one| spelled_alike(&one.currency, native))
    }

    /// Notes what a fill may cost for nothing, before it is sent; `false`: not now.
    pub(super) async fn stake(
        &self,
        view: &View,
        lane: &SolverAccount,
        plan: &Plan,
    ) -> Result<bool, SolverError> {
        let Some(pot) = self.pot(&view.request).await else {
            return Ok(true);
        };
        let most = lane.cost(&plan.intent.call, plan.intent.limit).await?;
        let cost = self.milli(lane, most, view.now).await?;
        let begun = self.begin_stake(view, (lane, None), (pot, cost));
        if !begun {
            let (order, network) = (view.request.order_id, lane.site.name.as_str());
            tracing::warn!(network, %order, cost, "enough is at stake: the order waits");
        }
        Ok(begun)
    }

    /// The same of what gives a deposit back. None waits for a price.
    pub(super) async fn stake_back(
        &self,
        view: &View,
        (lane, deposit): (&SolverAccount, B256),
        (plan, to, currency): (&Plan, &Address, &Address),
    ) -> Result<bool, SolverError> {
        let key = view.request.api_key.as_deref();
        let Some(pot) = pot_back(lane, key, (to, currency)).await else {
            return Ok(true);
        };
        let most = lane.cost(&plan.intent.call, plan.intent.limit).await?;
        let most = most.saturating_add(failed_back(view, &deposit));
        let cost = self.milli(lane, most, view.now).await.unwrap_or_default();
        Ok(self.begin_stake(view, (lane, Some(deposit)), (pot, cost)))
    }

    fn begin_stake(
        &self,
        view: &View,
        (lane, deposit): (&SolverAccount, Option<B256>),
        (pot, cost): (Pot, u64),
    ) -> bool {
        let stake = Stake {
            network: lane.site.name.clone(),
            pot,
            cost,
            failed: None,
        };
        let id = (view.request.id, deposit);
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.begin(id, stake, view.now / 1_000)
    }

    /// Thousandths of a dollar; what is worth less counts as one.
    async fn milli(&self, lane: &SolverAccount, wei: Amount, now: u64) -> Result<u64, SolverError> {
        let (network, native) = (lane.site.name.as_str(), lane.site.native.text());
        let value = self.value((network, native), wei, now).await;
        let least = u64::from(!wei.is_zero());
        value.map(|value| value.max(least)).ok_or_else(|| {
            SolverError::Price(PriceError::Unavailable {
                currency: native.to_owned(),
                why: format!("what is at stake on {network} has no price"),
            })
        })
    }

    /// Whether a fill that hands over to somebody, with code or without, and may cost `most` wei for nothing, would
    /// have to wait now. `now` in unix seconds.
    pub async fn restrains(
        &self,
        network: &str,
        (key, most, code): (Option<&str>, Amount, bool),
        now: u64,
    ) -> Result<bool, SolverError> {
        let lane = self.lane(network)?;
        let pot = match (key, code) {
            (Some(key), _) => Pot::Key(key.to_owned()),
            (None, true) => Pot::Code,
            (None, false) => Pot::Account,
        };
        let millis = now.saturating_mul(1_000);
        let stake = Stake {
            network: network.to_owned(),
            pot,
            cost: self.milli(lane, most, millis).await?,
            failed: None,
        };
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(!breaker.has_room(&stake, now) || code && breaker.holds((network, key), now))
    }

    /// Whether what runs somebody's code has cost too much on the order's chain, and it is that.
    pub(super) async fn is_held(&self, view: &View) -> bool {
        let (request, now) = (&view.request, view.now / 1_000);
        let held = {
            let breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
            let key = request.api_key.as_deref();
            breaker.holds((&request.destination.network, key), now)
        };
        held && self.runs_code(request).await
    }

    /// Whether anybody's code but a listed token's or a pool's runs in the order's fill; also where nobody can
    /// say. What an exchange ends in may be native, whatever it is paid with.
    pub(super) async fn runs_code(&self, request: &Request) -> bool {
        if !request.calls.is_empty() || !request.authorizations.is_empty() {
            return true;
        }
        let Ok(lane) = self.lane(&request.order.output.chain_id) else {
            return true;
        };
        let output = &request.order.output;
        let exchanges = !output.calls.is_empty();
        let native = lane.site.native.text();
        let paid = output.payments.iter();
        let paid = paid.filter(|one| !exchanges && spelled_alike(&one.currency, native));
        let given = exchanges.then_some(request.recipient.as_str());
        for to in paid.map(|one| one.recipient.as_str()).chain(given) {
            let Ok(to) = lane.site.family().address(to) else {
                return true;
            };
            if has_code(lane, &to).await {
                return true;
            }
        }
        false
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

/// What a payment has at stake, in wei, and the time of the block in which it failed for good, in unix seconds. On
/// its way: what it may cost (`None`), or did cost as soon as it has failed in a block. A fill that has failed: what
/// it cost, until a block gives its deposit back, which pays for it; then nothing, unless that block goes. What failed
/// in giving back is paid by nobody. `None`: nothing is at stake, or that is paid.
fn at_stake(view: &View, leg: &Leg) -> Option<(Option<Amount>, Option<u64>)> {
    match leg.stage {
        Stage::Open if leg.wasted.is_zero() => Some((None, None)),
        Stage::Open => Some((Some(leg.wasted), None)),
        Stage::Failed if leg.purpose == Purpose::Fill => match given_back(view, leg) {
            Some(Stage::Final) => None,
            Some(Stage::Confirmed) => {
                reverted_at(view, leg).map(|at| (Some(Amount::ZERO), Some(at)))
            }
            _ => reverted_at(view, leg).map(|at| (Some(leg.wasted), Some(at))),
        },
        Stage::Failed => reverted_at(view, leg).map(|at| (Some(leg.wasted), Some(at))),
        Stage::Confirmed | Stage::Final => None,
    }
}

/// What giving the same deposit back has cost before.
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

/// How far the refund is that pays for a fill.
fn given_back(view: &View, fill: &Leg) -> Option<Stage> {
    let mut legs = view.claim.legs.iter();
    let refund = legs.find(|leg| {
        leg.purpose == Purpose::Refund && leg.deposit == fill.deposit && leg.stage != Stage::Failed
    });
    refund.map(|leg| leg.stage)
}

/// Where giving back counts; `None`: of a token, whose recipient cannot refuse it.
async fn pot_back(
    lane: &SolverAccount,
    key: Option<&str>,
    (to, currency): (&Address, &Address),
) -> Option<Pot> {
    if *currency != lane.site.native {
        return None;
    }
    if let Some(key) = key {
        return Some(Pot::BackOfKey(key.to_owned()));
    }
    Some(match has_code(lane, to).await {
        true => Pot::BackToCode,
        false => Pot::BackToAccount,
    })
}

/// Whether an account has code, or nobody can say.
async fn has_code(lane: &SolverAccount, account: &Address) -> bool {
    lane.site.providers.is_contract(account).await != Ok(false)
}
