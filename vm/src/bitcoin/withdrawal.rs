//! Withdrawals of `bitcoin-vm`: the allocator's PSBTs, and the unspent outputs that a request names (guide: protocol
//! 8.1). Pure.

use alloy::{hex, sol_types::SolValue};
use base64::{Engine, prelude::BASE64_STANDARD};
use bitcoin::{Amount, Psbt, ScriptBuf, psbt::Input, sighash::EcdsaSighashType};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{address::Addresses, script};
use crate::{
    Codec, CodecError, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall, additional, word},
    },
};

const FAMILY: &str = "bitcoin-vm";

mod abi {
    alloy::sol! {
        struct Utxo { bytes32 txid; uint32 index; uint64 value; bytes scriptPubKey; }
        struct PayloadData { Utxo[] utxos; uint64 feeRate; }
        struct RequestData {
            Utxo[] allocatorUtxos; Utxo[] feeUtxos; bytes feeChangeScript; uint64 feeRate;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Withdrawal {
    /// Lower-case hex without `0x`: the id is a hash of this text.
    psbt: String,
}

impl Withdrawal {
    fn read(withdrawal: &Value) -> Result<(Vec<u8>, Psbt), CodecError> {
        let withdrawal: Self = json::read(withdrawal)?;
        let bytes = hex::decode(&withdrawal.psbt)
            .ok()
            .filter(|bytes| hex::encode(bytes) == withdrawal.psbt)
            .ok_or_else(|| CodecError("a PSBT is lower-case hex".into()))?;
        let psbt = parse(&bytes)?;
        Ok((bytes, psbt))
    }
}

/// Encodes and decodes withdrawals of `bitcoin-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        Withdrawal::read(withdrawal).map(|(bytes, _)| bytes)
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        parse(encoded)?;
        json::write(&Withdrawal {
            psbt: hex::encode(encoded),
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let (bytes, psbt) = match Withdrawal::read(withdrawal) {
            Ok(read) => read,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        let id = Sha256::digest(hex::encode_prefixed(&bytes));
        WithdrawalInfo {
            id: Ok(hex::encode_prefixed(id)),
            currency: Ok(Addresses.native().into()),
            amount: amount(&psbt).map(|amount| amount.to_sat().to_string()),
            recipient: first_output(&psbt)
                .and_then(|output| script::to_address(&output.script_pubkey)),
            sole: Err(CodecError("its other outputs are not judged".into())),
        }
    }

    /// The recipient becomes its output script in base64.
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let depository = script::of_address(&request.depository)?;
        let data = abi::PayloadData {
            utxos: utxos(&extra.allocator_utxos, &depository)?,
            feeRate: extra.fee_rate,
        };
        let recipient = script::of_address(&request.recipient)?;
        Ok(PayloadParams {
            recipient: BASE64_STANDARD.encode(recipient.as_bytes()),
            data: data.abi_encode().into(),
            ..request.plain()
        })
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        let extra: RequestExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let depository = script::of_address(&request.depository)?;
        if !depository.is_p2wpkh() {
            return Err(CodecError(
                "bitcoin-vm allocator must be a P2WPKH address".into(),
            ));
        }
        let fee_utxos = extra
            .fee_utxos
            .iter()
            .map(|fee| fee.utxo.abi(&script::of_address(&fee.address)?));
        let data = abi::RequestData {
            allocatorUtxos: utxos(&extra.allocator_utxos, &depository)?,
            feeUtxos: fee_utxos.collect::<Result<_, _>>()?,
            feeChangeScript: script::of_address(&extra.fee_change_address)?
                .into_bytes()
                .into(),
            feeRate: extra.fee_rate,
        };
        Ok(data.abi_encode())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadExtra {
    allocator_utxos: Vec<Utxo>,
    /// Satoshis per virtual byte.
    #[serde(deserialize_with = "json::text::deserialize")]
    fee_rate: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestExtra {
    allocator_utxos: Vec<Utxo>,
    fee_utxos: Vec<FeeUtxo>,
    fee_change_address: String,
    #[serde(deserialize_with = "json::text::deserialize")]
    fee_rate: u64,
}

#[derive(Deserialize)]
struct Utxo {
    /// The id in explorers' spelling, with or without `0x`.
    txid: String,
    #[serde(deserialize_with = "json::text::deserialize")]
    vout: u32,
    /// Satoshis.
    #[serde(deserialize_with = "json::text::deserialize")]
    value: u64,
}

#[derive(Deserialize)]
struct FeeUtxo {
    #[serde(flatten)]
    utxo: Utxo,
    address: String,
}

impl Utxo {
    fn abi(&self, script: &ScriptBuf) -> Result<abi::Utxo, CodecError> {
        let digits = self.txid.strip_prefix("0x").unwrap_or(&self.txid);
        let mut txid = word(&format!("0x{digits}"))?.0;
        txid.reverse();
        Ok(abi::Utxo {
            txid: txid.into(),
            index: self.vout,
            value: self.value,
            scriptPubKey: script.to_bytes().into(),
        })
    }
}

fn utxos(utxos: &[Utxo], script: &ScriptBuf) -> Result<Vec<abi::Utxo>, CodecError> {
    utxos.iter().map(|utxo| utxo.abi(script)).collect()
}

fn parse(bytes: &[u8]) -> Result<Psbt, CodecError> {
    Psbt::deserialize(bytes).map_err(|error| CodecError(format!("not a PSBT: {error}")))
}

fn first_output(psbt: &Psbt) -> Result<&bitcoin::TxOut, CodecError> {
    let outputs = &psbt.unsigned_tx.output;
    outputs
        .first()
        .ok_or_else(|| CodecError("a PSBT without outputs".into()))
}

/// The amount that leaves the allocator, once every input is signed: the first output and the fee.
fn amount(psbt: &Psbt) -> Result<Amount, CodecError> {
    if let Some(index) = psbt.inputs.iter().position(|input| !signed(input)) {
        return Err(CodecError(format!("Can not finalize input #{index}")));
    }
    let fee = psbt.fee().map_err(|error| CodecError(error.to_string()))?;
    fee.checked_add(first_output(psbt)?.value)
        .ok_or_else(|| CodecError("more bitcoin than there is".into()))
}

/// Whether this is a P2WPKH input with its one signature.
fn signed(input: &Input) -> bool {
    let Some(spent) = &input.witness_utxo else {
        return false;
    };
    let mut signatures = input.partial_sigs.iter();
    let (Some((key, signature)), None) = (signatures.next(), signatures.next()) else {
        return false;
    };
    let ours = key
        .wpubkey_hash()
        .is_ok_and(|hash| ScriptBuf::new_p2wpkh(&hash) == spent.script_pubkey);
    let wanted = input.sighash_type.unwrap_or(EcdsaSighashType::All.into());
    ours && wanted == signature.sighash_type.into()
}
