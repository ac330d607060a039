//! Deletes requests that nobody paid: their orders received only dust, and nothing else happened. They are deleted
//! some time after their order's last deadline, because a deposit of the smallest unit must not cost a row for ever.
//! The depositor can take the dust back through the hub, which needs none of these rows.
//!
//! A deposit without a price is not dust. Where no solver has priced it, the request's quote does: for requests that
//! their user executes, and for deposits beyond the request's limits.
//!
//! The sweep finds them by their parked deposits; a paid request usually has none.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{B256, U256};

use super::KNOWN;
use crate::{
    request::{
        Execution, Request,
        fact::{Deposit, Facts, Standing},
        last_deadline,
        name::Name,
        quoted,
        reason::RefundFailReason,
    },
    store::{
        Batch, Expect, Key, Range, Store,
        requests::RequestsError,
        rows::{
            self, HISTORY, LISTED,
            claim::Claim,
            deposit_tx, listed,
            parked::{self, Parked},
            summary, tx_details,
        },
        walk::Stored,
    },
};

/// Milliseconds after the last deadline, and after the newest deposit was parked.
const KEPT: u64 = KNOWN;
/// The most rows of a request's parked deposits that are read: there are never so many.
const DUST: usize = 1_024;
/// With more wanted transactions of a network than this, the sweep deletes none of its requests.
const WANTED: usize = 1_024;

/// The requests of a page of parked deposits that may be due. `now` in unix milliseconds.
pub(super) fn candidates(page: &[Stored], now: u64) -> Result<BTreeSet<B256>, RequestsError> {
    let mut found = BTreeSet::new();
    for (key, bytes) in page {
        let row = Parked::decode(bytes)?;
        if row.minor && row.since.saturating_add(KEPT) <= now {
            found.insert(parked::ids(key)?.0);
        }
    }
    Ok(found)
}

/// Deletes the request `id` if it is due; returns whether it did.
pub(super) async fn forget(
    store: &dyn Store,
    id: &B256,
    now: u64,
    wanted: &mut Wanted,
) -> Result<bool, RequestsError> {
    let Some(seen) = Seen::of(store, id).await? else {
        return Ok(false);
    };
    let end = last_deadline(&seen.request.order).saturating_mul(1_000);
    if now < end.saturating_add(KEPT) || !seen.is_dust(now) {
        return Ok(false);
    }
    if is_told(store, id).await? || seen.is_wanted((store, id), wanted).await? {
        return Ok(false);
    }
    let batch = seen.gone(store, id).await?;
    Ok(store.commit(batch).await?.is_applied())
}

/// The requests with wanted transactions, by network; `None` where there are too many. Read once per page of
/// candidates.
#[derive(Default)]
pub(super) struct Wanted(BTreeMap<String, Option<BTreeSet<B256>>>);

impl Wanted {
    async fn has(
        &mut self,
        store: &dyn Store,
        network: &str,
        id: &B256,
    ) -> Result<bool, RequestsError> {
        if !self.0.contains_key(network) {
            let rows = store.scan(tx_details::range(network, WANTED)).await?;
            let all = match rows.len() == WANTED {
                true => None,
                false => {
                    let requests = rows
                        .iter()
                        .map(|(key, bytes)| Ok(tx_details::row(key, bytes)?.wanted.request));
                    Some(requests.collect::<Result<_, rows::RowError>>()?)
                }
            };
            self.0.insert(network.to_owned(), all);
        }
        let known = self.0.get(network).and_then(Option::as_ref);
        Ok(known.is_none_or(|all| all.contains(id)))
    }
}

/// Whether the deposit is parked because it is worth less than its refund costs.
fn is_too_little(row: &Parked) -> bool {
    row.why == RefundFailReason::AmountTooLowToRefund
}

/// The rows of a request, with the bytes that they must still have when they are deleted.
struct Seen {
    request: Request,
    facts: Facts,
    claim: Option<Claim>,
    parked: Vec<(Key, Parked)>,
    expected: Vec<(Key, Expect)>,
}

impl Seen {
    async fn of(store: &dyn Store, id: &B256) -> Result<Option<Self>, RequestsError> {
        let keys = [
            rows::request::key(id),
            rows::facts::key(id),
            rows::claim::key(id),
            rows::open::key(id),
        ];
        let found = store.read_all(&keys).await?;
        let [Some(request), Some(facts), claim, None] = &found[..] else {
            return Ok(None);
        };
        let dust = store.scan(parked::of(id, DUST + 1)).await?;
        if dust.len() > DUST {
            return Ok(None);
        }
        let decoded = dust
            .iter()
            .map(|(key, bytes)| Ok((key.clone(), Parked::decode(bytes)?)));
        let seen = Self {
            request: rows::request::decode(request)?,
            facts: rows::facts::decode(facts)?,
            claim: claim.as_deref().map(Claim::decode).transpose()?,
            parked: decoded.collect::<Result<_, rows::RowError>>()?,
            expected: Vec::new(),
        };
        let own = keys.into_iter().zip(found);
        let own = own.map(|(key, bytes)| (key, Expect::unchanged(bytes)));
        let dust = dust
            .into_iter()
            .map(|(key, bytes)| (key, Expect::Equals(bytes)));
        let expected = own.chain(dust).collect();
        Ok(Some(Self { expected, ..seen }))
    }

    /// Whether every deposit was parked long ago as worth less than its refund costs, and nothing was paid, sent or
    /// decided. Deposits that may be somebody's money, or that have no price, keep the request.
    fn is_dust(&self, now: u64) -> bool {
        let facts = &self.facts;
        let idle = facts.own.is_empty() && facts.attempts.is_empty() && facts.settlement.is_none();
        let judged = match &self.claim {
            Some(claim) => {
                claim.legs.is_empty() && claim.pauses.is_empty() && claim.waits.is_none()
            }
            // No solver ever handles the request.
            None => self.request.execution == Execution::User,
        };
        let mut rows = self.parked.iter();
        let listed = rows.all(|(_, row)| {
            let old = row.since.saturating_add(KEPT) <= now;
            let of = (row.network.as_str(), row.currency.as_str());
            row.minor && old && (is_too_little(row) || self.is_nothing(of, row.amount))
        });
        let mut deposits = facts.deposits.iter();
        idle && judged && listed && deposits.all(|one| self.has_ended(one))
    }

    /// Whether nothing more happens to the deposit: the solver parked it as dust, or never handles it.
    fn has_ended(&self, one: &Deposit) -> bool {
        match &self.claim {
            Some(claim) => {
                let mut rows = self.parked.iter();
                let id = &one.onchain_id;
                let listed =
                    rows.any(|(key, row)| is_too_little(row) && key.name.ends_with(id.as_slice()));
                self.facts.is_minor(one) && listed && claim.parked.contains(id)
            }
            // A quorum has confirmed it, not one provider.
            None => {
                one.standing == Standing::Final
                    && self.facts.is_refused(one)
                    && self.is_nothing((&one.network, &one.currency), one.amount)
            }
        }
    }

    fn is_nothing(&self, of: (&str, &str), units: U256) -> bool {
        quoted::is_nothing(&self.request, of, units)
    }

    /// Whether one of the request's transactions is still wanted in full.
    async fn is_wanted(
        &self,
        (store, id): (&dyn Store, &B256),
        wanted: &mut Wanted,
    ) -> Result<bool, RequestsError> {
        let deposits = self.facts.deposits.iter();
        let networks: BTreeSet<&str> = deposits.map(|one| one.network.as_str()).collect();
        for network in networks {
            if wanted.has(store, network, id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes everything stored about the request.
    async fn gone(&self, store: &dyn Store, id: &B256) -> Result<Batch, RequestsError> {
        let mut keys = BTreeSet::from([rows::order::key(&self.request.order_id)]);
        for one in &self.facts.deposits {
            keys.insert(deposit_tx::key(
                &one.network,
                one.place.number,
                &one.onchain_id,
            ));
            if only_of(store, &one.transaction, id).await? {
                keys.insert(tx_details::seen(&one.network, &one.transaction));
            }
        }
        let key = summary::key(id);
        let mut batch = Batch::new();
        if let Some(bytes) = store.read(&key).await? {
            let summary = summary::decode(&bytes)?;
            keys.extend(listed::rows(&summary)?.into_keys());
            keys.extend(listed::sendings(&summary, &self.facts).into_keys());
            batch = batch.remove(key, bytes);
        }
        for (key, expect) in &self.expected {
            batch = batch.expect(key.clone(), expect.clone());
            if *expect != Expect::Absent {
                batch = batch.delete(key.clone());
            }
        }
        Ok(keys.into_iter().fold(batch, Batch::delete))
    }
}

/// Whether the transaction belongs to no other request: many may deposit in one.
async fn only_of(store: &dyn Store, transaction: &str, id: &B256) -> Result<bool, RequestsError> {
    let range = Range::new(LISTED, &listed::sent(&Name::of(transaction)), None, 2);
    let rows = store.scan(range).await?;
    Ok(rows
        .iter()
        .all(|(key, _)| key.name.ends_with(id.as_slice())))
}

/// Whether an event of the request is left that a follower may still deliver.
async fn is_told(store: &dyn Store, id: &B256) -> Result<bool, RequestsError> {
    let range = Range::new(HISTORY, id.as_slice(), None, 1);
    Ok(!store.scan(range).await?.is_empty())
}
