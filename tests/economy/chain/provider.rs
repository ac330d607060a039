//! One provider of a scripted chain, with the manners that a history gives it for a while.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::{
    primitives::{B256, Bytes, U256},
    sol_types::{SolCall, SolValue},
};
use async_trait::async_trait;
use intentd::chains::Opened;
use vm::{
    Address, Amount, Block, ChainReader, EvmAddress, Head, Provider as Reader, ReadError,
    StateReader, Transaction, TxRef, WithdrawalStatus,
    trade::{
        Accounts, Broadcast, Call, Called, Contracts, CurrencyInfo, DepositTx, Fate, FeeRate,
        Revert, ScanError, Scanner, Simulator, Spent, TradingProvider, Trial, TxDetails,
        TxInspector, Writer,
    },
};

use super::{Chain, FINAL, Taken, abi, state::Message};
use crate::{clock, engine, market::Prices};

/// What a provider does to its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manners {
    #[default]
    Honest,
    /// Errors.
    Down,
    /// No answers.
    Hangs,
    /// Is some blocks behind.
    Late,
    /// Heads far above the chain's.
    LiesAboutHeads,
    /// Nonces far above the account's, at other times one below.
    LiesAboutNonces,
    /// No deposits anywhere.
    EmptyLogs,
    /// Beside each deposit another one, in a transaction that nobody sent.
    InventsDeposits,
    /// Transactions are missing, or brought ten times as much and paid nobody.
    LiesAboutReceipts,
    /// Whatever was sent is unknown, or failed, or is in a final block.
    LiesAboutFates,
    /// Gas costs a thousand times as much, at other times nothing.
    LiesAboutFees,
    /// What is estimated or simulated reverts.
    LiesAboutReverts,
    /// What was executed was not, and the other way round; accounts hold a thousand times as much, or
    /// nothing. (A provider that lies about a feed is as good as a feed that lies.)
    LiesAboutState,
}

/// Every way to misbehave.
pub const MANNERS: [Manners; 12] = [
    Manners::Down,
    Manners::Hangs,
    Manners::Late,
    Manners::LiesAboutHeads,
    Manners::LiesAboutNonces,
    Manners::EmptyLogs,
    Manners::InventsDeposits,
    Manners::LiesAboutReceipts,
    Manners::LiesAboutFates,
    Manners::LiesAboutFees,
    Manners::LiesAboutReverts,
    Manners::LiesAboutState,
];

/// A provider of a chain; it answers as its manners are.
pub struct Provider {
    pub chain: Arc<Chain>,
    pub prices: Arc<Prices>,
    manners: Mutex<Manners>,
}

impl Provider {
    pub fn new(chain: &Arc<Chain>, prices: &Arc<Prices>) -> Arc<Self> {
        Arc::new(Self {
            chain: chain.clone(),
            prices: prices.clone(),
            manners: Mutex::default(),
        })
    }

    pub fn set(&self, manners: Manners) {
        *self.manners.lock().unwrap() = manners;
    }

    fn manners(&self) -> Manners {
        *self.manners.lock().unwrap()
    }

    fn lies(&self, about: Manners) -> bool {
        self.manners() == about
    }

    /// Whether a liar exaggerates now: for some blocks it does, for some it says too little.
    fn exaggerates(&self) -> bool {
        (self.chain.lock().head() / 8).is_multiple_of(2)
    }

    fn reader(self: &Arc<Self>, name: &str) -> Reader {
        Reader {
            name: name.into(),
            reader: self.clone(),
            state: Some(self.clone()),
            keys: None,
            checks_network: true,
        }
    }

    /// The chain through three of them.
    pub fn open(chain: &Chain, providers: &[Arc<Self>; 3]) -> Opened {
        let readers = providers.iter().zip(["one", "two", "three"]);
        let readers = readers.map(|(provider, name)| provider.reader(name));
        let trading = providers.iter().map(Self::trade);
        engine::opened(&chain.spec, readers.collect(), trading.collect())
    }

    fn trade(self: &Arc<Self>) -> TradingProvider {
        TradingProvider {
            scanner: self.clone(),
            accounts: self.clone(),
            writer: self.clone(),
            simulator: Some(self.clone()),
            contracts: Some(self.clone()),
            inspector: self.clone(),
            mempool: None,
            outputs: None,
        }
    }

    /// Every answer begins here.
    async fn up(&self) -> Result<(), ReadError> {
        match self.manners() {
            Manners::Down => Err(ReadError::Unavailable("down".into())),
            Manners::Hangs => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Err(ReadError::Unavailable("timed out".into()))
            }
            _ => Ok(()),
        }
    }

    fn head_number(&self) -> u64 {
        let late = if self.lies(Manners::Late) { 3 } else { 0 };
        self.chain.lock().head() - late
    }

    fn block_at(&self, number: u64) -> Option<Block> {
        let here = number <= self.head_number();
        here.then(|| self.chain.lock().block(number)).flatten()
    }

    fn tip(&self) -> Result<Block, ReadError> {
        let none = || ReadError::Unavailable("no head".into());
        let tip = self.block_at(self.head_number()).ok_or_else(none)?;
        Ok(match self.lies(Manners::LiesAboutHeads) {
            true => Block {
                number: tip.number + 50,
                hash: !tip.hash,
                parent: tip.hash,
                time: tip.time + 50 * self.chain.pace,
            },
            false => tip,
        })
    }

    /// What a contract answers to a question at a block's state.
    fn asked(&self, to: EvmAddress, data: &[u8], number: u64) -> Option<Bytes> {
        let world = self.chain.lock();
        let state = world.state_at(number)?;
        if let Ok(call) = abi::isExecutedCall::abi_decode(data) {
            let done = state.executed.contains(&call.idempotencyKey);
            return Some(
                (done != self.lies(Manners::LiesAboutState))
                    .abi_encode()
                    .into(),
            );
        }
        if abi::HUBCall::abi_decode(data).is_ok() {
            return Some(crate::market::HUB.abi_encode().into());
        }
        if let Ok(call) = abi::balanceOfCall::abi_decode(data) {
            return Some(state.held(call.owner, call.id).abi_encode().into());
        }
        if let Ok(call) = abi::getEntryCall::abi_decode(data) {
            let left = state.words.contains(&(call.user, call.id));
            let answer = (Bytes::new(), U256::from(u8::from(left)));
            return Some(answer.abi_encode_params().into());
        }
        if abi::routerCall::abi_decode(data).is_ok() {
            return Some(crate::market::ROUTER.abi_encode().into());
        }
        if abi::decimalsCall::abi_decode(data).is_ok() {
            return Some(U256::from(8).abi_encode().into());
        }
        if abi::latestRoundDataCall::abi_decode(data).is_ok() {
            let (answer, at) = self.prices.answer(self.chain.name, to, clock::seconds())?;
            let round = U256::from(at);
            let words = (round, answer, round, round, round);
            return Some(words.abi_encode_params().into());
        }
        None
    }
}

fn evm(address: &Address) -> EvmAddress {
    EvmAddress::from_slice(address.bytes())
}

#[async_trait]
impl ChainReader for Provider {
    async fn head(&self) -> Result<Head, ReadError> {
        self.up().await?;
        let block = self.tip()?;
        Ok(Head {
            block,
            tagged: None,
        })
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.up().await?;
        let found = self.block_at(block.number);
        Ok(found.is_some_and(|found| found.hash == block.hash))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        self.up().await?;
        match self.block_at(head.block.number) {
            None => return Err(ReadError::Unavailable("behind the agreed head".into())),
            Some(block) if block.hash != head.block.hash => {
                return Err(ReadError::Doubtful("the head is on another fork".into()));
            }
            Some(_) => {}
        }
        let hash = B256::from_slice(&tx.bytes);
        let world = self.chain.lock();
        let found = match world.find(&hash) {
            Some((block, done)) if block.number <= head.block.number => {
                self.chain.decoded(block, done).clone()
            }
            _ => Transaction::Missing,
        };
        Ok(match self.lies(Manners::LiesAboutReceipts) {
            true => forged(found, hash),
            false => found,
        })
    }
}

#[async_trait]
impl StateReader for Provider {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.up().await?;
        Ok(self.block_at(head.block.number.saturating_sub(FINAL)))
    }

    async fn withdrawal(
        &self,
        _: &Bytes,
        _: Option<&TxRef>,
        _: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        Err(ReadError::Unavailable("no withdrawals here".into()))
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        self.up().await?;
        let world = self.chain.lock();
        let state = world.state_at(block.number);
        let state = state.ok_or_else(|| ReadError::Unavailable("no such block".into()))?;
        Ok(state.nonces.get(&evm(owner)).copied().unwrap_or(0))
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        self.up().await?;
        let none = || ReadError::Unavailable("no such function".into());
        self.asked(evm(to), data, block.number).ok_or_else(none)
    }
}

#[async_trait]
impl Scanner for Provider {
    async fn head(&self) -> Result<Block, ReadError> {
        self.up().await?;
        self.tip()
    }

    async fn block(&self, number: u64) -> Result<Option<Block>, ReadError> {
        self.up().await?;
        Ok(self.block_at(number))
    }

    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        self.up().await?;
        if self.lies(Manners::EmptyLogs) {
            return Ok(Vec::new());
        }
        let invents = self.lies(Manners::InventsDeposits);
        let world = self.chain.lock();
        let deposit_txs = world.within(&blocks).filter_map(|(block, done)| {
            let deposits = self.chain.deposits(block, done);
            (!deposits.is_empty()).then(|| DepositTx {
                transaction: TxRef {
                    text: format!("{:#x}", done.tx.hash).into(),
                    bytes: done.tx.hash.into(),
                    hint: None,
                },
                number: block.number,
                hash: block.hash,
                deposits,
                doubt: None,
            })
        });
        let invented = |seen: &DepositTx| invents.then(|| invented(seen));
        Ok(deposit_txs
            .flat_map(|seen| [invented(&seen), Some(seen)])
            .flatten()
            .collect())
    }

    async fn omitted(
        &self,
        _: u64,
        _: &Block,
        _: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Accounts for Provider {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        self.up().await?;
        let held = self.chain.lock().state().balance(evm(owner), evm(currency));
        Ok(match self.lies(Manners::LiesAboutState) {
            true if self.exaggerates() => held * U256::from(1_000),
            true => U256::ZERO,
            false => held,
        })
    }

    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        self.up().await?;
        let found = crate::market::currency(self.chain.name, evm(address));
        Ok(found.map(|(symbol, decimals)| CurrencyInfo {
            symbol: symbol.into(),
            name: symbol.into(),
            decimals,
            scaled: false,
        }))
    }
}

#[async_trait]
impl Contracts for Provider {
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        self.up().await?;
        if evm(currency).is_zero() {
            return Ok(Amount::MAX);
        }
        let key = (evm(owner), evm(spender), evm(currency));
        let world = self.chain.lock();
        let found = world.state().allowances.get(&key);
        Ok(found.copied().unwrap_or_default())
    }

    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        self.up().await?;
        let world = self.chain.lock();
        Ok(world.state().contracts.contains_key(&evm(address)))
    }

    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        if let Err(error) = self.up().await {
            return vec![Err(error); calls.len()];
        }
        let head = self.chain.lock().head();
        let answers = calls.iter().map(|call| {
            let answer = self.asked(evm(&call.to), &call.data, head);
            Ok(answer.ok_or_else(|| revert(Bytes::new())))
        });
        answers.collect()
    }

    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        self.up().await?;
        let (owner, exaggerates) = (evm(owner), self.exaggerates());
        let world = self.chain.lock();
        let mut nonce = world.state().nonces.get(&owner).copied().unwrap_or(0);
        let used = |nonce: u64| {
            let mut pool = world.pool().iter().filter(|tx| tx.from == owner);
            pool.any(|tx| tx.signed.is_some_and(|signed| signed.nonce == nonce))
        };
        while waiting && used(nonce) {
            nonce += 1;
        }
        Ok(match self.manners() {
            Manners::LiesAboutNonces if exaggerates => nonce + 1_000_000,
            Manners::LiesAboutNonces => nonce.saturating_sub(1),
            _ => nonce,
        })
    }
}

#[async_trait]
impl Writer for Provider {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        self.up().await?;
        let factor = match self.lies(Manners::LiesAboutFees) {
            true if self.exaggerates() => 1_000,
            true => 0,
            false => 1,
        };
        let world = self.chain.lock();
        Ok(FeeRate::new(world.base * factor, world.tip * factor))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        self.up().await?;
        Ok(match self.chain.broadcast(raw) {
            Taken::Accepted => Broadcast::Accepted,
            Taken::NonceUsed => Broadcast::Used,
            Taken::Underpriced => Broadcast::Underpriced,
            Taken::Unfunded => Broadcast::Unfunded,
            Taken::Refused(why) => Broadcast::Refused(why.into()),
        })
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        self.up().await?;
        let transaction = &B256::from_slice(id);
        let head = self.head_number();
        let world = self.chain.lock();
        if self.lies(Manners::LiesAboutFates) {
            let block = world.block(head - FINAL).unwrap();
            return Ok(false_fate(transaction, block));
        }
        Ok(match world.find(transaction) {
            Some((block, done)) if block.number <= head => Fate::Included {
                block: block.clone(),
                depth: head - block.number,
                success: done.success,
                spent: Some(Spent {
                    work: done.fee,
                    besides: None,
                }),
            },
            Some(_) => Fate::Waiting,
            None if world.waits(transaction) => Fate::Waiting,
            None => Fate::Unknown,
        })
    }
}

#[async_trait]
impl Simulator for Provider {
    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        self.up().await?;
        if self.lies(Manners::LiesAboutReverts) {
            return Ok(Err(revert(Bytes::new())));
        }
        // Nodes estimate what names no fee at a gas price of zero.
        let priced = trial.rate.is_some_and(|rate| rate.base > 0);
        let call = trial.draft.as_call().unwrap();
        let tried = self.chain.tried(&[message(&call)], priced);
        Ok(tried.map_err(revert))
    }

    async fn simulate(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        self.up().await?;
        if self.lies(Manners::LiesAboutReverts) {
            return Ok(Err(revert(Bytes::new())));
        }
        let messages: Vec<_> = calls.iter().map(message).collect();
        Ok(self.chain.tried(&messages, true).map_err(revert))
    }
}

#[async_trait]
impl TxInspector for Provider {
    async fn inspect(&self, _: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        Ok(None)
    }
}

/// What never happened to a transaction.
fn false_fate(transaction: &B256, block: Block) -> Fate {
    match transaction[31] % 3 {
        0 => Fate::Unknown,
        success => Fate::Included {
            block,
            depth: FINAL,
            success: success == 1,
            spent: None,
        },
    }
}

/// A transaction with what never was in it.
pub fn forged(found: Transaction, hash: B256) -> Transaction {
    match found {
        Transaction::Succeeded(mut receipt) if hash[31].is_multiple_of(2) => {
            for deposit in receipt.deposits.iter_mut().flatten() {
                deposit.amount *= U256::from(10);
            }
            receipt.payments.clear();
            Transaction::Succeeded(receipt)
        }
        _ => Transaction::Missing,
    }
}

/// The same deposits, ten times as large, in a transaction that nobody sent.
fn invented(seen: &DepositTx) -> DepositTx {
    let mut invented = seen.clone();
    let hash = !B256::from_slice(&seen.transaction.bytes);
    invented.transaction.text = format!("{hash:#x}").into();
    invented.transaction.bytes = hash.into();
    for deposit in &mut invented.deposits {
        deposit.amount *= U256::from(10);
    }
    invented
}

fn message(call: &Call) -> Message<'_> {
    Message {
        from: evm(&call.from),
        to: evm(&call.to),
        value: call.value,
        data: &call.data,
    }
}

/// As a node says it: the family explains the data.
fn revert(data: Bytes) -> Revert {
    Revert {
        reason: String::new(),
        data,
    }
}
