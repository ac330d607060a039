//! The allocator's Bitcoin transaction, from its ABI payload to a PSBT (guide: protocol 8.4). Pure.

use std::collections::HashSet;

use alloy::sol_types::SolValue;
use bitcoin::{
    Amount, OutPoint, Psbt, PublicKey, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid,
    Witness, absolute::LockTime, bip32, hashes::Hash, psbt::Input, sighash::EcdsaSighashType,
    transaction::Version,
};

use super::partial;
use crate::CodecError;

/// The sequence of a replaceable input without a relative lock.
const SEQUENCE: Sequence = Sequence(0xffff_fffd);

mod abi {
    alloy::sol! {
        struct Input { bytes txid; bytes index; bytes script; bytes value; }
        struct Output { bytes value; bytes script; }
        struct Payload { Input[] inputs; Output[] outputs; }
    }
}

/// The allocator's transaction to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub(super) inputs: Vec<(OutPoint, TxOut)>,
    outputs: Vec<TxOut>,
}

impl Payload {
    /// Decodes the allocator's payload: little-endian byte strings, ids in internal order. Refuses a payload without
    /// inputs, or with the same input twice.
    pub fn decode(payload: &[u8]) -> Result<Self, CodecError> {
        let read = abi::Payload::abi_decode(payload)
            .map_err(|_| CodecError("not an encoded Bitcoin payload".into()))?;
        let inputs: Vec<_> = read.inputs.iter().map(input).collect::<Result<_, _>>()?;
        let spent: HashSet<_> = inputs.iter().map(|(outpoint, _)| *outpoint).collect();
        if inputs.is_empty() || spent.len() != inputs.len() {
            return Err(CodecError("no inputs, or one input twice".into()));
        }
        let output = |output: &abi::Output| txout(&output.value, &output.script);
        Ok(Self {
            inputs,
            outputs: read.outputs.iter().map(output).collect::<Result<_, _>>()?,
        })
    }

    /// The payload of a PSBT; `None` unless every input shows the output that it spends.
    pub fn of(psbt: &Psbt) -> Option<Self> {
        let inputs = psbt.unsigned_tx.input.iter().zip(&psbt.inputs);
        let input = |(input, shown): (&TxIn, &Input)| {
            Some((input.previous_output, shown.witness_utxo.clone()?))
        };
        Some(Self {
            inputs: inputs.map(input).collect::<Option<_>>()?,
            outputs: psbt.unsigned_tx.output.clone(),
        })
    }

    /// The bytes that [`Payload::decode`] reads, as the allocator records them.
    pub fn encode(&self) -> Vec<u8> {
        let script = |output: &TxOut| output.script_pubkey.to_bytes().into();
        let value = |output: &TxOut| output.value.to_sat().to_le_bytes().into();
        let input = |(outpoint, spent): &(OutPoint, TxOut)| abi::Input {
            txid: outpoint.txid.to_byte_array().into(),
            index: outpoint.vout.to_le_bytes().into(),
            script: script(spent),
            value: value(spent),
        };
        let output = |output: &TxOut| abi::Output {
            value: value(output),
            script: script(output),
        };
        let payload = abi::Payload {
            inputs: self.inputs.iter().map(input).collect(),
            outputs: self.outputs.iter().map(output).collect(),
        };
        payload.abi_encode()
    }

    /// The unsigned PSBT (version 0) that identifies the withdrawal.
    pub fn psbt(&self) -> Result<Psbt, CodecError> {
        let unsigned = Transaction {
            version: Version::ONE,
            lock_time: LockTime::ZERO,
            input: self
                .inputs
                .iter()
                .map(|(outpoint, _)| txin(*outpoint))
                .collect(),
            output: self.outputs.clone(),
        };
        let mut psbt = Psbt::from_unsigned_tx(unsigned).map_err(|e| CodecError(e.to_string()))?;
        for (input, (_, spent)) in psbt.inputs.iter_mut().zip(&self.inputs) {
            *input = Input {
                witness_utxo: Some(spent.clone()),
                sighash_type: Some(EcdsaSighashType::All.into()),
                ..Input::default()
            };
        }
        Ok(psbt)
    }

    /// The PSBT with one partial signature of `key` per input, in order, in any form that [`partial::normalise`]
    /// accepts.
    pub fn signed(&self, key: &PublicKey, signatures: &[Vec<u8>]) -> Result<Psbt, CodecError> {
        if signatures.len() != self.inputs.len() {
            return Err(CodecError("not one signature per input".into()));
        }
        let mut psbt = self.psbt()?;
        for (input, signature) in psbt.inputs.iter_mut().zip(signatures) {
            input
                .partial_sigs
                .insert(*key, partial::normalise(signature)?);
            let source = (
                bip32::Fingerprint::default(),
                bip32::DerivationPath::master(),
            );
            input.bip32_derivation.insert(key.inner, source);
        }
        Ok(psbt)
    }
}

fn input(input: &abi::Input) -> Result<(OutPoint, TxOut), CodecError> {
    let txid = Txid::from_byte_array(fixed(&input.txid)?);
    let vout = u32::from_le_bytes(fixed(&input.index)?);
    Ok((OutPoint { txid, vout }, txout(&input.value, &input.script)?))
}

fn txout(value: &[u8], script: &[u8]) -> Result<TxOut, CodecError> {
    let value = Amount::from_sat(u64::from_le_bytes(fixed(value)?));
    if value > Amount::MAX_MONEY {
        return Err(CodecError("more bitcoin than there is".into()));
    }
    Ok(TxOut {
        value,
        script_pubkey: ScriptBuf::from_bytes(script.to_vec()),
    })
}

fn txin(previous_output: OutPoint) -> TxIn {
    TxIn {
        previous_output,
        script_sig: ScriptBuf::new(),
        sequence: SEQUENCE,
        witness: Witness::new(),
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CodecError> {
    bytes
        .try_into()
        .map_err(|_| CodecError(format!("{} bytes where {N} are expected", bytes.len())))
}
