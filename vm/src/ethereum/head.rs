//! Follows one node's chain: the head, tracked in the background while somebody reads, and the
//! headers below it.
//!
//! A head is believed only when it links to the headers before it, or replaces them down to a common
//! ancestor. Says what this node's chain is; whether that is the network's is the quorum's question.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    fork::{Fork, linked},
    raw::RawHeader,
    rpc::{Answer, Call, Rpc, call, doubt, expect},
};
use crate::{
    FinalityTag, ReadError,
    shared_head::SharedHead,
    types::{Block, Head},
};

/// Headers read to find where a new head joins the known ones; more starts anew.
const MAX_GAP: u64 = 160;
/// Headers per round while looking for the join, and below the run for a single header.
const STEP: u64 = 32;
/// Nobody reads: stop asking.
const IDLE: Duration = Duration::from_secs(60);
const FASTEST: Duration = Duration::from_millis(500);
const SLOWEST: Duration = Duration::from_secs(4);

/// The chain as one node shows it.
pub struct Tip {
    rpc: Arc<Rpc>,
    tag: Option<FinalityTag>,
    /// Changed only by whoever reads the head, but for headers below it.
    fork: Mutex<Option<Fork>>,
    head: SharedHead,
    wake: Notify,
    born: Instant,
    /// When somebody last read, in milliseconds since `born`.
    used: AtomicU64,
}

impl Tip {
    pub fn new(rpc: Arc<Rpc>, tag: Option<FinalityTag>) -> Self {
        Self {
            rpc,
            tag,
            fork: Mutex::new(None),
            head: SharedHead::default(),
            wake: Notify::new(),
            born: Instant::now(),
            used: AtomicU64::new(0),
        }
    }

    /// Keeps the head current until the task is aborted; pauses while nobody reads.
    pub async fn track(self: Arc<Self>) {
        loop {
            if self.is_idle() {
                self.wake.notified().await;
            }
            sleep(self.pace()).await;
            if let Err(error) = self.fresh_head().await {
                tracing::debug!(%error, "head not read");
            }
        }
    }

    /// Somebody reads more than heads: keep up with the chain.
    pub fn touch(&self) {
        let was_idle = self.is_idle();
        self.used.store(self.age(), Relaxed);
        if was_idle {
            self.wake.notify_one();
        }
    }

    /// The tracked head, or one read now when tracking pauses or has not kept up.
    pub async fn head(&self) -> Result<Head, ReadError> {
        self.head.within(self.pace() * 3, || self.poll()).await
    }

    /// A head read from the node now.
    pub async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.head.within(Duration::ZERO, || self.poll()).await
    }

    /// Whether `block` is known to be on this node's chain. No I/O.
    pub fn knows(&self, block: &Block) -> bool {
        self.with_fork(|fork| fork.contains(block)).unwrap_or(false)
    }

    /// The canonical header at `number`; `None` above the tip. Reads it when it is not known.
    pub async fn block(&self, number: u64) -> Result<Option<Block>, ReadError> {
        let known = self.with_fork(|fork| {
            let above = number > fork.head().number;
            (
                above,
                fork.at(number),
                fork.oldest().clone(),
                fork.generation(),
            )
        });
        let (above, known, oldest, generation) = known.ok_or_else(|| doubt("no head"))?;
        if above || known.is_some() {
            return Ok(known);
        }
        if oldest.number.saturating_sub(number) <= STEP {
            let below = self
                .headers(number, oldest.number.saturating_sub(1))
                .await?;
            linked(&below).map_err(doubt)?;
            if below.last().is_none_or(|last| last.hash != oldest.parent) {
                return Err(doubt("headers below the known ones are of another fork"));
            }
            let first = below.first().cloned();
            self.change_fork(|fork| match fork.oldest() == &oldest {
                true => fork.deepen(below).map_err(doubt),
                false if fork.generation() == generation => Ok(()),
                false => Err(doubt("the chain changed between two reads")),
            })?;
            return Ok(first);
        }
        let calls = vec![by_number(number), by_number(oldest.number)];
        let mut answers = self.rpc.round(calls).await?.into_iter();
        let block = header(answers.next(), number)?;
        if header(answers.next(), oldest.number)?.hash != oldest.hash {
            return Err(doubt("the chain changed between two reads"));
        }
        self.change_fork(|fork| {
            fork.remember(block.clone(), generation);
            Ok(())
        })?;
        Ok(Some(block))
    }

    /// Reads the head, and makes it that of the fork.
    async fn poll(&self) -> Result<Head, ReadError> {
        let mut calls = vec![call("eth_getBlockByNumber", json!(["latest", false]))];
        let tag = self.tag.map(|tag| match tag {
            FinalityTag::Safe => "safe",
            FinalityTag::Finalized => "finalized",
        });
        calls.extend(tag.map(|tag| call("eth_getBlockByNumber", json!([tag, false]))));
        let mut answers = self.rpc.round(calls).await?.into_iter();
        let latest = block_of(answers.next())?;
        let tagged = match answers.next() {
            Some(answer) => Some(block_of(Some(answer))?),
            None => None,
        };
        self.place(latest).await?;
        if let Some(tagged) = &tagged {
            let other = self.with_fork(|fork| {
                fork.at(tagged.number)
                    .is_some_and(|known| known.hash != tagged.hash)
            });
            if other.unwrap_or(false) {
                return Err(doubt("the tagged block is of another fork"));
            }
        }
        let head = self.with_fork(|fork| fork.head().clone());
        Ok(Head {
            block: head.ok_or_else(|| doubt("no head"))?,
            tagged: tagged.map(|block| block.number),
        })
    }

    /// Makes `latest` the head.
    async fn place(&self, latest: Block) -> Result<(), ReadError> {
        let Some(head) = self.with_fork(|fork| fork.head().clone()) else {
            *self.locked() = Some(Fork::new(latest));
            return Ok(());
        };
        if latest == head {
            return Ok(());
        }
        if latest.number <= head.number && self.knows(&latest) {
            return self.step_back(latest, head).await;
        }
        if latest.number.saturating_sub(head.number) > MAX_GAP {
            let kept = self.still_canonical(&head).await?;
            return self.change_fork(|fork| {
                fork.restart(vec![latest], kept);
                Ok(())
            });
        }
        self.join(latest).await
    }

    /// An older head than before: a node behind its siblings, or a chain that went back.
    async fn step_back(&self, latest: Block, head: Block) -> Result<(), ReadError> {
        if self.still_canonical(&head).await? {
            return Ok(());
        }
        self.change_fork(|fork| fork.roll_back(&latest).map_err(doubt))
    }

    async fn still_canonical(&self, block: &Block) -> Result<bool, ReadError> {
        let answer = self.rpc.round(vec![by_number(block.number)]).await?.pop();
        let found: Option<RawHeader> = match answer {
            Some(Ok(answer)) => expect("eth_getBlockByNumber", Ok(answer))?,
            _ => None,
        };
        Ok(found.is_some_and(|found| found.hash == block.hash))
    }

    /// Walks from `latest` down to a known block.
    async fn join(&self, latest: Block) -> Result<(), ReadError> {
        let mut segment = vec![latest];
        loop {
            let low = segment[0].clone();
            let (joins, head, oldest) = self
                .with_fork(|fork| {
                    let joins = fork.joins(&segment);
                    (joins, fork.head().number, fork.oldest().number)
                })
                .ok_or_else(|| doubt("no head"))?;
            if joins {
                return self.change_fork(|fork| fork.join(segment).map_err(doubt));
            }
            if low.number <= oldest || segment.len() as u64 > MAX_GAP {
                return self.change_fork(|fork| {
                    fork.restart(segment, false);
                    Ok(())
                });
            }
            let above = head.saturating_add(1);
            let target = if low.number > above { above } else { oldest };
            let from = target.max(low.number.saturating_sub(STEP));
            let mut below = self.headers(from, low.number.saturating_sub(1)).await?;
            below.append(&mut segment);
            linked(&below).map_err(doubt)?;
            segment = below;
        }
    }

    async fn headers(&self, from: u64, to: u64) -> Result<Vec<Block>, ReadError> {
        let answers = self.rpc.round((from..=to).map(by_number).collect()).await?;
        answers
            .into_iter()
            .zip(from..=to)
            .map(|(answer, number)| header(Some(answer), number))
            .collect()
    }

    fn age(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_idle(&self) -> bool {
        let silence = self.age().saturating_sub(self.used.load(Relaxed));
        Duration::from_millis(silence) > IDLE
    }

    /// A third of the chain's own pace.
    fn pace(&self) -> Duration {
        let seconds = self.with_fork(Fork::pace).flatten();
        seconds.map_or(Duration::from_secs(1), |seconds| {
            (Duration::from_secs(seconds) / 3).clamp(FASTEST, SLOWEST)
        })
    }

    fn locked(&self) -> MutexGuard<'_, Option<Fork>> {
        self.fork.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_fork<T>(&self, read: impl FnOnce(&Fork) -> T) -> Option<T> {
        self.locked().as_ref().map(read)
    }

    fn change_fork(
        &self,
        change: impl FnOnce(&mut Fork) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.locked().as_mut().map_or(Ok(()), change)
    }
}

fn by_number(number: u64) -> Call {
    call(
        "eth_getBlockByNumber",
        json!([format!("{number:#x}"), false]),
    )
}

fn block_of(answer: Option<Answer>) -> Result<Block, ReadError> {
    let answer = answer.ok_or_else(|| doubt("an answer is missing"))?;
    let header: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
    header
        .ok_or_else(|| ReadError::Unavailable("block not found".into()))?
        .block()
        .ok_or_else(|| doubt("a block number out of range"))
}

fn header(answer: Option<Answer>, number: u64) -> Result<Block, ReadError> {
    let block = block_of(answer)?;
    if block.number != number {
        return Err(doubt("a header of another height"));
    }
    Ok(block)
}
