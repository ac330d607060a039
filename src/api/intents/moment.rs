//! What providers answered a moment ago: many who ask the same together cost one question. The first one asks
//! and the others wait for it; a failure is an answer as well.

use std::{future::Future, hash::Hash, sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::{sync::Mutex, time::Instant};

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
/// Questions that are remembered, each for some seconds.
const MOST: u64 = 4_096;
/// See [`MOST`].
const REMEMBERED: Duration = Duration::from_secs(60);

type Told<V> = Arc<Mutex<Option<(Instant, V)>>>;

/// See the module.
pub struct Moment<K, V>(Cache<K, Told<V>>);

impl<K, V> Default for Moment<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(MOST).time_to_live(REMEMBERED);
        Self(cache.build())
    }
}

impl<K, V> Moment<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// What `ask` was answered a moment ago, or is answered now.
    pub async fn of(&self, key: K, ask: impl Future<Output = V>) -> V {
        let told = self.0.get_with(key, Told::default);
        let mut told = told.lock().await;
        let fresh = told.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
        if let Some((_, value)) = fresh {
            return value.clone();
        }
        let value = ask.await;
        *told = Some((Instant::now(), value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_the_same_together_cost_one_question() {
        let (moment, asked) = (Moment::<u8, u64>::default(), AtomicU64::new(0));
        let ask = |key: u8| {
            moment.of(key, async {
                sleep(Duration::from_millis(100)).await;
                asked.fetch_add(1, Relaxed) + 1
            })
        };
        let all = futures::future::join_all((0..50).map(|_| ask(1))).await;
        assert!(all.iter().all(|answer| *answer == 1), "{all:?}");
        sleep(FRESH - Duration::from_millis(1)).await;
        assert_eq!((ask(1).await, ask(2).await), (1, 2));
        // What is older is asked for again.
        assert_eq!(ask(1).await, 3);
        // Whoever leaves while he asks keeps nobody waiting.
        sleep(FRESH).await;
        let gone = tokio::time::timeout(Duration::from_millis(50), ask(1)).await;
        assert!(gone.is_err());
        assert_eq!(ask(1).await, 4);
    }
}
