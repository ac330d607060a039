//! Addresses, currencies and transaction ids of `tron-vm` (guide: protocol 2.2): `41` and the 20 bytes
//! of an EVM address, written in base58check.

use crate::{Codec, CodecError, protocol::text};

/// The first byte of the network's addresses.
pub(super) const PREFIX: u8 = 0x41;

/// Converts addresses, currencies and transaction ids of `tron-vm` between text and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"
    }

    /// Accepts base58check, or hex: `41` and 40 digits, or `0x` and the 40 digits alone.
    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let bytes = match (text.len(), text.strip_prefix("0x")) {
            (42, Some(digits)) => text::padded(&format!("41{digits}")).ok(),
            (42, None) => text::padded(text).ok(),
            _ => text::base58_check(text, bs58::Alphabet::BITCOIN),
        };
        bytes
            .filter(|bytes| bytes.len() == 21 && bytes[0] == PREFIX)
            .ok_or_else(|| CodecError("Invalid address provided".into()))
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(bs58::encode(bytes).with_check().into_string())
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::padded(text)
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode(bytes))
    }
}
