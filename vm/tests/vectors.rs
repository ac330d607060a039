//! Known answers of the wire formats. See `vectors/harness.rs` for how it is run, and the root
//! crate's runner of the same name for the daemon's own answers. A program of its own: its tests are
//! the cases of files, so it has no harness of the compiler's.

#[path = "vectors/harness.rs"]
mod harness;
#[path = "vectors/signatures.rs"]
mod signatures;
#[path = "vectors/wire.rs"]
mod wire;
#[path = "vectors/withdrawals.rs"]
mod withdrawals;

fn main() -> std::process::ExitCode {
    let rows = [wire::ROWS, withdrawals::ROWS, signatures::ROWS];
    harness::run(harness::Side::Wire, &rows)
}
