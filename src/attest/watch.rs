//! Checks again the blocks that signed statements depend on. When a block leaves the chain, the watcher voids its
//! statements and halts signing about the chain (oracle.md, "Never twice"), unless the block was never final by the
//! chain's own rule: a caller that asks for a fast deposit takes that risk.
//!
//! The watcher signs nothing and clears no halt. [`verdict`] decides what an answer means; a missing answer means
//! nothing.

#[cfg(test)]
mod tests;
pub mod verdict;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use vm::{B256, Block, Chain, ChainId, Head, ReadError};

use self::verdict::{Pace, SLOWEST, Sight, Verdict, pause};
use super::journal::{Journal, JournalError, Watched};

/// The most rows per read of the journal.
const PAGE: usize = 256;
/// The most concurrent reads of blocks.
const AT_ONCE: usize = 8;

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Read(ReadError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The result of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The tip; `None` when nothing is watched, so that no provider was asked.
    pub tip: Option<u64>,
    /// The facts that were watched at the start.
    pub facts: usize,
    /// The blocks about which no provider answered.
    pub unanswered: usize,
    /// The blocks that are missing now.
    pub missing: usize,
    /// The statements that the look voided.
    pub void: usize,
}

/// One look, which goes through the pages of rows, lowest block first.
struct Round {
    head: Head,
    now: u64,
    look: Look,
    /// The blocks already asked about that later rows may depend on: height, and the verdict if there is one.
    verdicts: HashMap<B256, (u64, Option<Verdict>)>,
    /// The next value of [`Watcher::missing`].
    missing: HashMap<B256, u64>,
}

impl Round {
    fn new(head: Head, now: u64) -> Self {
        let tip = Some(head.block.number);
        Self {
            head,
            now,
            look: Look {
                tip,
                ..Look::default()
            },
            verdicts: HashMap::new(),
            missing: HashMap::new(),
        }
    }

    /// `missed`: since when earlier looks missed the block.
    fn put(&mut self, block: &Block, missed: Option<u64>, verdict: Option<Verdict>) {
        let since = match verdict {
            Some(Verdict::Past | Verdict::Stands | Verdict::Gone) => None,
            Some(Verdict::Missing(since)) => Some(since),
            Some(Verdict::Early) => missed,
            None => {
                self.look.unanswered += 1;
                missed
            }
        };
        self.missing.extend(since.map(|since| (block.hash, since)));
        self.look.missing = self.missing.len();
        self.verdicts.insert(block.hash, (block.number, verdict));
    }

    /// Rows are sorted by height: no later row depends on a lower block.
    fn forget_below(&mut self, number: u64) {
        self.verdicts.retain(|_, (height, _)| *height >= number);
    }
}

/// Watches the signed facts of one chain.
pub struct Watcher {
    journal: Arc<Journal>,
    chain: Chain,
    /// The missing blocks, and since when they are missing (unix seconds).
    missing: HashMap<B256, u64>,
}

impl Watcher {
    pub fn new(journal: Arc<Journal>, chain: Chain) -> Self {
        Self {
            journal,
            chain,
            missing: HashMap::new(),
        }
    }

    /// The chain of the watched facts.
    pub fn chain(&self) -> &ChainId {
        &self.chain.spec.id
    }

    /// Looks regularly until `shutdown`. `clock` gives unix seconds.
    pub async fn run(mut self, clock: fn() -> u64, shutdown: CancellationToken) {
        let (mut wait, mut tip) = (SLOWEST / 2, None);
        loop {
            let looked = shutdown.run_until_cancelled(self.look(clock())).await;
            let pace = match looked {
                None => return,
                Some(Ok(look)) if look.missing > 0 => Pace::Alarmed,
                Some(Ok(look)) if look.tip.is_some() && look.tip != tip => {
                    tip = look.tip;
                    Pace::Moving
                }
                Some(Ok(_)) => Pace::Still,
                Some(Err(error)) => {
                    self.report(&error);
                    Pace::Still
                }
            };
            wait = pause(wait, pace);
            let waited = shutdown.run_until_cancelled(tokio::time::sleep(wait)).await;
            if waited.is_none() {
                return;
            }
        }
    }

    /// Looks once. `now` is in unix seconds.
    pub async fn look(&mut self, now: u64) -> Result<Look, Error> {
        let id = self.chain.spec.id.clone();
        self.journal.halted(&id).await?;
        let mut round = None;
        let mut cursor = None;
        loop {
            let page = self.journal.watched(&id, cursor.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            let round = match &mut round {
                Some(round) => round,
                None => round.insert(Round::new(self.head().await?, now)),
            };
            self.ask(&page, round).await;
            self.mature(&page, round).await?;
            self.settle(&page, round).await?;
            round.forget_below(last.block.number);
            if page.len() < PAGE {
                break;
            }
            cursor = Some(last.cursor.clone());
        }
        let found = round.map(|round| (round.look, round.missing));
        let (look, missing) = found.unwrap_or_default();
        metrics::gauge!("intentd_watched_facts", "chain" => id.to_string())
            .set(u32::try_from(look.facts).unwrap_or(u32::MAX));
        self.missing = missing;
        Ok(look)
    }

    async fn head(&self) -> Result<Head, Error> {
        self.chain.reader.head().await.map_err(Error::Read)
    }

    /// Adds a verdict for each block of the page that this round has not asked about.
    async fn ask(&self, page: &[Watched], round: &mut Round) {
        let mut known = BTreeSet::new();
        let blocks: Vec<&Block> = page
            .iter()
            .map(|fact| &fact.block)
            .filter(|block| known.insert(block.hash) && !round.verdicts.contains_key(&block.hash))
            .collect();
        for blocks in blocks.chunks(AT_ONCE) {
            let asked = blocks.iter().map(|block| self.chain.reader.contains(block));
            let asked: Vec<_> = asked.collect();
            for (block, answer) in blocks.iter().zip(join_all(asked).await) {
                let missed = self.missing.get(&block.hash).copied();
                let verdict = answer.ok().map(|on_chain| {
                    let sight = Sight {
                        block,
                        on_chain,
                        missed,
                    };
                    sight.judge(&self.chain.spec, &round.head, round.now)
                });
                round.put(block, missed, verdict);
            }
        }
    }

    /// Records which early-signed blocks are final now: from now on the chain's own rule applies to them.
    async fn mature(&self, page: &[Watched], round: &Round) -> Result<(), JournalError> {
        for fact in page.iter().filter(|fact| fact.early) {
            let verdict = round.verdicts.get(&fact.block.hash);
            let there = matches!(verdict, Some((_, Some(Verdict::Stands))));
            if there && self.chain.spec.finality.met(&fact.block, &round.head) {
                self.journal.settled(fact).await?;
            }
        }
        Ok(())
    }

    /// Acts on the verdicts.
    async fn settle(&self, page: &[Watched], round: &mut Round) -> Result<(), JournalError> {
        let mut past = Vec::new();
        for fact in page {
            match round.verdicts.get(&fact.block.hash) {
                Some((_, Some(Verdict::Past))) => past.push(fact.cursor.clone()),
                Some((_, Some(Verdict::Gone))) => {
                    let (key, block) = (&fact.statement, &fact.block);
                    let id = &self.chain.spec.id;
                    let void = self.journal.reorged(key, id, block, round.now).await?;
                    round.look.void += usize::from(void);
                }
                _ => {}
            }
        }
        round.look.facts += page.len();
        // Deletes only the judged rows: one that was written meanwhile is unchecked.
        self.journal.unwatch(&past).await?;
        Ok(())
    }

    fn report(&self, error: &Error) {
        let chain = &self.chain.spec.id;
        match error {
            Error::Read(error) => {
                tracing::warn!(%chain, %error, "the watcher cannot check signed facts");
            }
            Error::Journal(error) => {
                tracing::error!(%chain, %error, "the watcher cannot read or write the journal");
            }
        }
    }
}
