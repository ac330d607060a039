//! Order calls and extra data of `tron-vm` (guide: protocol 3.2): the fill contract as on EVM chains, in base58check.
//! The family has no order calls.

use alloy::sol_types::SolValue;

use super::address::{Addresses, PREFIX};
use crate::{Address, Codec, CodecError, EvmAddress, OrderCall, OrderCodec};

/// Encodes and decodes the extra data of `tron-vm` orders.
pub struct Orders;

impl OrderCodec for Orders {
    fn decode_call(&self, _call: &[u8]) -> Result<OrderCall, CodecError> {
        Err(unsupported())
    }

    fn encode_call(&self, _call: &OrderCall) -> Result<Vec<u8>, CodecError> {
        Err(unsupported())
    }

    fn decode_extra_data(&self, data: &[u8]) -> Result<Address, CodecError> {
        let contract = EvmAddress::abi_decode(data)
            .map_err(|_| CodecError("Failed to decode extra data".into()))?;
        let bytes = [&[PREFIX], contract.as_slice()].concat();
        Ok(Address::from_parts(
            &Addresses.decode_address(&bytes)?,
            bytes,
        ))
    }

    fn encode_extra_data(&self, fill_contract: &Address) -> Result<Vec<u8>, CodecError> {
        fill_contract
            .bytes()
            .strip_prefix(&[PREFIX])
            .and_then(|rest| EvmAddress::try_from(rest).ok())
            .map(|contract| contract.abi_encode())
            .ok_or_else(|| CodecError(format!("Not a contract address: {fill_contract}")))
    }

    fn sweep(&self, _: &Address, _: &Address, _: &Address) -> Result<OrderCall, CodecError> {
        Err(unsupported())
    }
}

fn unsupported() -> CodecError {
    CodecError("Unsupported vm type".into())
}
