//! One anvil process that cannot outlive us.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use url::Url;

use crate::tools;

/// Runs "$@" in a process group of its own, relays its output until it listens, then waits for
/// our end of stdin to close, which the kernel does however we die, and ends the whole group. It
/// is the last to go, so that nobody is left behind as a zombie.
const GUARD: &str = r#"
"$@" </dev/null 2>&1 | {
  while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in *"Listening on"*) exec >/dev/null; exec cat ;; esac
  done
} &
exec >/dev/null 2>&1
cat
trap '' TERM
kill -TERM 0
wait
"#;

const START: Duration = Duration::from_secs(60);

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
    /// Its stdin is the leash: see [`GUARD`].
    _guard: Child,
}

impl Anvil {
    pub async fn start(options: &Options) -> Result<Self> {
        let anvil = tokio::task::spawn_blocking(tools::anvil).await??;
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD, "devnet-chain"])
            .arg(anvil)
            .args(["--port", "0", "--host", "127.0.0.1"])
            .args(["--hardfork", "prague", "--slots-in-an-epoch", "1"])
            .args(["--accounts", "1", "--auto-impersonate"])
            .args(["--chain-id", &options.chain_id.to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(seconds) = options.block_time {
            command.args(["--block-time", &seconds.to_string()]);
        }
        let mut guard = command.spawn().context("cannot start sh")?;
        let output = guard.stdout.take().context("no stdout")?;
        let url = tokio::time::timeout(START, listening(BufReader::new(output)))
            .await
            .context("anvil did not start in time")??;
        Ok(Self { url, _guard: guard })
    }
}

/// The URL in anvil's own announcement; what it said instead, if it ended.
async fn listening(output: impl AsyncBufReadExt + Unpin) -> Result<Url> {
    let mut said = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = line.strip_prefix("Listening on ") {
            return Ok(Url::parse(&format!("http://{}", address.trim()))?);
        }
        said.push(line);
    }
    bail!("anvil ended before it listened:\n{}", said.join("\n"))
}
