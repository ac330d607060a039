//! Owners of every family sign what they sign, and nobody else can.

use alloy::{
    hex,
    primitives::{B256, address, keccak256},
};
use bitcoin::{
    Address, CompressedPublicKey, Network, PrivateKey, ScriptBuf,
    secp256k1::{Message, SECP256K1, SecretKey},
    sign_message::{MessageSignature, signed_msg_hash},
};
use ed25519_dalek::{Signer, SigningKey};
use proptest::prelude::*;
use serde_json::{Value, json};
use vm::{
    Bytes, FAMILIES, OwnerClaim,
    protocol::signature::{Signature, eip191},
};

const DIGEST: [u8; 32] = [0x5a; 32];
const EVM: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

fn secret() -> SecretKey {
    let key = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    key.parse().unwrap()
}

/// The key in what a test knows of an owner: a TON wallet's `publicKey`, or a Lighter account's `l1Address`.
fn known_key(context: &Value) -> Option<Bytes> {
    let text = context
        .get("publicKey")
        .or_else(|| context.get("l1Address"))?;
    Some(hex::decode(text.as_str()?).ok()?.into())
}

fn verify(
    family: &str,
    owner: &str,
    signature: &str,
    context: Option<&Value>,
) -> Result<(), String> {
    let owners = vm::family(family).unwrap().owners.unwrap();
    let key = context.and_then(known_key);
    let claim = OwnerClaim {
        digest: DIGEST,
        owner,
        signature,
        key: key.as_ref(),
        metadata: context,
        settings: context.and_then(Value::as_object),
    };
    owners.verify(&claim).map_err(|refusal| refusal.to_string())
}

fn refused<T>(text: &str) -> Result<T, String> {
    Err(text.to_owned())
}

fn evm_signature(digest: B256) -> String {
    let message = Message::from_digest(digest.0);
    let signature = SECP256K1.sign_ecdsa_recoverable(&message, &secret());
    let (id, compact) = signature.serialize_compact();
    let (r, s) = compact.split_at(32);
    let (r, s) = (B256::from_slice(r), B256::from_slice(s));
    Signature::from_scalars(r, s, id.to_i32() == 1)
        .unwrap()
        .to_string()
}

/// The text that every family but the EVM ones signs.
fn text() -> String {
    hex::encode(DIGEST)
}

fn tron_owner() -> String {
    let account = address!("70997970c51812dc3a010c7d01b50e0d17dc79c8");
    vm::family("tron-vm")
        .unwrap()
        .codec
        .decode_address(&[&[0x41], account.as_slice()].concat())
        .unwrap()
}

fn tron_signature() -> String {
    evm_signature(keccak256(format!("\x19TRON Signed Message:\n64{}", text())))
}

#[test]
fn evm_accounts_sign_the_raw_digest() {
    let signature = evm_signature(eip191(&DIGEST));
    let lighter = json!({ "l1Address": EVM });
    for family in ["ethereum-vm", "hyperliquid-vm"] {
        assert_eq!(verify(family, EVM, &signature, None), Ok(()));
        assert_eq!(
            verify(family, &EVM.to_lowercase(), &signature, None),
            Ok(())
        );
        let other = "0x18e3309e01aac183654bedf707780d07062be485";
        assert_eq!(
            verify(family, other, &signature, None),
            refused("Invalid signature")
        );
        assert_eq!(
            verify(family, "", &signature, None),
            refused("Invalid signature")
        );
    }
    assert_eq!(
        verify("lighter-vm", "17", &signature, Some(&lighter)),
        Ok(())
    );
    for context in [None, Some(&json!({})), Some(&json!({ "l1Address": "" }))] {
        assert_eq!(
            verify("lighter-vm", "17", &signature, context),
            refused("Lighter account 17 has no l1_address")
        );
    }
}

#[test]
fn evm_signatures_of_a_wrong_length_are_named() {
    for text in [
        "0x1234",
        "0x",
        "",
        "zz",
        "0x123",
        &evm_signature(B256::ZERO)[..130],
    ] {
        assert_eq!(
            verify("ethereum-vm", EVM, text, None),
            refused("invalid signature length"),
            "{text}"
        );
    }
}

#[test]
fn tron_accounts_sign_the_digests_text() {
    let signature = tron_signature();
    assert_eq!(verify("tron-vm", &tron_owner(), &signature, None), Ok(()));
    let evm = evm_signature(eip191(text().as_bytes()));
    for wrong in [
        evm.as_str(),
        "0x1234",
        "",
        &signature[2..],
        &signature[..130],
    ] {
        assert_eq!(
            verify("tron-vm", &tron_owner(), wrong, None),
            refused("Invalid signature")
        );
    }
    for owner in ["T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", ""] {
        assert_eq!(
            verify("tron-vm", owner, &signature, None),
            refused("Invalid signature")
        );
    }
}

#[test]
fn solana_accounts_sign_the_digests_text() {
    let key = SigningKey::from_bytes(&[7; 32]);
    let owner = vm::family("solana-vm").unwrap().codec;
    let owner = owner
        .decode_address(key.verifying_key().as_bytes())
        .unwrap();
    let signature = hex::encode(key.sign(text().as_bytes()).to_bytes());
    assert_eq!(verify("solana-vm", &owner, &signature, None), Ok(()));
    assert_eq!(
        verify("solana-vm", &owner, &format!("0x{signature}"), None),
        Ok(())
    );
    let raw = hex::encode(key.sign(&DIGEST).to_bytes());
    assert_eq!(
        verify("solana-vm", &owner, &raw, None),
        refused("Invalid signature")
    );
    for short in [
        "",
        "0x",
        "0x1234",
        &signature[..126],
        &format!("0x0x{signature}"),
    ] {
        assert_eq!(
            verify("solana-vm", &owner, short, None),
            refused("Invalid signature length"),
            "{short}"
        );
    }
    for owner in ["", "0OIl", "1111"] {
        assert_eq!(
            verify("solana-vm", owner, &signature, None),
            refused("Invalid Solana owner address")
        );
    }
}

#[test]
fn a_key_of_small_order_signs_nothing_on_solana() {
    // The identity point, for which r = identity and s = 0 satisfies the lax equation.
    let identity = [&[1u8][..], &[0; 31]].concat();
    let owner = vm::family("solana-vm").unwrap().codec;
    let owner = owner.decode_address(&identity).unwrap();
    let signature = hex::encode([&identity[..], &[0; 32]].concat());
    assert_eq!(
        verify("solana-vm", &owner, &signature, None),
        refused("Invalid signature")
    );
}

mod bitcoin_owner {
    use super::*;

    fn key() -> PrivateKey {
        PrivateKey::new(secret(), Network::Bitcoin)
    }

    fn compressed() -> CompressedPublicKey {
        CompressedPublicKey::from_private_key(SECP256K1, &key()).unwrap()
    }

    fn p2tr() -> Address {
        let (internal, _) = secret().x_only_public_key(SECP256K1);
        Address::p2tr(SECP256K1, internal, None, Network::Bitcoin)
    }

    fn uncompressed() -> Address {
        let mut public = key().public_key(SECP256K1);
        public.compressed = false;
        Address::p2pkh(public, Network::Bitcoin)
    }

    pub fn segwit() -> Address {
        Address::p2wpkh(&compressed(), Network::Bitcoin)
    }

    /// `header` is the first byte, without the recovery id.
    pub fn bip137(header: u8) -> String {
        let digest = Message::from_digest(*signed_msg_hash(&text()).as_ref());
        let signature = SECP256K1.sign_ecdsa_recoverable(&digest, &secret());
        let mut bytes = MessageSignature::new(signature, true).serialize();
        bytes[0] = header + (bytes[0] - 31);
        hex::encode_prefixed(bytes)
    }

    fn simple(owner: &Address, message: &str) -> String {
        let witness = bip322::sign_simple(owner, message, &[key()], None).unwrap();
        hex::encode_prefixed(bitcoin::consensus::serialize(&witness))
    }

    fn check(owner: &Address, signature: &str) -> Result<(), String> {
        verify("bitcoin-vm", &owner.to_string(), signature, None)
    }

    #[test]
    fn addresses_of_a_key_are_signed_for_by_bip137() {
        let p2pkh = Address::p2pkh(compressed(), Network::Bitcoin);
        let nested = Address::p2shwpkh(&compressed(), Network::Bitcoin);
        let segwit = segwit();
        for (owner, header) in [
            (&p2pkh, 31),
            (&uncompressed(), 27),
            (&nested, 35),
            (&segwit, 39),
        ] {
            assert_eq!(check(owner, &bip137(header)), Ok(()), "{owner}");
        }
        // Electrum and others keep the header of P2PKH for segwit.
        assert_eq!(check(&segwit, &bip137(31)), Ok(()));
    }

    #[test]
    fn bip137_does_not_speak_for_taproot_or_scripts() {
        let script = Address::p2wsh(&ScriptBuf::new(), Network::Bitcoin);
        for owner in [p2tr(), script] {
            for header in [27, 31, 35, 39] {
                assert_eq!(check(&owner, &bip137(header)), refused("Invalid signature"));
            }
        }
    }

    #[test]
    fn foreign_headers_are_refused() {
        let owner = Address::p2pkh(compressed(), Network::Bitcoin);
        for header in [0, 23, 43, 60, 250] {
            assert_eq!(
                check(&owner, &bip137(header)),
                refused("Invalid signature"),
                "{header}"
            );
        }
    }

    #[test]
    fn single_keys_are_signed_for_by_bip322_simple() {
        let owners = [
            segwit(),
            Address::p2shwpkh(&compressed(), Network::Bitcoin),
            p2tr(),
        ];
        for owner in owners {
            let signature = simple(&owner, &text());
            assert_eq!(check(&owner, &signature), Ok(()), "{owner}");
            let other = simple(&owner, "another message");
            assert_eq!(check(&owner, &other), refused("Invalid signature"));
            for end in [signature.len() - 2, signature.len() / 4 * 2, 6, 4, 2] {
                assert_eq!(
                    check(&owner, &signature[..end]),
                    refused("Invalid signature")
                );
            }
            let longer = format!("{signature}00");
            assert_eq!(check(&owner, &longer), refused("Invalid signature"));
        }
    }

    #[test]
    fn bip322_full_is_not_simple() {
        let owner = segwit();
        let locks = bip322::LockParams::default();
        let full = bip322::sign_full(&owner, text(), &[key()], None, locks).unwrap();
        let bytes = bitcoin::consensus::serialize(&full);
        assert_eq!(
            check(&owner, &hex::encode_prefixed(bytes)),
            refused("Invalid signature")
        );
    }

    #[test]
    fn addresses_of_other_networks_have_no_owner() {
        let owner = Address::p2wpkh(&compressed(), Network::Testnet);
        assert_eq!(check(&owner, &bip137(39)), refused("Invalid signature"));
        for owner in ["", "bc1", EVM] {
            let answer = verify("bitcoin-vm", owner, &bip137(31), None);
            assert_eq!(answer, refused("Invalid signature"));
        }
    }
}

mod ton {
    use super::*;

    pub const OWNER: &str = "0:3aff984ca0e23d970cb0b2e27f20e715aeaa6ac764ab0f3d15edc0c43e7c1011";
    pub const KEY: [u8; 32] = [9; 32];

    pub fn signed(domain: &str) -> (String, Value) {
        let key = SigningKey::from_bytes(&KEY);
        let account = vm::family("ton-vm").unwrap().address(OWNER).unwrap();
        let account = account.bytes().try_into().unwrap();
        let hash = vm::ton::owner::sign_data_hash(account, domain, 1_831_424_577, &text());
        let context = json!({
            "timestamp": 1_831_424_577,
            "domain": domain,
            "publicKey": hex::encode(key.verifying_key().as_bytes()),
            "signDataDomain": "relay.link",
        });
        (hex::encode_prefixed(key.sign(&hash).to_bytes()), context)
    }

    #[test]
    fn wallets_sign_for_our_domain_and_those_under_it() {
        for domain in ["relay.link", "app.relay.link", "a.b.relay.link"] {
            let (signature, context) = signed(domain);
            assert_eq!(verify("ton-vm", OWNER, &signature, Some(&context)), Ok(()));
        }
        for domain in [
            "evilrelay.link",
            "relay.link.evil",
            ".relay.link",
            "link",
            "RELAY.LINK",
        ] {
            let (signature, context) = signed(domain);
            let answer = verify("ton-vm", OWNER, &signature, Some(&context));
            assert_eq!(
                answer,
                refused(&format!("Signature domain {domain} is not allowed"))
            );
        }
    }

    #[test]
    fn every_part_of_the_context_counts() {
        let (signature, context) = signed("relay.link");
        for (key, value) in [
            ("timestamp", json!(1_831_424_578)),
            ("domain", json!("app.relay.link")),
            ("publicKey", json!("00".repeat(32))),
        ] {
            let mut other = context.clone();
            other[key] = value;
            let answer = verify("ton-vm", OWNER, &signature, Some(&other));
            assert_eq!(answer, refused("Invalid signature"), "{key}");
        }
        for key in ["timestamp", "domain", "signDataDomain"] {
            let mut other = context.clone();
            other[key] = Value::Null;
            let answer = verify("ton-vm", OWNER, &signature, Some(&other));
            assert_eq!(
                answer,
                refused(&format!("Missing {key} of the TON signature"))
            );
        }
        assert!(verify("ton-vm", OWNER, &signature, None).is_err());
    }

    #[test]
    fn a_wallet_without_a_key_signs_nothing() {
        let (signature, mut context) = signed("relay.link");
        for key in [Value::Null, json!(""), json!("00"), json!("00".repeat(33))] {
            context["publicKey"] = key;
            let answer = verify("ton-vm", OWNER, &signature, Some(&context));
            let why = format!("TON account {OWNER} has no public key");
            assert_eq!(answer, refused(&why));
        }
    }

    #[test]
    fn malformed_owners_and_signatures_are_named() {
        let (signature, context) = signed("relay.link");
        let answer = verify("ton-vm", "0:12", &signature, Some(&context));
        assert_eq!(answer, refused("Invalid TON owner address"));
        for text in ["", "0x", "0x12", &signature[2..]] {
            let answer = verify("ton-vm", OWNER, text, Some(&context));
            assert_eq!(answer, refused("Invalid signature length"));
        }
    }
}

/// An account, what its owner signs the digest with, and what a verifier knows besides.
struct Signed {
    family: &'static str,
    owner: String,
    signature: String,
    context: Option<Value>,
}

impl Signed {
    fn new(family: &'static str, owner: impl Into<String>, signature: String) -> Self {
        Self {
            family,
            owner: owner.into(),
            signature,
            context: None,
        }
    }

    fn knowing(self, context: Value) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }
}

/// One of each family whose owners sign, in the order of the families. Those of one curve have the same key.
fn signed() -> Vec<Signed> {
    let personal = || evm_signature(eip191(&DIGEST));
    let segwit = bitcoin_owner::segwit();
    let (ton_signature, context) = ton::signed("relay.link");
    let key = SigningKey::from_bytes(&ton::KEY);
    let codec = vm::family("solana-vm").unwrap().codec;
    let solana = codec.decode_address(key.verifying_key().as_bytes());
    let by_text = hex::encode_prefixed(key.sign(text().as_bytes()).to_bytes());
    vec![
        Signed::new("ethereum-vm", EVM, personal()),
        Signed::new("solana-vm", solana.unwrap(), by_text),
        Signed::new("bitcoin-vm", segwit.to_string(), bitcoin_owner::bip137(39)),
        Signed::new("hyperliquid-vm", EVM, personal()),
        Signed::new("lighter-vm", "17", personal()).knowing(json!({ "l1Address": EVM })),
        Signed::new("ton-vm", ton::OWNER, ton_signature).knowing(context),
        Signed::new("tron-vm", tron_owner(), tron_signature()),
    ]
}

#[test]
fn no_family_takes_another_familys_signature() {
    let all = signed();
    let families = FAMILIES.iter().filter(|family| family.owners.is_some());
    let names = families.map(|family| family.name);
    assert!(all.iter().map(|one| one.family).eq(names));
    let mut refusals = 0;
    for one in &all {
        let check = |signature: &str| {
            let context = one.context.as_ref();
            verify(one.family, &one.owner, signature, context)
        };
        assert_eq!(check(&one.signature), Ok(()), "{}", one.family);
        // Hyperliquid and Lighter take what an EVM account signs.
        let foreign = all.iter().filter(|it| it.signature != one.signature);
        for foreign in foreign {
            let (own, other) = (one.family, foreign.family);
            let refusal = check(&foreign.signature).expect_err(other);
            let is_about_it = refusal.to_lowercase().starts_with("invalid signature");
            assert!(is_about_it, "{own} of {other}: {refusal}");
            refusals += 1;
        }
    }
    assert_eq!(refusals, 3 * 4 + 4 * 6);
}

#[test]
fn xrp_has_no_owner_signatures() {
    assert!(vm::family("xrp-vm").unwrap().owners.is_none());
}

/// Any bytes, and those that are as long as signatures: of a curve's two numbers, and with a recovery id behind or
/// before them.
fn signature_bytes() -> impl Strategy<Value = Vec<u8>> {
    let numbers = || prop::collection::vec(any::<u8>(), 64);
    let id = || prop::sample::select(vec![0_u8, 1, 27, 28, 31, 39]);
    prop_oneof![
        any::<Vec<u8>>(),
        numbers(),
        (numbers(), id()).prop_map(|(numbers, id)| [numbers, vec![id]].concat()),
        (id(), numbers()).prop_map(|(id, numbers)| [vec![id], numbers].concat()),
    ]
}

proptest! {
    #[test]
    fn random_signatures_are_refused(bytes in signature_bytes(), text: String, digest: [u8; 32]) {
        let context = json!({
            "timestamp": 1, "domain": "relay.link", "signDataDomain": "relay.link",
        });
        let hex = hex::encode_prefixed(&bytes);
        let wallet = Bytes::copy_from_slice(&digest);
        let account: Bytes = hex::decode(EVM).unwrap().into();
        let owners = [
            EVM,
            "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
            "11111111111111111111111111111112",
            "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
            "bc1qlstuehatfyetet55403jwqgks2nfw9ucja52sf",
            "bc1p97as3fpdptp2mhdejgrft5eagxa95d8l42glmgnhuu0j7gcnxp8qaygj47",
            "38JqoWp8A3HKGNLB896Sgt7eCnAuumfxf8",
            "0:3aff984ca0e23d970cb0b2e27f20e715aeaa6ac764ab0f3d15edc0c43e7c1011",
            &text,
        ];
        for verifier in FAMILIES.iter().filter_map(|family| family.owners) {
            for owner in owners {
                for (key, signature) in [(&wallet, &hex), (&wallet, &text), (&account, &hex), (&account, &text)] {
                    let claim = OwnerClaim {
                        digest, owner, signature,
                        key: Some(key), metadata: Some(&context), settings: context.as_object(),
                    };
                    prop_assert!(verifier.verify(&claim).is_err());
                }
            }
        }
    }
}
