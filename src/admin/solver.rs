//! Questions and commands about the solver.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use crate::solver::admin::{AdminError, AdminHandle, Left, Standing, Unsettled};

/// A question or command. Deposits are named by their onchain ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Whether it is paused, and what the last reconciliation found.
    Standing {},
    /// Begins no fill from now on.
    Pause {
        why: String,
    },
    Resume {},
    /// Lists parked deposits; with `all` also dust.
    Parked {
        all: bool,
    },
    /// Lets the solver decide about a parked deposit anew.
    Release {
        deposit: B256,
    },
    /// Removes a parked deposit from the list: the operator has dealt with it.
    Dismiss {
        deposit: B256,
    },
    /// Lists payments that are not settled.
    Unsettled {},
    /// Asks the oracle about a payment at once.
    Retry {
        deposit: B256,
    },
    /// Asks about a payment no longer.
    WriteOff {
        deposit: B256,
    },
}

/// An answer.
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
    /// Answers through `handle`.
    pub(super) async fn answer(self, handle: &AdminHandle) -> Result<Answer, AdminError> {
        match self {
            Self::Standing {} => {
                let standing = handle.standing().await?;
                return Ok(Answer::Standing { standing });
            }
            Self::Parked { all } => {
                let parked = handle.parked(all).await?;
                return Ok(Answer::Parked { parked });
            }
            Self::Unsettled {} => {
                let unsettled = handle.unsettled().await?;
                return Ok(Answer::Unsettled { unsettled });
            }
            Self::Resume {} => {
                let was = handle.resume().await?;
                return Ok(Answer::Resumed { was });
            }
            Self::Pause { why } => handle.pause(&why).await?,
            Self::Release { deposit } => handle.release(deposit).await?,
            Self::Dismiss { deposit } => handle.dismiss(deposit).await?,
            Self::Retry { deposit } => handle.retry(deposit).await?,
            Self::WriteOff { deposit } => handle.write_off(deposit).await?,
        }
        Ok(Answer::Done {})
    }
}
