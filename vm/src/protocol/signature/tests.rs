use alloy::primitives::{U256, address};
use k256::ecdsa::SigningKey;
use proptest::prelude::*;

use super::*;

const KEY: B256 = b256!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const SIGNER: EvmAddress = address!("70997970c51812dc3a010c7d01b50e0d17dc79c8");

fn sign(digest: &B256) -> Signature {
    let key = SigningKey::from_slice(&KEY[..]).unwrap();
    let (signature, id) = key.sign_prehash_recoverable(&digest[..]).unwrap();
    let (r, s) = signature.split_bytes();
    Signature::from_scalars(B256::from_slice(&r), B256::from_slice(&s), id.is_y_odd()).unwrap()
}

/// The signature with r, s or v replaced.
fn with(r: Option<B256>, s: Option<B256>, v: Option<u8>) -> Vec<u8> {
    let mut bytes = sign(&KEY).as_bytes().to_vec();
    if let Some(r) = r {
        bytes[..32].copy_from_slice(&r[..]);
    }
    if let Some(s) = s {
        bytes[32..64].copy_from_slice(&s[..]);
    }
    if let Some(v) = v {
        bytes[64] = v;
    }
    bytes
}

fn order_minus(n: u64) -> B256 {
    (U256::from_be_bytes(ORDER.0) - U256::from(n)).into()
}

#[test]
fn own_signature_is_recovered() {
    let signature = sign(&KEY);
    assert_eq!(signature.recover(&KEY), Ok(SIGNER));
    assert_eq!(recover_wallet(signature.as_bytes(), &KEY), Ok(SIGNER));
    assert_ne!(signature.recover(&ORDER), Ok(SIGNER));
}

#[test]
fn text_is_lower_case_hex_and_reads_back() {
    let signature = sign(&KEY);
    let text = signature.to_string();
    assert_eq!(text.len(), 132);
    assert_eq!(text, text.to_lowercase());
    assert_eq!(text.parse(), Ok(signature));
    assert_eq!(
        text.to_uppercase().replacen("0X", "0x", 1).parse(),
        Ok(signature)
    );
    let json = serde_json::to_string(&signature).unwrap();
    assert_eq!(json, format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), signature);
}

#[test]
fn strict_reading_refuses_every_other_form() {
    use SignatureError::{Length, Malformed};
    let good = with(None, None, None);
    let (_, s) = scalars(sign(&KEY).as_bytes());
    let table: Vec<(&str, Vec<u8>, SignatureError)> = vec![
        ("empty", vec![], Length),
        ("64 bytes (EIP-2098)", good[..64].to_vec(), Length),
        ("66 bytes", [&good[..], &[0]].concat(), Length),
        ("truncated", good[..31].to_vec(), Length),
        ("v 0", with(None, None, Some(0)), Malformed),
        ("v 1", with(None, None, Some(1)), Malformed),
        ("v 26", with(None, None, Some(26)), Malformed),
        ("v 29", with(None, None, Some(29)), Malformed),
        ("v 35", with(None, None, Some(35)), Malformed),
        ("v 37", with(None, None, Some(37)), Malformed),
        ("v 255", with(None, None, Some(255)), Malformed),
        ("r 0", with(Some(B256::ZERO), None, None), Malformed),
        ("r n", with(Some(ORDER), None, None), Malformed),
        (
            "r max",
            with(Some(B256::repeat_byte(0xff)), None, None),
            Malformed,
        ),
        ("s 0", with(None, Some(B256::ZERO), None), Malformed),
        ("s n", with(None, Some(ORDER), None), Malformed),
        ("s n-1", with(None, Some(order_minus(1)), None), Malformed),
        ("high s", with(None, Some(negate(s)), None), Malformed),
    ];
    for (name, bytes, error) in table {
        assert_eq!(Signature::from_bytes(&bytes), Err(error), "{name}");
    }
}

#[test]
fn extreme_scalars_never_recover_the_signer() {
    for r in [
        order_minus(1),
        order_minus(2),
        B256::with_last_byte(1),
        B256::with_last_byte(5),
    ] {
        for bytes in [with(Some(r), None, None), with(None, Some(r), None)] {
            assert_ne!(recover_wallet(&bytes, &KEY), Ok(SIGNER));
        }
    }
    for scalar in [B256::ZERO, ORDER, B256::repeat_byte(0xff)] {
        for bytes in [
            with(Some(scalar), None, None),
            with(None, Some(scalar), None),
        ] {
            assert_eq!(recover_wallet(&bytes, &KEY), Err(SignatureError::Malformed));
        }
    }
}

#[test]
fn wallets_may_write_v_as_parity_and_s_high() {
    let good = sign(&KEY);
    let (_, s) = scalars(good.as_bytes());
    let parity = good.as_bytes()[64] - 27;
    let accepted = [
        with(None, None, Some(parity)),
        with(None, Some(negate(s)), Some(28 - parity)),
        with(None, Some(negate(s)), Some(1 - parity)),
    ];
    for bytes in accepted {
        assert_eq!(recover_wallet(&bytes, &KEY), Ok(SIGNER));
    }
    for v in [2, 26, 29, 35, 36, 255] {
        let bytes = with(None, None, Some(v));
        assert_eq!(
            recover_wallet(&bytes, &KEY),
            Err(SignatureError::Malformed),
            "v {v}"
        );
    }
    for length in [0, 1, 32, 64, 66, 130] {
        let bytes = vec![1; length];
        assert_eq!(recover_wallet(&bytes, &KEY), Err(SignatureError::Length));
    }
}

#[test]
fn a_high_s_is_joined_as_its_twin() {
    let good = sign(&KEY);
    let (r, s) = scalars(good.as_bytes());
    let odd = good.as_bytes()[64] == 28;
    assert_eq!(Signature::from_scalars(r, negate(s), !odd), Ok(good));
    assert_ne!(Signature::from_scalars(r, negate(s), odd), Ok(good));
    for s in [B256::ZERO, ORDER, B256::repeat_byte(0xff)] {
        assert_eq!(
            Signature::from_scalars(r, s, odd),
            Err(SignatureError::Malformed)
        );
    }
}

#[test]
fn text_without_prefix_or_with_half_bytes_is_refused() {
    let text = sign(&KEY).to_string();
    for wrong in [
        &text[2..],
        &text[..131],
        &text.replace("0x", "0X"),
        "0x",
        "",
        "zz",
    ] {
        assert!(wrong.parse::<Signature>().is_err(), "{wrong}");
    }
    assert_eq!(
        signature_hex(&format!("0x{}", "00".repeat(8193))),
        Err(SignatureError::Length)
    );
}

#[test]
fn eip191_is_the_published_hash() {
    let expected = b256!("a1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2");
    assert_eq!(eip191(b"Hello World"), expected);
    assert_ne!(eip191(b"Hello World "), expected);
}

proptest! {
    #[test]
    fn any_digest_recovers_its_signer(digest: [u8; 32]) {
        let digest = B256::from(digest);
        let signature = sign(&digest);
        prop_assert_eq!(signature.recover(&digest), Ok(SIGNER));
        prop_assert_eq!(Signature::from_bytes(signature.as_bytes()), Ok(signature));
    }

    #[test]
    fn random_bytes_are_refused_or_read_back(bytes: Vec<u8>, digest: [u8; 32]) {
        if let Ok(signature) = Signature::from_bytes(&bytes) {
            prop_assert_eq!(&signature.as_bytes()[..], &bytes[..]);
        }
        let _ = recover_wallet(&bytes, &B256::from(digest));
    }

    #[test]
    fn random_65_bytes_never_panic(rs: [u8; 32], s: [u8; 32], v: u8, digest: [u8; 32]) {
        let mut bytes = [&rs[..], &s[..], &[v]].concat();
        let _ = recover_wallet(&bytes, &B256::from(digest));
        bytes[64] = 27 + v % 2;
        let _ = recover_wallet(&bytes, &B256::from(digest));
        if let Ok(signature) = Signature::from_bytes(&bytes) {
            let _ = signature.recover(&B256::from(digest));
        }
    }

    #[test]
    fn random_text_never_panics(text: String) {
        let _ = text.parse::<Signature>();
        let _ = signature_hex(&text);
    }
}
