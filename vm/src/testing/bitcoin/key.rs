//! Keys of the chain's accounts: an account is the P2WPKH address of its key.

use alloy::hex;
use bitcoin::{
    Address, Amount, CompressedPublicKey, EcdsaSighashType, Psbt, Script, ScriptBuf, Transaction,
    TxOut, Witness, consensus, ecdsa,
    secp256k1::{Message, SECP256K1, SecretKey},
    sighash::SighashCache,
};
use serde_json::Value;

/// A secp256k1 key.
#[derive(Clone)]
pub struct Key(SecretKey);

impl Key {
    /// The key whose 32 secret bytes are all `byte`, which is not 0.
    pub fn of(byte: u8) -> Option<Self> {
        Self::from_bytes(&[byte; 32])
    }

    /// The key of 32 secret bytes; `None` where there is none.
    pub fn from_bytes(secret: &[u8]) -> Option<Self> {
        SecretKey::from_slice(secret).ok().map(Self)
    }

    /// The script that pays the account.
    pub fn script(&self) -> ScriptBuf {
        ScriptBuf::new_p2wpkh(&self.public().wpubkey_hash())
    }

    /// The account's address on a network of one's own.
    pub fn address(&self) -> String {
        Address::p2wpkh(&self.public(), bitcoin::Network::Regtest).to_string()
    }

    /// The transaction of a step as its user's wallet signs and finalises it, in bytes: the step's data have a PSBT. `None`
    /// where they have none whose inputs are all the key's.
    pub fn signed(&self, data: &Value) -> Option<Vec<u8>> {
        let bytes = hex::decode(data["psbt"].as_str()?).ok()?;
        let psbt = Psbt::deserialize(&bytes).ok()?;
        let spent = psbt.inputs.iter().map(|one| one.witness_utxo.clone());
        let spent: Option<Vec<_>> = spent.collect();
        let signed = self.sign(psbt.unsigned_tx, &spent?)?;
        Some(consensus::serialize(&signed))
    }

    /// The transaction with a signature in each input. Input `n` spends `spent[n]`; `None` where one is not the key's.
    pub fn sign(&self, mut made: Transaction, spent: &[TxOut]) -> Option<Transaction> {
        let own = self.script();
        let whole = made.clone();
        let mut cache = SighashCache::new(&whole);
        for (at, input) in made.input.iter_mut().enumerate() {
            let spent = spent.get(at).filter(|it| it.script_pubkey == own)?;
            let digest = digest(&mut cache, at, (&own, spent.value), EcdsaSighashType::All)?;
            let signature = ecdsa::Signature::sighash_all(SECP256K1.sign_ecdsa(&digest, &self.0));
            input.witness = Witness::p2wpkh(&signature, &self.public().0);
        }
        Some(made)
    }

    fn public(&self) -> CompressedPublicKey {
        CompressedPublicKey(self.0.public_key(SECP256K1))
    }
}

type Cache<'a> = SighashCache<&'a Transaction>;

fn digest(
    cache: &mut Cache<'_>,
    at: usize,
    (script, value): (&Script, Amount),
    kind: EcdsaSighashType,
) -> Option<Message> {
    let digest = cache.p2wpkh_signature_hash(at, script, value, kind).ok()?;
    Some(Message::from(digest))
}

/// Whether input `at` of a transaction is signed by the key of the P2WPKH output that it spends.
pub fn is_signed(transaction: &Transaction, at: usize, spent: &TxOut) -> bool {
    let witness = transaction
        .input
        .get(at)
        .map(|input| input.witness.to_vec());
    let Some([signature, key]) = witness.as_deref() else {
        return false;
    };
    let (Ok(signature), Ok(key)) = (
        ecdsa::Signature::from_slice(signature),
        CompressedPublicKey::from_slice(key),
    ) else {
        return false;
    };
    let script = &spent.script_pubkey;
    if *script != ScriptBuf::new_p2wpkh(&key.wpubkey_hash()) {
        return false;
    }
    let mut cache = SighashCache::new(transaction);
    let digest = digest(
        &mut cache,
        at,
        (script, spent.value),
        signature.sighash_type,
    );
    digest.is_some_and(|digest| {
        let verified = SECP256K1.verify_ecdsa(&digest, &signature.signature, &key.0);
        verified.is_ok()
    })
}
