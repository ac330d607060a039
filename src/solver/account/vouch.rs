//! Whether the store knows all that the chain counts of an account. When a process starts, the chain cannot count a
//! transaction that the store has not: each is stored before it is sent. Where it does, the store is an older copy, and
//! what was paid since would be paid again; or somebody else uses the key. The first look in the life of a process says
//! it. Later on the store is known to be current, and a few transactions of somebody else's are believed.

use std::sync::{Mutex, PoisonError};

use vm::trade::Jump;

use super::{SolverAccount, heal::standing};
use crate::solver::SolverError;

/// Whether the store is current; `None` before the first look.
#[derive(Debug, Default)]
pub(super) struct Vouched(Mutex<Option<bool>>);

impl Vouched {
    fn get(&self) -> Option<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was known before.
    fn set(&self, current: bool) -> Option<bool> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(current)
    }
}

impl SolverAccount {
    /// Looks whether the store knows all that the chain counts, unless that is known. [`SolverError::Behind`] where it
    /// does not: nothing may be paid then until the operator says so ([`SolverAccount::heal`]).
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

    /// Whether the chain counts transactions that the store does not know of, as far as anybody has looked.
    pub fn is_behind(&self) -> bool {
        self.vouched.get() == Some(false)
    }

    /// Stores nothing: says what was found for as long as the process lives.
    pub(super) fn know(&self, current: bool) {
        let before = self.vouched.set(current);
        let network = self.chain.name.clone();
        if !current && before != Some(false) {
            tracing::error!(
                network,
                "the chain counts transactions of the solver's that the store has not: nothing is paid. If DATA_DIR is \
                 no older copy: intentd lane heal"
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
