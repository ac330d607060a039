//! The built-in solver: fills orders whose deposits are final, gives back what it cannot fill, and
//! has its work settled at the hub.
//!
//! [`Solver::advance`] looks at one request and does the next thing; [`judge`] decides, everything
//! else carries out. It may be called by anybody, as often as they like, and die at any point: what
//! was begun stands in the claim's row and in its attempt's, and is found there.

pub mod account;
pub mod admin;
mod allowance;
pub mod books;
pub mod breaker;
pub mod chain;
pub mod claim;
pub mod claimable;
mod dear;
pub mod exposure;
mod fill;
pub mod inventory;
pub mod judge;
pub mod keys;
pub mod late;
mod offer;
mod park;
mod refund;
pub mod settle;
mod stake;
mod stakes;
mod survey;
#[cfg(test)]
mod tests;
mod track;
mod view;
mod waste;
pub mod worker;
mod worth;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use alloy::primitives::B256;
use tokio::sync::watch;
use vm::{
    Amount, CodecError, ReadError,
    trade::{Jump, Unsigned},
};

use self::{
    account::SolverAccount,
    books::Books,
    breaker::Breaker,
    claim::ClaimError,
    exposure::Exposure,
    judge::{Next, Patience, Step},
    keys::Keys,
    late::Repricing,
    view::View,
};
use crate::{
    price::{PriceError, PriceSource, SettlementPrice},
    request::{
        fact::{Attempt, Facts, Purpose, State},
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch, Expect, StoreError,
        requests::{Requests, RequestsError},
        rows::{
            self, RowError, attempt,
            claim::{Claim, Leg},
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
    Unsigned(#[from] Unsigned),
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
    /// The chain counts more of the account's transactions than anybody here has made.
    #[error("{network}: {jump}: intentd lane heal {network}")]
    Jumped { network: String, jump: Jump },
    /// The market file is not what the chain says, or nobody knows yet.
    #[error("{network}: nothing is traded: {why}")]
    Unsound { network: String, why: String },
    #[error("{0}: no block for {1} seconds; nothing is quoted there until the next one")]
    Stalled(String, u64),
    #[error("{0}: gas costs more than the operator's limit")]
    Dear(String),
    #[error("{0}: enough is being given back to who may refuse it: this waits for its turn")]
    Crowded(String),
    #[error("the solver does not work on {0}")]
    Elsewhere(String),
}

/// The solver: its accounts, its keys, and what limits it.
pub struct Solver {
    pub requests: Requests,
    /// By the network's name; one per chain number.
    pub lanes: HashMap<String, Arc<SolverAccount>>,
    /// Of accounts that the solver had before, where they did anything: nothing new is paid from them.
    pub former: Vec<Arc<SolverAccount>>,
    pub keys: Keys,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
    pub repricing: Arc<dyn Repricing>,
    pub exposure: Arc<Exposure>,
    pub patience: Patience,
    /// Dollars that may be paid and not be owed before fills are paused.
    pub gap_limit: u64,
    pub breaker: Mutex<Breaker>,
    /// The newest reconciliation.
    pub books: watch::Sender<Option<Books>>,
}

/// What became of an attempt to pay.
enum Paid {
    Sent,
    /// Something has to happen on the chain first.
    Later,
    /// The solver has too little.
    Short,
    /// Its chain asks more for it than was charged.
    Dear,
    /// Its exchange would fail at this moment.
    Reverts,
    /// Too much is at stake on its chain.
    Held,
    /// Networks, or the market, do not answer.
    Away,
    /// As its offer says.
    Waits,
    /// It would fail: the order fails.
    Fails(FailReason),
    /// Nothing would come of it now; why nothing would at all, if it stays so.
    NotYet(RefundFailReason),
    /// As providers agree: it is told, and tried again all the same.
    Refused(RefundFailReason),
}

impl Solver {
    /// Does for a request what can be done at `now` (unix milliseconds); returns what it waits for then.
    pub async fn advance(&self, id: &B256, now: u64) -> Result<Next, SolverError> {
        for _ in 0..MOST_STEPS {
            let Some(view) = self.view(id, now).await? else {
                return Ok(Next::Done);
            };
            self.see(&view).await;
            match self.step(&view).await {
                Ok(Some(next)) => return Ok(next),
                // Somebody else's commit came first: what it says is read anew.
                Ok(None) | Err(SolverError::Requests(RequestsError::Refused)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Wait)
    }

    /// Waits until it is known whether a network may be traded on, a few seconds after a start at most.
    pub async fn known(&self, network: &str) {
        if let Ok(lane) = self.lane(network) {
            lane.site.known().await;
        }
    }

    /// Whether a network may be traded on: the solver works there, and its market file is what its
    /// providers say.
    pub fn sound(&self, network: &str) -> Result<(), SolverError> {
        self.lane(network)?.site.sound()
    }

    /// What the solver can spend of a currency: balances minus what is on its way.
    pub async fn available(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let lane = self.lane(network)?;
        lane.site.sound()?;
        lane.available(&lane.site.family().address(currency)?).await
    }

    fn lane(&self, network: &str) -> Result<&Arc<SolverAccount>, SolverError> {
        let found = self.lanes.get(network);
        found.ok_or_else(|| SolverError::Elsewhere(network.to_owned()))
    }

    /// Tracks what is on its way, then does the first thing that can be done; what is waited for if
    /// there is none. What fails holds up nothing else of the request.
    async fn step(&self, view: &View) -> Result<Option<Next>, SolverError> {
        let mut failure = match self.track(view).await {
            Ok(true) => return Ok(None),
            Ok(false) => None,
            Err(error) => Some(error),
        };
        let families = |network: &str| Some(self.lanes.get(network)?.site.family());
        let case = view.case(self.patience, &families);
        let plan = judge::plan(&case);
        let decides = |step: &Step| matches!(step, Step::Fund { .. } | Step::Fail { .. });
        let busy = judge::unsettled(&case) || plan.steps.iter().any(decides);
        for step in plan.steps {
            let own = decides(&step);
            match self.act(view, step).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error @ SolverError::Requests(RequestsError::Refused)) => return Err(error),
                // Who waits after errors does not wait for what others deposited.
                Err(error) if busy && !own => {
                    let order = view.request.order_id;
                    tracing::warn!(%order, %error, "given back later");
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if plan.next == Next::Done {
            self.close(view).await?;
        }
        Ok(Some(plan.next))
    }

    /// Carries a decision out; whether anything changed.
    async fn act(&self, view: &View, step: Step) -> Result<bool, SolverError> {
        let (deposit, paid) = match step {
            Step::Fund { deposit } => return self.fund(view, deposit).await,
            Step::Fail { deposit, reason } => return self.decline(view, deposit, reason).await,
            Step::Park(parked) => return self.park(view, parked).await,
            Step::Refund {
                deposit,
                reason,
                minimum,
            } => (deposit, self.refund(view, deposit, (reason, minimum)).await),
            Step::Excess { deposit, amount } => {
                (deposit, self.give_excess(view, deposit, amount).await)
            }
        };
        match paid? {
            Paid::Sent => Ok(true),
            Paid::NotYet(why) => self.pause(view, deposit, (why, false)).await,
            Paid::Refused(why) => self.pause(view, deposit, (why, true)).await,
            Paid::Later
            | Paid::Short
            | Paid::Dear
            | Paid::Reverts
            | Paid::Held
            | Paid::Away
            | Paid::Waits
            | Paid::Fails(_) => Ok(false),
        }
    }

    /// Stores that the order is not filled for `deposit`.
    async fn decline(
        &self,
        view: &View,
        deposit: B256,
        reason: FailReason,
    ) -> Result<bool, SolverError> {
        let next = view.declined(&view.claim, deposit, reason);
        self.decide(view, Batch::new(), &next, |facts| {
            facts.failure = next.failure;
        })
        .await?;
        self.give_up(&view.request.id);
        Ok(true)
    }

    /// Stores that something cannot be given back now; in the request's record too, if it is `told`.
    async fn pause(
        &self,
        view: &View,
        deposit: B256,
        (why, told): (RefundFailReason, bool),
    ) -> Result<bool, SolverError> {
        let next = claim::pause(&view.claim, deposit, why, view.now / 1_000);
        let order = view.request.order_id;
        tracing::warn!(%order, %deposit, ?why, "given back later");
        metrics::counter!("intentd_solver_refund_retries_total").increment(1);
        self.decide(view, Batch::new(), &next, |facts| {
            if told {
                view.refuse(facts, &deposit, why);
            }
        })
        .await?;
        Ok(true)
    }

    /// Nothing is left to do: until new facts come the request is not looked at.
    async fn close(&self, view: &View) -> Result<(), SolverError> {
        let key = rows::open::key(&view.request.id);
        let batch = Batch::new().delete(key);
        let seen = (&view.request.id, &view.facts);
        self.requests.decide(seen, view.now, batch, |_| ()).await?;
        Ok(())
    }

    /// Stores a payment with its attempt and what that holds, then sends it.
    async fn begin(
        &self,
        view: &View,
        lane: &SolverAccount,
        mut taken: account::Taken<'_>,
        next: Claim,
    ) -> Result<Paid, SolverError> {
        let mut batch = std::mem::take(&mut taken.batch);
        let (id, kept) = (taken.id.clone(), taken.attempt.clone());
        // Who pauses the solver while this was judged is heard.
        if next
            .legs
            .last()
            .is_some_and(|leg| leg.purpose == Purpose::Fill)
        {
            batch = batch.expect(rows::pause::key(), Expect::Absent);
        }
        self.decide(view, batch, &next, |facts| {
            let Some(leg) = next.legs.last() else { return };
            facts.attempts.extend(attempts(leg, &kept));
            if leg.purpose == Purpose::Refund {
                view.give_back(facts, leg);
            }
        })
        .await?;
        drop(taken);
        // Stored is sent: whoever looks next sends it again if this fails.
        lane.send(&id, &kept).await?;
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
}

/// The attempts that a payment's transactions are.
fn attempts<'a>(leg: &'a Leg, kept: &'a attempt::Attempt) -> impl Iterator<Item = Attempt> + 'a {
    let paying = kept.signed.iter().filter(|signed| !signed.cancels);
    paying.map(|signed| Attempt {
        purpose: leg.purpose,
        network: leg.network.clone(),
        transaction: signed.id.clone(),
        currency: leg.currency.clone(),
        amount: leg.amount,
        state: State::Broadcast,
    })
}
