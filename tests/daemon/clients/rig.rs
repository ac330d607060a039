//! Chains, a daemon, and the clients' packages, installed once.

use std::{
    path::{Path, PathBuf},
    process::{Command as Blocking, Stdio},
    time::Duration,
};

use devnet::{tools, world::Devnet};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
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

/// How long a client may take for all that it does.
const PATIENCE: Duration = Duration::from_secs(150);

pub struct Rig {
    pub app: App,
    scripts: Scripts,
}

/// The same, with the listing that has an end.
pub struct Opened {
    pub daemon: Daemon,
    pub scripts: Scripts,
    _world: Devnet,
}

/// The scripts, with the packages that they stand on.
pub struct Scripts {
    directory: TempDir,
    python: PathBuf,
}

impl Rig {
    pub async fn start() -> Self {
        let installed = tokio::task::spawn_blocking(install);
        let (app, installed) = tokio::join!(App::start(), installed);
        let (packages, python) = installed.unwrap();
        let directory = TempDir::new().unwrap();
        for (name, script) in SCRIPTS {
            std::fs::write(directory.path().join(name), script).unwrap();
        }
        let modules = directory.path().join("node_modules");
        std::os::unix::fs::symlink(packages.join("node_modules"), modules).unwrap();
        let scripts = Scripts { directory, python };
        Self { app, scripts }
    }

    /// What `node` prints for a job.
    pub async fn node(&self, script: &str, job: &Value) -> Value {
        self.scripts.node(script, job).await
    }

    /// What `python` prints for a job.
    pub async fn python(&self, script: &str, job: &Value) -> Value {
        self.scripts.run(&self.scripts.python, script, job).await
    }

    /// The chains as a client is told of them.
    pub fn chains(&self) -> Value {
        let world = &self.app.world;
        let sites = [&world.origin, &world.destination];
        let told = sites
            .map(|site| json!({"id": site.node.chain_id, "name": site.id, "rpc": site.node.url}));
        json!(told)
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

impl Scripts {
    pub async fn node(&self, script: &str, job: &Value) -> Value {
        self.run(Path::new("node"), script, job).await
    }

    async fn run(&self, program: &Path, script: &str, job: &Value) -> Value {
        let mut client = Command::new(program)
            .arg(self.directory.path().join(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = client.stdin.take().unwrap();
        stdin.write_all(job.to_string().as_bytes()).await.unwrap();
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, client.wait_with_output());
        let output = output.await.unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{script} printed {text}"))
    }
}

/// The npm packages, and the Python that has its own.
fn install() -> (PathBuf, PathBuf) {
    let files = [("package.json", PACKAGE), ("package-lock.json", LOCK)];
    let packages = tools::packages("clients", &files).unwrap();
    let made = tools::build_once("python-client", REQUIREMENTS.as_bytes(), |directory| {
        run(Blocking::new("python3").args(["-m", "venv"]).arg(directory));
        let list = directory.join("requirements.txt");
        std::fs::write(&list, REQUIREMENTS)?;
        let pip = ["-m", "pip", "install", "--quiet", "-r"];
        run(Blocking::new(directory.join("bin/python"))
            .args(pip)
            .arg(list));
        Ok(())
    });
    (packages, made.unwrap().join("bin/python"))
}

fn run(command: &mut Blocking) {
    let output = command.output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success(), "{command:?}\n{told}");
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
