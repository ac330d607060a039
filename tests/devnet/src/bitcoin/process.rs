//! bitcoind as a process: on a port and in a directory of its own, where it can be started again.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
};

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;

use super::{PASSWORD, USER};
use crate::{
    leash::{Leash, Program},
    tools,
};

const READY: &str = "Done loading";
/// How often another port is tried, when somebody else took the one that was free.
const TRIES: usize = 5;

/// Whether a node has wallets. Without them it finds an account's outputs only by a search of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wallets {
    On,
    Off,
}

/// A bitcoind. Dropping it ends it, and its files are gone.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    pub port: u16,
    /// Where its files are.
    pub home: PathBuf,
    wallets: Wallets,
    /// `None` where it could not be started again.
    leash: Mutex<Option<Leash>>,
}

impl Process {
    /// Starts one on a port that is free.
    pub async fn start(wallets: Wallets) -> Result<Self> {
        let program = tokio::task::spawn_blocking(tools::bitcoind).await??;
        let mut last = None;
        for _ in 0..TRIES {
            let home = tempfile::Builder::new()
                .prefix("devnet-bitcoin-")
                .tempdir()?;
            let process = Self {
                program: program.clone(),
                port: free_port()?,
                home: home.keep(),
                wallets,
                leash: Mutex::new(None),
            };
            match process.launch().await {
                Ok(leash) => {
                    *process.leash.lock().await = Some(leash);
                    return Ok(process);
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error),
            None => bail!("bitcoind was not started"),
        }
    }

    /// Ends it, and starts it again on the same port with the same files.
    pub async fn restart(&self) -> Result<()> {
        let mut held = self.leash.lock().await;
        held.take().context("bitcoind does not run")?.end().await?;
        *held = Some(self.launch().await?);
        Ok(())
    }

    async fn launch(&self) -> Result<Leash> {
        let program = Program {
            path: &self.program,
            arguments: self.options().into_iter().map(Into::into).collect(),
            ready: READY,
            home: Some(self.home.clone()),
        };
        let (leash, _) = Leash::start(program).await?;
        Ok(leash)
    }

    fn options(&self) -> Vec<String> {
        let disabled = u8::from(self.wallets == Wallets::Off);
        vec![
            "-regtest".to_owned(),
            format!("-datadir={}", self.home.display()),
            format!("-rpcport={}", self.port),
            format!("-rpcuser={USER}"),
            format!("-rpcpassword={PASSWORD}"),
            "-rpcbind=127.0.0.1".to_owned(),
            "-rpcallowip=127.0.0.1".to_owned(),
            "-rpcworkqueue=256".to_owned(),
            "-server=1".to_owned(),
            "-listen=0".to_owned(),
            "-txindex=1".to_owned(),
            format!("-disablewallet={disabled}"),
            // Older versions take less than an order's id and a depositor.
            "-datacarriersize=10000".to_owned(),
            "-persistmempool=0".to_owned(),
            "-nodebuglogfile".to_owned(),
            "-printtoconsole=1".to_owned(),
        ]
    }
}

/// A port that nobody listens on now: bitcoind takes none of its own choice.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
