//! Addresses, currencies and transaction ids of `lighter-vm` (guide: protocol 2.2): account and asset
//! indexes as 16 big-endian bytes.

use crate::{Codec, CodecError, protocol::text};

/// The largest index: the network's clients hold indexes as 64-bit floats, so two larger ones can look alike.
const LARGEST: u128 = 1 << 53;

/// Converts addresses, currencies and transaction ids of `lighter-vm` between text and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "0"
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| text.parse::<u128>().ok())
            .flatten()
            .filter(|index| *index <= LARGEST)
            .map(|index| index.to_be_bytes().to_vec())
            .ok_or_else(|| CodecError(format!("Not an account index: {}", text::short(text))))
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        let refused = || CodecError("Not the 16 bytes of an account index".into());
        let index = u128::from_be_bytes(bytes.try_into().map_err(|_| refused())?);
        // Published answers round the indexes of non-existent accounts like a 64-bit float.
        let text = (index as f64).to_string();
        (text.len() <= 21).then_some(text).ok_or_else(refused)
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        text::padded(text)
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode(bytes))
    }
}
