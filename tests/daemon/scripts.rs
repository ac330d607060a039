//! Scripts that drive what others wrote: each is told a job in JSON, and its last line is JSON.

use std::{ffi::OsStr, os::unix::fs::symlink, path::Path, process::Stdio, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

/// What the drivers of the published TypeScript clients import.
const CLIENT: (&str, &str) = ("client.mjs", include_str!("scripts/client.mjs"));

/// How long a script may take for all that it does: longer than a client waits for anything.
const PATIENCE: Duration = Duration::from_secs(240);

/// Scripts in a directory of their own, with the packages that they stand on.
pub struct Scripts(TempDir);

impl Scripts {
    /// Of names and texts; `packages` has `node_modules`.
    pub fn beside(packages: &Path, scripts: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, text) in scripts.iter().copied().chain([CLIENT]) {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let modules = "node_modules";
        symlink(packages.join(modules), directory.path().join(modules)).unwrap();
        Self(directory)
    }

    /// What `node` prints for a job.
    pub async fn node(&self, script: &str, job: &Value) -> Value {
        self.run("node", script, job).await
    }

    /// What another program prints for a job.
    pub async fn run(&self, program: impl AsRef<OsStr>, script: &str, job: &Value) -> Value {
        let mut process = Command::new(program)
            .arg(self.0.path().join(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(job.to_string().as_bytes()).await.unwrap();
        drop(stdin);
        let ended = timeout(PATIENCE, process.wait_with_output()).await;
        let output = ended
            .unwrap_or_else(|_| panic!("{script} took longer than {PATIENCE:?}"))
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{script} printed {text}"))
    }
}
