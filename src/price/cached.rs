//! A feed whose answers are shared for seconds, so that many questions make one request.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alloy::primitives::U256;
use async_trait::async_trait;
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, sleep_until, timeout},
};

use super::feed::{Doubt, Feed, Observation};

/// Seconds for which an answer, good or bad, is not asked for again.
const FRESH: u64 = 5;

/// How long others wait for the answer while one of them asks again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Seconds for which an answer serves others while one of them asks again for longer than [`PATIENCE`].
const LINGER: u64 = 30;

/// Between two questions to a feed, at least, where answers of before serve nobody.
const APART: Duration = Duration::from_secs(1);

/// Seconds of answers that say how restless a price is.
const WINDOW: u64 = 600;

const MILLION: U256 = U256::from_limbs([1_000_000, 0, 0, 0]);

/// One asks at a time. A feed that fails is believed with the last price that was accepted, as long as the
/// feed itself would believe it. What was refused ([`Cached::accept`] was not said) moves nothing later.
pub struct Cached {
    feed: Box<dyn Feed>,
    last: Mutex<Last>,
    turn: Turn<()>,
}

#[derive(Default)]
struct Last {
    /// Its last answer.
    price: Option<Observation>,
    /// The last of its answers that made a price.
    accepted: Option<Observation>,
    /// What it answered of which a price was made, and when last; no older than [`WINDOW`].
    history: VecDeque<(u64, U256)>,
    asked: Option<Asked>,
    /// When it was last asked, also by who did not wait for the answer.
    begun: Option<Instant>,
}

/// A question to the feed.
struct Asked {
    /// Unix seconds.
    at: u64,
    began: Instant,
    /// What it held against answering.
    doubt: Option<Doubt>,
}

impl Cached {
    pub fn new(feed: Box<dyn Feed>) -> Self {
        Self {
            feed,
            last: Mutex::default(),
            turn: Turn::default(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A price was made of what it told.
    pub fn accept(&self, observed: &Observation, now: u64) {
        self.last().accept(observed, now);
    }

    /// The last answer, if it is younger than `age` seconds.
    fn known(&self, age: u64, now: u64) -> Option<Result<Observation, Doubt>> {
        let last = self.last();
        let asked = last.asked.as_ref()?;
        if asked.at.abs_diff(now) >= age {
            return None;
        }
        let price = last.price.filter(|price| self.feed.believable(price, now));
        match (price, &asked.doubt) {
            (Some(price), _) => Some(Ok(price)),
            (None, Some(doubt)) => Some(Err(doubt.clone())),
            (None, None) => None,
        }
    }

    /// An answer to a question that was asked later than `since`: what others were told before
    /// refuses nobody.
    pub async fn anew(&self, since: Instant, now: u64) -> Result<Observation, Doubt> {
        let _turn = self.turn.lock().await;
        let answered = self.last().asked.as_ref().map(|asked| asked.began);
        if answered.is_some_and(|began| began > since)
            && let Some(known) = self.known(u64::MAX, now)
        {
            return known;
        }
        let begun = self.last().begun;
        if let Some(begun) = begun {
            sleep_until(begun + APART).await;
        }
        self.ask(now).await
    }

    /// For whoever has the turn.
    async fn ask(&self, now: u64) -> Result<Observation, Doubt> {
        let began = Instant::now();
        self.last().begun = Some(began);
        let answer = self.feed.read(now).await;
        let mut last = self.last();
        last.asked = Some(Asked {
            at: now,
            began,
            doubt: answer.as_ref().err().cloned(),
        });
        let answer = answer.map(|observed| last.heard(observed, now));
        if answer.is_err() {
            last.price = last.accepted;
        }
        match (answer, last.price) {
            (Err(_), Some(price)) if self.feed.believable(&price, now) => Ok(price),
            (answer, _) => answer,
        }
    }
}

impl Last {
    /// Keeps an answer; it with the swing from those before it of which prices were made.
    fn heard(&mut self, observed: Observation, now: u64) -> Observation {
        self.history
            .retain(|(at, _)| now.saturating_sub(*at) < WINDOW);
        let before = self.history.iter().map(|(_, usd)| *usd);
        let prices = || before.clone().chain([observed.usd]);
        let least = prices().min().unwrap_or(observed.usd);
        let most = prices().max().unwrap_or(observed.usd);
        let apart = (most - least).saturating_mul(MILLION).checked_div(least);
        let swing = apart.and_then(|apart| u64::try_from(apart).ok());
        let observed = Observation {
            swing: swing.unwrap_or(u64::MAX).max(observed.swing),
            ..observed
        };
        self.price = Some(observed);
        observed
    }

    fn accept(&mut self, observed: &Observation, now: u64) {
        self.accepted = Some(*observed);
        match self.history.back_mut() {
            Some((at, usd)) if *usd == observed.usd => *at = now.max(*at),
            _ => self.history.push_back((now, observed.usd)),
        }
    }
}

#[async_trait]
impl Feed for Cached {
    async fn read(&self, now: u64) -> Result<Observation, Doubt> {
        if let Some(known) = self.known(FRESH, now) {
            return known;
        }
        // A price of before is no price: who asks for several at once would have one of each.
        let _turn = match timeout(PATIENCE, self.turn.lock()).await {
            Ok(turn) => turn,
            Err(_) => match self.known(LINGER, now) {
                Some(Ok(price)) => return Ok(price),
                _ => self.turn.lock().await,
            },
        };
        if let Some(known) = self.known(FRESH, now) {
            return known;
        }
        self.ask(now).await
    }

    fn believable(&self, observed: &Observation, now: u64) -> bool {
        self.feed.believable(observed, now)
    }
}

#[cfg(test)]
mod tests;
