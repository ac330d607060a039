//! A chain that answers from a script, for tests of what stands above readers; in [`scripted`] a family that
//! trades, for tests of what stands above families. Not for production: built only for tests and with the
//! feature `testing`.

pub mod scripted;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{
    ChainReader, Provider, ReadError, StateReader,
    trade::{TxDetails, TxInspector},
    types::{
        Address, B256, Block, Bytes, Failure, Head, Receipt, Transaction, TxRef, WithdrawalStatus,
    },
};

/// Seconds between the blocks of a script.
pub const PACE: u64 = 12;

/// Block `number` of fork `name`; every script of that fork has the same one.
pub fn block(number: u64, name: u8) -> Block {
    let hash = |number: u64| {
        let mut bytes = [name; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        B256::new(bytes)
    };
    Block {
        number,
        hash: hash(number),
        parent: hash(number.wrapping_sub(1)),
        time: 1_760_000_000 + number * PACE,
    }
}

/// A successful transaction in `block` without effects.
pub fn receipt(block: Block) -> Receipt {
    Receipt {
        block,
        sender: None,
        deposits: Ok(Vec::new()),
        payments: Vec::new(),
        calls: Vec::new(),
        executions: Vec::new(),
        references: Vec::new(),
        outer_call: None,
    }
}

/// A transaction that failed in `block`.
pub fn failure(block: Block) -> Failure {
    Failure {
        block,
        references: Vec::new(),
        outer_call: None,
    }
}

/// A chain that answers as its script says. All blocks are those of [`block`], fork 0 below [`Script::fork`].
#[derive(Default)]
pub struct Script(Mutex<Board>);

#[derive(Default)]
struct Board {
    head: u64,
    tagged: Option<u64>,
    settled: Option<u64>,
    fork: Option<(u64, u8)>,
    transactions: HashMap<Bytes, Transaction>,
    head_calls: HashMap<(Vec<u8>, Bytes), Bytes>,
    withdrawals: HashMap<Bytes, WithdrawalStatus>,
    failure: Option<ReadError>,
    hanging: bool,
    asked: u64,
}

impl Script {
    /// A chain whose head is block `number`.
    pub fn at(number: u64) -> Arc<Self> {
        let script = Arc::new(Self::default());
        script.set_head(number);
        script
    }

    pub fn set_head(&self, number: u64) {
        self.with(|board| board.head = number);
    }

    pub fn set_tagged(&self, number: Option<u64>) {
        self.with(|board| board.tagged = number);
    }

    /// The height whose state is final, from every head; `None` while nothing is.
    pub fn set_settled(&self, number: Option<u64>) {
        self.with(|board| board.settled = number);
    }

    /// From `height` on the chain's blocks are those of fork `name`.
    pub fn fork(&self, height: u64, name: u8) {
        self.with(|board| board.fork = Some((height, name)));
    }

    pub fn put(&self, tx: &TxRef, transaction: Transaction) {
        self.with(|board| board.transactions.insert(tx.bytes.clone(), transaction));
    }

    pub fn put_view(&self, to: &Address, data: &Bytes, answer: Bytes) {
        let key = (to.bytes().to_vec(), data.clone());
        self.with(|board| board.head_calls.insert(key, answer));
    }

    pub fn put_withdrawal(&self, encoded: &Bytes, status: WithdrawalStatus) {
        self.with(|board| board.withdrawals.insert(encoded.clone(), status));
    }

    /// Every read answers so; `None` makes it well again.
    pub fn fail(&self, failure: Option<ReadError>) {
        self.with(|board| board.failure = failure);
    }

    /// Reads begun from now on do not end.
    pub fn hang(&self, hanging: bool) {
        self.with(|board| board.hanging = hanging);
    }

    /// Reads so far.
    pub fn asked(&self) -> u64 {
        self.with(|board| board.asked)
    }

    /// The canonical block at `number`.
    pub fn block(&self, number: u64) -> Block {
        self.with(|board| board.block(number))
    }

    pub fn provider(self: &Arc<Self>, name: &str) -> Provider {
        Provider {
            name: name.into(),
            reader: self.clone(),
            state: Some(self.clone()),
        }
    }

    fn with<T>(&self, with: impl FnOnce(&mut Board) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer<T>(
        &self,
        read: impl FnOnce(&Board) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let hanging = self.with(|board| {
            board.asked += 1;
            board.hanging
        });
        if hanging {
            std::future::pending::<()>().await;
        }
        self.with(|board| match board.failure.clone() {
            Some(failure) => Err(failure),
            None => read(board),
        })
    }
}

impl Board {
    fn block(&self, number: u64) -> Block {
        let Some((height, name)) = self.fork.filter(|(height, _)| number >= *height) else {
            return block(number, 0);
        };
        let mut forked = block(number, name);
        if number == height {
            forked.parent = block(number, 0).parent;
        }
        forked
    }

    fn head(&self) -> Head {
        Head {
            block: self.block(self.head),
            tagged: self.tagged,
        }
    }

    fn contains(&self, block: &Block) -> bool {
        block.number <= self.head && self.block(block.number).hash == block.hash
    }

    fn anchor(&self, block: &Block) -> Result<(), ReadError> {
        if block.number > self.head {
            return Err(ReadError::Unavailable("behind the agreed head".into()));
        }
        if !self.contains(block) {
            return Err(ReadError::Doubtful("the head is on another fork".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl ChainReader for Script {
    async fn head(&self) -> Result<Head, ReadError> {
        self.answer(|board| Ok(board.head())).await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.head().await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.answer(|board| Ok(board.contains(block))).await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        self.answer(|board| {
            board.anchor(&head.block)?;
            let found = board.transactions.get(&tx.bytes).cloned();
            let found = found.unwrap_or(Transaction::Missing);
            let number = match &found {
                Transaction::Succeeded(receipt) => receipt.block.number,
                Transaction::Failed(failure) => failure.block.number,
                Transaction::Missing => 0,
            };
            Ok(if number > head.block.number {
                Transaction::Missing
            } else {
                found
            })
        })
        .await
    }
}

#[async_trait]
impl StateReader for Script {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.answer(|board| {
            board.anchor(&head.block)?;
            Ok(board.settled.map(|number| board.block(number)))
        })
        .await
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        _: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        self.answer(|board| {
            board.anchor(block)?;
            let status = board.withdrawals.get(encoded).copied();
            Ok(status.unwrap_or(WithdrawalStatus::Pending))
        })
        .await
    }

    async fn sequence(&self, _: &Address, block: &Block) -> Result<u64, ReadError> {
        self.answer(|board| {
            board.anchor(block)?;
            Err(ReadError::Unavailable("sequences are not scripted".into()))
        })
        .await
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        self.answer(|board| {
            board.anchor(block)?;
            let key = (to.bytes().to_vec(), data.clone());
            let unknown = || ReadError::Unavailable("call not scripted".into());
            board.head_calls.get(&key).cloned().ok_or_else(unknown)
        })
        .await
    }
}

/// A provider that has seen no transaction.
pub struct Unseen;

#[async_trait]
impl TxInspector for Unseen {
    async fn inspect(&self, _: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        Ok(None)
    }
}
