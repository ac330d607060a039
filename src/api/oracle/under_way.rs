//! Equal requests that are under way at the same time share one judgement, and so one reading of the chains.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use hyper::HeaderMap;
use sha2::{Digest, Sha256};
use vm::B256;

use super::kept::SharedAnswer;
use crate::http::{ApiError, Response, auth::KEY};

type Judgement = BoxFuture<'static, Result<SharedAnswer, ApiError>>;

/// What equal claims of one caller share while they are judged. A peer may be shown the caller's own header, whoever
/// that is here, so callers with other headers are others.
pub fn shared_by(claim: &B256, headers: &HeaderMap) -> B256 {
    let mut hash = Sha256::new();
    hash.update(claim);
    if let Some(shown) = headers.get(KEY) {
        hash.update([1]);
        hash.update(shown.as_bytes());
    }
    B256::from_slice(&hash.finalize())
}

/// The judgements under way, by [`shared_by`].
#[derive(Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<B256, WeakShared<Judgement>>>>);

impl UnderWay {
    /// The answer of the judgement that is under way for this claim of a caller; `judging` makes it where there is none. A judgement
    /// goes on while anybody waits for it. Its answer, a refusal too, is for those who wait: the next request is judged
    /// again.
    pub async fn join(
        &self,
        claim: B256,
        judging: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let answer = self.shared(claim, judging).await;
        answer.map(|whole| whole.response())
    }

    fn shared(
        &self,
        claim: B256,
        judging: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
    ) -> Shared<Judgement> {
        let mut all = self.lock();
        if let Some(shared) = all.get(&claim).and_then(WeakShared::upgrade) {
            metrics::counter!("intentd_judgements_shared_total").increment(1);
            return shared;
        }
        let entry = Entry {
            all: self.clone(),
            claim,
        };
        let judgement = async move {
            let _entry = entry;
            let answer = judging.await?;
            SharedAnswer::of(&answer).ok_or_else(|| ApiError::internal("an answer in parts"))
        };
        let shared = judgement.boxed().shared();
        if let Some(weak) = shared.downgrade() {
            all.insert(claim, weak);
        }
        shared
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<B256, WeakShared<Judgement>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A judgement's entry; taken out when the judgement ends or nobody waits for it any more.
struct Entry {
    all: UnderWay,
    claim: B256,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().remove(&self.claim);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use futures::future::join_all;
    use hyper::header::HeaderValue;
    use tokio::{sync::Notify, task::yield_now};

    use super::*;

    const CLAIM: B256 = B256::repeat_byte(1);

    /// Judges when told to, and counts.
    #[derive(Default)]
    struct Judge {
        go: Notify,
        judged: AtomicUsize,
    }

    impl Judge {
        async fn answer(
            self: Arc<Self>,
            answer: Result<u8, ApiError>,
        ) -> Result<Response, ApiError> {
            self.go.notified().await;
            self.judged.fetch_add(1, SeqCst);
            Response::json(&answer?)
        }
    }

    fn body(answer: Result<Response, ApiError>) -> Vec<u8> {
        answer.unwrap().body.bytes().unwrap().to_vec()
    }

    #[tokio::test]
    async fn equal_requests_share_one_judgement_and_others_do_not() {
        let (judge, under_way) = (Arc::new(Judge::default()), UnderWay::default());
        let equal = (0..32).map(|_| under_way.join(CLAIM, judge.clone().answer(Ok(7))));
        let other = under_way.join(B256::repeat_byte(2), judge.clone().answer(Ok(8)));
        let go = async {
            yield_now().await;
            judge.go.notify_waiters();
        };
        let (equal, other, ()) = tokio::join!(join_all(equal), other, go);
        assert!(equal.into_iter().all(|answer| body(answer) == b"7"));
        assert_eq!(body(other), b"8");
        assert_eq!(judge.judged.load(SeqCst), 2);
        assert!(under_way.lock().is_empty());
    }

    #[test]
    fn who_shows_another_key_is_another_caller() {
        let shown = |key: Option<&'static str>| {
            let headers = key.map(|key| (KEY, HeaderValue::from_static(key)));
            shared_by(&CLAIM, &HeaderMap::from_iter(headers))
        };
        let all = [
            shown(None),
            shown(Some("")),
            shown(Some("a")),
            shown(Some("b")),
        ];
        assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 4);
        assert_eq!(shown(Some("a")), shown(Some("a")));
    }

    #[tokio::test]
    async fn what_failed_is_judged_again() {
        let (judge, under_way) = (Arc::new(Judge::default()), UnderWay::default());
        let refused = || ApiError::refused("NO", "no");
        let both = (0..2).map(|_| under_way.join(CLAIM, judge.clone().answer(Err(refused()))));
        let go = async {
            yield_now().await;
            judge.go.notify_one();
        };
        let (both, ()) = tokio::join!(join_all(both), go);
        let is_refused = |answer: &Result<Response, ApiError>| {
            matches!(answer, Err(ApiError::Refused { code: "NO", .. }))
        };
        assert!(both.iter().all(is_refused));
        judge.go.notify_one();
        let again = under_way.join(CLAIM, judge.clone().answer(Ok(7))).await;
        assert_eq!(body(again), b"7");
        assert_eq!(judge.judged.load(SeqCst), 2);
    }

    #[tokio::test]
    async fn a_judgement_goes_on_without_its_first_caller_and_ends_with_its_last() {
        let (judge, under_way) = (Arc::new(Judge::default()), UnderWay::default());
        let mut first = Box::pin(under_way.join(CLAIM, judge.clone().answer(Ok(7))));
        let mut second = Box::pin(under_way.join(CLAIM, judge.clone().answer(Ok(8))));
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        judge.go.notify_one();
        assert_eq!(body(second.await), b"7");
        let mut alone = Box::pin(under_way.join(CLAIM, judge.clone().answer(Ok(9))));
        assert!(futures::poll!(&mut alone).is_pending());
        assert_eq!(under_way.lock().len(), 1);
        drop(alone);
        assert!(under_way.lock().is_empty());
        assert_eq!(judge.judged.load(SeqCst), 1);
    }
}
