//! Looking at payments that are not settled, over and over. What hangs delays only what waits for the same.

use std::time::Duration;

use alloy::hex;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::MissedTickBehavior;

use super::{
    Settler, open,
    turns::{Queue, Turns},
};
use crate::{
    solver::SolverError,
    store::{
        Key,
        rows::{
            SETTLEMENT,
            settlement::{self as row, Part, Settlement},
        },
        walk::Walk,
    },
};

impl Settler {
    /// Settles for ever. Each payment is looked at every `poll`, unless it is paused or still looked at. `clock` tells
    /// unix milliseconds.
    pub async fn run(&self, poll: Duration, clock: fn() -> u64) {
        let (mut turns, mut looks) = (Turns::default(), FuturesUnordered::new());
        let mut tick = tokio::time::interval(poll);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            for key in turns.start() {
                looks.push(self.look(key, clock()));
            }
            tokio::select! {
                Some(key) = looks.next() => turns.finished(&key),
                _ = tick.tick() => {
                    let mut done = Vec::new();
                    // A look may hold the account: it goes on meanwhile.
                    let collected = {
                        let collecting = self.collect(&mut turns, clock());
                        tokio::pin!(collecting);
                        loop {
                            tokio::select! {
                                collected = &mut collecting => break collected,
                                Some(key) = looks.next() => done.push(key),
                            }
                        }
                    };
                    if let Err(error) = collected {
                        tracing::warn!(%error, "settlements wait");
                    }
                    done.iter().for_each(|key| turns.finished(key));
                }
            }
        }
    }

    /// Brings every payment that is not settled a step forward. `now` in unix milliseconds.
    pub async fn round(&self, now: u64) -> Result<(), SolverError> {
        let (mut turns, mut looks) = (Turns::default(), FuturesUnordered::new());
        self.collect(&mut turns, now).await?;
        loop {
            for key in turns.start() {
                looks.push(self.look(key, now));
            }
            match looks.next().await {
                Some(key) => turns.finished(&key),
                None => return Ok(()),
            }
        }
    }

    /// Queues what is due.
    async fn collect(&self, turns: &mut Turns, now: u64) -> Result<(), SolverError> {
        let mut walk = Walk::of(&**self.requests.store(), SETTLEMENT);
        while let Some((key, value)) = walk.next().await? {
            if turns.has(&key) {
                continue;
            }
            match self.queue(&key, &value, now).await {
                Ok(Some(queue)) => turns.add(key, queue),
                Ok(None) => {}
                Err(error) => waits(&key, &error),
            }
        }
        Ok(())
    }

    /// What a payment waits for; `None` where it is paused.
    async fn queue(&self, key: &Key, value: &[u8], now: u64) -> Result<Option<Queue>, SolverError> {
        let settlement = Settlement::decode(value)?;
        if now < settlement.not_before {
            return Ok(None);
        }
        if !matches!(open(&settlement), Some((_, Part::Pending))) {
            return Ok(Some(Queue::Chain));
        }
        let (id, _) = row::ids(key)?;
        let request = self.requests.by_id(&id).await?;
        Ok(request.map(|one| Queue::Oracles(one.origin.network, one.destination.network)))
    }

    /// Looks at the payment under `key`, and returns that.
    async fn look(&self, key: Key, now: u64) -> Key {
        if let Err(error) = self.advance(&key, now).await {
            waits(&key, &error);
        }
        key
    }
}

fn waits(key: &Key, error: &SolverError) {
    tracing::warn!(request = %hex::encode(&key.name), %error, "settlement waits");
    metrics::counter!("intentd_solver_settlement_errors_total").increment(1);
}
