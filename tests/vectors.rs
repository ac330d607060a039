//! Known answers of what the daemon itself decides. See `vm/tests/vectors/harness.rs` for how it is
//! run, and the runner of the same name in `vm` for the wire formats. A program of its own: its tests
//! are the cases of files, so it has no harness of the compiler's.

#[path = "vectors/attest.rs"]
mod attest;
#[path = "../vm/tests/vectors/harness.rs"]
mod harness;
#[path = "vectors/http.rs"]
mod http;
#[path = "vectors/mapping.rs"]
mod mapping;

fn main() -> std::process::ExitCode {
    harness::run(
        harness::Side::Daemon,
        &[http::ROWS, attest::ROWS, mapping::ROWS],
    )
}
