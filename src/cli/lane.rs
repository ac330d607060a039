//! `intentd lane`: the nonces of the solver of the running daemon.

use std::path::Path;

use clap::Subcommand;

use super::asked;
use crate::admin::{
    Answer, Question,
    lanes::{self, Healed, Row},
};

#[derive(Debug, Subcommand)]
pub enum Lane {
    /// Nonces of every network, or of one: what has them, and which of them nobody has.
    Show { network: Option<String> },
    /// Use up the nonces of a network that the chain waits for and nobody has, and believe the count that
    /// its providers agree on.
    Heal { network: String },
}

impl Lane {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(&self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match self {
            Self::Show { network } => lanes::Question::Show {
                network: network.clone(),
            },
            Self::Heal { network } => lanes::Question::Heal {
                network: network.clone(),
            },
        };
        match asked(data_dir, &Question::Lanes(question)).await? {
            Answer::Lanes(lanes::Answer::Shown { lanes }) => Ok(shown(&lanes)),
            Answer::Lanes(lanes::Answer::Healed { lanes }) => Ok(healed(&lanes)),
            other => Err(super::unexpected(&other)),
        }
    }
}

fn shown(lanes: &[Row]) -> String {
    let lane = |row: &Row| {
        let Row {
            network, account, ..
        } = row;
        let next = row.next.as_deref().unwrap_or("-");
        let mined = match &row.mined {
            Ok(mined) => mined.clone(),
            Err(why) => format!("unknown ({why})"),
        };
        let mut lines = vec![format!("{network}  {account}  next {next}  mined {mined}")];
        if !row.gaps.is_empty() {
            lines.push(format!(
                "  MISSING [{}]: intentd lane heal {network}",
                row.gaps.join(", ")
            ));
        }
        for open in &row.open {
            let transaction = open.transaction.as_deref().unwrap_or("-");
            let cancelled = if open.cancelled { "  cancelled" } else { "" };
            lines.push(format!(
                "  {}  {}  {transaction}  versions {}  since {}  refused {}{cancelled}",
                open.attempt, open.of, open.versions, open.since, open.refused
            ));
        }
        lines.join("\n")
    };
    match lanes.is_empty() {
        true => "no lanes".into(),
        false => lanes.iter().map(lane).collect::<Vec<_>>().join("\n"),
    }
}

fn healed(lanes: &[Healed]) -> String {
    let lane = |healed: &Healed| match healed.used_up.is_empty() {
        true => format!("{}: nothing was missing", healed.account),
        false => format!(
            "{}: used up [{}]",
            healed.account,
            healed.used_up.join(", ")
        ),
    };
    lanes.iter().map(lane).collect::<Vec<_>>().join("\n")
}
