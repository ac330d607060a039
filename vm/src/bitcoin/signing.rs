//! How a depository's key spends what its account has, P2WPKH or P2PKH (guide: protocol 8.4). Pure.

use bitcoin::{
    PublicKey, Script, ScriptBuf, Transaction, TxOut,
    ecdsa::Signature,
    psbt::Input,
    script::Builder,
    secp256k1::Message,
    sighash::{EcdsaSighashType, SighashCache},
};

/// Whether `script` is the P2WPKH or P2PKH script of a key. An uncompressed key has none.
pub fn is_account_of(key: &PublicKey, script: &Script) -> bool {
    let Ok(witness) = key.wpubkey_hash() else {
        return false;
    };
    let legacy = ScriptBuf::new_p2pkh(&key.pubkey_hash());
    *script == *ScriptBuf::new_p2wpkh(&witness) || *script == *legacy
}

/// What a signature of the whole transaction signs in input `at`, which spends `spent`; `None` where that is no output
/// of P2WPKH or P2PKH. Only for P2WPKH it covers the value (BIP 143).
pub fn message(
    hashes: &mut SighashCache<&Transaction>,
    at: usize,
    spent: &TxOut,
) -> Option<Message> {
    let (script, kind) = (&spent.script_pubkey, EcdsaSighashType::All);
    if script.is_p2pkh() {
        let hash = hashes.legacy_signature_hash(at, script, kind.to_u32());
        return Some(Message::from(hash.ok()?));
    }
    let hash = hashes.p2wpkh_signature_hash(at, script, spent.value, kind);
    Some(Message::from(hash.ok()?))
}

/// The input's only signature, and its key.
pub fn signature(input: &Input) -> Option<(&PublicKey, &Signature)> {
    let mut signatures = input.partial_sigs.iter();
    signatures.next().filter(|_| signatures.next().is_none())
}

/// What the input has in the chain where it spends a P2PKH output; `None` unless it has the one signature of that
/// output's key.
pub fn legacy_script(input: &Input) -> Option<ScriptBuf> {
    let spent = input.witness_utxo.as_ref()?;
    let (key, signature) = signature(input)?;
    let own = spent.script_pubkey.is_p2pkh() && is_account_of(key, &spent.script_pubkey);
    let signed = Builder::new().push_slice(signature.serialize());
    own.then(|| signed.push_key(key).into_script())
}
