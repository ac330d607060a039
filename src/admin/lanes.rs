//! Questions about the solver's accounts and what they have on its way.

use std::sync::Arc;

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::solver::{
    SolverError,
    account::{Shown, SolverAccount},
};

/// What can be asked. The command line takes it as it is, with these texts as its help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "lane", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// The account on every network, or on one: its open transactions, and what it holds that none of them has.
    Show { network: Option<String> },
    /// ONLY if DATA_DIR is no old copy: let the solver pay again after a stop (intentd_solver_behind), and use up what
    /// the chain of a network waits for and no transaction has.
    Heal { network: String },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lane", rename_all = "kebab-case")]
pub enum Answer {
    Shown {
        #[serde(rename = "lanes")]
        accounts: Vec<Row>,
    },
    Healed {
        #[serde(rename = "lanes")]
        accounts: Vec<Healed>,
    },
}

/// A solver account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub network: String,
    pub account: String,
    /// What the next attempt holds; `None` before the first one.
    pub next: Option<String>,
    /// How far the chain is, by agreement of its providers, or why nobody says it.
    pub mined: Result<String, String>,
    pub gaps: Vec<String>,
    pub open: Vec<Open>,
}

/// An attempt that is not done with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    pub attempt: String,
    pub of: String,
    /// Its newest transaction.
    pub transaction: Option<String>,
    pub versions: usize,
    /// Unix seconds of the newest.
    pub since: u64,
    pub refused: u32,
    pub cancelled: bool,
}

/// What was used up in an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Healed {
    pub account: String,
    pub used_up: Vec<String>,
}

/// Why nothing was healed.
#[derive(Debug, thiserror::Error)]
pub enum LanesError {
    #[error("the solver does not work on {0}")]
    Unknown(String),
    #[error(transparent)]
    Solver(#[from] SolverError),
}

impl Question {
    /// What `accounts` answer at `now`, in unix seconds. An error where none is on the network that it names.
    pub(super) async fn answer(
        self,
        accounts: &[Arc<SolverAccount>],
        now: u64,
    ) -> Result<Answer, LanesError> {
        let of = |network: &str| {
            let found = accounts
                .iter()
                .filter(|account| account.chain.name == network);
            let found: Vec<_> = found.collect();
            match found.is_empty() {
                true => Err(LanesError::Unknown(network.to_owned())),
                false => Ok(found),
            }
        };
        match self {
            Self::Show { network } => {
                let asked = match &network {
                    Some(network) => of(network)?,
                    None => accounts.iter().collect(),
                };
                let rows = asked
                    .into_iter()
                    .map(|account| async { Ok::<_, SolverError>(row(account.summary().await?)) });
                let accounts = futures::future::try_join_all(rows).await?;
                Ok(Answer::Shown { accounts })
            }
            Self::Heal { network } => {
                let mut healed = Vec::new();
                for account in of(&network)? {
                    healed.push(Healed {
                        account: account.owner.text().to_owned(),
                        used_up: account.heal(now).await?,
                    });
                }
                Ok(Answer::Healed { accounts: healed })
            }
        }
    }
}

fn row(shown: Shown) -> Row {
    let open = shown.attempts.into_iter().map(|(name, attempt)| Open {
        attempt: name,
        of: Shown::owner(&attempt),
        transaction: attempt.signed.last().map(|newest| newest.id.clone()),
        versions: attempt.signed.len(),
        since: attempt.sent_at,
        refused: attempt.refused,
        cancelled: attempt.signed.last().is_some_and(|newest| newest.cancels),
    });
    Row {
        network: shown.network,
        account: shown.account,
        next: shown.next,
        mined: shown.reached,
        gaps: shown.gaps,
        open: open.collect(),
    }
}
