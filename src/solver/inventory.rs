//! What the solver can spend: balances at the head minus what its transactions on their way will take.

use std::sync::Arc;

use vm::{Address, Amount};

use super::{SolverError, account::SolverAccount, chain::TradingChain};
use crate::store::{
    Batch, Store,
    rows::{attempt::Attempt, reservation},
};

/// Rows read at once.
const PAGE: usize = 256;

/// What a lane's account has of a currency that no transaction on its way will take.
pub async fn available(
    store: &Arc<dyn Store>,
    lane: &SolverAccount,
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

/// What an attempt may take, the native currency first.
pub fn needs(
    site: &TradingChain,
    attempt: &Attempt,
) -> Result<Vec<(Address, Amount)>, SolverError> {
    let family = site.family();
    let needs = attempt.spends.iter();
    let needs = needs.map(|(currency, amount)| Ok((family.address(currency)?, *amount)));
    needs.collect()
}

/// Adds an attempt's reservations to a commit.
pub fn reserve(
    mut batch: Batch,
    lane: &SolverAccount,
    attempt: &Attempt,
    id: &[u8],
) -> Result<Batch, SolverError> {
    for (currency, amount) in needs(&lane.site, attempt)? {
        let key = reservation::key(&lane.name, currency.bytes(), id);
        batch = batch.put(key, reservation::encode(amount));
    }
    Ok(batch)
}

/// Adds to a commit that an attempt takes nothing any more.
pub fn release(
    mut batch: Batch,
    lane: &SolverAccount,
    attempt: &Attempt,
    id: &[u8],
) -> Result<Batch, SolverError> {
    for (currency, _) in needs(&lane.site, attempt)? {
        batch = batch.delete(reservation::key(&lane.name, currency.bytes(), id));
    }
    Ok(batch)
}
