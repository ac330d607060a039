//! The questions to a Solana node, through solana-client's nonblocking client. All are about finalized slots: what is
//! only confirmed does not exist.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use solana_client::{
    client_error::{ClientError, ClientErrorKind},
    nonblocking::rpc_client::RpcClient,
    rpc_client::RpcClientConfig,
    rpc_custom_error::{
        JSON_RPC_SERVER_ERROR_BLOCK_CLEANED_UP as CLEANED_UP,
        JSON_RPC_SERVER_ERROR_BLOCK_NOT_AVAILABLE as NOT_AVAILABLE,
        JSON_RPC_SERVER_ERROR_BLOCK_STATUS_NOT_AVAILABLE_YET as NOT_YET,
        JSON_RPC_SERVER_ERROR_LONG_TERM_STORAGE_SLOT_SKIPPED as SKIPPED_LONG_AGO,
        JSON_RPC_SERVER_ERROR_SLOT_SKIPPED as SKIPPED,
    },
    rpc_request::RpcRequest,
};
use solana_pubkey::Pubkey;

use super::{
    raw::{RawAccount, RawBlock, RawState, RawTokenAccount, RawTransaction},
    transport::{Sender, code, post_error},
};
use crate::{
    ReadError,
    http::{Channel, PostError},
    protocol::text,
    types::{B256, Block},
};

/// Slots among which the next block or the one before is looked for: leaders have four in a row.
const NEAR: u64 = 64;
/// The newest version of transactions that is read.
pub const NEWEST: u8 = 0;

/// A block as it stands at its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub hash: B256,
    pub parent: B256,
    /// Unix seconds, where the node kept them.
    pub time: Option<u64>,
    /// The number of blocks below it, where the node kept it.
    pub height: Option<u64>,
}

impl Standing {
    /// The block at `slot`.
    pub const fn at(&self, slot: u64, time: u64) -> Block {
        Block {
            number: slot,
            hash: self.hash,
            parent: self.parent,
            time,
        }
    }
}

/// What a node says about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    Block(Standing),
    /// The node has no block there. It may be skipped, or lost to this node.
    Absent,
    /// The node does not keep blocks of that age.
    Gone,
    /// The node cannot say yet.
    Unknown,
}

/// One node.
pub struct Questions {
    pub(in crate::solana) client: RpcClient,
}

impl Questions {
    /// Reads no answer of more than `most_values` JSON values.
    pub fn new(channel: Channel, most_values: usize) -> Self {
        let sender = Sender::new(channel, most_values);
        Self {
            // Its default commitment is `finalized`.
            client: RpcClient::new_sender(sender, RpcClientConfig::default()),
        }
    }

    /// The newest finalized slot.
    pub async fn slot(&self) -> Result<u64, ReadError> {
        self.client.get_slot().await.map_err(failed)
    }

    /// The hash of the chain's first block.
    pub async fn genesis(&self) -> Result<B256, ReadError> {
        let hash = self.client.get_genesis_hash().await.map_err(failed)?;
        Ok(B256::new(hash.to_bytes()))
    }

    /// What stands at a slot.
    pub async fn block(&self, slot: u64) -> Result<Slot, ReadError> {
        let raw = match self.raw_block(slot).await {
            Ok(found) => found,
            Err(error) => {
                return match code(&error) {
                    Some(SKIPPED | SKIPPED_LONG_AGO) => Ok(Slot::Absent),
                    Some(CLEANED_UP) => Ok(Slot::Gone),
                    Some(NOT_AVAILABLE | NOT_YET) => Ok(Slot::Unknown),
                    _ => Err(failed(error)),
                };
            }
        };
        let Some(raw) = raw else {
            return Ok(Slot::Unknown);
        };
        if raw.parent_slot >= slot && slot > 0 {
            return Err(ReadError::Doubtful("a block before its parent".into()));
        }
        Ok(Slot::Block(Standing {
            hash: hash(&raw.blockhash.0),
            parent: hash(&raw.previous_blockhash.0),
            time: raw.block_time.map(since_1970).transpose()?,
            height: raw.block_height,
        }))
    }

    /// The time of the block at `slot`, where the node has one.
    pub async fn time(&self, slot: u64) -> Result<Option<u64>, ReadError> {
        let asked = self.ask(RpcRequest::GetBlockTime, json!([slot])).await;
        let time: Option<i64> = match asked {
            Ok(time) => time,
            // The node says that it has none.
            Err(error) if code(&error).is_some() => None,
            Err(error) => return Err(failed(error)),
        };
        time.map(since_1970).transpose()
    }

    /// The newest block before `slot`, if one is near.
    pub async fn before(&self, slot: u64) -> Result<Option<u64>, ReadError> {
        let Some(last) = slot.checked_sub(1) else {
            return Ok(None);
        };
        Ok(self.between(slot.saturating_sub(NEAR), last).await?.pop())
    }

    /// Whether the node's chain goes on past `slot` without it: the next block's parent is older. Otherwise that block
    /// is not near, or it stands on the slot, which the node has lost.
    pub async fn is_skipped(&self, slot: u64) -> Result<bool, ReadError> {
        let near = self.between(slot.saturating_add(1), slot.saturating_add(NEAR));
        let Some(next) = near.await?.first().copied() else {
            return Ok(false);
        };
        let found = self.raw_block(next).await.map_err(failed)?;
        Ok(found.is_some_and(|next| next.parent_slot < slot))
    }

    pub(in crate::solana) async fn raw_block(
        &self,
        slot: u64,
    ) -> Result<Option<RawBlock>, ClientError> {
        let what = json!({
            "commitment": "finalized", "encoding": "json", "transactionDetails": "none", "rewards": false,
            "maxSupportedTransactionVersion": NEWEST,
        });
        self.ask(RpcRequest::GetBlock, json!([slot, what])).await
    }

    /// The slots with blocks from `first` to `last`.
    pub(in crate::solana) async fn between(
        &self,
        first: u64,
        last: u64,
    ) -> Result<Vec<u64>, ReadError> {
        let asked = self.client.get_blocks(first, Some(last)).await;
        let slots = asked.map_err(failed)?;
        let all = slots.iter().all(|slot| (first..=last).contains(slot));
        if !all || !slots.is_sorted() {
            return Err(ReadError::Doubtful("slots that were not asked for".into()));
        }
        Ok(slots)
    }

    /// The transaction with the signature `id`, once it is finalized.
    pub async fn transaction(&self, id: &str) -> Result<Option<RawTransaction>, ReadError> {
        let what = json!({
            "commitment": "finalized", "encoding": "json", "maxSupportedTransactionVersion": NEWEST,
        });
        let asked = self
            .ask(RpcRequest::GetTransaction, json!([id, what]))
            .await;
        asked.map_err(unread)
    }

    /// Which tokens a token account holds.
    pub async fn mint(&self, account: &Pubkey) -> Result<Option<Pubkey>, ReadError> {
        let what = json!({"commitment": "finalized", "encoding": "jsonParsed"});
        let params = json!([account.to_string(), what]);
        let asked = self.ask(RpcRequest::GetAccountInfo, params).await;
        let state: RawState<RawTokenAccount> = asked.map_err(failed)?;
        Ok(state.value.map(|account| account.mint()))
    }

    /// An account at `slot` or later; `None` where there is none.
    pub async fn account(
        &self,
        account: &Pubkey,
        slot: u64,
    ) -> Result<Option<RawAccount>, ReadError> {
        let what = json!({"commitment": "finalized", "encoding": "base64", "minContextSlot": slot});
        let params = json!([account.to_string(), what]);
        let asked = self.ask(RpcRequest::GetAccountInfo, params).await;
        let state: RawState<RawAccount> = asked.map_err(failed)?;
        if state.context.slot < slot {
            return Err(ReadError::Unavailable("behind the agreed head".into()));
        }
        Ok(state.value)
    }

    pub(in crate::solana) async fn ask<T: DeserializeOwned>(
        &self,
        request: RpcRequest,
        params: Value,
    ) -> Result<T, ClientError> {
        self.client.send(request, params).await
    }
}

pub(in crate::solana) fn since_1970(seconds: i64) -> Result<u64, ReadError> {
    u64::try_from(seconds).map_err(|_| ReadError::Doubtful("a time before 1970".into()))
}

pub(in crate::solana) fn hash(key: &Pubkey) -> B256 {
    B256::new(key.to_bytes())
}

/// Why a transaction is not read. Only what is asked about one thing of the chain is too large for ever.
pub(in crate::solana) fn unread(error: ClientError) -> ReadError {
    match post_error(&error) {
        Some(PostError::TooLarge) => ReadError::TooLarge,
        _ => failed(error),
    }
}

pub(in crate::solana) fn failed(error: ClientError) -> ReadError {
    match error.kind() {
        ClientErrorKind::SerdeJson(error) => {
            let what = text::short(&error.to_string());
            ReadError::Doubtful(format!("unreadable answer: {what}"))
        }
        _ => match post_error(&error) {
            Some(error) => ReadError::Unavailable(error.to_string()),
            None => ReadError::Unavailable(text::short(&error.kind().to_string())),
        },
    }
}
