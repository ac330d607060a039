//! Turns sled's panics, where it should return an error, into errors.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that may meet damage: sled's errors and panics become one text. Prints nothing.
pub(super) fn guarded<T>(act: impl FnOnce() -> ::sled::Result<T>) -> Result<T, String> {
    quieten();
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(act));
    GUARDED.set(before);
    match done {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("panic")
            .to_owned()),
    }
}

/// A caught panic is reported by the catcher; a panic in a thread of sled's own is logged.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let sled = panic
                .location()
                .is_some_and(|at| at.file().contains("/sled-"));
            match (GUARDED.get(), sled) {
                (true, _) => {}
                (false, true) => tracing::error!(%panic, "sled panicked"),
                (false, false) => before(panic),
            }
        }));
    });
}
