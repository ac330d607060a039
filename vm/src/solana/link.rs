//! The line to one node: each read has its time, and none is believed before the node has shown that it is on our chain.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use futures::future::BoxFuture;
use solana_pubkey::Pubkey;
use tokio::time::timeout;

use super::{question::Questions, transport::MAX_VALUES};
use crate::{ChainSpec, Endpoint, ReadError, SpecError, http::Channel, types::B256};

/// How much of an answer is read.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The most bytes.
    pub bytes: usize,
    /// The most JSON values.
    pub values: usize,
}

impl Room {
    /// For one thing of the chain. A transaction with all that it caused has less than a megabyte.
    pub const ONE: Self = Self {
        bytes: 4 << 20,
        values: MAX_VALUES,
    };
    /// For blocks with their transactions.
    pub const BLOCKS: Self = Self {
        bytes: 32 << 20,
        values: 2_000_000,
    };
}

/// One node.
pub struct Link {
    pub questions: Questions,
    /// The most time for one read with all its questions.
    patience: Duration,
    /// The first block of the node's chain, where the chains file names it.
    genesis: Option<B256>,
    /// Whether the node showed that block and no read has failed since.
    identified: AtomicBool,
}

impl Link {
    /// Without network traffic.
    pub fn new(spec: &ChainSpec, endpoint: &Endpoint, room: Room) -> Result<Self, SpecError> {
        let endpoint = Endpoint {
            longest: endpoint.longest.min(room.bytes),
            ..endpoint.clone()
        };
        let genesis = spec.additional.get("genesisHash");
        let genesis = genesis.and_then(|value| value.as_str());
        let genesis = genesis.map(|text| {
            let key = text.parse::<Pubkey>().map(|key| B256::new(key.to_bytes()));
            key.map_err(|_| SpecError("genesisHash: expected a hash".into()))
        });
        Ok(Self {
            questions: Questions::new(Channel::new(&spec.id, &endpoint), room.values),
            // Further answers may be quick after a slow one.
            patience: endpoint.timeout * 3 / 2,
            genesis: genesis.transpose()?,
            identified: AtomicBool::new(false),
        })
    }

    /// Whether a node of another network is noticed.
    pub const fn is_checked(&self) -> bool {
        self.genesis.is_some()
    }

    /// Runs a read within its time, after a check that the node is on our chain.
    pub async fn read<T>(&self, read: BoxFuture<'_, Result<T, ReadError>>) -> Result<T, ReadError> {
        let identified = self.genesis.is_none() || self.identified.load(Relaxed);
        let checked = async {
            if let Some(genesis) = self.genesis.filter(|_| !identified) {
                if self.questions.genesis().await? != genesis {
                    let what = "another chain: wrong genesis block";
                    return Err(ReadError::Doubtful(what.into()));
                }
                self.identified.store(true, Relaxed);
            }
            read.await
        };
        let late = |_| Err(ReadError::Unavailable("timed out".into()));
        let answer = timeout(self.patience, checked).await.unwrap_or_else(late);
        if let Err(ReadError::Unavailable(_)) = answer {
            // When the connection comes back, another node may answer under the same name.
            self.identified.store(false, Relaxed);
        }
        answer
    }
}
