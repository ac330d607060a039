//! How owners of `bitcoin-vm` accounts sign.

use alloy::hex;
use bitcoin::{
    Address, CompressedPublicKey, Network, PrivateKey, PublicKey, ScriptBuf, consensus,
    secp256k1::{Message, SECP256K1, SecretKey},
    sign_message::{MessageSignature, signed_msg_hash},
};

use crate::{
    allocator::secret,
    family::{Owner, OwnerForm, greater_s, owner},
};

/// What BIP-137 signatures begin with, without the number of the key.
const UNCOMPRESSED: u8 = 27;
const P2PKH: u8 = 31;
const NESTED: u8 = 35;
const SEGWIT: u8 = 39;

/// Accounts of one key.
struct Accounts {
    secret: SecretKey,
    p2pkh: Address,
    uncompressed: Address,
    nested: Address,
    segwit: Address,
    taproot: Address,
}

impl Accounts {
    fn of(secret: SecretKey) -> Self {
        let network = Network::Bitcoin;
        let key = PrivateKey::new(secret, network);
        let compressed = CompressedPublicKey::from_private_key(SECP256K1, &key).unwrap();
        let long = PublicKey::new_uncompressed(secret.public_key(SECP256K1));
        let (internal, _) = secret.x_only_public_key(SECP256K1);
        Self {
            secret,
            p2pkh: Address::p2pkh(compressed, network),
            uncompressed: Address::p2pkh(long, network),
            nested: Address::p2shwpkh(&compressed, network),
            segwit: Address::p2wpkh(&compressed, network),
            taproot: Address::p2tr(SECP256K1, internal, None, network),
        }
    }

    /// Signed by BIP-137 with this first byte.
    fn compact(&self, what: &'static str, account: &Address, header: u8) -> Owner {
        let secret = self.secret;
        owner((what, &account.to_string()), true, move |digest| {
            compact(&secret, digest, header).to_vec()
        })
    }

    /// Signed by BIP-322 with the witness alone.
    fn simple(&self, what: &'static str, account: &Address) -> Owner {
        let (secret, by) = (self.secret, account.clone());
        owner((what, &account.to_string()), true, move |digest| {
            let keys = [PrivateKey::new(secret, Network::Bitcoin)];
            let witness = bip322::sign_simple(&by, hex::encode(digest), &keys, None);
            consensus::serialize(&witness.unwrap())
        })
    }

    /// Signed by BIP-322 with the transaction of that witness.
    fn full(&self, what: &'static str, account: &Address) -> Owner {
        let (secret, by) = (self.secret, account.clone());
        owner((what, &account.to_string()), false, move |digest| {
            let keys = [PrivateKey::new(secret, Network::Bitcoin)];
            let locks = bip322::LockParams::default();
            let full = bip322::sign_full(&by, hex::encode(digest), &keys, None, locks);
            consensus::serialize(&full.unwrap())
        })
    }
}

pub fn owners(form: OwnerForm, key: u8) -> Vec<Owner> {
    let of = Accounts::of(secret(key));
    match form {
        OwnerForm::Good => vec![
            of.compact("P2PKH", &of.p2pkh, P2PKH),
            of.compact("P2PKH of the long key", &of.uncompressed, UNCOMPRESSED),
            of.compact("P2SH-P2WPKH by BIP-137", &of.nested, NESTED),
            of.compact("P2WPKH by BIP-137", &of.segwit, SEGWIT),
            // As Electrum and others do.
            of.compact("P2WPKH as if it were P2PKH", &of.segwit, P2PKH),
            of.simple("P2SH-P2WPKH by BIP-322", &of.nested),
            of.simple("P2WPKH by BIP-322", &of.segwit),
            of.simple("P2TR by BIP-322", &of.taproot),
        ],
        OwnerForm::HighS => vec![high(&of)],
        OwnerForm::Transaction => vec![
            of.full("P2SH-P2WPKH", &of.nested),
            of.full("P2WPKH", &of.segwit),
            of.full("P2TR", &of.taproot),
        ],
        OwnerForm::OtherKind => {
            let script = Address::p2wsh(&ScriptBuf::new(), Network::Bitcoin);
            let headers = [UNCOMPRESSED, P2PKH, NESTED, SEGWIT].into_iter();
            let both = headers.flat_map(|header| {
                [
                    of.compact("P2TR by BIP-137", &of.taproot, header),
                    of.compact("P2WSH by BIP-137", &script, header),
                ]
            });
            let none = both.map(|owner| Owner {
                counts: false,
                ..owner
            });
            none.collect()
        }
    }
}

/// A first byte, `r` and `s`.
fn compact(secret: &SecretKey, digest: &[u8; 32], header: u8) -> [u8; 65] {
    let hash = Message::from_digest(*signed_msg_hash(&hex::encode(digest)).as_ref());
    let signature = SECP256K1.sign_ecdsa_recoverable(&hash, secret);
    let mut bytes = MessageSignature::new(signature, true).serialize();
    bytes[0] = header + (bytes[0] - P2PKH);
    bytes
}

/// The other `s` of a BIP-137 signature, and the other parity with it.
fn high(of: &Accounts) -> Owner {
    let secret = of.secret;
    let account = of.segwit.to_string();
    owner(("the greater s", &account), true, move |digest| {
        let mut bytes = compact(&secret, digest, SEGWIT);
        let high = greater_s(&bytes[33..]);
        bytes[33..].copy_from_slice(&high);
        bytes[0] = SEGWIT + ((bytes[0] - SEGWIT) ^ 1);
        bytes.to_vec()
    })
}
