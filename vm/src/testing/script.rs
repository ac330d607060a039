//! The handle of a scripted chain.

use std::{
    ops::{Deref, RangeInclusive},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Answers, Says, board::Board, tx};
use crate::{
    Provider, ReadError, Refusal,
    trade::{DepositTx, TradingProvider},
    types::{Address, Block, Bytes, Deposit, Transaction, TxRef, WithdrawalStatus},
};

/// A provider of a chain that answers as its script says. All blocks are those of [`block`](super::block), fork 0
/// below the heights of [`Script::fork`] and [`Script::reorg`]. Several providers can show one chain
/// ([`Script::answering`]); what `C` holds is for the answers of this one.
pub struct Script<C = ()> {
    own: C,
    board: Arc<Mutex<Board>>,
    pub(super) answers: Answers<C>,
}

impl<C> Deref for Script<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.own
    }
}

impl Script {
    /// A chain whose head is block `number`.
    pub fn at(number: u64) -> Arc<Self> {
        let board = Board {
            head: number,
            ..Board::default()
        };
        Arc::new(Self {
            own: (),
            board: Arc::new(Mutex::new(board)),
            answers: Answers::default(),
        })
    }

    /// A chain about which every provider says this.
    pub fn saying(says: Says) -> Arc<Self> {
        let script = Self::at(1);
        script.with(|board| board.says = says);
        script
    }
}

impl<C> Script<C> {
    /// Another provider of the same chain, with answers of its own.
    pub fn answering<D>(&self, own: D, answers: Answers<D>) -> Arc<Script<D>> {
        Arc::new(Script {
            own,
            board: self.board.clone(),
            answers,
        })
    }

    /// Another provider of the same chain, which answers as the script says.
    pub fn plain(&self) -> Arc<Script> {
        self.answering((), Answers::default())
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

    /// From `height` on the chain's blocks are those of fork `name`, below it those of fork 0.
    pub fn fork(&self, height: u64, name: u8) {
        self.with(|board| board.forks = vec![(height, name)]);
    }

    /// Adds `count` blocks.
    pub fn mine(&self, count: u64) {
        self.with(|board| (0..count).for_each(|_| board.mine()));
    }

    /// The next block is `count` heights above the one that would follow.
    pub fn skip(&self, count: u64) {
        self.with(|board| board.gap += count);
    }

    /// Takes the newest `depth` blocks away; the next ones are of another fork.
    pub fn reorg(&self, depth: usize) {
        self.with(|board| board.reorg(depth));
    }

    pub fn put(&self, tx: &TxRef, transaction: Transaction) {
        self.with(|board| board.transactions.insert(tx.bytes.clone(), transaction));
    }

    /// A block with these deposits in transaction `number`; the number of the block.
    pub fn deposit(&self, number: u64, deposits: Vec<Deposit>) -> u64 {
        self.with(|board| {
            board.mine();
            let block = board.block(board.head);
            board.deposits.push(DepositTx {
                transaction: tx(number),
                number: block.number,
                hash: block.hash,
                deposits,
                doubt: None,
            });
            block.number
        })
    }

    /// From now on the newest transaction with deposits cannot be attributed.
    pub fn doubt(&self, why: &str) {
        self.with(|board| {
            if let Some(newest) = board.deposits.last_mut() {
                newest.doubt = Some(Refusal(why.into()));
            }
        });
    }

    pub fn put_view(&self, to: &Address, data: &Bytes, answer: Bytes) {
        let key = (to.bytes().to_vec(), data.clone());
        self.with(|board| board.views.insert(key, answer));
    }

    pub fn put_withdrawal(&self, encoded: &Bytes, status: WithdrawalStatus) {
        self.with(|board| board.withdrawals.insert(encoded.clone(), status));
    }

    /// Outputs are what is said of them here, and not what is said of them elsewhere.
    pub fn put_outputs(&self, said: &Bytes) {
        self.with(|board| board.outputs.insert(said.clone()));
    }

    /// Every read answers so; `None` makes it well again.
    pub fn fail(&self, failure: Option<ReadError>) {
        self.with(|board| board.failure = failure);
    }

    /// Reads begun from now on do not end.
    pub fn hang(&self, hanging: bool) {
        self.with(|board| board.says.hangs = hanging);
    }

    /// One scan is about so many heights at the most.
    pub fn limit(&self, most: Option<u64>) {
        self.with(|board| board.most = most);
    }

    /// Scans show no deposits.
    pub fn deafen(&self, deaf: bool) {
        self.with(|board| board.deaf = deaf);
    }

    /// Scans show something else than the blocks have.
    pub fn forge(&self, forges: bool) {
        self.with(|board| board.forges = forges);
    }

    /// Reads so far.
    pub fn asked(&self) -> u64 {
        self.with(|board| board.asked)
    }

    /// The ranges that were scanned, oldest first.
    pub fn scanned(&self) -> Vec<RangeInclusive<u64>> {
        self.with(|board| board.scanned.clone())
    }

    /// How often a transaction in full was asked for.
    pub fn inspected(&self) -> usize {
        self.with(|board| board.inspected)
    }

    /// The canonical block that stands at a height.
    pub fn block(&self, height: u64) -> Block {
        self.with(|board| board.block(height))
    }

    pub fn head_number(&self) -> u64 {
        self.with(|board| board.head)
    }

    pub(super) fn with<T>(&self, with: impl FnOnce(&mut Board) -> T) -> T {
        with(&mut self.board.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<C: Send + Sync + 'static> Script<C> {
    /// Reads through this provider.
    pub fn provider(self: &Arc<Self>, name: &str) -> Provider {
        Provider {
            name: name.into(),
            reader: self.clone(),
            state: Some(self.clone()),
            keys: None,
            checks_network: true,
        }
    }

    /// Trades through this provider.
    pub fn trading(self: &Arc<Self>) -> TradingProvider {
        TradingProvider {
            scanner: self.clone(),
            accounts: self.clone(),
            writer: self.clone(),
            inspector: self.clone(),
            simulator: Some(self.clone()),
            contracts: Some(self.clone()),
            mempool: None,
            outputs: None,
        }
    }
}
