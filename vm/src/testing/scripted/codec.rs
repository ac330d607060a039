//! Accounts, currencies and transaction ids as texts: base58 throughout. Pure.

use crate::{Address, B256, Codec, CodecError, protocol::text};

/// The codec of the family.
pub struct Texts;

/// Thirty-two zero bytes.
const NATIVE: &str = "11111111111111111111111111111111";

impl Codec for Texts {
    fn native(&self) -> &'static str {
        NATIVE
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

/// The account of a public key, which is the key itself. An error for another length than 32 bytes.
pub fn account(public_key: &[u8]) -> Result<Address, CodecError> {
    let key = B256::try_from(public_key);
    let key = key.map_err(|_| CodecError("not an ed25519 public key of 32 bytes".into()))?;
    Ok(spelled(key))
}

/// The bytes of an account or currency. An error for another length than 32 bytes.
pub fn address(address: &Address) -> Result<B256, CodecError> {
    let wrong = |_| CodecError(format!("not 32 bytes of scripted-vm: {address}"));
    B256::try_from(address.bytes()).map_err(wrong)
}

/// The account or currency that has these bytes.
pub fn spelled(bytes: B256) -> Address {
    Address::from_parts(&bs58::encode(bytes).into_string(), bytes.to_vec())
}
