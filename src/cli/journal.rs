//! `intentd journal`: what the running daemon has signed, and whether its store may be opened.

use anyhow::ensure;
use clap::Subcommand;

use super::asked;
use crate::{
    admin::{Answer, Question},
    store::{pair::Directories, sled::SledStore},
};

#[derive(Debug, Subcommand)]
pub enum Journal {
    /// What stands, and what is void, under a statement's key (`deposit/<chain>/<tx>/…`), as JSON.
    Show { key: String },
    /// Let the daemon open a store that a failed sync left in doubt, after somebody has looked after
    /// the disk; no daemon may run.
    Trust,
}

impl Journal {
    /// What the daemon that runs over `directories` says to it.
    pub async fn answer(&self, directories: Directories) -> anyhow::Result<String> {
        let key = match self {
            Self::Show { key } => key,
            Self::Trust => return trust(&directories),
        };
        let question = Question::Statement { key: key.clone() };
        match asked(directories.data(), &question).await? {
            Answer::Statement { entry, voids } => {
                ensure!(
                    entry.is_some() || !voids.is_empty(),
                    "nothing was signed under {key}"
                );
                let shown = serde_json::json!({ "key": key, "entry": entry, "voids": voids });
                Ok(serde_json::to_string_pretty(&shown)?)
            }
            other => Err(super::unexpected(&other)),
        }
    }
}

fn trust(directories: &Directories) -> anyhow::Result<String> {
    let both = [directories.store(), directories.journal()];
    let there: Vec<_> = both.iter().filter(|path| path.is_dir()).collect();
    ensure!(
        !there.is_empty(),
        "there is no store in {}",
        both[0].display()
    );
    directories.closed()?;
    let mut doubted = false;
    for path in there {
        doubted |= SledStore::trust(path)?;
    }
    ensure!(doubted, "nobody doubts the store");
    Ok("the next start opens the store".into())
}
