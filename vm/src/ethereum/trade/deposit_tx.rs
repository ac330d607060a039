//! Logs of a range of blocks → transactions with deposits. Pure.
//!
//! The judgement is [`deposit::read`], the oracle's own: it looks only at logs that are asked for
//! here, so that it finds in them what it finds in the whole receipt.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    ethereum::{
        decode::{Doubt, Logged, Rules, log_index},
        deposit::{self, Calldata},
        event::{self, CALL_EXECUTED, ERC20_DEPOSIT, NATIVE_DEPOSIT, TRANSFER},
        raw::{Quantity, RawLog},
    },
    trade::DepositTx,
    types::{B256, Bytes, Deposit, EvmAddress, Refusal, TxRef},
};

/// One log of `eth_getLogs`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub address: EvmAddress,
    pub topics: Vec<B256>,
    data: Bytes,
    block_hash: B256,
    block_number: Quantity,
    transaction_hash: B256,
    log_index: Quantity,
    #[serde(default)]
    removed: bool,
}

/// What the depositories tell themselves.
const OWN_EVENTS: [B256; 3] = [NATIVE_DEPOSIT, ERC20_DEPOSIT, CALL_EXECUTED];

/// Whether one of the [`filters`] asks for a log.
pub fn is_asked_for(rules: &Rules, depository: EvmAddress, log: &Found) -> bool {
    let topic = log.topics.first();
    let logged =
        topic.is_some_and(|topic| OWN_EVENTS.contains(topic)) && rules.executes(&log.address);
    logged || (topic == Some(&TRANSFER) && log.topics.get(2) == Some(&depository.into_word()))
}

/// Filters that together give every log which says something about a deposit: what the depositories
/// tell themselves, and what tokens moved to the one where deposits count.
pub fn filters(rules: &Rules, depository: EvmAddress, blocks: &RangeInclusive<u64>) -> [Value; 2] {
    let from = format!("{:#x}", blocks.start());
    let to = format!("{:#x}", blocks.end());
    [
        json!([{
            "fromBlock": from, "toBlock": to,
            "address": rules.depositories(), "topics": [OWN_EVENTS],
        }]),
        json!([{
            "fromBlock": from, "toBlock": to,
            "topics": [TRANSFER, null, depository.into_word()],
        }]),
    ]
}

/// The logs of one transaction, in their order.
pub struct Mention {
    pub number: u64,
    pub hash: B256,
    pub transaction: B256,
    logs: Vec<Logged>,
}

/// Groups logs by transaction, in block order. Refuses logs from outside of `blocks` and a height
/// with two blocks: the provider showed two forks.
pub fn group(
    rules: &Rules,
    found: Vec<Found>,
    blocks: &RangeInclusive<u64>,
) -> Result<Vec<Mention>, Doubt> {
    let mut hashes: BTreeMap<u64, B256> = BTreeMap::new();
    let mut ordered: BTreeMap<(u64, u32), (B256, RawLog)> = BTreeMap::new();
    for found in found.into_iter().filter(|found| !found.removed) {
        let number = found.block_number.small();
        let number = number
            .filter(|number| blocks.contains(number))
            .ok_or(Doubt("a log from outside of the range"))?;
        if *hashes.entry(number).or_insert(found.block_hash) != found.block_hash {
            return Err(Doubt("logs of two blocks of one height"));
        }
        let log = found.raw();
        let index = log_index(&log).ok_or(Doubt("log index out of range"))?;
        ordered.insert((number, index), (log.transaction_hash, log));
    }
    let mut mentions: Vec<Mention> = Vec::new();
    for ((number, index), (transaction, log)) in ordered {
        let Some(event) = event::parse(rules, &log) else {
            continue;
        };
        let logged = Logged { index, event };
        match mentions.last_mut() {
            Some(last) if last.number == number && last.transaction == transaction => {
                last.logs.push(logged);
            }
            _ => mentions.push(Mention {
                number,
                hash: log.block_hash,
                transaction,
                logs: vec![logged],
            }),
        }
    }
    Ok(mentions)
}

impl Found {
    fn raw(self) -> RawLog {
        RawLog {
            address: self.address,
            topics: self.topics,
            data: self.data,
            block_hash: self.block_hash,
            transaction_hash: self.transaction_hash,
            log_index: self.log_index,
            removed: self.removed,
        }
    }
}

impl Mention {
    /// Whether only the calldata can name this deposit: one bare transfer, without an event.
    pub fn needs_input(&self, rules: &Rules) -> bool {
        let (deposits, _) = self.deposits(rules, &[]);
        let mut tokens = deposits.iter().filter(|d| d.currency != rules.native);
        let first = tokens.next().is_some_and(|deposit| *deposit.id == *NOBODY);
        first && tokens.next().is_none()
    }

    /// The deposits, if there are any. `input` is the calldata, where it is needed.
    pub fn deposit_tx(&self, rules: &Rules, input: &[u8]) -> Option<DepositTx> {
        let (deposits, doubt) = self.deposits(rules, input);
        (!deposits.is_empty()).then(|| DepositTx {
            transaction: TxRef {
                text: Arc::from(format!("{:#x}", self.transaction)),
                bytes: self.transaction.into(),
                hint: None,
            },
            number: self.number,
            hash: self.hash,
            deposits,
            doubt,
        })
    }

    fn deposits(&self, rules: &Rules, input: &[u8]) -> (Vec<Deposit>, Option<Refusal>) {
        // Who sent it is seen when the deposit is confirmed.
        let calldata = Calldata {
            input,
            sender: None,
        };
        match deposit::read(rules, &self.logs, calldata) {
            Ok(deposits) => (deposits, None),
            Err(refusal) => {
                let logged = |at| deposit::logged(rules, at, (&self.logs, calldata));
                let logged = rules.depository.map(logged);
                (logged.unwrap_or_default(), Some(refusal))
            }
        }
    }
}

/// The id of a deposit that names no order.
const NOBODY: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

#[cfg(test)]
mod tests;
