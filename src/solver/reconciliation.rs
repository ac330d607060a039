//! The reconciliation: what was paid and is not settled, against what the hub owes for it. What the
//! oracle refuses, what is overdue, and what was paid beyond its deposit is the gap.

use std::collections::HashMap;

use alloy::{hex, primitives::U256};
use serde::{Deserialize, Serialize};

use super::{Solver, SolverError};
use crate::{
    request::{
        Request,
        fact::{Deposit, Facts, Purpose},
    },
    store::{
        Batch, Expect,
        rows::{
            self,
            claim::{Claim, Leg, Stage},
            parked::Parked,
            pause::{self, Paused},
            settlement::{self, Settlement},
        },
        walk::Walk,
    },
};

/// Milliseconds in which a payment that is final should be settled.
const DUE: u64 = 3_600_000;
/// Percent by which a payment may be worth more than its deposit before the rest counts as a gap: prices move between a
/// payment and its reconciliation.
const PLAY: u64 = 10;

/// What a reconciliation found; values in thousandths of a dollar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciliation {
    /// Payments that are not settled yet; of those, refused and overdue ones.
    pub unsettled: u64,
    pub refused: u64,
    pub overdue: u64,
    pub paid: u64,
    pub owed: u64,
    pub gap: u64,
    /// Payments without a price: they are not in the sums.
    pub unpriced: u64,
    /// Rows that cannot be read.
    pub unreadable: u64,
    /// Parked deposits that are worth something, and others.
    pub parked: u64,
    pub minor: u64,
    /// Unix milliseconds.
    pub at: u64,
    /// Paid and owed by the row's name, as of the last time that both had a price.
    #[serde(skip)]
    known: HashMap<Vec<u8>, (u64, u64)>,
}

impl Reconciliation {
    fn add(&mut self, row: &Settlement, worth: Option<(u64, u64)>, now: u64) {
        let overdue = now.saturating_sub(row.since) >= DUE;
        self.unsettled += 1;
        self.refused += u64::from(row.refused);
        self.overdue += u64::from(overdue);
        let Some((paid, owed)) = worth else {
            self.unpriced += 1;
            return;
        };
        self.paid = self.paid.saturating_add(paid);
        self.owed = self.owed.saturating_add(owed);
        let allowed = owed.saturating_add(owed / 100 * PLAY);
        let short = match row.refused || overdue {
            true => paid.max(owed),
            false => paid.saturating_sub(allowed),
        };
        self.gap = self.gap.saturating_add(short);
    }

    fn publish(&self) {
        let shown = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        metrics::gauge!("intentd_solver_unsettled").set(shown(self.unsettled));
        metrics::gauge!("intentd_solver_unsettled_refused").set(shown(self.refused));
        metrics::gauge!("intentd_solver_unsettled_overdue").set(shown(self.overdue));
        metrics::gauge!("intentd_solver_unpriced").set(shown(self.unpriced));
        metrics::gauge!("intentd_solver_unreadable").set(shown(self.unreadable));
        metrics::gauge!("intentd_solver_paid_usd").set(shown(self.paid / 1_000));
        metrics::gauge!("intentd_solver_owed_usd").set(shown(self.owed / 1_000));
        metrics::gauge!("intentd_solver_gap_usd").set(shown(self.gap.div_ceil(1_000)));
        metrics::gauge!("intentd_solver_parked", "worth" => "real").set(shown(self.parked));
        metrics::gauge!("intentd_solver_parked", "worth" => "minor").set(shown(self.minor));
    }
}

impl Solver {
    /// Adds up everything that was paid and is not settled. A gap above the limit pauses fills until the operator
    /// resumes them. `now` in unix milliseconds.
    pub async fn reconcile(&self, now: u64) -> Result<Reconciliation, SolverError> {
        let mut reconciliation = Reconciliation {
            at: now,
            ..Reconciliation::default()
        };
        // While a price feed is away, its last price counts: no gap is hidden.
        let before = self
            .reconciliation
            .borrow()
            .as_ref()
            .map(|reconciliation| reconciliation.known.clone());
        let before = before.unwrap_or_default();
        let mut walk = Walk::of(&**self.requests.store(), rows::SETTLEMENT);
        while let Some((key, value)) = walk.next().await? {
            let Ok(row) = Settlement::decode(&value) else {
                reconciliation.unreadable += 1;
                tracing::error!(row = %hex::encode(&key.name), "a settlement cannot be read");
                continue;
            };
            let worth = self.balance(&key, now).await.unwrap_or_else(|error| {
                reconciliation.unreadable += 1;
                tracing::error!(row = %hex::encode(&key.name), %error, "a payment cannot be read");
                None
            });
            let known = worth.or_else(|| before.get(&key.name).copied());
            if let Some(known) = known {
                reconciliation.known.insert(key.name, known);
            }
            reconciliation.add(&row, known, now);
        }
        self.count_parked(&mut reconciliation).await?;
        reconciliation.publish();
        if reconciliation.gap > self.gap_limit.saturating_mul(1_000) {
            self.pause_for(&reconciliation, now).await?;
        }
        self.reconciliation
            .send_replace(Some(reconciliation.clone()));
        Ok(reconciliation)
    }

    async fn count_parked(&self, reconciliation: &mut Reconciliation) -> Result<(), SolverError> {
        let mut walk = Walk::of(&**self.requests.store(), rows::PARKED);
        while let Some((_, value)) = walk.next().await? {
            match Parked::decode(&value).map(|row| row.minor) {
                Ok(true) => reconciliation.minor += 1,
                Ok(false) => reconciliation.parked += 1,
                Err(error) => {
                    reconciliation.unreadable += 1;
                    tracing::error!(%error, "a parked deposit cannot be read");
                }
            }
        }
        Ok(())
    }

    async fn pause_for(
        &self,
        reconciliation: &Reconciliation,
        now: u64,
    ) -> Result<(), SolverError> {
        let gap = reconciliation.gap / 1_000;
        let paused = Paused {
            why: format!("{gap} dollars were paid that the hub does not owe, or not yet"),
            since: now,
        };
        // An earlier pause keeps its reason.
        let batch = Batch::new()
            .expect(pause::key(), Expect::Absent)
            .put(pause::key(), paused.encode()?);
        self.requests.store().commit(batch).await?;
        tracing::error!(
            gap,
            limit = self.gap_limit,
            "fills are paused: the books do not balance"
        );
        Ok(())
    }

    /// What was paid with a deposit and what the hub owes for it, in thousandths of a dollar.
    async fn balance(
        &self,
        key: &crate::store::Key,
        now: u64,
    ) -> Result<Option<(u64, u64)>, SolverError> {
        let (id, deposit) = settlement::ids(key)?;
        let Some(request) = self.requests.by_id(&id).await? else {
            return Ok(None);
        };
        let facts: Facts = self.requests.facts(&id).await?;
        let claim = self.requests.store().read(&rows::claim::key(&id)).await?;
        let claim = claim.as_deref().map(Claim::decode).transpose()?;
        let mut deposits = facts.deposits.iter();
        let Some((claim, deposit)) = claim.zip(deposits.find(|one| one.onchain_id == deposit))
        else {
            return Ok(None);
        };
        let mut paid = Some(0_u64);
        for (network, currency, amount) in payments(&request, &claim, deposit) {
            let value = self.value((network, currency), amount, now).await;
            paid = paid
                .zip(value)
                .map(|(sum, value)| sum.saturating_add(value));
        }
        let Deposit {
            network, currency, ..
        } = deposit;
        let owed = self.value((network, currency), deposit.amount, now).await;
        Ok(paid.zip(owed))
    }

    /// Thousandths of a dollar.
    pub(super) async fn value(&self, what: (&str, &str), amount: U256, now: u64) -> Option<u64> {
        let (network, currency) = what;
        let chain = &self.accounts.get(network)?.chain;
        let listed = chain.listed(currency)?;
        let price = self.prices.price(listed, now / 1_000).await.ok()?;
        let unit = U256::from(10).checked_pow(U256::from(listed.decimals))?;
        let value = amount.saturating_mul(price.usd) / unit;
        let milli = value / U256::from(1_000_000_000_000_000_u64);
        Some(u64::try_from(milli).unwrap_or(u64::MAX))
    }
}

/// Network, currency and amount of everything that was paid with a deposit.
fn payments<'a>(
    request: &'a Request,
    claim: &'a Claim,
    deposit: &Deposit,
) -> Vec<(&'a str, &'a str, U256)> {
    let mut paid = Vec::new();
    let used = |leg: &&Leg| {
        leg.deposit == deposit.onchain_id && matches!(leg.stage, Stage::Confirmed | Stage::Final)
    };
    for leg in claim.legs.iter().filter(used) {
        let network = leg.network.as_str();
        if leg.purpose == Purpose::Fill {
            let payments = request.order.output.payments.iter().zip(&leg.payments);
            paid.extend(payments.map(|(due, paid)| (network, due.currency.as_str(), *paid)));
        } else {
            paid.push((network, leg.currency.as_str(), leg.amount));
        }
    }
    paid
}
