//! What the solver can spend: balances at the head minus what its transactions on their way will take.

use std::sync::Arc;

use vm::{Address, Amount, U256};

use super::{SolverError, lane::Lane, site::Site};
use crate::store::{
    Batch, Store,
    rows::{lane::Slot, reservation},
};

/// Rows read at once.
const PAGE: usize = 256;

/// What a lane's account has of a currency that no transaction on its way will take.
pub async fn available(
    store: &Arc<dyn Store>,
    lane: &Lane,
    currency: &Address,
) -> Result<Amount, SolverError> {
    // Reserved before the balance is read: what lands in between counts twice, never not at all.
    let reserved = reserved(store, &lane.name, currency).await?;
    let balance = lane.site.balance(&lane.owner, currency).await?;
    Ok(balance.saturating_sub(reserved))
}

/// What transactions on their way will take of a currency.
pub async fn reserved(
    store: &Arc<dyn Store>,
    lane: &str,
    currency: &Address,
) -> Result<Amount, SolverError> {
    let (mut total, mut after) = (Amount::ZERO, None);
    loop {
        let range = reservation::range(lane, currency.bytes(), after.as_ref(), PAGE);
        let rows = store.scan(range).await?;
        for (_, amount) in &rows {
            total = total.saturating_add(reservation::decode(amount)?);
        }
        if rows.len() < PAGE {
            return Ok(total);
        }
        after = rows.into_iter().next_back().map(|(key, _)| key);
    }
}

/// What a slot may take: of the native currency for gas, bytes and value, and of others.
pub fn needs(site: &Site, slot: &Slot) -> Result<Vec<(Address, Amount)>, SolverError> {
    let gas = slot
        .versions
        .iter()
        .map(|version| U256::from(version.gas).saturating_mul(U256::from(version.max_fee)));
    let gas = gas.max().unwrap_or_default();
    let fees = gas.saturating_add(slot.data_fee);
    let mut needs = vec![(site.native.clone(), fees.saturating_add(slot.value))];
    for (currency, amount) in &slot.spends {
        needs.push((site.family().address(currency)?, *amount));
    }
    Ok(needs)
}

/// Adds the slot's reservations to a commit.
pub fn reserve(
    mut batch: Batch,
    lane: &Lane,
    slot: &Slot,
    nonce: u64,
) -> Result<Batch, SolverError> {
    for (currency, amount) in needs(&lane.site, slot)? {
        let key = reservation::key(&lane.name, currency.bytes(), nonce);
        batch = batch.put(key, reservation::encode(amount));
    }
    Ok(batch)
}

/// Adds to a commit that the slot takes nothing any more.
pub fn release(
    mut batch: Batch,
    lane: &Lane,
    slot: &Slot,
    nonce: u64,
) -> Result<Batch, SolverError> {
    for (currency, _) in needs(&lane.site, slot)? {
        batch = batch.delete(reservation::key(&lane.name, currency.bytes(), nonce));
    }
    Ok(batch)
}
