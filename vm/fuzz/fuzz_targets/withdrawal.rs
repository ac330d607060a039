//! Withdrawals of every family: what decodes has this one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for codec in vm::FAMILIES.iter().filter_map(|family| family.withdrawals) {
        if let Ok(withdrawal) = codec.decode(bytes) {
            let _ = codec.describe(&withdrawal);
            assert_eq!(codec.encode(&withdrawal).as_deref(), Ok(bytes));
        }
        if let Ok(json) = serde_json::from_slice(bytes) {
            let _ = codec.describe(&json);
            if let Ok(encoded) = codec.encode(&json) {
                assert!(codec.decode(&encoded).is_ok());
            }
        }
    }
});
