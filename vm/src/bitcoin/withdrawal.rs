//! Withdrawals of `bitcoin-vm`: the allocator's PSBTs, and the unspent outputs that a request names (guide: protocol
//! 8.1). Pure.

use std::{collections::HashSet, str::FromStr};

use alloy::{hex, sol_types::SolValue};
use base64::{Engine, prelude::BASE64_STANDARD};
use bitcoin::{
    Address, Amount, OutPoint, Psbt, Script, ScriptBuf, TxOut, Txid,
    hashes::Hash,
    psbt::Input,
    secp256k1::SECP256K1,
    sighash::{EcdsaSighashType, SighashCache},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    network::Network,
    psbt::Payload,
    signing::{self, signature},
    spend::{MAX_INPUTS, MAX_RIVALS},
    unproven,
};
use crate::{
    Bytes, Codec, CodecError, Spending, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json, limits,
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
            .ok_or_else(|| refused("a PSBT is lower-case hex"))?;
        let psbt = parse(&bytes)?;
        Ok((bytes, psbt))
    }
}

/// Encodes and decodes the allocator's transactions.
impl WithdrawalCodec for Network {
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
        let spending = self.spending(&psbt, &bytes);
        WithdrawalInfo {
            id: Ok(hex::encode_prefixed(id)),
            currency: Ok(self.native().into()),
            amount: amount(&psbt).map(|amount| amount.to_sat().to_string()),
            recipient: first_output(&psbt)
                .and_then(|output| self.address_text(&output.script_pubkey)),
            sole: spending.as_ref().map(|_| ()).map_err(Clone::clone),
            spending: spending.ok(),
        }
    }

    /// The recipient becomes its output script in base64.
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let depository = self.script(&request.depository)?;
        let data = abi::PayloadData {
            utxos: utxos(&extra.allocator_utxos, &depository)?,
            feeRate: extra.fee_rate,
        };
        let recipient = self.script(&request.recipient)?;
        Ok(PayloadParams {
            recipient: BASE64_STANDARD.encode(recipient.as_bytes()),
            data: data.abi_encode().into(),
            ..request.plain()
        })
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        let extra: RequestExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let depository = self.script(&request.depository)?;
        if !depository.is_p2wpkh() {
            return Err(CodecError(
                "bitcoin-vm allocator must be a P2WPKH address".into(),
            ));
        }
        check_count(extra.fee_utxos.len(), MAX_INPUTS)?;
        let fee_utxos = extra
            .fee_utxos
            .iter()
            .map(|fee| fee.utxo.abi(&self.script(&fee.address)?));
        let data = abi::RequestData {
            allocatorUtxos: utxos(&extra.allocator_utxos, &depository)?,
            feeUtxos: fee_utxos.collect::<Result<_, _>>()?,
            feeChangeScript: self.script(&extra.fee_change_address)?.into_bytes().into(),
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
    check_count(utxos.len(), MAX_INPUTS)?;
    utxos.iter().map(|utxo| utxo.abi(script)).collect()
}

/// Refuses more outputs to spend than `most`.
fn check_count(utxos: usize, most: usize) -> Result<(), CodecError> {
    match utxos > most {
        true => Err(CodecError(format!("more than {most} outputs to spend"))),
        false => Ok(()),
    }
}

/// Refuses what the allocator is to be told of a withdrawal of whose end nothing could be said: of each input its signature
/// is read, of [`limits::ITEMS`] at most.
pub fn check_payload(request: &PayloadRequest) -> Result<(), CodecError> {
    let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
    check_spent(
        &utxos(&extra.allocator_utxos, &ScriptBuf::new())?,
        &[],
        limits::ITEMS,
    )
}

/// What a withdrawal of which the allocator is to be told says of outputs whose values its signatures do not cover:
/// all of a depository that is no witness address.
pub fn unproven(request: &PayloadRequest) -> Result<Option<Bytes>, CodecError> {
    let depository = Address::from_str(&request.depository);
    let depository = depository.map_err(|_| refused("its depository is no Bitcoin address"))?;
    let script = depository.assume_checked().script_pubkey();
    if script.is_witness_program() {
        return Ok(None);
    }
    let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
    let output = |utxo: abi::Utxo| {
        let outpoint = OutPoint::new(Txid::from_byte_array(utxo.txid.0), utxo.index);
        let output = TxOut {
            value: Amount::from_sat(utxo.value),
            script_pubkey: script.clone(),
        };
        (outpoint, output)
    };
    let utxos = utxos(&extra.allocator_utxos, &script)?;
    let outputs: Vec<_> = utxos.into_iter().map(output).collect();
    Ok(Some(unproven::of(&outputs)))
}

/// Refuses the data of a withdraw request of whose end nothing could be said: [`Sought::new`](super::spend::Sought::new)
/// and [`Payload::decode`] refuse the transaction, or it has more inputs than other transactions are looked at
/// ([`MAX_RIVALS`]). Or of one in which an output of the depository pays the fee: its change is not the depository's.
pub fn check_request(data: &[u8]) -> Result<(), CodecError> {
    let data = abi::RequestData::abi_decode(data)
        .map_err(|_| refused("not the data of a Bitcoin withdraw request"))?;
    let (own, fees) = (&data.allocatorUtxos, &data.feeUtxos);
    check_spent(own, fees, MAX_RIVALS)?;
    let is_own = |fee: &abi::Utxo| own.iter().any(|utxo| utxo.scriptPubKey == fee.scriptPubKey);
    if fees.iter().any(is_own) {
        return Err(refused("an output of the depository to pay the fee"));
    }
    let mut scripts = fees.iter().chain(own);
    match scripts.all(|utxo| Script::from_bytes(&utxo.scriptPubKey).is_witness_program()) {
        true => Ok(()),
        false => Err(refused(
            "an output to spend is not of a witness address (P2WPKH, P2WSH or P2TR)",
        )),
    }
}

/// Refuses outputs of the allocator, and of who pays the fee, that no transaction can spend together, or more than
/// `most`.
fn check_spent(own: &[abi::Utxo], fees: &[abi::Utxo], most: usize) -> Result<(), CodecError> {
    let all = || own.iter().chain(fees);
    let count = all().count();
    check_count(count, most)?;
    if own.is_empty() {
        return Err(refused("no output of the allocator to spend"));
    }
    let each: HashSet<_> = all().map(|utxo| (utxo.txid, utxo.index)).collect();
    if each.len() != count {
        return Err(refused("one output to spend twice"));
    }
    match all().any(|utxo| utxo.value > Amount::MAX_MONEY.to_sat()) {
        true => Err(refused("more bitcoin than there is")),
        false => Ok(()),
    }
}

fn refused(what: &str) -> CodecError {
    CodecError(what.into())
}

fn parse(bytes: &[u8]) -> Result<Psbt, CodecError> {
    Psbt::deserialize(bytes).map_err(|error| CodecError(format!("not a PSBT: {error}")))
}

fn first_output(psbt: &Psbt) -> Result<&bitcoin::TxOut, CodecError> {
    let outputs = &psbt.unsigned_tx.output;
    outputs
        .first()
        .ok_or_else(|| refused("a PSBT without outputs"))
}

/// The amount that leaves the allocator, once every input is signed: the first output and the fee.
fn amount(psbt: &Psbt) -> Result<Amount, CodecError> {
    if let Some(index) = psbt.inputs.iter().position(|input| !signed(input)) {
        return Err(CodecError(format!("Can not finalize input #{index}")));
    }
    let fee = psbt.fee().map_err(|error| CodecError(error.to_string()))?;
    fee.checked_add(first_output(psbt)?.value)
        .ok_or_else(|| refused("more bitcoin than there is"))
}

/// Whether this is a P2WPKH or P2PKH input with its one signature.
fn signed(input: &Input) -> bool {
    let (Some(spent), Some((key, signature))) = (&input.witness_utxo, signature(input)) else {
        return false;
    };
    let wanted = input.sighash_type.unwrap_or(EcdsaSighashType::All.into());
    signing::is_account_of(key, &spent.script_pubkey) && wanted == signature.sighash_type.into()
}

impl Network {
    /// What a transaction says that pays its first output, with the fee, out of one account, and nothing else: the
    /// other outputs are that account's change and OP_RETURNs.
    ///
    /// The account's key has signed it, and it has only the allocator's own fields: others can make no second form of
    /// it, which would have another id.
    fn spending(&self, psbt: &Psbt, bytes: &[u8]) -> Result<Spending, CodecError> {
        if psbt.inputs.len() > MAX_INPUTS {
            return Err(refused("too many inputs"));
        }
        amount(psbt)?;
        let account = psbt
            .inputs
            .first()
            .and_then(|input| input.witness_utxo.as_ref());
        let account = &account.ok_or_else(|| refused("no inputs"))?.script_pubkey;
        let is_covered = account.is_witness_program();
        // Outputs are looked up, and for each input all of the transaction is hashed.
        let most = psbt.inputs.len().max(psbt.unsigned_tx.output.len());
        if !is_covered && most > limits::ITEMS {
            return Err(refused("more inputs or outputs than are looked at"));
        }
        let mut spent = psbt.inputs.iter().filter_map(|it| it.witness_utxo.as_ref());
        if !spent.all(|spent| spent.script_pubkey == *account) {
            return Err(refused("it spends from several accounts"));
        }
        let mut outputs = psbt.unsigned_tx.output.iter();
        if outputs
            .next()
            .is_none_or(|first| first.script_pubkey == *account)
        {
            return Err(refused("it pays the account that it spends from"));
        }
        let is_kept = |output: &bitcoin::TxOut| {
            let script = &output.script_pubkey;
            script == account || (script.is_op_return() && output.value == Amount::ZERO)
        };
        if !outputs.all(is_kept) {
            return Err(refused("its other outputs are not change"));
        }
        let payload = canonical(psbt, bytes).ok_or_else(|| refused("not the allocator's form"))?;
        if !is_valid(psbt) {
            return Err(refused("a signature is not valid"));
        }
        Ok(Spending {
            payer: self.address_text(account)?,
            unproven: (!is_covered).then(|| unproven::of(&payload.inputs)),
            payload: payload.encode().into(),
        })
    }
}

/// The allocator's payload, if `bytes` are what it gives with the signatures of the PSBT.
fn canonical(psbt: &Psbt, bytes: &[u8]) -> Option<Payload> {
    let payload = Payload::of(psbt)?;
    let signatures = psbt.inputs.iter().map(signature);
    let signatures: Vec<_> = signatures.collect::<Option<_>>()?;
    let (key, _) = signatures.first()?;
    let all = signatures.iter().map(|(_, signature)| signature.to_vec());
    let again = payload.signed(key, &all.collect::<Vec<_>>()).ok()?;
    (again.serialize() == bytes).then_some(payload)
}

/// Whether every signature is one of the whole transaction. A high s is none: blocks may have it, but everybody could make
/// it of the allocator's signature, and so a second withdrawal of another id.
fn is_valid(psbt: &Psbt) -> bool {
    let mut hashes = SighashCache::new(&psbt.unsigned_tx);
    let mut inputs = psbt.inputs.iter().enumerate();
    inputs.all(|(at, input)| {
        let (Some(spent), Some((key, signature))) = (&input.witness_utxo, signature(input)) else {
            return false;
        };
        let message = signing::message(&mut hashes, at, spent);
        let valid = |message| SECP256K1.verify_ecdsa(&message, &signature.signature, &key.inner);
        message.is_some_and(|message| valid(message).is_ok())
    })
}
