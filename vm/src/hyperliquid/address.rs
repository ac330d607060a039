//! Addresses, currencies and transaction ids of `hyperliquid-vm` (guide: protocol 2.2).

use crate::{Codec, CodecError, protocol::text};

/// Converts addresses, currencies and transaction ids of `hyperliquid-vm` between text and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "0x00000000000000000000000000000000"
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
