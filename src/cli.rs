//! The command line: one file per subcommand, nothing else decides anything here.

mod check_config;
mod health;
mod keys;
mod serve;

use clap::{Parser, Subcommand};

use crate::config::Config;

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
}

impl Arguments {
    /// Carries out the command with the given environment.
    pub fn run(self, variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
        if let Some(Command::Health { url }) = self.command {
            return health::run(url, variables);
        }
        let config = Config::from_variables(variables)?;
        match self.command.unwrap_or(Command::Serve) {
            Command::Serve => serve::run(&config),
            Command::CheckConfig => check_config::run(&config),
            Command::Keys => keys::run(&config),
            Command::Health { .. } => Ok(()),
        }
    }
}
