//! What becomes of answers that are not the agreed one. It changes standings only: what was agreed
//! stays agreed, and what was not is not made so by asking again.

use std::{sync::Arc, time::Duration};

use futures::{
    future::{self, BoxFuture},
    stream::{FuturesUnordered, StreamExt},
};
use tokio::time::timeout;

use super::seat::{Seat, Weight};
use crate::{
    ChainReader, Kept, LARGE_EVENTS, Large, Provider, ReadError, aside,
    protocol::limits,
    types::{Block, Bytes, Transaction, WithdrawalStatus},
};

/// How long providers that were not needed are still heard.
pub const LATE: Duration = Duration::from_secs(15);
/// How long a provider that is asked once more may take.
const AGAIN: Duration = Duration::from_secs(5);

/// A question to one provider.
pub type Ask<T> = Arc<dyn Fn(&Provider) -> BoxFuture<'static, Result<T, ReadError>> + Send + Sync>;
/// What one provider answered.
pub type Said<T> = (Arc<Seat>, Result<T, ReadError>);
/// Answers under way.
pub type Open<T> = FuturesUnordered<BoxFuture<'static, Said<T>>>;

/// What an answer means beside the agreed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dissent {
    /// Both are true: one of the providers is behind.
    Honest,
    /// Both were true if the chain moved between two reads of one of the providers.
    Race,
    /// The providers are on different forks.
    Fork,
    Lie,
}

/// Something that providers vote about.
pub trait Answer: Large + Clone + Send + Sync + 'static {
    /// Whether they are one vote.
    fn same(&self, other: &Self) -> bool;
    /// Whether a quorum that says so proves it, whatever the others say.
    fn is_proof(&self) -> bool {
        true
    }

    /// What `self` means while `agreed`, which is not the same, is agreed.
    fn against(&self, agreed: &Self) -> Dissent;
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
impl Large for Bytes {}
impl Large for Option<Block> {}
impl Large for Sight {}

impl Answer for Transaction {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// A receipt that is not there yet when it is asked for, of a block that is when that is.
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

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
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

impl Answer for Bytes {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
    }
}

/// A block that one head settles on is the same for everybody on that head's chain.
impl Answer for Option<Block> {
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Lie
    }
}

/// Where a provider is about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It is on its chain.
    Holds,
    /// Its chain has not got there.
    Short,
    /// Its chain has another block there.
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

    /// Who has not got there says nothing of the block: one liar and an honest laggard would undo it.
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

/// An answer that counts, and who gave it.
pub struct Agreed<T: Answer> {
    pub what: &'static str,
    pub answer: Kept<T>,
    pub seats: Vec<Arc<Seat>>,
    pub ask: Ask<T>,
}

impl<T: Answer> Agreed<T> {
    /// Judges what else was said, and in the background what is still under way, so that a lie is
    /// found even when it came late.
    pub fn settle(self, said: Vec<Said<T>>, mut open: Open<T>) {
        let races = said.into_iter().filter_map(|said| self.judge(said));
        let races: Vec<_> = races.collect();
        if races.is_empty() && open.is_empty() {
            return;
        }
        let hear = async move {
            let late = async {
                while let Some(said) = open.next().await {
                    if let Some(seat) = self.judge(said) {
                        self.ask_again(&seat).await;
                    }
                }
            };
            let races = future::join_all(races.iter().map(|seat| self.ask_again(seat)));
            future::join(races, late).await;
        };
        tokio::spawn(timeout(LATE, hear));
    }

    /// Who has to be asked again before it is judged.
    fn judge(&self, (seat, said): Said<T>) -> Option<Arc<Seat>> {
        let dissent = match said.map(Kept::new) {
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

    /// Whoever now says what the others do, or has them say what it does, was in a race. Who merely has
    /// not got it, or has what they have not, may keep more or less of the past than they do: that is
    /// counted, and sets nobody aside, or strangers could with questions about old transactions.
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
        let weight = match said.against(&self.answer) {
            Dissent::Race => Weight::Unresolved,
            _ => Weight::Contradiction,
        };
        seat.dispute(self.what, weight);
    }

    async fn once_more(&self, seat: &Seat) -> Option<Kept<T>> {
        let answer = timeout(AGAIN, (self.ask)(&seat.provider)).await;
        answer.ok()?.ok().map(Kept::new)
    }
}

/// Whether two answers are one vote, compared beside the other tasks where they are large.
pub fn is_same<T: Answer>(one: &Kept<T>, other: &Kept<T>) -> bool {
    aside(one.is_large() && other.is_large(), || one.same(other))
}
