//! Withdrawals of `solana-vm`: the depository's transfer request in Borsh (guide: protocol 8.1). Pure.

use alloy::hex;
use base64::{Engine, engine::general_purpose::STANDARD};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use solana_pubkey::Pubkey;

use super::{programs::SYSTEM, raw::RawAccount};
use crate::{
    CodecError, ReadError, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall, word},
        text,
    },
};

/// The native currency, 32 zero bytes, in base58.
const NATIVE: &str = "11111111111111111111111111111111";
/// Anchor's discriminator of the account of an executed withdrawal: sha256 of `account:UsedRequest`.
const USED_REQUEST: [u8; 8] = [0x87, 0x86, 0x6e, 0x4d, 0x96, 0x62, 0xb4, 0x6b];

/// The Borsh layout.
#[derive(BorshSerialize, BorshDeserialize)]
pub(super) struct Transfer {
    domain: [u8; 32],
    recipient: [u8; 32],
    token: Option<[u8; 32]>,
    amount: u64,
    nonce: u64,
    /// Unix seconds: the depository executes it no later.
    pub expiration: i64,
    pub vault_address: [u8; 32],
}

/// The JSON object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    domain: String,
    recipient: String,
    token: String,
    #[serde(with = "json::text")]
    amount: u64,
    #[serde(with = "json::text")]
    nonce: u64,
    /// Unix seconds.
    expiration: i64,
    vault_address: String,
}

impl Withdrawal {
    fn bytes(&self) -> Result<Vec<u8>, CodecError> {
        let token = key(&self.token)?;
        let transfer = Transfer {
            domain: word(&self.domain)?.0,
            recipient: key(&self.recipient)?,
            token: (token != [0; 32]).then_some(token),
            amount: self.amount,
            nonce: self.nonce,
            expiration: self.expiration,
            vault_address: key(&self.vault_address)?,
        };
        borsh::to_vec(&transfer).map_err(|error| CodecError(error.to_string()))
    }
}

/// Encodes and decodes withdrawals of `solana-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        json::read::<Withdrawal>(withdrawal)?.bytes()
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        let transfer = borsh::from_slice::<Transfer>(encoded)
            .ok()
            .filter(|transfer| transfer.token != Some([0; 32]))
            .ok_or_else(|| CodecError("not an encoded transfer request".into()))?;
        let text = |key: [u8; 32]| bs58::encode(key).into_string();
        json::write(&Withdrawal {
            domain: hex::encode_prefixed(transfer.domain),
            recipient: text(transfer.recipient),
            token: transfer.token.map_or_else(|| NATIVE.into(), text),
            amount: transfer.amount,
            nonce: transfer.nonce,
            expiration: transfer.expiration,
            vault_address: text(transfer.vault_address),
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let withdrawal: Withdrawal = match json::read(withdrawal) {
            Ok(withdrawal) => withdrawal,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        let id = withdrawal.bytes().map(Sha256::digest);
        WithdrawalInfo {
            id: id.map(hex::encode_prefixed),
            currency: Ok(withdrawal.token),
            amount: Ok(withdrawal.amount.to_string()),
            recipient: Ok(withdrawal.recipient),
            sole: Ok(()),
            spending: None,
        }
    }

    /// Converts keys to 64 hex digits, and the native currency to the empty text.
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let currency = match request.currency.as_str() {
            NATIVE => String::new(),
            mint => hex::encode(key(mint)?),
        };
        Ok(PayloadParams {
            currency,
            recipient: hex::encode(key(&request.recipient)?),
            ..request.plain()
        })
    }

    /// Empty: the hub needs only the request itself.
    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}

fn key(base58: &str) -> Result<[u8; 32], CodecError> {
    text::base58(base58)?
        .try_into()
        .map_err(|_| CodecError(format!("not a Solana key: {:?}", text::short(base58))))
}

/// Whether the account of a withdrawal says that it was executed. Anybody may send lamports to its address before.
pub fn is_used(depository: &Pubkey, account: Option<&RawAccount>) -> Result<bool, ReadError> {
    let Some(account) = account else {
        return Ok(false);
    };
    let doubt = || ReadError::Doubtful("an account that is none of a withdrawal".into());
    let data = STANDARD.decode(&account.data.0).map_err(|_| doubt())?;
    if account.owner.0 == SYSTEM && data.is_empty() {
        return Ok(false);
    }
    let flag = data.strip_prefix(&USED_REQUEST).map(<[u8]>::to_vec);
    match (account.owner.0 == *depository, flag.as_deref()) {
        (true, Some([0])) => Ok(false),
        (true, Some([1])) => Ok(true),
        _ => Err(doubt()),
    }
}
