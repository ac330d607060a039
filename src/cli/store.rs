//! `intentd store`: the rows in DATA_DIR while no daemon runs.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Subcommand;

use crate::{
    run,
    store::{
        Store as _,
        check::{self, Report},
        dump,
        sled::SledStore,
    },
};

#[derive(Debug, Subcommand)]
pub enum Store {
    /// Read every row and check what rows say of each other: counts per kind, and each defect. Fails
    /// when there is one.
    Verify,
    /// Write every row to a new file: JSON lines with a checksum behind them.
    Export { file: PathBuf },
    /// Make the store of a DATA_DIR that has none from an export: all of it or nothing. NEVER start a
    /// second oracle with the same key on an old copy: it does not know what was signed since, and
    /// signs the opposite.
    Import { file: PathBuf },
    /// Rewrite the store into a fresh directory, without what was deleted or replaced, and put it in
    /// the place of the old one in one step.
    Compact,
}

/// A store with defects.
#[derive(Debug, thiserror::Error)]
#[error("the store is not whole\n{0}")]
pub struct Defective(Report);

impl Store {
    /// Carries it out over `data_dir`. Fails while a daemon runs there.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let path = run::store(data_dir);
        if !matches!(self, Self::Import { .. }) {
            ensure!(path.is_dir(), "there is no store in {}", path.display());
        }
        match self {
            Self::Verify => {
                let store = SledStore::open(&path)?;
                let report = check::check(&store).await;
                store.close().await;
                Ok(whole(report?)?.to_string())
            }
            Self::Export { file } => export(&path, file).await,
            Self::Import { file } => import(&path, file).await,
            Self::Compact => compact(&path).await,
        }
    }
}

fn whole(report: Report) -> Result<Report, Defective> {
    match report.defects {
        0 => Ok(report),
        _ => Err(Defective(report)),
    }
}

async fn export(path: &Path, file: &Path) -> anyhow::Result<String> {
    let store = SledStore::open(path)?;
    let mut options = File::options();
    let options = options.write(true).create_new(true).mode(0o600);
    let named = || format!("cannot write {}", file.display());
    let out = options.open(file).with_context(named)?;
    let written = written(&store, out).await;
    store.close().await;
    if written.is_err() {
        fs::remove_file(file).with_context(named)?;
    }
    let rows = written?;
    Ok(format!("{rows} rows in {}", file.display()))
}

async fn written(store: &SledStore, out: File) -> anyhow::Result<u64> {
    let mut out = BufWriter::new(out);
    let rows = dump::write(store, &mut out).await?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(rows)
}

async fn import(path: &Path, file: &Path) -> anyhow::Result<String> {
    let named = || format!("cannot read {}", file.display());
    let mut input = BufReader::new(File::open(file).with_context(named)?);
    let rows = SledStore::create(path, async |store| -> anyhow::Result<u64> {
        let rows = dump::read(store, &mut input).await.with_context(named)?;
        whole(check::check(store).await?)?;
        Ok(rows)
    })
    .await
    .context("nothing was imported")?;
    Ok(format!("{rows} rows in {}", path.display()))
}

async fn compact(path: &Path) -> anyhow::Result<String> {
    let before = size(path)?;
    let rows = SledStore::compact(path).await?;
    let after = size(path)?;
    Ok(format!("{rows} rows, {before} bytes before, {after} now"))
}

/// Bytes of the files in a directory and below.
fn size(path: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += match about.is_dir() {
            true => size(&entry.path())?,
            false => about.len(),
        };
    }
    Ok(bytes)
}
