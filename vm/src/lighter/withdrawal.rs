//! Withdrawals of `lighter-vm`: transfers between accounts, ABI-encoded; the id is the hash of the
//! text that the account's L1 key signs (guide: protocol 8.1). Pure.

use alloy::{hex, primitives::keccak256, sol_types::SolValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    B256, CodecError, U256, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall, additional},
        text,
    },
};

const FAMILY: &str = "lighter-vm";
/// The code of a transfer, the only action.
const TRANSFER: u8 = 0;

mod abi {
    alloy::sol! {
        struct Withdrawal { uint8 actionType; bytes parameters; }
        struct Transfer {
            uint64 nonce; uint64 fromAccountIndex; uint64 fromRouteType; uint64 apiKeyIndex;
            uint64 toAccountIndex; uint64 toRouteType; uint64 assetIndex; uint64 amount;
            uint64 usdcFee; uint64 lighterChainId; bytes32 memo;
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    action_type: u8,
    parameters: Action,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
enum Action {
    Transfer(Transfer),
}

/// A transfer in the sequencer's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    #[serde(with = "json::text")]
    pub nonce: u64,
    #[serde(with = "json::text")]
    pub from_account_index: u64,
    #[serde(with = "json::text")]
    pub from_route_type: u64,
    #[serde(with = "json::text")]
    pub api_key_index: u64,
    #[serde(with = "json::text")]
    pub to_account_index: u64,
    #[serde(with = "json::text")]
    pub to_route_type: u64,
    #[serde(with = "json::text")]
    pub asset_index: u64,
    #[serde(with = "json::text")]
    pub amount: u64,
    #[serde(with = "json::text")]
    pub usdc_fee: u64,
    #[serde(with = "json::text")]
    pub lighter_chain_id: u64,
    /// At most 64 hex digits without `0x`, padded with zeros on the right.
    pub memo: String,
}

impl Transfer {
    /// The twelve lines that the L1 key signs.
    pub fn l1_message(&self) -> Result<String, CodecError> {
        Ok(format!(
            "Transfer\n\nnonce: {:#018x}\nfrom: {:#018x} (route {:#018x})\napi key: {:#018x}\n\
             to: {:#018x} (route {:#018x})\nasset: {:#018x}\namount: {:#018x}\nfee: {:#018x}\n\
             chainId: {:#018x}\nmemo: {}\nOnly sign this message for a trusted client!",
            self.nonce,
            self.from_account_index,
            self.from_route_type,
            self.api_key_index,
            self.to_account_index,
            self.to_route_type,
            self.asset_index,
            self.amount,
            self.usdc_fee,
            self.lighter_chain_id,
            hex::encode(memo(&self.memo)?),
        ))
    }

    fn encoded(&self) -> Result<Vec<u8>, CodecError> {
        let transfer = abi::Transfer {
            nonce: self.nonce,
            fromAccountIndex: self.from_account_index,
            fromRouteType: self.from_route_type,
            apiKeyIndex: self.api_key_index,
            toAccountIndex: self.to_account_index,
            toRouteType: self.to_route_type,
            assetIndex: self.asset_index,
            amount: self.amount,
            usdcFee: self.usdc_fee,
            lighterChainId: self.lighter_chain_id,
            memo: memo(&self.memo)?,
        };
        let outer = abi::Withdrawal {
            actionType: TRANSFER,
            parameters: transfer.abi_encode().into(),
        };
        Ok(outer.abi_encode())
    }
}

impl From<abi::Transfer> for Transfer {
    fn from(transfer: abi::Transfer) -> Self {
        Self {
            nonce: transfer.nonce,
            from_account_index: transfer.fromAccountIndex,
            from_route_type: transfer.fromRouteType,
            api_key_index: transfer.apiKeyIndex,
            to_account_index: transfer.toAccountIndex,
            to_route_type: transfer.toRouteType,
            asset_index: transfer.assetIndex,
            amount: transfer.amount,
            usdc_fee: transfer.usdcFee,
            lighter_chain_id: transfer.lighterChainId,
            memo: hex::encode(transfer.memo),
        }
    }
}

/// Encodes and decodes withdrawals of `lighter-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        let withdrawal: Withdrawal = json::read(withdrawal)?;
        if withdrawal.action_type != TRANSFER {
            return Err(CodecError("not a Lighter transfer".into()));
        }
        let Action::Transfer(transfer) = withdrawal.parameters;
        transfer.encoded()
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        let transfer = abi::Withdrawal::abi_decode(encoded)
            .and_then(|outer| abi::Transfer::abi_decode(&outer.parameters))
            .map(Transfer::from)
            .ok()
            .filter(|transfer| transfer.encoded().is_ok_and(|bytes| bytes == encoded))
            .ok_or_else(|| CodecError("not an encoded Lighter transfer".into()))?;
        json::write(&Withdrawal {
            action_type: TRANSFER,
            parameters: Action::Transfer(transfer),
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let transfer = match json::read::<Withdrawal>(withdrawal) {
            Ok(Withdrawal {
                parameters: Action::Transfer(transfer),
                ..
            }) => transfer,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        WithdrawalInfo {
            id: transfer
                .l1_message()
                .map(|text| keccak256(text).to_string()),
            currency: Ok(transfer.asset_index.to_string()),
            amount: Ok(transfer.amount.to_string()),
            recipient: Ok(transfer.to_account_index.to_string()),
            sole: Ok(()),
            spending: None,
        }
    }

    /// Converts the currency to the asset index of the additional data.
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let memo = memo(extra.memo.strip_prefix("0x").unwrap_or(&extra.memo))?;
        let routes = (extra.from_route_type, extra.to_route_type);
        let numbers = (extra.api_key_index, extra.usdc_fee);
        let data = (
            U256::from(TRANSFER),
            extra.nonce,
            routes.0,
            routes.1,
            numbers.0,
            numbers.1,
            memo,
        );
        Ok(PayloadParams {
            currency: extra.asset_index.to_string(),
            data: data.abi_encode_params().into(),
            ..request.plain()
        })
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        let extra: RequestExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        Ok((extra.nonce, extra.api_key_index, extra.usdc_fee).abi_encode_params())
    }
}

/// Refuses an asset of the additional data that is not the currency of the request: the depository would pay an asset that
/// nobody gives up at the hub. Asset 3 by route 0 is the native currency (guide: protocol 4.5).
pub fn check_payload(request: &PayloadRequest) -> Result<(), CodecError> {
    let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
    let is_paid = match (extra.asset_index, extra.from_route_type) {
        (0, _) => false,
        (3, 0) => request.currency == "0",
        (index, _) => request.currency == index.to_string(),
    };
    let what = || format!("assetIndex is not of currency {}", request.currency);
    is_paid.then_some(()).ok_or_else(|| CodecError(what()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadExtra {
    #[serde(deserialize_with = "json::text::deserialize")]
    nonce: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    from_route_type: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    to_route_type: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    api_key_index: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    usdc_fee: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    asset_index: u64,
    memo: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestExtra {
    #[serde(deserialize_with = "json::text::deserialize")]
    nonce: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    api_key_index: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    usdc_fee: u64,
}

/// Parses hex digits and pads them on the right.
fn memo(digits: &str) -> Result<B256, CodecError> {
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let mut word = [0; 32];
    plain
        .then(|| hex::decode_to_slice(format!("{digits:0<64}"), &mut word).ok())
        .flatten()
        .map(|()| B256::from(word))
        .ok_or_else(|| CodecError(format!("not a memo: {:?}", text::short(digits))))
}
