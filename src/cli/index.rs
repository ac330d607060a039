//! `intentd index`: how far networks have been indexed, and reading blocks again.

use std::path::Path;

use clap::Subcommand;

use super::{asked, lines};
use crate::{
    admin::{Answer, Question},
    index::admin::Standing,
};

#[derive(Debug, Subcommand)]
pub enum Index {
    /// Every network: the height of the index, the oldest block it remembers, what is wrong.
    List,
    /// Read everything after a block again: after a reorg deeper than what is remembered, or where
    /// deposits may have been missed. What was seen before stays where the chain still has it.
    Rewind {
        network: String,
        /// The last block that is not read again: below the reorg.
        #[arg(long)]
        to: u64,
    },
}

impl Index {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match &self {
            Self::List => Question::Index {},
            Self::Rewind { network, to } => Question::Rewind {
                network: network.clone(),
                to: *to,
            },
        };
        match (self, asked(data_dir, &question).await?) {
            (Self::List, Answer::Index { networks }) => {
                Ok(lines(&networks, line, "no network is indexed"))
            }
            (Self::Rewind { network, to }, Answer::Rewound { height }) => Ok(format!(
                "{network} had been indexed up to {height}: everything after {to} is read again"
            )),
            (_, other) => Err(super::unexpected(&other)),
        }
    }
}

fn line(one: &Standing) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let (height, oldest) = (number(one.height), number(one.oldest));
    let trouble = one.trouble.as_deref().unwrap_or("fine");
    format!(
        "{}  at {height}  remembers from {oldest}  {trouble}",
        one.network
    )
}
