//! The allocator's payloads of `bitcoin-vm`, and its signatures (guide: protocol 8.4). Pure.

use bitcoin::{
    Psbt, PublicKey, ScriptBuf,
    secp256k1::{
        Message, SECP256K1,
        ecdsa::{RecoverableSignature, RecoveryId},
    },
    sighash::{EcdsaSighashType, SighashCache},
};

use super::{partial, psbt::Payload, withdrawal};
use crate::{Bytes, CodecError, PayloadCodec};

/// Makes PSBTs of what the allocator records.
pub struct Payloads;

impl PayloadCodec for Payloads {
    fn signatures(&self, payload: &[u8]) -> Result<usize, CodecError> {
        Ok(Payload::decode(payload)?.psbt()?.inputs.len())
    }

    fn unsigned(&self, payload: &[u8]) -> Result<Vec<u8>, CodecError> {
        Ok(Payload::decode(payload)?.psbt()?.serialize())
    }

    /// One signature per input, each of the key of the P2WPKH output that it spends.
    fn signed(&self, payload: &[u8], signatures: &[Bytes]) -> Result<Vec<u8>, CodecError> {
        let payload = Payload::decode(payload)?;
        let unsigned = payload.psbt()?;
        let compact = signatures.iter().map(|json| partial::extract(json));
        let compact: Vec<[u8; 65]> = compact.collect::<Result<_, _>>()?;
        let key = key(&unsigned, &compact)
            .ok_or_else(|| CodecError("a signature is not of the account that pays".into()))?;
        let all: Vec<Vec<u8>> = compact.iter().map(|bytes| bytes.to_vec()).collect();
        Ok(payload.signed(&key, &all)?.serialize())
    }

    fn check_request(&self, data: &[u8]) -> Result<(), CodecError> {
        withdrawal::check_request(data)
    }
}

/// The key that made a signature for every input.
fn key(unsigned: &Psbt, signatures: &[[u8; 65]]) -> Option<PublicKey> {
    let mut hashes = SighashCache::new(&unsigned.unsigned_tx);
    let mut known = None;
    for (at, input) in unsigned.inputs.iter().enumerate() {
        let spent = input.witness_utxo.as_ref()?;
        let (script, kind) = (&spent.script_pubkey, EcdsaSighashType::All);
        let hash = hashes.p2wpkh_signature_hash(at, script, spent.value, kind);
        let key = recovered(Message::from(hash.ok()?), signatures.get(at)?)?;
        let ours = ScriptBuf::new_p2wpkh(&key.wpubkey_hash().ok()?);
        if ours != *script || known.is_some_and(|known| known != key) {
            return None;
        }
        known = Some(key);
    }
    known
}

fn recovered(message: Message, signature: &[u8; 65]) -> Option<PublicKey> {
    let id = i32::from(signature[64].checked_sub(27)?);
    let id = RecoveryId::from_i32(id).ok()?;
    let compact = RecoverableSignature::from_compact(&signature[..64], id).ok()?;
    let key = SECP256K1.recover_ecdsa(&message, &compact).ok()?;
    Some(PublicKey::new(key))
}

#[cfg(test)]
mod tests {
    use alloy::hex;
    use bitcoin::{
        Amount, OutPoint, Transaction, TxIn, TxOut, absolute::LockTime, secp256k1::SecretKey,
        transaction::Version,
    };
    use serde_json::json;

    use super::*;
    use crate::{WithdrawalCodec, bitcoin::network::MAIN};

    fn secret(byte: u8) -> SecretKey {
        SecretKey::from_slice(&[byte; 32]).unwrap()
    }

    fn account(byte: u8) -> ScriptBuf {
        let key = PublicKey::new(secret(byte).public_key(SECP256K1));
        ScriptBuf::new_p2wpkh(&key.wpubkey_hash().unwrap())
    }

    /// A payload that spends an output of each of `accounts`.
    fn payload(accounts: &[u8]) -> Vec<u8> {
        let output = |value, script_pubkey| TxOut {
            value: Amount::from_sat(value),
            script_pubkey,
        };
        let input = |vout| TxIn {
            previous_output: OutPoint {
                vout,
                ..OutPoint::default()
            },
            ..TxIn::default()
        };
        let mut psbt = Psbt::from_unsigned_tx(Transaction {
            version: Version::ONE,
            lock_time: LockTime::ZERO,
            input: (0..accounts.len() as u32).map(input).collect(),
            output: vec![output(600, account(9)), output(300, account(1))],
        })
        .unwrap();
        for (input, of) in psbt.inputs.iter_mut().zip(accounts) {
            input.witness_utxo = Some(output(1000, account(*of)));
        }
        Payload::of(&psbt).unwrap().encode()
    }

    /// The signature service's answer for each input, by these keys.
    fn signatures(payload: &[u8], keys: &[u8]) -> Vec<Bytes> {
        let psbt = Payload::decode(payload).unwrap().psbt().unwrap();
        let mut hashes = SighashCache::new(&psbt.unsigned_tx);
        let mut served = Vec::new();
        for (at, (input, by)) in psbt.inputs.iter().zip(keys).enumerate() {
            let spent = input.witness_utxo.as_ref().unwrap();
            let (script, kind) = (&spent.script_pubkey, EcdsaSighashType::All);
            let hash = hashes.p2wpkh_signature_hash(at, script, spent.value, kind);
            let message = Message::from(hash.unwrap());
            let signature = SECP256K1.sign_ecdsa_recoverable(&message, &secret(*by));
            let (id, bytes) = signature.serialize_compact();
            let json = json!({
                "big_r": {"affine_point": format!("02{}", hex::encode(&bytes[..32]))},
                "s": {"scalar": hex::encode(&bytes[32..])},
                "recovery_id": id.to_i32(),
            });
            served.push(json.to_string().into_bytes().into());
        }
        served
    }

    #[test]
    fn signatures_of_the_account_make_the_withdrawal() {
        let payload = payload(&[1, 1]);
        assert_eq!(Payloads.signatures(&payload), Ok(2));
        let signed = Payloads.signed(&payload, &signatures(&payload, &[1, 1]));
        let signed = signed.unwrap();
        let info = MAIN.describe(&MAIN.decode(&signed).unwrap());
        assert_eq!(info.sole, Ok(()));
        assert_eq!(info.amount.as_deref(), Ok("1700"));
        assert_eq!(info.spending.unwrap().payload, payload);
        // Without signatures it is the same transaction.
        let unsigned = Payloads.unsigned(&payload).unwrap();
        let [signed, unsigned] = [signed, unsigned].map(|psbt| {
            let psbt = Psbt::deserialize(&psbt).unwrap();
            psbt.unsigned_tx.compute_txid()
        });
        assert_eq!(signed, unsigned);
    }

    #[test]
    fn signatures_of_others_or_too_few_are_refused() {
        let own = payload(&[1, 1]);
        let good = signatures(&own, &[1, 1]);
        let other = signatures(&payload(&[1]), &[1]);
        for wrong in [
            signatures(&own, &[2, 2]),
            signatures(&own, &[1, 2]),
            good[..1].to_vec(),
            Vec::new(),
            vec![good[0].clone(), other[0].clone()],
            vec![good[0].clone(), Bytes::from_static(b"{}")],
        ] {
            assert!(Payloads.signed(&own, &wrong).is_err());
        }
        let shared = payload(&[1, 2]);
        assert!(
            Payloads
                .signed(&shared, &signatures(&shared, &[1, 2]))
                .is_err()
        );
        for garbage in [&b""[..], b"payload"] {
            assert!(Payloads.signatures(garbage).is_err());
            assert!(Payloads.unsigned(garbage).is_err());
        }
    }
}
