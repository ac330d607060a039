//! Order calls and extra data of `ethereum-vm` (settlement.md 3).

use crate::{Address, CodecError, OrderCall, OrderCodec};

/// See the module.
pub struct Orders;

impl OrderCodec for Orders {
    fn decode_call(&self, _call: &[u8]) -> Result<OrderCall, CodecError> {
        todo!()
    }
    fn encode_call(&self, _call: &OrderCall) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
    fn decode_extra_data(&self, _data: &[u8]) -> Result<Address, CodecError> {
        todo!()
    }
    fn encode_extra_data(&self, _fill_contract: &Address) -> Result<Vec<u8>, CodecError> {
        todo!()
    }
}
