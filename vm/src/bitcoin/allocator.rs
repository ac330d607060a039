//! The allocator's payloads of `bitcoin-vm`, and its signatures (guide: protocol 8.4). Pure.

use bitcoin::{
    Psbt, PublicKey,
    secp256k1::{
        Message, SECP256K1,
        ecdsa::{RecoverableSignature, RecoveryId},
    },
    sighash::SighashCache,
};

use super::{partial, psbt::Payload, signing, withdrawal};
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

    /// One signature per input, each of the key of the P2WPKH or P2PKH output that it spends.
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
        let message = signing::message(&mut hashes, at, spent)?;
        let key = recovered(message, signatures.get(at)?)?;
        let ours = signing::is_account_of(&key, &spent.script_pubkey);
        if !ours || known.is_some_and(|known| known != key) {
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
        Amount, OutPoint, ScriptBuf, Transaction, TxIn, TxOut, absolute::LockTime,
        secp256k1::SecretKey, sighash::EcdsaSighashType, transaction::Version,
    };
    use serde_json::json;

    use super::*;
    use crate::{WithdrawalCodec, bitcoin::network::MAIN};

    fn secret(byte: u8) -> SecretKey {
        SecretKey::from_slice(&[byte; 32]).unwrap()
    }

    fn public(byte: u8) -> PublicKey {
        PublicKey::new(secret(byte).public_key(SECP256K1))
    }

    fn account(byte: u8) -> ScriptBuf {
        ScriptBuf::new_p2wpkh(&public(byte).wpubkey_hash().unwrap())
    }

    fn legacy(byte: u8) -> ScriptBuf {
        ScriptBuf::new_p2pkh(&public(byte).pubkey_hash())
    }

    /// A payload that spends an output of each of `accounts`.
    fn payload(accounts: &[u8]) -> Vec<u8> {
        let accounts: Vec<_> = accounts.iter().map(|byte| account(*byte)).collect();
        payload_of(&accounts)
    }

    /// A payload that spends outputs of these scripts.
    fn payload_of(accounts: &[ScriptBuf]) -> Vec<u8> {
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
            output: vec![output(600, account(9)), output(300, accounts[0].clone())],
        })
        .unwrap();
        for (input, of) in psbt.inputs.iter_mut().zip(accounts) {
            input.witness_utxo = Some(output(1000, of.clone()));
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
            let message = match script.is_p2pkh() {
                true => Message::from(hashes.legacy_signature_hash(at, script, 1).unwrap()),
                false => {
                    let hash = hashes.p2wpkh_signature_hash(at, script, spent.value, kind);
                    Message::from(hash.unwrap())
                }
            };
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
    fn signatures_of_a_key_hash_account_make_the_withdrawal() {
        let payload = payload_of(&[legacy(1), legacy(1)]);
        let signed = Payloads.signed(&payload, &signatures(&payload, &[1, 1]));
        let info = MAIN.describe(&MAIN.decode(&signed.unwrap()).unwrap());
        assert_eq!(info.sole, Ok(()));
        assert_eq!(info.amount.as_deref(), Ok("1700"));
        let spending = info.spending.unwrap();
        assert_eq!(spending.payload, payload);
        assert!(spending.unproven.is_some());
        for (scripts, keys) in [
            ([legacy(1), legacy(1)], [1, 2]),
            ([legacy(1), legacy(2)], [1, 2]),
            ([legacy(1), account(1)], [2, 2]),
        ] {
            let other = payload_of(&scripts);
            let signed = Payloads.signed(&other, &signatures(&other, &keys));
            assert!(signed.is_err(), "{scripts:?}");
        }
        // The script's hash is another account.
        let nested = payload_of(&[legacy(1).to_p2sh(), legacy(1)]);
        let good = signatures(&payload, &[1, 1]);
        assert!(Payloads.signed(&nested, &good).is_err());
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
