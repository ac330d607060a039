//! A process that cannot outlive us.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

/// Runs "$@" in a process group of its own, relays its output until a line has $1 in it, then waits for our end of
/// stdin to close, which the kernel does however we die, and ends the whole group. It is the last to go, so that nobody
/// is left behind as a zombie. The directory $2, if any, goes with it, unless [`KEEP`] came first.
const GUARD: &str = r#"
ready=$1
home=$2
shift 2
"$@" </dev/null 2>&1 | {
  while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in *"$ready"*) exec >/dev/null; exec cat ;; esac
  done
} &
exec >/dev/null 2>&1
said=$(cat)
trap '' TERM
kill -TERM 0
wait
[ -z "$home" ] || [ "$said" = keep ] || rm -rf -- "$home"
"#;
/// What is said so that the directory stays.
const KEEP: &str = "keep";

const START: Duration = Duration::from_secs(60);
/// The most time that a program takes to end.
const END: Duration = Duration::from_secs(60);

/// What is to run.
#[derive(Debug)]
pub struct Program<'a> {
    pub path: &'a Path,
    pub arguments: Vec<OsString>,
    /// What the line has in it with which the program says that it listens.
    pub ready: &'a str,
    /// A directory that is removed when the program has ended.
    pub home: Option<PathBuf>,
}

/// A running program. Dropping it ends the program.
#[derive(Debug)]
pub struct Leash {
    /// Its stdin is what holds the program: see [`GUARD`].
    guard: Child,
}

impl Leash {
    /// Starts `program`; also the line with which it said that it listens.
    pub async fn start(program: Program<'_>) -> Result<(Self, String)> {
        let home = program.home.unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD, "devnet-chain", program.ready])
            .args([home.as_path(), program.path])
            .args(&program.arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut guard = command.spawn().context("cannot start sh")?;
        let output = guard.stdout.take().context("no stdout")?;
        let line = listening(BufReader::new(output), program.ready);
        let line = tokio::time::timeout(START, line).await;
        let line =
            line.with_context(|| format!("{} did not start in time", shown(program.path)))?;
        let line = line.with_context(|| format!("{} did not start", shown(program.path)))?;
        Ok((Self { guard }, line))
    }

    /// Ends the program and waits until it has ended. Its directory stays.
    pub async fn end(mut self) -> Result<()> {
        let mut stdin = self.guard.stdin.take().context("no stdin")?;
        stdin.write_all(KEEP.as_bytes()).await?;
        drop(stdin);
        let ended = tokio::time::timeout(END, self.guard.wait()).await;
        ended.context("the program does not end")??;
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The line with `ready` in it; what the program said instead, if it ended.
async fn listening(output: impl AsyncBufReadExt + Unpin, ready: &str) -> Result<String> {
    let mut said = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains(ready) {
            return Ok(line);
        }
        said.push(line);
    }
    bail!("it ended before it listened:\n{}", said.join("\n"))
}
