//! What only trading asks a node.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use solana_client::{client_error::ClientError, rpc_request::RpcRequest};
use solana_pubkey::Pubkey;

use super::super::{
    question::{Questions, failed},
    raw::{RawAccount, RawContext, RawStatus, RawTrial},
};
use crate::ReadError;

/// An answer about state whose value is always there.
#[derive(serde::Deserialize)]
struct Stated<T> {
    context: RawContext,
    value: T,
}

impl Questions {
    /// Accounts of one moment; as many answers in the same order.
    pub async fn accounts(&self, keys: &[Pubkey]) -> Result<Vec<Option<RawAccount>>, ReadError> {
        let what = json!({"commitment": "finalized", "encoding": "base64"});
        self.accounts_with(keys, what).await
    }

    /// The programs that accounts belong to, of one moment, in the same order. Anybody's account may have megabytes of
    /// data, which are not asked for.
    pub async fn owners(&self, keys: &[Pubkey]) -> Result<Vec<Option<Pubkey>>, ReadError> {
        let none = json!({"offset": 0, "length": 0});
        let what = json!({"commitment": "finalized", "encoding": "base64", "dataSlice": none});
        let found = self.accounts_with(keys, what).await?;
        let owners = found.into_iter();
        Ok(owners.map(|it| it.map(|it| it.owner.0)).collect())
    }

    async fn accounts_with(
        &self,
        keys: &[Pubkey],
        what: Value,
    ) -> Result<Vec<Option<RawAccount>>, ReadError> {
        let texts: Vec<_> = keys.iter().map(Pubkey::to_string).collect();
        let asked = self.ask(RpcRequest::GetMultipleAccounts, json!([texts, what]));
        let stated: Stated<Vec<Option<RawAccount>>> = asked.await.map_err(failed)?;
        match stated.value.len() == keys.len() {
            true => Ok(stated.value),
            false => Err(ReadError::Doubtful("an account is missing".into())),
        }
    }

    /// What an account has in lamports.
    pub async fn lamports(&self, key: &Pubkey) -> Result<u64, ReadError> {
        self.client.get_balance(key).await.map_err(failed)
    }

    /// The lamports that an account of so many bytes has to have.
    pub async fn rent(&self, bytes: usize) -> Result<u64, ReadError> {
        let asked = self.client.get_minimum_balance_for_rent_exemption(bytes);
        asked.await.map_err(failed)
    }

    /// The slot of the oldest block that the node keeps.
    pub async fn first_kept(&self) -> Result<u64, ReadError> {
        let asked = self.client.get_first_available_block();
        asked.await.map_err(failed)
    }

    /// What transactions of late bid at least, in micro-lamports for a compute unit: a number for each slot. It is next to
    /// nothing where blocks are full, too. Those that write a payment's accounts are not asked for: anybody writes them,
    /// for little work at any price, and would have all payments cost more than was charged for them.
    pub async fn bids(&self) -> Result<Vec<u64>, ReadError> {
        let asked = self.client.get_recent_prioritization_fees(&[]);
        let bids = asked.await.map_err(failed)?;
        Ok(bids.iter().map(|bid| bid.prioritization_fee).collect())
    }

    /// Where the node has a transaction; `None` where it knows none. With the slot that the answer is of.
    pub async fn status(&self, id: &str) -> Result<(Option<RawStatus>, u64), ReadError> {
        let what = json!({"searchTransactionHistory": true});
        let asked = self.ask(RpcRequest::GetSignatureStatuses, json!([[id], what]));
        let stated: Stated<Vec<Option<RawStatus>>> = asked.await.map_err(failed)?;
        let mut statuses = stated.value;
        match (statuses.pop(), statuses.is_empty()) {
            (Some(status), true) => {
                let above = |status: &RawStatus| status.slot > stated.context.slot;
                match status.as_ref().is_some_and(above) {
                    true => Err(ReadError::Doubtful("a block above the head".into())),
                    false => Ok((status, stated.context.slot)),
                }
            }
            _ => Err(ReadError::Doubtful("not one status".into())),
        }
    }

    /// Hands a signed transaction to the node, which tries it first on its newest state.
    pub async fn send_raw(&self, raw: &[u8]) -> Result<(), ClientError> {
        let what = json!({"encoding": "base64", "preflightCommitment": "processed"});
        let params = json!([BASE64_STANDARD.encode(raw), what]);
        let _: Value = self.ask(RpcRequest::SendTransaction, params).await?;
        Ok(())
    }

    /// What a transaction would do now, whoever signed it and whatever blockhash it names.
    pub async fn simulate(&self, raw: &[u8]) -> Result<RawTrial, ReadError> {
        let what = json!({
            "encoding": "base64", "commitment": "confirmed", "sigVerify": false, "replaceRecentBlockhash": true,
        });
        let params = json!([BASE64_STANDARD.encode(raw), what]);
        let asked = self.ask(RpcRequest::SimulateTransaction, params);
        let stated: Stated<RawTrial> = asked.await.map_err(failed)?;
        Ok(stated.value)
    }
}
