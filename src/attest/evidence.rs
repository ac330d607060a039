//! Why a statement is signed: the claim of the request that is under way and what was read for it, which the journal
//! keeps with the statement (guide: evidence).

use std::{
    collections::{BTreeSet, HashMap},
    mem::take,
    sync::{Mutex, PoisonError},
};

use alloy::primitives::{B256, Bytes};
use sha2::{Digest, Sha256};
use vm::{
    ChainId, Finality, LARGE_EVENTS, aside,
    evidence::{self, Question, Read, Recorder, Rule},
};

use super::statement::canonical;
use crate::store::rows::RowError;
pub use crate::store::rows::evidence::Evidence;

/// The most bytes of a claim, and of its evidence, that are kept for a caller without a key, who pays nothing for them.
const OF_STRANGERS: usize = 8 << 10;
/// The same for a caller with a key.
const OF_KEYS: usize = 256 << 10;
/// The same for a caller without a key where nothing was read: a key to sign such claims with costs nothing.
const OF_STRANGERS_UNREAD: usize = 2 << 10;

/// A request to the oracle.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Path and query as they were sent.
    pub target: String,
    pub body: Bytes,
    /// The label of the caller's key.
    pub key: Option<String>,
}

impl Claim {
    /// What requests share that are equal byte for byte, whoever sends them; `None` for one that is too large to keep.
    pub fn digest(&self) -> Option<B256> {
        if self.size() > self.most(true) {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update((self.target.len() as u64).to_be_bytes());
        hash.update(&self.target);
        hash.update(&self.body);
        Some(B256::from_slice(&hash.finalize()))
    }

    /// What those with this digest share whose callers have one key, or none, and so the same rights.
    pub fn of_caller(&self, digest: &B256) -> B256 {
        let mut hash = Sha256::new();
        hash.update(digest);
        hash.update([u8::from(self.key.is_some())]);
        hash.update(self.key.as_deref().unwrap_or_default());
        B256::from_slice(&hash.finalize())
    }

    /// The bytes of what its caller wrote.
    fn size(&self) -> usize {
        self.target.len() + self.body.len()
    }

    /// The most bytes that are kept for its caller; `read` says whether anything was read for it.
    fn most(&self, read: bool) -> usize {
        match (&self.key, read) {
            (Some(_), _) => OF_KEYS,
            (None, true) => OF_STRANGERS,
            (None, false) => OF_STRANGERS_UNREAD,
        }
    }

    /// The target without the query, in which a caller writes whatever it likes.
    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// Which daemon judges, and by which rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judge {
    pub version: String,
    /// The digest of the chains and of the settings by which it judges.
    pub configuration: B256,
    /// The own rule of each chain.
    pub finality: HashMap<ChainId, Finality>,
    /// Whether it records what it judges over evidence, as whoever judges without a daemon does.
    pub replays: bool,
}

impl Judge {
    /// The rules by which the blocks of `reads` counted as final, by chain: the chain's own, or the `statement`'s.
    fn rules(&self, reads: &[Read], statement: Option<&Rule>) -> Vec<Rule> {
        let judged = reads.iter().filter(|read| {
            let question = &read.question;
            matches!(
                question,
                Question::Transaction { .. } | Question::Settled { .. }
            )
        });
        let chains: BTreeSet<&ChainId> = judged.map(|read| &read.chain).collect();
        let rule = |chain: &ChainId| match statement {
            Some(rule) if rule.chain == *chain => Some(rule.clone()),
            _ => Some(Rule {
                chain: chain.clone(),
                finality: self.finality.get(chain)?.clone(),
                fast: false,
            }),
        };
        chains.into_iter().filter_map(rule).collect()
    }
}

/// What is known of a claim before it is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Its digest, where equal ones can be judged over its evidence.
    pub digest: Option<B256>,
    /// Whether no equal one was signed before.
    pub is_new: bool,
}

/// A claim that is judged now.
#[derive(Clone)]
struct UnderWay {
    claim: Claim,
    known: Known,
    reads: Recorder,
}

tokio::task_local! {
    static UNDER_WAY: UnderWay;
    /// The rules that the claim meets, in words; set only inside [`ruled`].
    static MET: Mutex<Vec<String>>;
}

/// Does `work`, which judges `claim`, and records what it reads.
pub async fn of<T>(claim: Claim, known: Known, work: impl Future<Output = T>) -> T {
    let under_way = UnderWay {
        claim,
        known,
        reads: Recorder::current(),
    };
    let reads = under_way.reads.clone();
    let work = evidence::during(&reads, work);
    UNDER_WAY.scope(under_way, work).await
}

/// Does `work`, which judges a claim. Returns with its answer the rules besides finality that the claim meets, in words.
pub async fn ruled<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    let noted = async {
        let answer = work.await;
        let met = |all: &Mutex<Vec<String>>| {
            take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner))
        };
        (answer, MET.try_with(met).unwrap_or_default())
    };
    MET.scope(Mutex::default(), noted).await
}

/// Notes rules that the claim that is judged now meets. Nothing is done where nobody wants to know them.
pub fn met(rules: impl FnOnce() -> Vec<String>) {
    let note = |all: &Mutex<Vec<String>>| {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(rules());
    };
    MET.try_with(note).unwrap_or_default();
}

/// Whether no claim was signed before that is equal to the one that is judged now.
pub fn is_new() -> bool {
    let is_new = UNDER_WAY.try_with(|under_way| under_way.known.is_new);
    is_new.unwrap_or_default()
}

/// Whether the claim that is judged now is of a caller with a key.
pub fn has_key() -> bool {
    let keyed = UNDER_WAY.try_with(|under_way| under_way.claim.key.is_some());
    keyed.unwrap_or_default()
}

/// The transactions that were read so far for the claim that is judged now, as they stand in keys, with their chains.
pub fn transactions() -> Vec<(String, String)> {
    let named = |read: &Read| {
        let transaction = read.question.named()?;
        Some((read.chain.to_string(), canonical(transaction)))
    };
    let all = UNDER_WAY.try_with(|under_way| under_way.reads.pick(named));
    all.unwrap_or_default()
}

/// The rows that tell why a statement is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The encoded [`Evidence`].
    pub row: Vec<u8>,
    /// The digest of the claim, where equal ones can be judged over the evidence.
    pub claim: Option<B256>,
}

/// The evidence of the claim that is judged now; `None` where nobody said which claim. Where it is larger than is kept
/// for the caller, it keeps digests of the transactions. `rule` is the statement's own.
pub fn now(judge: &Judge, rule: Option<&Rule>) -> Result<Option<Recorded>, RowError> {
    let Ok(under_way) = UNDER_WAY.try_with(Clone::clone) else {
        return Ok(None);
    };
    let UnderWay {
        claim,
        known,
        reads,
    } = under_way;
    reads.with(|reads| {
        let most = claim.most(!reads.is_empty());
        let is_kept = claim.size() <= most;
        let (target, body) = match is_kept {
            true => (&*claim.target, String::from_utf8_lossy(&claim.body)),
            false => (claim.path(), "".into()),
        };
        let events: usize = reads.iter().map(|read| read.answer.events()).sum();
        let mut evidence = Evidence {
            target: target.to_owned(),
            body: body.into_owned(),
            key: claim.key.clone(),
            version: judge.version.clone(),
            configuration: judge.configuration,
            rules: judge.rules(reads, rule),
            reads: Vec::new(),
        };
        aside(events > LARGE_EVENTS, || {
            // They are lent, since a copy would only be encoded. The next try needs them.
            std::mem::swap(&mut evidence.reads, reads);
            let row = evidence.encode();
            std::mem::swap(&mut evidence.reads, reads);
            let row = row?;
            if row.len() <= most {
                let claim = known.digest.filter(|_| is_kept);
                return Ok(Some(Recorded { row, claim }));
            }
            evidence.reads.clone_from(reads);
            for read in &mut evidence.reads {
                read.answer.thin();
            }
            let row = evidence.encode()?;
            Ok(Some(Recorded { row, claim: None }))
        })
    })
}

#[cfg(test)]
mod tests {
    use vm::evidence::{Answer, note};

    use super::*;

    const PATH: &str = "/attestations/signatures/nonce-mapping/v2";

    fn claim(query: usize, body: usize, key: Option<&str>) -> Claim {
        Claim {
            target: format!("{PATH}?{}", "x".repeat(query)),
            body: "y".repeat(body).into_bytes().into(),
            key: key.map(str::to_owned),
        }
    }

    /// What is recorded for a claim for which a chain was read, or none.
    async fn recorded(claim: &Claim, read: bool) -> (Evidence, Option<B256>) {
        let work = async {
            if read {
                note(|| Read {
                    chain: ChainId::new("base"),
                    question: Question::Head { fresh: false },
                    answer: Answer::Contains(true),
                    required: 1,
                    votes: Vec::new(),
                });
            }
            now(&Judge::default(), None)
        };
        let known = Known {
            digest: claim.digest(),
            is_new: false,
        };
        let recorded = of(claim.clone(), known, work).await.unwrap().unwrap();
        (Evidence::decode(&recorded.row).unwrap(), recorded.claim)
    }

    #[tokio::test]
    async fn what_a_caller_wrote_is_kept_as_a_whole_or_not_at_all() {
        let long = 3 << 10;
        for (query, body, key, read, kept) in [
            (9, 900, None, false, true),
            (9, long, None, false, false),
            (long, 900, None, false, false),
            (9, long, None, true, true),
            (long, long, None, true, true),
            (2 * long, long, None, true, false),
            (2 * long, long, Some("k"), true, true),
            (2 * long, long, Some("k"), false, true),
            (100 * long, 9, Some("k"), true, false),
        ] {
            let what = format!("{query} {body} {key:?} {read}");
            let claim = claim(query, body, key);
            let (evidence, digest) = recorded(&claim, read).await;
            let (target, text) = match kept {
                true => (&*claim.target, "y".repeat(body)),
                false => (PATH, String::new()),
            };
            assert_eq!((&*evidence.target, evidence.body), (target, text), "{what}");
            assert_eq!(digest.is_some(), kept, "{what}");
            assert_eq!(evidence.reads.is_empty(), !read, "{what}");
        }
    }

    /// Also where they are too large to keep as a whole.
    #[tokio::test]
    async fn what_was_read_is_there_for_the_next_try() {
        for words in [1_u32, 1_000] {
            let words: Vec<_> = (0..words)
                .flat_map(|n| Sha256::digest(n.to_be_bytes()))
                .collect();
            let size = words.len();
            let work = async {
                note(|| Read {
                    chain: ChainId::new("base"),
                    question: Question::Head { fresh: false },
                    answer: Answer::View(words.into()),
                    required: 1,
                    votes: Vec::new(),
                });
                let each = [(); 2].map(|()| now(&Judge::default(), None));
                each.map(|recorded| recorded.unwrap().unwrap())
            };
            let claim = claim(9, 9, None);
            let known = Known {
                digest: claim.digest(),
                is_new: false,
            };
            let [first, second] = of(claim, known, work).await;
            assert_eq!(first, second);
            let evidence = Evidence::decode(&second.row).unwrap();
            assert!(matches!(&evidence.reads[0].answer, Answer::View(all) if all.len() == size));
            assert_eq!(second.claim.is_some(), size < OF_STRANGERS);
        }
    }
}
