//! Agreement on a head: the highest block that enough providers can know, confirmed by as many with its parent and its
//! time. It waits only for the providers that it needs; a background task finds out afterwards which ones were wrong.

use std::{
    cmp::Reverse,
    pin::pin,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{self, Either},
    stream::{FuturesOrdered, FuturesUnordered, StreamExt},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Quorum,
    audit::Audit,
    dissent::{Open, Said},
    seat::Seat,
};
use crate::{
    ReadError,
    evidence::{self, Question, Replay},
    types::{B256, Block, Head},
};

/// How long a read of the head waits for more providers while the first heads are far apart.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most time for a provider to confirm a head: a fraction of the time to read one.
pub const CONFIRMATION: Duration = Duration::from_secs(2);
/// Heads at most this many blocks apart are one chain at different moments.
pub const CLOSE: u64 = 4;

/// A head, and the provider that showed it.
pub type Shown = (Arc<Seat>, Head);

/// The answers so far.
#[derive(Default)]
pub struct Heard {
    pub heads: Vec<Shown>,
    /// All providers that answered, also those with an error.
    pub seats: Vec<Arc<Seat>>,
}

impl Heard {
    fn add(&mut self, (seat, head): Said<Head>) {
        self.seats.push(seat.clone());
        self.heads.extend(head.ok().map(|head| (seat, head)));
    }
}

enum Step {
    Agreed(Head),
    Heard(Said<Head>),
    Over,
}

impl Quorum {
    /// The `required`-th highest head, once as many providers confirm it.
    pub(super) async fn agree(&self, fresh: bool) -> Result<Head, ReadError> {
        if let Some(replay) = Replay::current() {
            let read = replay.read(&self.chain, &Question::Head { fresh })?;
            evidence::note(|| read.clone());
            return match read.answer {
                evidence::Answer::Head(head) => Ok(head),
                _ => Err(replay.other(&self.chain)),
            };
        }
        let ask = move |provider: &crate::Provider| {
            let reader = provider.reader.clone();
            async move {
                match fresh {
                    true => reader.fresh_head().await,
                    false => reader.head().await,
                }
            }
            .boxed()
        };
        let (seats, mut open) = self.ask(&ask)?;
        let deadline = Instant::now() + PATIENCE;
        let mut heard = Heard::default();
        loop {
            self.hear(&mut open, &mut heard, deadline).await;
            match self.step(&mut open, &heard.heads).await {
                Step::Agreed(head) => {
                    let noted = evidence::note(|| self.agreed(fresh, &head, &heard));
                    let audit = Audit {
                        agreed: head.block.clone(),
                        seats,
                        required: self.required,
                        noted,
                    };
                    audit.start(heard, open);
                    return Ok(head);
                }
                Step::Heard(said) => heard.add(said),
                Step::Over => {
                    let count = heard.heads.len();
                    return Err(self.short(&format!("{count} heads, none agreed")));
                }
            }
        }
    }

    /// An agreed head as evidence. A provider's digest is that of its own head, which may be higher or lower.
    fn agreed(&self, fresh: bool, head: &Head, heard: &Heard) -> evidence::Read {
        let said = |seat: &Arc<Seat>| {
            let own = |(other, _): &&Shown| Arc::ptr_eq(other, seat);
            let answered = heard.seats.iter().any(|other| Arc::ptr_eq(other, seat));
            match heard.heads.iter().find(own) {
                Some((_, head)) => evidence::Said::Answer(self.digest_of(head)),
                None if answered => evidence::Said::Failed("no head".into()),
                None if seat.counts() => evidence::Said::Late,
                None => evidence::Said::SetAside,
            }
        };
        let answer = evidence::Answer::Head(head.clone());
        self.evidence(Question::Head { fresh }, answer, said)
    }

    /// The digest of a head. Most providers show the same one for many claims.
    fn digest_of(&self, head: &Head) -> B256 {
        let last = self.recorded_head.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(known, _)| known == head);
        let known = known.map(|(_, digest)| *digest);
        known.unwrap_or_else(|| {
            let digest = evidence::digest(head);
            *last = Some((head.clone(), digest));
            digest
        })
    }

    /// Confirms a head or takes one more answer, whichever comes first, so that a slow confirmation does not delay
    /// the other answers.
    async fn step(&self, open: &mut Open<Head>, heads: &[Shown]) -> Step {
        let confirm = pin!(self.confirm(heads));
        let said = match future::select(confirm, open.next()).await {
            Either::Left((Some(head), _)) => return Step::Agreed(head),
            Either::Left((None, said)) => said.await,
            Either::Right((Some(said), _)) => Some(said),
            Either::Right((None, confirm)) => match confirm.await {
                Some(head) => return Step::Agreed(head),
                None => None,
            },
        };
        said.map_or(Step::Over, Step::Heard)
    }

    /// Collects heads until there are enough, and more while no quorum of them is close together with the same tag.
    async fn hear(&self, open: &mut Open<Head>, heard: &mut Heard, deadline: Instant) {
        loop {
            let next = if heard.heads.len() < self.required {
                open.next().await
            } else if self.is_close(&heard.heads) && self.is_tagged(&heard.heads) {
                // Takes answers that are already there, and waits for none.
                open.next().now_or_never().flatten()
            } else {
                timeout_at(deadline, open.next()).await.ok().flatten()
            };
            match next {
                Some(said) => heard.add(said),
                None => return,
            }
        }
    }

    /// Whether a quorum of heads is close together: then a further one changes little.
    fn is_close(&self, heads: &[Shown]) -> bool {
        let mut numbers: Vec<u64> = heads.iter().map(|(_, head)| head.block.number).collect();
        numbers.sort_unstable();
        let mut quorums = numbers.windows(self.required);
        quorums.any(|some| some[some.len() - 1] - some[0] <= CLOSE)
    }

    /// Whether a quorum of heads tags the same block, or none; else few providers would decide.
    fn is_tagged(&self, heads: &[Shown]) -> bool {
        let tags = || heads.iter().map(|(_, head)| head.tagged);
        let alike = |tag| tags().filter(|other| *other == tag).count();
        tags().any(|tag| alike(tag) >= self.required)
    }

    /// The highest of the heads that enough providers can know, if as many confirm it.
    async fn confirm(&self, heads: &[Shown]) -> Option<Head> {
        let at = self.required - 1;
        let mut tags: Vec<u64> = heads.iter().filter_map(|(_, head)| head.tagged).collect();
        tags.sort_unstable_by_key(|number| Reverse(*number));
        let mut numbers: Vec<u64> = heads.iter().map(|(_, head)| head.block.number).collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        let highest = *numbers.get(at)?;
        let mut blocks: Vec<(&Block, usize)> = Vec::new();
        let known = heads.iter().map(|(_, head)| &head.block);
        for block in known.filter(|block| block.number <= highest) {
            match blocks.iter_mut().find(|(known, _)| *known == block) {
                Some((_, times)) => *times += 1,
                None => blocks.push((block, 1)),
            }
        }
        blocks.sort_by_key(|(block, times)| Reverse((block.number, *times)));
        let asked = blocks.iter().map(|(block, _)| self.confirmed(block, heads));
        let mut asked: FuturesOrdered<_> = asked.collect();
        for (block, _) in &blocks {
            if asked.next().await? {
                return Some(Head {
                    block: (*block).clone(),
                    tagged: tags.get(at).copied(),
                });
            }
        }
        None
    }

    async fn confirmed(&self, block: &Block, heads: &[Shown]) -> bool {
        let can_know = heads
            .iter()
            .filter(|(_, head)| head.block.number >= block.number);
        let (same, other): (Vec<_>, Vec<_>) = can_know.partition(|(_, head)| head.block == *block);
        let votes = other.into_iter().map(|(seat, _)| {
            let reader = seat.provider.reader.clone();
            async move { timeout(CONFIRMATION, reader.contains(block)).await }
        });
        let mut votes: FuturesUnordered<_> = votes.collect();
        let mut confirmations = same.len();
        while confirmations < self.required && confirmations + votes.len() >= self.required {
            if matches!(votes.next().await, Some(Ok(Ok(true)))) {
                confirmations += 1;
            }
        }
        confirmations >= self.required
    }
}
