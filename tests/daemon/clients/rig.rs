//! Chains, a daemon, and the clients' packages, installed once.

use std::{io, path::PathBuf, process::Command};

use devnet::{tools, world::Devnet};
use serde_json::Value;

use crate::{
    scripts::Scripts,
    sdk::app::App,
    support::daemon::{Daemon, daemon},
};

const PACKAGE: &str = include_str!("package.json");
const LOCK: &str = include_str!("package-lock.json");
const REQUIREMENTS: &str = include_str!("requirements.txt");
/// What is run, by name.
const SCRIPTS: [(&str, &str); 3] = [
    ("drive.mjs", include_str!("drive.mjs")),
    ("hooks.mjs", include_str!("hooks.mjs")),
    ("client.py", include_str!("client.py")),
];

/// What a machine needs for the Python client.
const NEEDED: &str = "python3 with venv and pip is needed (Debian: apt-get install python3-venv)";

pub struct Rig {
    pub app: App,
    scripts: Scripts,
    /// Has the packages of the Python client.
    python: PathBuf,
}

/// The same, with the listing that has an end.
pub struct Opened {
    pub daemon: Daemon,
    pub scripts: Scripts,
    _world: Devnet,
}

impl Rig {
    pub async fn start() -> Self {
        let installed = tokio::task::spawn_blocking(install);
        let (app, installed) = tokio::join!(App::start(), installed);
        let (scripts, python) = installed.unwrap();
        Self {
            app,
            scripts,
            python,
        }
    }

    /// What `node` prints for a job.
    pub async fn node(&self, script: &str, job: &Value) -> Value {
        self.scripts.node(script, job).await
    }

    /// What `python` prints for a job.
    pub async fn python(&self, script: &str, job: &Value) -> Value {
        self.scripts.run(&self.python, script, job).await
    }

    /// The daemon again over the same store, long before `/requests/v2` slows down and ends.
    pub async fn with_old_listing(self) -> Opened {
        let App {
            world,
            daemon: before,
            ..
        } = self.app;
        let setup = daemon()
            .chains(&world.files())
            .signer(&world.oracles[0])
            .solver(&world.solver, "destination")
            .with("REQUESTS_V2_THROTTLED_FROM", "2100-01-01")
            .with("REQUESTS_V2_SUNSET_AT", "2100-12-01");
        Opened {
            daemon: setup.start_in(before.end().await).await,
            scripts: self.scripts,
            _world: world,
        }
    }
}

/// The scripts beside the npm packages, and the Python that has its own.
fn install() -> (Scripts, PathBuf) {
    let files = [("package.json", PACKAGE), ("package-lock.json", LOCK)];
    let packages = tools::packages("clients", &files).unwrap();
    let made = tools::build_once("python-client", REQUIREMENTS.as_bytes(), |directory| {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
        let list = directory.join("requirements.txt");
        std::fs::write(&list, REQUIREMENTS)?;
        let pip = ["-m", "pip", "install", "--quiet", "-r"];
        run(Command::new(directory.join("bin/python"))
            .args(pip)
            .arg(list))?;
        Ok(())
    });
    let scripts = Scripts::beside(&packages, &SCRIPTS);
    (scripts, made.unwrap().join("bin/python"))
}

/// Runs what only Python can do; an error says what is needed and what was said.
fn run(command: &mut Command) -> io::Result<()> {
    let output = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => [output.stdout, output.stderr].concat(),
        Err(error) => error.to_string().into_bytes(),
    };
    Err(io::Error::other(format!(
        "{NEEDED}: {command:?}: {}",
        String::from_utf8_lossy(&output)
    )))
}

#[test]
fn who_has_no_python_is_told_what_is_needed() {
    for (program, said) in [("/nowhere/python3", "No such file"), ("false", "")] {
        let error = run(&mut Command::new(program)).unwrap_err().to_string();
        assert!(error.starts_with(NEEDED), "{error}");
        assert!(error.contains(program) && error.contains(said), "{error}");
    }
    assert!(run(&mut Command::new("true")).is_ok());
}

#[test]
fn clients_are_pinned_and_no_registry_is_named() {
    let lock: Value = serde_json::from_str(LOCK).unwrap();
    for (package, version) in [
        ("sdk-2", "2.4.6"),
        ("sdk-4", "4.0.1"),
        ("sdk-6", "6.1.3"),
        ("sdk-7", "7.0.3"),
        ("@relayprotocol/relay-kit-hooks", "3.0.24"),
    ] {
        let name = format!("node_modules/{package}");
        assert_eq!(lock["packages"][name]["version"], version, "{package}");
    }
    assert!(!LOCK.contains("resolved") && !LOCK.contains("registry"));
    let pinned = |line: &str| line.contains("==") && !line.contains("://");
    assert!(REQUIREMENTS.lines().all(pinned));
    assert!(REQUIREMENTS.contains("relay-link-py==0.1.0"));
}
