//! One anvil process that cannot outlive us.

use anyhow::{Context, Result};
use url::Url;

use crate::{
    leash::{Leash, Program},
    tools,
};

const READY: &str = "Listening on ";

/// How a chain starts.
#[derive(Clone, Debug)]
pub struct Options {
    pub chain_id: u64,
    /// Seconds between blocks; `None` makes a block per transaction and on demand.
    pub block_time: Option<u64>,
}

/// A running anvil, listening on a port of 127.0.0.1 that the kernel chose. Dropping it ends it.
#[derive(Debug)]
pub struct Anvil {
    pub url: Url,
    _leash: Leash,
}

impl Anvil {
    pub async fn start(options: &Options) -> Result<Self> {
        let anvil = tokio::task::spawn_blocking(tools::anvil).await??;
        let usual = "--port 0 --host 127.0.0.1 --hardfork prague --slots-in-an-epoch 1 --accounts 1 --auto-impersonate";
        let mut arguments: Vec<_> = usual.split(' ').map(str::to_owned).collect();
        arguments.extend(["--chain-id".to_owned(), options.chain_id.to_string()]);
        if let Some(seconds) = options.block_time {
            arguments.extend(["--block-time".to_owned(), seconds.to_string()]);
        }
        let program = Program {
            path: &anvil,
            arguments: arguments.into_iter().map(Into::into).collect(),
            ready: READY,
            home: None,
        };
        let (leash, line) = Leash::start(program).await?;
        let address = line.strip_prefix(READY).context("no address")?;
        Ok(Self {
            url: Url::parse(&format!("http://{}", address.trim()))?,
            _leash: leash,
        })
    }
}
