//! `intentd lane`: what the accounts of the running daemon's solver have under way.

use std::path::Path;

use clap::Subcommand;

use super::asked;
use crate::admin::{
    Answer, Question,
    lanes::{self, Healed, Row},
};

#[derive(Debug, Subcommand)]
pub enum Lane {
    /// The account on every network, or on one: its open transactions, and what it holds that none of them has.
    Show { network: Option<String> },
    /// Use up what the chain of a network waits for and no transaction has, and believe the count that its
    /// providers agree on.
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
            Answer::Lanes(lanes::Answer::Shown { accounts }) => Ok(shown(&accounts)),
            Answer::Lanes(lanes::Answer::Healed { accounts }) => Ok(healed(&accounts)),
            other => Err(super::unexpected(&other)),
        }
    }
}

fn shown(accounts: &[Row]) -> String {
    let text = |row: &Row| {
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
    match accounts.is_empty() {
        true => "no lanes".into(),
        false => accounts.iter().map(text).collect::<Vec<_>>().join("\n"),
    }
}

fn healed(accounts: &[Healed]) -> String {
    let text = |healed: &Healed| match healed.used_up.is_empty() {
        true => format!("{}: nothing was missing", healed.account),
        false => format!(
            "{}: used up [{}]",
            healed.account,
            healed.used_up.join(", ")
        ),
    };
    accounts.iter().map(text).collect::<Vec<_>>().join("\n")
}
