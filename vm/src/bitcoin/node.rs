//! One Bitcoin node, asked through bitcoincore-rpc, whose calls block: each read is one closure on a blocking thread.
//! Only [`AT_ONCE`] of them run at once, each with a deadline, so that a hanging node holds only its share of threads.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bitcoin::{BlockHash, OutPoint, Transaction, Txid};
use bitcoincore_rpc::{Client, RpcApi, jsonrpc};
use serde_json::{Map, Value};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{
    esplora::Esplora,
    network::Network,
    question::{Fault, hash_at, header, look, raw, spending, unspent},
    source::{Found, Source, Spender, Transactions, block_hash, moved, shown},
    transport::Blocking,
};
use crate::{
    ChainSpec, Endpoint, ReadError, SpecError,
    http::Channel,
    types::{B256, Block},
};

/// The most concurrent reads of one node.
const AT_ONCE: usize = 16;

/// One node.
pub struct Node {
    channel: Channel,
    /// The most time for one read with all its questions.
    patience: Duration,
    permits: Arc<Semaphore>,
    /// The first block of the node's chain, where the chain's entry names it.
    genesis: Option<BlockHash>,
    /// Whether the node showed that block and no read has failed since.
    identified: AtomicBool,
    /// Names what spent an output, which nodes do not know. What it names is looked at in this node.
    pub(super) index: Option<Esplora>,
    pub(super) access: Access,
    /// A node searches its unspent outputs for one caller at a time.
    pub(super) scans: tokio::sync::Mutex<()>,
    /// Names of wallets in the node that watch accounts of ours.
    pub(super) wallets: tokio::sync::Mutex<HashSet<String>>,
}

/// How outputs of accounts are found in nodes, as the chain's entry says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A node may search all unspent outputs of the chain for those of an account (`scanUnspentOutputs`). On the main
    /// network that takes minutes; on a network of one's own it is always allowed.
    pub scans: bool,
    /// Unix seconds since when a new wallet finds outputs (`walletSince`); unset: since now.
    pub since: Option<u64>,
}

impl Access {
    pub fn of(additional: &Map<String, Value>) -> Result<Self, SpecError> {
        let wrong = |what: &str| SpecError(format!("additionalData.{what}"));
        let scans = match additional.get("scanUnspentOutputs") {
            None | Some(Value::Null) => Network::of(additional)?.kind == bitcoin::Network::Regtest,
            Some(Value::Bool(allowed)) => *allowed,
            Some(_) => return Err(wrong("scanUnspentOutputs: expected true or false")),
        };
        let since = match additional.get("walletSince") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let wrong = || wrong("walletSince: expected unix seconds");
                Some(value.as_u64().ok_or_else(wrong)?)
            }
        };
        Ok(Self { scans, since })
    }
}

impl Node {
    pub fn new(
        spec: &ChainSpec,
        endpoint: &Endpoint,
        (genesis, index): (Option<BlockHash>, Option<Esplora>),
        access: Access,
    ) -> Self {
        Self {
            channel: Channel::new(&spec.id, endpoint),
            // Further answers may be quick after a slow one.
            patience: endpoint.timeout * 3 / 2,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            genesis,
            identified: AtomicBool::new(false),
            index,
            access,
            scans: tokio::sync::Mutex::new(()),
            wallets: tokio::sync::Mutex::default(),
        }
    }

    /// Runs `question` on a blocking thread, after a check that the node is on our chain.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        self.ask_wallet(None, question).await
    }

    /// The same, where the questions are for a wallet of the node.
    pub(super) async fn ask_wallet<T: Send + 'static>(
        &self,
        wallet: Option<&str>,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let deadline = Instant::now() + self.patience;
        let permit = timeout_at(deadline, self.permits.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(ReadError::Unavailable("too many reads under way".into()));
        };
        let client = self.client(wallet, deadline);
        let genesis = self.genesis.filter(|_| !self.identified.load(Relaxed));
        let answered = tokio::task::spawn_blocking(move || {
            // Held until the thread is free, even if the caller stopped waiting.
            let _permit = permit;
            if let Some(genesis) = genesis
                && hash_at(&client, 0)? != Some(genesis)
            {
                return Err(Fault::OtherChain);
            }
            question(&client)
        });
        let answer = match timeout_at(deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(stopped)) => return Err(ReadError::Unavailable(stopped.to_string())),
            Err(_) => Err(Fault::Late),
        };
        match &answer {
            Ok(_) if genesis.is_some() => self.identified.store(true, Relaxed),
            // When the connection comes back, another node may answer under the same name.
            Err(Fault::Rpc(_) | Fault::Late) => self.identified.store(false, Relaxed),
            _ => {}
        }
        Ok(answer?)
    }

    /// Whether outputs of any account can be read.
    pub(super) const fn shows_anybody(&self) -> bool {
        self.index.is_some() || self.access.scans
    }

    /// How long one read may take.
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    fn client(&self, wallet: Option<&str>, deadline: Instant) -> Client {
        let transport = Blocking {
            channel: self.channel.clone(),
            wallet: wallet.map(str::to_owned),
            runtime: Handle::current(),
            deadline,
        };
        Client::from_jsonrpc(jsonrpc::Client::with_transport(transport))
    }

    /// What spent these outputs, as far as the index names it and the node knows the same.
    async fn named(&self, spent: Vec<OutPoint>) -> Result<HashMap<OutPoint, Txid>, ReadError> {
        let Some(index) = self.index.as_ref().filter(|_| !spent.is_empty()) else {
            return Ok(HashMap::new());
        };
        let said = index.spenders(&spent).await.unwrap_or_else(|error| {
            tracing::debug!(provider = self.channel.provider(), %error, "no spender named");
            Vec::new()
        });
        let named = spent.into_iter().zip(said).filter_map(|it| match it {
            (output, Spender::By(txid)) => Some((output, txid)),
            _ => None,
        });
        let named: Vec<_> = named.collect();
        let asked = named.clone();
        let true_ones = self.ask(move |client| spending(client, &asked)).await?;
        let true_ones = named.into_iter().zip(true_ones);
        Ok(true_ones.filter(|it| it.1).map(|it| it.0).collect())
    }
}

#[async_trait]
impl Source for Node {
    async fn tip(&self) -> Result<Block, ReadError> {
        self.ask(|client| {
            let height: u64 = client.call("getblockcount", &[])?;
            let hash = hash_at(client, height)?.ok_or_else(moved)?;
            header(client, &hash)
        })
        .await
    }

    async fn hash_at(&self, height: u64) -> Result<Option<B256>, ReadError> {
        let found = self.ask(move |client| hash_at(client, height)).await?;
        Ok(found.map(|hash| shown(&hash)))
    }

    async fn block(&self, hash: B256) -> Result<Block, ReadError> {
        self.ask(move |client| header(client, &block_hash(&hash)))
            .await
    }

    async fn look(&self, txid: Txid, head: &Block) -> Result<Option<Found>, ReadError> {
        let head = head.clone();
        self.ask(move |client| look(client, &txid, &head)).await
    }

    async fn spenders(&self, outputs: &[OutPoint]) -> Result<Vec<Spender>, ReadError> {
        let asked = outputs.to_vec();
        let unspent = self.ask(move |client| unspent(client, &asked)).await?;
        let each = || outputs.iter().zip(&unspent);
        let spent = each().filter(|it| !it.1).map(|it| *it.0).collect();
        let named = self.named(spent).await?;
        let spenders = each().map(|(output, unspent)| match (unspent, named.get(output)) {
            (true, _) => Spender::Nobody,
            (false, Some(txid)) => Spender::By(*txid),
            (false, None) => Spender::Somebody,
        });
        Ok(spenders.collect())
    }
}

#[async_trait]
impl Transactions for Node {
    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError> {
        self.ask(move |client| raw(client, &txid)).await
    }
}
