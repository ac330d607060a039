//! Lists deposits for the operator that no quorum has agreed about for days, with the reason. The operator may have
//! them looked at again, or dismiss them; agreement takes them off the list. It also lists deposits that are agreed
//! about but that pay nobody.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use vm::{B256, spelled_alike};

use super::{Confirmer, Due, Pending};
use crate::{
    index::{IndexError, apply},
    request::{
        Execution,
        fact::{Agreed, Deposit, Ending, Facts},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch, Expect,
        requests::RequestsError,
        rows::{
            claim::{self, Claim},
            parked::{self, Parked, Reasons},
        },
    },
};

/// Seconds after its block for which a deposit waits for agreement without being listed.
const PATIENCE: u64 = 172_800;
/// A pause lasts the transaction's age divided by this.
const PART: u64 = 8;
/// The longest pause, in milliseconds, after a quorum called a transaction unattestable. Anybody can make such a
/// transaction, as large as the largest that is read.
const LONGEST: u64 = 3_600_000;
/// The longest pause, in milliseconds, after no quorum answered: the deposit may well be attestable.
const UNANSWERED: u64 = 60_000;
/// Why a deposit is listed whose order pays nobody.
const BY_HIMSELF: &str = "the order's user acts by himself, nobody is paid from it: its depositor recovers it at an oracle";
/// Transactions whose pauses are remembered.
const MOST: usize = 4_096;

/// Unix milliseconds before which transactions, by network and text, are not looked at.
#[derive(Default)]
pub struct Pauses(Mutex<HashMap<(String, String), u64>>);

impl Pauses {
    pub fn rests(&self, network: &str, transaction: &str, now: u64) -> bool {
        let name = (network.to_owned(), transaction.to_owned());
        self.all().get(&name).is_some_and(|until| now < *until)
    }

    /// Notes that a quorum calls it unattestable.
    pub fn doubt(&self, due: &Due, now: u64) {
        self.rest(due, LONGEST, now);
    }

    /// Notes that no quorum answered about it.
    pub fn unanswered(&self, due: &Due, now: u64) {
        self.rest(due, UNANSWERED, now);
    }

    fn rest(&self, due: &Due, longest: u64, now: u64) {
        let ages = due.deposits.iter().map(|(_, deposit)| age(deposit, now));
        let pause = ages.min().unwrap_or_default().saturating_mul(1_000) / PART;
        let name = (due.network.clone(), due.transaction.clone());
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(&name) {
            make_room(&mut all, now);
        }
        all.insert(name, now.saturating_add(pause.min(longest)));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the pauses that are over, or else the half that ends first.
fn make_room(all: &mut HashMap<(String, String), u64>, now: u64) {
    all.retain(|_, until| now < *until);
    if all.len() >= MOST {
        let mut kept: Vec<_> = all.drain().collect();
        kept.sort_unstable_by_key(|(_, until)| *until);
        all.extend(kept.drain(MOST / 2..));
    }
}

impl Confirmer {
    /// Lists a deposit that no quorum has agreed about for long.
    pub(super) async fn shelve(
        &self,
        (request, deposit): &Pending,
        why: &str,
        now: u64,
    ) -> Result<(), IndexError> {
        if age(deposit, now) < PATIENCE
            || self.requests.facts(&request.id).await?.is_refused(deposit)
        {
            return Ok(());
        }
        let (network, transaction) = (&deposit.network, &deposit.transaction);
        let minor = mismatch(request, deposit).is_some();
        tracing::error!(
            network,
            transaction,
            why,
            "deposit is parked: nobody agrees about it"
        );
        let note = format!("not agreed about for days: {why}");
        let (row, ending) = listed(deposit, &note, (minor, minor), now);
        let key = parked::key(&request.id, &deposit.onchain_id);
        let batch = Batch::new().expect(key.clone(), Expect::Absent);
        let batch = batch.put(key, row.encode()?);
        let end = |facts: &mut Facts| facts.end(ending.clone());
        match self.requests.record(&request.id, now, batch, end).await {
            // It was listed meanwhile.
            Ok(_) | Err(RequestsError::Refused) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// `batch`, and the deposits off the list that [`Confirmer::shelve`] put there; returns which. What the solver
    /// has parked stays.
    pub(super) async fn unshelve(
        &self,
        batch: Batch,
        request: &B256,
        deposits: &[&Deposit],
    ) -> Result<(Batch, HashSet<B256>), IndexError> {
        let facts = self.requests.facts(request).await?;
        let refused = deposits.iter().filter(|one| facts.is_refused(one));
        let mut shelved: HashSet<B256> = refused.map(|one| one.onchain_id).collect();
        if shelved.is_empty() {
            return Ok((batch, shelved));
        }
        let key = claim::key(request);
        let found = self.requests.store().read(&key).await?;
        if let Some(claim) = found.as_deref().map(Claim::decode).transpose()? {
            shelved.retain(|id| !claim.parked.contains(id));
        }
        let batch = batch.expect(key, Expect::unchanged(found));
        let rows = shelved.iter().map(|id| parked::key(request, id));
        Ok((rows.fold(batch, Batch::delete), shelved))
    }
}

/// How a deposit ends whose order the user executes, so that no solver ever looks at it: it is listed, and its
/// depositor recovers it. Only the user's own deposit is recorded in the request.
pub(super) fn unpaid(
    (request, deposit): &Pending,
    agreed: &Agreed,
    now: u64,
) -> Option<(Parked, Ending)> {
    if request.execution != Execution::User {
        return None;
    }
    let users = agreed.own && spelled_alike(&deposit.depositor, &request.user);
    let minor = !users || apply::is_small(request, deposit);
    Some(listed(deposit, BY_HIMSELF, (minor, !users), now))
}

/// The list's row of a deposit that an operator has to look at, and how it ends; each may be minor.
fn listed(
    deposit: &Deposit,
    note: &str,
    (minor_row, minor): (bool, bool),
    now: u64,
) -> (Parked, Ending) {
    let (reason, refused) = (FailReason::Unknown, RefundFailReason::ManualRefundRequired);
    let reasons = Reasons {
        fill: reason,
        refund: refused,
    };
    let row = Parked::new(deposit, reasons, note, minor_row, now);
    let ending = Ending {
        deposit: deposit.onchain_id,
        reason,
        refused: Some(refused),
        minor,
    };
    (row, ending)
}

/// Seconds since the deposit's block. `now` in unix milliseconds.
fn age(deposit: &Deposit, now: u64) -> u64 {
    (now / 1_000).saturating_sub(deposit.place.time)
}

/// Removes the note that the deposits are not given back.
pub(super) fn forget(facts: &mut Facts, deposits: &HashSet<B256>) {
    facts
        .endings
        .retain(|ending| !deposits.contains(&ending.deposit) || ending.refused.is_none());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::request::{fact::Standing, fixtures};

    #[test]
    fn with_too_many_pauses_those_that_end_first_go() {
        let pauses = Pauses::default();
        let request = Arc::new(fixtures::request(1));
        let born = fixtures::deposit(1, Standing::Included).place.time;
        let due = |number: u64| {
            let mut deposit = fixtures::deposit(1, Standing::Included);
            deposit.transaction = number.to_string();
            deposit.place.time = born - number;
            Due::of(request.clone(), deposit)
        };
        let now = (born + 600) * 1_000;
        let most = MOST as u64;
        (0..most).for_each(|number| pauses.doubt(&due(number), now));
        let rests = |number: u64| pauses.rests("origin", &number.to_string(), now);
        assert!((0..most).all(rests));
        pauses.doubt(&due(most), now);
        assert!((most / 2..=most).all(rests) && !(0..most / 2).any(rests));
        // Where all end at the same time some have to go, and not all of them.
        let pauses = Pauses::default();
        for number in 0..=most {
            let mut due = due(0);
            due.transaction = number.to_string();
            pauses.unanswered(&due, now);
        }
        assert_eq!(pauses.all().len(), MOST / 2 + 1);
        assert!(
            pauses
                .all()
                .values()
                .all(|until| *until == now + UNANSWERED)
        );
        // What is over goes first.
        (0..most).for_each(|number| pauses.doubt(&due(number), now + UNANSWERED));
        assert!(pauses.all().len() <= MOST);
    }
}
