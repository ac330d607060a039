//! The allocator of the scripted Bitcoin chains: what it records of a transaction, and how it signs one. The conformance
//! matrix has it, too.

use alloy::sol_types::SolValue;
use bitcoin::{
    Psbt, PublicKey, ScriptBuf,
    secp256k1::{Message, SECP256K1, SecretKey},
    sighash::{EcdsaSighashType, SighashCache},
};
use vm::bitcoin::psbt::Payload;

mod abi {
    alloy::sol! {
        struct Input { bytes txid; bytes index; bytes script; bytes value; }
        struct Output { bytes value; bytes script; }
        struct Payload { Input[] inputs; Output[] outputs; }
    }
}

/// An output that the allocator spends: the transaction's id in the order of its hash, the index, satoshis.
pub type Held = ([u8; 32], u32, u64);
/// A script and satoshis.
pub type Paid = (ScriptBuf, u64);

pub fn secret(byte: u8) -> SecretKey {
    SecretKey::from_slice(&[byte; 32]).unwrap()
}

/// The public key of the secret key of which each byte is `byte`.
pub fn key(byte: u8) -> PublicKey {
    PublicKey::new(secret(byte).public_key(SECP256K1))
}

/// That key's account.
pub fn script_of(byte: u8) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&key(byte).wpubkey_hash().unwrap())
}

/// The record of a transaction that spends what the account of the key `byte` holds.
pub fn recorded(byte: u8, held: &[Held], outputs: &[Paid]) -> Vec<u8> {
    recorded_of(&script_of(byte), held, outputs)
}

/// The same of outputs that pay a script.
pub fn recorded_of(script: &ScriptBuf, held: &[Held], outputs: &[Paid]) -> Vec<u8> {
    let input = |(txid, index, value): &Held| abi::Input {
        txid: txid.to_vec().into(),
        index: index.to_le_bytes().into(),
        script: script.to_bytes().into(),
        value: value.to_le_bytes().into(),
    };
    let output = |(script, value): &Paid| abi::Output {
        value: value.to_le_bytes().into(),
        script: script.to_bytes().into(),
    };
    let payload = abi::Payload {
        inputs: held.iter().map(input).collect(),
        outputs: outputs.iter().map(output).collect(),
    };
    payload.abi_encode()
}

/// The transaction, signed with the key `by` as if it were the key `named`.
pub fn signed_by(payload: &Payload, by: u8, named: u8) -> Psbt {
    let unsigned = payload.psbt().unwrap();
    let mut hashes = SighashCache::new(&unsigned.unsigned_tx);
    let signatures = unsigned.inputs.iter().enumerate().map(|(at, input)| {
        let spent = input.witness_utxo.as_ref().unwrap();
        let (script, kind) = (&spent.script_pubkey, EcdsaSighashType::All);
        let message = match script.is_p2pkh() {
            true => Message::from(hashes.legacy_signature_hash(at, script, 1).unwrap()),
            false => {
                let hash = hashes.p2wpkh_signature_hash(at, script, spent.value, kind);
                Message::from(hash.unwrap())
            }
        };
        let signature = SECP256K1.sign_ecdsa(&message, &secret(by));
        signature.serialize_compact().to_vec()
    });
    let signatures: Vec<_> = signatures.collect();
    payload.signed(&key(named), &signatures).unwrap()
}
