//! The logs of one block, from its transactions' receipts. A node may refuse a block with too many logs, and no range
//! is smaller than a block; each receipt can still be read.

use serde::Deserialize;
use serde_json::json;

use super::{deposit_tx::Found, scan::Scan};
use crate::{
    ReadError,
    ethereum::rpc::{self, doubt, expect},
    types::B256,
};

/// Receipts that are asked for together at first; fewer where they are too large together.
const RECEIPTS: usize = 32;

/// A block with its transactions' hashes.
#[derive(Deserialize)]
struct Block {
    hash: B256,
    transactions: Vec<B256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    transaction_hash: Option<B256>,
    block_hash: Option<B256>,
    #[serde(default)]
    logs: Vec<Found>,
}

impl Block {
    /// The logs of the transaction `hash` that are `wanted`.
    fn logs(
        &self,
        hash: &B256,
        receipt: Receipt,
        wanted: &(impl Fn(&Found) -> bool + Sync),
    ) -> Result<Vec<Found>, ReadError> {
        let of = [
            (receipt.block_hash, self.hash),
            (receipt.transaction_hash, *hash),
        ];
        let logs: Vec<Found> = receipt.logs.into_iter().filter(wanted).collect();
        // A receipt may lack its hashes where it shows nothing that is wanted: some nodes list receipts of their own
        // making.
        let alike = |(named, known): &(Option<B256>, B256)| match named {
            Some(named) => named == known,
            None => logs.is_empty(),
        };
        match of.iter().all(alike) {
            true => Ok(logs),
            false => Err(doubt("a receipt of another block or transaction")),
        }
    }
}

impl Scan {
    /// The logs of block `number` that are `wanted`, with the hash of their block.
    pub(super) async fn of_block(
        &self,
        number: u64,
        wanted: impl Fn(&Found) -> bool + Sync,
    ) -> Result<(B256, Vec<Found>), ReadError> {
        let at = format!("{number:#x}");
        let call = rpc::call("eth_getBlockByNumber", json!([at, false]));
        let answer = self.rpc.one(call).await?;
        let block: Option<Block> = expect("eth_getBlockByNumber", answer)?;
        let block = block.ok_or_else(|| ReadError::Unavailable(format!("no block {number}")))?;
        let found = match self.together(&at, &block, &wanted).await? {
            Some(found) => found,
            None => self.singly(&block, &wanted).await?,
        };
        Ok((block.hash, found))
    }

    /// All receipts in one answer; `None` where the node does not give them so, or not one for each
    /// transaction of the block: it may list its own beside them.
    async fn together(
        &self,
        at: &str,
        block: &Block,
        wanted: &(impl Fn(&Found) -> bool + Sync),
    ) -> Result<Option<Vec<Found>>, ReadError> {
        let call = rpc::call("eth_getBlockReceipts", json!([at]));
        let answer = match self.rpc.round_about_one(vec![call]).await {
            Err(ReadError::TooLarge | ReadError::Unavailable(_)) => return Ok(None),
            answers => answers?.pop(),
        };
        let Some(Ok(answer)) = answer else {
            return Ok(None);
        };
        let receipts: Result<Option<Vec<Receipt>>, _> = expect("eth_getBlockReceipts", Ok(answer));
        let Ok(Some(receipts)) = receipts else {
            return Ok(None);
        };
        let named = receipts.iter().map(|receipt| receipt.transaction_hash);
        if !named.eq(block.transactions.iter().copied().map(Some)) {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (hash, receipt) in block.transactions.iter().zip(receipts) {
            found.extend(block.logs(hash, receipt, wanted)?);
        }
        Ok(Some(found))
    }

    /// The receipts by their transactions, as many together as fit into an answer.
    async fn singly(
        &self,
        block: &Block,
        wanted: &(impl Fn(&Found) -> bool + Sync),
    ) -> Result<Vec<Found>, ReadError> {
        let (mut found, mut rest, mut most) = (Vec::new(), &block.transactions[..], RECEIPTS);
        while let Some(first) = rest.first() {
            let (some, later) = rest.split_at(most.min(rest.len()));
            let calls = some
                .iter()
                .map(|hash| rpc::call("eth_getTransactionReceipt", json!([hash])));
            match self.rpc.round_about_one(calls.collect()).await {
                Ok(answers) => {
                    for (hash, answer) in some.iter().zip(answers) {
                        let receipt: Option<Receipt> = expect("eth_getTransactionReceipt", answer)?;
                        let missing = || ReadError::Unavailable("a receipt is missing".into());
                        let receipt = receipt.ok_or_else(missing)?;
                        found.extend(block.logs(hash, receipt, wanted)?);
                    }
                    rest = later;
                }
                Err(ReadError::TooLarge) if some.len() > 1 => most = some.len() / 2,
                // No oracle reads it either: whatever it deposited, it stops no other.
                Err(ReadError::TooLarge) => {
                    tracing::error!(transaction = %first, "a receipt is larger than any that is read");
                    rest = later;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}
