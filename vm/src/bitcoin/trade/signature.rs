//! Signs what spends outputs of the account's P2WPKH script (BIP 143), as a whole: SIGHASH_ALL.

use bitcoin::{
    Amount, EcdsaSighashType, Script, Transaction, Witness, ecdsa,
    hashes::Hash,
    secp256k1::{self, Message as Digest, SECP256K1},
    sighash::SighashCache,
};

use super::coin::Coin;
use crate::{
    CodecError,
    trade::{Message, Signer, SubmitError, Unsigned},
    types::B256,
};

/// The transaction with a signature in each input. Input `n` spends `coins[n]`, an output of `script`.
pub async fn sign(
    mut made: Transaction,
    coins: &[Coin],
    (key, public, script): (&dyn Signer, &secp256k1::PublicKey, &Script),
) -> Result<Transaction, SubmitError> {
    let mut witnesses = Vec::with_capacity(coins.len());
    for digest in digests(&made, coins, script)? {
        let signed = key.sign(Message::Ecdsa(&digest)).await?;
        let signature = signature(&signed, (&digest, public))?;
        witnesses.push(Witness::p2wpkh(&signature, public));
    }
    for (input, witness) in made.input.iter_mut().zip(witnesses) {
        input.witness = witness;
    }
    Ok(made)
}

/// What each input signs.
fn digests(made: &Transaction, coins: &[Coin], script: &Script) -> Result<Vec<B256>, CodecError> {
    if made.input.len() != coins.len() {
        return Err(CodecError("an input for each output that is spent".into()));
    }
    let mut cache = SighashCache::new(made);
    let each = coins.iter().enumerate().map(|(at, coin)| {
        let value = Amount::from_sat(coin.value);
        let digest = cache.p2wpkh_signature_hash(at, script, value, EcdsaSighashType::All);
        let digest = digest.map_err(|error| CodecError(error.to_string()))?;
        Ok(B256::new(digest.to_byte_array()))
    });
    each.collect()
}

/// `r || s || v` as nodes take it: with a low s.
fn signature(
    signed: &[u8],
    (digest, public): (&B256, &secp256k1::PublicKey),
) -> Result<ecdsa::Signature, Unsigned> {
    let wrong = |_| Unsigned("not a signature of the account's key".into());
    let compact = signed.get(..64).unwrap_or_default();
    let mut signature = secp256k1::ecdsa::Signature::from_compact(compact).map_err(wrong)?;
    signature.normalize_s();
    // Nodes refuse what is signed by another key, and the attempt would hold its outputs meanwhile.
    let digest = Digest::from_digest(digest.0);
    SECP256K1
        .verify_ecdsa(&digest, &signature, public)
        .map_err(wrong)?;
    Ok(ecdsa::Signature::sighash_all(signature))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bitcoin::{
        CompressedPublicKey, OutPoint, ScriptBuf, TxIn, TxOut, Txid, absolute::LockTime,
        transaction::Version,
    };

    use super::*;
    use crate::{trade::Scheme, types::Bytes};

    /// Signs with a high s where it can: key services may.
    struct Key(secp256k1::SecretKey);

    #[async_trait]
    impl Signer for Key {
        fn scheme(&self) -> Scheme {
            Scheme::Secp256k1
        }

        fn public_key(&self) -> Bytes {
            self.0.public_key(SECP256K1).serialize().to_vec().into()
        }

        async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
            let Message::Ecdsa(digest) = message else {
                return Err(Unsigned("ECDSA only".into()));
            };
            let digest = Digest::from_digest(digest.0);
            let signature = SECP256K1.sign_ecdsa(&digest, &self.0).serialize_compact();
            let mut s = k256::Scalar::default();
            if let Some(low) = scalar(&signature[32..]) {
                s = -low;
            }
            let high = [&signature[..32], &s.to_bytes()[..], &[0]].concat();
            Ok(high.into())
        }
    }

    fn scalar(bytes: &[u8]) -> Option<k256::Scalar> {
        use k256::elliptic_curve::PrimeField;
        let bytes = <[u8; 32]>::try_from(bytes).ok()?;
        k256::Scalar::from_repr(bytes.into()).into()
    }

    fn key(byte: u8) -> (Key, secp256k1::PublicKey) {
        let secret = secp256k1::SecretKey::from_slice(&[byte; 32]).unwrap();
        (Key(secret), secret.public_key(SECP256K1))
    }

    fn parts(public: secp256k1::PublicKey) -> (Transaction, Vec<Coin>, ScriptBuf) {
        let script = ScriptBuf::new_p2wpkh(&CompressedPublicKey(public).wpubkey_hash());
        let coins: Vec<_> = (1..=2)
            .map(|number| Coin {
                outpoint: OutPoint::new(Txid::from_byte_array([number; 32]), 0),
                value: 10_000,
                height: 1,
            })
            .collect();
        let made = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: coins
                .iter()
                .map(|coin| TxIn {
                    previous_output: coin.outpoint,
                    ..TxIn::default()
                })
                .collect(),
            output: vec![TxOut {
                value: Amount::from_sat(19_000),
                script_pubkey: script.clone(),
            }],
        };
        (made, coins, script)
    }

    #[tokio::test]
    async fn each_input_is_signed_as_a_whole_with_a_low_s() {
        let (key, public) = key(7);
        let (made, coins, script) = parts(public);
        let id = made.compute_txid();
        let signed = sign(made.clone(), &coins, (&key, &public, &script)).await;
        let signed = signed.unwrap();
        assert_eq!(signed.compute_txid(), id);
        for (at, digest) in digests(&made, &coins, &script).unwrap().iter().enumerate() {
            let witness = &signed.input[at].witness;
            assert_eq!(witness[1], public.serialize());
            let (kind, der) = witness[0].split_last().unwrap();
            assert_eq!(*kind, 1);
            let shown = secp256k1::ecdsa::Signature::from_der(der).unwrap();
            let mut low = shown;
            low.normalize_s();
            assert_eq!(shown, low);
            let digest = Digest::from_digest(digest.0);
            SECP256K1.verify_ecdsa(&digest, &shown, &public).unwrap();
        }
    }

    #[tokio::test]
    async fn another_keys_signature_and_inputs_without_outputs_are_refused() {
        let ((own, public), (other, _)) = (key(7), key(8));
        let (made, coins, script) = parts(public);
        let foreign = sign(made.clone(), &coins, (&other, &public, &script)).await;
        assert!(matches!(foreign, Err(SubmitError::Unsigned(_))));
        let fewer = sign(made, &coins[1..], (&own, &public, &script)).await;
        assert!(matches!(fewer, Err(SubmitError::Codec(_))));
    }
}
