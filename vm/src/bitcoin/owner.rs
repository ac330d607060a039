//! Owner signatures of `bitcoin-vm` over the digest's hex text: BIP-137 (P2PKH, P2SH-P2WPKH,
//! P2WPKH) or BIP-322 simple (P2WPKH, P2SH-P2WPKH, P2TR) (guide: protocol 6.3).

use std::str::FromStr;

use alloy::hex;
use bip322::{Verification, verify_simple};
use bitcoin::{
    Address, PublicKey, ScriptBuf, Witness, consensus,
    secp256k1::{
        Message, SECP256K1,
        ecdsa::{RecoverableSignature, RecoveryId},
    },
    sign_message::signed_msg_hash,
};

use super::network::Network;
use crate::{OwnerClaim, OwnerVerifier, Refusal, protocol::signature::signature_hex};

/// Verifies owner signatures. The signature is the `0x` hex of the binary form.
impl OwnerVerifier for Network {
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        if signed(claim, self.kind).is_some_and(|signed| signed) {
            return Ok(());
        }
        Err(Refusal("Invalid signature".into()))
    }
}

fn signed(claim: &OwnerClaim<'_>, network: bitcoin::Network) -> Option<bool> {
    let owner = Address::from_str(claim.owner)
        .ok()?
        .require_network(network)
        .ok()?;
    let message = hex::encode(claim.digest);
    let bytes = signature_hex(claim.signature).ok()?;
    match <&[u8; 65]>::try_from(&bytes[..]) {
        Ok(compact) => bip137(&owner, &message, compact),
        Err(_) => bip322_simple(&owner, &message, &bytes),
    }
}

/// A header byte, r and s. Wallets disagree about the header of segwit addresses, so it only selects the key to
/// recover; the address decides what the key must hash to.
fn bip137(owner: &Address, message: &str, signature: &[u8; 65]) -> Option<bool> {
    let header = signature[0].checked_sub(27).filter(|header| *header < 16)?;
    let id = RecoveryId::from_i32(i32::from(header & 3)).ok()?;
    let compact = RecoverableSignature::from_compact(&signature[1..], id).ok()?;
    let digest = Message::from_digest(*signed_msg_hash(message).as_ref());
    let key = PublicKey::new(SECP256K1.recover_ecdsa(&digest, &compact).ok()?);
    let uncompressed = PublicKey::new_uncompressed(key.inner);
    let segwit = ScriptBuf::new_p2wpkh(&key.wpubkey_hash().ok()?);
    let script = owner.script_pubkey();
    Some(
        script == ScriptBuf::new_p2pkh(&key.pubkey_hash())
            || script == ScriptBuf::new_p2pkh(&uncompressed.pubkey_hash())
            || script == ScriptBuf::new_p2sh(&segwit.script_hash())
            || script == segwit,
    )
}

/// The witness stack without further bytes. Refuses scripts (P2WSH, multisig, script paths), as other oracles of the
/// network do.
fn bip322_simple(owner: &Address, message: &str, bytes: &[u8]) -> Option<bool> {
    let witness: Witness = consensus::deserialize(bytes).ok()?;
    let script = owner.script_pubkey();
    let items = witness.len();
    let single_key = match items {
        1 => script.is_p2tr(),
        2 => script.is_p2wpkh() || script.is_p2sh(),
        _ => false,
    };
    if !single_key {
        return None;
    }
    let verdict = verify_simple(owner, message, witness).ok()?;
    Some(matches!(verdict, Verification::Valid { .. }))
}
