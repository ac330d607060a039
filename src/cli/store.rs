//! `intentd store`: the rows in DATA_DIR and JOURNAL_DIR while no daemon runs.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Subcommand;

use crate::store::{
    Making, Store as _,
    check::{self, Report},
    dump, home,
    pair::{Directories, Pair},
};

#[derive(Debug, Subcommand)]
pub enum Store {
    /// Read every row and check what rows say of each other: counts per kind, and each defect. Fails
    /// when there is one.
    Verify,
    /// Write every row to a new file: JSON lines with a checksum behind them. Refused where an import
    /// would be: see `verify`.
    Export { file: PathBuf },
    /// Make the store of a DATA_DIR that has none from an export: all of it or nothing. An export of format 3 comes
    /// over whole, of format 1 what was signed and the integrators, once nothing is under way there. NEVER start a
    /// second daemon with the same keys on an old copy: its oracle does not know what was signed since, and signs
    /// the opposite; its solver does not know what was paid since, and pays it again.
    Import { file: PathBuf },
    /// Rewrite the store into a fresh directory, without what was deleted or replaced, and exchange
    /// it for the old one in one step.
    Compact,
}

/// A store with defects.
#[derive(Debug, thiserror::Error)]
#[error("the store is not whole\n{0}")]
pub struct Defective(Report);

impl Store {
    /// Carries it out over `directories`. Fails while a daemon runs there.
    pub async fn answer(&self, directories: Directories) -> anyhow::Result<String> {
        match self {
            Self::Verify => {
                let both = Pair::open(&directories, Making::Refused)?;
                let report = check::check(&both).await;
                both.close().await;
                Ok(intact(report?)?.to_string())
            }
            Self::Export { file } => export(&directories, file).await,
            Self::Import { file } => import(&directories, file).await,
            Self::Compact => compact(&directories).await,
        }
    }
}

fn intact(report: Report) -> Result<Report, Defective> {
    match report.defects {
        0 => Ok(report),
        _ => Err(Defective(report)),
    }
}

async fn export(directories: &Directories, file: &Path) -> anyhow::Result<String> {
    let both = Pair::open(directories, Making::Refused)?;
    let written = verified(&both, file).await;
    both.close().await;
    Ok(format!("{} rows in {}", written?, file.display()))
}

async fn verified(both: &Pair, file: &Path) -> anyhow::Result<u64> {
    let refused = "nothing was exported: an import would refuse it";
    intact(check::check(both).await?).context(refused)?;
    kept(both, file).await
}

async fn kept(store: &Pair, file: &Path) -> anyhow::Result<u64> {
    let mut options = File::options();
    let options = options.write(true).create_new(true).mode(0o600);
    let named = || format!("cannot write {}", file.display());
    let out = options.open(file).with_context(named)?;
    let written = written(store, out).await;
    if written.is_err() {
        fs::remove_file(file).with_context(named)?;
    }
    written
}

async fn written(store: &Pair, out: File) -> anyhow::Result<u64> {
    let mut out = BufWriter::new(out);
    let rows = dump::write(store, &mut out).await?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(rows)
}

async fn import(directories: &Directories, file: &Path) -> anyhow::Result<String> {
    for directory in directories.homes() {
        home(&directory, Making::Allowed)?;
    }
    let named = || format!("cannot read {}", file.display());
    let mut input = BufReader::new(File::open(file).with_context(named)?);
    let imported = Pair::create(
        directories,
        async |both| -> anyhow::Result<dump::Imported> {
            let imported = dump::read(both, &mut input).await.with_context(named)?;
            intact(check::check(both).await?)?;
            Ok(imported)
        },
    )
    .await
    .context("nothing was imported")?;
    Ok(format!("{imported} in {}", directories.data().display()))
}

async fn compact(directories: &Directories) -> anyhow::Result<String> {
    drop(Pair::open(directories, Making::Refused)?);
    let both =
        || Ok::<_, anyhow::Error>(size(&directories.store())? + size(&directories.journal())?);
    let before = both()?;
    let rows = Pair::compact(directories).await?;
    let after = both()?;
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
