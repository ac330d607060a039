//! Requests that nobody paid: dust was deposited for their orders, and nothing else was ever seen. They are
//! forgotten some time after their order's last deadline: a deposit for a wei must not cost a row for good. Who
//! wants the dust takes it back through the hub, which needs none of these rows.
//!
//! They are found by their parked deposits, of which a request that was paid has none as a rule.

use std::collections::BTreeSet;

use alloy::primitives::B256;

use super::KNOWN;
use crate::{
    request::{Request, fact::Facts, last_deadline, name::Name, reason::RefundFailReason},
    store::{
        Batch, Expect, Key, Outcome, Range, Store,
        requests::RequestsError,
        rows::{
            self, HISTORY, LISTED,
            claim::Claim,
            listed,
            parked::{self, Parked},
            sighting, summary, witness,
        },
        walk::Stored,
    },
};

/// Milliseconds after the last deadline, and after the newest deposit was parked.
const KEPT: u64 = KNOWN;
/// Rows of a request's parked deposits that are read: there are never so many.
const DUST: usize = 1_024;
/// Transactions of a network that wait to be seen: with more of them nothing of it is forgotten yet.
const WANTED: usize = 1_024;

/// The requests of a page of parked deposits that may have had their time. `now` in unix milliseconds.
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

/// Forgets the request `id` if it has had its time; whether it did.
pub(super) async fn forget(store: &dyn Store, id: &B256, now: u64) -> Result<bool, RequestsError> {
    let Some(seen) = Seen::of(store, id).await? else {
        return Ok(false);
    };
    let end = last_deadline(&seen.request.order).saturating_mul(1_000);
    if now < end.saturating_add(KEPT) || !seen.is_dust(now) {
        return Ok(false);
    }
    if is_told(store, id).await? || seen.is_wanted(store, id).await? {
        return Ok(false);
    }
    let batch = seen.gone(store, id).await?;
    let done = store.commit(batch).await?;
    Ok(matches!(done, Outcome::Applied { .. }))
}

/// What there is of a request, with the bytes that must still be there when it is forgotten.
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
        let as_read = |bytes: Option<Vec<u8>>| bytes.map_or(Expect::Absent, Expect::Equals);
        let own = keys.into_iter().zip(found);
        let own = own.map(|(key, bytes)| (key, as_read(bytes)));
        let dust = dust
            .into_iter()
            .map(|(key, bytes)| (key, Expect::Equals(bytes)));
        let expected = own.chain(dust).collect();
        Ok(Some(Self { expected, ..seen }))
    }

    /// Every deposit is parked as worth less than giving it back costs, by the solver and long ago, and
    /// nothing was paid, sent or decided besides. What the index parked may be somebody's money, and so may
    /// be what has no price: they stay listed.
    fn is_dust(&self, now: u64) -> bool {
        let facts = &self.facts;
        let idle = facts.own.is_empty() && facts.attempts.is_empty() && facts.settlement.is_none();
        let Some(claim) = &self.claim else {
            return false;
        };
        let unpaid = claim.legs.is_empty() && claim.pauses.is_empty() && claim.waits.is_none();
        let mut deposits = facts.deposits.iter();
        let listed = |id: &B256| {
            let mut rows = self.parked.iter();
            rows.any(|(key, row)| {
                let priced = row.why == RefundFailReason::AmountTooLowToRefund;
                row.minor && priced && key.name.ends_with(id.as_slice())
            })
        };
        let old = self
            .parked
            .iter()
            .all(|(_, row)| row.since.saturating_add(KEPT) <= now);
        let dust = deposits.all(|one| {
            let id = &one.onchain_id;
            facts.is_minor(one) && listed(id) && claim.parked.contains(id)
        });
        idle && unpaid && old && dust && self.parked.len() == facts.deposits.len()
    }

    /// Whether one of its transactions waits to be seen in full.
    async fn is_wanted(&self, store: &dyn Store, id: &B256) -> Result<bool, RequestsError> {
        let deposits = self.facts.deposits.iter();
        let networks: BTreeSet<&str> = deposits.map(|one| one.network.as_str()).collect();
        for network in networks {
            let rows = store.scan(witness::range(network, WANTED)).await?;
            let full = rows.len() == WANTED;
            for (key, bytes) in rows {
                if full || witness::row(&key, &bytes)?.wanted.request == *id {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Everything that is stored of it.
    async fn gone(&self, store: &dyn Store, id: &B256) -> Result<Batch, RequestsError> {
        let mut keys = BTreeSet::from([rows::order::key(&self.request.order_id)]);
        for one in &self.facts.deposits {
            keys.insert(sighting::key(
                &one.network,
                one.place.number,
                &one.onchain_id,
            ));
            if only_of(store, &one.transaction, id).await? {
                keys.insert(witness::seen(&one.network, &one.transaction));
            }
        }
        let key = summary::key(id);
        let mut batch = Batch::new();
        if let Some(bytes) = store.read(&key).await? {
            let summary = summary::decode(&bytes)?;
            keys.extend(listed::rows(&summary)?.into_keys());
            keys.extend(listed::sendings(&summary, &self.facts).into_keys());
            batch = batch.expect(key.clone(), Expect::Equals(bytes)).delete(key);
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

/// Whether nobody else's request was seen in the transaction: many may deposit in one.
async fn only_of(store: &dyn Store, transaction: &str, id: &B256) -> Result<bool, RequestsError> {
    let range = Range {
        kind: LISTED,
        prefix: listed::sent(&Name::of(transaction)),
        after: None,
        limit: 2,
        reverse: false,
    };
    let rows = store.scan(range).await?;
    Ok(rows
        .iter()
        .all(|(key, _)| key.name.ends_with(id.as_slice())))
}

/// Whether an event of it is left that somebody may still be told of.
async fn is_told(store: &dyn Store, id: &B256) -> Result<bool, RequestsError> {
    let range = Range {
        kind: HISTORY,
        prefix: id.to_vec(),
        after: None,
        limit: 1,
        reverse: false,
    };
    Ok(!store.scan(range).await?.is_empty())
}
