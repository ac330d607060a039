//! secp256k1 signatures as 65 bytes, as text and as DER, and DER public keys. What is read is
//! written back the same, and a DER signature that is accepted is the claimed signer's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::{
    B256, EvmAddress,
    protocol::signature::{
        Signature, account_of_spki, recover_wallet, signature_hex, verify_personal,
    },
};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let digest = B256::left_padding_from(&bytes[..bytes.len().min(32)]);
    let signer = EvmAddress::ZERO;
    if let Ok(signature) = Signature::from_bytes(bytes) {
        assert_eq!(signature.to_string().parse(), Ok(signature));
        let signer = signature.recover(&digest);
        assert_eq!(signer, recover_wallet(bytes, &digest));
    }
    if let Ok(signature) = Signature::from_der(bytes, &digest, signer) {
        assert_eq!(signature.recover(&digest), Ok(signer));
    }
    let _ = account_of_spki(bytes);
    let _ = signature_hex(&text);
    assert!(verify_personal(&signer.to_string(), bytes, &text).is_err());
});
