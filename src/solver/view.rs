//! A request as a look reads it, and what its record says of its deposits.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use alloy::primitives::B256;
use tokio::time::Instant;
use vm::Family;

use super::{
    Solver, SolverError, chain, claim,
    judge::{self, Case, Margins, Patience, Worth},
};
use crate::{
    attest::claim::Families,
    request::{
        Request,
        fact::{Deposit, Ending, Facts, Purpose},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
        status::is_users,
    },
    store::{
        requests::Seen,
        rows::{
            self,
            claim::{Claim, Leg},
        },
    },
};

/// How old a view is from which no payment is begun: no chain's margin is shorter than twice as long.
const FRESH: Duration = Duration::from_secs(chain::LEAST);

/// A request as it was read. Every commit about it demands that its row and its facts are unchanged; the one that ends
/// its work, that no work has come since.
pub(super) struct View {
    pub(super) request: Request,
    pub(super) facts: Facts,
    pub(super) claim: Claim,
    pub(super) row: Option<Vec<u8>>,
    /// The row that says that there is work.
    pub(super) open: Option<Vec<u8>>,
    /// The worth of deposits that may be given back, by onchain id.
    pub(super) worths: HashMap<B256, Worth>,
    /// Deposits of others whose depositors the breaker bars now.
    pub(super) barred: HashSet<B256>,
    /// Deposits on networks that this start has not opened.
    pub(super) closed: HashSet<B256>,
    /// Unix milliseconds.
    pub(super) now: u64,
    /// When the clock said so.
    pub(super) began: Instant,
}

impl Solver {
    /// The request at `now` (unix milliseconds), which the clock said at `began`.
    pub(super) async fn view(
        &self,
        id: &B256,
        (now, began): (u64, Instant),
    ) -> Result<Option<View>, SolverError> {
        let Some(request) = self.requests.by_id(id).await? else {
            return Ok(None);
        };
        // These rows are read before the facts. If a commit comes in between, they are the older ones, and commits
        // fail.
        let keys = [rows::open::key(id), rows::claim::key(id)];
        let found = self.requests.store().read_all(&keys).await?;
        let mut found = found.into_iter();
        let (open, row) = (found.next().flatten(), found.next().flatten());
        let claim = row.as_deref().map(Claim::decode).transpose()?;
        let mut view = View {
            request,
            claim: claim.unwrap_or_default(),
            row,
            open,
            facts: self.requests.facts(id).await?,
            worths: HashMap::new(),
            barred: HashSet::new(),
            closed: HashSet::new(),
            now,
            began,
        };
        view.worths = self.worths(&view).await;
        view.barred = self.barred(&view);
        view.closed = self.closed(&view);
        Ok(Some(view))
    }

    fn closed(&self, view: &View) -> HashSet<B256> {
        let deposits = view.facts.deposits.iter();
        let closed = deposits.filter(|deposit| !self.accounts.contains_key(&deposit.network));
        closed.map(|deposit| deposit.onchain_id).collect()
    }

    /// The family of a configured chain, by the chain's name. What is owed for an order does not depend on which networks
    /// this start has opened.
    pub(super) fn families(&self) -> impl Fn(&str) -> Option<&'static Family> + Sync {
        move |network: &str| {
            let account = self.accounts.get(network);
            let opened = account.map(|account| account.chain.family());
            opened.or_else(|| self.families.get(network).copied())
        }
    }

    /// The [`Margins`] of the networks that the solver works on.
    pub(super) fn margins(&self) -> impl Fn(&str) -> u64 + Sync {
        move |network: &str| {
            let account = self.accounts.get(network);
            account.map_or(0, |account| account.chain.margin())
        }
    }
}

impl View {
    pub(super) fn case<'a>(
        &'a self,
        patience: Patience,
        families: Families<'a>,
        margins: Margins<'a>,
    ) -> Case<'a> {
        Case {
            request: &self.request,
            facts: &self.facts,
            claim: &self.claim,
            now: self.now / 1_000,
            patience,
            margins,
            worths: &self.worths,
            barred: &self.barred,
            closed: &self.closed,
            families,
        }
    }

    /// Whether it is too old for a payment to be begun by it.
    pub(super) fn is_stale(&self) -> bool {
        self.began.elapsed() > FRESH
    }

    /// What a decision rests on.
    pub(super) fn seen(&self) -> Seen<'_> {
        Seen {
            id: &self.request.id,
            facts: &self.facts,
        }
    }

    pub(super) fn deposit(&self, id: &B256) -> Option<&Deposit> {
        let mut deposits = self.facts.deposits.iter();
        deposits.find(|deposit| deposit.onchain_id == *id)
    }

    /// Records that a deposit's refund was begun. The reason of the order's own deposit is the order's failure; another
    /// deposit has its reason by itself.
    pub(super) fn record_refund(&self, facts: &mut Facts, leg: &Leg) {
        let beside = |deposit| self.beside(facts, deposit).is_some();
        match (self.deposit(&leg.deposit), leg.reason) {
            (Some(deposit), _) if !beside(deposit) => facts.refund_failure = None,
            (Some(_), Some(reason)) => facts.end(Ending {
                deposit: leg.deposit,
                reason,
                refused: None,
                minor: false,
            }),
            _ => {}
        }
    }

    /// `claim` of an order that is not filled for `deposit`. The order fails where the user gave the deposit. Otherwise
    /// the deposit ends by itself, so that its depositor cannot fail another's order.
    pub fn declined(&self, claim: &Claim, deposit: B256, why: FailReason) -> Claim {
        let own = |deposit: &Deposit| is_users(&self.request, deposit);
        match self.deposit(&deposit).is_none_or(own) {
            true => claim::failed(claim, why),
            false => claim::refuse(claim, deposit, why),
        }
    }

    /// Why a deposit ends by itself, whatever becomes of the order: it is not what the order asks for, or the user did
    /// not give it and the order is not filled for it.
    fn beside(&self, facts: &Facts, deposit: &Deposit) -> Option<FailReason> {
        let ended = || {
            let fills = facts.alive(Purpose::Fill).next().is_some();
            fills || facts.failure.is_some()
        };
        mismatch(&self.request, deposit).or_else(|| {
            let refused = judge::refused(&self.claim, &self.barred, deposit);
            refused.filter(|_| !ended())
        })
    }

    /// Records why a deposit is not given back, now or at all.
    pub(super) fn record_refund_failure(
        &self,
        facts: &mut Facts,
        deposit: &B256,
        why: RefundFailReason,
    ) {
        let Some(deposit) = self.deposit(deposit) else {
            return;
        };
        match self.beside(facts, deposit) {
            Some(reason) => facts.end(Ending {
                deposit: deposit.onchain_id,
                reason,
                refused: Some(why),
                minor: false,
            }),
            None if facts.failure.is_some() => facts.refund_failure = Some(why),
            None => {}
        }
    }
}
