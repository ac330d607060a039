//! Order calls of every family that has them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for orders in vm::FAMILIES.iter().filter_map(|family| family.orders) {
        if let Ok(call) = orders.decode_call(bytes) {
            let again = orders
                .encode_call(&call)
                .and_then(|c| orders.decode_call(&c));
            assert_eq!(again, Ok(call));
        }
    }
});
