//! Reads of one Bitcoin node through bitcoincore-rpc. Its calls block: each request of the daemon
//! is one closure on a thread made for blocking. Few of them run at once, and each has a deadline,
//! so that a node that hangs holds no more than its share of threads.

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

/// How long a head is good enough: blocks come every ten minutes.
const HEAD_AGE: Duration = Duration::from_secs(5);
/// Reads of one node at once.
const AT_ONCE: usize = 16;

/// Opens one node. See [`crate::Family::open`].
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
        tracing::warn!(%chain, "no genesisHash: a node of another network would not be noticed");
    }
    let node = Node {
        rules: Rules::new(spec)?,
        channel: Channel::new(&spec.id, endpoint),
        // One slow answer may be followed by others that are quick.
        patience: endpoint.timeout * 3 / 2,
        places: Arc::new(Semaphore::new(AT_ONCE)),
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
    /// How long one read may take with all its questions.
    patience: Duration,
    places: Arc<Semaphore>,
    /// The first block of the chain that this node must be of, where the entry names it.
    genesis: Option<BlockHash>,
    /// The node showed that block, and nothing failed since.
    identified: AtomicBool,
    /// One reader of the head at a time; the others use what it found.
    turn: tokio::sync::Mutex<()>,
    tip: Mutex<Tip>,
}

#[derive(Default)]
struct Tip {
    /// When reading it began.
    head: Option<(Instant, Head)>,
    /// When the last attempt failed, and why.
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
        // Ids are written backwards.
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
    /// What an attempt found that somebody made after `since`.
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

    /// Runs `question` where it may block, after making sure that the node is of our chain.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let deadline = Instant::now() + self.patience;
        let place = timeout_at(deadline, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(ReadError::Unavailable("too many reads under way".into()));
        };
        let client = self.client(deadline);
        let genesis = self.genesis.filter(|_| !self.identified.load(Relaxed));
        let answered = tokio::task::spawn_blocking(move || {
            // Held until the thread is free, even if nobody waits any more.
            let _place = place;
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
            // Another node may stand behind the same name when it comes back.
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
