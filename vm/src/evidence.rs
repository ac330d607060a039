//! What was read of chains for one claim, and which providers said so: recorded while the claim is judged, kept with
//! what was signed, and read again in place of the chains.
//!
//! Every read of a quorum that ends with an answer is one [`Read`]. The digest of an answer is the sha256 of its compact
//! JSON, as the evidence itself shows it, so that anybody can compute it again.
//!
//! A store keeps these types, those of [`types`](crate::types), and [`Finality`] for ever: a change of one is a new
//! format of its rows.

mod replay;

use std::{
    fmt,
    future::Future,
    io::{BufWriter, Write},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::replay::Replay;
use crate::{
    ReadError,
    finality::{Finality, FinalityTag},
    protocol::{limits, text},
    types::{Address, B256, Block, Bytes, ChainId, Head, Transaction, TxRef, WithdrawalStatus},
};

/// Bytes of JSON that are hashed at a time.
const PIECES: usize = 1 << 10;
/// Characters that are kept of why a provider failed.
const REASON: usize = 200;

/// One question to a chain, with the agreed answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Read {
    pub chain: ChainId,
    pub question: Question,
    pub answer: Answer,
    /// How many equal answers were required.
    pub required: u32,
    /// What each provider said, as far as it was known when the reads were taken. Empty where an earlier claim read the
    /// answer and it never changes.
    pub votes: Vec<Vote>,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// The tip; a fresh one is read from the network, another is tracked.
    Head { fresh: bool },
    /// Whether the chain has the block.
    Contains(Block),
    /// The transaction as seen from the block with hash `head`.
    Transaction { transaction: TxRef, head: B256 },
    /// The final block below the block with hash `head`.
    Settled { head: B256 },
    /// Where the withdrawal stands at the block with hash `block`.
    Withdrawal {
        encoded: Bytes,
        transaction: Option<TxRef>,
        block: B256,
    },
    /// The number of transactions of `owner` up to the block with hash `block`.
    Sequence { owner: Address, block: B256 },
    /// A contract call at the block with hash `block`.
    View {
        to: Address,
        data: Bytes,
        block: B256,
    },
    /// The key that signs for `owner`, as the chain has it now.
    OwnerKey { owner: Address },
    /// Whether the outputs that a withdrawal spends are what is `said` of them, in the family's encoding.
    Outputs { said: Bytes },
}

/// What the providers agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Head(Head),
    Contains(bool),
    Transaction(Box<Transaction>),
    Settled(Option<Block>),
    Withdrawal(WithdrawalStatus),
    Sequence(u64),
    View(Bytes),
    /// An answer that is too large to keep; its digest.
    Large(B256),
    OwnerKey(Option<Bytes>),
    Outputs(bool),
}

/// What one provider said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vote {
    /// The provider's name: a host, with a number where there are several.
    pub provider: Arc<str>,
    pub said: Said,
}

/// The kinds of what a provider says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Said {
    /// The digest of its answer.
    Answer(B256),
    /// Its failure.
    Failed(Arc<str>),
    /// It had not answered when the reads were taken: enough others had.
    Late,
    /// Its votes do not count for a while, and it was not asked.
    SetAside,
}

impl Said {
    /// A provider's failure in few words: it may quote what the provider answered, and evidence is kept for ever.
    pub fn failed(error: &ReadError) -> Self {
        Self::Failed(text::first(&error.to_string(), REASON).into())
    }
}

/// The rule by which the blocks of a chain counted as final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    pub chain: ChainId,
    pub finality: Finality,
    /// Whether it is of a tier of fast mode, not the chain's own.
    pub fast: bool,
}

impl Rule {
    /// The name of the chain's own tag, where that is required.
    pub fn tag(&self) -> Option<&'static str> {
        self.finality.tag.map(|tag| match tag {
            FinalityTag::Safe => "safe",
            FinalityTag::Finalized => "finalized",
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finality {
            blocks, seconds, ..
        } = self.finality;
        write!(f, "{}: {blocks} blocks, {seconds} s", self.chain)?;
        let fast = self.fast.then_some("fast");
        let mut further = self.tag().into_iter().chain(fast);
        further.try_for_each(|word| write!(f, ", {word}"))
    }
}

impl Question {
    pub fn transaction(transaction: &TxRef, head: &Head) -> Self {
        Self::Transaction {
            transaction: transaction.clone(),
            head: head.block.hash,
        }
    }

    pub fn settled(head: &Head) -> Self {
        Self::Settled {
            head: head.block.hash,
        }
    }

    pub fn withdrawal(encoded: &Bytes, transaction: Option<&TxRef>, block: &Block) -> Self {
        Self::Withdrawal {
            encoded: encoded.clone(),
            transaction: transaction.cloned(),
            block: block.hash,
        }
    }

    pub fn sequence(owner: &Address, block: &Block) -> Self {
        Self::Sequence {
            owner: owner.clone(),
            block: block.hash,
        }
    }

    pub fn view(to: &Address, data: &Bytes, block: &Block) -> Self {
        Self::View {
            to: to.clone(),
            data: data.clone(),
            block: block.hash,
        }
    }

    pub fn owner_key(owner: &Address) -> Self {
        Self::OwnerKey {
            owner: owner.clone(),
        }
    }

    pub fn outputs(said: &Bytes) -> Self {
        Self::Outputs { said: said.clone() }
    }

    /// The transaction that is asked about.
    pub fn named(&self) -> Option<&TxRef> {
        match self {
            Self::Transaction { transaction, .. } => Some(transaction),
            Self::Withdrawal { transaction, .. } => transaction.as_ref(),
            _ => None,
        }
    }

    /// What is asked about, in words.
    pub fn subject(&self) -> &'static str {
        match self {
            Self::Head { .. } => "the head",
            Self::Contains(_) => "a block",
            Self::Transaction { .. } => "the transaction",
            Self::Settled { .. } => "the final block",
            Self::Withdrawal { .. } => "the withdrawal",
            Self::Sequence { .. } => "the sequence",
            Self::View { .. } => "a contract's state",
            Self::OwnerKey { .. } => "the owner's key",
            Self::Outputs { .. } => "the outputs to spend",
        }
    }
}

impl Answer {
    /// The digest of the answer.
    pub fn digest(&self) -> B256 {
        match self {
            Self::Large(digest) => *digest,
            Self::Head(head) => digest(head),
            Self::Contains(holds) => digest(holds),
            Self::Transaction(transaction) => digest(transaction),
            Self::Settled(block) => digest(block),
            Self::Withdrawal(status) => digest(status),
            Self::Sequence(number) => digest(number),
            Self::View(bytes) => digest(bytes),
            Self::OwnerKey(key) => digest(key),
            Self::Outputs(same) => digest(same),
        }
    }

    /// The number of events that it has.
    pub fn events(&self) -> usize {
        match self {
            Self::Transaction(found) => match &**found {
                Transaction::Succeeded(receipt) => limits::events(receipt),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Keeps the digest of a transaction only.
    pub fn thin(&mut self) {
        if matches!(self, Self::Transaction(_)) {
            *self = Self::Large(self.digest());
        }
    }
}

/// The digest of an answer: the sha256 of its compact JSON.
pub fn digest(answer: &impl Serialize) -> B256 {
    let mut hash = Sha256::new();
    // JSON is written in pieces of a few bytes; the hash takes them together.
    let mut pieces = BufWriter::with_capacity(PIECES, &mut hash);
    let written = serde_json::to_writer(&mut pieces, answer).is_ok() && pieces.flush().is_ok();
    drop(pieces);
    // Nothing that is read of a chain fails to become JSON; what would has the digest of nothing, which no answer has.
    match written {
        true => B256::from_slice(&hash.finalize()),
        false => B256::ZERO,
    }
}

tokio::task_local! {
    static READS: Arc<Mutex<Vec<Read>>>;
}

/// The reads of a claim so far.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Read>>>);

impl Recorder {
    /// The reads that are recorded now; new ones where none are.
    pub fn current() -> Self {
        READS
            .try_with(|reads| Self(reads.clone()))
            .unwrap_or_default()
    }

    /// The reads in the order in which they ended.
    pub fn all(&self) -> Vec<Read> {
        self.pick(|read| Some(read.clone()))
    }

    /// What `pick` takes of the reads, in their order.
    pub fn pick<T>(&self, pick: impl Fn(&Read) -> Option<T>) -> Vec<T> {
        self.with(|reads| reads.iter().filter_map(pick).collect())
    }

    /// Does `work` with the reads, which it may change. Nothing is added to them meanwhile.
    pub fn with<T>(&self, work: impl FnOnce(&mut Vec<Read>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Does `work` while `reads` records what it reads. What `work` spawns is not recorded.
pub async fn during<T>(reads: &Recorder, work: impl Future<Output = T>) -> T {
    READS.scope(reads.0.clone(), work).await
}

/// Records a read, where reads are recorded. What is said later of the same question can be added.
pub fn note(read: impl FnOnce() -> Read) -> Option<Noted> {
    let reads = READS.try_with(Arc::clone).ok()?;
    let read = read();
    let mut all = reads.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.len();
    all.push(read);
    drop(all);
    let reads = Arc::downgrade(&reads);
    Some(Noted { reads, at })
}

/// A recorded read. It keeps no reads: those of a claim that has ended are gone.
#[derive(Clone, Debug)]
pub struct Noted {
    reads: Weak<Mutex<Vec<Read>>>,
    at: usize,
}

impl Noted {
    /// Adds what `provider` said after enough others had answered. Who has taken the reads before does not have it.
    pub fn add(&self, provider: &str, said: impl FnOnce() -> Said) {
        let Some(reads) = self.reads.upgrade() else {
            return;
        };
        let said = said();
        let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
        let votes = reads.get_mut(self.at).map(|read| &mut read.votes);
        let mut votes = votes.into_iter().flatten();
        if let Some(vote) = votes.find(|vote| *vote.provider == *provider) {
            vote.said = said;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_compact_json_however_long_it_is() {
        for length in [0, 1, PIECES, 3 * PIECES + 1] {
            let bytes = Bytes::from(vec![7; length]);
            let text = serde_json::to_vec(&bytes).unwrap();
            let digest = Answer::View(bytes).digest();
            assert_eq!(digest[..], Sha256::digest(&text)[..], "{length}");
            assert_ne!(digest[..], Sha256::digest(&text[1..])[..], "{length}");
        }
    }

    /// Something that is no JSON has a digest that no answer has.
    #[test]
    fn what_is_no_json_has_the_digest_of_nothing() {
        let unnamed = std::collections::HashMap::from([(vec![1], 2)]);
        assert_eq!(digest(&unnamed), B256::ZERO);
    }
}
