//! The pinned npm tools (anvil, solc) and published contracts, installed on first use, and bitcoind.
//!
//! They live in a cache directory outside `target/`, named after the pins, so that a change of a
//! pin never meets an old installation. Blocking; nothing here starts a chain.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use alloy::primitives::hex;
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

const PACKAGE: &str = include_str!("../tools/package.json");
const LOCK: &str = include_str!("../tools/package-lock.json");
const COMPILE: &str = include_str!("../tools/compile.mjs");
const BITCOIND: &str = include_str!("../tools/bitcoind.sh");

/// The anvil that everything here is written for.
pub const ANVIL_VERSION: &str = "1.7.1";

/// The path of an anvil of [`ANVIL_VERSION`]: the one on `PATH`, else the npm one.
pub fn anvil() -> Result<PathBuf> {
    let on_path = PathBuf::from("anvil");
    if version_of(&on_path).is_some_and(|text| text.contains(ANVIL_VERSION)) {
        return Ok(on_path);
    }
    let platform = platform()?;
    let path = install()?.join(format!(
        "node_modules/@foundry-rs/anvil-{platform}/bin/anvil"
    ));
    ensure!(
        path.exists(),
        "npm did not install {}; is {platform} supported by @foundry-rs/anvil?",
        path.display()
    );
    Ok(path)
}

/// Whether [`bitcoind`] has one without a build.
pub fn has_bitcoind() -> Result<bool> {
    Ok(bitcoind_on_path().is_some() || made("bitcoind", BITCOIND.as_bytes())?.exists())
}

fn bitcoind_on_path() -> Option<PathBuf> {
    let path = PathBuf::from("bitcoind");
    let version = version_of(&path)?;
    version.contains("Bitcoin Core").then_some(path)
}

/// The path of a bitcoind: the one on `PATH`, else one that is built from source, once, in 3 to 8 minutes.
pub fn bitcoind() -> Result<PathBuf> {
    if let Some(path) = bitcoind_on_path() {
        return Ok(path);
    }
    let directory = build_once("bitcoind", BITCOIND.as_bytes(), |directory| {
        tracing::info!("there is no bitcoind on PATH: building one (once, 3 to 8 minutes)");
        let script = directory.join("build.sh");
        fs::write(&script, BITCOIND)?;
        let built = Command::new("sh")
            .arg(&script)
            .arg(directory)
            .stdin(Stdio::null())
            .output()
            .context("cannot start sh")?;
        ensure!(
            built.status.success(),
            "there is no bitcoind on PATH, and none could be built:\n{}",
            String::from_utf8_lossy(&built.stderr)
        );
        Ok(())
    })?;
    Ok(directory.join("bitcoind"))
}

/// The text of a file of the npm packages: `@scope/package/path`.
pub fn packaged(path: &str) -> Result<String> {
    let path = install()?.join("node_modules").join(path);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs solc over a standard-JSON input and returns its standard-JSON output.
pub fn compile(input: &str) -> Result<String> {
    let tools = install()?;
    let mut solc = Command::new("node")
        .arg(tools.join("compile.mjs"))
        .arg(&tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("node is needed to run the Solidity compiler")?;
    let mut output = String::new();
    // The compiler reads its whole input before it writes: neither pipe can block the other.
    solc.stdin
        .take()
        .context("no stdin")?
        .write_all(input.as_bytes())?;
    solc.stdout
        .take()
        .context("no stdout")?
        .read_to_string(&mut output)?;
    let end = solc.wait_with_output()?;
    ensure!(
        end.status.success(),
        "solc failed: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    Ok(output)
}

/// Makes `<cache>/<name>-<hash of key>` by `build` unless it is there already, and returns it.
///
/// Processes that want the same directory wait for the one that builds it; a build that dies
/// leaves nothing behind under the final name.
pub fn build_once(
    name: &str,
    key: &[u8],
    build: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let root = cache_root()?;
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    let directory = made(name, key)?;
    if directory.exists() {
        return Ok(directory);
    }
    let lock = File::create(directory.with_extension("lock"))?;
    lock.lock()?;
    if directory.exists() {
        return Ok(directory);
    }
    let draft = tempfile::Builder::new().prefix(name).tempdir_in(&root)?;
    build(draft.path())?;
    fs::rename(draft.keep(), &directory)?;
    Ok(directory)
}

/// Where [`build_once`] makes it. `.ci/run` builds bitcoind there, too.
fn made(name: &str, key: &[u8]) -> Result<PathBuf> {
    let hash = hex::encode(&Sha256::digest(key)[..8]);
    Ok(cache_root()?.join(format!("{name}-{hash}")))
}

/// The cache directory: `INTENTD_DEVNET_CACHE`, else `intentd-devnet` in the user's cache directory.
pub fn cache_root() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = set("INTENTD_DEVNET_CACHE") {
        return Ok(path.into());
    }
    let caches = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => bail!("set INTENTD_DEVNET_CACHE, XDG_CACHE_HOME or HOME"),
    };
    Ok(caches.join("intentd-devnet"))
}

fn install() -> Result<PathBuf> {
    packages(
        "tools",
        &[
            ("package.json", PACKAGE),
            ("package-lock.json", LOCK),
            ("compile.mjs", COMPILE),
        ],
    )
}

/// A directory with `node_modules` as the given `package.json` and lock file ask for, installed from
/// npm on first use. `files` are names and contents; all of them are written there.
pub fn packages(name: &str, files: &[(&str, &str)]) -> Result<PathBuf> {
    let key: String = files.iter().map(|(_, content)| *content).collect();
    build_once(name, key.as_bytes(), |directory| {
        ensure_node()?;
        tracing::info!(name, "installing npm packages (once)");
        for (file, content) in files {
            fs::write(directory.join(file), content)?;
        }
        // `install`, not `ci`: the lock pins what it names, and other platforms' binaries, which
        // it does not name, are pinned by anvil's own manifest.
        let npm = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
            // Uniswap's packages ask for the tools that they were built with.
            .arg("--legacy-peer-deps")
            .current_dir(directory)
            .stdin(Stdio::null())
            .output()
            .context("npm is needed: install Node.js 20 or newer")?;
        ensure!(
            npm.status.success(),
            "npm install failed:\n{}",
            String::from_utf8_lossy(&npm.stderr)
        );
        Ok(())
    })
}

fn ensure_node() -> Result<()> {
    let version =
        version_of(Path::new("node")).context("node is needed: install Node.js 20 or newer")?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    ensure!(
        major
            .and_then(|text| text.parse::<u32>().ok())
            .is_some_and(|number| number >= 20),
        "Node.js 20 or newer is needed, this is {}",
        version.trim()
    );
    Ok(())
}

/// The output of `program --version`, if it runs.
fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()
}

fn platform() -> Result<String> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        other => bail!("there is no anvil package for {other}"),
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("there is no anvil package for {other}"),
    };
    Ok(format!("{system}-{machine}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_pins_tools_and_contracts_and_names_no_registry() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        let packages = &lock["packages"];
        assert_eq!(packages["node_modules/solc"]["version"], "0.8.30");
        assert_eq!(
            packages["node_modules/@foundry-rs/anvil"]["version"],
            ANVIL_VERSION
        );
        for (package, version) in [
            ("v3-core", "1.0.1"),
            ("v3-periphery", "1.4.4"),
            ("swap-router-contracts", "1.3.1"),
        ] {
            let name = format!("node_modules/@uniswap/{package}");
            assert_eq!(packages[name]["version"], version);
        }
        assert!(!LOCK.contains("resolved") && !LOCK.contains("registry"));
    }

    #[test]
    fn failed_build_leaves_nothing_under_the_final_name() {
        let key = format!("failing {}", std::process::id());
        assert!(build_once("probe", key.as_bytes(), |_| bail!("no")).is_err());
        let made = build_once("probe", key.as_bytes(), |directory| {
            Ok(fs::write(directory.join("made"), "yes")?)
        })
        .unwrap();
        assert!(made.join("made").exists());
        build_once("probe", key.as_bytes(), |_| bail!("built twice")).unwrap();
        fs::remove_dir_all(&made).unwrap();
        fs::remove_file(made.with_extension("lock")).unwrap();
    }
}
