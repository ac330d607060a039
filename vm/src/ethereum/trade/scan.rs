//! Finds deposits through one node: `eth_getLogs` over ranges of blocks, and calldata where logs do
//! not name the order.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use alloy::rpc::types::Header;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::{
    bloom::{self, Summary},
    deposit_tx::{self, Found, Mention},
};
use crate::{
    ReadError,
    ethereum::{
        decode::{self, Rules},
        raw::{RawHeader, RawTransaction},
        rpc::{self, Answer, Rpc, doubt, expect},
        rpc_error,
    },
    trade::{DepositTx, ScanError, Scanner},
    types::{B256, Block, Bytes, EvmAddress},
};

/// Transactions per round.
const BATCH: usize = 100;
/// Blocks whose logs are asked for at a time.
const AT_ONCE: usize = 4;

/// A [`Scanner`] of one node.
pub struct Scan {
    pub rpc: Arc<Rpc>,
    pub rules: Rules,
}

#[async_trait]
impl Scanner for Scan {
    async fn head(&self) -> Result<Block, ReadError> {
        let answer = self.rpc.one(block_at("latest")).await?;
        header(answer)?.ok_or_else(|| ReadError::Unavailable("no head".into()))
    }

    /// Chains of this family skip no height.
    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        let at = format!("{height:#x}");
        let block = header(self.rpc.one(block_at(&at)).await?)?;
        match block {
            Some(block) if block.number != height => Err(doubt("a header of another height")),
            block => Ok(block),
        }
    }

    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        let Some(depository) = self.rules.depository.filter(|_| !blocks.is_empty()) else {
            return Ok(Vec::new());
        };
        let found = match self.logs(depository, &blocks).await {
            // Of one block each receipt is the next smaller thing.
            Err(ScanError::TooLarge(_)) if blocks.start() == blocks.end() => {
                let wanted = |log: &Found| deposit_tx::is_asked_for(&self.rules, depository, log);
                self.of_block(*blocks.end(), wanted).await?.1
            }
            found => found?,
        };
        Ok(self.deposit_txs(found, &blocks).await?)
    }

    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        let Some(depository) = self.rules.depository.filter(|_| from <= end.number) else {
            return Ok(Vec::new());
        };
        let blocks = self.summaries(from..=end.number).await?;
        bloom::linked(&blocks, from, end).map_err(doubt)?;
        let holding = blocks.iter();
        let holding = holding.filter(|summary| summary.may_hold(&self.rules, depository));
        let asked: Vec<_> = holding.map(|summary| self.held(summary)).collect();
        let held = stream::iter(asked).buffered(AT_ONCE).try_concat();
        let mut omitted: Vec<DepositTx> = held.await?;
        let shown: HashMap<_, _> = shown.iter().map(|tx| (&tx.transaction.bytes, tx)).collect();
        omitted.retain(|tx| shown.get(&tx.transaction.bytes) != Some(&tx));
        Ok(omitted)
    }
}

impl Scan {
    /// What a block holds by all of its logs, which are those of its bloom.
    async fn held(&self, summary: &Summary) -> Result<Vec<DepositTx>, ScanError> {
        let filter = json!([{"blockHash": summary.block.hash}]);
        let answer = self.rpc.one(rpc::call("eth_getLogs", filter)).await?;
        let found = match logs(answer) {
            Err(ScanError::TooLarge(_)) => self.all_of(&summary.block).await?,
            found => found?,
        };
        if !summary.is_made_of(&found) {
            return Err(doubt("the logs of a block are not those of its bloom").into());
        }
        let number = summary.block.number;
        Ok(self.deposit_txs(found, &(number..=number)).await?)
    }

    /// The headers of the range, each of which is what its hash says.
    async fn summaries(&self, blocks: RangeInclusive<u64>) -> Result<Vec<Summary>, ReadError> {
        let numbers: Vec<u64> = blocks.collect();
        let mut summaries = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(BATCH) {
            let calls = numbers
                .iter()
                .map(|number| block_at(&format!("{number:#x}")));
            for answer in self.rpc.round(calls.collect()).await? {
                let header: Option<Header> = expect("eth_getBlockByNumber", answer)?;
                let missing = || ReadError::Unavailable("a block below the head is missing".into());
                let header = header.ok_or_else(missing)?;
                summaries.push(Summary::of(&header).map_err(doubt)?);
            }
        }
        Ok(summaries)
    }

    /// All logs of a block that has too many for one answer.
    async fn all_of(&self, block: &Block) -> Result<Vec<Found>, ReadError> {
        let (hash, found) = self.of_block(block.number, |_| true).await?;
        match hash == block.hash {
            true => Ok(found),
            false => Err(doubt("the chain changed between two reads")),
        }
    }

    /// The deposits that logs of the range tell of.
    async fn deposit_txs(
        &self,
        found: Vec<Found>,
        blocks: &RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ReadError> {
        let mentions = deposit_tx::group(&self.rules, found, blocks).map_err(doubt)?;
        let inputs = self.inputs(&mentions).await?;
        let deposit_txs = mentions.iter().filter_map(|mention| {
            let input = inputs.get(&mention.transaction);
            mention.deposit_tx(&self.rules, input.map_or(&[], AsRef::as_ref))
        });
        Ok(deposit_txs.collect())
    }

    /// The logs of the range, between two looks at its last block: a node that does not have it yet
    /// would answer with what it has, and one that changes forks with parts of both.
    async fn logs(
        &self,
        depository: EvmAddress,
        blocks: &RangeInclusive<u64>,
    ) -> Result<Vec<Found>, ScanError> {
        let end = format!("{:#x}", blocks.end());
        let [emitted, moved] = deposit_tx::filters(&self.rules, depository, blocks);
        let calls = vec![
            block_at(&end),
            rpc::call("eth_getLogs", emitted),
            rpc::call("eth_getLogs", moved),
            block_at(&end),
        ];
        let answers = self.rpc.round_about_one(calls).await.map_err(failed)?;
        let [before, emitted, moved, after] =
            <[Answer; 4]>::try_from(answers).map_err(|_| doubt("an answer is missing"))?;
        let before = header(before)?
            .ok_or_else(|| ReadError::Unavailable("behind the end of the range".into()))?;
        if before.number != *blocks.end() || header(after)?.as_ref() != Some(&before) {
            return Err(doubt("the chain changed between two reads").into());
        }
        let mut found = logs(emitted)?;
        found.append(&mut logs(moved)?);
        Ok(found)
    }

    /// The calldata of the transactions that cannot be read without.
    async fn inputs(&self, mentions: &[Mention]) -> Result<HashMap<B256, Bytes>, ReadError> {
        let wanted: Vec<&Mention> = mentions
            .iter()
            .filter(|mention| mention.needs_input(&self.rules))
            .collect();
        let mut inputs = HashMap::with_capacity(wanted.len());
        for wanted in wanted.chunks(BATCH) {
            let calls = wanted
                .iter()
                .map(|mention| rpc::call("eth_getTransactionByHash", json!([mention.transaction])));
            let answers = self.rpc.round(calls.collect()).await?;
            for (mention, answer) in wanted.iter().zip(answers) {
                inputs.insert(mention.transaction, self.input(mention, answer)?);
            }
        }
        Ok(inputs)
    }

    fn input(&self, mention: &Mention, answer: Answer) -> Result<Bytes, ReadError> {
        let found: Option<RawTransaction> = expect("eth_getTransactionByHash", answer)?;
        let found =
            found.ok_or_else(|| ReadError::Unavailable("a log without its transaction".into()))?;
        if found.hash != mention.transaction || found.block_hash != Some(mention.hash) {
            return Err(doubt("a log of another block than its transaction"));
        }
        let input = decode::input(&self.rules, &found).map_err(doubt)?;
        Ok(Bytes::copy_from_slice(input))
    }
}

fn block_at(at: &str) -> rpc::Call {
    rpc::call("eth_getBlockByNumber", json!([at, false]))
}

fn header(answer: Answer) -> Result<Option<Block>, ReadError> {
    let header: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
    header
        .map(|header| {
            header
                .block()
                .ok_or_else(|| doubt("a block number out of range"))
        })
        .transpose()
}

fn logs(answer: Answer) -> Result<Vec<Found>, ScanError> {
    match answer {
        Err(refused) if rpc_error::is_too_large(&refused) => {
            Err(ScanError::TooLarge(refused.message))
        }
        answer => Ok(expect("eth_getLogs", answer)?),
    }
}

/// Failed exchanges that a smaller range cures, besides answers too large for us: work that takes too long,
/// and statuses of providers that refuse a range without a word.
const TOO_LARGE: &[&str] = &[
    "timed out",
    "HTTP status 400",
    "HTTP status 408",
    "HTTP status 413",
    "HTTP status 504",
];

fn failed(error: ReadError) -> ScanError {
    match error {
        ReadError::TooLarge => ScanError::TooLarge(error.to_string()),
        ReadError::Unavailable(what) if TOO_LARGE.iter().any(|large| what.contains(large)) => {
            ScanError::TooLarge(what)
        }
        error => error.into(),
    }
}
