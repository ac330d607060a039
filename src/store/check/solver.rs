//! The solver's rows.

use std::collections::BTreeSet;

use alloy::primitives::B256;

use super::Desk;
use crate::{
    request::fact::Purpose,
    store::{
        StoreError,
        rows::{
            self, Row,
            claim::{Claim, Leg, Stage},
            lane::{Owner, Slot},
        },
    },
};

impl Desk<'_> {
    pub(super) async fn solver(&mut self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Claim(id, claim) => {
                self.request(id).await?;
                self.claim(id, claim).await
            }
            Row::LaneSlot {
                network,
                nonce,
                slot,
            } => self.nonce(network, *nonce, slot).await,
            Row::Reservation { network, nonce, .. } => {
                let why = "no transaction has its nonce";
                self.demand(rows::lane::slot_key(network, *nonce), why, |_| true)
                    .await
            }
            Row::Lease(_, lease) => {
                if lease.fence == 0 {
                    self.complain("nobody has held it");
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
                    self.complain("its claim goes on with the deposit");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the solver uses the deposit. What the index parked stands in no claim.
    async fn goes_on(&self, request: &B256, deposit: &B256) -> Result<bool, StoreError> {
        let key = rows::claim::key(request);
        let found = self.store.read(&key).await?;
        let row = found.and_then(|value| Row::decode(&key, &value).ok());
        let Some(Row::Claim(_, claim)) = row else {
            return Ok(false);
        };
        let uses = |leg: &Leg| {
            let excess = leg.purpose == Purpose::Excess;
            leg.deposit == *deposit && leg.stage != Stage::Failed && !excess
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
        let legs = || claim.legs.iter();
        let alive = || legs().filter(|leg| leg.stage != Stage::Failed);
        if alive().filter(|leg| leg.purpose == Purpose::Fill).count() > 1 {
            self.complain("two fills of it may land");
        }
        for leg in legs() {
            // What exceeds an order's amount goes back beside the fill.
            let used = alive().filter(|one| {
                let same = (one.purpose == Purpose::Excess) == (leg.purpose == Purpose::Excess);
                one.deposit == leg.deposit && same
            });
            if used.count() > 1 {
                self.complain(format!("deposit {} is used twice", leg.deposit));
            }
            if matches!(leg.stage, Stage::Open | Stage::Confirmed) {
                let (lane, nonce) = (&leg.lane, leg.nonce);
                let why = format!("nonce {nonce} of {lane} is not its own");
                self.demand(rows::lane::slot_key(lane, nonce), why, |row| {
                    matches!(row, Row::LaneSlot { slot, .. } if slot.owner == Owner::Request(*id))
                })
                .await?;
            }
        }
        let parked = claim.parked.iter().copied();
        let deposits: BTreeSet<_> = legs().map(|leg| leg.deposit).chain(parked).collect();
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

    async fn nonce(&mut self, network: &str, nonce: u64, slot: &Slot) -> Result<(), StoreError> {
        if slot.versions.is_empty() {
            self.complain("no transaction has the nonce");
        }
        let why = "the lane has not come to this nonce";
        self.demand(
            rows::lane::key(network),
            why,
            |row| matches!(row, Row::Lane(_, lane) if nonce < lane.next),
        )
        .await?;
        match &slot.owner {
            Owner::Request(id) => {
                let why = format!("the claim of {id} does not know of it");
                self.demand(rows::claim::key(id), why, |row| {
                    let Row::Claim(_, claim) = row else {
                        return false;
                    };
                    let mut legs = claim.legs.iter();
                    legs.any(|leg| leg.lane == network && leg.nonce == nonce)
                })
                .await
            }
            Owner::Settlement(id) => self.request(id).await,
            Owner::Allowance { .. } | Owner::Gap => Ok(()),
        }
    }
}
