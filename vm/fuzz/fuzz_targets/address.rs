//! Addresses of every family, as text and as bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for family in vm::FAMILIES {
        let _ = family.codec.decode_address(bytes);
        let Ok(address) = family.address(&text) else {
            continue;
        };
        if let Ok(text) = family.codec.decode_address(address.bytes()) {
            assert_eq!(family.address(&text), Ok(address), "{family:?}");
        }
    }
    let _ = vm::xrp::address::destination(&text);
});
