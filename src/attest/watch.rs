//! Looks again at the blocks that signed statements depend on. A block that left the chain makes its statements void
//! and halts signing for the chain (architecture, "Halts"), unless the block was never final by the chain's own rule:
//! who asks for a fast deposit takes that risk.
//!
//! The watcher signs nothing and clears no halt. [`verdict`] decides what an answer means; no answer means nothing.
//! means nothing.

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

/// Rows read from the journal at a time.
const PAGE: usize = 256;
/// Blocks that are asked about at the same time.
const AT_ONCE: usize = 8;

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Read(ReadError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The tip; `None` when nothing is watched, so no provider was asked.
    pub tip: Option<u64>,
    /// Facts that were watched when it began.
    pub facts: usize,
    /// Blocks about which no provider answered.
    pub unanswered: usize,
    /// Blocks that are missing at present.
    pub missing: usize,
    /// Statements that are void now.
    pub void: usize,
}

/// One look, which goes through the pages of rows, lowest block first.
struct Round {
    head: Head,
    now: u64,
    look: Look,
    /// Blocks that were asked about and that later rows may depend on too: height, and verdict if there is one.
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

    /// `missed`: since when the block was missing before this look.
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

    /// Rows come by height: no later row depends on a lower block.
    fn forget_below(&mut self, number: u64) {
        self.verdicts.retain(|_, (height, _)| *height >= number);
    }
}

/// Watches the signed facts of one chain.
pub struct Watcher {
    journal: Arc<Journal>,
    chain: Chain,
    /// Blocks that are missing, and since when (unix seconds).
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

    /// The chain whose facts it watches.
    pub fn chain(&self) -> &ChainId {
        &self.chain.spec.id
    }

    /// Looks again and again until `shutdown`. `clock` gives unix seconds.
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

    /// Looks once. `now` is unix seconds.
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

    /// Adds a verdict for each block of the page that was not asked about in this round.
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

    /// Notes which blocks that were signed early are final now: from now on the chain's own rule stands for them.
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
        // One by one: a row that was written meanwhile has not been looked at.
        self.journal.unwatch(&past).await?;
        Ok(())
    }

    fn report(&self, error: &Error) {
        let chain = &self.chain.spec.id;
        match error {
            Error::Read(error) => tracing::warn!(%chain, %error, "signed facts not looked at"),
            Error::Journal(error) => tracing::error!(%chain, %error, "signed facts not watched"),
        }
    }
}
