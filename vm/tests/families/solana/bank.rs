//! What only trading asks a node: accounts, fees, transactions that are sent.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::node::World;

/// Lamports of an account of `bytes` bytes, as the cluster has it by default.
pub fn rent(bytes: u64) -> u64 {
    (128 + bytes) * 6_960
}

/// What a node says besides its blocks.
#[derive(Clone, Default)]
pub struct Bank {
    pub epoch: u64,
    /// Micro-lamports for a compute unit, of late slots.
    pub bids: Vec<u64>,
    /// By the texts of accounts.
    pub lamports: BTreeMap<String, u64>,
    /// The signed transactions that it took, each once.
    pub taken: Vec<Vec<u8>>,
    /// Why it takes none: a code and a message.
    pub refuses: Option<(i64, String)>,
    /// What it says that a transaction would do.
    pub trial: Value,
    /// The oldest slot that it keeps.
    pub first: u64,
}

impl World {
    /// So many more blocks are finalized.
    pub fn advance(&mut self, blocks: u64) {
        for _ in 0..blocks {
            let newest = self.blocks.last_key_value().map_or(0, |(slot, _)| *slot);
            self.put_block(newest + 1, newest, 0);
            self.finalized += 1;
        }
        self.count();
    }

    /// So many more slots are finalized, of which every second one has no block.
    pub fn advance_skipping(&mut self, slots: u64) {
        for _ in 0..slots / 2 {
            let newest = self.blocks.last_key_value().map_or(0, |(slot, _)| *slot);
            self.put_block(newest + 2, newest, 0);
        }
        self.finalized += slots;
        while !self.blocks.contains_key(&self.finalized) {
            self.finalized -= 1;
        }
        self.count();
    }

    /// Numbers the blocks.
    fn count(&mut self) {
        for (height, block) in (1..).zip(self.blocks.values_mut()) {
            let height: u64 = height;
            block["blockHeight"] = json!(height);
        }
    }
}

pub fn answer(world: &mut World, method: &str, params: &Value) -> Value {
    let (finalized, bank) = (world.finalized, &mut world.bank);
    let result = |value: Value| json!({"result": value});
    let stated = |value: Value| json!({"result": {"context": {"slot": finalized}, "value": value}});
    match method {
        "getEpochInfo" => result(json!({
            "epoch": bank.epoch, "slotIndex": 1, "slotsInEpoch": 432_000, "absoluteSlot": finalized,
            "blockHeight": finalized, "transactionCount": null,
        })),
        "getRecentPrioritizationFees" => {
            let bids = bank.bids.iter();
            result(
                bids.map(|bid| json!({"slot": 1, "prioritizationFee": bid}))
                    .collect(),
            )
        }
        "getBalance" => {
            let lamports = bank.lamports.get(params[0].as_str().unwrap());
            stated(json!(lamports.copied().unwrap_or_default()))
        }
        "getMinimumBalanceForRentExemption" => result(json!(rent(params[0].as_u64().unwrap()))),
        "getFirstAvailableBlock" => result(json!(bank.first)),
        "getMultipleAccounts" => {
            let keys = params[0].as_array().unwrap().iter();
            let found = keys.map(|key| world.accounts.get(key.as_str().unwrap()).cloned());
            stated(found.map(Option::unwrap_or_default).collect())
        }
        "getSignatureStatuses" => {
            let id = params[0][0].as_str().unwrap();
            let found = world.transactions.get(id).map(|found| {
                let slot = found["slot"].as_u64().unwrap();
                let sureness = if slot <= finalized {
                    "finalized"
                } else {
                    "confirmed"
                };
                json!({"slot": slot, "confirmations": null, "err": found["meta"]["err"],
                       "status": {"Ok": null}, "confirmationStatus": sureness})
            });
            json!({"result": {"context": {"slot": finalized + 4}, "value": [found]}})
        }
        "sendTransaction" => {
            if let Some((code, message)) = &bank.refuses {
                return json!({"error": {"code": code, "message": message}});
            }
            let raw = BASE64_STANDARD.decode(params[0].as_str().unwrap()).unwrap();
            if !bank.taken.contains(&raw) {
                bank.taken.push(raw.clone());
            }
            result(json!(bs58::encode(&raw[1..65]).into_string()))
        }
        "simulateTransaction" => stated(bank.trial.clone()),
        _ => json!({"error": {"code": -32_601, "message": "refused"}}),
    }
}
