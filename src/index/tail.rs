//! Follows one network: reads ranges of heights, records the deposits in them, and moves a cursor.
//!
//! A range's facts are committed before the cursor passes the range, and each of these commits may be repeated, so a
//! stop at any time loses nothing and repeats nothing. After a reorg the cursor goes back to the last common mark.
//! From there the tail reads on and marks what has a [`deposit_tx`] row and is no longer in the blocks. Deposits are
//! recorded as one provider shows them, and the confirmer judges them; the cursor passes only what a second provider
//! has read, too.
//!
//! Ranges, cursor and marks count heights, and a chain may skip some. Each height has the block that stands there
//! ([`Scanner::block`]), so a range may end at a skipped height, or have no block at all.

mod again;
mod range;
mod report;
mod second;
mod span;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use vm::{
    Block, ReadError,
    trade::{ScanError, Scanner},
};

use self::{
    range::Blocks,
    second::{Asked, End},
    span::Span,
};
use super::{
    IndexError, Wakeup,
    again::{MARKS, marked, rewound},
    progress::Progress,
    recorder::Recorder,
    tail_states::TailStates,
};
use crate::{
    market::Network,
    store::{
        Batch, Expect,
        lease::Held,
        requests::Requests,
        rows::{
            cursor::{self, Again, Cursor, Mark},
            deposit_tx,
        },
    },
};

/// Heights below the head that are read only after everything older has a mark, so that a reorg of them ends at one.
const DEEP: u64 = 128;
/// Heights below the cursor that are read again: providers know a block before they know its deposits.
const AGAIN: u64 = 16;
/// After a range that took longer the next one is no larger.
const FAST: Duration = Duration::from_secs(1);
/// Deposit transactions that one step forgets.
const FORGOTTEN: usize = 256;
/// The shortest pause between two looks at the head.
const SHORTEST: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST: Duration = Duration::from_secs(6);
/// The pause after several errors in a row.
const RESIGNED: Duration = Duration::from_secs(30);

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything up to height `to` is indexed.
    Moved { to: u64, head: u64 },
    /// There is no new block.
    Idle,
    /// The cursor was taken back: everything above height `to` is read again.
    Rewound { to: u64 },
    /// Nothing was read and another try is due: there was no cursor, the range was too large, the chain moved, or
    /// another provider has newer blocks.
    Again,
}

/// Follows one network.
pub struct Tail {
    network: Network,
    /// A step reads through the one at `turn`, and asks the others for a second reading.
    scanners: Vec<Arc<dyn Scanner>>,
    turn: usize,
    recorder: Recorder,
    wakeup: Arc<Wakeup>,
    tail_states: Arc<TailStates>,
    span: Span,
    /// Which of the other providers is asked first for a second reading.
    other: usize,
    /// Whether one provider is enough.
    alone: bool,
    /// Steps in a row that found no new block.
    idle: u32,
    /// The lease; taken with the first step.
    held: Option<Held>,
}

/// A cursor as it is stored.
struct Stored {
    cursor: Cursor,
    bytes: Vec<u8>,
}

impl Tail {
    pub fn new(
        network: Network,
        scanners: Vec<Arc<dyn Scanner>>,
        requests: Requests,
        wakeup: Arc<Wakeup>,
    ) -> Self {
        Self {
            network,
            scanners,
            turn: 0,
            recorder: Recorder { requests },
            wakeup,
            tail_states: Arc::default(),
            span: Span::default(),
            other: 0,
            alone: false,
            idle: 0,
            held: None,
        }
    }

    /// With `alone` the cursor also passes what one provider alone shows.
    #[must_use]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Reports to `tail_states` what stops it.
    #[must_use]
    pub fn with_states(mut self, tail_states: Arc<TailStates>) -> Self {
        self.tail_states = tail_states;
        self
    }

    /// Steps until `shutdown`, or until another tail follows the network. `clock` gives unix milliseconds.
    pub async fn run(mut self, clock: fn() -> u64, shutdown: CancellationToken) {
        let poll = Duration::from_millis(self.network.block_seconds.saturating_mul(500));
        let poll = poll.clamp(SHORTEST, LONGEST);
        let mut progress = Progress::new(&self.network.name);
        let mut errors = 0_u32;
        loop {
            let Some(stepped) = shutdown.run_until_cancelled(self.step(clock())).await else {
                return;
            };
            errors = stepped.as_ref().map_or(errors + 1, |_| 0);
            self.troubled(errors, &stepped);
            let wait = match stepped {
                Ok(Step::Moved { to, head }) => {
                    progress.report(to, head);
                    match to < head {
                        true => continue,
                        false => poll,
                    }
                }
                Ok(Step::Idle) => poll,
                Ok(Step::Rewound { .. } | Step::Again) => SHORTEST,
                Err(error) => {
                    self.failed(&error);
                    if error == IndexError::Fenced {
                        return;
                    }
                    poll.saturating_mul(1 << errors.min(6)).min(RESIGNED)
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.wakeup.woken() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Reads one range, or goes back. `now` in unix milliseconds. After an error the next step asks the next
    /// provider.
    pub async fn step(&mut self, now: u64) -> Result<Step, IndexError> {
        let stepped = self.stepped(now).await;
        if stepped.is_err() {
            self.turn = self.turn.wrapping_add(1);
        }
        stepped
    }

    async fn stepped(&mut self, now: u64) -> Result<Step, IndexError> {
        self.hold(now).await?;
        let scanner = self.scanner()?;
        let blocks = Blocks::of(&*scanner).await?;
        self.tail_states.read(&self.network.name, now);
        let Some(stored) = self.stored().await? else {
            return self.begin(&blocks).await;
        };
        if let Some(number) = stored.cursor.again.due(now) {
            return self.read_again(&stored, number, now).await;
        }
        let (next, head) = (stored.cursor.next, blocks.head().number);
        let to = self.to(&stored.cursor, head);
        let end = match to >= next {
            true => Some(blocks.at(to).await?),
            false => None,
        };
        if let Some(kept) = blocks.fork(&stored.cursor.marks).await? {
            return self.rewind(&stored, kept).await;
        }
        self.measure(next.saturating_sub(1), head);
        let Some(end) = end else {
            return self.idle(head).await;
        };
        self.idle = 0;
        let span = Asked {
            from: self.from(&stored.cursor, to),
            next,
            to,
            most: self.span.blocks(),
        };
        let began = Instant::now();
        let (first, second) = match self.read(&*scanner, span).await {
            Ok(readings) => readings,
            Err(ScanError::Read(error)) => return Err(error.into()),
            Err(ScanError::TooLarge(why)) => return self.refused(span.blocks(), why),
        };
        if began.elapsed() < FAST {
            self.span.borne(span.blocks());
        }
        // Another block at the end means that the chain changed while its deposits were read.
        if !blocks.stands(to, &end).await? {
            return Ok(Step::Again);
        }
        let agreed = self.agreed(&blocks, span, (first, second)).await?;
        let range = span.from..=to;
        let unknown = self.record(&blocks, range, &agreed, now).await?;
        let (to, end) = match agreed.end {
            End::At { height, block } => (height, block),
            End::Behind => return Ok(Step::Idle),
            End::Unread(why) => return Err(IndexError::Unconfirmed(why)),
        };
        self.advance(&stored, mark(to, &end), unknown).await?;
        let requests = &self.recorder.requests;
        requests.reached(&self.network.name, end.time);
        self.measure(to, head);
        Ok(Step::Moved { to, head })
    }

    /// Takes the network's lease with the first step; `Fenced` as soon as another tail has it.
    async fn hold(&mut self, now: u64) -> Result<(), IndexError> {
        let store = self.recorder.requests.store();
        let stands = match &self.held {
            Some(held) => held.stands(&**store).await?,
            None => {
                let what = format!("tail/{}", self.network.name);
                self.held = Held::take(&**store, &what, now).await?;
                self.held.is_some()
            }
        };
        stands.then_some(()).ok_or(IndexError::Fenced)
    }

    fn scanner(&self) -> Result<Arc<dyn Scanner>, IndexError> {
        let none = || ReadError::Unavailable("no provider".into());
        let at = self.turn.checked_rem(self.scanners.len());
        let scanner = at.and_then(|at| self.scanners.get(at));
        Ok(scanner.cloned().ok_or_else(none)?)
    }

    async fn stored(&self) -> Result<Option<Stored>, IndexError> {
        let key = cursor::key(&self.network.name);
        let Some(bytes) = self.recorder.requests.store().read(&key).await? else {
            return Ok(None);
        };
        let cursor = Cursor::decode(&bytes)?;
        Ok(Some(Stored { cursor, bytes }))
    }

    /// Stores the first cursor, with a mark that no reorg reaches: below `index_from`, and [`DEEP`] below the head or
    /// lower. Height 0 is the lowest mark, since the first block of a chain has no transactions.
    async fn begin(&self, blocks: &Blocks<'_>) -> Result<Step, IndexError> {
        let head = blocks.head().number;
        let from = self.network.index_from.unwrap_or(u64::MAX);
        let below = from.saturating_sub(1).min(head.saturating_sub(DEEP));
        let cursor = Cursor {
            next: below.saturating_add(1),
            marks: vec![mark(below, &blocks.at(below).await?)],
            again: Again::default(),
        };
        self.commit(Expect::Absent, &cursor, Batch::new()).await?;
        Ok(Step::Again)
    }

    /// The height where the next range ends: while the past is read, below the blocks that may be reorged.
    fn to(&self, cursor: &Cursor, head: u64) -> u64 {
        let span = self.blocks();
        // Wherever the provider's head is, some heights below the cursor are read again.
        let again = cursor.next.saturating_sub(AGAIN.min(span / 2));
        let to = again.max(oldest(cursor)).min(cursor.next);
        let to = to.saturating_add(span - 1);
        let settled = head.saturating_sub(DEEP);
        match cursor.next <= settled {
            true => to.min(settled),
            false => to.min(head),
        }
    }

    /// The most heights of a range; at least two, a new one and one that was read before.
    fn blocks(&self) -> u64 {
        self.span.blocks().max(2)
    }

    /// The height where a range that ends at `to` begins.
    fn from(&self, cursor: &Cursor, to: u64) -> u64 {
        let least = to.saturating_sub(self.blocks() - 1);
        let again = cursor.next.saturating_sub(AGAIN);
        again.max(oldest(cursor)).max(least).min(cursor.next)
    }

    fn refused(&mut self, blocks: u64, why: String) -> Result<Step, IndexError> {
        match self.span.refused(blocks) {
            true => Ok(Step::Again),
            false => Err(ReadError::Unavailable(format!("one block is too large: {why}")).into()),
        }
    }

    /// Moves the cursor above `end`, also where the range has no block. Deposit transactions that no rewind can reach
    /// any more are forgotten.
    async fn advance(
        &self,
        stored: &Stored,
        end: Mark,
        mut batch: Batch,
    ) -> Result<(), IndexError> {
        let mut marks = stored.cursor.marks.clone();
        marked(&mut marks, end, self.network.block_seconds);
        if marks.len() == MARKS {
            let network = &self.network.name;
            let oldest = marks.first().map_or(0, |mark| mark.number);
            let rows = deposit_tx::range(network, 0, FORGOTTEN);
            for (key, value) in self.recorder.requests.store().scan(rows).await? {
                if deposit_tx::decode(network, &key, &value)?.number <= oldest {
                    batch = batch.delete(key);
                }
            }
        }
        let next = end.number.saturating_add(1);
        let again = stored.cursor.again;
        let cursor = Cursor { next, marks, again };
        let before = Expect::Equals(stored.bytes.clone());
        self.commit(before, &cursor, batch).await
    }

    /// Takes the cursor back to the mark at `kept`.
    async fn rewind(&self, stored: &Stored, kept: usize) -> Result<Step, IndexError> {
        let cursor = rewound(&stored.cursor, kept);
        let to = cursor.next.saturating_sub(1);
        let before = Expect::Equals(stored.bytes.clone());
        self.commit(before, &cursor, Batch::new()).await?;
        let network = self.network.name.clone();
        tracing::warn!(%network, from = stored.cursor.next - 1, to, "reorg: blocks are read again");
        metrics::counter!("intentd_index_reorgs_total", "chain" => network).increment(1);
        Ok(Step::Rewound { to })
    }

    async fn commit(&self, before: Expect, cursor: &Cursor, with: Batch) -> Result<(), IndexError> {
        let key = cursor::key(&self.network.name);
        let held = self.held.as_ref().ok_or(IndexError::Fenced)?;
        let batch = held.with(with).expect(key.clone(), before);
        let batch = batch.put(key, cursor.encode()?);
        let moved = self.recorder.requests.store().commit(batch).await?;
        moved.is_applied().then_some(()).ok_or(IndexError::Moved)
    }
}

/// The lowest height that a rewind reads again: the one above the oldest mark.
fn oldest(cursor: &Cursor) -> u64 {
    cursor.marks.first().map_or(0, |mark| mark.number + 1)
}

fn mark(height: u64, block: &Block) -> Mark {
    Mark {
        number: height,
        hash: block.hash,
    }
}
