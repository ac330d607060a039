//! `intentd halts`: chains for which the running daemon signs nothing.

use std::path::Path;

use anyhow::ensure;
use clap::Subcommand;

use super::{asked, lines};
use crate::admin::{Answer, Halted, Question};

#[derive(Debug, Subcommand)]
pub enum Halts {
    /// Every halted chain: name, id, since when (unix seconds), why.
    List,
    /// Let signing for a chain go on, after somebody has looked into all that `list` shows of it.
    Clear {
        chain: String,
        /// The id that `list` shows; it changes with whatever is found.
        id: String,
    },
}

impl Halts {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match self {
            Self::List => Question::Halts {},
            Self::Clear { chain, id } => Question::ClearHalt {
                chain: chain.clone(),
                id: id.clone(),
            },
        };
        match (self, asked(data_dir, &question).await?) {
            (Self::List, Answer::Halts { halts }) => Ok(lines(&halts, line, "no chain is halted")),
            (Self::Clear { chain, id }, Answer::Cleared { cleared }) => {
                ensure!(
                    cleared,
                    "{id} is not what halts {chain}: see `intentd halts list`"
                );
                Ok(format!("signing for {chain} goes on"))
            }
            (_, other) => Err(super::unexpected(&other)),
        }
    }
}

fn line(halted: &Halted) -> String {
    let Halted { chain, id, halt } = halted;
    let mut line = format!("{chain}  {id}  since {}  {}", halt.at, halt.why);
    for also in &halt.also {
        line += &format!("\n  also: {also}");
    }
    if halt.more > 0 {
        line += &format!("\n  and {} more: see the log", halt.more);
    }
    line
}
