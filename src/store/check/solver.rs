//! Checks the solver's rows.

use std::collections::BTreeSet;

use alloy::primitives::{B256, Bytes};

use super::Check;
use crate::{
    request::fact::Purpose,
    store::{
        StoreError,
        rows::{
            self, Row,
            account::Account,
            attempt::{self, Attempt, Owner},
            claim::{Claim, Leg, Stage},
        },
    },
};

impl Check<'_> {
    pub(super) async fn solver(&mut self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Claim(id, claim) => {
                self.request(id).await?;
                self.claim(id, claim).await
            }
            Row::Attempt { lane, id, attempt } => self.attempt((lane, id), attempt).await,
            Row::Resource {
                lane,
                resource,
                holder,
            } => {
                let holds = |row: &Row| matches!(row, Row::Attempt { attempt, .. } if attempt.resources.contains(resource));
                let why = "its attempt does not hold it";
                self.demand(attempt::key(lane, holder), why, holds).await
            }
            Row::Reservation { lane, attempt, .. } => {
                let why = "there is no such attempt";
                self.demand(attempt::key(lane, attempt), why, |_| true)
                    .await
            }
            Row::Lease(_, lease) => {
                if lease.fence == 0 {
                    self.error("nobody has held it");
                }
                Ok(())
            }
            Row::Settlement {
                request, deposit, ..
            } => self.settled(request, deposit).await,
            Row::Parked {
                request, deposit, ..
            } => {
                if self.goes_on(request, deposit).await? {
                    self.error("its claim goes on with the deposit");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the solver still uses the deposit. A claim does not contain deposits that the index parked.
    async fn goes_on(&self, request: &B256, deposit: &B256) -> Result<bool, StoreError> {
        let key = rows::claim::key(request);
        let found = self.store.read(&key).await?;
        let row = found.and_then(|value| Row::decode(&key, &value).ok());
        let Some(Row::Claim(_, claim)) = row else {
            return Ok(false);
        };
        let uses = |leg: &Leg| {
            let excess = leg.purpose == Purpose::Excess;
            leg.deposit == *deposit && leg.is_live() && !excess
        };
        Ok(!claim.parked.contains(deposit) && claim.legs.iter().any(uses))
    }

    async fn settled(&mut self, request: &B256, deposit: &B256) -> Result<(), StoreError> {
        let why = "no payment of its claim is final";
        let paid = |leg: &Leg| leg.deposit == *deposit && leg.stage == Stage::Final;
        self.demand(
            rows::claim::key(request),
            why,
            |row| matches!(row, Row::Claim(_, claim) if claim.legs.iter().any(paid)),
        )
        .await
    }

    async fn claim(&mut self, id: &B256, claim: &Claim) -> Result<(), StoreError> {
        let fills = claim.live().filter(|leg| leg.purpose == Purpose::Fill);
        if fills.count() > 1 {
            self.error("two fills of it may land");
        }
        for leg in &claim.legs {
            // The excess over an order's amount is refunded besides the fill.
            let used = claim.live().filter(|one| {
                let same = (one.purpose == Purpose::Excess) == (leg.purpose == Purpose::Excess);
                one.deposit == leg.deposit && same
            });
            if used.count() > 1 {
                self.error(format!("deposit {} is used twice", leg.deposit));
            }
            if matches!(leg.stage, Stage::Open | Stage::Confirmed) {
                let (lane, attempt) = (&leg.lane, &leg.attempt);
                let (name, _) = self.name(lane, attempt).await?;
                let why = format!("{name} of {lane} is not its own");
                self.demand(attempt::key(lane, attempt), why, |row| {
                    matches!(row, Row::Attempt { attempt, .. } if attempt.owner == Owner::Request(*id))
                })
                .await?;
            }
        }
        let parked = claim.parked.iter().copied();
        let used = claim.legs.iter().map(|leg| leg.deposit);
        let deposits: BTreeSet<_> = used.chain(parked).collect();
        for deposit in deposits {
            let why = format!("its facts do not tell of deposit {deposit}");
            self.demand(rows::facts::key(id), why, |row| {
                let Row::Facts(_, facts) = row else {
                    return false;
                };
                facts.deposits.iter().any(|one| one.onchain_id == deposit)
            })
            .await?;
        }
        Ok(())
    }

    /// The name of a lane's attempt, and the name of its kind.
    async fn name(&self, lane: &str, id: &[u8]) -> Result<(String, String), StoreError> {
        let found = self.store.read(&rows::account::key(lane)).await?;
        let lane = found.and_then(|value| Account::decode(&value).ok());
        let family = lane.and_then(|lane| vm::family(&lane.family));
        let landing = family.and_then(|family| family.landing);
        Ok(match landing.and_then(|landing| landing.label(id).ok()) {
            Some(label) => (label.to_string(), label.kind.to_owned()),
            None => (
                format!("attempt {}", Bytes::copy_from_slice(id)),
                "attempt".to_owned(),
            ),
        })
    }

    async fn attempt(
        &mut self,
        (lane, id): (&str, &Bytes),
        attempt: &Attempt,
    ) -> Result<(), StoreError> {
        let (_, kind) = self.name(lane, id).await?;
        if attempt.signed.is_empty() {
            self.error(format!("no transaction has the {kind}"));
        }
        let why = format!("the lane has not come to this {kind}");
        self.demand(rows::account::key(lane), why, |row| {
            let Row::Account(_, lane) = row else {
                return false;
            };
            let landing = vm::family(&lane.family).and_then(|family| family.landing);
            let knows = landing.and_then(|landing| landing.knows(&lane.own, id).ok());
            knows.unwrap_or_default()
        })
        .await?;
        for resource in &attempt.resources {
            let why = "it does not hold what it says";
            self.demand(
                attempt::resource(lane, resource),
                why,
                |row| matches!(row, Row::Resource { holder, .. } if holder == id),
            )
            .await?;
        }
        match &attempt.owner {
            Owner::Request(request) => {
                let why = format!("the claim of {request} does not know of it");
                self.demand(rows::claim::key(request), why, |row| {
                    let Row::Claim(_, claim) = row else {
                        return false;
                    };
                    let mut legs = claim.legs.iter();
                    legs.any(|leg| leg.lane == lane && leg.attempt == *id)
                })
                .await
            }
            Owner::Settlement(request) => self.request(request).await,
            Owner::Approval { .. } | Owner::Gap => Ok(()),
        }
    }
}
