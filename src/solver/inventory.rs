//! What the solver can spend: balances at the head minus what its transactions on their way will take.

use std::sync::Arc;

use vm::{Address, Amount};

use super::{SolverError, account::SolverAccount, chain::TradingChain};
use crate::store::{
    Batch, Store,
    rows::{RESERVATION, attempt, reservation},
    walk::Walk,
};

/// What an account has of a currency that no transaction on its way will take.
pub async fn available(
    store: &Arc<dyn Store>,
    account: &SolverAccount,
    currency: &Address,
) -> Result<Amount, SolverError> {
    // Reservations are read before the balance: a payment that lands in between counts twice, never not at all.
    let reserved = reserved(store, &account.name, currency).await?;
    let failover = &account.chain.providers.failover;
    let balance = failover.balance(&account.owner, currency).await?;
    Ok(balance.saturating_sub(reserved))
}

/// What an account's transactions on their way will take of a currency. `name`: what the account's rows are called.
pub async fn reserved(
    store: &Arc<dyn Store>,
    name: &str,
    currency: &Address,
) -> Result<Amount, SolverError> {
    let prefix = reservation::prefix(name, currency.bytes());
    let mut walk = Walk::under(&**store, RESERVATION, prefix);
    let mut total = Amount::ZERO;
    while let Some((_, amount)) = walk.next().await? {
        total = total.saturating_add(reservation::decode(&amount)?);
    }
    Ok(total)
}

/// What an attempt may take, the native currency first.
pub fn needs(
    chain: &TradingChain,
    attempt: &attempt::Attempt,
) -> Result<Vec<(Address, Amount)>, SolverError> {
    let family = chain.family();
    let needs = attempt.spends.iter();
    let needs = needs.map(|(currency, amount)| Ok((family.address(currency)?, *amount)));
    needs.collect()
}

/// Adds an attempt's reservations to a commit.
pub fn reserve(
    mut batch: Batch,
    account: &SolverAccount,
    attempt: &attempt::Attempt,
    id: &[u8],
) -> Result<Batch, SolverError> {
    for (currency, amount) in needs(&account.chain, attempt)? {
        let key = reservation::key(&account.name, currency.bytes(), id);
        batch = batch.put(key, reservation::encode(amount));
    }
    Ok(batch)
}

/// Adds to a commit that an attempt takes nothing any more.
pub fn release(
    mut batch: Batch,
    account: &SolverAccount,
    attempt: &attempt::Attempt,
    id: &[u8],
) -> Result<Batch, SolverError> {
    for (currency, _) in needs(&account.chain, attempt)? {
        batch = batch.delete(reservation::key(&account.name, currency.bytes(), id));
    }
    Ok(batch)
}
