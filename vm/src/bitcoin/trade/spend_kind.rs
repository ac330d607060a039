//! How outputs of a script are spent, and what an input that does so weighs. Pure.

use bitcoin::{
    PublicKey, Script, ScriptBuf, XOnlyPublicKey, blockdata::script::Builder,
    opcodes::all::OP_CHECKSIG, secp256k1::SECP256K1,
};

/// Base bytes of an input with an empty script: what it spends, the script's length, the sequence.
const BASE: u64 = (32 + 4 + 1 + 4) * 4;
/// The longest ECDSA signature that nodes pass on (low S), with its hash type and the byte of its length.
const ECDSA: u64 = 1 + 72;
/// A Schnorr signature over the whole transaction, with the byte of its length.
const SCHNORR: u64 = 1 + 64;
/// A compressed public key with the byte of its length.
const KEY: u64 = 1 + 33;
/// An uncompressed one.
const LONG_KEY: u64 = 1 + 65;

/// How outputs of a script are spent by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendKind {
    /// P2PKH.
    KeyHash { uncompressed: bool },
    /// P2WPKH in P2SH, with the inner script.
    NestedKeyHash(ScriptBuf),
    /// P2WPKH.
    WitnessKeyHash,
    /// P2WSH of a script that one signature satisfies: a key, or a key's hash.
    WitnessScript { script: ScriptBuf, hashed: bool },
    /// P2TR, spent by its key; with the internal key of an account without scripts (BIP 86), where it is known.
    Taproot { internal: Option<XOnlyPublicKey> },
}

impl SpendKind {
    /// How outputs of `script` are spent, where the script alone says it.
    pub fn of(script: &Script) -> Option<Self> {
        if script.is_p2pkh() {
            return Some(Self::KeyHash {
                uncompressed: false,
            });
        }
        if script.is_p2wpkh() {
            return Some(Self::WitnessKeyHash);
        }
        script.is_p2tr().then_some(Self::Taproot { internal: None })
    }

    /// The same for an account whose public key is known; `None` where `key` cannot spend the outputs of `script`.
    pub fn by(script: &Script, key: &PublicKey) -> Option<Self> {
        if *script == ScriptBuf::new_p2pkh(&key.pubkey_hash()) {
            return Some(Self::KeyHash {
                uncompressed: !key.compressed,
            });
        }
        if script.is_p2tr() {
            let (internal, _) = key.inner.x_only_public_key();
            let own = *script == ScriptBuf::new_p2tr(SECP256K1, internal, None);
            return own.then_some(Self::Taproot {
                internal: Some(internal),
            });
        }
        let hash = key.wpubkey_hash().ok()?;
        let inner = ScriptBuf::new_p2wpkh(&hash);
        if *script == inner {
            return Some(Self::WitnessKeyHash);
        }
        if *script == inner.to_p2sh() {
            return Some(Self::NestedKeyHash(inner));
        }
        let bare = Builder::new().push_key(key).push_opcode(OP_CHECKSIG);
        let hashed = ScriptBuf::new_p2pkh(&key.pubkey_hash());
        let scripts = [(bare.into_script(), false), (hashed, true)];
        let found = scripts.into_iter().find(|it| *script == it.0.to_p2wsh());
        found.map(|(script, hashed)| Self::WitnessScript { script, hashed })
    }

    /// Weight units of one input, without the two bytes that mark a transaction with witnesses.
    pub fn weight(&self) -> u64 {
        let count = 1;
        match self {
            Self::KeyHash { uncompressed: true } => BASE + (ECDSA + LONG_KEY) * 4,
            Self::KeyHash {
                uncompressed: false,
            } => BASE + (ECDSA + KEY) * 4,
            Self::NestedKeyHash(_) => BASE + (1 + 22) * 4 + count + ECDSA + KEY,
            Self::WitnessKeyHash => BASE + count + ECDSA + KEY,
            Self::WitnessScript { script, hashed } => {
                let script = 1 + script.len() as u64;
                let key = if *hashed { KEY } else { 0 };
                BASE + count + ECDSA + key + script
            }
            Self::Taproot { .. } => BASE + count + SCHNORR,
        }
    }

    /// Whether its signature stands in the witness.
    pub fn is_witness(&self) -> bool {
        !matches!(self, Self::KeyHash { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    const OTHER: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

    #[test]
    fn a_key_says_how_its_scripts_are_spent_and_no_others() {
        let key: PublicKey = KEY.parse().unwrap();
        let other: PublicKey = OTHER.parse().unwrap();
        let mut long = key;
        long.compressed = false;
        let inner = ScriptBuf::new_p2wpkh(&key.wpubkey_hash().unwrap());
        let bare = Builder::new().push_key(&key).push_opcode(OP_CHECKSIG);
        let bare = bare.into_script();
        for (script, key, weight) in [
            (ScriptBuf::new_p2pkh(&key.pubkey_hash()), key, 592),
            (ScriptBuf::new_p2pkh(&long.pubkey_hash()), long, 720),
            (inner.clone(), key, 272),
            (inner.to_p2sh(), key, 364),
            (bare.to_p2wsh(), key, 274),
            (
                ScriptBuf::new_p2pkh(&key.pubkey_hash()).to_p2wsh(),
                key,
                298,
            ),
        ] {
            let kind = SpendKind::by(&script, &key).unwrap();
            assert_eq!(kind.weight(), weight, "{kind:?}");
            assert_eq!(SpendKind::by(&script, &other), None, "{kind:?}");
        }
        assert_eq!(SpendKind::of(&inner), Some(SpendKind::WitnessKeyHash));
        assert_eq!(SpendKind::of(&inner.to_p2sh()), None);
        assert_eq!(SpendKind::of(&bare.to_p2wsh()), None);
        // Nobody spends an uncompressed key's hash in a witness.
        assert_eq!(SpendKind::by(&inner, &long), None);
    }

    /// The first account of BIP 86's test vectors.
    #[test]
    fn a_taproot_account_is_its_internal_keys_and_no_others() {
        let internal = "cc8a4bc64d897bddc5fbc2f670f7a8ba0b386779106cf1223c6fc5d7cd6fc115";
        let output = "a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c";
        let script = ScriptBuf::from_hex(&format!("5120{output}")).unwrap();
        let by = |key: &str| SpendKind::by(&script, &key.parse().unwrap());
        let known = SpendKind::Taproot {
            internal: Some(internal.parse().unwrap()),
        };
        // Both points with this x coordinate are one internal key.
        for parity in ["02", "03"] {
            assert_eq!(by(&format!("{parity}{internal}")), Some(known.clone()));
        }
        // Neither the output key, which is tweaked already, nor somebody's.
        for wrong in [format!("02{output}"), OTHER.into()] {
            assert_eq!(by(&wrong), None, "{wrong}");
        }
        let unknown = SpendKind::Taproot { internal: None };
        assert_eq!(SpendKind::of(&script).as_ref(), Some(&unknown));
        assert_eq!((known.weight(), unknown.weight()), (230, 230));
    }
}
