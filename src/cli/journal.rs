//! `intentd journal`: what the running daemon has signed.

use std::path::Path;

use anyhow::ensure;
use clap::Subcommand;

use super::asked;
use crate::admin::{Answer, Question};

#[derive(Debug, Subcommand)]
pub enum Journal {
    /// What stands, and what is void, under a statement's key (`deposit/<chain>/<tx>/…`), as JSON.
    Show { key: String },
}

impl Journal {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let Self::Show { key } = self;
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
