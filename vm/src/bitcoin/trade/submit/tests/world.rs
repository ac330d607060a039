//! A chain in memory for the tests of landing: blocks, a memory pool that replaces by BIP 125, and providers that may lie.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bitcoin::{
    OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid, consensus,
    secp256k1::{Message as Digest, SECP256K1, SecretKey},
};

use crate::{
    ChainReader, ReadError,
    bitcoin::{
        source::shown_txid,
        trade::{coin, signature},
    },
    testing::{self, Script as Scripted},
    trade::{
        Broadcast, Fate, FeeRate, Message, Outputs, Scheme, Signer, SpentBy, TradingProvider,
        Unsigned, Unspent, Writer,
    },
    types::{Address, Amount, Block, Bytes, Head, Receipt, Transaction as Found, TxRef},
};

/// The fork that the world is on when it begins.
const FORK: u8 = 1;

#[derive(Default)]
pub struct State {
    pub height: u64,
    /// The first height of the present fork, and its name.
    fork: (u64, u8),
    /// What is in a block, with its height.
    pub mined: Vec<(u64, Transaction)>,
    pub pool: Vec<Transaction>,
    /// Satoshis per virtual byte.
    pub rate: u64,
    /// Fee of what hangs on the first that waits, which a replacement of it has to pay besides.
    pub pinned: u64,
    /// Nobody names what spends an output.
    pub nameless: bool,
    /// So many reads of transactions by the quorum are from before their blocks; providers then show no block either.
    pub late: u32,
    /// How many broadcasts there were.
    pub sent: usize,
}

pub struct World(Mutex<State>);

impl World {
    pub fn new(rate: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            height: 100,
            fork: (0, FORK),
            rate,
            ..State::default()
        })))
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An output of that many satoshis in a block `depth` blocks below the head.
    pub fn fund(&self, script: &Script, satoshis: u64, depth: u64) -> OutPoint {
        let mut state = self.state();
        let number = state.mined.len();
        let made = Transaction {
            version: bitcoin::transaction::Version::TWO,
            // Two that pay alike are two.
            lock_time: bitcoin::absolute::LockTime::from_consensus(number as u32),
            input: vec![bitcoin::TxIn::default()],
            output: vec![TxOut {
                value: bitcoin::Amount::from_sat(satoshis),
                script_pubkey: script.to_owned(),
            }],
        };
        let at = OutPoint::new(made.compute_txid(), 0);
        let height = state.height - depth;
        state.mined.push((height, made));
        at
    }

    /// Whatever waits is in a block, and so many more blocks are on top.
    pub fn mine(&self, more: u64) {
        let mut state = self.state();
        state.height += 1;
        let (height, pool) = (state.height, std::mem::take(&mut state.pool));
        state
            .mined
            .extend(pool.into_iter().map(|one| (height, one)));
        state.height += more;
    }

    /// A block with this transaction, whatever waits. What conflicts with it waits no more.
    pub fn include(&self, transaction: Transaction) {
        let mut state = self.state();
        state.height += 1;
        let height = state.height;
        state.pool.retain(|one| !conflict(one, &transaction));
        state.mined.push((height, transaction));
    }

    /// So many blocks are replaced by as many empty ones; what was in them waits again.
    pub fn reorg(&self, blocks: u64) {
        let mut state = self.state();
        let left = state.height - blocks;
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut state.mined)
            .into_iter()
            .partition(|(height, _)| *height <= left);
        state.mined = kept;
        state.pool.extend(gone.into_iter().map(|(_, one)| one));
        let name = state.fork.1 + 1;
        state.fork = (left + 1, name);
    }

    /// What a script has been paid in blocks.
    pub fn paid(&self, script: &Script) -> u64 {
        let state = self.state();
        let outputs = state.mined.iter().flat_map(|(_, one)| &one.output);
        let own = outputs.filter(|output| *output.script_pubkey == *script);
        own.map(|output| output.value.to_sat()).sum()
    }

    /// What waits.
    pub fn pool(&self) -> Vec<Transaction> {
        self.state().pool.clone()
    }

    /// One provider.
    pub fn provider(self: &Arc<Self>) -> TradingProvider {
        TradingProvider {
            writer: self.clone(),
            outputs: Some(self.clone()),
            ..Scripted::at(1).trading()
        }
    }

    /// The same through a provider that asks another rate.
    pub fn asking(self: &Arc<Self>, rate: u64) -> TradingProvider {
        TradingProvider {
            writer: Arc::new(Asks(self.clone(), rate)),
            ..self.provider()
        }
    }
}

/// Asks so many satoshis per virtual byte.
struct Asks(Arc<World>, u64);

#[async_trait]
impl Writer for Asks {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        Ok(FeeRate::new(self.1.into(), 0))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        self.0.broadcast(raw).await
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        self.0.fate(id).await
    }
}

pub fn conflict(one: &Transaction, other: &Transaction) -> bool {
    let spends = |at: &OutPoint| other.input.iter().any(|it| it.previous_output == *at);
    one.input.iter().any(|it| spends(&it.previous_output))
}

impl State {
    fn block(&self, number: u64) -> Block {
        let (since, name) = self.fork;
        let fork = |number: u64| if number >= since { name } else { FORK };
        Block {
            parent: testing::block(number - 1, fork(number - 1)).hash,
            ..testing::block(number, fork(number))
        }
    }

    fn place(&self, id: &[u8]) -> Option<Block> {
        let is_it = |one: &Transaction| shown_txid(&one.compute_txid()).as_slice() == id;
        let found = self.mined.iter().find(|(_, one)| is_it(one))?;
        Some(self.block(found.0))
    }

    fn spender(&self, at: OutPoint) -> Option<Txid> {
        let spends = |one: &Transaction| one.input.iter().any(|it| it.previous_output == at);
        let found = self.mined.iter().find(|(_, one)| spends(one))?;
        Some(found.1.compute_txid())
    }

    fn output(&self, at: &OutPoint) -> Option<&TxOut> {
        let mined = self.mined.iter().map(|(_, one)| one);
        let mut made = mined.filter(|one| one.compute_txid() == at.txid);
        made.next()?.output.get(at.vout as usize)
    }

    /// What a transaction pays for inclusion; `None` where it spends what is not there.
    fn fee(&self, one: &Transaction) -> Option<u64> {
        let mut spent = 0;
        for input in &one.input {
            let at = input.previous_output;
            if self.spender(at).is_some() {
                return None;
            }
            spent += self.output(&at)?.value.to_sat();
        }
        let given: u64 = one.output.iter().map(|output| output.value.to_sat()).sum();
        Some(spent - given)
    }

    fn take(&mut self, one: Transaction) -> Broadcast {
        self.sent += 1;
        if self.pool.contains(&one) {
            return Broadcast::Accepted;
        }
        let Some(fee) = self.fee(&one) else {
            return Broadcast::Used;
        };
        let size = one.weight().to_vbytes_ceil();
        let rivals = self.pool.iter().filter(|other| conflict(&one, other));
        for rival in rivals {
            let (paid, length) = (self.fee(rival), rival.weight().to_vbytes_ceil());
            let paid = paid.unwrap_or_default();
            if fee < paid + self.pinned + size {
                return Broadcast::Underpriced;
            }
            // BIP 125, rules 3 and 4, and Bitcoin Core's own on rates.
            if fee < paid + size || fee * length <= paid * size {
                return Broadcast::Underpriced;
            }
        }
        if self.pool.iter().any(|other| conflict(&one, other)) {
            self.pinned = 0;
        }
        self.pool.retain(|other| !conflict(&one, other));
        self.pool.push(one);
        Broadcast::Accepted
    }
}

#[async_trait]
impl ChainReader for World {
    async fn head(&self) -> Result<Head, ReadError> {
        let state = self.state();
        Ok(Head {
            block: state.block(state.height),
            tagged: None,
        })
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        let state = self.state();
        Ok(block.number <= state.height && state.block(block.number) == *block)
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Found, ReadError> {
        let mut state = self.state();
        let place = match state.late {
            0 => state.place(&tx.bytes),
            _ => None,
        };
        state.late = state.late.saturating_sub(1);
        let place = place.filter(|block| block.number <= head.block.number);
        Ok(place.map_or(Found::Missing, |block| {
            let receipt: Receipt = testing::receipt(block);
            Found::Succeeded(receipt)
        }))
    }
}

#[async_trait]
impl Writer for World {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        Ok(FeeRate::new(self.state().rate.into(), 0))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let one = consensus::deserialize(raw).unwrap();
        Ok(self.state().take(one))
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let state = self.state();
        let waits = |one: &Transaction| shown_txid(&one.compute_txid()).as_slice() == &id[..];
        Ok(match state.place(id).filter(|_| state.late == 0) {
            Some(block) => Fate::Included {
                depth: state.height - block.number,
                block,
                success: true,
                spent: None,
            },
            None if state.pool.iter().any(waits) => Fate::Waiting,
            None => Fate::Unknown,
        })
    }
}

#[async_trait]
impl Outputs for World {
    async fn unspent(&self, owner: &Address) -> Result<Vec<Unspent>, ReadError> {
        let script = crate::bitcoin::network::LOCAL.script(owner.text()).unwrap();
        let state = self.state();
        let mut all = Vec::new();
        for (height, one) in &state.mined {
            for (vout, output) in (0..).zip(&one.output) {
                let at = OutPoint::new(one.compute_txid(), vout);
                if output.script_pubkey == script && state.spender(at).is_none() {
                    all.push(Unspent {
                        output: coin::output(&at),
                        amount: Amount::from(output.value.to_sat()),
                        height: *height,
                    });
                }
            }
        }
        Ok(all)
    }

    async fn spenders(&self, outputs: &[Bytes]) -> Result<Vec<SpentBy>, ReadError> {
        let state = self.state();
        let each = outputs.iter().map(|output| {
            let at = coin::outpoint(output).unwrap();
            match state.spender(at) {
                None => SpentBy::Nobody,
                Some(_) if state.nameless => SpentBy::Somebody,
                Some(txid) => SpentBy::Transaction(shown_txid(&txid).0.to_vec().into()),
            }
        });
        Ok(each.collect())
    }

    async fn transaction(&self, _: &Bytes) -> Result<Option<Bytes>, ReadError> {
        Ok(None)
    }
}

/// A secp256k1 key.
pub struct Key(SecretKey);

impl Key {
    pub fn of(byte: u8) -> Self {
        Self(SecretKey::from_slice(&[byte; 32]).unwrap())
    }

    /// Spends outputs of the key's account to `script`, for `fee` satoshis.
    pub async fn spend(
        &self,
        (at, value): (OutPoint, u64),
        (to, fee): (&ScriptBuf, u64),
    ) -> Transaction {
        let coin = coin::Coin {
            outpoint: at,
            value,
            height: 1,
        };
        let public = self.0.public_key(SECP256K1);
        let key = bitcoin::CompressedPublicKey(public);
        let own = ScriptBuf::new_p2wpkh(&key.wpubkey_hash());
        let made = Transaction {
            version: bitcoin::transaction::Version::TWO,
            lock_time: bitcoin::absolute::LockTime::ZERO,
            input: vec![bitcoin::TxIn {
                previous_output: at,
                ..bitcoin::TxIn::default()
            }],
            output: vec![TxOut {
                value: bitcoin::Amount::from_sat(value - fee),
                script_pubkey: to.clone(),
            }],
        };
        let signed = signature::sign(made, &[coin], (self, &public, &own)).await;
        signed.unwrap()
    }
}

#[async_trait]
impl Signer for Key {
    fn scheme(&self) -> Scheme {
        Scheme::Secp256k1
    }

    fn public_key(&self) -> Bytes {
        self.0.public_key(SECP256K1).serialize().to_vec().into()
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let Message::Ecdsa(digest) = message else {
            return Err(Unsigned("ECDSA only".into()));
        };
        let digest = Digest::from_digest(digest.0);
        let signature = SECP256K1.sign_ecdsa(&digest, &self.0).serialize_compact();
        Ok([&signature[..], &[0]].concat().into())
    }
}
