//! The daemon as a process of its own that can be killed.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, Command},
};

use crate::support::daemon::Setup;

/// The daemon as a process that can be killed. It ends when it is dropped.
pub struct Victim {
    child: Child,
    lines: Option<Lines<BufReader<ChildStderr>>>,
}

/// Where it answers.
#[derive(Clone, Debug)]
pub struct Urls {
    pub oracle: String,
    pub ops: String,
    /// Empty where there is no integrator API.
    pub integrator: String,
}

impl Victim {
    /// Starts it; it does not answer yet.
    pub fn spawn(setup: &Setup, directory: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_intentd"))
            .env_clear()
            .envs(setup.environment(directory))
            .env("LOG_FORMAT", "json")
            .env("RUST_LOG", "info")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            lines: Some(lines),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Waits until it answers, which includes the integrator API where that is `wanted`. An error is
    /// what it logged instead before it ended.
    pub async fn listening(&mut self, wanted: bool) -> Result<Urls, Vec<String>> {
        let mut lines = self.lines.take().unwrap();
        let mut urls = Urls {
            oracle: String::new(),
            ops: String::new(),
            integrator: String::new(),
        };
        let mut log = Vec::new();
        while urls.oracle.is_empty() || (wanted && urls.integrator.is_empty()) {
            let Ok(Some(line)) = lines.next_line().await else {
                return Err(log);
            };
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            let url = || format!("http://{}", told["address"].as_str().unwrap_or_default());
            match told["message"].as_str() {
                Some("operations listening") => urls.ops = url(),
                Some("oracle listening") => urls.oracle = url(),
                Some("integrator API listening") => urls.integrator = url(),
                _ => log.push(line),
            }
        }
        // A full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(urls)
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }

    /// Waits for its end, which must be our SIGKILL.
    pub async fn killed(&mut self) {
        assert_eq!(self.ended().await.signal(), Some(9), "it died by itself");
    }
}

/// SIGKILL, without waiting for the end. A process that is dead already stays so.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Asks for an orderly end.
pub fn terminate(pid: u32) {
    signal(pid, Signal::TERM);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _gone_already = kill_process(pid.unwrap(), signal);
}
