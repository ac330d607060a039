//! What the operator can ask the index, and have it do.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{IndexError, Wakeup, tail_states::TailStates};
use crate::store::{
    Batch,
    requests::Requests,
    rows::cursor::{self, Cursor},
};

/// Answers the operator's questions about the index, and takes it back.
#[derive(Clone)]
pub struct AdminHandle {
    requests: Requests,
    /// Wakes the tails, by network.
    wakeups: BTreeMap<String, Arc<Wakeup>>,
    tail_states: Arc<TailStates>,
}

/// Where the index of a network stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub network: String,
    /// The highest block that was indexed; `None` before the first.
    pub height: Option<u64>,
    /// The oldest block that is remembered: a reorg that reaches below it stops the index.
    pub oldest: Option<u64>,
    /// What stops the index.
    pub trouble: Option<String>,
}

/// Why a network is not read again.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("{0}: no such network, or nothing of it has been indexed")]
    Unknown(String),
    #[error(
        "the index of {network} stands at block {height}: it can only be taken back, to a block below"
    )]
    Ahead { network: String, height: u64 },
    #[error("the index moved meanwhile: say it again")]
    Moved,
}

impl AdminHandle {
    pub fn new(
        requests: Requests,
        wakeups: BTreeMap<String, Arc<Wakeup>>,
        tail_states: Arc<TailStates>,
    ) -> Self {
        Self {
            requests,
            wakeups,
            tail_states,
        }
    }

    /// Every network.
    pub async fn standings(&self) -> Result<Vec<Standing>, AdminError> {
        let mut all = Vec::with_capacity(self.wakeups.len());
        for network in self.wakeups.keys() {
            let cursor = self.cursor(network).await?.map(|(cursor, _)| cursor);
            let cursor = cursor.as_ref();
            all.push(Standing {
                network: network.clone(),
                height: cursor.map(|cursor| cursor.next.saturating_sub(1)),
                oldest: cursor.and_then(|cursor| Some(cursor.marks.first()?.number)),
                trouble: self.tail_states.trouble(network),
            });
        }
        Ok(all)
    }

    /// Reads everything after block `to` again, on whatever chain the providers are now, and returns the height
    /// before. Deposits that are no longer in the blocks leave their requests as after any reorg.
    pub async fn rewind(&self, network: &str, to: u64) -> Result<u64, AdminError> {
        let unknown = || AdminError::Unknown(network.to_owned());
        let wakeup = self.wakeups.get(network).ok_or_else(unknown)?;
        let (cursor, bytes) = self.cursor(network).await?.ok_or_else(unknown)?;
        let height = cursor.next.saturating_sub(1);
        if to >= height {
            let network = network.to_owned();
            return Err(AdminError::Ahead { network, height });
        }
        let back = Cursor {
            next: to.saturating_add(1),
            // None of the remembered blocks need be on the chain.
            marks: Vec::new(),
            again: cursor.again.below(to.saturating_add(1)),
        };
        let key = cursor::key(network);
        let back = back.encode().map_err(IndexError::from)?;
        let batch = Batch::new().swap(key, Some(bytes), back);
        let done = self.requests.store().commit(batch).await;
        if !done.map_err(IndexError::from)?.is_applied() {
            return Err(AdminError::Moved);
        }
        tracing::warn!(network, height, to, "the operator has blocks read again");
        wakeup.wake();
        Ok(height)
    }

    async fn cursor(&self, network: &str) -> Result<Option<(Cursor, Vec<u8>)>, IndexError> {
        let found = self.requests.store().read(&cursor::key(network)).await?;
        let Some(bytes) = found else {
            return Ok(None);
        };
        Ok(Some((Cursor::decode(&bytes)?, bytes)))
    }
}
