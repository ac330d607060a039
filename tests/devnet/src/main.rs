//! `devnet [--once | --attacks [NAME,...]]`: local chains, contracts, three oracles and a solver, from
//! quote to settlement; or what strangers try against them.

mod attacks;
mod demo;

use std::process::ExitCode;

const USAGE: &str = "usage: devnet [--once | --attacks [NAME,...]]

Starts three local chains, Bitcoin, Solana and three oracles, one of them with the integrator API and
a solver. Requests are quoted, deposited, filled or refunded and settled, also from and to Bitcoin and
Solana; then the same by hand: deposits, fills, a refund and withdrawals. It stays up until Ctrl-C.
With --once it ends when the story is told, and each statement verified by its evidence.

With --attacks strangers try what they can against the EVM chains, all of it or what is named, each beside
an honest user's order; it fails if any of them gained something or changed what became of the user.";

/// What is to be shown.
enum Wanted<'a> {
    Story { once: bool },
    Attacks(Vec<&'a str>),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Wanted::Story { once: false },
        ["--once"] => Wanted::Story { once: true },
        ["--attacks"] => Wanted::Attacks(Vec::new()),
        ["--attacks", names] => Wanted::Attacks(names.split(',').collect()),
        _ => return end(ExitCode::from(2), USAGE),
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| "warn,devnet=info".into()),
        )
        .init();
    // Both providers are in the dependency tree, so one has to be chosen.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let shown = match wanted {
        Wanted::Story { once } => demo::run(once).await.map(|()| true),
        Wanted::Attacks(names) => attacks::run(&names).await,
    };
    match shown {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => end(ExitCode::FAILURE, &format!("devnet: {error:#}")),
    }
}

fn end(code: ExitCode, why: &str) -> ExitCode {
    use std::io::Write;
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "{why}");
    code
}
