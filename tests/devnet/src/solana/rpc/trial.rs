//! Answers for whoever means to send a transaction: what it would do, and the present epoch.

use serde_json::{Value, json};
use solana_clock::Clock;

use super::{Refused, View, accounts, as_value};

/// Slots of an epoch, as clusters have it by default.
const SLOTS_IN_EPOCH: u64 = 432_000;

impl View<'_> {
    /// On the block that the call's commitment names. The blockhash does not count.
    pub fn simulate(&self) -> Result<Value, Refused> {
        if self.option("replaceRecentBlockhash") != true {
            return Err(Refused::params("replaceRecentBlockhash: only true here"));
        }
        let transaction = accounts::decode(self.params)?;
        let checked = self.option("sigVerify") == true;
        let state = self.context()?.state.clone().with_sigverify(checked);
        let (error, meta) = match state.simulate_transaction(transaction) {
            Ok(done) => (None, done.meta),
            Err(failed) => (Some(failed.err), failed.meta),
        };
        self.in_context(json!({
            "err": as_value(error)?, "logs": meta.logs, "accounts": null,
            "unitsConsumed": meta.compute_units_consumed, "returnData": null,
        }))
    }

    pub fn epoch(&self) -> Result<Value, Refused> {
        let block = self.context()?;
        Ok(json!({
            "epoch": block.state.get_sysvar::<Clock>().epoch, "slotIndex": block.slot % SLOTS_IN_EPOCH,
            "slotsInEpoch": SLOTS_IN_EPOCH, "absoluteSlot": block.slot, "blockHeight": block.height,
            "transactionCount": null,
        }))
    }
}
