//! Addresses, currencies and transaction ids of `xrp-vm` (settlement.md 1).

use crate::{Codec, CodecError};

/// See the module.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        todo!()
    }
    fn encode_address(&self, _text: &str) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
    fn decode_address(&self, _bytes: &[u8]) -> Result<String, CodecError> {
        todo!()
    }
    fn encode_transaction_id(&self, _text: &str) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
    fn decode_transaction_id(&self, _bytes: &[u8]) -> Result<String, CodecError> {
        todo!()
    }
}
