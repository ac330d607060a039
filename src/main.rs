//! The daemon's entry: arguments, configuration, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use intentd::cli::{self, Arguments};
use tikv_jemallocator::Jemalloc;

// Threads free memory that other threads allocated; with glibc they wait for each other's arenas.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // The environment is read here, once; everything else gets a value.
    #[allow(clippy::disallowed_methods)]
    let variables = std::env::vars_os();
    // A value that is no text counts as unset: it may be a secret and is not repeated.
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    match arguments.run(variables) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("intentd: {error:#}");
            }
            ExitCode::from(cli::exit_code(&error))
        }
    }
}
