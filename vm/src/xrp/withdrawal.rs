//! Withdrawals of `xrp-vm`: payments of native XRP, ABI-encoded; the id is the hash that the
//! account's key signs (guide: protocol 8.1). Pure.

use alloy::{hex, primitives::FixedBytes, sol_types::SolValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha512};

use super::address::Addresses;
use crate::{
    Bytes, Codec, CodecError, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall, additional},
    },
};

const FAMILY: &str = "xrp-vm";
/// The prefix of a single signer's hash: `STX` and a zero.
const SIGNING_PREFIX: [u8; 4] = *b"STX\0";
/// The number of all drops.
const MOST_DROPS: u64 = 100_000_000_000_000_000;
/// The flag of an amount of XRP that is not negative.
const NATIVE_AMOUNT: u64 = 1 << 62;

mod abi {
    alloy::sol! {
        struct Withdrawal {
            bytes20 account; bytes20 destination; uint64 amount; uint64 fee; uint32 sequence;
            uint32 lastLedgerSequence; uint32 flags; uint32 destinationTag;
            bool hasDestinationTag; bytes signingPubKey;
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    account: String,
    destination: String,
    /// In drops, like the fee.
    #[serde(with = "json::text")]
    amount: u64,
    #[serde(with = "json::text")]
    fee: u64,
    sequence: u32,
    last_ledger_sequence: u32,
    flags: u32,
    #[serde(with = "json::bytes")]
    signing_pub_key: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination_tag: Option<u32>,
    /// The codec refuses issued currencies.
    #[serde(default, skip_serializing)]
    currency: Option<Value>,
    #[serde(default, skip_serializing)]
    issuer: Option<Value>,
}

impl Withdrawal {
    fn read(withdrawal: &Value) -> Result<Self, CodecError> {
        let withdrawal: Self = json::read(withdrawal)?;
        if withdrawal.currency.is_some() || withdrawal.issuer.is_some() {
            return Err(CodecError(
                "xrp-vm: issued (non-native) currencies are not yet supported".into(),
            ));
        }
        Ok(withdrawal)
    }

    /// `SHA512-half` over the signing prefix and the canonical serialisation of the payment.
    fn id(&self) -> Result<String, CodecError> {
        if self.amount > MOST_DROPS || self.fee > MOST_DROPS {
            return Err(CodecError("more XRP than there is".into()));
        }
        let key = u8::try_from(self.signing_pub_key.len())
            .ok()
            .filter(|length| *length <= 192)
            .ok_or_else(|| CodecError("not an XRP Ledger key".into()))?;
        let mut bytes = Vec::from(SIGNING_PREFIX);
        // Fields in canonical order: type code, then field code.
        bytes.extend([0x12, 0, 0]);
        bytes.push(0x22);
        bytes.extend(self.flags.to_be_bytes());
        bytes.push(0x24);
        bytes.extend(self.sequence.to_be_bytes());
        if let Some(tag) = self.destination_tag {
            bytes.push(0x2e);
            bytes.extend(tag.to_be_bytes());
        }
        bytes.extend([0x20, 0x1b]);
        bytes.extend(self.last_ledger_sequence.to_be_bytes());
        bytes.push(0x61);
        bytes.extend((NATIVE_AMOUNT | self.amount).to_be_bytes());
        bytes.push(0x68);
        bytes.extend((NATIVE_AMOUNT | self.fee).to_be_bytes());
        bytes.extend([0x73, key]);
        bytes.extend(&self.signing_pub_key);
        bytes.extend([0x81, 20]);
        bytes.extend(account(&self.account)?);
        bytes.extend([0x83, 20]);
        bytes.extend(account(&self.destination)?);
        let half = &Sha512::digest(bytes)[..32];
        Ok(format!("0x{}", hex::encode_upper(half)))
    }
}

/// Encodes and decodes withdrawals of `xrp-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        let withdrawal = Withdrawal::read(withdrawal)?;
        let encoded = abi::Withdrawal {
            account: account(&withdrawal.account)?,
            destination: account(&withdrawal.destination)?,
            amount: withdrawal.amount,
            fee: withdrawal.fee,
            sequence: withdrawal.sequence,
            lastLedgerSequence: withdrawal.last_ledger_sequence,
            flags: withdrawal.flags,
            destinationTag: withdrawal.destination_tag.unwrap_or_default(),
            hasDestinationTag: withdrawal.destination_tag.is_some(),
            signingPubKey: withdrawal.signing_pub_key,
        };
        Ok(encoded.abi_encode())
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        let read = abi::Withdrawal::abi_decode(encoded)
            .ok()
            .filter(|read| read.hasDestinationTag || read.destinationTag == 0)
            .filter(|read| read.abi_encode() == encoded)
            .ok_or_else(|| CodecError("not an encoded XRP payment".into()))?;
        json::write(&Withdrawal {
            account: Addresses.decode_address(&read.account[..])?,
            destination: Addresses.decode_address(&read.destination[..])?,
            amount: read.amount,
            fee: read.fee,
            sequence: read.sequence,
            last_ledger_sequence: read.lastLedgerSequence,
            flags: read.flags,
            signing_pub_key: read.signingPubKey,
            destination_tag: read.hasDestinationTag.then_some(read.destinationTag),
            currency: None,
            issuer: None,
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let withdrawal = match Withdrawal::read(withdrawal) {
            Ok(withdrawal) => withdrawal,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        WithdrawalInfo {
            id: withdrawal.id(),
            currency: Ok(Addresses.native().into()),
            amount: Ok(withdrawal.amount.to_string()),
            recipient: Ok(withdrawal.destination),
            sole: Ok(()),
            spending: None,
        }
    }

    fn normalize_payload(&self, _: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Err(CodecError("xrp-vm has no payload params".into()))
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        let extra: RequestExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let tag = extra.destination_tag;
        let data = (
            (extra.sequence, extra.fee, extra.last_ledger_sequence),
            (
                extra.flags.unwrap_or_default(),
                tag.unwrap_or_default(),
                tag.is_some(),
            ),
        );
        // Static members have a flat encoding, however they are grouped.
        Ok(data.abi_encode_params())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestExtra {
    #[serde(deserialize_with = "json::text::deserialize")]
    sequence: u32,
    #[serde(deserialize_with = "json::text::deserialize")]
    fee: u64,
    #[serde(deserialize_with = "json::text::deserialize")]
    last_ledger_sequence: u32,
    #[serde(default, deserialize_with = "json::optional")]
    flags: Option<u32>,
    #[serde(default, deserialize_with = "json::optional")]
    destination_tag: Option<u32>,
}

fn account(address: &str) -> Result<FixedBytes<20>, CodecError> {
    FixedBytes::try_from(Addresses.encode_address(address)?.as_slice())
        .map_err(|_| CodecError("not an XRP Ledger account".into()))
}
