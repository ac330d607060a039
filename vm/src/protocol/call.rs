//! Call requests that the EVM and Tron depositories execute (guide: protocol 4.1 and 8.1).
//!
//! The two families share the bytes and the id. Only the spelling of addresses differs; a [`CallRequests`] holds it.

use alloy::{
    hex,
    sol_types::{SolCall, SolStruct, SolValue, abi::AbiDecoderConfig},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    json,
    request::{PayloadParams, PayloadRequest, WithdrawCall},
};
use crate::{
    family::{CodecError, WithdrawalCodec, WithdrawalInfo},
    types::{Bytes, EvmAddress, U256},
};

/// The most memory for decoding one request; a request body is at most 1 MiB of hex.
const MOST_MEMORY: usize = 8 << 20;

mod abi {
    #![allow(missing_docs, reason = "generated from the contract's own names")]
    alloy::sol! {
        struct Call { address to; bytes data; uint256 value; bool allowFailure; }
        struct CallRequest { Call[] calls; uint256 nonce; uint256 expiration; }
        function transfer(address to, uint256 amount) external returns (bool);
    }
}

/// Withdrawals as call requests, with a family's spelling of addresses.
pub struct CallRequests {
    pub parse: fn(&str) -> Result<EvmAddress, CodecError>,
    pub write: fn(&EvmAddress) -> String,
    /// The text of the native currency.
    pub native: &'static str,
    /// An address of the family's own text, as payload params spell it.
    pub param: fn(&str) -> Result<String, CodecError>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    calls: Vec<Call>,
    #[serde(with = "json::text")]
    nonce: U256,
    /// Unix seconds.
    #[serde(with = "json::plain")]
    expiration: U256,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    to: String,
    #[serde(with = "json::bytes")]
    data: Bytes,
    #[serde(with = "json::text")]
    value: U256,
    allow_failure: bool,
}

impl WithdrawalCodec for CallRequests {
    /// `abi.encode((calls, nonce, expiration))`.
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        Ok(self.request(&json::read(withdrawal)?)?.abi_encode())
    }

    /// The inverse of [`Self::encode`]; refuses bytes that are not exactly its output.
    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        // Overlapping pieces could make a small text decode to gigabytes.
        let strict = AbiDecoderConfig::new()
            .strict(true)
            .memory_limit(MOST_MEMORY);
        let request = abi::CallRequest::abi_decode_with_config(encoded, strict)
            .ok()
            .filter(|request| request.abi_encode() == encoded)
            .ok_or_else(|| CodecError("not an encoded call request".into()))?;
        let calls = request.calls.into_iter().map(|call| Call {
            to: (self.write)(&call.to),
            data: call.data,
            value: call.value,
            allow_failure: call.allowFailure,
        });
        json::write(&Withdrawal {
            calls: calls.collect(),
            nonce: request.nonce,
            expiration: request.expiration,
        })
    }

    /// The withdrawal's id, which is the EIP-712 struct hash, and the transfer of the first call.
    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let withdrawal: Withdrawal = match json::read(withdrawal) {
            Ok(withdrawal) => withdrawal,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        let id = self
            .request(&withdrawal)
            .map(|request| request.eip712_hash_struct());
        let moved = self.movement(&withdrawal);
        let part = |of: fn(&Movement) -> String| moved.as_ref().map(of).map_err(Clone::clone);
        WithdrawalInfo {
            id: id.map(hex::encode_prefixed),
            currency: part(|moved| moved.currency.clone()),
            amount: part(|moved| moved.amount.to_string()),
            recipient: part(|moved| moved.recipient.clone()),
            sole: sole(&withdrawal),
            spending: None,
        }
    }

    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Ok(PayloadParams {
            depository: (self.param)(&request.depository)?,
            currency: (self.param)(&request.currency)?,
            recipient: (self.param)(&request.recipient)?,
            ..request.plain()
        })
    }

    /// The hub needs nothing besides the request itself.
    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}

impl CallRequests {
    fn request(&self, withdrawal: &Withdrawal) -> Result<abi::CallRequest, CodecError> {
        let calls = withdrawal.calls.iter().map(|call| {
            Ok(abi::Call {
                to: (self.parse)(&call.to)?,
                data: call.data.clone(),
                value: call.value,
                allowFailure: call.allow_failure,
            })
        });
        Ok(abi::CallRequest {
            calls: calls.collect::<Result<_, CodecError>>()?,
            nonce: withdrawal.nonce,
            expiration: withdrawal.expiration,
        })
    }

    fn movement(&self, withdrawal: &Withdrawal) -> Result<Movement, CodecError> {
        let call = withdrawal
            .calls
            .first()
            .ok_or_else(|| CodecError("a withdrawal without calls".into()))?;
        if call.data.is_empty() {
            return Ok(Movement {
                currency: self.native.into(),
                amount: call.value,
                recipient: call.to.clone(),
            });
        }
        let transfer = abi::transferCall::abi_decode_validate(&call.data)
            .map_err(|_| CodecError("the first call is not a token transfer".into()))?;
        Ok(Movement {
            currency: call.to.clone(),
            amount: transfer.amount,
            recipient: transfer.to.to_checksum(None),
        })
    }
}

/// Refuses requests that allow a call to fail, because the failed call counts as executed, and requests with further
/// calls, whose transfers nobody accounts for.
fn sole(withdrawal: &Withdrawal) -> Result<(), CodecError> {
    match &withdrawal.calls[..] {
        [call] if call.allow_failure => Err(CodecError("its call may fail".into())),
        [call] if !call.data.is_empty() && !call.value.is_zero() => {
            Err(CodecError("its call moves two currencies".into()))
        }
        [_] => Ok(()),
        calls => Err(CodecError(format!("it has {} calls, not one", calls.len()))),
    }
}

struct Movement {
    currency: String,
    amount: U256,
    recipient: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::CallRequests;
    use crate::{WithdrawalCodec, protocol::text::evm_address};

    const CALLS: CallRequests = CallRequests {
        parse: evm_address,
        write: |address| format!("{address:#x}"),
        native: "native",
        param: |text| Ok(text.to_owned()),
    };

    fn withdrawal(data: &str, expiration: &Value) -> Value {
        let to = "0x34455a91dccb68ba3467ba846ba64055b8d0d7bd";
        let call = json!({"to": to, "data": data, "value": "7", "allowFailure": false});
        json!({"calls": [call], "nonce": "1", "expiration": expiration})
    }

    #[test]
    fn trailing_bytes_are_refused() {
        let mut bytes = CALLS.encode(&withdrawal("0x", &json!(1))).unwrap();
        assert!(CALLS.decode(&bytes).is_ok());
        bytes.extend([0; 32]);
        assert!(CALLS.decode(&bytes).is_err());
    }

    #[test]
    fn expirations_beyond_exact_numbers_survive_as_text() {
        let endless = json!(alloy::primitives::U256::MAX.to_string());
        let bytes = CALLS.encode(&withdrawal("0x", &endless)).unwrap();
        assert_eq!(CALLS.decode(&bytes).unwrap()["expiration"], endless);
    }

    #[test]
    fn a_call_that_is_no_transfer_has_an_id_and_no_amount() {
        let said = CALLS.describe(&withdrawal("0x095ea7b3", &json!(1)));
        assert!(said.id.is_ok());
        assert!(said.amount.is_err() && said.currency.is_err() && said.recipient.is_err());
    }

    #[test]
    fn only_one_call_that_cannot_fail_is_a_sole_payment() {
        let transfer = format!("0xa9059cbb{}{:064x}", "00".repeat(32), 5);
        let one = |change: fn(&mut Value)| {
            let mut withdrawal = withdrawal("0x", &json!(1));
            change(&mut withdrawal);
            CALLS.describe(&withdrawal).sole.is_ok()
        };
        assert!(one(|_| {}));
        assert!(!one(|w| w["calls"][0]["allowFailure"] = json!(true)));
        assert!(!one(|w| w["calls"] = json!([])));
        assert!(!one(|w| {
            let again = w["calls"][0].clone();
            w["calls"].as_array_mut().unwrap().push(again);
        }));
        // A token's transfer that brings the native currency along.
        let mut token = withdrawal(&transfer, &json!(1));
        assert!(CALLS.describe(&token).sole.is_err());
        token["calls"][0]["value"] = json!("0");
        assert!(CALLS.describe(&token).sole.is_ok());
    }

    #[test]
    fn a_withdrawal_without_calls_moves_nothing() {
        let said = CALLS.describe(&json!({"calls": [], "nonce": "1", "expiration": 1}));
        assert!(said.id.is_ok() && said.amount.is_err());
    }
}
