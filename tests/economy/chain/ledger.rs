//! A chain in memory without contracts: blocks at their own pace, what waits for one, forks, replacements. What a
//! transaction does is said in words of no family; the family's [`Encoding`] writes it as nodes show it and decodes that.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use alloy::primitives::{Address, B256, U256, keccak256};
use serde_json::json;
use vm::{Block, ChainEntry, ChainSpec, Deposit, Transaction};

use super::{BEFORE, bitcoin, block_hash, solana, time};
use crate::market::JUNK;

/// Slots after which a time that a node lacks is there.
const TIMED: u64 = 6;

/// What differs between the chains.
pub struct Habits {
    pub name: &'static str,
    pub family: &'static str,
    /// The API's number of it.
    pub number: u64,
    /// Seconds between blocks.
    pub pace: u64,
    /// Blocks on top of one that is final.
    pub depth: u64,
    /// How far below the tip the newest block is that nodes show.
    pub lag: u64,
    /// One height in so many has no block, and one block in so many lacks its time for a while; 0: none.
    pub skips: u64,
    /// The most blocks that a transaction waits for a place.
    pub waits: u64,
    pub depository: &'static str,
    /// What its entry in the chains file says of finality.
    pub confirmations: u64,
    pub currencies: &'static [Address],
}

/// The chains of this kind.
pub const HABITS: [&Habits; 2] = [&bitcoin::HABITS, &solana::HABITS];

/// How a family writes accounts and transactions, and reads what it wrote.
pub trait Encoding: Send + Sync {
    /// The chain's account of whoever is this on EVM chains.
    fn account(&self, of: Address) -> String;
    /// The chain's currency that is this one on EVM chains.
    fn currency(&self, of: Address) -> String;
    fn id(&self, hash: B256) -> String;
    /// The transaction as a node shows it in `block`, decoded by the family.
    fn decode(&self, tx: &Tx, block: &Block) -> Transaction;
}

/// Where value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Depository,
    /// What looks like the depository and is none, or a deposit that fails.
    LookAlike,
    Account(Address),
}

/// What a transaction does: it moves an amount and names an order.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub to: Target,
    pub currency: Address,
    pub amount: U256,
    pub order: B256,
}

impl Move {
    /// What arrives: one token takes a hundredth of each transfer.
    pub fn arrives(&self) -> U256 {
        match self.currency == JUNK {
            true => self.amount - self.amount / U256::from(100),
            false => self.amount,
        }
    }
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Tx {
    pub id: Arc<str>,
    pub from: Address,
    pub what: Move,
    /// Which of its sender's coins it spends: one chain has one transaction for each.
    pub coin: u64,
    version: u64,
    /// The lowest block that has a place for it.
    lowest: u64,
}

/// A transaction in a block.
struct Done {
    tx: Tx,
    /// As the family reads it.
    decoded: OnceLock<Transaction>,
}

struct Mined {
    block: Block,
    done: Vec<Done>,
}

/// What becomes of a transaction whose block is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Returns,
    Lost,
    /// Its sender has the coin back by another transaction.
    DoubleSpent,
}

/// A chain; each provider shows it as its own manners are.
pub struct Ledger {
    pub habits: &'static Habits,
    pub spec: Arc<ChainSpec>,
    encoding: Box<dyn Encoding>,
    accounts: BTreeMap<Vec<u8>, Address>,
    blocks: Mutex<Blocks>,
}

/// What changes.
#[derive(Default)]
struct Blocks {
    mined: Vec<Mined>,
    pool: Vec<Tx>,
    /// The newest height, with a block or without, and the greatest that there was.
    tip: u64,
    highest: u64,
    forks: u64,
    coins: BTreeMap<Address, u64>,
    heights: BTreeMap<Arc<str>, u64>,
    /// Seconds that no block was made in.
    stood: u64,
}

impl Ledger {
    /// The chain called `name`; `accounts` are all that ever deposit.
    pub fn new(name: &str, accounts: &[Address]) -> Option<Arc<Self>> {
        let habits = HABITS.into_iter().find(|habits| habits.name == name)?;
        let additional = json!({ "finalizationBlocks": habits.confirmations });
        let entry = ChainEntry {
            id: name.into(),
            hub_chain_id: Some(habits.number.to_string()),
            depository: Some(habits.depository.into()),
            additional_data: additional.as_object().cloned().unwrap(),
            ..ChainEntry::default()
        };
        let spec = entry.spec(vm::family(habits.family)?, false).unwrap();
        let encoding: Box<dyn Encoding> = match habits.family {
            "bitcoin-vm" => Box::new(bitcoin::Encoder::new(&spec)),
            _ => Box::new(solana::Encoder::new(&spec)),
        };
        let mut ledger = Self {
            habits,
            spec,
            encoding,
            accounts: BTreeMap::new(),
            blocks: Mutex::default(),
        };
        for account in accounts {
            let bytes = ledger.account(*account).bytes().to_vec();
            ledger.accounts.insert(bytes, *account);
        }
        {
            let mut blocks = ledger.lock();
            let block = ledger.header(&blocks, 0);
            let done = Vec::new();
            blocks.mined.push(Mined { block, done });
            while blocks.tip < BEFORE {
                ledger.mine(&mut blocks);
            }
        }
        Some(Arc::new(ledger))
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap()
    }

    /// The chain's account of whoever is this on EVM chains.
    pub fn account(&self, of: Address) -> vm::Address {
        let text = self.encoding.account(of);
        self.spec.family.account(&text).unwrap()
    }

    pub fn currency(&self, of: Address) -> vm::Address {
        let text = self.encoding.currency(of);
        self.spec.family.currency(&text).unwrap()
    }

    /// The reverse of [`Self::account`].
    pub fn who(&self, account: &vm::Address) -> Address {
        let known = self.accounts.get(account.bytes());
        known.copied().unwrap_or_default()
    }

    /// The reverse of [`Self::currency`].
    pub fn which(&self, currency: &vm::Address) -> Address {
        let mut known = self.habits.currencies.iter();
        let found = known.find(|known| self.currency(**known) == *currency);
        found.copied().unwrap_or_default()
    }

    fn due(&self, blocks: &Blocks, number: u64) -> u64 {
        let uneven = mixed(number) % (self.habits.pace / 2 + 1);
        time(self.habits.pace, number) + uneven + blocks.stood
    }

    fn header(&self, blocks: &Blocks, number: u64) -> Block {
        let parent = blocks
            .mined
            .last()
            .map_or(B256::ZERO, |last| last.block.hash);
        Block {
            number,
            hash: block_hash((0xb1, self.habits.number), blocks.forks, number),
            parent,
            time: self.due(blocks, number),
        }
    }

    /// No block is made for so many seconds.
    pub fn stand(&self, seconds: u64) {
        self.lock().stood += seconds;
    }

    fn signed(
        &self,
        blocks: &Blocks,
        (from, coin, version): (Address, u64, u64),
        what: Move,
    ) -> Tx {
        let name = self.habits.name;
        let hash = keccak256(format!("{name} {from} {coin} {version}"));
        let waits = u64::from(hash[0]) % (self.habits.waits + 1);
        Tx {
            id: self.encoding.id(hash).into(),
            from,
            what,
            coin,
            version,
            lowest: blocks.tip + 1 + waits,
        }
    }

    /// A transaction, which waits for a block.
    pub fn send(&self, from: Address, what: Move) -> Arc<str> {
        let mut blocks = self.lock();
        let coin = blocks.coins.entry(from).or_default();
        *coin += 1;
        let coin = *coin;
        let tx = self.signed(&blocks, (from, coin, 0), what);
        let id = tx.id.clone();
        blocks.pool.push(tx);
        id
    }

    /// Another transaction in place of one that still waits, which spends the same coin.
    pub fn replace(&self, id: &str, change: impl Fn(Move) -> Move) -> Option<Arc<str>> {
        let mut blocks = self.lock();
        let at = blocks.pool.iter().position(|tx| *tx.id == *id)?;
        let tx = blocks.pool.remove(at);
        let spends = (tx.from, tx.coin, tx.version + 1);
        let next = self.signed(&blocks, spends, change(tx.what));
        let id = next.id.clone();
        blocks.pool.push(next);
        Some(id)
    }

    /// Makes the blocks that are due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        let mut blocks = self.lock();
        while self.due(&blocks, blocks.tip + 1) <= now {
            self.mine(&mut blocks);
        }
    }

    fn mine(&self, blocks: &mut Blocks) {
        let number = blocks.tip + 1;
        blocks.tip = number;
        blocks.highest = blocks.highest.max(number);
        let skips = self.habits.skips;
        if skips > 0 && mixed(number + blocks.forks * 31).is_multiple_of(skips) {
            return;
        }
        let block = self.header(blocks, number);
        let mut done = Vec::new();
        if !blocks.pool.is_empty() {
            for tx in std::mem::take(&mut blocks.pool) {
                if tx.lowest > number {
                    blocks.pool.push(tx);
                    continue;
                }
                blocks.heights.insert(tx.id.clone(), number);
                let decoded = OnceLock::new();
                done.push(Done { tx, decoded });
            }
        }
        blocks.mined.push(Mined { block, done });
    }

    /// The newest `depth` heights give way to others, as far as they are not final.
    pub fn reorg(&self, depth: u64, fate: &mut dyn FnMut(&Tx) -> Fate) {
        let mut blocks = self.lock();
        let settled = self.habits.depth.max(self.habits.lag);
        let last_final = blocks.highest.saturating_sub(settled).max(BEFORE);
        let tip = blocks.tip;
        let from = (tip + 1).saturating_sub(depth).max(last_final + 1);
        if from > tip {
            return;
        }
        blocks.forks += 1;
        blocks.tip = from - 1;
        let kept = blocks.mined.partition_point(|it| it.block.number < from);
        let gone = blocks.mined.split_off(kept);
        for done in gone.into_iter().flat_map(|mined| mined.done) {
            let tx = done.tx;
            blocks.heights.remove(&tx.id);
            match fate(&tx) {
                Fate::Returns => blocks.pool.push(tx),
                Fate::Lost => {}
                Fate::DoubleSpent => {
                    let spends = (tx.from, tx.coin, tx.version + 1);
                    let back = back(&tx);
                    let next = self.signed(&blocks, spends, back);
                    blocks.pool.push(next);
                }
            }
        }
        // The first block of the new fork is empty: what comes again comes later.
        let pool = std::mem::take(&mut blocks.pool);
        self.mine(&mut blocks);
        blocks.pool = pool;
        while blocks.tip < tip {
            self.mine(&mut blocks);
        }
    }

    /// Nodes forget what waits: its senders send it again.
    pub fn forget(&self) {
        let mut blocks = self.lock();
        let tip = blocks.tip;
        blocks.pool.iter_mut().for_each(|tx| tx.lowest = tip + 2);
    }

    /// Whether everything that was sent is final.
    pub fn rests(&self) -> bool {
        let blocks = self.lock();
        let timed = if self.habits.skips > 0 { TIMED } else { 0 };
        let settled = self.habits.depth.max(self.habits.lag) + timed;
        let newest = blocks.heights.values().max().copied().unwrap_or_default();
        blocks.pool.is_empty() && blocks.tip >= newest + settled
    }
}

/// What gives a transaction's coin back to its sender.
pub fn back(tx: &Tx) -> Move {
    Move {
        to: Target::Account(tx.from),
        order: B256::ZERO,
        ..tx.what
    }
}

/// Any number of a number.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// What providers show.
impl Ledger {
    fn shown(&self, blocks: &Blocks, late: u64) -> u64 {
        blocks.tip.saturating_sub(self.habits.lag + late)
    }

    /// Whether the time of a block is known.
    fn is_timed(&self, blocks: &Blocks, number: u64) -> bool {
        let lacks = self.habits.skips > 0 && mixed(number + 3).is_multiple_of(self.habits.skips);
        !lacks || blocks.tip >= number + self.habits.lag + TIMED
    }

    /// The newest block of a node that is so many heights late.
    pub fn head(&self, late: u64) -> Block {
        let blocks = self.lock();
        let shown = self.shown(&blocks, late);
        let known = blocks.mined.iter().rev().map(|mined| &mined.block);
        let mut known = known.filter(|block| block.number <= shown);
        let found = known.find(|block| self.is_timed(&blocks, block.number));
        found
            .or(blocks.mined.first().map(|it| &it.block))
            .unwrap()
            .clone()
    }

    /// The block at a height, of a node that is so many heights late.
    pub fn block(&self, number: u64, late: u64) -> Option<Block> {
        let blocks = self.lock();
        if number > self.shown(&blocks, late) {
            return None;
        }
        let mined = &blocks.mined;
        let at = mined.binary_search_by_key(&number, |it| it.block.number);
        at.ok().map(|at| mined[at].block.clone())
    }

    /// A transaction in a block that is not above `number`; an error while the block's time is not known.
    pub fn transaction(&self, id: &str, number: u64) -> Result<Transaction, &'static str> {
        let blocks = self.lock();
        match blocks.find(id) {
            Some((block, done)) if block.number <= number => {
                match self.is_timed(&blocks, block.number) {
                    true => Ok(self.decoded(block, done).clone()),
                    false => Err("a block without a time"),
                }
            }
            _ => Ok(Transaction::Missing),
        }
    }

    /// A transaction that waits, as it would be in a block.
    pub fn waiting(&self, id: &str, block: &Block) -> Option<Transaction> {
        let blocks = self.lock();
        let tx = blocks.pool.iter().find(|tx| *tx.id == *id)?;
        Some(self.encoding.decode(tx, block))
    }

    fn decoded<'a>(&self, block: &Block, done: &'a Done) -> &'a Transaction {
        done.decoded
            .get_or_init(|| self.encoding.decode(&done.tx, block))
    }
}

/// What tests see of it.
impl Ledger {
    /// Every deposit in a block: the block's time, its transaction, and itself.
    pub fn deposits(&self) -> Vec<(u64, Arc<str>, Deposit)> {
        let blocks = self.lock();
        let mut all = Vec::new();
        for (block, done) in blocks.history() {
            if let Transaction::Succeeded(receipt) = self.decoded(block, done) {
                let deposits = receipt.deposits.iter().flatten().cloned();
                all.extend(deposits.map(|one| (block.time, done.tx.id.clone(), one)));
            }
        }
        all
    }

    /// What the depository has of a currency, whatever is read of it.
    pub fn held(&self, currency: Address) -> U256 {
        let blocks = self.lock();
        let moves = blocks.history().map(|(_, done)| &done.tx.what);
        let into = moves.filter(|it| it.to == Target::Depository && it.currency == currency);
        into.map(Move::arrives).sum()
    }

    /// Whether a transaction is in a block that will not be undone.
    pub fn is_settled(&self, id: &str) -> bool {
        let blocks = self.lock();
        let settled = self.habits.depth.max(self.habits.lag);
        let found = blocks.find(id);
        found.is_some_and(|(block, _)| {
            block.number + settled <= blocks.tip && self.is_timed(&blocks, block.number)
        })
    }

    /// Whether a transaction is in a block or waits for one.
    pub fn is_known(&self, id: &str) -> bool {
        let blocks = self.lock();
        blocks.heights.contains_key(id) || blocks.pool.iter().any(|tx| *tx.id == *id)
    }

    /// Whether an account's deposit for an order is in a block or waits for one.
    pub fn expects(&self, from: Address, order: B256) -> bool {
        let blocks = self.lock();
        let mined = blocks.history().map(|(_, done)| &done.tx);
        let mut all = mined.chain(&blocks.pool);
        all.any(|tx| tx.from == from && tx.what.order == order && tx.what.to == Target::Depository)
    }

    /// An account's payment for an order.
    pub fn paid_by(&self, payer: Address, order: B256) -> Option<Arc<str>> {
        let blocks = self.lock();
        let mut all = blocks.history().map(|(_, done)| &done.tx);
        let pays = |tx: &&Tx| matches!(tx.what.to, Target::Account(_)) && tx.what.order == order;
        let found = all.find(|tx| tx.from == payer && pays(tx));
        found.map(|tx| tx.id.clone())
    }

    /// What stands in its blocks, for people.
    pub fn lines(&self) -> Vec<String> {
        let blocks = self.lock();
        let line = |(block, done): (&Block, &Done)| {
            let (tx, name, since) = (
                &done.tx,
                self.habits.name,
                block.time - crate::clock::GENESIS,
            );
            format!(
                "{since:>5} {name} #{} {} {}: {:?}",
                block.number, tx.from, tx.id, tx.what
            )
        };
        blocks.history().map(line).collect()
    }
}

impl Blocks {
    fn find(&self, id: &str) -> Option<(&Block, &Done)> {
        let number = *self.heights.get(id)?;
        let at = self
            .mined
            .binary_search_by_key(&number, |it| it.block.number);
        let mined = &self.mined[at.ok()?];
        let done = mined.done.iter().find(|done| *done.tx.id == *id)?;
        Some((&mined.block, done))
    }

    fn history(&self) -> impl Iterator<Item = (&Block, &Done)> {
        let blocks = self.mined.iter().filter(|mined| !mined.done.is_empty());
        blocks.flat_map(|mined| mined.done.iter().map(|done| (&mined.block, done)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::GENESIS, market::NATIVE};

    const USER: Address = Address::repeat_byte(0x31);
    const OTHER: Address = Address::repeat_byte(0x32);
    const ORDER: B256 = B256::repeat_byte(0x33);
    /// Seconds in which everything is final.
    const LONG: u64 = 120;

    fn moves(to: Target, currency: Address) -> Move {
        Move {
            to,
            currency,
            amount: U256::from(100_000),
            order: ORDER,
        }
    }

    fn both() -> impl Iterator<Item = Arc<Ledger>> {
        let names = HABITS.map(|habits| habits.name).into_iter();
        names.map(|name| Ledger::new(name, &[USER, OTHER]).unwrap())
    }

    #[test]
    fn what_is_deposited_is_read_and_what_only_looks_so_is_not() {
        for ledger in both() {
            let mut now = GENESIS;
            for currency in ledger.habits.currencies.iter().copied() {
                let sent = ledger.send(USER, moves(Target::Depository, currency));
                ledger.send(USER, moves(Target::LookAlike, currency));
                ledger.send(USER, moves(Target::LookAlike, currency));
                ledger.send(USER, moves(Target::Account(OTHER), currency));
                now += LONG;
                ledger.mine_until(now);
                assert!(ledger.is_settled(&sent) && ledger.rests());
                let name = ledger.habits.name;
                let found = ledger.deposits();
                let found: Vec<_> = found.iter().filter(|(_, id, _)| *id == sent).collect();
                let [(_, _, deposit)] = found[..] else {
                    panic!("{name}: {found:?}");
                };
                assert_eq!(ledger.who(&deposit.depositor), USER, "{name}");
                assert_eq!(ledger.which(&deposit.currency), currency, "{name}");
                let arrived = moves(Target::Depository, currency).arrives();
                assert_eq!(deposit.amount, arrived, "{name}");
                assert_eq!(ledger.held(currency), arrived, "{name}");
                assert_eq!(*deposit.id, *ORDER.to_string());
            }
            let deposits = ledger.deposits().len();
            assert_eq!(deposits, ledger.habits.currencies.len());
        }
    }

    #[test]
    fn what_is_paid_names_its_order_and_arrives() {
        for ledger in both() {
            let sent = ledger.send(USER, moves(Target::Account(OTHER), NATIVE));
            ledger.mine_until(GENESIS + LONG);
            assert_eq!(ledger.paid_by(USER, ORDER), Some(sent.clone()));
            let found = ledger.transaction(&sent, u64::MAX);
            let Ok(Transaction::Succeeded(receipt)) = found else {
                panic!("{found:?}");
            };
            let named: Vec<_> = receipt.references.iter().map(|it| it.to_string()).collect();
            assert_eq!(named, [ORDER.to_string()]);
            let to = ledger.account(OTHER);
            let mut paid = receipt.payments.iter().filter(|it| it.recipient == to);
            let paid = paid.next().unwrap();
            assert_eq!(paid.amount, U256::from(100_000));
            assert_eq!(paid.currency, ledger.currency(NATIVE));
        }
    }

    #[test]
    fn what_was_replaced_or_undone_is_not_there() {
        for ledger in both() {
            let first = ledger.send(USER, moves(Target::Depository, NATIVE));
            let next = ledger.replace(&first, |what| what).unwrap();
            assert!(!ledger.is_known(&first) && ledger.is_known(&next));
            let mut now = GENESIS;
            while ledger.transaction(&next, u64::MAX) == Ok(Transaction::Missing) {
                now += 1;
                ledger.mine_until(now);
            }
            assert!(ledger.replace(&next, |what| what).is_none());
            assert!(!ledger.is_settled(&next));
            ledger.reorg(1, &mut |_| Fate::DoubleSpent);
            ledger.mine_until(now + LONG);
            assert!(!ledger.is_known(&next));
            assert!(ledger.deposits().is_empty() && ledger.held(NATIVE).is_zero());
            assert!(ledger.rests());
        }
    }
}
