//! What the scan asks a node.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};
use solana_client::{
    client_error::ClientError,
    rpc_custom_error::JSON_RPC_SERVER_ERROR_UNSUPPORTED_TRANSACTION_VERSION as UNSUPPORTED,
    rpc_request::RpcRequest,
};
use solana_pubkey::Pubkey;

use super::super::super::{
    question::{NEWEST, Questions, Standing, failed, hash, since_1970, unread},
    raw::{Key, RawMeta, RawSigned, RawTokenBalance, RawTransaction, version},
    transport::code,
};
use crate::ReadError;

/// The most transactions of one answer about an account. Each comes with its memos, of which a letter may be six.
pub const PAGE: usize = 500;
/// The option that says up to which version transactions are shown.
const MOST_VERSION: &str = "maxSupportedTransactionVersion";

/// A transaction that names an account (`getSignaturesForAddress`).
#[derive(Clone, Debug, Deserialize)]
pub struct RawNaming {
    pub signature: String,
    pub slot: u64,
    #[serde(rename = "err", deserialize_with = "is_some")]
    pub failed: bool,
}

/// A block with the ids of its transactions, or with all of them (`getBlock`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawFullBlock {
    blockhash: Key,
    previous_blockhash: Key,
    pub parent_slot: u64,
    /// Unix seconds; null where the node did not keep it.
    #[serde(default)]
    pub block_time: Option<i64>,
    #[serde(default)]
    block_height: Option<u64>,
    #[serde(default)]
    pub signatures: Vec<String>,
    #[serde(default)]
    pub transactions: Vec<RawInside>,
}

/// A block with the accounts of its transactions, without what those did.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawBlockAccounts {
    blockhash: Key,
    previous_blockhash: Key,
    pub parent_slot: u64,
    #[serde(default)]
    block_height: Option<u64>,
    pub transactions: Vec<RawAccounts>,
}

/// The accounts of a transaction, those from lookup tables among them.
#[derive(Clone, Debug, Deserialize)]
pub struct RawAccounts {
    transaction: RawNamed,
    meta: Option<RawEffects>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNamed {
    signatures: Vec<String>,
    account_keys: Vec<RawNamedKey>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawNamedKey {
    pubkey: Key,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEffects {
    #[serde(rename = "err", deserialize_with = "is_some")]
    failed: bool,
    #[serde(default)]
    post_token_balances: Option<Vec<RawTokenBalance>>,
}

impl RawBlockAccounts {
    /// As it stands at its slot; its time is of no use here.
    pub fn standing(&self) -> Standing {
        Standing {
            hash: hash(&self.blockhash.0),
            parent: hash(&self.previous_blockhash.0),
            time: None,
            height: self.block_height,
        }
    }

    /// The ids of the transactions that concern one of these accounts, see [`RawAccounts::id_of_any`].
    pub fn ids_of_any(&self, accounts: [&Pubkey; 2]) -> Vec<String> {
        let inside = self.transactions.iter();
        let ids = inside.filter_map(|inside| inside.id_of_any(accounts));
        ids.map(str::to_owned).collect()
    }
}

impl RawAccounts {
    /// Its id, if it names one of these accounts or one of them owns tokens after it, or if its effects are not kept.
    /// Not where it failed.
    fn id_of_any(&self, accounts: [&Pubkey; 2]) -> Option<&str> {
        let keys = self.transaction.account_keys.iter();
        let mut keys = keys.map(|one| one.pubkey);
        let concerns = match &self.meta {
            None => true,
            Some(meta) => {
                let held = meta.post_token_balances.iter().flatten();
                let owners = held.filter_map(|held| held.owner);
                !meta.failed
                    && keys
                        .by_ref()
                        .chain(owners)
                        .any(|key| accounts.contains(&&key.0))
            }
        };
        let id = self.transaction.signatures.first();
        id.map(String::as_str).filter(|_| concerns)
    }
}

/// A transaction in the answer about its block.
#[derive(Clone, Debug, Deserialize)]
pub struct RawInside {
    pub transaction: RawSigned,
    pub meta: Option<RawMeta>,
    #[serde(default, deserialize_with = "version")]
    pub version: Option<u8>,
}

impl RawFullBlock {
    pub fn standing(&self) -> Result<Standing, ReadError> {
        Ok(Standing {
            hash: hash(&self.blockhash.0),
            parent: hash(&self.previous_blockhash.0),
            time: self.block_time.map(since_1970).transpose()?,
            height: self.block_height,
        })
    }
}

impl Questions {
    /// Transactions that name an account, the newest first, older than the one called `before`. The node has
    /// finalized `slot`.
    pub async fn naming(
        &self,
        account: &Pubkey,
        before: Option<&str>,
        slot: u64,
    ) -> Result<Vec<RawNaming>, ReadError> {
        let mut what = json!({"commitment": "finalized", "limit": PAGE, "minContextSlot": slot});
        if let Some(before) = before {
            what["before"] = before.into();
        }
        let params = json!([account.to_string(), what]);
        let asked = self.ask(RpcRequest::GetSignaturesForAddress, params);
        let found: Vec<RawNaming> = asked.await.map_err(failed)?;
        match found.is_sorted_by(|newer, older| newer.slot >= older.slot) {
            true => Ok(found),
            false => Err(ReadError::Doubtful("transactions out of order".into())),
        }
    }

    /// The block at a slot with the ids of its transactions.
    pub async fn ids(&self, slot: u64) -> Result<RawFullBlock, ReadError> {
        self.block_with(slot, "signatures").await
    }

    /// The block at a slot with its transactions.
    pub async fn whole(&self, slot: u64) -> Result<RawFullBlock, ReadError> {
        self.block_with(slot, "full").await
    }

    /// The block at a slot with the accounts of its transactions.
    pub async fn block_accounts(&self, slot: u64) -> Result<RawBlockAccounts, ReadError> {
        self.block_with(slot, "accounts").await
    }

    /// The transaction with the signature `id` in any version, once it is finalized.
    pub async fn any_transaction(&self, id: &str) -> Result<Option<RawTransaction>, ReadError> {
        let what = json!({"commitment": "finalized", "encoding": "json"});
        let asked = self.ask_any(RpcRequest::GetTransaction, (id.into(), what));
        asked.await.map_err(unread)
    }

    /// Asks for what is read, and once more for all versions where a node refuses that because of a newer one: one
    /// transaction has it refuse its whole block.
    async fn ask_any<T: DeserializeOwned>(
        &self,
        request: RpcRequest,
        (of, mut what): (Value, Value),
    ) -> Result<T, ClientError> {
        what[MOST_VERSION] = NEWEST.into();
        let asked = self.ask(request, json!([of, what])).await;
        let is_newer = |error: &ClientError| code(error) == Some(UNSUPPORTED);
        if !asked.as_ref().is_err_and(is_newer) {
            return asked;
        }
        what[MOST_VERSION] = u8::MAX.into();
        self.ask(request, json!([of, what])).await
    }

    async fn block_with<T: DeserializeOwned>(
        &self,
        slot: u64,
        details: &str,
    ) -> Result<T, ReadError> {
        let what = json!({
            "commitment": "finalized", "encoding": "json", "transactionDetails": details, "rewards": false,
        });
        let asked = self.ask_any(RpcRequest::GetBlock, (slot.into(), what));
        let found: Option<T> = asked.await.map_err(failed)?;
        found.ok_or_else(|| ReadError::Unavailable("a block is not shown".into()))
    }
}

/// Reads any value but null as true.
fn is_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}
