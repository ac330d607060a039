//! A Bitcoin chain of our own: one bitcoind on regtest, which makes blocks when it is told to.

mod allocator;
mod local;
mod process;
mod wallet;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bitcoin::{
    Address, Amount, BlockHash, Network, OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid,
    consensus::encode::serialize_hex,
};
use bitcoincore_rpc::{
    Auth, Client, RpcApi,
    json::{ScanTxOutRequest, ScanTxOutResult},
    jsonrpc,
};
use serde_json::{Value, json};
use url::Url;

pub use allocator::AllocatorTx;
pub use local::{ID, LocalChain, PROVIDERS};
pub use process::Wallets;
pub use wallet::{Coin, FEE, Key, Kind, Spend, note, pay};

use self::process::Process;

const USER: &str = "devnet";
const PASSWORD: &str = "devnet";
/// After so many blocks what a block pays its miner can be spent.
const MATURITY: u64 = 100;
/// Blocks whose pay is spent by [`Regtest::fund`].
const COINS: u64 = 8;

/// Between two blocks of a chain that keeps pace.
const PACE: Duration = Duration::from_secs(2);

/// Bitcoin Core's code for a search while it makes another one (RPC_INVALID_PARAMETER): a daemon searches, too.
const BUSY: i32 = -8;
/// How often a search is begun, and the pause between two tries.
const SEARCHES: usize = 100;
const SEARCH_PAUSE: Duration = Duration::from_millis(50);

/// A block as the tests speak of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub height: u64,
    pub hash: BlockHash,
    /// Unix seconds.
    pub time: u64,
}

/// A running chain. Dropping it ends it, and its files are gone.
#[derive(Debug)]
pub struct Regtest {
    /// Without the credentials: see [`with_credentials`].
    pub url: Url,
    /// Where its files are.
    pub home: PathBuf,
    client: Arc<Client>,
    /// Whom every block pays.
    miner: Key,
    /// What the miner can spend.
    coins: Mutex<Vec<Coin>>,
    process: Process,
}

impl Regtest {
    /// Starts a node with some blocks, so that there is something to spend.
    pub async fn start(wallets: Wallets) -> Result<Self> {
        let process = Process::start(wallets).await?;
        let url = Url::parse(&format!("http://127.0.0.1:{}", process.port))?;
        let node = Self {
            client: Arc::new(client(url.as_str())?),
            url,
            home: process.home.clone(),
            miner: Key::named("miner")?,
            coins: Mutex::default(),
            process,
        };
        if wallets == Wallets::On {
            let listed = node.ask(|client| client.call::<Value>("listwallets", &[]));
            listed.await.context("this bitcoind has no wallets")?;
        }
        let founded = node.mine(MATURITY + COINS).await?;
        for hash in founded.into_iter().take(usize::try_from(COINS)?) {
            let block = node.ask(move |client| client.get_block(&hash)).await?;
            let coinbase = block.txdata.first().context("an empty block")?;
            let coin = Coin::of(coinbase, 0, (node.miner, Kind::P2wpkh))?;
            node.coins().push(coin);
        }
        Ok(node)
    }

    /// Makes `blocks` blocks of what waits, one after another.
    pub async fn mine(&self, blocks: u64) -> Result<Vec<BlockHash>> {
        let to = self.miner_address()?;
        self.ask(move |client| client.generate_to_address(blocks, &to))
            .await
    }

    /// Makes one block of just these transactions, whatever else waits. They need not have been sent before.
    pub async fn mine_only(&self, transactions: &[&Transaction]) -> Result<BlockHash> {
        let to = self.miner_address()?.to_string();
        let raw: Vec<String> = transactions.iter().map(|one| serialize_hex(*one)).collect();
        let made: Value = self
            .ask(move |client| client.call("generateblock", &[json!(to), json!(raw)]))
            .await?;
        let hash = made["hash"].as_str().context("no block")?;
        Ok(hash.parse()?)
    }

    /// Hands a transaction to the node, where it waits for a block.
    pub async fn send(&self, transaction: &Transaction) -> Result<Txid> {
        let raw = serialize_hex(transaction);
        self.ask(move |client| client.send_raw_transaction(raw))
            .await
    }

    /// Sends a transaction and makes a block of what waits.
    pub async fn confirm(&self, transaction: &Transaction) -> Result<Txid> {
        let id = self.send(transaction).await?;
        self.mine(1).await?;
        Ok(id)
    }

    /// A coin of `amount` for `key`, in a block of its own.
    pub async fn fund(&self, key: Key, kind: Kind, amount: Amount) -> Result<Coin> {
        let paid = self.pay(vec![key.output(kind, amount)]).await?;
        Coin::of(&paid, 0, (key, kind))
    }

    /// The miner pays `outputs`, in a block.
    pub async fn pay(&self, outputs: Vec<TxOut>) -> Result<Transaction> {
        let coin = self.coins().pop().context("the miner has nothing left")?;
        let rest = u32::try_from(outputs.len())?;
        let transaction = Spend::of(vec![coin], outputs).sign()?;
        self.confirm(&transaction).await?;
        let change = Coin::of(&transaction, rest, (self.miner, Kind::P2wpkh))?;
        self.coins().push(change);
        Ok(transaction)
    }

    /// Makes a block every two seconds, as long as it is polled.
    pub async fn keep_pace(&self) {
        let mut ticks = tokio::time::interval(PACE);
        loop {
            ticks.tick().await;
            if let Err(error) = self.mine(1).await {
                tracing::warn!(%error, "no block");
            }
        }
    }

    /// A transaction, wherever it is.
    pub async fn transaction(&self, id: Txid) -> Result<Transaction> {
        self.ask(move |client| client.get_raw_transaction(&id, None))
            .await
    }

    /// The last block.
    pub async fn tip(&self) -> Result<Block> {
        let hash = self.ask(Client::get_best_block_hash).await?;
        self.block(hash).await
    }

    pub async fn block(&self, hash: BlockHash) -> Result<Block> {
        let header: Value = self
            .ask(move |client| client.call("getblockheader", &[json!(hash)]))
            .await?;
        Ok(Block {
            height: header["height"].as_u64().context("no height")?,
            hash,
            time: header["time"].as_u64().context("no time")?,
        })
    }

    /// The block that `transaction` is in; `None` while it waits, or where nobody knows it.
    pub async fn included(&self, transaction: Txid) -> Result<Option<BlockHash>> {
        let asked = self.ask(move |client| {
            client.call::<Value>("getrawtransaction", &[json!(transaction), json!(1)])
        });
        let Ok(found) = asked.await else {
            return Ok(None);
        };
        // The node's index still names the block that a reorg took away, without confirmations.
        let stands = found["confirmations"]
            .as_u64()
            .is_some_and(|count| count > 0);
        let hash = found["blockhash"].as_str().filter(|_| stands);
        Ok(hash.map(str::parse).transpose()?)
    }

    /// The transactions that wait for a block.
    pub async fn waiting(&self) -> Result<Vec<Txid>> {
        self.ask(Client::get_raw_mempool).await
    }

    /// The sum of what can be spent with `script`.
    pub async fn holds(&self, script: ScriptBuf) -> Result<Amount> {
        Ok(self.scan(script).await?.total_amount)
    }

    /// What `key` can spend of outputs of this kind, in blocks.
    pub async fn unspent(&self, key: Key, kind: Kind) -> Result<Vec<Coin>> {
        let script = key.script(kind);
        let found = self.scan(script.clone()).await?.unspents.into_iter();
        let coins = found.map(|found| Coin {
            point: OutPoint::new(found.txid, found.vout),
            output: pay(script.clone(), found.amount),
            key,
            kind,
        });
        Ok(coins.collect())
    }

    /// What `script` locks, as the node finds it: it makes one search at a time.
    async fn scan(&self, script: ScriptBuf) -> Result<ScanTxOutResult> {
        let wanted = format!("raw({})", script.to_hex_string());
        for _ in 1..SEARCHES {
            let found = self.search(wanted.clone()).await;
            if !found.as_ref().is_err_and(is_busy) {
                return found;
            }
            tokio::time::sleep(SEARCH_PAUSE).await;
        }
        self.search(wanted).await
    }

    async fn search(&self, descriptor: String) -> Result<ScanTxOutResult> {
        let wanted = [ScanTxOutRequest::Single(descriptor)];
        self.ask(move |client| client.scan_tx_out_set_blocking(&wanted))
            .await
    }

    /// Replaces the last `depth` blocks by empty ones, one more than there were. What was in them waits again.
    pub async fn reorg(&self, depth: u64) -> Result<()> {
        let tip = self.tip().await?.height;
        let first = (tip + 1)
            .checked_sub(depth)
            .context("a reorg of everything")?;
        let gone = self.ask(move |client| client.get_block_hash(first)).await?;
        self.ask(move |client| client.invalidate_block(&gone))
            .await?;
        ensure!(self.tip().await?.height + 1 == first, "the blocks stayed");
        for _ in 0..=depth {
            self.mine_only(&[]).await?;
        }
        Ok(())
    }

    /// Ends the node and starts it again where it was. What waited for a block is forgotten, but by its wallets.
    pub async fn restart(&self) -> Result<()> {
        self.process.restart().await
    }

    /// What a wallet of the node answers.
    pub async fn ask_wallet(
        &self,
        wallet: &str,
        method: &'static str,
        params: Vec<Value>,
    ) -> Result<Value> {
        let client = client(&format!("{}wallet/{wallet}", self.url))?;
        let asked = tokio::task::spawn_blocking(move || client.call::<Value>(method, &params));
        Ok(asked.await??)
    }

    fn miner_address(&self) -> Result<Address> {
        Ok(Address::from_script(
            &self.miner.script(Kind::P2wpkh),
            Network::Regtest,
        )?)
    }

    fn coins(&self) -> std::sync::MutexGuard<'_, Vec<Coin>> {
        // The list is sound after every step that can fail.
        self.coins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Any other question: the node's client blocks.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> bitcoincore_rpc::Result<T> + Send + 'static,
    ) -> Result<T> {
        let client = self.client.clone();
        Ok(tokio::task::spawn_blocking(move || question(&client)).await??)
    }
}

/// Asks a node, or a wallet of it.
fn client(url: &str) -> Result<Client> {
    let auth = Auth::UserPass(USER.to_owned(), PASSWORD.to_owned());
    Ok(Client::new(url, auth)?)
}

/// Whether a node refused a search because it makes another one.
fn is_busy(error: &anyhow::Error) -> bool {
    let known = error.downcast_ref::<bitcoincore_rpc::Error>();
    matches!(
        known,
        Some(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(refused))) if refused.code == BUSY
    )
}

/// The URL of a node, or of what stands before it, with the credentials that nodes here ask for.
pub fn with_credentials(url: &Url) -> String {
    let bare = url.as_str().trim_start_matches("http://");
    format!("http://{USER}:{PASSWORD}@{bare}")
}

/// The address that chains files and claims call `script`.
pub fn address(script: &Script) -> Result<String> {
    Ok(Address::from_script(script, Network::Regtest)?.to_string())
}

/// The script of an address that [`address`] gave.
pub fn script(address: &str) -> Result<ScriptBuf> {
    let parsed: Address<_> = address.parse()?;
    Ok(parsed.require_network(Network::Regtest)?.script_pubkey())
}
