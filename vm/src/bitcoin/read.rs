//! Reads of one Bitcoin node through bitcoincore-rpc, whose calls block: each read is one closure on a blocking
//! thread. Only [`AT_ONCE`] of them run at once, each with a deadline, so that a hanging node holds only its share of
//! threads.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bitcoin::{BlockHash, Txid, hashes::Hash};
use bitcoincore_rpc::{Client, RpcApi, jsonrpc};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{
    decode::{self, Rules},
    question::{Fault, Found, MAX_PREVIOUS, hash_at, header, is_canonical, look, reversed},
    transport::Blocking,
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Provider, ReadError, SpecError,
    http::Channel,
    types::{B256, Block, Head, Refusal, Transaction, TxRef},
};

/// How long a head is reused: blocks come every ten minutes.
const HEAD_AGE: Duration = Duration::from_secs(5);
/// The most concurrent reads of one node.
const AT_ONCE: usize = 16;

/// Opens one node of a Bitcoin chain, without network traffic.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let genesis = spec
        .additional
        .get("genesisHash")
        .and_then(|value| value.as_str());
    let genesis = genesis
        .map(|text| {
            text.parse()
                .map_err(|_| SpecError("genesisHash: expected a hash".into()))
        })
        .transpose()?;
    if genesis.is_none() && endpoint.position == 1 {
        let chain = &spec.id;
        tracing::warn!(%chain, "no genesisHash: the daemon cannot notice a node of another network");
    }
    let node = Node {
        rules: Rules::new(spec)?,
        channel: Channel::new(&spec.id, endpoint),
        // Further answers may be quick after a slow one.
        patience: endpoint.timeout * 3 / 2,
        permits: Arc::new(Semaphore::new(AT_ONCE)),
        genesis,
        identified: AtomicBool::new(false),
        turn: tokio::sync::Mutex::new(()),
        tip: Mutex::default(),
    };
    Ok(Provider {
        name: endpoint.name().into(),
        reader: Arc::new(node),
        state: None,
    })
}

struct Node {
    rules: Rules,
    channel: Channel,
    /// The most time for one read with all its questions.
    patience: Duration,
    permits: Arc<Semaphore>,
    /// The first block of the node's chain, where the chains file names it.
    genesis: Option<BlockHash>,
    /// Whether the node showed that block and no read has failed since.
    identified: AtomicBool,
    /// One task reads the head at a time; the others use its result.
    turn: tokio::sync::Mutex<()>,
    tip: Mutex<Tip>,
}

#[derive(Default)]
struct Tip {
    /// The head, and when its read began.
    head: Option<(Instant, Head)>,
    /// When the last read failed, and why.
    failed: Option<(Instant, ReadError)>,
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        let known = self.tip(|tip| tip.head.clone());
        match known {
            Some((seen, head)) if seen.elapsed() < HEAD_AGE => Ok(head),
            _ => self.fresh_head().await,
        }
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        let since = Instant::now();
        let _turn = self.turn.lock().await;
        if let Some(found) = self.tip(|tip| tip.found_since(since)) {
            return found;
        }
        let started = Instant::now();
        let read = self.read_head().await;
        self.tip(|tip| match &read {
            Ok(head) => tip.head = Some((started, head.clone())),
            Err(error) => tip.failed = Some((Instant::now(), error.clone())),
        });
        read
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        let block = block.clone();
        self.ask(move |client| is_canonical(client, &block)).await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let Ok(txid) = B256::try_from(tx.bytes.as_ref()) else {
            return Ok(Transaction::Missing);
        };
        // Ids are in reversed byte order.
        let txid = Txid::from_byte_array(reversed(&txid).0);
        let head = head.block.clone();
        let found = self.ask(move |client| look(client, &txid, &head)).await?;
        let Some(Found {
            transaction,
            spent,
            block,
        }) = found
        else {
            return Ok(Transaction::Missing);
        };
        let known = spent.as_deref().unwrap_or_default();
        let mut receipt = decode::decode(&self.rules, &transaction, known, block);
        if spent.is_none() {
            let what = format!("Transaction spends outputs of more than {MAX_PREVIOUS} others");
            receipt.deposits = Err(Refusal(what));
        }
        Ok(Transaction::Succeeded(receipt))
    }
}

impl Tip {
    /// The result of a read that began after `since`.
    fn found_since(&self, since: Instant) -> Option<Result<Head, ReadError>> {
        let head = self.head.as_ref().filter(|(started, _)| *started >= since);
        let failed = self.failed.as_ref().filter(|(ended, _)| *ended >= since);
        let head = head.map(|(_, head)| Ok(head.clone()));
        head.or_else(|| failed.map(|(_, error)| Err(error.clone())))
    }
}

impl Node {
    async fn read_head(&self) -> Result<Head, ReadError> {
        let block = self.ask(|client| {
            let height: u64 = client.call("getblockcount", &[])?;
            header(client, &hash_at(client, height)?.ok_or(Fault::Moved)?)
        });
        Ok(Head {
            block: block.await?,
            tagged: None,
        })
    }

    /// Runs `question` on a blocking thread, after a check that the node is on our chain.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let deadline = Instant::now() + self.patience;
        let permit = timeout_at(deadline, self.permits.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(ReadError::Unavailable("too many reads under way".into()));
        };
        let client = self.client(deadline);
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

    fn client(&self, deadline: Instant) -> Client {
        let transport = Blocking {
            channel: self.channel.clone(),
            runtime: Handle::current(),
            deadline,
        };
        Client::from_jsonrpc(jsonrpc::Client::with_transport(transport))
    }

    fn tip<T>(&self, with: impl FnOnce(&mut Tip) -> T) -> T {
        with(&mut self.tip.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
