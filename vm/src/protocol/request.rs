//! Withdraw requests in their two spellings: payload params (v2.2, the Aurora allocator) and
//! withdraw requests (v2.3, the hub's allocator). Pure; guide: protocol 8.2 and 8.3.
//!
//! Field order is the wire's: the API echoes these structs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{json, message, text};
use crate::{
    family::{CodecError, Family},
    types::{B256, Bytes, U256},
};

/// A v2.2 request from a caller: addresses in their family's own text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayloadRequest {
    /// The chain's number at the hub.
    pub chain_id: String,
    pub depository: String,
    pub currency: String,
    #[serde(with = "json::text")]
    pub amount: U256,
    pub spender: String,
    pub recipient: String,
    pub nonce: String,
    /// By family name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_data: Option<Map<String, Value>>,
}

impl PayloadRequest {
    /// The params with the caller's texts unchanged, the spender in lower case, and no data.
    pub(crate) fn plain(&self) -> PayloadParams {
        PayloadParams {
            chain_id: self.chain_id.clone(),
            depository: self.depository.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
            spender: self.spender.to_lowercase(),
            recipient: self.recipient.clone(),
            nonce: self.nonce.clone(),
            data: Bytes::new(),
        }
    }
}

/// A v2.2 request in the spelling that the Aurora allocator hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayloadParams {
    pub chain_id: String,
    pub depository: String,
    pub currency: String,
    #[serde(with = "json::text")]
    pub amount: U256,
    pub spender: String,
    pub recipient: String,
    pub nonce: String,
    #[serde(with = "json::bytes")]
    pub data: Bytes,
}

impl PayloadParams {
    /// The typed message that oracles sign, and whose hash is the payload id.
    pub fn message(&self) -> Result<message::PayloadParams, CodecError> {
        Ok(message::PayloadParams {
            chain_id: text::number(&self.chain_id)?,
            depository: self.depository.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
            spender: text::evm_address(&self.spender)?,
            recipient: self.recipient.clone(),
            data: self.data.clone(),
            nonce: word(&self.nonce)?,
        })
    }
}

/// A v2.3 request from a caller: addresses in their family's own text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawCall {
    pub chain_id: String,
    pub depository: String,
    pub currency: String,
    #[serde(with = "json::text")]
    pub amount: U256,
    pub spender_chain_id: String,
    pub spender: String,
    pub receiver: String,
    pub nonce: String,
    /// By family name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_data: Option<Map<String, Value>>,
}

/// A v2.3 request in the spelling that the hub's allocator hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawRequest {
    pub chain_id: String,
    #[serde(with = "json::bytes")]
    pub depository: Bytes,
    #[serde(with = "json::bytes")]
    pub currency: Bytes,
    #[serde(with = "json::text")]
    pub amount: U256,
    pub spender_chain_id: String,
    #[serde(with = "json::bytes")]
    pub spender: Bytes,
    #[serde(with = "json::bytes")]
    pub receiver: Bytes,
    #[serde(with = "json::bytes")]
    pub data: Bytes,
    pub nonce: String,
}

impl WithdrawRequest {
    /// Normalises `call` for a chain of `family` whose spender is on a chain of `spender`.
    pub fn new(call: &WithdrawCall, family: &Family, spender: &Family) -> Result<Self, CodecError> {
        let codec = family.withdrawals.ok_or_else(|| unsupported(family))?;
        let encode = |text: &str| family.codec.encode_address(text).map(Bytes::from);
        Ok(Self {
            chain_id: call.chain_id.clone(),
            depository: encode(&call.depository)?,
            currency: encode(&call.currency)?,
            amount: call.amount,
            spender_chain_id: call.spender_chain_id.clone(),
            spender: spender.codec.encode_address(&call.spender)?.into(),
            receiver: encode(&call.receiver)?,
            data: codec.request_data(call)?.into(),
            nonce: call.nonce.clone(),
        })
    }

    /// The typed message that oracles sign, and whose hash is the request hash.
    pub fn message(&self) -> Result<message::Authorization, CodecError> {
        Ok(message::Authorization {
            chain_id: self.chain_id.clone(),
            depository: self.depository.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
            spender_chain_id: self.spender_chain_id.clone(),
            spender: self.spender.clone(),
            receiver: self.receiver.clone(),
            data: self.data.clone(),
            nonce: word(&self.nonce)?,
        })
    }
}

/// The caller's additional data for `family`, typed; an error where it is missing.
pub(crate) fn additional<T: serde::de::DeserializeOwned>(
    data: Option<&Map<String, Value>>,
    family: &str,
) -> Result<T, CodecError> {
    let value = data
        .and_then(|data| data.get(family))
        .ok_or_else(|| CodecError(format!("Additional data is required for {family}")))?;
    json::read(value)
}

pub(crate) fn unsupported(family: &Family) -> CodecError {
    CodecError(format!("Withdrawals on {} are not supported", family.name))
}

/// Parses `0x` and 32 bytes of hex.
pub(crate) fn word(text: &str) -> Result<B256, CodecError> {
    message::word(text).map_err(|error| CodecError(error.to_string()))
}
