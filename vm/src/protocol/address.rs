//! Addresses, currencies and transaction ids of families that write them as hex behind `0x` (guide: protocol 2.2).

use super::text;
use crate::family::{Codec, CodecError};

/// Hex behind `0x`.
pub struct HexAddresses {
    /// The text of the native currency.
    pub native: &'static str,
}

impl Codec for HexAddresses {
    fn native(&self) -> &'static str {
        self.native
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::behind_prefix(text)
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode_prefixed(bytes))
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::behind_prefix(text)
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode_prefixed(bytes))
    }
}
