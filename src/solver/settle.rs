//! Settlement, by which the hub pays the solver: the oracles attest deposit and outcome, and the settlement contract
//! executes both. It works on rows of its own and on a chain of its own, so that it delays no fill. A row stays until
//! the contract has executed both, or the operator writes it off.

pub mod execution;
pub mod oracle;
pub mod outcome_claim;
mod rounds;
mod task;
mod turns;

use std::sync::Arc;

use alloy::primitives::{B256, Bytes};
use serde_json::Value;
use tokio::sync::Semaphore;
use vm::{
    Address, Amount,
    trade::{Call, Draft, Intent, Revert},
};

use self::{
    oracle::{OracleClient, Refused},
    task::{Attested, Side, Task, record},
};
use super::{
    SolverError,
    account::{AttemptStatus, Depth, Plan, Push, SolverAccount},
    exposure::Exposure,
    keys::Keys,
};
use crate::{
    request::fact::{Applied, Deposit, Facts, Purpose},
    store::{
        Batch, Expect, Key,
        requests::Requests,
        rows::{
            attempt::Owner,
            outlay,
            settlement::{self as row, Part, Settlement},
        },
    },
};

/// The pause after an oracle refused for good, in seconds: its operator may mend that.
const REFUSED_PAUSE: u64 = 21_600;

/// How many executions may wait for the account at a time: a fill behind them waits for a second.
pub const SENDING: usize = 4;

/// Settles payments through an oracle and the settlement contract.
pub struct Settler {
    pub requests: Requests,
    /// The solver's account on the settlement chain.
    pub account: Arc<SolverAccount>,
    pub oracle: OracleClient,
    pub keys: Keys,
    /// The oracle contract there.
    pub contract: Address,
    /// A fill that is settled leaves the limits of the hour.
    pub exposure: Arc<Exposure>,
    /// Executions that are prepared and signed at a time, [`SENDING`]: fills may pay from the same account.
    pub sending: Semaphore,
}

impl Settler {
    /// Does for the payment under `key` what can be done at `now` (unix milliseconds).
    async fn advance(&self, key: &Key, now: u64) -> Result<(), SolverError> {
        let (id, _) = &row::ids(key)?;
        // The operator may have written it off.
        let Some(value) = self.requests.store().read(key).await? else {
            return Ok(());
        };
        let settlement = Settlement::decode(&value)?;
        if now < settlement.not_before {
            return Ok(());
        }
        let Some(request) = self.requests.by_id(id).await? else {
            return Ok(());
        };
        let task = Task {
            key: key.clone(),
            facts: self.requests.facts(id).await?,
            request,
            row: value,
            settlement,
            now,
        };
        let acted = match open(&task.settlement) {
            None => return self.finish(&task).await,
            Some((side, sent @ Part::Sent { .. })) => self.follow(&task, side, sent).await,
            Some((side, _)) => self.attest(&task, side).await,
        };
        if let Err(error) = &acted
            && !matches!(error, SolverError::Requests(_))
        {
            let next = task.later(&error.to_string());
            self.keep(&task, &next, self.account.batch(), |_| ())
                .await?;
        }
        acted
    }

    /// Asks the oracles, and sends to the contract what they signed.
    async fn attest(&self, task: &Task, side: Side) -> Result<(), SolverError> {
        let deposits = &mut task.facts.deposits.iter();
        let Some(deposit) = deposits.find(|d| d.onchain_id == task.settlement.deposit) else {
            return self.refuse(task, "the deposit is unknown").await;
        };
        let answer = match side {
            Side::Deposit => self.oracle.deposit(deposit).await,
            Side::Outcome => self.outcome(task, deposit).await,
        };
        let execution = match answer {
            Ok(execution) => execution,
            Err(Refused::Final(why)) => return self.refuse(task, &why).await,
            Err(Refused::Now(why)) => return self.wait(task, &why).await,
        };
        let key = match side {
            Side::Deposit => execution::deposit_key(deposit),
            Side::Outcome => execution::outcome_key(task.request.order_id, deposit),
        };
        let data = match execution::encode(&execution, key) {
            Ok(data) => data,
            Err(why) => return self.wait(task, &why.to_string()).await,
        };
        let attested = Attested {
            side,
            key,
            execution,
        };
        self.apply(task, attested, data).await
    }

    /// Sends an execution to the contract as `data`, unless the contract would refuse it.
    async fn apply(&self, task: &Task, attested: Attested, data: Bytes) -> Result<(), SolverError> {
        let (side, key) = (attested.side, attested.key);
        let draft = Draft::call(Call {
            from: self.account.owner.clone(),
            to: self.contract.clone(),
            data,
            value: Amount::ZERO,
        });
        match self.account.simulate(&draft).await? {
            Ok(work) => {
                let intent = Intent {
                    draft,
                    work,
                    besides: None,
                    spends: Vec::new(),
                };
                self.submit(task, attested, intent).await
            }
            // Somebody else submitted it: the record does not get the transaction of another.
            Err(revert) if execution::is_executed(&revert.data) && self.executed(key).await? => {
                let next = task.with(side, Part::Applied);
                self.keep(task, &next, self.account.batch(), |_| ()).await
            }
            Err(Revert { reason, .. }) => {
                self.wait(task, &format!("the contract refuses: {reason}"))
                    .await
            }
        }
    }

    /// Whether the contract has acted on `key`, as a quorum has it at a final block. The head of a single provider is
    /// no proof.
    async fn executed(&self, key: B256) -> Result<bool, SolverError> {
        let chain = &self.account.chain.loaded;
        let Some(state) = &chain.state else {
            return Ok(false);
        };
        let head = chain.reader.fresh_head().await?;
        let Some(block) = state.settled(&head).await? else {
            return Ok(false);
        };
        let question = execution::question(key);
        let answer = state.view(&self.contract, &question, &block).await?;
        Ok(execution::is_yes(&answer))
    }

    async fn wait(&self, task: &Task, why: &str) -> Result<(), SolverError> {
        tracing::warn!(order = %task.request.order_id, why, "settlement is tried again");
        metrics::counter!("intentd_solver_settlement_retries_total").increment(1);
        let next = task.later(why);
        self.keep(task, &next, self.account.batch(), |_| ()).await
    }

    async fn outcome(&self, task: &Task, deposit: &Deposit) -> Result<Value, Refused> {
        let settlement = &task.settlement;
        let paid = (settlement.purpose, settlement.deposit);
        let vouched = self.keys.vouched(&task.request, paid).await;
        let vouched = vouched.map_err(|error| Refused::Now(error.to_string()))?;
        self.oracle
            .outcome(&task.request, deposit, (settlement, vouched.as_deref()))
            .await
    }

    async fn submit(
        &self,
        task: &Task,
        attested: Attested,
        intent: Intent,
    ) -> Result<(), SolverError> {
        let plan = Plan {
            owner: Owner::Settlement(task.request.id),
            intent,
            keeps: false,
        };
        // Never closed.
        let sending = self.sending.acquire().await;
        let mut taken = self.account.take(&plan, task.now / 1_000).await?;
        let batch = std::mem::take(&mut taken.batch);
        let (id, attempt) = (taken.id.clone(), taken.attempt.clone());
        let sent = Part::Sent {
            lane: self.account.name.clone(),
            attempt: id.clone(),
            execution: attested.execution,
        };
        let mut next = task.with(attested.side, sent);
        (next.why, next.refused) = (None, false);
        self.keep(task, &next, batch, |_| ()).await?;
        drop((taken, sending));
        self.account.send(&id, &attempt).await?;
        Ok(())
    }

    /// What became of an execution that was sent.
    async fn follow(&self, task: &Task, side: Side, sent: &Part) -> Result<(), SolverError> {
        let found = match sent {
            Part::Sent {
                lane,
                attempt: id,
                execution,
            } if *lane == self.account.name => {
                let attempt = self.account.attempt(id).await?;
                attempt.map(|attempt| (attempt, id, execution))
            }
            _ => None,
        };
        let Some((attempt, id, execution)) = found else {
            // A former account sent it. The contract acts once on an execution, whoever sends it.
            let next = task.with(side, Part::Pending);
            return self.keep(task, &next, self.account.batch(), |_| ()).await;
        };
        let tended = self
            .account
            .tend(id, &attempt, task.now / 1_000, Push::Send)
            .await;
        let (attempt, status) = tended?;
        let applied = match &status {
            AttemptStatus::Included {
                signed,
                success,
                depth: Depth::Final,
                ..
            } => (*success && !signed.cancels).then(|| signed.id.clone()),
            AttemptStatus::Lost | AttemptStatus::Expired => None,
            AttemptStatus::Waiting | AttemptStatus::Included { .. } => return Ok(()),
        };
        let batch = self.account.free(self.account.batch(), id, &attempt)?;
        let Some(transaction) = applied else {
            // Perhaps another transaction came first: the simulation of the next try says so.
            let later = task.later("its transaction was not executed");
            let next = later.with(side, Part::Pending);
            return self.keep(task, &next, batch, |_| ()).await;
        };
        let number = self.account.chain.number;
        let applied = Applied::on(number, transaction, execution.clone());
        let next = task.with(side, Part::Applied);
        let recorded = task.settlement.recorded;
        self.keep(task, &next, batch, |facts| {
            if recorded {
                record(facts, side, &applied);
            }
        })
        .await
    }

    /// Stores that the oracle refuses for good. The operator has to look; the next try comes six hours later.
    async fn refuse(&self, task: &Task, why: &str) -> Result<(), SolverError> {
        let (order, deposit) = (task.request.order_id, task.settlement.deposit);
        tracing::error!(%order, %deposit, why, "not settled: the oracle refuses it");
        metrics::counter!("intentd_solver_settlements_refused_total").increment(1);
        let mut next = task.later(why);
        next.refused = true;
        next.not_before = task.now.saturating_add(REFUSED_PAUSE * 1_000);
        self.keep(task, &next, self.account.batch(), |_| ()).await
    }

    async fn finish(&self, task: &Task) -> Result<(), SolverError> {
        let (key, id) = (task.key.clone(), task.request.id);
        let mut batch = Batch::new()
            .expect(key.clone(), Expect::Equals(task.row.clone()))
            .delete(key);
        let filled = task.settlement.purpose == Purpose::Fill;
        if filled {
            batch = batch.delete(outlay::key(&id));
        }
        self.requests.record(&id, task.now, batch, |_| ()).await?;
        if filled {
            self.exposure.leave(&id);
        }
        Ok(())
    }

    async fn keep(
        &self,
        task: &Task,
        next: &Settlement,
        batch: Batch,
        change: impl Fn(&mut Facts) + Send + Sync,
    ) -> Result<(), SolverError> {
        let key = task.key.clone();
        let batch = batch
            .expect(key.clone(), Expect::Equals(task.row.clone()))
            .put(key, next.encode()?);
        self.requests
            .record(&task.request.id, task.now, batch, change)
            .await?;
        Ok(())
    }
}

/// The side that is next, and how far it is; `None` where both are applied.
fn open(settlement: &Settlement) -> Option<(Side, &Part)> {
    let sides = [
        (Side::Deposit, &settlement.deposited),
        (Side::Outcome, &settlement.outcome),
    ];
    let mut sides = sides.into_iter();
    sides.find(|(_, part)| matches!(part, Part::Pending | Part::Sent { .. }))
}

#[cfg(test)]
mod tests;
