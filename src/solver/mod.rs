//! The built-in solver: fills orders whose deposits are final, gives back what it cannot fill, and
//! has its work settled at the hub.
//!
//! [`Solver::advance`] looks at one request and does the next thing; [`judge`] decides, everything
//! else carries out. It may be called by anybody, as often as they like, and die at any point: what
//! was begun stands in the claim's row and in the lane's, and is found there.

mod allowance;
pub mod claim;
mod fill;
pub mod inventory;
pub mod judge;
pub mod lane;
mod refund;
pub mod settle;
pub mod site;
#[cfg(test)]
mod tests;
mod track;
pub mod worker;

use std::{collections::HashMap, sync::Arc};

use alloy::primitives::B256;
use vm::{Address, Amount, CodecError, ReadError};

use self::{
    claim::ClaimError,
    judge::{Case, Funds, Next, Patience},
    lane::Lane,
};
use crate::{
    price::{PriceError, PriceSource},
    request::{
        Request,
        fact::{Attempt, Facts, State},
        reason::{FailReason, RefundFailReason},
    },
    sign::SignError,
    store::{
        Batch, Expect, StoreError,
        requests::{Requests, RequestsError},
        rows::{
            self, RowError,
            claim::{Claim, Leg, Stage},
            lane::Slot,
            settlement::{Part, Settlement},
        },
    },
};

/// More steps than any request takes at one look.
const MOST_STEPS: usize = 16;

/// Why nothing could be done now. None of it is final: it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolverError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Price(#[from] PriceError),
    /// Another holder has the lane, or another commit came first.
    #[error("the lane has another holder, or changed meanwhile")]
    Fenced,
    #[error("{network}: {available} of {currency} are available, {needed} are needed")]
    Short {
        network: String,
        currency: String,
        available: Amount,
        needed: Amount,
    },
    #[error("{0}: gas costs more than the operator's limit")]
    Dear(String),
    #[error("the solver does not work on {0}")]
    Elsewhere(String),
}

/// See the module.
pub struct Solver {
    pub requests: Requests,
    /// By the network's name; one per chain number.
    pub lanes: HashMap<String, Arc<Lane>>,
    pub prices: Arc<dyn PriceSource>,
    pub patience: Patience,
}

/// A request as it was read: what every commit about it demands to be unchanged.
struct View {
    request: Request,
    facts: Facts,
    claim: Claim,
    row: Option<Vec<u8>>,
    /// Unix milliseconds.
    now: u64,
}

/// What became of an attempt to pay.
enum Paid {
    Sent,
    /// Something has to happen on the chain first.
    Later,
    /// The solver has too little.
    Short,
    /// It would fail: the order fails.
    Fails(FailReason),
    /// It would fail: no refund.
    GiveUp(RefundFailReason),
}

impl Solver {
    /// Does for a request what can be done at `now` (unix milliseconds); what it waits for then.
    pub async fn advance(&self, id: &B256, now: u64) -> Result<Next, SolverError> {
        for _ in 0..MOST_STEPS {
            let Some(view) = self.view(id, now).await? else {
                return Ok(Next::Done);
            };
            match self.step(&view).await {
                Ok(Some(next)) => return Ok(next),
                // Somebody else's commit came first: what it says is read anew.
                Ok(None) | Err(SolverError::Requests(RequestsError::Refused)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Wait)
    }

    /// What the solver can spend of a currency: balances minus what is on its way.
    pub async fn available(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let lane = self.lane(network)?;
        lane.available(&lane.site.family().address(currency)?).await
    }

    fn lane(&self, network: &str) -> Result<&Arc<Lane>, SolverError> {
        let found = self.lanes.get(network);
        found.ok_or_else(|| SolverError::Elsewhere(network.to_owned()))
    }

    async fn view(&self, id: &B256, now: u64) -> Result<Option<View>, SolverError> {
        let Some(request) = self.requests.by_id(id).await? else {
            return Ok(None);
        };
        // The claim first: facts that are newer than it make its commits fail, not the other way.
        let row = self.requests.store().read(&rows::claim::key(id)).await?;
        let claim = row.as_deref().map(Claim::decode).transpose()?;
        Ok(Some(View {
            request,
            claim: claim.unwrap_or_default(),
            row,
            facts: self.requests.facts(id).await?,
            now,
        }))
    }

    fn case<'a>(&self, view: &'a View) -> Case<'a> {
        Case {
            request: &view.request,
            facts: &view.facts,
            claim: &view.claim,
            now: view.now / 1_000,
            patience: self.patience,
        }
    }

    /// Tracks what is on its way, then does one thing; what is waited for if there is none.
    async fn step(&self, view: &View) -> Result<Option<Next>, SolverError> {
        if self.track(view).await? {
            return Ok(None);
        }
        let next = judge::next(&self.case(view), Funds::Enough);
        Ok(self.act(view, next).await?.then_some(next))
    }

    /// Carries a decision out; whether nothing more is to be done at this look.
    async fn act(&self, view: &View, next: Next) -> Result<bool, SolverError> {
        match next {
            Next::Wait => Ok(true),
            Next::Done => self.close(view).await.map(|()| true),
            Next::Settle => self.hand_over(view).await.map(|()| false),
            Next::FailWithoutRefund {
                deposit,
                reason,
                why,
            } => self.give_up(view, deposit, reason, why).await,
            Next::Refund { deposit, reason } => match self.refund(view, deposit, reason).await? {
                Paid::GiveUp(why) => self.give_up(view, deposit, reason, why).await,
                Paid::Sent => Ok(false),
                Paid::Later | Paid::Short | Paid::Fails(_) => Ok(true),
            },
            Next::Fill { deposit } => match self.fill(view, deposit).await? {
                Paid::Sent => Ok(false),
                Paid::Later | Paid::GiveUp(_) => Ok(true),
                Paid::Fails(reason) => self.fail(view, reason).await.map(|()| false),
                Paid::Short => match judge::next(&self.case(view), Funds::Short) {
                    Next::Refund { reason, .. } | Next::FailWithoutRefund { reason, .. } => {
                        self.fail(view, reason).await.map(|()| false)
                    }
                    _ => Ok(true),
                },
            },
        }
    }

    /// Stores that the order will not be filled.
    async fn fail(&self, view: &View, reason: FailReason) -> Result<(), SolverError> {
        let next = claim::failed(&view.claim, reason);
        self.decide(view, Batch::new(), &next, |facts| {
            facts.failure = next.failure;
        })
        .await
    }

    async fn give_up(
        &self,
        view: &View,
        deposit: B256,
        reason: FailReason,
        why: RefundFailReason,
    ) -> Result<bool, SolverError> {
        let next = claim::give_up(&view.claim, deposit, reason)?;
        let (request, order) = (view.request.id, view.request.order_id);
        tracing::error!(%request, %order, %deposit, ?reason, ?why, "deposit is not given back");
        metrics::counter!("intentd_solver_refunds_given_up_total").increment(1);
        self.decide(view, Batch::new(), &next, |facts| {
            facts.failure = facts.failure.or(next.failure);
            facts.refund_failure = Some(why);
        })
        .await?;
        Ok(false)
    }

    /// Nothing is left to do: until new facts come the request is not looked at.
    async fn close(&self, view: &View) -> Result<(), SolverError> {
        let key = rows::open::key(&view.request.id);
        let batch = Batch::new().delete(key);
        let seen = (&view.request.id, &view.facts);
        self.requests.decide(seen, view.now, batch, |_| ()).await?;
        Ok(())
    }

    async fn hand_over(&self, view: &View) -> Result<(), SolverError> {
        let mut next = view.claim.clone();
        next.settling = true;
        let mut batch = Batch::new();
        // Also while no oracle is asked: it waits for the day when one is.
        if let Some(settlement) = settlement(view) {
            let key = rows::settlement::key(&view.request.id);
            batch = batch
                .expect(key.clone(), Expect::Absent)
                .put(key, settlement.encode()?);
        }
        self.decide(view, batch, &next, |_| ()).await
    }

    /// Stores a payment with the transaction and the nonce that it has, then sends it.
    async fn begin(
        &self,
        view: &View,
        lane: &Lane,
        mut taken: lane::Taken<'_>,
        next: Claim,
    ) -> Result<Paid, SolverError> {
        let batch = std::mem::take(&mut taken.batch);
        let slot = taken.slot.clone();
        self.decide(view, batch, &next, |facts| {
            facts.failure = facts.failure.or(next.failure);
            if let Some(leg) = next.legs.last() {
                for attempt in attempts(leg, &slot) {
                    facts.attempts.push(attempt);
                }
            }
        })
        .await?;
        drop(taken);
        // Stored is sent: whoever looks next sends it again if this fails.
        lane.send(&slot).await?;
        Ok(Paid::Sent)
    }

    /// Commits a new claim, demanding that claim and facts are what `view` saw.
    async fn decide(
        &self,
        view: &View,
        batch: Batch,
        next: &Claim,
        change: impl FnOnce(&mut Facts) + Send,
    ) -> Result<(), SolverError> {
        let key = rows::claim::key(&view.request.id);
        let expect = view.row.clone().map_or(Expect::Absent, Expect::Equals);
        let batch = batch.expect(key.clone(), expect).put(key, next.encode()?);
        let seen = (&view.request.id, &view.facts);
        self.requests.decide(seen, view.now, batch, change).await?;
        Ok(())
    }

    fn solver_of(&self, request: &Request) -> Option<Address> {
        let lane = self.lanes.values().next()?;
        let named = lane.site.family().address(&request.order.solver).ok()?;
        (named == lane.owner).then_some(named)
    }
}

/// The attempts that a payment's transactions are.
fn attempts<'a>(leg: &'a Leg, slot: &'a Slot) -> impl Iterator<Item = Attempt> + 'a {
    let paying = slot.versions.iter().filter(|version| !version.cancels);
    paying.map(|version| Attempt {
        purpose: leg.purpose,
        network: leg.network.clone(),
        transaction: version.hash.to_string(),
        currency: leg.currency.clone(),
        amount: leg.amount,
        state: State::Broadcast,
    })
}

/// What the settlement worker needs to know of an order that ended.
fn settlement(view: &View) -> Option<Settlement> {
    let leg = judge::outcome(&view.claim).filter(|leg| leg.stage == Stage::Final)?;
    let deposit = view
        .facts
        .deposits
        .iter()
        .find(|deposit| deposit.onchain_id == leg.deposit)?;
    let option = judge::option(&view.request, deposit).map_or(0, |(index, _)| index);
    Some(Settlement {
        purpose: leg.purpose,
        deposit: leg.deposit,
        transaction: leg.transaction.clone()?,
        option,
        deposited: Part::Pending,
        outcome: Part::Pending,
        tries: 0,
        not_before: 0,
    })
}
