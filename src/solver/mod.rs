//! The built-in solver: fills orders whose deposits are final, gives back what it cannot fill, and
//! has its work settled at the hub.
//!
//! [`Solver::advance`] looks at one request and does the next thing; [`judge`] decides, everything else carries out.
//! Calls may repeat, and the process may die at any point: the rows of the claim and of its attempts say what was
//! begun, and the next call goes on from them.

pub mod account;
pub mod admin;
mod approval;
pub mod breaker;
pub mod chain;
pub mod claim;
pub mod claimable;
mod dear;
mod declinable;
mod error;
pub mod exposure;
mod fill;
pub mod inventory;
pub mod judge;
pub mod keys;
mod offer;
mod park;
pub mod reconciliation;
mod refund;
pub mod repricing;
pub mod settle;
pub mod stake;
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
use tokio::{sync::watch, time::Instant};
use vm::{Amount, Family};

pub use self::error::SolverError;
use self::{
    account::SolverAccount,
    breaker::Breaker,
    exposure::Exposure,
    judge::{Next, Patience, Step},
    keys::Keys,
    reconciliation::Reconciliation,
    repricing::Repricing,
    view::View,
};
use crate::{
    price::{PriceSource, SettlementPrice},
    request::{
        fact::{self, Facts, Purpose, State},
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch, Expect,
        requests::{Requests, RequestsError},
        rows::{
            self, attempt,
            claim::{Claim, Leg},
        },
    },
};

/// Steps that one look at a request takes at most.
const MOST_STEPS: usize = 16;
/// Seconds until a request is looked at again whose deposit the account has too little for.
const SHORT_PAUSE: u64 = 60;

/// The solver: its accounts, its keys, and what limits it.
pub struct Solver {
    pub requests: Requests,
    /// The solver's accounts by the network's name; one per chain number.
    pub accounts: HashMap<String, Arc<SolverAccount>>,
    /// Accounts of former keys that did anything. The solver begins no payment from them.
    pub former: Vec<Arc<SolverAccount>>,
    /// The settler's account where the settlement chain is not traded on. No order is paid from it.
    pub settling: Option<Arc<SolverAccount>>,
    /// The families of configured chains, by the chain's name: those that are not opened, too.
    pub families: HashMap<String, &'static Family>,
    pub keys: Keys,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
    pub repricing: Arc<dyn Repricing>,
    pub exposure: Arc<Exposure>,
    pub patience: Patience,
    /// Dollars by which payments may exceed what the hub owes before fills are paused.
    pub gap_limit: u64,
    pub breaker: Mutex<Breaker>,
    /// The newest reconciliation.
    pub reconciliation: watch::Sender<Option<Reconciliation>>,
}

/// What became of an attempt to pay.
enum Paid {
    Sent,
    /// Something has to happen on the chain first.
    Later,
    /// The solver has too little.
    Short,
    /// The chain asks a higher fee than the user was charged.
    Dear,
    /// The exchange would fail now.
    Reverts,
    /// Too much is at stake on the chain.
    Held,
    /// Networks, or the market, do not answer; or an approval that the fill needs is on its way.
    Away,
    /// The offer says that the order waits.
    Waits,
    /// The payment would fail, and with it the order.
    Fails(FailReason),
    /// A refund is not possible now; the reason of the request if that stays so.
    NotYet(RefundFailReason),
    /// As providers agree, a refund fails: the request's record says so, and the worker tries again.
    Refused(RefundFailReason),
}

/// What came of a step.
enum Acted {
    Changed,
    Nothing,
    /// The account has too little to give a deposit back: nobody tops it up within seconds.
    Short,
}

impl From<bool> for Acted {
    /// Whether anything changed.
    fn from(changed: bool) -> Self {
        match changed {
            true => Self::Changed,
            false => Self::Nothing,
        }
    }
}

impl Solver {
    /// Does for a request what can be done at `now` (unix milliseconds); returns what it waits for then.
    pub async fn advance(&self, id: &B256, now: u64) -> Result<Next, SolverError> {
        let began = Instant::now();
        for _ in 0..MOST_STEPS {
            let Some(view) = self.view(id, (now, began)).await? else {
                return Ok(Next::Done);
            };
            self.note_stakes(&view).await;
            match self.step(&view).await {
                Ok(Some(next)) => return Ok(next),
                // Another commit came first: the request is read anew.
                Ok(None) | Err(SolverError::Requests(RequestsError::Refused)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Wait)
    }

    /// Waits until it is known whether a network may be traded on, a few seconds after a start at most.
    pub async fn surveyed(&self, network: &str) {
        if let Ok(account) = self.account(network) {
            account.chain.surveyed().await;
        }
    }

    /// Whether a network may be traded on: the solver works there, and its market file is what its
    /// providers say.
    pub fn sound(&self, network: &str) -> Result<(), SolverError> {
        self.account(network)?.chain.sound()
    }

    /// What the solver can spend of a currency: balances minus what is on its way.
    pub async fn available(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let account = self.account(network)?;
        account.chain.sound()?;
        account
            .available(&account.chain.family().address(currency)?)
            .await
    }

    fn account(&self, network: &str) -> Result<&Arc<SolverAccount>, SolverError> {
        let found = self.accounts.get(network);
        found.ok_or_else(|| SolverError::Elsewhere(network.to_owned()))
    }

    /// The accounts of the present keys: one on each network, and the settler's.
    fn present(&self) -> impl Iterator<Item = &Arc<SolverAccount>> {
        self.accounts.values().chain(&self.settling)
    }

    /// Tracks the request's payments, then takes the first step that is possible; what the request waits for if there
    /// is none. A step that fails holds up no other one of the request.
    async fn step(&self, view: &View) -> Result<Option<Next>, SolverError> {
        let mut failure = match self.track(view).await {
            Ok(true) => return Ok(None),
            Ok(false) => None,
            Err(error) => Some(error),
        };
        let (families, margins) = (self.families(), self.margins());
        let case = view.case(self.patience, &families, &margins);
        let plan = judge::plan(&case);
        let decides = |step: &Step| matches!(step, Step::Fund { .. } | Step::Fail { .. });
        let busy = judge::unsettled(&case) || plan.steps.iter().any(decides);
        let mut short = !busy && !plan.steps.is_empty();
        for step in plan.steps {
            let own = decides(&step);
            match self.act(view, step).await {
                Ok(Acted::Changed) => return Ok(None),
                Ok(Acted::Short) => {}
                Ok(Acted::Nothing) => short = false,
                Err(error @ SolverError::Requests(RequestsError::Refused)) => return Err(error),
                // An error with another's deposit does not delay the user's order.
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
        Ok(Some(match plan.next {
            Next::Done => {
                self.close(view).await?;
                Next::Done
            }
            Next::Wait if short => Next::Until(view.now / 1_000 + SHORT_PAUSE),
            next => next,
        }))
    }

    /// Carries a decision out.
    async fn act(&self, view: &View, step: Step) -> Result<Acted, SolverError> {
        if let Some(network) = self.behind() {
            return Err(SolverError::Behind(network.to_owned()));
        }
        let (deposit, paid) = match step {
            Step::Fund { deposit } => return Ok(self.fund(view, deposit).await?.into()),
            Step::Fail { deposit, reason } => {
                return Ok(self.decline(view, deposit, reason).await?.into());
            }
            Step::Park(parked) => return Ok(self.park(view, parked).await?.into()),
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
            Paid::Sent => Ok(Acted::Changed),
            Paid::NotYet(why) => Ok(self.pause(view, deposit, (why, false)).await?.into()),
            Paid::Refused(why) => Ok(self.pause(view, deposit, (why, true)).await?.into()),
            Paid::Short => Ok(Acted::Short),
            Paid::Later
            | Paid::Dear
            | Paid::Reverts
            | Paid::Held
            | Paid::Away
            | Paid::Waits
            | Paid::Fails(_) => Ok(Acted::Nothing),
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

    /// Stores that `deposit` cannot be given back now, in the request's record too if `recorded`.
    async fn pause(
        &self,
        view: &View,
        deposit: B256,
        (why, recorded): (RefundFailReason, bool),
    ) -> Result<bool, SolverError> {
        let next = claim::pause(&view.claim, deposit, why, view.now / 1_000);
        let order = view.request.order_id;
        tracing::warn!(%order, %deposit, ?why, "given back later");
        metrics::counter!("intentd_solver_refund_retries_total").increment(1);
        self.decide(view, Batch::new(), &next, |facts| {
            if recorded {
                view.record_refund_failure(facts, &deposit, why);
            }
        })
        .await?;
        Ok(true)
    }

    /// Stores that nothing is left to do: the worker does not look at the request until there is new work. Refused
    /// where work has come since `view`: what the operator releases may change no facts.
    async fn close(&self, view: &View) -> Result<(), SolverError> {
        let id = &view.request.id;
        let (claim, open) = (rows::claim::key(id), rows::open::key(id));
        let batch = Batch::new()
            .expect(claim, Expect::unchanged(view.row.clone()))
            .expect(open.clone(), Expect::unchanged(view.open.clone()))
            .delete(open);
        let seen = view.seen();
        self.requests.decide(seen, view.now, batch, |_| ()).await?;
        Ok(())
    }

    /// Stores a payment with its attempt and the resources that it holds, then sends it.
    async fn begin(
        &self,
        view: &View,
        account: &SolverAccount,
        mut taken: account::Taken<'_>,
        next: Claim,
    ) -> Result<Paid, SolverError> {
        // Deadlines were judged before the signature, which takes its time in a key service, as do those of others
        // before it.
        if view.is_stale() {
            return Ok(Paid::Later);
        }
        let mut batch = std::mem::take(&mut taken.batch);
        let (id, kept) = (taken.id.clone(), taken.attempt.clone());
        // The operator may have paused the solver since the decision.
        let newest = next.legs.last();
        if newest.is_some_and(|leg| leg.purpose == Purpose::Fill) {
            batch = batch.expect(rows::pause::key(), Expect::Absent);
        }
        self.decide(view, batch, &next, |facts| {
            let Some(leg) = next.legs.last() else { return };
            facts.attempts.extend(attempts(leg, &kept));
            if leg.purpose == Purpose::Refund {
                view.record_refund(facts, leg);
            }
        })
        .await?;
        drop(taken);
        // The payment is stored: the next look sends it again if this fails.
        account.send(&id, &kept).await?;
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
        let seen = view.seen();
        self.requests.decide(seen, view.now, batch, change).await?;
        Ok(())
    }
}

/// The attempts that a payment's transactions are.
fn attempts<'a>(
    leg: &'a Leg,
    kept: &'a attempt::Attempt,
) -> impl Iterator<Item = fact::Attempt> + 'a {
    let paying = kept.signed.iter().filter(|signed| !signed.cancels);
    paying.map(|signed| fact::Attempt {
        purpose: leg.purpose,
        deposit: Some(leg.deposit),
        network: leg.network.clone(),
        transaction: signed.id.clone(),
        currency: leg.currency.clone(),
        amount: leg.amount,
        state: State::Broadcast,
    })
}
