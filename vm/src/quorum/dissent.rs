//! Handles answers that differ from the agreed one. It changes only the providers' standing: an agreed answer stays
//! agreed, and asking again cannot create an agreement.

use std::{sync::Arc, time::Duration};

use futures::{
    future::{self, BoxFuture},
    stream::{FuturesUnordered, StreamExt},
};
use tokio::time::timeout;

use super::{
    recorded::Recorded,
    seat::{Seat, Weight},
};
use crate::{
    ChainReader, Kept, LARGE_EVENTS, Large, Provider, ReadError, aside,
    evidence::{self, Noted},
    protocol::limits,
    types::{B256, Block, Bytes, Transaction, WithdrawalStatus},
};

/// How long the quorum takes late answers of providers that it did not need.
pub const LATE: Duration = Duration::from_secs(15);
/// The most time for a provider that is asked once more.
const AGAIN: Duration = Duration::from_secs(5);

/// A question to one provider.
pub type Ask<T> = Arc<dyn Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>> + Send + Sync>;
/// What one provider answered.
pub type Said<T> = (Arc<Seat>, Result<T, ReadError>);
/// Pending answers.
pub type Open<T> = FuturesUnordered<BoxFuture<'static, Said<T>>>;

/// What a different answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dissent {
    /// Both answers are true: one of the providers is behind.
    Honest,
    /// Both answers may be true: the chain may have moved between two reads of one provider.
    Race,
    /// The providers are on different forks.
    Fork,
    Lie,
}

/// An answer on which providers vote.
pub trait Answer: Recorded + Large + Clone + Send + Sync + 'static {
    /// Whether two answers are the same vote.
    fn same(&self, other: &Self) -> bool;
    /// Whether a quorum with this answer proves it, whatever the other providers say.
    fn is_proof(&self) -> bool {
        true
    }

    /// What `self` means when `agreed`, a different answer, is agreed.
    fn against(&self, agreed: &Self) -> Dissent;

    /// How serious it is that `self` differs from `agreed` when all are asked once more.
    fn again(&self, agreed: &Self) -> Weight {
        match self.against(agreed) {
            Dissent::Race => Weight::Unresolved,
            _ => Weight::Contradiction,
        }
    }
}

impl Large for Transaction {
    fn is_large(&self) -> bool {
        matches!(self, Self::Succeeded(receipt) if limits::events(receipt) > LARGE_EVENTS)
    }

    fn clear(&mut self) {
        *self = Self::Missing;
    }
}

impl Large for WithdrawalStatus {}
impl Large for u64 {}
impl Large for bool {}
impl Large for Bytes {}
impl Large for Option<Block> {}
impl Large for Option<Bytes> {}
impl Large for Sight {}

impl Answer for Transaction {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// A receipt may not be there yet when it is read, although its block is when that is read.
    fn against(&self, agreed: &Self) -> Dissent {
        match (self, agreed) {
            (Self::Missing, _) | (_, Self::Missing) => Dissent::Race,
            _ => Dissent::Lie,
        }
    }
}

impl Answer for WithdrawalStatus {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// Some chains show their state only as it is now: a withdrawal may end between two reads, or be in doubt again for a
    /// while.
    fn against(&self, agreed: &Self) -> Dissent {
        match (self, agreed) {
            (Self::Pending, _) | (_, Self::Pending) => Dissent::Race,
            _ => Dissent::Lie,
        }
    }

    /// What ended stays so.
    fn again(&self, _: &Self) -> Weight {
        Weight::Contradiction
    }
}

impl Answer for u64 {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
    }
}

/// Whether outputs are what is said of them.
impl Answer for bool {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// A transaction comes to one provider before another.
    fn against(&self, _: &Self) -> Dissent {
        Dissent::Race
    }
}

impl Answer for Bytes {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
    }
}

/// The block that one head settles on is the same for all providers on that head's chain.
impl Answer for Option<Block> {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
    }
}

/// The key of an owner.
impl Answer for Option<Bytes> {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// It is read as of now, and some owners can change theirs between two reads.
    fn against(&self, _: &Self) -> Dissent {
        Dissent::Race
    }
}

/// A provider's knowledge of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The block is on the provider's chain.
    Holds,
    /// The provider's chain is shorter.
    Short,
    /// The provider's chain has another block at that height.
    Other,
}

impl Sight {
    /// Asks `reader` about `block`.
    pub async fn of(reader: &dyn ChainReader, block: &Block) -> Result<Self, ReadError> {
        if reader.contains(block).await? {
            return Ok(Self::Holds);
        }
        // Without a head there is no proof of another fork.
        let reached = reader.head().await;
        let reached = reached.is_ok_and(|head| head.block.number >= block.number);
        Ok(if reached { Self::Other } else { Self::Short })
    }
}

impl Answer for Sight {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// A shorter chain proves nothing about the block: one liar and one honest laggard would deny it.
    fn is_proof(&self) -> bool {
        *self != Self::Short
    }

    fn against(&self, agreed: &Self) -> Dissent {
        match (self, agreed) {
            (Self::Short, _) | (_, Self::Short) => Dissent::Honest,
            _ => Dissent::Fork,
        }
    }
}

/// The agreed answer, and the providers that gave it.
pub struct Agreed<T: Answer> {
    pub what: &'static str,
    pub answer: Kept<T>,
    pub seats: Vec<Arc<Seat>>,
    pub ask: Ask<T>,
    /// Where it is recorded, with its digest.
    pub noted: Option<(Noted, B256)>,
}

impl<T: Answer> Agreed<T> {
    /// Judges the other answers, and in the background the pending ones, so that it finds a lie that comes late.
    pub fn settle(self, said: Vec<Said<T>>, mut open: Open<T>) {
        let said = said.into_iter();
        let races = said.filter_map(|(seat, said)| self.judge(seat, said.map(Kept::new)));
        let races: Vec<_> = races.collect();
        if races.is_empty() && open.is_empty() {
            return;
        }
        let hear = async move {
            let late = async {
                while let Some((seat, said)) = open.next().await {
                    let said = said.map(Kept::new);
                    self.note(&seat, &said);
                    if let Some(seat) = self.judge(seat, said) {
                        self.ask_again(&seat).await;
                    }
                }
            };
            let races = future::join_all(races.iter().map(|seat| self.ask_again(seat)));
            future::join(races, late).await;
        };
        tokio::spawn(timeout(LATE, hear));
    }

    /// Adds a late answer to the evidence of a claim that is still under way.
    fn note(&self, seat: &Seat, said: &Result<Kept<T>, ReadError>) {
        let Some((noted, agreed)) = &self.noted else {
            return;
        };
        noted.add(&seat.provider.name, || match said {
            Ok(said) if is_same(said, &self.answer) => evidence::Said::Answer(*agreed),
            Ok(said) => evidence::Said::Answer(aside(said.is_large(), || said.shown().digest())),
            Err(error) => evidence::Said::failed(error),
        });
    }

    /// The provider to ask again before it is judged.
    fn judge(&self, seat: Arc<Seat>, said: Result<Kept<T>, ReadError>) -> Option<Arc<Seat>> {
        let dissent = match said {
            Ok(said) if is_same(&said, &self.answer) => return None,
            Ok(said) => said.against(&self.answer),
            Err(ReadError::Doubtful(_)) => Dissent::Fork,
            Err(_) => return None,
        };
        match dissent {
            Dissent::Honest => None,
            Dissent::Race => Some(seat),
            Dissent::Fork => {
                seat.dispute(self.what, Weight::Doubt);
                None
            }
            Dissent::Lie => {
                seat.dispute(self.what, Weight::Contradiction);
                None
            }
        }
    }

    /// Judges a provider after a second answer. It was in a race if it now agrees with the others, or the others with
    /// it. A provider that lacks the answer, or has one that the others lack, may keep a different part of the past:
    /// the quorum counts that but sets nobody aside, or strangers could cause it with questions about old
    /// transactions.
    async fn ask_again(&self, seat: &Arc<Seat>) {
        let Some(said) = self.once_more(seat).await else {
            return seat.dispute(self.what, Weight::Doubt);
        };
        if is_same(&said, &self.answer) {
            return;
        }
        let others = self.seats.iter().map(|other| self.once_more(other));
        let others = future::join_all(others).await;
        if others.iter().flatten().any(|other| is_same(other, &said)) {
            return;
        }
        seat.dispute(self.what, said.again(&self.answer));
    }

    async fn once_more(&self, seat: &Seat) -> Option<Kept<T>> {
        let answer = timeout(AGAIN, (self.ask)(&seat.provider)).await;
        answer.ok()?.ok().map(Kept::new)
    }
}

/// Whether two answers are the same vote; compares large ones on another thread.
pub fn is_same<T: Answer>(one: &Kept<T>, other: &Kept<T>) -> bool {
    aside(one.is_large() && other.is_large(), || one.same(other))
}
