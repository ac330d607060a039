//! Transaction ids of every family, as text and as bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for family in vm::FAMILIES {
        let _ = family.codec.decode_transaction_id(bytes);
        let _ = family.codec.encode_transaction_id(&text);
        if let Ok(tx) = family.tx(&text, None) {
            let again = family.codec.decode_transaction_id(&tx.bytes);
            let again = again.map(|id| format!("{}{id}", family.tx_prefix).to_lowercase());
            assert_eq!(again, Ok(text.to_lowercase()), "{family:?}");
        }
    }
});
