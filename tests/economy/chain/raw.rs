//! A transaction of a scripted chain as nodes tell of it, decoded by the family.

use alloy::primitives::U256;
use vm::{
    Block, Deposit, Transaction,
    ethereum::{
        decode::{self, Mined},
        raw::{Quantity, RawLog, RawTransaction},
    },
};

use super::{Chain, Done};

impl Chain {
    pub(super) fn decoded<'a>(&self, block: &Block, done: &'a Done) -> &'a Transaction {
        done.decoded.get_or_init(|| self.decode(block, done))
    }

    fn decode(&self, block: &Block, done: &Done) -> Transaction {
        let logs = done.logs.iter().enumerate().map(|(at, log)| RawLog {
            address: log.address,
            topics: log.data.topics().to_vec(),
            data: log.data.data.clone(),
            block_hash: block.hash,
            transaction_hash: done.tx.hash,
            log_index: quantity(done.first + at as u64),
            removed: false,
        });
        let mined = Mined {
            number: block.number,
            hash: block.hash,
            succeeded: done.success,
            logs: logs.collect(),
            transaction: RawTransaction {
                hash: done.tx.hash,
                block_hash: Some(block.hash),
                block_number: Some(quantity(block.number)),
                from: done.tx.from,
                to: Some(done.tx.to),
                value: Some(Quantity(done.tx.value)),
                input: Some(done.tx.data.clone()),
                calls: None,
            },
        };
        decode::decode(&self.rules, &mined, block).unwrap()
    }

    /// What a transaction put into the depository.
    pub fn deposits(&self, block: &Block, done: &Done) -> Vec<Deposit> {
        match self.decoded(block, done) {
            Transaction::Succeeded(receipt) => receipt.deposits.clone().unwrap_or_default(),
            Transaction::Failed(_) | Transaction::Missing => Vec::new(),
        }
    }
}

fn quantity(number: u64) -> Quantity {
    Quantity(U256::from(number))
}
