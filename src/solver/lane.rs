//! One chain's nonces. A nonce is taken by the commit that stores the transaction that has it, so no
//! nonce is without a stored transaction and no transaction goes out that is not stored.
//!
//! [`Lane::tend`] brings a slot forward: it looks for any of the slot's versions on the chain, sends
//! the same bytes again, and replaces a stuck version with one that pays more. A slot whose
//! transaction nodes refuse for good is cancelled by a transaction with the same nonce.

mod heal;
mod sign;
mod tend;

use std::sync::Arc;

use futures::TryFutureExt;
use tokio::sync::{Mutex, MutexGuard};
use vm::{
    Address, Amount,
    trade::{Authorization, Broadcast, Call, Fees, Intended, Revert, Unfit},
};

pub use heal::Shown;
pub use tend::{Depth, Landing, Push};

use super::{SolverError, inventory, site::Site};
use crate::{
    sign::Signer,
    store::{
        Batch, Expect, Store,
        lease::Held,
        rows::{
            self,
            lane::{Owner, Slot},
        },
    },
};

/// More slots than any lane has open.
const MOST_SLOTS: usize = 4_096;
/// Nonces that the chain may be ahead of the lane by before an operator has to look: somebody else uses
/// the key, or providers lie.
const MOST_JUMP: u64 = 16;

/// How many times what a chain asks for a transaction's bytes is kept for them.
const DATA_ROOM: Amount = Amount::from_limbs([2, 0, 0, 0]);

/// How gas is paid for.
#[derive(Clone, Copy, Debug)]
pub struct Gas {
    /// Seconds after which a transaction that is in no block is replaced.
    pub stuck_after: u64,
    /// Wei per gas unit above which no transaction is made.
    pub most: u128,
    /// Refusals by nodes after which a nonce is cancelled.
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

/// See the module. There is one per chain number and key: two would take each other's nonces.
pub struct Lane {
    pub site: Arc<Site>,
    /// What its rows are called.
    pub name: String,
    /// The account whose nonces they are.
    pub owner: Address,
    store: Arc<dyn Store>,
    signer: Arc<dyn Signer>,
    gas: Gas,
    /// Every commit demands it.
    held: Held,
    /// Nothing new is sent with it.
    retired: bool,
    turn: Mutex<()>,
}

/// A transaction before it has a nonce.
#[derive(Clone, Debug)]
pub struct Plan {
    pub owner: Owner,
    pub call: Call,
    pub authorizations: Vec<Authorization>,
    /// Gas units.
    pub gas: u64,
    /// What it takes of currencies other than the native one.
    pub spends: Vec<(Address, Amount)>,
}

/// A nonce, a signed transaction that has it, and the commit that takes it. Until that commit is
/// applied nothing has happened; nobody else takes a nonce meanwhile.
pub struct Taken<'a> {
    pub nonce: u64,
    pub slot: Slot,
    pub batch: Batch,
    _turn: MutexGuard<'a, ()>,
}

impl Lane {
    /// Takes the lane over from whoever held it. `now` in unix milliseconds.
    pub async fn open(
        site: Arc<Site>,
        store: Arc<dyn Store>,
        signer: Arc<dyn Signer>,
        gas: Gas,
        now: u64,
    ) -> Result<Self, SolverError> {
        let owner = site.family().address(&format!("{:#x}", signer.address()))?;
        let (name, _) = name(&*store, &site.name, &owner).await?;
        let held = Held::take(&*store, &format!("lane/{name}"), now).await?;
        Ok(Self {
            site,
            name,
            owner,
            store,
            signer,
            gas,
            held: held.ok_or(SolverError::Fenced)?,
            retired: false,
            turn: Mutex::new(()),
        })
    }

    /// As [`Self::open`], of an account that the solver had before: `None` where it never did anything.
    pub async fn former(
        site: Arc<Site>,
        store: Arc<dyn Store>,
        signer: Arc<dyn Signer>,
        gas: Gas,
        now: u64,
    ) -> Result<Option<Self>, SolverError> {
        let owner = site.family().address(&format!("{:#x}", signer.address()))?;
        if !name(&*store, &site.name, &owner).await?.1 {
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

    /// Prepares a transaction with the next nonce. [`SolverError::Short`] if the account cannot pay
    /// for it beside what is reserved. `now` in unix seconds.
    pub async fn take(&self, plan: &Plan, now: u64) -> Result<Taken<'_>, SolverError> {
        // Asked before it is this one's turn: nobody waits for another's providers.
        let fresh = self.row().await?.1.is_none();
        // Also a stored lane looks at the chain: the key may have been used elsewhere meanwhile.
        let mined = self.site.nonce(&self.owner, fresh).err_into();
        let data_fee = self.most_data_fee(&plan.call, &plan.authorizations);
        let (mined, fees, data_fee) = futures::try_join!(mined, self.fees(), data_fee)?;
        let turn = self.turn.lock().await;
        let (found, stored) = self.row().await?;
        let (nonce, skipped) = self.next(stored, mined)?;
        let slot = self.first(plan, nonce, (fees, data_fee, now)).await?;
        self.check_funds(&slot).await?;
        let next = nonce + 1;
        let lane = rows::lane::Lane {
            next,
            skipped,
            account: self.owner.text().to_owned(),
        };
        let key = rows::lane::key(&self.name);
        let slot_key = rows::lane::slot_key(&self.name, nonce);
        let batch = self
            .batch()
            .expect(key.clone(), found.map_or(Expect::Absent, Expect::Equals))
            .expect(slot_key.clone(), Expect::Absent)
            .put(key, lane.encode()?)
            .put(slot_key, slot.encode()?);
        let batch = inventory::reserve(batch, self, &slot, nonce)?;
        Ok(Taken {
            nonce,
            slot,
            batch,
            _turn: turn,
        })
    }

    /// The lane's row, as bytes and as what it says.
    async fn row(&self) -> Result<(Option<Vec<u8>>, Option<rows::lane::Lane>), SolverError> {
        let key = rows::lane::key(&self.name);
        let found = self.store.read(&key).await?;
        let stored = found.as_deref().map(rows::lane::Lane::decode).transpose()?;
        Ok((found, stored))
    }

    /// The nonce to take where a quorum has `mined` transactions, and the nonces that were somebody
    /// else's.
    fn next(
        &self,
        stored: Option<rows::lane::Lane>,
        mined: u64,
    ) -> Result<(u64, Vec<u64>), SolverError> {
        let Some(rows::lane::Lane {
            next, mut skipped, ..
        }) = stored
        else {
            return Ok((mined, Vec::new()));
        };
        if mined <= next {
            return Ok((next, skipped));
        }
        let network = self.site.name.clone();
        tracing::error!(network, next, mined, "the solver's key is used elsewhere");
        metrics::counter!("intentd_solver_nonce_jumps_total", "network" => network.clone())
            .increment(1);
        if mined - next > MOST_JUMP {
            return Err(SolverError::Jumped {
                network,
                next,
                mined,
            });
        }
        skipped.extend(next..mined);
        Ok((mined, skipped))
    }

    /// Hands the newest version to the network. What nodes say is no proof of anything: `tend` looks.
    pub async fn send(&self, slot: &Slot) -> Result<Option<Broadcast>, SolverError> {
        let Some(version) = slot.versions.last() else {
            return Ok(None);
        };
        let said = self.site.broadcast(&version.raw).await?;
        if said != Broadcast::Accepted {
            let (network, hash) = (self.site.name.as_str(), version.hash);
            tracing::warn!(network, %hash, ?said, "transaction was not taken");
        }
        Ok(Some(said))
    }

    /// The transaction of a nonce, until it has been freed.
    pub async fn slot(&self, nonce: u64) -> Result<Option<Slot>, SolverError> {
        let key = rows::lane::slot_key(&self.name, nonce);
        let found = self.store.read(&key).await?;
        Ok(found.as_deref().map(Slot::decode).transpose()?)
    }

    /// Every nonce that is not done with, lowest first.
    pub async fn slots(&self) -> Result<Vec<(u64, Slot)>, SolverError> {
        let range = rows::lane::slots(&self.name, MOST_SLOTS);
        let mut slots = Vec::new();
        for (key, value) in self.store.scan(range).await? {
            let nonce = rows::lane::nonce(&self.name, &key)?;
            slots.push((nonce, Slot::decode(&value)?));
        }
        Ok(slots)
    }

    /// Adds to a commit that a nonce is done with.
    pub fn free(&self, batch: Batch, nonce: u64, slot: &Slot) -> Result<Batch, SolverError> {
        let batch = batch.delete(rows::lane::slot_key(&self.name, nonce));
        inventory::release(batch, self, slot, nonce)
    }

    /// What the account can spend of a currency.
    pub async fn available(&self, currency: &Address) -> Result<Amount, SolverError> {
        inventory::available(&self.store, self, currency).await
    }

    /// What transactions on their way will take of a currency.
    pub async fn reserved(&self, currency: &Address) -> Result<Amount, SolverError> {
        inventory::reserved(&self.store, &self.name, currency).await
    }

    /// Gas units of a call as it will be sent, with room for what changes until it is included; or why it
    /// would revert, by agreement.
    pub async fn estimate(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, SolverError> {
        let most = self.site.providers.limits().gas;
        let estimate = self.bare_estimate(call, authorizations).await?;
        Ok(estimate.map(|gas| gas.saturating_add(gas / 4).min(most)))
    }

    /// Whether nodes take a call with authorizations as a transaction at all.
    pub async fn admit(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<(), Unfit>, SolverError> {
        let intended = Intended {
            authorizations,
            ..Intended::free(call)
        };
        Ok(self.site.admit(&intended).await?)
    }

    /// As [`Self::estimate`], without room.
    pub async fn bare_estimate(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, SolverError> {
        // Nothing is planned above the operator's limit.
        let fees = self.fees().await?;
        let most = self.site.providers.limits().gas;
        let intended = Intended {
            call,
            authorizations,
            fees: Some(fees),
            most: Some(most),
        };
        Ok(self.site.estimate(&intended).await?)
    }

    /// What gas costs now; an error above the operator's limit.
    pub async fn fees(&self) -> Result<Fees, SolverError> {
        let fees = self.site.fees().await?;
        if fees.base.saturating_add(fees.priority) > self.gas.most {
            return Err(SolverError::Dear(self.site.name.clone()));
        }
        Ok(fees)
    }

    /// What a call that takes `gas` units costs now in the native currency, with what the chain charges
    /// for its bytes.
    pub async fn cost(&self, call: &Call, gas: u64) -> Result<Amount, SolverError> {
        let fees = self.fees().await?;
        let intended = Intended {
            fees: Some(fees),
            most: Some(gas),
            ..Intended::free(call)
        };
        let data = self.site.data_fee(&intended).await?;
        let price = Amount::from(fees.base.saturating_add(fees.priority));
        Ok(price.saturating_mul(Amount::from(gas)).saturating_add(data))
    }

    /// What the chain charges for the bytes of a call besides gas.
    pub async fn data_fee(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Amount, SolverError> {
        let intended = Intended {
            authorizations,
            ..Intended::free(call)
        };
        Ok(self.site.data_fee(&intended).await?)
    }

    /// The same, as much as it may be by the time at which the call is in a block.
    async fn most_data_fee(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Amount, SolverError> {
        let fee = self.data_fee(call, authorizations).await?;
        Ok(fee.saturating_mul(DATA_ROOM))
    }

    async fn check_funds(&self, slot: &Slot) -> Result<(), SolverError> {
        for (currency, needed) in inventory::needs(&self.site, slot)? {
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

/// What the lane of an account is called, and whether it has been used. The first account that worked
/// on a network has the network's name.
async fn name(
    store: &dyn Store,
    network: &str,
    owner: &Address,
) -> Result<(String, bool), SolverError> {
    let read = async |name: &str| -> Result<_, SolverError> {
        let found = store.read(&rows::lane::key(name)).await?;
        Ok(found.as_deref().map(rows::lane::Lane::decode).transpose()?)
    };
    match read(network).await? {
        None => Ok((network.to_owned(), false)),
        Some(first) if first.account == owner.text() => Ok((network.to_owned(), true)),
        Some(_) => {
            let further = rows::lane::further(network, owner.text());
            let used = read(&further).await?.is_some();
            Ok((further, used))
        }
    }
}
