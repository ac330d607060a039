//! What a second provider shows of a range. A provider that leaves deposits out must not move the cursor over them,
//! so the cursor passes only what two providers of one chain have read. What either of them shows is recorded, but
//! one provider's word alone only adds. A deposit that both show differently is recorded for nobody, unless one of them
//! says that it could not read it. Where there is only one provider, its own blocks have to confirm what it shows.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::timeout;
use vm::{
    B256, Block, Bytes, Deposit, ReadError,
    trade::{DepositTx, ScanError, Scanner},
};

use super::{Blocks, IndexError, Step, Tail, range::standing};

/// How long one of the other providers may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Steps without a new block after which another provider is asked for its head.
pub const QUIET: u32 = 20;

/// A range of heights that is read.
#[derive(Clone, Copy)]
pub struct Asked {
    /// It may be below `next`: what providers learn late is read again.
    pub from: u64,
    /// The lowest height that the cursor has not passed.
    pub next: u64,
    pub to: u64,
    /// Heights that a provider is asked for at once at most.
    pub most: u64,
}

/// A range as another provider shows it.
pub struct Reading {
    /// The last height of the range that the provider has.
    height: u64,
    /// The block that stands there.
    end: Block,
    deposit_txs: Vec<DepositTx>,
}

/// Why there is no second reading.
pub enum Unread {
    /// The provider has no block above what the cursor has passed.
    Behind,
    Failed(String),
}

/// A deposit of a chain: its transaction, and its position among that one's deposits.
type Id = (Bytes, u32);

/// What two providers show together.
pub struct Agreed {
    pub deposit_txs: Vec<DepositTx>,
    pub end: End,
    pub word: Word,
}

/// Who shows a range.
pub enum Word {
    /// One provider: what it shows is added, and nothing is removed.
    One,
    /// Two providers: the deposits that both show, and the second provider.
    Two(HashSet<Id>, Arc<dyn Scanner>),
    /// The only provider that is asked.
    Only,
}

impl Word {
    /// Whether this word may change what is known of a deposit.
    pub fn is_sure(&self, deposit_tx: &DepositTx, deposit: &Deposit) -> bool {
        match self {
            Self::One => false,
            Self::Two(both, _) => {
                both.contains(&(deposit_tx.transaction.bytes.clone(), deposit.index))
            }
            Self::Only => true,
        }
    }

    /// Whether no provider says that block `number` still has `hash`, because another block stands there or an older
    /// one where the height is skipped now; the first provider has been asked.
    pub async fn misses(&self, number: u64, hash: B256) -> bool {
        match self {
            Self::One => false,
            Self::Two(_, other) => {
                let found = other.block(number).await;
                found.is_ok_and(|block| block.is_some_and(|block| block.hash != hash))
            }
            Self::Only => true,
        }
    }
}

/// How far the cursor may move.
pub enum End {
    /// To `height`, at which `block` stands.
    At { height: u64, block: Block },
    /// The other providers have not got there yet.
    Behind,
    /// None of the other providers could be read.
    Unread(String),
}

/// The outcome of one question to another provider.
type Second = Option<Result<Reading, Unread>>;

impl Asked {
    /// Heights of the largest question.
    pub fn blocks(self) -> u64 {
        (self.to - self.from + 1).min(self.most)
    }
}

impl Tail {
    /// Reads the range at `first` and at one of the others at the same time.
    pub(super) async fn read(
        &self,
        first: &dyn Scanner,
        asked: Asked,
    ) -> Result<(Vec<DepositTx>, Second), ScanError> {
        let others = self.others();
        let second = async {
            match others.first() {
                Some(other) => Some(reading(&**other, asked).await),
                None => None,
            }
        };
        let (first, second) = tokio::join!(deposits(first, asked, asked.to), second);
        let second = match second {
            Some(Err(ScanError::TooLarge(why))) => return Err(ScanError::TooLarge(why)),
            Some(Err(ScanError::Read(error))) => Some(Err(Unread::Failed(error.to_string()))),
            Some(Ok(read)) => Some(read),
            None => None,
        };
        Ok((first?, second))
    }

    /// Combines the first reading with one of the others'. Asks one after the other until one agrees.
    pub(super) async fn agreed(
        &mut self,
        blocks: &Blocks<'_>,
        asked: Asked,
        (first, second): (Vec<DepositTx>, Second),
    ) -> Result<Agreed, IndexError> {
        if second.is_none() {
            return self.unaided(blocks, asked, first).await;
        }
        let (mut ahead, mut outcome) = (second, End::Behind);
        let mut contradicted = None;
        for (at, other) in self.others().iter().enumerate() {
            let second = match ahead.take() {
                Some(ahead) => ahead,
                None => reading(&**other, asked)
                    .await
                    .unwrap_or_else(|error| Err(Unread::Failed(error.to_string()))),
            };
            let why = match second {
                Err(Unread::Behind) => continue,
                Err(Unread::Failed(why)) => why,
                Ok(read) => match together(blocks, &first, (read, other)).await? {
                    Err(why) => {
                        contradicted = Some(why);
                        continue;
                    }
                    Ok(agreed) => {
                        self.other = self.other.wrapping_add(at);
                        self.left_out(fresh(&agreed.deposit_txs, asked) - fresh(&first, asked));
                        return Ok(agreed);
                    }
                },
            };
            outcome = End::Unread(why);
        }
        // A deposit that two providers contradict each other about is not recorded.
        if let Some(why) = contradicted {
            return Err(IndexError::Unconfirmed(why));
        }
        Ok(Agreed {
            deposit_txs: first,
            end: outcome,
            word: Word::One,
        })
    }

    /// What one provider shows where there is no other to ask: the cursor passes what the provider's own blocks
    /// confirm, unless the chain's blocks do not say what is in them.
    async fn unaided(
        &self,
        blocks: &Blocks<'_>,
        asked: Asked,
        mut deposit_txs: Vec<DepositTx>,
    ) -> Result<Agreed, IndexError> {
        let (height, block) = (asked.to, blocks.at(asked.to).await?);
        if !self.network.blooms {
            return Ok(Agreed {
                deposit_txs,
                end: End::At { height, block },
                word: Word::Only,
            });
        }
        let omitted = blocks.omitted(asked.next, &block, &deposit_txs).await;
        let (end, word) = match omitted {
            Ok(omitted) => {
                self.left_out(omitted.len());
                // Of a transaction that was shown in part, the block's version counts.
                let is_whole = |shown: &DepositTx| {
                    let mut whole = omitted.iter();
                    whole.any(|one| one.transaction.bytes == shown.transaction.bytes)
                };
                deposit_txs.retain(|shown| !is_whole(shown));
                deposit_txs.extend(omitted);
                (End::At { height, block }, Word::Only)
            }
            Err(error) => (End::Unread(error.to_string()), Word::One),
        };
        Ok(Agreed {
            deposit_txs,
            end,
            word,
        })
    }

    /// Logs it once: blocks that are read again were logged when they were new.
    fn left_out(&self, transactions: usize) {
        if transactions > 0 {
            let (network, provider) = (&self.network.name, self.turn % self.scanners.len());
            tracing::warn!(
                network,
                provider,
                transactions,
                "a provider left deposits out that another one, or its own blocks, show"
            );
            self.count("left out");
        }
    }

    /// The first provider has no new block. Where another one has gone on for long, that one is asked next.
    pub(super) async fn idle(&mut self, head: u64) -> Result<Step, IndexError> {
        self.idle = self.idle.saturating_add(1);
        let others = self.others();
        let Some(other) = others.first().filter(|_| self.idle >= QUIET) else {
            return Ok(Step::Idle);
        };
        self.idle = 0;
        self.other = self.other.wrapping_add(1);
        if other.head().await.is_ok_and(|other| other.number > head) {
            self.turn = self.turn.wrapping_add(1);
            return Ok(Step::Again);
        }
        Ok(Step::Idle)
    }

    /// The providers besides the first one, in the order in which they are asked; none where one is enough.
    fn others(&self) -> Vec<Arc<dyn Scanner>> {
        let count = self.scanners.len();
        let Some(first) = self.turn.checked_rem(count).filter(|_| !self.alone) else {
            return Vec::new();
        };
        let mut others: Vec<_> = (1..count)
            .filter_map(|step| self.scanners.get((first + step) % count).cloned())
            .collect();
        if let Some(at) = self.other.checked_rem(others.len()) {
            others.rotate_left(at);
        }
        others
    }
}

/// What the range shows up to `to`, as much at once as may be asked for.
async fn deposits(
    scanner: &dyn Scanner,
    asked: Asked,
    to: u64,
) -> Result<Vec<DepositTx>, ScanError> {
    let (mut found, mut from) = (Vec::new(), asked.from);
    while from <= to {
        let end = from.saturating_add(asked.most - 1).min(to);
        found.extend(scanner.deposits(from..=end).await?);
        from = end + 1;
    }
    Ok(found)
}

/// What `other` shows of the part of the range that it has. The block at its end is read last, so that a reorg
/// meanwhile is noticed.
async fn reading(other: &dyn Scanner, asked: Asked) -> Result<Result<Reading, Unread>, ScanError> {
    let read = async {
        let to = asked.to.min(other.head().await?.number);
        if to < asked.next {
            return Ok(Err(Unread::Behind));
        }
        let deposit_txs = deposits(other, asked, to).await?;
        let end = standing(other, to).await?;
        Ok(Ok(Reading {
            height: to,
            end,
            deposit_txs,
        }))
    };
    let why = "no second reading in time";
    let late = |_| match asked.blocks() > 1 {
        true => ScanError::TooLarge(why.into()),
        false => ReadError::Unavailable(why.into()).into(),
    };
    timeout(PATIENCE, read).await.map_err(late)?
}

/// Both readings as one. `Err` inside: why they are not of one chain. They are where the same block stands at the last
/// height that both have: a provider that leaves the last block out shows an older one there.
async fn together(
    blocks: &Blocks<'_>,
    first: &[DepositTx],
    (second, other): (Reading, &Arc<dyn Scanner>),
) -> Result<Result<Agreed, String>, IndexError> {
    let (height, block) = (second.height, second.end);
    let own = blocks.at(height).await?;
    if (own.number, own.hash) != (block.number, block.hash) {
        return Ok(Err(format!("another block at {height}")));
    }
    let More { added, both, read } = match added(first, second.deposit_txs, height) {
        Ok(more) => more,
        Err(why) => return Ok(Err(why)),
    };
    for deposit_tx in &added {
        if !blocks.has(deposit_tx.number, deposit_tx.hash).await? {
            return Ok(Err(format!("another block {}", deposit_tx.number)));
        }
    }
    let mut deposit_txs = first.to_vec();
    deposit_txs.retain(|one| !read.contains(&one.transaction.bytes));
    deposit_txs.extend(added);
    Ok(Ok(Agreed {
        deposit_txs,
        end: End::At { height, block },
        word: Word::Two(both, other.clone()),
    }))
}

/// How many of the transactions are in blocks that were not read before.
fn fresh(deposit_txs: &[DepositTx], asked: Asked) -> usize {
    let new = |deposit_tx: &&DepositTx| deposit_tx.number >= asked.next;
    deposit_txs.iter().filter(new).count()
}

/// What a second reading shows.
struct More {
    /// Besides the first, or instead of it.
    added: Vec<DepositTx>,
    /// What both show.
    both: HashSet<Id>,
    /// Transactions that the first could not read, and the second could.
    read: HashSet<Bytes>,
}

/// What the second reading shows up to height `last`. `Err`: a deposit that both show, but differently, although both
/// read it.
fn added(first: &[DepositTx], second: Vec<DepositTx>, last: u64) -> Result<More, String> {
    let mut known: BTreeMap<(&Bytes, u32), (&DepositTx, &Deposit)> = BTreeMap::new();
    for deposit_tx in first {
        for deposit in &deposit_tx.deposits {
            let id = (&deposit_tx.transaction.bytes, deposit.index);
            known.insert(id, (deposit_tx, deposit));
        }
    }
    let (mut added, mut both, mut read) = (Vec::new(), HashSet::new(), HashSet::new());
    for mut deposit_tx in second {
        if deposit_tx.number > last {
            return Err(format!("a deposit of block {} unasked", deposit_tx.number));
        }
        let mut missing = Vec::new();
        for deposit in deposit_tx.deposits {
            match known.get(&(&deposit_tx.transaction.bytes, deposit.index)) {
                None => missing.push(deposit),
                Some((one, same)) if one.hash == deposit_tx.hash && **same == deposit => {
                    both.insert((deposit_tx.transaction.bytes.clone(), deposit.index));
                }
                Some((one, _)) if one.hash == deposit_tx.hash && deposit_tx.doubt.is_some() => {}
                Some((one, _)) if one.hash == deposit_tx.hash && one.doubt.is_some() => {
                    read.insert(deposit_tx.transaction.bytes.clone());
                    missing.push(deposit);
                }
                Some(_) => return Err(format!("{} in another way", deposit_tx.transaction.text)),
            }
        }
        if !missing.is_empty() {
            deposit_tx.deposits = missing;
            added.push(deposit_tx);
        }
    }
    Ok(More { added, both, read })
}
