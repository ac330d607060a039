//! The memory for answers, over all providers of the process. Most answers are small and free; larger ones
//! wait for a permit, of which one provider never has more than its share, so that a provider that
//! answers at length costs the others nothing but the rare permit for the largest.

use std::sync::{Arc, LazyLock};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::PostError;
use crate::protocol::limits::{PROVIDER_ANSWER, STRANGERS_ANSWER};

/// Bytes of an answer that waits for nothing.
const SMALL: usize = STRANGERS_ANSWER;
/// Bytes of an answer that waits for one of the many permits.
const MEDIUM: usize = 8 << 20;
/// Answers between [`SMALL`] and [`MEDIUM`] at one time: 512 MiB.
const MANY: usize = 64;
/// Of those, one provider's.
const MANY_EACH: usize = 16;
/// Answers up to [`PROVIDER_ANSWER`] at one time: 512 MiB. One provider has one.
const FEW: usize = 8;

static MEDIUM_PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MANY)));
static LARGE_PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(FEW)));

/// What one provider may take.
pub struct Share {
    medium: Arc<Semaphore>,
    large: Arc<Semaphore>,
    longest: usize,
}

/// The room that an answer has by now. Who waits for more holds only permits that those before it in the
/// queue do not wait for: own before common, medium before large.
#[derive(Debug, Default)]
pub struct Room {
    size: usize,
    held: Vec<OwnedSemaphorePermit>,
}

impl Share {
    /// Of answers that have `longest` bytes at most.
    pub fn new(longest: usize) -> Self {
        Self {
            medium: Arc::new(Semaphore::new(MANY_EACH)),
            large: Arc::new(Semaphore::new(1)),
            longest: longest.min(PROVIDER_ANSWER),
        }
    }

    /// Makes `room` large enough for `length` bytes, waiting until `deadline` at most.
    pub async fn room(
        &self,
        length: usize,
        room: &mut Room,
        deadline: Instant,
    ) -> Result<(), PostError> {
        if length > self.longest {
            return Err(PostError::TooLarge);
        }
        for (size, own, common) in [
            (MEDIUM, &self.medium, &*MEDIUM_PERMITS),
            (PROVIDER_ANSWER, &self.large, &*LARGE_PERMITS),
        ] {
            let below = if size == MEDIUM { SMALL } else { MEDIUM };
            if length <= below || room.size >= size {
                continue;
            }
            for permits in [own, common] {
                let permit = timeout_at(deadline, permits.clone().acquire_owned()).await;
                let permit = permit.ok().and_then(Result::ok).ok_or_else(full)?;
                room.held.push(permit);
            }
            room.size = size;
        }
        Ok(())
    }
}

fn full() -> PostError {
    PostError::Failed("no memory for an answer of this size in time".into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn room(share: &Share, length: usize) -> Result<Room, PostError> {
        let mut room = Room::default();
        let deadline = Instant::now() + Duration::from_secs(1);
        share.room(length, &mut room, deadline).await?;
        Ok(room)
    }

    /// One test: the common permits are the process'.
    #[tokio::test(start_paused = true)]
    async fn a_provider_has_its_share_and_all_together_have_so_much() {
        let share = Share::new(usize::MAX);
        let too_large = room(&share, PROVIDER_ANSWER + 1).await;
        assert_eq!(too_large.unwrap_err(), PostError::TooLarge);
        // Small answers wait for nobody.
        let mut small = Vec::new();
        for _ in 0..200 {
            small.push(room(&share, SMALL).await.unwrap());
        }
        let first = room(&share, PROVIDER_ANSWER).await.unwrap();
        assert_eq!(room(&share, MEDIUM + 1).await.unwrap_err(), full());
        assert!(room(&share, MEDIUM).await.is_ok());
        // Others have permits of their own, until all are taken.
        let others: Vec<_> = (0..FEW).map(|_| Share::new(PROVIDER_ANSWER)).collect();
        let mut held = Vec::new();
        for other in &others[1..] {
            held.push(room(other, PROVIDER_ANSWER).await.unwrap());
        }
        assert_eq!(room(&others[0], PROVIDER_ANSWER).await.unwrap_err(), full());
        drop(first);
        assert!(room(&others[0], PROVIDER_ANSWER).await.is_ok());
        // An answer that grows takes each permit once.
        let mut growing = Room::default();
        let deadline = Instant::now() + Duration::from_secs(1);
        for length in [1, SMALL + 1, MEDIUM, MEDIUM + 1, PROVIDER_ANSWER] {
            let grown = share.room(length, &mut growing, deadline).await;
            assert_eq!(grown, Ok(()), "{length}");
        }
        assert_eq!(growing.held.len(), 4);
    }

    #[tokio::test]
    async fn what_strangers_ask_takes_no_permit() {
        let share = Share::new(STRANGERS_ANSWER);
        let most = room(&share, STRANGERS_ANSWER).await.unwrap();
        assert!(most.held.is_empty());
        let more = room(&share, STRANGERS_ANSWER + 1).await;
        assert_eq!(more.unwrap_err(), PostError::TooLarge);
        // An answer that grows ends there as well, whatever it said of its length.
        let mut growing = Room::default();
        let deadline = Instant::now() + Duration::from_secs(1);
        for (length, expected) in [
            (1, Ok(())),
            (STRANGERS_ANSWER, Ok(())),
            (STRANGERS_ANSWER + 1, Err(PostError::TooLarge)),
        ] {
            let grown = share.room(length, &mut growing, deadline).await;
            assert_eq!(grown, expected, "{length}");
        }
        assert!(growing.held.is_empty());
    }
}
