//! `intentd journal`: what the running daemon has signed, and whether its store may be opened.

use std::path::Path;

use anyhow::ensure;
use clap::Subcommand;

use super::asked;
use crate::{
    admin::{Answer, Question},
    run,
    store::sled::SledStore,
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
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let key = match self {
            Self::Show { key } => key,
            Self::Trust => return trust(data_dir),
        };
        let question = Question::Statement { key: key.clone() };
        match asked(data_dir, &question).await? {
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

fn trust(data_dir: &Path) -> anyhow::Result<String> {
    let store = run::store(data_dir);
    ensure!(store.is_dir(), "there is no store in {}", store.display());
    ensure!(SledStore::trust(&store)?, "nobody doubts the store");
    Ok("the next start opens the store".into())
}
