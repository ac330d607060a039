//! Partial signatures, normalised and as the signature service writes them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::bitcoin::partial;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(signature) = partial::normalise(bytes) {
        assert_eq!(
            partial::normalise(&signature.to_vec()).ok(),
            Some(signature)
        );
    }
    let _ = partial::extract(bytes);
});
