//! Withdrawals of `ethereum-vm`: call requests of the depository (guide: protocol 8.1). Pure.

use serde_json::Value;

use crate::{
    CodecError, EvmAddress, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        call::Spelling,
        request::{PayloadParams, PayloadRequest, WithdrawCall},
        text,
    },
};

const CALLS: Spelling = Spelling {
    parse: text::evm_address,
    write: |address: &EvmAddress| format!("{address:#x}"),
    native: "0x0000000000000000000000000000000000000000",
};

/// Reads and writes withdrawals as the call requests that the depository executes.
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

    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let lower = |text: &str| text::bytes(text).map(alloy::hex::encode_prefixed);
        Ok(PayloadParams {
            depository: lower(&request.depository)?,
            currency: lower(&request.currency)?,
            recipient: lower(&request.recipient)?,
            ..request.plain()
        })
    }

    /// The hub needs nothing besides the request itself.
    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}
