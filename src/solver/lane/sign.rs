//! Versions of a slot: the first one, dearer ones, and the one that only uses the nonce up.

use vm::{
    Amount, Bytes, CodecError, ReadError, U256,
    trade::{Authorization, Call, Draft, Fees, Intended, Revert},
};

use super::{Lane, Plan};
use crate::{
    solver::SolverError,
    store::rows::lane::{self as row, Slot, Version},
};

/// Nodes replace a waiting transaction from a tenth more on; an eighth is safe from rounding.
const DEARER: u128 = 8;
/// Bytes that a slot's versions may have together: a row has its limit.
const MOST_BYTES: usize = 600 << 10;
const MOST_VERSIONS: usize = 64;

/// Wei per gas unit: at most, and the tip.
type Price = (u128, u128);

impl Lane {
    /// A slot with its first version.
    pub(super) async fn first(
        &self,
        plan: &Plan,
        nonce: u64,
        (fees, data_fee, now): (Fees, Amount, u64),
    ) -> Result<Slot, SolverError> {
        let most = fees.base.saturating_mul(2).saturating_add(fees.priority);
        let spends = plan.spends.iter();
        let mut slot = Slot {
            owner: plan.owner.clone(),
            to: plan.call.to.text().to_owned(),
            data: plan.call.data.clone(),
            value: plan.call.value,
            authorizations: plan.authorizations.iter().map(stored).collect(),
            gas: plan.gas,
            data_fee,
            spends: spends
                .map(|(currency, amount)| (currency.text().to_owned(), *amount))
                .collect(),
            versions: Vec::new(),
            sent_at: now,
            refused: 0,
        };
        let price = (most.min(self.gas.most), fees.priority);
        let version = self.version(&slot, nonce, price, None).await?;
        slot.versions.push(version);
        Ok(slot)
    }

    /// A slot that only uses its nonce up.
    pub(super) async fn plug(&self, nonce: u64, now: u64) -> Result<Slot, SolverError> {
        let nothing = self.nothing();
        let data_fee = self.most_data_fee(&nothing, &[]);
        let (fees, gas, data_fee) = futures::try_join!(self.fees(), self.plain_gas(), data_fee)?;
        let most = fees.base.saturating_mul(2).saturating_add(fees.priority);
        let mut slot = Slot {
            owner: row::Owner::Gap,
            to: self.owner.text().to_owned(),
            data: Bytes::new(),
            value: U256::ZERO,
            authorizations: Vec::new(),
            gas,
            data_fee,
            spends: Vec::new(),
            versions: Vec::new(),
            sent_at: now,
            refused: 0,
        };
        let price = (most.min(self.gas.most), fees.priority);
        let version = self.version(&slot, nonce, price, Some(gas)).await?;
        slot.versions.push(version);
        Ok(slot)
    }

    /// Whether a call still succeeds with `gas` units and no more, as it will be sent: code can tell an
    /// estimate by the gas that it has.
    pub async fn rehearse(
        &self,
        call: &Call,
        authorizations: &[Authorization],
        gas: u64,
    ) -> Result<Result<(), Revert>, SolverError> {
        let intended = Intended {
            call,
            authorizations,
            fees: Some(self.fees().await?),
            most: Some(gas),
        };
        Ok(self.site.estimate(&intended).await?.map(drop))
    }

    /// What a transaction takes here that does nothing.
    pub async fn plain_gas(&self) -> Result<u64, SolverError> {
        let call = self.nothing();
        let estimate = self.site.estimate(&Intended::free(&call)).await?;
        let gas = estimate.map_err(|revert| {
            SolverError::Read(ReadError::Doubtful(format!(
                "a transaction that does nothing reverts: {}",
                revert.reason
            )))
        })?;
        Ok(gas.saturating_add(gas / 4))
    }

    /// What a transaction that only uses its nonce up calls.
    fn nothing(&self) -> Call {
        Call {
            from: self.owner.clone(),
            to: self.owner.clone(),
            data: Bytes::new(),
            value: U256::ZERO,
        }
    }

    /// `slot` with a version that pays an eighth more than its newest and at least what is asked
    /// now; `None` where that would be above the operator's limit. Once cancelled, a slot stays so.
    pub(super) async fn dearer(
        &self,
        slot: &Slot,
        nonce: u64,
        now: u64,
        cancel: bool,
    ) -> Result<Option<Slot>, SolverError> {
        let Some(newest) = slot.versions.last() else {
            return Ok(None);
        };
        let bytes: usize = slot.versions.iter().map(|version| version.raw.len()).sum();
        let cancels = cancel || newest.cancels;
        let crowded = bytes > MOST_BYTES || slot.versions.len() >= MOST_VERSIONS;
        if crowded && cancels == newest.cancels {
            return Ok(None);
        }
        let fees = self.site.fees().await?;
        let asked = fees.base.saturating_mul(2).saturating_add(fees.priority);
        let raised = |price: u128| price.saturating_add(price.div_ceil(DEARER));
        let priority = raised(newest.max_priority_fee).max(fees.priority);
        let price = raised(newest.max_fee);
        if price > self.gas.most {
            return Ok(None);
        }
        let most = price.max(asked.min(self.gas.most));
        let price = (most, priority.min(most));
        let plain = match cancels {
            true => Some(self.plain_gas().await?),
            false => None,
        };
        let mut next = slot.clone();
        next.versions
            .push(self.version(slot, nonce, price, plain).await?);
        next.sent_at = now;
        Ok(Some(next))
    }

    /// What the chain charged for the bytes of a version besides gas, as far as anybody says so now.
    pub async fn slot_data_fee(&self, slot: &Slot, version: &Version) -> Amount {
        let call = match version.cancels {
            true => Ok((self.nothing(), Vec::new())),
            false => self.call(slot),
        };
        let Ok((call, authorizations)) = call else {
            return Amount::ZERO;
        };
        let fee = self.data_fee(&call, &authorizations).await;
        fee.unwrap_or_default()
    }

    /// What a slot's transaction does.
    fn call(&self, slot: &Slot) -> Result<(Call, Vec<Authorization>), CodecError> {
        let family = self.site.family();
        let call = Call {
            from: self.owner.clone(),
            to: family.address(&slot.to)?,
            data: slot.data.clone(),
            value: slot.value,
        };
        let authorizations = slot.authorizations.iter().map(|one| {
            Ok(Authorization {
                chain_id: one.chain_id,
                address: family.address(&one.address)?,
                nonce: one.nonce,
                y_parity: one.y_parity,
                r: one.r,
                s: one.s,
            })
        });
        Ok((call, authorizations.collect::<Result<_, CodecError>>()?))
    }

    /// `plain`: the gas of one that only uses the nonce up.
    async fn version(
        &self,
        slot: &Slot,
        nonce: u64,
        (max_fee, max_priority_fee): Price,
        plain: Option<u64>,
    ) -> Result<Version, SolverError> {
        let (call, authorizations) = match plain {
            Some(_) => (self.nothing(), Vec::new()),
            None => self.call(slot)?,
        };
        let draft = Draft {
            call,
            authorizations,
            nonce,
            gas: plain.unwrap_or(slot.gas),
            max_fee,
            max_priority_fee,
        };
        self.signed(&draft, plain.is_some()).await
    }

    async fn signed(&self, draft: &Draft, cancels: bool) -> Result<Version, SolverError> {
        let (codec, number) = (self.site.transactions, self.site.number);
        let digest = codec.digest(number, draft)?;
        let signature = self.signer.sign(&digest).await?;
        if signature.recover(&digest) != Ok(self.signer.address()) {
            return Err(SolverError::Sign(crate::sign::SignError::Foreign));
        }
        let (raw, hash) = codec.seal(number, draft, signature.as_bytes())?;
        Ok(Version {
            hash,
            raw,
            gas: draft.gas,
            max_fee: draft.max_fee,
            max_priority_fee: draft.max_priority_fee,
            cancels,
        })
    }
}

fn stored(authorization: &Authorization) -> row::Authorization {
    row::Authorization {
        chain_id: authorization.chain_id,
        address: authorization.address.text().to_owned(),
        nonce: authorization.nonce,
        y_parity: authorization.y_parity,
        r: authorization.r,
        s: authorization.s,
    }
}
