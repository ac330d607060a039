//! The solver's account on one chain. Its family prepares attempts, of which each lands at most once. One commit stores
//! an attempt, everything that was signed for it and the resources that it holds: nothing is held without a stored
//! transaction, and no transaction is sent that is not stored.
//!
//! [`SolverAccount::tend`] brings an attempt forward: it looks for any of its transactions on the chain, sends the same
//! bytes again, and has a stuck one replaced. An attempt that nodes refuse for good is cancelled.

mod estimate;
mod heal;
mod tend;
mod vouch;

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};
use vm::{
    Address, Amount, Bytes,
    trade::{self, Broadcast, Goal, Intent, Known, SubmitError},
};

pub use heal::Shown;
pub use tend::{AttemptStatus, Depth, Push};

use super::{SolverError, chain::TradingChain, inventory};
use crate::{
    sign::{FormerKey, KeyRing},
    store::{
        Batch, Expect, Store,
        lease::Held,
        rows::{
            self,
            attempt::{self, Owner, Signed},
        },
    },
};

/// More attempts than any account has open.
const MOST_ATTEMPTS: usize = 4_096;

/// How far the account goes to have a transaction included.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// Seconds after which a transaction that is in no block is replaced.
    pub stuck_after: u64,
    /// What a unit of work may cost above which no transaction is made, in the native currency's smallest unit.
    pub most_rate: u128,
    /// Refusals by nodes after which an attempt is cancelled.
    pub most_refusals: u32,
}

impl Default for SendLimits {
    fn default() -> Self {
        Self {
            stuck_after: 30,
            most_rate: 1_000_000_000_000,
            most_refusals: 20,
        }
    }
}

/// The solver's account on one chain. There is one per chain number and key: two would take each other's resources.
pub struct SolverAccount {
    pub chain: Arc<TradingChain>,
    /// What its rows in the store are called.
    pub name: String,
    /// Its address.
    pub owner: Address,
    account: trade::Account,
    store: Arc<dyn Store>,
    limits: SendLimits,
    /// The lease of the account's rows: every commit demands it.
    held: Held,
    /// Its key is a former one: no new attempt is begun.
    retired: bool,
    vouched: vouch::Vouched,
    turn: Mutex<()>,
}

/// A transaction that is to land, and what it is for.
#[derive(Clone, Debug)]
pub struct Plan {
    pub owner: Owner,
    pub intent: Intent,
    /// See [`Known::keeps`].
    pub keeps: bool,
}

/// A prepared attempt, and the commit that stores it. Nothing has happened until that commit is applied. The account
/// prepares no other attempt as long as this exists.
pub struct Taken<'a> {
    pub id: Bytes,
    pub attempt: attempt::Attempt,
    pub batch: Batch,
    _turn: MutexGuard<'a, ()>,
}

impl SolverAccount {
    /// Opens the account of the key that has the family's scheme, and takes its rows over from the process that held
    /// them. An error where there is no such key. `now` in unix milliseconds.
    pub async fn open(
        chain: Arc<TradingChain>,
        store: Arc<dyn Store>,
        keys: &KeyRing,
        limits: SendLimits,
        now: u64,
    ) -> Result<Self, SolverError> {
        let key = keys.key(chain.family())?;
        Self::of_key(chain, store, key, limits, now).await
    }

    async fn of_key(
        chain: Arc<TradingChain>,
        store: Arc<dyn Store>,
        key: Arc<dyn trade::Signer>,
        limits: SendLimits,
        now: u64,
    ) -> Result<Self, SolverError> {
        let account = chain.account(key, limits.most_rate)?;
        let owner = account.address.clone();
        let (name, _) = name(&*store, &chain.name, &owner).await?;
        let held = Held::take(&*store, &format!("lane/{name}"), now).await?;
        let vouched = vouch::Vouched::of(&*store, &name).await?;
        Ok(Self {
            chain,
            name,
            owner,
            account,
            store,
            limits,
            held: held.ok_or(SolverError::Fenced)?,
            retired: false,
            vouched,
            turn: Mutex::new(()),
        })
    }

    /// As [`Self::open`], of a former key: `None` where it is of another scheme, or its account never did anything.
    pub async fn former(
        chain: Arc<TradingChain>,
        store: Arc<dyn Store>,
        key: &FormerKey,
        limits: SendLimits,
        now: u64,
    ) -> Result<Option<Self>, SolverError> {
        let Some(key) = key.key(chain.family()) else {
            return Ok(None);
        };
        let account = chain.account(key.clone(), limits.most_rate)?;
        if !name(&*store, &chain.name, &account.address).await?.1 {
            return Ok(None);
        }
        let mut former = Self::of_key(chain, store, key, limits, now).await?;
        former.retired = true;
        Ok(Some(former))
    }

    /// An empty commit that fails once another process holds the account.
    pub fn batch(&self) -> Batch {
        self.held.batch()
    }

    /// Prepares an attempt. [`SolverError::Short`] if the account cannot pay for it besides what is reserved. `now` in
    /// unix seconds.
    pub async fn take(&self, plan: &Plan, now: u64) -> Result<Taken<'_>, SolverError> {
        // The chain is asked before the lock is taken: no caller waits for the providers of another.
        let first = self.row().await?.1.is_none();
        let asked = self.account.submitter.look(Goal::Land(&plan.intent), first);
        let outlook = asked.await.map_err(|error| self.failure(error))?;
        let turn = self.turn.lock().await;
        let (found, stored) = self.row().await?;
        let (held, attempts) = self.held_now().await?;
        let known = Known {
            account: stored.as_ref().map(|row| &row.own[..]),
            held: &held,
            attempts: &attempts,
            keeps: plan.keeps,
        };
        let prepared = outlook.prepare(known).await;
        let prepared = prepared.map_err(|error| self.failure(error))?;
        self.check_jump(prepared.jump)?;
        let id = prepared.attempt.id.clone();
        let attempt = kept(&prepared.attempt, (plan.owner.clone(), now));
        self.check_funds(&attempt).await?;
        let key = rows::account::key(&self.name);
        let mut batch = self
            .batch()
            .expect(key.clone(), found.map_or(Expect::Absent, Expect::Equals));
        if let Some(own) = prepared.account {
            batch = batch.put(key, self.known(own).encode()?);
        }
        Ok(Taken {
            batch: self.begin(batch, &id, &attempt)?,
            id,
            attempt,
            _turn: turn,
        })
    }

    /// Adds an attempt to a commit, with the resources that it holds. The commit fails where one of them is held.
    fn begin(
        &self,
        mut batch: Batch,
        id: &Bytes,
        attempt: &attempt::Attempt,
    ) -> Result<Batch, SolverError> {
        let key = attempt::key(&self.name, id);
        batch = batch
            .expect(key.clone(), Expect::Absent)
            .put(key, attempt.encode()?);
        for resource in &attempt.resources {
            let key = attempt::resource(&self.name, resource);
            batch = batch
                .expect(key.clone(), Expect::Absent)
                .put(key, attempt::holder(id));
        }
        inventory::reserve(batch, self, attempt, id)
    }

    /// The account's row, encoded and decoded.
    async fn row(&self) -> Result<(Option<Vec<u8>>, Option<rows::account::Account>), SolverError> {
        let key = rows::account::key(&self.name);
        let found = self.store.read(&key).await?;
        let stored = found.as_deref().map(rows::account::Account::decode);
        let stored = stored.transpose()?;
        Ok((found, stored))
    }

    fn known(&self, own: Bytes) -> rows::account::Account {
        rows::account::Account {
            account: self.owner.text().to_owned(),
            family: self.chain.family().name.to_owned(),
            own,
        }
    }

    fn failure(&self, error: SubmitError) -> SolverError {
        let network = || self.chain.name.clone();
        match error {
            SubmitError::Read(error) => error.into(),
            SubmitError::Codec(error) => error.into(),
            SubmitError::Unsigned(error) => error.into(),
            SubmitError::Dear => SolverError::Dear(network()),
            SubmitError::Dearer { asked, most } => SolverError::Dearer(network(), asked, most),
            SubmitError::Short { available, needed } => SolverError::Short {
                network: network(),
                currency: self.chain.native.text().to_owned(),
                available,
                needed,
            },
            SubmitError::Jumped(jump) => {
                self.report(jump);
                let network = network();
                SolverError::Jumped { network, jump }
            }
        }
    }

    /// Hands the newest transaction to the network. What nodes answer proves nothing: [`Self::tend`] looks at the chain.
    pub async fn send(
        &self,
        id: &Bytes,
        attempt: &attempt::Attempt,
    ) -> Result<Option<Broadcast>, SolverError> {
        let made = self.made(id, attempt)?;
        let said = self.account.submitter.send(&made).await;
        let said = said.map_err(|error| self.failure(error))?;
        if let (Some(said), Some(newest)) = (&said, attempt.signed.last())
            && !matches!(said, Broadcast::Accepted | Broadcast::Expired)
        {
            let (network, id) = (self.chain.name.as_str(), newest.id.as_str());
            tracing::warn!(network, id, ?said, "transaction was not taken");
        }
        Ok(said)
    }

    /// A stored attempt; `None` once it is done with.
    pub async fn attempt(&self, id: &[u8]) -> Result<Option<attempt::Attempt>, SolverError> {
        let key = attempt::key(&self.name, id);
        let found = self.store.read(&key).await?;
        Ok(found.as_deref().map(attempt::Attempt::decode).transpose()?)
    }

    /// Every attempt that is not done with, lowest id first.
    pub async fn attempts(&self) -> Result<Vec<(Bytes, attempt::Attempt)>, SolverError> {
        let range = attempt::range(&self.name, MOST_ATTEMPTS);
        let mut attempts = Vec::new();
        for (key, value) in self.store.scan(range).await? {
            let id = attempt::id(&self.name, &key)?;
            attempts.push((id, attempt::Attempt::decode(&value)?));
        }
        Ok(attempts)
    }

    /// What the open attempts hold, and what the family wrote of each.
    async fn held_now(&self) -> Result<(Vec<Bytes>, Vec<Bytes>), SolverError> {
        let open = self.attempts().await?.into_iter();
        let (held, own): (Vec<_>, Vec<_>) = open.map(|(_, one)| (one.resources, one.own)).unzip();
        Ok((held.concat(), own))
    }

    /// Adds to a commit that an attempt is done with.
    pub fn free(
        &self,
        batch: Batch,
        id: &[u8],
        attempt: &attempt::Attempt,
    ) -> Result<Batch, SolverError> {
        let mut batch = batch.delete(attempt::key(&self.name, id));
        for resource in &attempt.resources {
            batch = batch.delete(attempt::resource(&self.name, resource));
        }
        inventory::release(batch, self, attempt, id)
    }

    /// What the account can spend of a currency.
    pub async fn available(&self, currency: &Address) -> Result<Amount, SolverError> {
        inventory::available(&self.store, self, currency).await
    }

    /// What transactions that may still land will take of a currency.
    pub async fn reserved(&self, currency: &Address) -> Result<Amount, SolverError> {
        inventory::reserved(&self.store, &self.name, currency).await
    }

    /// A stored attempt in the family's form.
    fn made(&self, id: &[u8], attempt: &attempt::Attempt) -> Result<trade::Attempt, SolverError> {
        let signed = attempt.signed.iter().map(|one| trade::SignedTx {
            id: one.id.clone(),
            cancels: one.cancels,
        });
        Ok(trade::Attempt {
            id: Bytes::copy_from_slice(id),
            resources: attempt.resources.clone(),
            spends: inventory::needs(&self.chain, attempt)?,
            signed: signed.collect(),
            own: attempt.own.clone(),
        })
    }

    async fn check_funds(&self, attempt: &attempt::Attempt) -> Result<(), SolverError> {
        for (currency, needed) in inventory::needs(&self.chain, attempt)? {
            let available = self.available(&currency).await?;
            if available < needed {
                return Err(SolverError::Short {
                    network: self.chain.name.clone(),
                    currency: currency.text().to_owned(),
                    available,
                    needed,
                });
            }
        }
        Ok(())
    }
}

/// The row of an attempt for `owner`, whose newest transaction was signed at `sent_at` (unix seconds).
fn kept(made: &trade::Attempt, (owner, sent_at): (Owner, u64)) -> attempt::Attempt {
    let spends = made.spends.iter();
    let signed = made.signed.iter().map(|one| Signed {
        id: one.id.clone(),
        cancels: one.cancels,
    });
    attempt::Attempt {
        owner,
        resources: made.resources.clone(),
        spends: spends
            .map(|(currency, amount)| (currency.text().to_owned(), *amount))
            .collect(),
        signed: signed.collect(),
        own: made.own.clone(),
        sent_at,
        refused: 0,
    }
}

/// What the rows of an account are called, and whether there are any. Those of the first account on a network have the
/// network's name.
async fn name(
    store: &dyn Store,
    network: &str,
    owner: &Address,
) -> Result<(String, bool), SolverError> {
    let read = async |name: &str| -> Result<_, SolverError> {
        let found = store.read(&rows::account::key(name)).await?;
        Ok(found
            .as_deref()
            .map(rows::account::Account::decode)
            .transpose()?)
    };
    match read(network).await? {
        None => Ok((network.to_owned(), false)),
        Some(first) if first.account == owner.text() => Ok((network.to_owned(), true)),
        Some(_) => {
            let further = rows::account::further(network, owner.text());
            let used = read(&further).await?.is_some();
            Ok((further, used))
        }
    }
}
