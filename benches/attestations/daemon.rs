//! The daemon under load: the real binary in a process of its own, with a data directory that ends
//! with it.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use devnet::account::Account;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The kernel counts processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The running daemon; it is killed when dropped.
pub struct Daemon {
    pub address: SocketAddr,
    process: Child,
    id: u32,
    _directory: TempDir,
}

impl Daemon {
    /// Starts `binary` to read each chain of `chains`, entries of a chains file, through `urls`, and waits until it
    /// answers.
    pub async fn start(
        binary: &Path,
        chains: &Value,
        urls: impl Fn(&str) -> Vec<String>,
    ) -> Result<Self> {
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let place = |name: &str| directory.path().join(name);
        std::fs::write(place("chains.json"), chains.to_string())?;
        std::fs::write(place("hub.json"), hub().to_string())?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let ids = chains.as_array().into_iter().flatten();
        let ids = ids.filter_map(|chain| chain["id"].as_str());
        let providers =
            ids.map(|id| (format!("{}_RPC_URL", id.to_uppercase()), urls(id).join(",")));
        let process = Command::new(binary)
            .env_clear()
            .env("ENVIRONMENT", "benchmark")
            .env("CHAINS_FILE", place("chains.json"))
            .env("HUB_FILE", place("hub.json"))
            .env("DATA_DIR", place("data"))
            .env("HTTP_HOST", address.ip().to_string())
            .env("HTTP_PORT", address.port().to_string())
            .env("OPS_HTTP_PORT", "0")
            .env(
                "ECDSA_PRIVATE_KEY",
                Account::named("benchmark oracle")?.key(),
            )
            .envs(providers)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("the daemon does not start")?;
        let mut daemon = Self {
            address,
            id: process.id().context("the daemon has ended")?,
            process,
            _directory: directory,
        };
        daemon.answering().await?;
        Ok(daemon)
    }

    async fn answering(&mut self) -> Result<()> {
        let url = format!("http://{}/lives/v1", self.address);
        for _ in 0..500 {
            if reqwest::get(&url).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the daemon ended: {status}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the daemon does not answer");
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// Processor time of the daemon so far.
    pub fn used(&self) -> Result<Duration> {
        used(&self.id.to_string())
    }

    /// Memory in use, in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? << 10)
    }
}

/// Processor time of a process so far, of all its threads, in the kernel too. `self` is this one.
pub fn used(process: &str) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("no process name")?;
    let fields = fields.split(' ').skip(11).take(2);
    let ticks: u32 = fields.map(str::parse::<u32>).sum::<Result<_, _>>()?;
    Ok(TICK * ticks)
}

/// Nothing here is read: deposits and fills are signed for it, not checked against it.
fn hub() -> Value {
    let contract = "0x00000000000000000000000000000000000000b0";
    json!({
        "id": "relay",
        "evmChainId": "537713",
        "httpRpcUrl": "http://127.0.0.1:9",
        "hubAddress": contract,
        "oracleAddress": contract,
        "oracleVersion": "2",
        "oracleMultisigAddress": contract,
        "genericMappingAddress": contract,
        "allocatorAddress": contract,
        "executorAddress": contract,
        "depositAddressManagerAddress": contract,
        "auroraHttpRpcUrl": "http://127.0.0.1:9",
        "auroraEvmChainId": "1313161554",
        "auroraAllocatorAddress": contract,
        "auroraAllocatorSpenderAddress": contract,
        "auroraOracleMultisigAddress": contract,
    })
}
