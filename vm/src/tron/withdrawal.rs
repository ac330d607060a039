//! Withdrawals of `tron-vm`: call requests of the depository, addresses as `41` and 40 hex digits
//! (guide: protocol 8.1). Pure.

use alloy::hex;
use serde_json::Value;

use super::address::Addresses;
use crate::{
    Codec, CodecError, EvmAddress, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        call::Spelling,
        request::{PayloadParams, PayloadRequest, WithdrawCall},
    },
};

/// The first of a Tron address' 21 bytes.
const PREFIX: u8 = 0x41;

const CALLS: Spelling = Spelling {
    parse: |text| {
        hex::decode(text)
            .ok()
            .filter(|bytes| text.len() == 42 && bytes.first() == Some(&PREFIX))
            .map(|bytes| EvmAddress::from_slice(&bytes[1..]))
            .ok_or_else(|| CodecError(format!("not a Tron address in hex: {text:?}")))
    },
    write: |address| format!("{PREFIX:x}{address:x}"),
    native: "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
};

/// Encodes and decodes withdrawals of `tron-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        CALLS.encode(withdrawal)
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        CALLS.decode(encoded)
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        CALLS.describe(withdrawal)
    }

    /// Converts addresses to those of the EVM: 20 bytes without the prefix.
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Ok(PayloadParams {
            depository: evm_text(&request.depository)?,
            currency: evm_text(&request.currency)?,
            recipient: evm_text(&request.recipient)?,
            ..request.plain()
        })
    }

    /// Empty: the hub needs only the request itself.
    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}

fn evm_text(address: &str) -> Result<String, CodecError> {
    let bytes = Addresses.encode_address(address)?;
    bytes
        .strip_prefix(&[PREFIX])
        .map(hex::encode_prefixed)
        .ok_or_else(|| CodecError(format!("not a Tron address: {address:?}")))
}
