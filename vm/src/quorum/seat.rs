//! One provider's standing in a quorum: what it was asked, how it failed, and whether it counts.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::conduct::Conduct;
use crate::{Provider, ReadError, types::ChainId};

/// The first time aside for a contradiction; each further one doubles it.
const ASIDE: Duration = Duration::from_secs(60);
const LONGEST_ASIDE: Duration = Duration::from_secs(3600);
/// Time aside for an answer that was doubtful by itself: a node can be caught in a reorg.
const PAUSE: Duration = Duration::from_secs(10);
/// Time in good standing that makes up for one contradiction.
const FORGIVEN: Duration = Duration::from_secs(3600);

/// How bad a disputed answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Another answer than the agreed one.
    Contradiction,
    /// An answer that contradicts itself, while others agreed.
    Doubt,
    /// No answer was agreed: somebody is wrong.
    Unresolved,
}

/// Where a provider stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub name: Arc<str>,
    pub reads: u64,
    pub errors: u64,
    pub disputes: u64,
    /// Its votes do not count at the moment.
    pub set_aside: bool,
    /// The last read failed.
    pub failing: bool,
}

impl Health {
    pub fn well(&self) -> bool {
        !self.set_aside && !self.failing
    }
}

/// See the module.
pub struct Seat {
    pub provider: Provider,
    chain: ChainId,
    /// The place in the operator's list, from 1: metrics name it, because hosts may be private.
    position: usize,
    reads: AtomicU64,
    errors: AtomicU64,
    disputes: AtomicU64,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Standing {
    aside_until: Option<Instant>,
    contradictions: u32,
    /// The end of the last time aside for a contradiction.
    atoned_at: Option<Instant>,
    failing: bool,
    conduct: Conduct,
}

impl Seat {
    pub fn new(chain: &ChainId, position: usize, provider: Provider) -> Self {
        Self {
            provider,
            chain: chain.clone(),
            position,
            reads: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            disputes: AtomicU64::new(0),
            standing: Mutex::default(),
        }
    }

    /// Whether its vote counts now.
    pub fn counts(&self) -> bool {
        self.standing(|standing| {
            standing
                .aside_until
                .is_none_or(|until| Instant::now() >= until)
        })
    }

    /// Records that a read ended.
    pub fn answered<T>(&self, answer: &Result<T, ReadError>) {
        self.reads.fetch_add(1, Relaxed);
        self.standing(|standing| standing.failing = answer.is_err());
        let Err(error) = answer else {
            return;
        };
        self.errors.fetch_add(1, Relaxed);
        let (chain, provider) = (&self.chain, &self.provider.name);
        tracing::debug!(%chain, provider = &**provider, %error, "provider failed");
        let kind = match error {
            ReadError::Unavailable(_) => "unavailable",
            ReadError::TooLarge => "too large",
            ReadError::Doubtful(_) => "doubtful",
            ReadError::Quorum(_) => "quorum",
        };
        metrics::counter!(
            "intentd_provider_errors_total",
            "chain" => chain.to_string(), "provider" => self.position.to_string(), "kind" => kind
        )
        .increment(1);
    }

    /// Records an answer that others contradict.
    pub fn dispute(&self, what: &'static str, weight: Weight) {
        self.disputes.fetch_add(1, Relaxed);
        self.standing(|standing| standing.punish(weight));
        let (chain, provider) = (&self.chain, &self.provider.name);
        metrics::counter!(
            "intentd_provider_disputes_total",
            "chain" => chain.to_string(), "provider" => self.position.to_string()
        )
        .increment(1);
        // Last: whoever reads the line finds the provider counted and set aside.
        tracing::warn!(%chain, provider = &**provider, what, ?weight, "provider disputed");
    }

    pub fn health(&self) -> Health {
        Health {
            name: self.provider.name.clone(),
            reads: self.reads.load(Relaxed),
            errors: self.errors.load(Relaxed),
            disputes: self.disputes.load(Relaxed),
            set_aside: !self.counts(),
            failing: self.standing(|standing| standing.failing),
        }
    }

    /// What its heads were like.
    pub fn conduct<T>(&self, with: impl FnOnce(&mut Conduct) -> T) -> T {
        self.standing(|standing| with(&mut standing.conduct))
    }

    fn standing<T>(&self, with: impl FnOnce(&mut Standing) -> T) -> T {
        with(&mut self.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Standing {
    fn punish(&mut self, weight: Weight) {
        let now = Instant::now();
        let time = match weight {
            Weight::Unresolved => return,
            Weight::Doubt => PAUSE,
            // What was asked before it was set aside is part of the same lie.
            Weight::Contradiction if self.atoned_at.is_some_and(|at| now < at) => return,
            Weight::Contradiction => self.strike(now),
        };
        let until = now + time;
        if weight == Weight::Contradiction {
            self.atoned_at = Some(until);
        }
        self.aside_until = Some(self.aside_until.map_or(until, |now| now.max(until)));
    }

    /// One more contradiction, less what good standing made up for: the time aside that it costs.
    fn strike(&mut self, now: Instant) -> Duration {
        let good = self.atoned_at.map(|at| now.saturating_duration_since(at));
        let forgiven = good.unwrap_or_default().as_secs() / FORGIVEN.as_secs();
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        let before = self.contradictions.saturating_sub(forgiven);
        self.contradictions = before.saturating_add(1);
        let doubled = ASIDE.saturating_mul(1 << before.min(16));
        doubled.min(LONGEST_ASIDE)
    }
}
