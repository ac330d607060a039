//! Answers that were judged over evidence, kept to be given again without another judgement while their basis holds.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use moka::sync::Cache;
use vm::B256;

use crate::{
    attest::journal::Journal,
    http::{Body, Response},
    store::Preconditions,
};

/// The most bytes of answers that are kept; the least used ones are let go of.
const MOST: u64 = 32 << 20;
/// What an answer takes besides its bytes, about.
const EACH: usize = 1 << 10;

/// Kept answers, by the digests of their claims.
pub struct KeptAnswers(Cache<B256, Arc<KeptAnswer>>);

struct KeptAnswer {
    answer: SharedAnswer,
    basis: Preconditions,
}

/// An answer that is there as a whole, to be given to several.
#[derive(Clone)]
pub struct SharedAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl SharedAnswer {
    /// `None` for an answer in parts.
    pub fn of(answer: &Response) -> Option<Self> {
        Some(Self {
            status: answer.status,
            headers: answer.headers.clone(),
            body: answer.body.bytes()?.clone(),
        })
    }

    pub fn response(&self) -> Response {
        Response {
            status: self.status,
            headers: self.headers.clone(),
            body: Body::Whole(self.body.clone()),
        }
    }
}

impl Default for KeptAnswers {
    fn default() -> Self {
        let size = |_: &B256, kept: &Arc<KeptAnswer>| {
            let bytes = EACH + kept.answer.body.len() + kept.basis.size();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(MOST).weigher(size).build())
    }
}

impl KeptAnswers {
    /// The answer to the claim with this digest, if its basis holds now.
    pub async fn find(&self, claim: &B256, journal: &Journal) -> Option<Response> {
        let kept = self.0.get(claim)?;
        if journal.still_holds(&kept.basis).await.ok()? {
            return Some(kept.answer.response());
        }
        self.0.invalidate(claim);
        None
    }

    /// Keeps an answer that depends on `basis` alone.
    pub fn keep(&self, claim: B256, answer: &Response, basis: Preconditions) {
        if let Some(answer) = SharedAnswer::of(answer) {
            self.0.insert(claim, Arc::new(KeptAnswer { answer, basis }));
        }
    }
}

#[cfg(test)]
mod tests {
    use vm::ChainId;

    use super::*;
    use crate::{
        attest::{
            basis,
            statement::{Statement, Verdict},
        },
        sign::raw::RawKey,
        store::memory::MemoryStore,
    };

    #[tokio::test]
    async fn an_answer_is_given_again_until_its_basis_changes() {
        let store = Arc::new(MemoryStore::new());
        let key = RawKey::nobody().unwrap();
        let journal = Journal::new(store.clone(), Arc::new(key));
        let (chain, id) = (ChainId::new("base"), B256::repeat_byte(1));
        let statement = Statement::withdrawal(&chain, id, Verdict::Expired, id);
        journal.sign(&statement, 1).await.unwrap();
        let (_, basis) = basis::of(journal.sign(&statement, 2)).await;
        let basis = basis.unwrap();
        let answer = Response::json(&"signed").unwrap();
        let answer = answer.with("x-oracle-signers", "1/1".try_into().unwrap());
        let kept = KeptAnswers::default();
        let find = async |claim: u8| {
            let found = kept.find(&B256::repeat_byte(claim), &journal).await?;
            Some((found.status, found.headers, found.body.bytes().cloned()))
        };
        assert!(find(7).await.is_none());
        kept.keep(B256::repeat_byte(7), &answer, basis.clone());
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.body.bytes().cloned();
        assert_eq!(find(7).await, Some((status, headers, body)));
        assert!(find(8).await.is_none());
        journal.halt(&chain, "a test", 3).await.unwrap();
        assert!(find(7).await.is_none());
        let (_, halt) = journal.halts().await.unwrap().remove(0);
        assert!(journal.clear(&chain, &halt.id()).await.unwrap());
        // It was let go of.
        assert!(find(7).await.is_none());
        kept.keep(B256::repeat_byte(7), &answer, basis.clone());
        assert!(find(7).await.is_some());
        journal.void(&statement.key, "a test", 4).await.unwrap();
        assert!(find(7).await.is_none());
        // A journal that cannot be read has no answer.
        journal.sign(&statement, 1).await.unwrap();
        kept.keep(B256::repeat_byte(7), &answer, basis);
        assert!(find(7).await.is_some());
        store.fail("a test");
        assert!(find(7).await.is_none());
    }
}
