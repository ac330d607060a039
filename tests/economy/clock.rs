//! The time of a history: paused, and moved by whoever sleeps.

use std::cell::{Cell, RefCell};

use alloy::primitives::{B256, keccak256};
use tokio::time::Instant;

/// Unix seconds at which every history begins.
pub const GENESIS: u64 = 1_780_000_000;

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    static SKIPPED: Cell<u64> = const { Cell::new(0) };
    static ENTROPY: RefCell<(u64, u64)> = const { RefCell::new((0, 0)) };
}

/// A history begins on this thread.
pub fn begin(seed: u64) {
    BEGAN.set(Some(Instant::now()));
    SKIPPED.set(0);
    ENTROPY.set((seed, 0));
}

/// Unix milliseconds.
pub fn millis() -> u64 {
    let began = BEGAN.get().unwrap();
    let passed = Instant::now().duration_since(began).as_millis();
    (GENESIS + SKIPPED.get()) * 1_000 + u64::try_from(passed).unwrap()
}

/// Unix seconds.
pub fn seconds() -> u64 {
    millis() / 1_000
}

/// So many seconds pass at once.
pub fn skip(seconds: u64) {
    SKIPPED.set(SKIPPED.get() + seconds);
}

/// What nobody can guess, and the seed decides.
pub fn entropy() -> Option<B256> {
    ENTROPY.with_borrow_mut(|(seed, count)| {
        *count += 1;
        Some(keccak256(format!("{seed}/{count}")))
    })
}
