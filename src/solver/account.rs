//! The solver's account on one chain. Its family prepares attempts, of which each lands at most once; what an
//! attempt holds is taken by the commit that stores it with everything that was signed for it, so nothing is
//! held without a stored transaction and no transaction goes out that is not stored.
//!
//! [`SolverAccount::tend`] brings an attempt forward: it looks for any of its transactions on the chain, sends the same
//! bytes again, and has a stuck one replaced. An attempt that nodes refuse for good is cancelled.

mod estimate;
mod heal;
mod tend;

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};
use vm::{
    Address, Amount, Bytes,
    trade::{self, Broadcast, Goal, Intent, Jump, SubmitError},
};

pub use heal::Shown;
pub use tend::{Depth, Landing, Push};

use super::{SolverError, chain::TradingChain, inventory};
use crate::{
    sign::{ForFamilies, Signer},
    store::{
        Batch, Expect, Store,
        lease::Held,
        rows::{
            self,
            attempt::{self, Attempt, Owner, Signed},
        },
    },
};

/// More attempts than any lane has open.
const MOST_ATTEMPTS: usize = 4_096;

/// How gas is paid for.
#[derive(Clone, Copy, Debug)]
pub struct Gas {
    /// Seconds after which a transaction that is in no block is replaced.
    pub stuck_after: u64,
    /// What a unit of work may cost above which no transaction is made.
    pub most: u128,
    /// Refusals by nodes after which an attempt is cancelled.
    pub most_refusals: u32,
}

impl Default for Gas {
    fn default() -> Self {
        Self {
            stuck_after: 30,
            most: 1_000_000_000_000,
            most_refusals: 20,
        }
    }
}

/// The solver's account on one chain. There is one per chain number and key: two would take each other's resources.
pub struct SolverAccount {
    pub site: Arc<TradingChain>,
    /// What its rows are called.
    pub name: String,
    /// The account's address.
    pub owner: Address,
    account: trade::Account,
    store: Arc<dyn Store>,
    gas: Gas,
    /// Every commit demands it.
    held: Held,
    /// Nothing new is sent with it.
    retired: bool,
    turn: Mutex<()>,
}

/// What is to land, and whose it is.
#[derive(Clone, Debug)]
pub struct Plan {
    pub owner: Owner,
    pub intent: Intent,
}

/// An attempt, and the commit that takes what it holds. Until that commit is applied nothing has happened;
/// nobody else takes anything of the account meanwhile.
pub struct Taken<'a> {
    pub id: Bytes,
    pub attempt: Attempt,
    pub batch: Batch,
    _turn: MutexGuard<'a, ()>,
}

impl SolverAccount {
    /// Takes the lane over from whoever held it. `now` in unix milliseconds.
    pub async fn open(
        site: Arc<TradingChain>,
        store: Arc<dyn Store>,
        signer: Arc<dyn Signer>,
        gas: Gas,
        now: u64,
    ) -> Result<Self, SolverError> {
        let account = site.account(Arc::new(ForFamilies(signer)), gas.most)?;
        let owner = account.address.clone();
        let (name, _) = name(&*store, &site.name, &owner).await?;
        let held = Held::take(&*store, &format!("lane/{name}"), now).await?;
        Ok(Self {
            site,
            name,
            owner,
            account,
            store,
            gas,
            held: held.ok_or(SolverError::Fenced)?,
            retired: false,
            turn: Mutex::new(()),
        })
    }

    /// As [`Self::open`], of an account that the solver had before: `None` where it never did anything.
    pub async fn former(
        site: Arc<TradingChain>,
        store: Arc<dyn Store>,
        signer: Arc<dyn Signer>,
        gas: Gas,
        now: u64,
    ) -> Result<Option<Self>, SolverError> {
        let account = site.account(Arc::new(ForFamilies(signer.clone())), gas.most)?;
        if !name(&*store, &site.name, &account.address).await?.1 {
            return Ok(None);
        }
        let mut lane = Self::open(site, store, signer, gas, now).await?;
        lane.retired = true;
        Ok(Some(lane))
    }

    /// An empty commit of this holder's.
    pub fn batch(&self) -> Batch {
        self.held.batch()
    }

    /// Prepares an attempt. [`SolverError::Short`] if the account cannot pay for it beside what is reserved.
    /// `now` in unix seconds.
    pub async fn take(&self, plan: &Plan, now: u64) -> Result<Taken<'_>, SolverError> {
        // Asked before it is this one's turn: nobody waits for another's providers.
        let first = self.row().await?.1.is_none();
        let asked = self.account.submitter.look(Goal::Land(&plan.intent), first);
        let outlook = asked.await.map_err(|error| self.told(error))?;
        let turn = self.turn.lock().await;
        let (found, stored) = self.row().await?;
        let known = stored.as_ref().map(|lane| &lane.own[..]);
        let prepared = outlook.prepare(known).await;
        let prepared = prepared.map_err(|error| self.told(error))?;
        if let Some(jump) = prepared.jump {
            self.tell(jump);
        }
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

    /// Adds to a commit that an attempt is kept, and with it all that it holds, which nobody else may.
    fn begin(&self, mut batch: Batch, id: &Bytes, attempt: &Attempt) -> Result<Batch, SolverError> {
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

    /// The lane's row, as bytes and as what it says.
    async fn row(&self) -> Result<(Option<Vec<u8>>, Option<rows::account::Account>), SolverError> {
        let key = rows::account::key(&self.name);
        let found = self.store.read(&key).await?;
        let stored = found
            .as_deref()
            .map(rows::account::Account::decode)
            .transpose()?;
        Ok((found, stored))
    }

    fn known(&self, own: Bytes) -> rows::account::Account {
        rows::account::Account {
            account: self.owner.text().to_owned(),
            family: self.site.family().name.to_owned(),
            own,
        }
    }

    fn told(&self, error: SubmitError) -> SolverError {
        let network = || self.site.name.clone();
        match error {
            SubmitError::Read(error) => error.into(),
            SubmitError::Codec(error) => error.into(),
            SubmitError::Unsigned(error) => error.into(),
            SubmitError::Dear => SolverError::Dear(network()),
            SubmitError::Jumped(jump) => {
                self.tell(jump);
                let network = network();
                SolverError::Jumped { network, jump }
            }
        }
    }

    fn tell(&self, Jump { next, mined }: Jump) {
        let network = self.site.name.clone();
        tracing::error!(network, next, mined, "the solver's key is used elsewhere");
        metrics::counter!("intentd_solver_nonce_jumps_total", "network" => network).increment(1);
    }

    /// Hands the newest transaction to the network. What nodes say is no proof of anything: `tend` looks.
    pub async fn send(
        &self,
        id: &Bytes,
        attempt: &Attempt,
    ) -> Result<Option<Broadcast>, SolverError> {
        let made = self.made(id, attempt)?;
        let said = self.account.submitter.send(&made).await;
        let said = said.map_err(|error| self.told(error))?;
        if let (Some(said), Some(newest)) = (&said, attempt.signed.last())
            && *said != Broadcast::Accepted
        {
            let (network, id) = (self.site.name.as_str(), newest.id.as_str());
            tracing::warn!(network, id, ?said, "transaction was not taken");
        }
        Ok(said)
    }

    /// An attempt, until it is done with.
    pub async fn attempt(&self, id: &[u8]) -> Result<Option<Attempt>, SolverError> {
        let key = attempt::key(&self.name, id);
        let found = self.store.read(&key).await?;
        Ok(found.as_deref().map(Attempt::decode).transpose()?)
    }

    /// Every attempt that is not done with, lowest id first.
    pub async fn attempts(&self) -> Result<Vec<(Bytes, Attempt)>, SolverError> {
        let range = attempt::range(&self.name, MOST_ATTEMPTS);
        let mut attempts = Vec::new();
        for (key, value) in self.store.scan(range).await? {
            let id = attempt::id(&self.name, &key)?;
            attempts.push((id, Attempt::decode(&value)?));
        }
        Ok(attempts)
    }

    /// Adds to a commit that an attempt is done with.
    pub fn free(&self, batch: Batch, id: &[u8], attempt: &Attempt) -> Result<Batch, SolverError> {
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

    /// What transactions on their way will take of a currency.
    pub async fn reserved(&self, currency: &Address) -> Result<Amount, SolverError> {
        inventory::reserved(&self.store, &self.name, currency).await
    }

    /// A stored attempt as the family has it.
    fn made(&self, id: &[u8], attempt: &Attempt) -> Result<trade::Attempt, SolverError> {
        let signed = attempt.signed.iter().map(|one| trade::SignedTx {
            id: one.id.clone(),
            cancels: one.cancels,
        });
        Ok(trade::Attempt {
            id: Bytes::copy_from_slice(id),
            resources: attempt.resources.clone(),
            spends: inventory::needs(&self.site, attempt)?,
            signed: signed.collect(),
            own: attempt.own.clone(),
        })
    }

    async fn check_funds(&self, attempt: &Attempt) -> Result<(), SolverError> {
        for (currency, needed) in inventory::needs(&self.site, attempt)? {
            let available = self.available(&currency).await?;
            if available < needed {
                return Err(SolverError::Short {
                    network: self.site.name.clone(),
                    currency: currency.text().to_owned(),
                    available,
                    needed,
                });
            }
        }
        Ok(())
    }
}

/// An attempt as it is stored: whose it is, and since when, in unix seconds.
fn kept(made: &trade::Attempt, (owner, sent_at): (Owner, u64)) -> Attempt {
    let spends = made.spends.iter();
    let signed = made.signed.iter().map(|one| Signed {
        id: one.id.clone(),
        cancels: one.cancels,
    });
    Attempt {
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

/// What the lane of an account is called, and whether it has been used. The first account that worked
/// on a network has the network's name.
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
