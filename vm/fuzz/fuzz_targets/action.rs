//! Hub actions: what decodes is encoded to something that decodes to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::protocol::action::Action;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(action) = Action::decode(bytes) {
        assert_eq!(Action::decode(&action.encode()), Ok(action));
    }
});
