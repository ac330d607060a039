//! The command line: one file per subcommand, nothing else decides anything here.

mod check_config;
mod halts;
mod health;
mod journal;
mod keys;
mod serve;

use std::{future::Future, path::Path};

use anyhow::anyhow;
use clap::{Parser, Subcommand};

use crate::{
    admin::{self, Answer, Question},
    config,
};

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
    /// Ask a running daemon about what it has signed, or trust a store in doubt; needs DATA_DIR.
    #[command(subcommand)]
    Journal(journal::Journal),
}

impl Arguments {
    /// Carries out the command with the given environment.
    pub fn run(self, variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
        match self.command.unwrap_or(Command::Serve) {
            Command::Health { url } => health::run(url, variables),
            Command::Halts(halts) => print(halts.answer(&config::data_dir(variables))),
            Command::Journal(journal) => print(journal.answer(&config::data_dir(variables))),
            Command::Serve => serve::run(variables),
            Command::CheckConfig => check_config::run(variables),
            Command::Keys => keys::run(variables),
        }
    }
}

fn print(answer: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answer = runtime.block_on(answer)?;
    #[allow(clippy::print_stdout)]
    {
        println!("{answer}");
    }
    Ok(())
}

async fn asked(data_dir: &Path, question: &Question) -> anyhow::Result<Answer> {
    Ok(admin::ask(data_dir, question).await?)
}

fn unexpected(answer: &Answer) -> anyhow::Error {
    anyhow!("the daemon answered something else: {answer:?}")
}
