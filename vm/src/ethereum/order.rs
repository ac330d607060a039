//! Order calls and extra data of `ethereum-vm` (guide: protocol 3.2).

use alloy::sol_types::{SolCall, SolValue, sol_data};

use super::{abi::FillRouter, address::evm};
use crate::{Address, Bytes, CodecError, EvmAddress, OrderCall, OrderCodec, U256};

/// Three tuples of one field each. The middle one is dynamic, so that its head is an offset to a
/// tuple that starts with an offset of its own.
type CallParameters = (
    (sol_data::Address,),
    (sol_data::Bytes,),
    (sol_data::Uint<256>,),
);

/// Reads and writes the calls and the extra data of orders in ABI encoding.
pub struct Orders;

impl OrderCodec for Orders {
    fn decode_call(&self, call: &[u8]) -> Result<OrderCall, CodecError> {
        use alloy::sol_types::SolType;

        let ((to,), (data,), (value,)) = CallParameters::abi_decode_params(call)
            .map_err(|_| CodecError("Failed to decode call".into()))?;
        Ok(OrderCall {
            to: text(&to),
            data,
            value,
        })
    }

    fn encode_call(&self, call: &OrderCall) -> Result<Vec<u8>, CodecError> {
        let fields: ((EvmAddress,), (Bytes,), (U256,)) =
            ((evm(&call.to)?,), (call.data.clone(),), (call.value,));
        Ok(fields.abi_encode_params())
    }

    fn decode_extra_data(&self, data: &[u8]) -> Result<Address, CodecError> {
        EvmAddress::abi_decode(data)
            .map(|contract| text(&contract))
            .map_err(|_| CodecError("Failed to decode extra data".into()))
    }

    fn encode_extra_data(&self, fill_contract: &Address) -> Result<Vec<u8>, CodecError> {
        Ok(evm(fill_contract)?.abi_encode())
    }

    fn sweep(&self, router: &Address, of: &Address, to: &Address) -> Result<OrderCall, CodecError> {
        evm(router)?;
        let (currency, to) = (evm(of)?, evm(to)?);
        Ok(OrderCall {
            to: router.clone(),
            data: FillRouter::sweepCall { currency, to }.abi_encode().into(),
            value: U256::ZERO,
        })
    }
}

fn text(contract: &EvmAddress) -> Address {
    Address::from_parts(&format!("{contract:#x}"), contract.to_vec())
}
