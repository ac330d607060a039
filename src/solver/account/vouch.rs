//! Whether the store knows all that the chain counts of an account. When a process starts, the chain cannot count a
//! transaction that the store has not: each is stored before it is sent. Where it does, the store is an older copy, and
//! what was paid since would be paid again; or somebody else uses the key. The first look in the life of a process says
//! it. Later on the store is known to be current, and a few transactions of somebody else's are believed.
//!
//! That look does not see a payment that is open in an older copy and has landed by a transaction that was signed since:
//! what it holds is counted already. To the copy the payment is lost, as if somebody else's transaction had used that.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use vm::{Bytes, trade::Jump};

use super::{AttemptStatus, MOST_ATTEMPTS, SolverAccount, heal::standing};
use crate::{
    solver::SolverError,
    store::{
        Store,
        rows::attempt::{self, Owner},
    },
};

/// What a process knows of the store that it began with.
#[derive(Debug)]
pub(super) struct Vouched(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Whether the store is current; `None` before the first look.
    current: Option<bool>,
    /// The attempts that the process began with.
    inherited: BTreeSet<Bytes>,
    /// One of those is lost: from then on only the operator can say that the store is current.
    is_lost: bool,
}

impl Vouched {
    /// Of the account whose rows are called `name`, before the process begins anything.
    pub(super) async fn of(store: &dyn Store, name: &str) -> Result<Self, SolverError> {
        let found = store.scan(attempt::range(name, MOST_ATTEMPTS)).await?;
        let inherited = found.iter().map(|(key, _)| attempt::id(name, key));
        Ok(Self(Mutex::new(Known {
            current: None,
            inherited: inherited.collect::<Result<_, _>>()?,
            is_lost: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Option<bool> {
        self.lock().current
    }

    /// What is known then, and what was known before.
    fn set(&self, current: bool) -> (bool, Option<bool>) {
        let mut known = self.lock();
        let current = current && !known.is_lost;
        (current, known.current.replace(current))
    }

    /// Records that an attempt is lost; whether the process began with it.
    fn lose(&self, id: &Bytes) -> bool {
        let mut known = self.lock();
        let inherited = known.inherited.contains(id);
        known.is_lost |= inherited;
        inherited
    }

    /// All attempts count as the process's own.
    fn adopt(&self) {
        let mut known = self.lock();
        known.inherited.clear();
        known.is_lost = false;
    }
}

impl SolverAccount {
    /// Looks whether the store knows all that the chain counts, unless that is known. [`SolverError::Behind`] where it
    /// does not, or where a payment that the process began with is lost: nothing may be paid then until the operator says
    /// so ([`SolverAccount::heal`]).
    pub async fn vouch(&self) -> Result<(), SolverError> {
        if self.vouched.get() != Some(true) {
            let ahead = self.is_ahead().await?;
            self.know(!ahead);
        }
        match self.is_behind() {
            true => Err(SolverError::Behind(self.chain.name.clone())),
            false => Ok(()),
        }
    }

    /// Whether the chain has transactions that the store does not know of, as far as anybody has looked.
    pub fn is_behind(&self) -> bool {
        self.vouched.get() == Some(false)
    }

    /// The operator says that the store is no older copy: what is lost is lost to somebody else.
    pub(super) fn trust(&self) {
        self.vouched.adopt();
        self.know(true);
    }

    /// How far an attempt is of which a quorum says that none of its transactions can land. One that the process began
    /// with may have landed by a transaction that an older copy has not: it waits, and nothing is paid, until the operator
    /// has spoken. A gap says nothing: it pays nobody, and somebody else's transaction may always close it.
    pub(super) fn lost(&self, id: &Bytes, attempt: &attempt::Attempt) -> AttemptStatus {
        if attempt.owner == Owner::Gap || !self.vouched.lose(id) {
            return AttemptStatus::Lost;
        }
        self.know(false);
        AttemptStatus::Waiting
    }

    /// Stores nothing: says what was found for as long as the process lives.
    fn know(&self, current: bool) {
        let (current, before) = self.vouched.set(current);
        let network = self.chain.name.clone();
        if !current && before != Some(false) {
            tracing::error!(
                network,
                "the chain has transactions of the solver's that the store has not: nothing is paid. If DATA_DIR is no \
                 older copy: intentd lane heal"
            );
        }
        metrics::gauge!("intentd_solver_behind", "network" => network).set(u32::from(!current));
    }

    async fn is_ahead(&self) -> Result<bool, SolverError> {
        if self.row().await?.1.is_none() {
            return Ok(false);
        }
        // The chain is asked first: attempts that are made meanwhile are in the row.
        let reached = self.reached().await?;
        let Some(row) = self.row().await?.1 else {
            return Ok(false);
        };
        let attempts = self.attempts().await?;
        let found = standing(self.chain.landing, &row, &reached, &attempts)?;
        Ok(found.believing.is_some())
    }

    /// Reports by how much the chain was ahead when an attempt was prepared; an error at the first one.
    pub(super) fn check_jump(&self, jump: Option<Jump>) -> Result<(), SolverError> {
        let Some(jump) = jump else {
            if self.vouched.get().is_none() {
                self.know(true);
            }
            return Ok(());
        };
        self.report(jump);
        if self.vouched.get() == Some(true) {
            return Ok(());
        }
        self.know(false);
        let network = self.chain.name.clone();
        Err(SolverError::Jumped { network, jump })
    }

    pub(super) fn report(&self, Jump { next, mined }: Jump) {
        let network = self.chain.name.clone();
        tracing::error!(network, next, mined, "the solver's key is used elsewhere");
        metrics::counter!("intentd_solver_nonce_jumps_total", "network" => network).increment(1);
    }
}
