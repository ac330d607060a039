//! A feed that is asked once for many questions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Mutex as Turn;

use super::{
    Price,
    feed::{Doubt, Feed},
};

/// Seconds for which an answer, good or bad, is not asked for again.
const FRESH: u64 = 5;

/// Seconds for which an answer serves others while one of them asks again.
const LINGER: u64 = 30;

/// One asks at a time. A feed that fails is believed with its last price as long as the feed itself
/// would believe it.
pub struct Cached {
    feed: Box<dyn Feed>,
    last: Mutex<Last>,
    turn: Turn<()>,
}

#[derive(Clone, Default)]
struct Last {
    price: Option<Price>,
    /// When the feed was asked, and what it held against answering then.
    asked: Option<(u64, Option<Doubt>)>,
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

    /// The last answer, if it is younger than `age` seconds.
    fn known(&self, age: u64, now: u64) -> Option<Result<Price, Doubt>> {
        let last = self.last();
        let (asked, doubt) = last.asked.as_ref()?;
        if asked.abs_diff(now) >= age {
            return None;
        }
        let price = last.price.filter(|price| self.feed.believable(price, now));
        match (price, doubt) {
            (Some(price), _) => Some(Ok(price)),
            (None, Some(doubt)) => Some(Err(doubt.clone())),
            (None, None) => None,
        }
    }
}

#[async_trait]
impl Feed for Cached {
    async fn read(&self, now: u64) -> Result<Price, Doubt> {
        if let Some(known) = self.known(FRESH, now) {
            return known;
        }
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => match self.known(LINGER, now) {
                Some(Ok(price)) => return Ok(price),
                _ => self.turn.lock().await,
            },
        };
        if let Some(known) = self.known(FRESH, now) {
            return known;
        }
        let answer = self.feed.read(now).await;
        let mut last = self.last();
        last.asked = Some((now, answer.as_ref().err().cloned()));
        if let Ok(price) = answer {
            last.price = Some(price);
        }
        match (answer, last.price) {
            (Err(_), Some(price)) if self.feed.believable(&price, now) => Ok(price),
            (answer, _) => answer,
        }
    }

    fn believable(&self, price: &Price, now: u64) -> bool {
        self.feed.believable(price, now)
    }
}

#[cfg(test)]
mod tests;
