//! The command line: one file per subcommand.

mod attest;
mod check_config;
mod explain;
mod grounds;
mod halts;
mod health;
mod index;
mod integrators;
mod journal;
mod lane;
mod openapi;
mod serve;
mod solver;
mod store;
mod verify;
mod webhooks;

use std::{fmt::Display, future::Future, io, iter, path::Path};

use anyhow::{anyhow, bail};
use clap::{Parser, Subcommand};
use rustix::{fs::Mode, process::umask};

use crate::{
    admin::{self, Answer, Question},
    config::{self, Config, Names},
    run,
    store::{OpenError, ReplaceError, StoreError, pair::Directories},
};

/// The store is damaged, of another version, or in doubt (sysexits' EX_DATAERR): a restart does not help.
const DAMAGED: u8 = 65;
/// Another process has the store open (EX_TEMPFAIL).
const IN_USE: u8 = 75;

/// Cross-chain intent service: attestation oracle, quoting and status in one daemon.
#[derive(Debug, Parser)]
#[command(name = "intentd", version, about)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon (the default).
    Serve,
    /// Read the configuration and the chain lists, print what they mean, start nothing.
    CheckConfig,
    /// Judge a claim over the chains and print what the oracle would sign; needs the chains' providers, and signs
    /// nothing.
    Attest(attest::Attest),
    /// Ask a running daemon why a statement was signed, or what would be signed about a transaction; needs its
    /// DATA_DIR.
    Explain(explain::Explain),
    /// Check a signed statement that `explain --json` printed: signer, digest, and the message, judged again over its
    /// evidence; needs the chains file, no provider and no key.
    Verify(verify::Verify),
    /// Print the address that the configured key signs with.
    Keys,
    /// Ask a running daemon whether it is alive; for container health checks.
    Health {
        /// Where the daemon listens; by default HTTP_PORT on this machine.
        #[arg(long)]
        url: Option<String>,
    },
    /// Ask a running daemon about chains for which it signs nothing; needs its DATA_DIR.
    #[command(subcommand)]
    Halts(halts::Halts),
    /// Ask a running daemon how far it has indexed each network, or have blocks read again; needs its
    /// DATA_DIR.
    #[command(subcommand)]
    Index(index::Index),
    /// Keys of the integrator API: through a running daemon, or in DATA_DIR where none runs.
    #[command(subcommand)]
    Integrators(integrators::Integrators),
    /// Ask a running daemon about what it has signed, or trust a store in doubt; needs DATA_DIR.
    #[command(subcommand)]
    Journal(journal::Journal),
    /// Ask a running daemon what its solver's accounts have under way, or let payments go on; needs its DATA_DIR.
    #[command(subcommand)]
    Lane(admin::lanes::Question),
    /// Print the OpenAPI description of a listener's API; needs no configuration.
    Openapi {
        /// Whose description.
        #[arg(value_enum, default_value_t = openapi::Listener::Integrator)]
        listener: openapi::Listener,
    },
    /// Ask a running daemon about deliveries to integrators, or have them sent again; needs its DATA_DIR.
    #[command(subcommand)]
    Webhooks(webhooks::Webhooks),
    /// Ask a running daemon about its solver, pause it or have it go on; needs its DATA_DIR.
    #[command(subcommand)]
    Solver(admin::solver::Question),
    /// Verify, export, import or compact the store in DATA_DIR; no daemon may run there.
    #[command(subcommand)]
    Store(store::Store),
}

impl Arguments {
    /// Carries out the command with the given environment.
    pub fn run(self, variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
        // Whatever is written is its owner's alone: files of the store, exports, the socket.
        umask(Mode::RWXG | Mode::RWXO);
        // Two TLS providers are in the dependency tree: which one counts is said here, once.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        match self.command.unwrap_or(Command::Serve) {
            Command::Health { url } => health::run(url, variables),
            Command::Halts(halts) => print(halts.answer(&config::data_dir(variables))),
            Command::Index(index) => print(index.answer(&config::data_dir(variables))),
            Command::Integrators(integrators) => print(integrators.answer(variables)),
            Command::Journal(journal) => print(journal.answer(directories(variables))),
            Command::Lane(question) => print(lane::answer(question, &config::data_dir(variables))),
            Command::Openapi { listener } => say(openapi::description(listener)?),
            Command::Webhooks(webhooks) => print(webhooks.answer(&config::data_dir(variables))),
            Command::Solver(question) => {
                print(solver::answer(question, &config::data_dir(variables)))
            }
            Command::Store(store) => print(store.answer(directories(variables))),
            Command::Serve => serve::run(variables),
            Command::CheckConfig => check_config::run(variables),
            Command::Attest(attest) => print(attest.answer(variables)),
            Command::Explain(explain) => print(explain.answer(variables)),
            Command::Verify(verify) => print(verify.answer(variables)),
            Command::Keys => say(signer(variables)?),
        }
    }
}

/// What `intentd explain` or `intentd verify` prints, for a program that has a runtime of its own: `words` are the
/// command and its arguments.
pub async fn told(
    words: &[&str],
    variables: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<String> {
    let words = iter::once("intentd").chain(words.iter().copied());
    match Arguments::try_parse_from(words)?.command {
        Some(Command::Explain(explain)) => explain.answer(variables).await,
        Some(Command::Verify(verify)) => verify.answer(variables).await,
        _ => bail!("expected explain or verify"),
    }
}

fn directories(variables: impl IntoIterator<Item = (String, String)>) -> Directories {
    let (data, journal) = config::directories(variables);
    Directories::new(data, journal)
}

/// The process's exit code for an error of [`Arguments::run`].
pub fn exit_code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        let opened = match cause.downcast_ref::<ReplaceError>() {
            Some(ReplaceError::Open(error)) => Some(error),
            _ => cause.downcast_ref::<OpenError>(),
        };
        match opened {
            Some(error) if error.is_held() => return IN_USE,
            Some(OpenError::Io { .. } | OpenError::Loose { .. } | OpenError::Missing(_)) => {
                return 1;
            }
            Some(_) => return DAMAGED,
            None => {}
        }
        if cause.is::<store::Defective>() || cause.is::<StoreError>() {
            return DAMAGED;
        }
    }
    1
}

fn print(answer: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<()> {
    say(runtime()?.block_on(answer)?)
}

#[allow(clippy::print_stdout)]
fn say(text: impl Display) -> anyhow::Result<()> {
    println!("{text}");
    Ok(())
}

/// For commands that do one thing and end.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()
}

/// The address that the configured key signs with.
fn signer(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<String> {
    let (config, mut mistakes) = Config::draft(variables);
    let signer = runtime()?.block_on(run::signer(&config.signing, Names::ORACLE, &mut mistakes));
    Ok(format!("{:#x}", mistakes.or(signer)?.address()))
}

async fn asked(data_dir: &Path, question: &Question) -> anyhow::Result<Answer> {
    Ok(admin::ask(data_dir, question).await?)
}

fn unexpected(answer: &Answer) -> anyhow::Error {
    anyhow!("the daemon answered something else: {answer:?}")
}

/// What is listed, a line each; `none` where there is nothing.
fn lines<T>(listed: &[T], line: impl Fn(&T) -> String, none: &str) -> String {
    match listed.is_empty() {
        true => none.to_owned(),
        false => listed.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}
