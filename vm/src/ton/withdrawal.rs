//! Withdrawals of `ton-vm`: external messages of a highload v3 wallet, ABI-encoded; the id is the
//! hash of the cell that the wallet's key signs (guide: protocol 8.1). Pure.

use alloy::{hex, sol_types::SolValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tycho_types::cell::{Cell, CellBuilder};

use super::address::Addresses;
use crate::{
    B256, Codec, CodecError, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall},
    },
};

/// The wallet's send mode "pay the fees separately".
const MODE: u8 = 1;
/// The bits of a query id's two halves and of the timeout in the wallet's format.
const SHIFT_BITS: u16 = 13;
const BIT_NUMBER_BITS: u16 = 10;
const TIMEOUT_BITS: u16 = 22;

mod abi {
    alloy::sol! {
        struct Withdrawal {
            bytes32 receiver; uint128 amount; uint32 createdAt; uint32 queryId;
            uint32 subwalletId; uint32 timeout;
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    receiver: String,
    #[serde(with = "json::text")]
    amount: u128,
    /// Unix seconds.
    created_at: u32,
    query_id: u32,
    subwallet_id: u32,
    /// Seconds.
    timeout: u32,
}

impl Withdrawal {
    fn receiver(&self) -> Result<B256, CodecError> {
        B256::try_from(Addresses.encode_address(&self.receiver)?.as_slice())
            .map_err(|_| CodecError("not a TON account".into()))
    }

    /// The cell that the wallet's key signs.
    fn cell(&self) -> Result<Cell, CodecError> {
        let receiver = self.receiver()?;
        let build = || {
            let mut cell = CellBuilder::new();
            cell.store_u32(self.subwallet_id)?;
            cell.store_reference(message(receiver, self.amount)?)?;
            cell.store_u8(MODE)?;
            let shift = self.query_id >> BIT_NUMBER_BITS;
            store(&mut cell, shift.into(), SHIFT_BITS)?;
            let bit_number = self.query_id & ((1 << BIT_NUMBER_BITS) - 1);
            store(&mut cell, bit_number.into(), BIT_NUMBER_BITS)?;
            cell.store_u64(self.created_at.into())?;
            store(&mut cell, self.timeout.into(), TIMEOUT_BITS)?;
            cell.build()
        };
        build().map_err(|_| CodecError("out of the wallet's range".into()))
    }
}

/// An internal message that only carries value: `bounce` off, no body.
fn message(receiver: B256, amount: u128) -> Result<Cell, tycho_types::error::Error> {
    let mut cell = CellBuilder::new();
    // int_msg_info, ihr_disabled on, bounce off, bounced off, no source.
    cell.store_small_uint(0b01_0000, 6)?;
    // The receiver: addr_std without anycast, workchain 0.
    cell.store_small_uint(0b100, 3)?;
    cell.store_u8(0)?;
    cell.store_u256(&receiver)?;
    let bytes = amount.to_be_bytes();
    let coins = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    store(&mut cell, coins.len() as u64, 4)?;
    cell.store_raw(coins, 8 * coins.len() as u16)?;
    // No other currencies, no fees, no time: the chain sets them.
    cell.store_zeros(1 + 4 + 4 + 64 + 32)?;
    // No state; an empty body in place.
    cell.store_zeros(2)?;
    cell.build()
}

fn store(cell: &mut CellBuilder, number: u64, bits: u16) -> Result<(), tycho_types::error::Error> {
    if number >> bits != 0 {
        return Err(tycho_types::error::Error::IntOverflow);
    }
    cell.store_uint(number, bits)
}

/// Encodes and decodes withdrawals of `ton-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        let withdrawal: Withdrawal = json::read(withdrawal)?;
        let encoded = abi::Withdrawal {
            receiver: withdrawal.receiver()?,
            amount: withdrawal.amount,
            createdAt: withdrawal.created_at,
            queryId: withdrawal.query_id,
            subwalletId: withdrawal.subwallet_id,
            timeout: withdrawal.timeout,
        };
        Ok(encoded.abi_encode())
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        let read = abi::Withdrawal::abi_decode(encoded)
            .ok()
            .filter(|withdrawal| withdrawal.abi_encode() == encoded)
            .ok_or_else(|| CodecError("not an encoded TON withdrawal".into()))?;
        json::write(&Withdrawal {
            receiver: Addresses.decode_address(&read.receiver[..])?,
            amount: read.amount,
            created_at: read.createdAt,
            query_id: read.queryId,
            subwallet_id: read.subwalletId,
            timeout: read.timeout,
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let withdrawal: Withdrawal = match json::read(withdrawal) {
            Ok(withdrawal) => withdrawal,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        let id = withdrawal
            .cell()
            .map(|cell| hex::encode_prefixed(cell.repr_hash()));
        WithdrawalInfo {
            id,
            currency: Ok(Addresses.native().into()),
            amount: Ok(withdrawal.amount.to_string()),
            recipient: Ok(withdrawal.receiver),
            sole: Ok(()),
            spending: None,
        }
    }

    fn normalize_payload(&self, _: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Err(CodecError("ton-vm has no payload params".into()))
    }

    /// Empty: the hub needs only the request itself.
    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}
