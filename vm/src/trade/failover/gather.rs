//! Asking providers: one after the other until one answers, or all at once. Knows nothing of what is asked.

use std::{future::Future, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Failover, greatest};
use crate::{ReadError, trade::TradingProvider};

/// How long a provider may take.
const DEADLINE: Duration = Duration::from_secs(8);
/// Once a quorum has answered alike, the others get as long again: at least, and at most.
const GRACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// What the others get where a quorum has answered, and not alike: one of them may lie and be quick.
const DOUBT: Duration = Duration::from_secs(2);
/// How long a provider may be silent before the next one is asked, too.
const HEDGE: Duration = Duration::from_millis(400);

/// Whether two answers have so much in common.
type Alike<T> = fn(&T, &T) -> bool;

/// How long those are waited for that are asked one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For an answer.
    pub answer: Duration,
    /// Before the next one is asked, too.
    pub silence: Duration,
}

/// The first answer. They are asked in their order: the next one where one fails or is silent for too long. The last
/// failure where all fail; `nobody` where there is nobody to ask.
pub(crate) async fn first<P, T, F: Future<Output = Result<T, ReadError>>>(
    mut asked: impl ExactSizeIterator<Item = P>,
    patience: Patience,
    nobody: ReadError,
    question: impl Fn(P) -> F,
) -> Result<T, ReadError> {
    let mut answers = FuturesUnordered::new();
    let mut failure = nobody;
    loop {
        if let Some(next) = asked.next() {
            answers.push(timeout(patience.answer, question(next)));
        } else if answers.is_empty() {
            return Err(failure);
        }
        let wait = match asked.len() {
            0 => patience.answer,
            _ => patience.silence,
        };
        match timeout(wait, answers.next()).await {
            Ok(Some(Ok(Ok(answer)))) => return Ok(answer),
            Ok(Some(Ok(Err(error)))) => failure = error,
            Ok(Some(Err(_))) => failure = late(),
            Ok(None) | Err(_) => {}
        }
    }
}

impl Failover {
    /// The first answer of any provider, for what is read again before it is acted on.
    pub async fn first<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<T, ReadError> {
        let patience = Patience {
            answer: DEADLINE,
            silence: HEDGE,
        };
        let nobody = self.short("answer", "no provider");
        first(self.providers.iter().cloned(), patience, nobody, question).await
    }

    /// The greatest number that a quorum claims at least.
    pub(crate) async fn number<T: Ord, F: Future<Output = Result<T, ReadError>>>(
        &self,
        what: &'static str,
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<T, ReadError> {
        let said = self.gather(what, T::eq, question).await?;
        let short = || self.short(what, "too few answers");
        greatest(said, self.required).ok_or_else(short)
    }

    /// What a quorum says in the same words.
    pub(crate) async fn agree<T: PartialEq, F: Future<Output = Result<T, ReadError>>>(
        &self,
        what: &'static str,
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<T, ReadError> {
        let mut said = self.gather(what, T::eq, question).await?;
        let same = |one: &T| said.iter().filter(|other| *other == one).count();
        let agreed = said.iter().position(|one| same(one) >= self.required);
        let agreed = agreed.ok_or_else(|| self.short(what, "no agreement"))?;
        Ok(said.swap_remove(agreed))
    }

    /// What all providers say that answer in time; an error when those are no quorum. Once a quorum is `alike` the others
    /// have little time left.
    pub(crate) async fn gather<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        what: &'static str,
        alike: Alike<T>,
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<Vec<T>, ReadError> {
        self.gather_near(what, (alike, alike), question).await
    }

    /// As [`Self::gather`]. Once a quorum is `near` but not `alike`, the others have half a second instead of two: used where
    /// a quick liar gains little.
    pub(crate) async fn gather_near<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        what: &'static str,
        (alike, near): (Alike<T>, Alike<T>),
        question: impl Fn(TradingProvider) -> F,
    ) -> Result<Vec<T>, ReadError> {
        let (said, failure) = self.all((alike, near), question).await;
        if said.len() >= self.required {
            return Ok(said);
        }
        // With one provider its own words say more.
        match failure {
            Some(error) if self.providers.len() == 1 => Err(error),
            Some(error) => Err(self.short(what, &error.to_string())),
            None => Err(self.short(what, "too few answers")),
        }
    }

    /// As [`Self::gather`], however few they are.
    pub(crate) async fn answers<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        alike: Alike<T>,
        question: impl Fn(TradingProvider) -> F,
    ) -> Vec<T> {
        self.all((alike, alike), question).await.0
    }

    async fn all<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        (alike, near): (Alike<T>, Alike<T>),
        question: impl Fn(TradingProvider) -> F,
    ) -> (Vec<T>, Option<ReadError>) {
        let started = Instant::now();
        let asked = self.providers.iter();
        let mut asked: FuturesUnordered<_> = asked
            .map(|provider| timeout(DEADLINE, question(provider.clone())))
            .collect();
        let (mut said, mut failure) = (Vec::new(), None);
        let mut until = started + DEADLINE;
        while let Ok(Some(answer)) = timeout_at(until, asked.next()).await {
            match answer {
                Ok(Ok(answer)) => said.push(answer),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some(late()),
            }
            if said.len() >= self.required {
                let wait = if self.is_settled(&said, alike) {
                    started.elapsed().clamp(GRACE.0, GRACE.1)
                } else if self.is_settled(&said, near) {
                    GRACE.1
                } else {
                    DOUBT
                };
                until = until.min(Instant::now() + wait);
            }
        }
        (said, failure)
    }

    /// Whether there is an answer to which so many are alike as have to agree, itself among them.
    fn is_settled<T>(&self, said: &[T], alike: Alike<T>) -> bool {
        let like = |one: &T| said.iter().filter(|other| alike(one, other)).count();
        said.iter().any(|one| like(one) >= self.required)
    }

    pub(crate) fn short(&self, what: &str, why: &str) -> ReadError {
        let (chain, required) = (&self.name, self.required);
        ReadError::Quorum(format!("{chain} needs {required}: {what}: {why}"))
    }
}

fn late() -> ReadError {
    ReadError::Unavailable("timed out".into())
}

#[cfg(test)]
mod tests;
