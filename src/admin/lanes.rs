//! Questions about the solver's nonces.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::solver::{
    SolverError,
    lane::{Lane, Shown},
};

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lane", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Every lane, or those of `network`.
    Show { network: Option<String> },
    /// Nonces of `network` that the chain waits for and nobody has are to be used up.
    Heal { network: String },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lane", rename_all = "kebab-case")]
pub enum Answer {
    Shown { lanes: Vec<Row> },
    Healed { lanes: Vec<Healed> },
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub network: String,
    pub account: String,
    /// The nonce that the next transaction takes; `None` before the first one.
    pub next: Option<u64>,
    /// The chain's count, by agreement of its providers, or why there is none.
    pub mined: Result<u64, String>,
    pub gaps: Vec<u64>,
    pub open: Vec<Open>,
}

/// A nonce that is not done with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    pub nonce: u64,
    pub of: String,
    /// The newest transaction that has it.
    pub transaction: Option<String>,
    pub versions: usize,
    /// Unix seconds of the newest.
    pub since: u64,
    pub refused: u32,
    pub cancelled: bool,
}

/// What was used up in a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Healed {
    pub account: String,
    pub nonces: Vec<u64>,
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
    /// What `lanes` say to it at `now`, in unix seconds.
    pub(super) async fn answer(self, lanes: &[Arc<Lane>], now: u64) -> Result<Answer, LanesError> {
        let of = |network: &str| {
            let found = lanes.iter().filter(|lane| lane.site.name == network);
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
                    None => lanes.iter().collect(),
                };
                let rows = asked
                    .into_iter()
                    .map(|lane| async { Ok::<_, SolverError>(row(lane.show().await?)) });
                let lanes = futures::future::try_join_all(rows).await?;
                Ok(Answer::Shown { lanes })
            }
            Self::Heal { network } => {
                let mut healed = Vec::new();
                for lane in of(&network)? {
                    healed.push(Healed {
                        account: lane.owner.text().to_owned(),
                        nonces: lane.heal(now).await?,
                    });
                }
                Ok(Answer::Healed { lanes: healed })
            }
        }
    }
}

fn row(shown: Shown) -> Row {
    let open = shown.slots.into_iter().map(|(nonce, slot)| Open {
        nonce,
        of: Shown::owner(&slot),
        transaction: slot.versions.last().map(|newest| newest.hash.to_string()),
        versions: slot.versions.len(),
        since: slot.sent_at,
        refused: slot.refused,
        cancelled: slot.versions.last().is_some_and(|newest| newest.cancels),
    });
    Row {
        network: shown.network,
        account: shown.account,
        next: shown.next,
        mined: shown.mined,
        gaps: shown.gaps,
        open: open.collect(),
    }
}
