//! Withdrawals of `hyperliquid-vm` (settlement.md 7).

use serde_json::Value;

use crate::{
    CodecError, WithdrawalCodec, WithdrawalInfo,
    protocol::request::{PayloadParams, PayloadRequest, WithdrawCall},
};

/// See the module.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, _withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
    fn decode(&self, _encoded: &[u8]) -> Result<Value, CodecError> {
        todo!()
    }
    fn describe(&self, _withdrawal: &Value) -> WithdrawalInfo {
        todo!()
    }
    fn normalize_payload(&self, _request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        todo!()
    }
    fn request_data(&self, _request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
}
