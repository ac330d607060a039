//! The allocator's Bitcoin payload: what decodes is a PSBT that reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::bitcoin::psbt::Payload;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(payload) = Payload::decode(bytes) {
        let Ok(psbt) = payload.psbt() else {
            panic!("an unsigned transaction is always a PSBT");
        };
        let codec = vm::FAMILIES
            .iter()
            .find(|family| family.name == "bitcoin-vm")
            .and_then(|family| family.withdrawals);
        assert!(codec.is_some_and(|codec| codec.decode(&psbt.serialize()).is_ok()));
    }
});
