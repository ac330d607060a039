//! Questions and commands about the solver.

use alloy::primitives::B256;
use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::solver::admin::{AdminError, AdminHandle, Left, Standing, Unsettled};

/// A question or command. Deposits are named by their onchain ids. The command line takes it as it is, with these texts
/// as its help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "solver", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Whether it is paused, and what the last reconciliation found.
    #[command(name = "status")]
    Standing {},
    /// Begin no more fills: quotes are refused, refunds go on, what was begun is finished.
    Pause {
        /// Stands in `status` and in the log.
        #[arg(default_value = "paused by the operator")]
        why: String,
    },
    /// Fill again.
    Resume {},
    /// Deposits that are neither filled nor given back, with why.
    Parked {
        /// Dust and unknown tokens, too.
        #[arg(long)]
        all: bool,
    },
    /// Decide about a parked deposit (its onchain id) anew, and give it back if that can be attested.
    Release { deposit: B256 },
    /// A parked deposit was dealt with: list it no longer.
    Dismiss { deposit: B256 },
    /// Payments that the hub has not made good yet, with why.
    Unsettled {},
    /// Ask the oracle about the payment of a deposit (its onchain id) at once.
    Retry { deposit: B256 },
    /// Ask about the payment of a deposit no longer: it is lost.
    WriteOff { deposit: B256 },
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
