//! One provider in a quorum: its reads and failures, and whether its vote counts.

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

/// How long the first contradiction sets a provider aside; each further one doubles the time.
const ASIDE: Duration = Duration::from_secs(60);
const LONGEST_ASIDE: Duration = Duration::from_secs(3600);
/// How long a doubtful answer sets a provider aside: the node may be in a reorg.
const PAUSE: Duration = Duration::from_secs(10);
/// The time in good standing that cancels one contradiction.
const FORGIVEN: Duration = Duration::from_secs(3600);

/// How serious a disputed answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It differs from the agreed answer.
    Contradiction,
    /// It contradicts itself, while others agreed.
    Doubt,
    /// No answer was agreed: one of the providers is wrong.
    Unresolved,
}

/// A provider's state for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub name: Arc<str>,
    pub reads: u64,
    pub errors: u64,
    pub disputes: u64,
    /// Whether its votes do not count now.
    pub set_aside: bool,
    /// Whether the last read failed.
    pub failing: bool,
}

impl Health {
    pub fn well(&self) -> bool {
        !self.set_aside && !self.failing
    }
}

/// A provider with its standing in the quorum.
pub struct Seat {
    pub provider: Provider,
    chain: ChainId,
    /// The position in the operator's list, from 1; metrics use it, because hosts may be private.
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
    /// When the last exclusion for a contradiction ends.
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

    /// Records the end of a read. A question that does not fit the chain is none: whoever asks chooses it.
    pub fn answered<T>(&self, answer: &Result<T, ReadError>) {
        let kind = match answer {
            Ok(_) => None,
            Err(ReadError::Foreign(_)) => return,
            Err(ReadError::Unavailable(_)) => Some("unavailable"),
            Err(ReadError::TooLarge) => Some("too large"),
            Err(ReadError::Doubtful(_)) => Some("doubtful"),
            Err(ReadError::Quorum(_)) => Some("quorum"),
        };
        self.reads.fetch_add(1, Relaxed);
        self.standing(|standing| standing.failing = kind.is_some());
        let (Err(error), Some(kind)) = (answer, kind) else {
            return;
        };
        self.errors.fetch_add(1, Relaxed);
        let (chain, provider) = (&self.chain, &self.provider.name);
        tracing::debug!(%chain, provider = &**provider, %error, "provider failed");
        metrics::counter!(
            "intentd_provider_errors_total",
            "chain" => chain.to_string(), "provider" => self.position.to_string(), "kind" => kind
        )
        .increment(1);
    }

    /// Records an answer that other providers contradict.
    pub fn dispute(&self, what: &'static str, weight: Weight) {
        self.disputes.fetch_add(1, Relaxed);
        self.standing(|standing| standing.punish(weight));
        let (chain, provider) = (&self.chain, &self.provider.name);
        metrics::counter!(
            "intentd_provider_disputes_total",
            "chain" => chain.to_string(), "provider" => self.position.to_string()
        )
        .increment(1);
        // Last, so that the provider is already counted and set aside when the line appears.
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

    /// Runs `with` on the record of the provider's heads.
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
            // A question from before it was set aside belongs to the same contradiction.
            Weight::Contradiction if self.atoned_at.is_some_and(|at| now < at) => return,
            Weight::Contradiction => self.strike(now),
        };
        let until = now + time;
        if weight == Weight::Contradiction {
            self.atoned_at = Some(until);
        }
        self.aside_until = Some(self.aside_until.map_or(until, |now| now.max(until)));
    }

    /// Adds a contradiction, after good standing has cancelled earlier ones; returns how long it sets the provider
    /// aside.
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
