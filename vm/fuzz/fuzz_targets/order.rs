//! An order as JSON, every chain of it in one family, and its id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::protocol::order::Order;

fuzz_target!(|bytes: &[u8]| {
    let Ok(order) = serde_json::from_slice::<Order>(bytes) else {
        return;
    };
    for family in vm::FAMILIES {
        let _ = order.id(|_| Some(*family));
    }
});
