//! Withdrawals of `solana-vm` (settlement.md 7).

use serde_json::Value;

use crate::{
    CodecError, WithdrawalCodec, WithdrawalInfo,
    protocol::request::{PayloadParams, PayloadRequest, WithdrawCall},
};

/// See the module.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, _withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        Err(CodecError(
            "withdrawals of this family are not written yet".into(),
        ))
    }
    fn decode(&self, _encoded: &[u8]) -> Result<Value, CodecError> {
        Err(CodecError(
            "withdrawals of this family are not written yet".into(),
        ))
    }
    fn describe(&self, _withdrawal: &Value) -> WithdrawalInfo {
        WithdrawalInfo::unreadable(&CodecError(
            "withdrawals of this family are not readable yet".into(),
        ))
    }
    fn normalize_payload(&self, _request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Err(CodecError(
            "withdrawals of this family are not written yet".into(),
        ))
    }
    fn request_data(&self, _request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Err(CodecError(
            "withdrawals of this family are not written yet".into(),
        ))
    }
}
