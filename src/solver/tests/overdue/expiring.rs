//! A chain whose payments expire, or are cancelled by other transactions: what the chain in memory has, decorated.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use vm::{
    Bytes, Chain, CodecError,
    trade::{
        Account, Attempt, Broadcast, Goal, Label, Landing, OpenAccount, Outlook, Signer, Standing,
        Status, SubmitError, Submitter,
    },
};

use crate::{
    sign::KeyRing,
    solver::{
        Solver,
        account::{SendLimits, SolverAccount},
        chain::TradingChain,
        tests::rig::Rig,
    },
};

/// How attempts end that are in no block.
#[derive(Default)]
pub struct Ends {
    /// The ids of those that are cancelled.
    pub cancelled: BTreeSet<Bytes>,
    /// All that was signed for them has expired.
    pub over: bool,
}

pub type Shared = Arc<Mutex<Ends>>;

/// As the family of the chain has it, but for payments that expire.
struct Expiring;

fn family() -> &'static dyn Landing {
    vm::SETTLEMENT.landing.unwrap()
}

impl Landing for Expiring {
    fn life(&self) -> u64 {
        1
    }

    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError> {
        family().next(account)
    }

    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
        family().knows(account, attempt)
    }

    fn label(&self, resource: &[u8]) -> Result<Label, CodecError> {
        family().label(resource)
    }

    fn standing(
        &self,
        account: &[u8],
        reached: &[u8],
        held: &[Bytes],
    ) -> Result<Standing, CodecError> {
        family().standing(account, reached, held)
    }
}

/// Opens accounts whose payments are replaced by none.
struct Opening {
    accounts: Arc<dyn OpenAccount>,
    ends: Shared,
}

impl OpenAccount for Opening {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let mut account = self.accounts.account(chain, key, most)?;
        account.submitter = Arc::new(Payer {
            submitter: account.submitter,
            ends: self.ends.clone(),
        });
        Ok(account)
    }
}

struct Payer {
    submitter: Arc<dyn Submitter>,
    ends: Shared,
}

impl Payer {
    /// Whether the attempt is cancelled, and whether what was signed has expired.
    fn ends(&self, attempt: &Attempt) -> (bool, bool) {
        let ends = self.ends.lock().unwrap();
        (ends.cancelled.contains(&attempt.id), ends.over)
    }
}

#[async_trait]
impl Submitter for Payer {
    async fn look(&self, goal: Goal<'_>, first: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        self.submitter.look(goal, first).await
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        let mut ends = self.ends.lock().unwrap();
        let first = cancel && ends.cancelled.insert(attempt.id.clone());
        Ok(first.then(|| attempt.clone()))
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        let (cancelled, _) = self.ends(attempt);
        match cancelled {
            true => Ok(None),
            false => self.submitter.send(attempt).await,
        }
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        let (cancelled, over) = self.ends(attempt);
        Ok(match self.submitter.status(attempt).await? {
            Status::Waiting { .. } if cancelled && over => Status::Expired,
            status => status,
        })
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        self.submitter.reached().await
    }
}

/// The process starts; its payments to the destination expire, or are cancelled by other transactions.
pub async fn started(rig: &Rig, expires: bool) -> (Solver, Shared) {
    let mut solver = rig.solver().await;
    let ends = Shared::default();
    let mut chain = TradingChain::clone(&solver.accounts["destination"].chain);
    if expires {
        chain.landing = &Expiring;
    }
    chain.providers.accounts = Arc::new(Opening {
        accounts: chain.providers.accounts,
        ends: ends.clone(),
    });
    let keys = KeyRing::of_secp256k1(rig.signer.clone());
    let limits = SendLimits {
        most_rate: 100_000,
        ..SendLimits::default()
    };
    let (chain, store) = (Arc::new(chain), rig.store.clone());
    let account = SolverAccount::open(chain, store, &keys, limits, rig.now).await;
    let account = Arc::new(account.unwrap());
    solver.accounts.insert("destination".into(), account);
    (solver, ends)
}
