//! `intentd halts`: chains for which the running daemon signs nothing.

use std::path::Path;

use anyhow::ensure;
use clap::Subcommand;

use super::asked;
use crate::admin::{Answer, Halted, Question};

#[derive(Debug, Subcommand)]
pub enum Halts {
    /// Every halted chain: name, since when (unix seconds), why.
    List,
    /// Let signing for a chain go on, after somebody has looked into it.
    Clear { chain: String },
}

impl Halts {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match self {
            Self::List => Question::Halts {},
            Self::Clear { chain } => Question::ClearHalt {
                chain: chain.clone(),
            },
        };
        match (self, asked(data_dir, &question).await?) {
            (Self::List, Answer::Halts { halts }) => Ok(lines(&halts)),
            (Self::Clear { chain }, Answer::Cleared { cleared }) => {
                ensure!(cleared, "{chain} is not halted");
                Ok(format!("signing for {chain} goes on"))
            }
            (_, other) => Err(super::unexpected(&other)),
        }
    }
}

fn lines(halts: &[Halted]) -> String {
    if halts.is_empty() {
        return "no chain is halted".into();
    }
    let line = |halted: &Halted| {
        let Halted { chain, halt } = halted;
        format!("{chain}  since {}  {}", halt.at, halt.why)
    };
    halts.iter().map(line).collect::<Vec<_>>().join("\n")
}
