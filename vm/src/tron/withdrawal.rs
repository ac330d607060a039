//! Withdrawals of `tron-vm`: call requests of the depository, addresses as `41` and 40 hex digits
//! (guide: protocol 8.1). Pure.

use alloy::hex;

use super::address::{Addresses, PREFIX};
use crate::{Codec, CodecError, EvmAddress, protocol::call::CallRequests};

/// Reads and writes withdrawals of `tron-vm`.
pub static WITHDRAWALS: CallRequests = CallRequests {
    parse: |text| {
        hex::decode(text)
            .ok()
            .filter(|bytes| text.len() == 42 && bytes.first() == Some(&PREFIX))
            .map(|bytes| EvmAddress::from_slice(&bytes[1..]))
            .ok_or_else(|| CodecError(format!("not a Tron address in hex: {text:?}")))
    },
    write: |address| format!("{PREFIX:x}{address:x}"),
    native: "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
    param: evm_text,
};

/// An address as those of the EVM: 20 bytes without the prefix.
fn evm_text(address: &str) -> Result<String, CodecError> {
    let bytes = Addresses.encode_address(address)?;
    bytes
        .strip_prefix(&[PREFIX])
        .map(hex::encode_prefixed)
        .ok_or_else(|| CodecError(format!("not a Tron address: {address:?}")))
}
