//! Questions and commands about the solver.

use alloy::primitives::B256;
use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::solver::admin::{AdminError, AdminHandle, Left, MOST, Standing, Unsettled};

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
    /// Deposits that are neither filled nor given back, with why: a thousand, the newest first.
    Parked {
        /// Dust and unknown tokens, too.
        #[arg(long)]
        all: bool,
        /// So many of the newest are left out.
        #[arg(long, default_value_t = 0)]
        #[serde(default)]
        skip: usize,
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
        /// Older ones that are not shown.
        more: usize,
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
            Self::Parked { all, skip } => {
                let mut parked = handle.parked(all).await?;
                parked.drain(..skip.min(parked.len()));
                let more = parked.len().saturating_sub(MOST);
                parked.truncate(MOST);
                return Ok(Answer::Parked { parked, more });
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy::primitives::U256;
    use tokio::sync::watch;

    use super::*;
    use crate::{
        request::reason::{FailReason, RefundFailReason},
        store::{
            Batch, Store,
            memory::MemoryStore,
            requests::Requests,
            rows::parked::{self, Parked},
        },
    };

    #[tokio::test]
    async fn each_parked_deposit_is_listed_however_many_there_are() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let name = |since: u64| B256::from(U256::from(since));
        for since in 1..=MOST as u64 + 2 {
            let row = Parked {
                network: "origin".into(),
                transaction: "0x1".into(),
                depositor: "0x2".into(),
                currency: "0x3".into(),
                amount: U256::from(1),
                reason: FailReason::Unknown,
                why: RefundFailReason::ManualRefundRequired,
                note: String::new(),
                minor: false,
                since,
            };
            let key = parked::key(&B256::ZERO, &name(since));
            let put = Batch::new().put(key, row.encode().unwrap());
            store.commit(put).await.unwrap();
        }
        let handle = AdminHandle {
            requests: Requests::new(store),
            reconciliation: watch::Sender::new(None).subscribe(),
            clock: || 0,
        };
        let listed = async |skip: usize| {
            let question = Question::Parked { all: false, skip };
            match question.answer(&handle).await.unwrap() {
                Answer::Parked { parked, more } => {
                    let first = parked.first().map(|left| left.deposit);
                    (parked.len(), first, more)
                }
                other => panic!("{other:?}"),
            }
        };
        let newest = MOST as u64 + 2;
        assert_eq!(listed(0).await, (MOST, Some(name(newest)), 2));
        assert_eq!(listed(2).await, (MOST, Some(name(newest - 2)), 0));
        assert_eq!(listed(MOST).await, (2, Some(name(2)), 0));
        assert_eq!(listed(usize::MAX).await, (0, None, 0));
    }
}
