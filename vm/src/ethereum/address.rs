//! Addresses, currencies and transaction ids of `ethereum-vm` (guide: protocol 2.2).

use crate::{Address, Codec, CodecError, EvmAddress, protocol::text};

/// See the module.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "0x0000000000000000000000000000000000000000"
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

/// The 20 bytes of an account or contract.
pub fn evm(address: &Address) -> Result<EvmAddress, CodecError> {
    EvmAddress::try_from(address.bytes())
        .map_err(|_| CodecError(format!("Not a contract address: {address}")))
}
