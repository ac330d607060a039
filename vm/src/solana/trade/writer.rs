//! Hands transactions to one node, and reads what became of them.

use async_trait::async_trait;
use solana_client::{
    client_error::{ClientError, ClientErrorKind},
    rpc_custom_error::{
        JSON_RPC_SERVER_ERROR_NODE_UNHEALTHY as UNHEALTHY,
        JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE as PREFLIGHT,
        JSON_RPC_SERVER_ERROR_TRANSACTION_PRECOMPILE_VERIFICATION_FAILURE as PRECOMPILE,
        JSON_RPC_SERVER_ERROR_TRANSACTION_SIGNATURE_LEN_MISMATCH as SIGNATURES,
        JSON_RPC_SERVER_ERROR_TRANSACTION_SIGNATURE_VERIFICATION_FAILURE as SIGNATURE,
        JSON_RPC_SERVER_ERROR_UNSUPPORTED_TRANSACTION_VERSION as VERSION,
    },
    rpc_request::RpcError,
};
use solana_transaction_error::TransactionError;

use super::{
    super::{question::failed, raw::Sureness, transport::code},
    UNIT,
    node::Node,
};
use crate::{
    ReadError,
    protocol::text,
    trade::{Broadcast, Fate, FeeRate, Spent, Writer},
    types::{Amount, Bytes},
};

/// JSON-RPC: the parameters are wrong.
const INVALID_PARAMS: i64 = -32_602;
/// The least that is bid, in lamports for a unit of work: what leaders take before what bids nothing.
const LEAST: u64 = 10;
/// Letters of a reason that tell it from others: answers are cut off.
const TOLD: usize = 24;
/// Of a hundred late slots, those whose bid is no higher than ours.
const PERCENT: usize = 75;

#[async_trait]
impl Writer for Node {
    /// Nobody pays for work but what he bids. The signatures' fee is told beside it.
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        let asked = self.link.questions.bids();
        let bids = self.link.read(Box::pin(asked)).await?;
        Ok(FeeRate::new(0, bid(bids).into()))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let asked = async { Ok(self.link.questions.send_raw(raw).await) };
        match self.link.read(Box::pin(asked)).await? {
            Ok(()) => Ok(Broadcast::Accepted),
            Err(error) => answered(&error).ok_or_else(|| failed(error)),
        }
    }

    /// In a block once that is finalized. Until then any block of it may be left by the chain: it waits.
    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let id = bs58::encode(id).into_string();
        let questions = &self.link.questions;
        let asked = questions.status(&id);
        let (Some(status), _) = self.link.read(Box::pin(asked)).await? else {
            return Ok(Fate::Unknown);
        };
        if status.confirmation_status != Sureness::Finalized {
            return Ok(Fate::Waiting);
        }
        let asked = async { futures::try_join!(questions.transaction(&id), questions.slot()) };
        let (found, head) = self.link.read(Box::pin(asked)).await?;
        let unshown = || ReadError::Unavailable("a finalized transaction is not shown".into());
        let found = found.ok_or_else(unshown)?;
        let meta = found.meta.ok_or_else(unshown)?;
        let block = self.block_at(found.slot).await?.ok_or_else(unshown)?;
        Ok(Fate::Included {
            depth: head.saturating_sub(block.number),
            block,
            success: !meta.failed,
            spent: Some(Spent {
                work: Amount::from(meta.fee),
                besides: Some(Amount::ZERO),
            }),
        })
    }
}

/// What to bid for a unit of work, in lamports, where late slots took so many micro-lamports for a compute unit.
pub fn bid(mut bids: Vec<u64>) -> u64 {
    bids.sort_unstable();
    let place = bids.len().saturating_mul(PERCENT) / 100;
    let price = bids.get(place).copied().unwrap_or_default();
    price.saturating_mul(UNIT).div_ceil(1_000_000).max(LEAST)
}

/// What a node says to a transaction; `None` where it says nothing.
fn answered(error: &ClientError) -> Option<Broadcast> {
    let said = || match error.kind() {
        ClientErrorKind::RpcError(RpcError::RpcResponseError { message, .. }) => message.clone(),
        other => text::short(&other.to_string()),
    };
    Some(match code(error)? {
        UNHEALTHY => return None,
        PREFLIGHT => tried(&said()),
        SIGNATURE | SIGNATURES | PRECOMPILE | VERSION | INVALID_PARAMS => {
            Broadcast::Refused(said())
        }
        _ => Broadcast::Rejected(said()),
    })
}

/// What a node says that has tried a transaction, by the runtime's own words.
pub fn tried(said: &str) -> Broadcast {
    use TransactionError::{
        AccountNotFound, AlreadyProcessed, BlockhashNotFound, InsufficientFundsForFee,
    };
    let said_lower = said.to_lowercase();
    let names = |error: TransactionError| {
        let words = error.to_string().to_lowercase();
        let begin = words
            .char_indices()
            .nth(TOLD)
            .map_or(words.len(), |it| it.0);
        said_lower.contains(&words[..begin])
    };
    if names(BlockhashNotFound) {
        Broadcast::Expired
    } else if names(AlreadyProcessed) {
        // This very transaction is in a block: other nodes were faster.
        Broadcast::Accepted
    } else if names(AccountNotFound) || names(InsufficientFundsForFee) {
        Broadcast::Unfunded
    } else {
        Broadcast::Rejected(said.to_owned())
    }
}

#[cfg(test)]
mod tests;
