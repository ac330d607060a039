//! Questions and orders about the solver.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use crate::solver::desk::{Desk, DeskError, Left, Standing, Unsettled};

/// What can be asked, and ordered. Deposits are named by their onchain ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Whether it is paused, and what the last reconciliation found.
    Standing {},
    /// No fill is begun from now on.
    Pause {
        why: String,
    },
    Resume {},
    /// Parked deposits; dust too, if `all`.
    Parked {
        all: bool,
    },
    /// The solver is to decide about a parked deposit anew.
    Release {
        deposit: B256,
    },
    /// A parked deposit was dealt with.
    Dismiss {
        deposit: B256,
    },
    /// Payments that are not settled.
    Unsettled {},
    /// The oracle is to be asked about a payment at once.
    Retry {
        deposit: B256,
    },
    /// A payment is not asked about any more.
    WriteOff {
        deposit: B256,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case")]
pub enum Answer {
    Standing {
        standing: Standing,
    },
    /// Whether it was paused.
    Resumed {
        was: bool,
    },
    Parked {
        parked: Vec<Left>,
    },
    Unsettled {
        unsettled: Vec<Unsettled>,
    },
    Done {},
}

impl Question {
    /// What `desk` says to it.
    pub(super) async fn answer(self, desk: &Desk) -> Result<Answer, DeskError> {
        match self {
            Self::Standing {} => {
                let standing = desk.standing().await?;
                return Ok(Answer::Standing { standing });
            }
            Self::Parked { all } => {
                let parked = desk.parked(all).await?;
                return Ok(Answer::Parked { parked });
            }
            Self::Unsettled {} => {
                let unsettled = desk.unsettled().await?;
                return Ok(Answer::Unsettled { unsettled });
            }
            Self::Resume {} => {
                let was = desk.resume().await?;
                return Ok(Answer::Resumed { was });
            }
            Self::Pause { why } => desk.pause(&why).await?,
            Self::Release { deposit } => desk.release(deposit).await?,
            Self::Dismiss { deposit } => desk.dismiss(deposit).await?,
            Self::Retry { deposit } => desk.retry(deposit).await?,
            Self::WriteOff { deposit } => desk.write_off(deposit).await?,
        }
        Ok(Answer::Done {})
    }
}
