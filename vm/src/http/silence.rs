//! What an overloaded provider asks for with `Retry-After`: to be asked nothing for some time.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use tokio::time::Instant;

use super::PostError;

/// The longest silence that an answer buys.
const MAX: Duration = Duration::from_secs(30);

/// Until when a provider is not asked.
#[derive(Default)]
pub(super) struct Silence(Mutex<Option<Instant>>);

impl Silence {
    /// An error: the provider is not to be asked now.
    pub fn check(&self) -> Result<(), PostError> {
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_some_and(|until| Instant::now() < until) {
            return Err(PostError::Failed("asked to wait".into()));
        }
        *until = None;
        Ok(())
    }

    /// Begins when an answer of 429 or 503 asks for it, in seconds.
    pub fn heed(&self, status: StatusCode, headers: &HeaderMap) {
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) && let Some(delay) = asked(headers)
        {
            let until = Instant::now() + delay.min(MAX);
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
    }
}

fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds.ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(delay: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, delay.parse().unwrap())])
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_ends_when_it_was_asked_for_and_after_half_a_minute_at_most() {
        let silence = Silence::default();
        for (delay, lasts) in [("2", 2), (" 30 ", 30), ("86400", 30)] {
            silence.heed(StatusCode::TOO_MANY_REQUESTS, &headers(delay));
            tokio::time::advance(Duration::from_secs(lasts) - Duration::from_millis(1)).await;
            assert!(silence.check().is_err(), "{delay}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(silence.check(), Ok(()), "{delay}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_overloaded_provider_begins_a_silence() {
        let silence = Silence::default();
        silence.heed(StatusCode::OK, &headers("20"));
        silence.heed(StatusCode::INTERNAL_SERVER_ERROR, &headers("20"));
        silence.heed(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new());
        silence.heed(StatusCode::SERVICE_UNAVAILABLE, &headers("soon"));
        assert_eq!(silence.check(), Ok(()));
        silence.heed(StatusCode::SERVICE_UNAVAILABLE, &headers("20"));
        assert!(silence.check().is_err());
    }
}
