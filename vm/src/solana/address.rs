//! Addresses, currencies and transaction ids of `solana-vm` (guide: protocol 2.2): base58 throughout.

use crate::{Codec, CodecError, protocol::text};

/// Converts addresses, currencies and transaction ids of `solana-vm` between base58 and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "11111111111111111111111111111111"
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::base58(text)
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(bs58::encode(bytes).into_string())
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::base58(text)
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(bs58::encode(bytes).into_string())
    }
}
