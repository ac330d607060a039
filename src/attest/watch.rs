//! Looks again at the blocks that signed statements rest on. A block that the network has left makes
//! its statements void and halts signing for its chain (architecture, "Halts"), unless it was never
//! final by the chain's own rule: who asks for a fast deposit takes that risk.
//!
//! It signs nothing and clears no halt. What an answer means is decided in [`verdict`]; no answer
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
use vm::{B256, Block, Chain, Head, ReadError};

use self::verdict::{Pace, SLOWEST, Sight, Verdict, pause};
use super::journal::{Journal, JournalError, Watched};

/// Rows read from the journal at a time.
const PAGE: usize = 256;
/// Blocks asked about at the same time.
const AT_ONCE: usize = 8;

/// Why a look came to nothing.
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
    /// The tip; `None` when nothing is watched and nobody was asked.
    pub tip: Option<u64>,
    /// Facts that were watched when it began.
    pub facts: usize,
    /// Blocks that nobody answered about.
    pub unanswered: usize,
    /// Blocks that are not there for now.
    pub missing: usize,
    /// Statements that are void now.
    pub void: usize,
}

/// Watches the signed facts of one chain.
pub struct Watcher {
    journal: Arc<Journal>,
    chain: Chain,
    /// Blocks that are not there, and since when (unix seconds).
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
        self.journal.halted(&self.chain.spec.id).await?;
        let facts = self.facts().await?;
        let chain = self.chain.spec.id.to_string();
        metrics::gauge!("intentd_watched_facts", "chain" => chain)
            .set(u32::try_from(facts.len()).unwrap_or(u32::MAX));
        if facts.is_empty() {
            self.missing.clear();
            return Ok(Look::default());
        }
        let head = self.chain.reader.head().await.map_err(Error::Read)?;
        let mut look = Look {
            tip: Some(head.block.number),
            facts: facts.len(),
            ..Look::default()
        };
        let verdicts = self.verdicts(&facts, &head, now).await;
        self.mature(&facts, &verdicts, &head).await?;
        self.settle(&facts, &verdicts, now, &mut look).await?;
        Ok(look)
    }

    /// All watched rows of the chain, lowest block first.
    async fn facts(&self) -> Result<Vec<Watched>, JournalError> {
        let mut facts: Vec<Watched> = Vec::new();
        loop {
            let after = facts.last().map(|fact| &fact.cursor);
            let page = self
                .journal
                .watched(&self.chain.spec.id, after, PAGE)
                .await?;
            let full = page.len() == PAGE;
            facts.extend(page);
            if !full {
                return Ok(facts);
            }
        }
    }

    /// A verdict for each block that there is an answer about.
    async fn verdicts(&self, facts: &[Watched], head: &Head, now: u64) -> HashMap<B256, Verdict> {
        let mut known = BTreeSet::new();
        let blocks: Vec<&Block> = facts
            .iter()
            .map(|fact| &fact.block)
            .filter(|block| known.insert(block.hash))
            .collect();
        let mut verdicts = HashMap::new();
        for blocks in blocks.chunks(AT_ONCE) {
            let asked = blocks.iter().map(|block| self.chain.reader.contains(block));
            let asked: Vec<_> = asked.collect();
            for (block, answer) in blocks.iter().zip(join_all(asked).await) {
                let Ok(on_chain) = answer else { continue };
                let missed = self.missing.get(&block.hash).copied();
                let sight = Sight {
                    block,
                    on_chain,
                    missed,
                };
                verdicts.insert(block.hash, sight.judge(&self.chain.spec, head, now));
            }
        }
        verdicts
    }

    /// Notes which blocks that were signed early are final by now: from now on the chain vouches for
    /// them.
    async fn mature(
        &self,
        facts: &[Watched],
        verdicts: &HashMap<B256, Verdict>,
        head: &Head,
    ) -> Result<(), JournalError> {
        for fact in facts.iter().filter(|fact| fact.early) {
            let there = verdicts.get(&fact.block.hash) == Some(&Verdict::Stands);
            if there && self.chain.spec.finality.met(&fact.block, head) {
                self.journal.settled(fact).await?;
            }
        }
        Ok(())
    }

    /// Does what the verdicts ask for.
    async fn settle(
        &mut self,
        facts: &[Watched],
        verdicts: &HashMap<B256, Verdict>,
        now: u64,
        look: &mut Look,
    ) -> Result<(), JournalError> {
        let id = self.chain.spec.id.clone();
        let mut missing = HashMap::new();
        let mut floor = None;
        let mut unanswered = BTreeSet::new();
        for fact in facts {
            let hash = fact.block.hash;
            let before = self.missing.get(&hash).copied();
            match verdicts.get(&hash) {
                Some(Verdict::Past) => continue,
                Some(Verdict::Stands) => {}
                Some(Verdict::Early) => missing.extend(before.map(|since| (hash, since))),
                Some(Verdict::Missing(since)) => {
                    missing.insert(hash, *since);
                }
                Some(Verdict::Gone) => {
                    let (key, block) = (&fact.statement, &fact.block);
                    let void = self.journal.reorged(key, &id, block, now).await?;
                    look.void += usize::from(void);
                    continue;
                }
                None => {
                    unanswered.insert(hash);
                    missing.extend(before.map(|since| (hash, since)));
                }
            }
            floor.get_or_insert(fact.block.number);
        }
        look.unanswered = unanswered.len();
        look.missing = missing.len();
        self.missing = missing;
        let highest = facts.last().map_or(0, |fact| fact.block.number);
        // Everything below it is past, or void and watched no more.
        let floor = floor.unwrap_or(highest.saturating_add(1));
        self.journal.unwatch(&id, floor).await?;
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
