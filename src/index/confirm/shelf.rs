//! Deposits that no quorum has agreed about for days: the operator has them listed with why, may have
//! them looked at again or dismiss them, and agreement takes them off the list by itself. And those that
//! are agreed about and that nobody is paid from.

use vm::{B256, spelled_alike};

use super::{Confirmer, Pending};
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
            parked::{self, Parked},
        },
    },
};

/// Seconds after its block for which a deposit waits for agreement without being listed.
const PATIENCE: u64 = 172_800;
/// Between two looks at what a quorum calls unattestable: a part of its age, and at most this, in
/// milliseconds. Everybody can have one made, and it may be as large as what is read gets.
const PART: u64 = 8;
const LONGEST: u64 = 3_600_000;
/// Deposits of one order that are listed because nobody is paid from them: of those that are worth
/// something, and of the others.
const MOST_LISTED: usize = 32;
/// Deposits that such pauses are remembered of.
const MOST: usize = 4_096;

impl Confirmer {
    /// Whether a deposit is looked at later only.
    pub(super) fn rests(&self, deposit: &Deposit, now: u64) -> bool {
        let pauses = self.pauses.lock();
        let until = pauses
            .ok()
            .and_then(|it| it.get(&deposit.onchain_id).copied());
        until.is_some_and(|until| now < until)
    }

    /// Looks at a deposit later only.
    pub(super) fn rest(&self, deposit: &Deposit, now: u64) {
        let Ok(mut pauses) = self.pauses.lock() else {
            return;
        };
        if pauses.len() >= MOST {
            pauses.clear();
        }
        let pause = (age(deposit, now) * 1_000 / PART).min(LONGEST);
        pauses.insert(deposit.onchain_id, now.saturating_add(pause));
    }

    /// Lists a deposit that nobody has agreed about for long.
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
        let (network, transaction) = (deposit.network.clone(), deposit.transaction.clone());
        let (reason, refused) = (FailReason::Unknown, RefundFailReason::ManualRefundRequired);
        let minor = mismatch(request, deposit).is_some();
        tracing::error!(
            network,
            transaction,
            why,
            "deposit is parked: nobody agrees about it"
        );
        let row = Parked {
            network,
            transaction,
            depositor: deposit.depositor.clone(),
            currency: deposit.currency.clone(),
            amount: deposit.amount,
            reason,
            why: refused,
            note: format!("not agreed about for days: {why}"),
            minor,
            since: now,
        };
        let ending = Ending {
            deposit: deposit.onchain_id,
            reason,
            refused: Some(refused),
            minor,
        };
        let key = parked::key(&request.id, &deposit.onchain_id);
        let batch = Batch::new().expect(key.clone(), Expect::Absent);
        let batch = batch.put(key, row.encode()?);
        let end = |facts: &mut Facts| facts.end(ending.clone());
        match self.requests.record(&request.id, now, batch, end).await {
            // Somebody else listed it meanwhile.
            Ok(_) | Err(RequestsError::Refused) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// `batch`, and the deposit off the list if it was put there by [`Confirmer::shelve`]; whether it
    /// was. What the solver has parked stays.
    pub(super) async fn unshelve(
        &self,
        batch: Batch,
        request: &B256,
        deposit: &Deposit,
    ) -> Result<(Batch, bool), IndexError> {
        if !self.requests.facts(request).await?.is_refused(deposit) {
            return Ok((batch, false));
        }
        let key = claim::key(request);
        let found = self.requests.store().read(&key).await?;
        let claimed = found.as_deref().map(Claim::decode).transpose()?;
        if claimed.is_some_and(|claim| claim.parked.contains(&deposit.onchain_id)) {
            return Ok((batch, false));
        }
        let batch = batch
            .expect(key, found.map_or(Expect::Absent, Expect::Equals))
            .delete(parked::key(request, &deposit.onchain_id));
        Ok((batch, true))
    }
}

impl Confirmer {
    /// Whether one more of a request is listed like this.
    pub(super) async fn is_listed(&self, request: &B256, row: &Parked) -> Result<bool, IndexError> {
        let rows = parked::of(request, MOST);
        let mut alike = 0;
        for (_, known) in self.requests.store().scan(rows).await? {
            let known = Parked::decode(&known)?;
            alike += usize::from(known.note == row.note && known.minor == row.minor);
        }
        Ok(alike < MOST_LISTED)
    }
}

/// How a deposit ends of an order whose user acts by himself, so that no solver ever looks at it: it is
/// listed, and its depositor recovers it. Only the user's own is told in his request's record.
pub(super) fn unpaid(
    (request, deposit): &Pending,
    agreed: &Agreed,
    now: u64,
) -> Option<(Parked, Ending)> {
    if request.execution != Execution::User {
        return None;
    }
    let (reason, why) = (FailReason::Unknown, RefundFailReason::ManualRefundRequired);
    let users = agreed.own && spelled_alike(&deposit.depositor, &request.user);
    let row = Parked {
        network: deposit.network.clone(),
        transaction: deposit.transaction.clone(),
        depositor: deposit.depositor.clone(),
        currency: deposit.currency.clone(),
        amount: deposit.amount,
        reason,
        why,
        note: "the order's user acts by himself, nobody is paid from it: its depositor recovers it at an oracle".to_owned(),
        minor: !users || apply::is_small(request, deposit),
        since: now,
    };
    let ending = Ending {
        deposit: deposit.onchain_id,
        reason,
        refused: Some(why),
        minor: !users,
    };
    Some((row, ending))
}

/// Seconds since the deposit's block. `now` in unix milliseconds.
fn age(deposit: &Deposit, now: u64) -> u64 {
    (now / 1_000).saturating_sub(deposit.place.time)
}

/// Nothing says any more that the deposit is not given back.
pub(super) fn forget(facts: &mut Facts, deposit: &B256) {
    facts
        .endings
        .retain(|ending| ending.deposit != *deposit || ending.refused.is_none());
}
