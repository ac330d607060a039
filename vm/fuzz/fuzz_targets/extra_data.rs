//! Order extra data of every family that has it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for orders in vm::FAMILIES.iter().filter_map(|family| family.orders) {
        if let Ok(contract) = orders.decode_extra_data(bytes) {
            let again = orders.encode_extra_data(&contract);
            let again = again.and_then(|data| orders.decode_extra_data(&data));
            assert_eq!(again, Ok(contract));
        }
    }
});
