//! Transactions in full: which ones are wanted, written in the commit that puts them into a block, and
//! what was seen of them.

use alloy::primitives::B256;

use super::{
    Batch, Store,
    requests::RequestsError,
    rows::{
        RowError,
        witness::{self, Row, Wanted},
    },
};
use crate::request::{
    fact::Facts,
    witness::{Witness, news},
};

/// `batch`, and the transactions of `request` that `after` has in another block than `before`: wanted
/// from `now` (unix milliseconds) on.
pub(super) fn wanted(
    mut batch: Batch,
    request: &B256,
    (before, after): (&Facts, &Facts),
    now: u64,
) -> Result<Batch, RowError> {
    for one in news(before, after) {
        let row = Row {
            network: one.network.to_owned(),
            next: now,
            transaction: one.transaction.to_owned(),
            wanted: Wanted {
                request: *request,
                block: one.block,
                tries: 0,
            },
        };
        batch = batch.put(row.key(), row.value()?);
    }
    Ok(batch)
}

/// A transaction in full, once it has been seen. It may be of a block that facts have left since
/// ([`Witness::is_of`]).
pub async fn of(
    store: &dyn Store,
    network: &str,
    transaction: &str,
) -> Result<Option<Witness>, RequestsError> {
    let found = store.read(&witness::seen(network, transaction)).await?;
    let found = found.map(|bytes| witness::decode_seen(&bytes));
    Ok(found.transpose()?)
}
