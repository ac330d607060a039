//! Judges providers after a head was agreed: whose head nobody confirms, and which provider is late.

use std::sync::Arc;

use futures::{
    future,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    conduct::Conduct,
    dissent::{LATE, Open, Sight},
    heads::{CLOSE, CONFIRMATION, Heard},
    seat::{Seat, Weight},
};
use crate::{
    ReadError,
    evidence::{self, Noted},
    types::{Block, Head},
};

/// An agreed head, and the providers that were asked for it.
pub struct Audit {
    pub agreed: Block,
    pub seats: Vec<Arc<Seat>>,
    pub required: usize,
    /// Where the head is recorded.
    pub noted: Option<Noted>,
}

/// How a head relates to the agreed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    OtherFork,
    /// Higher than any other provider's head.
    Ahead,
    Unknown,
}

impl Audit {
    /// Judges the heads that have arrived, and in the background those that are still missing.
    pub fn start(self, heard: Heard, open: Open<Head>) {
        let now = Instant::now();
        let mut suspects = Vec::new();
        heard
            .seats
            .iter()
            .for_each(|seat| seat.conduct(Conduct::punctual));
        for (seat, head) in &heard.heads {
            let suspect = seat.conduct(|conduct| {
                if head.block == self.agreed {
                    conduct.fine();
                }
                head.block != self.agreed && conduct.look(now)
            });
            suspects.extend(suspect.then(|| (seat.clone(), head.block.clone())));
        }
        if suspects.is_empty() && open.is_empty() {
            return;
        }
        let run = async move {
            let suspects = suspects.iter().map(|(seat, head)| self.judge(seat, head));
            future::join(future::join_all(suspects), self.hear(heard.seats, open)).await;
        };
        tokio::spawn(timeout(LATE, run));
    }

    /// Judges the late heads that arrive in time.
    async fn hear(&self, mut heard: Vec<Arc<Seat>>, mut open: Open<Head>) {
        let deadline = Instant::now() + CONFIRMATION;
        while let Ok(Some((seat, head))) = timeout_at(deadline, open.next()).await {
            self.note(&seat, &head);
            seat.conduct(Conduct::punctual);
            if let Ok(head) = head {
                self.look(&seat, &head.block).await;
            }
            heard.push(seat);
        }
        let is_heard = |seat: &&Arc<Seat>| heard.iter().any(|heard| Arc::ptr_eq(heard, seat));
        for seat in self.seats.iter().filter(|seat| !is_heard(seat)) {
            self.late(seat);
        }
        while let Some((seat, head)) = open.next().await {
            self.note(&seat, &head);
            if let Ok(head) = head {
                self.look(&seat, &head.block).await;
            }
        }
    }

    /// Adds a late head to the evidence of a claim that is still under way.
    fn note(&self, seat: &Seat, head: &Result<Head, ReadError>) {
        let Some(noted) = &self.noted else {
            return;
        };
        noted.add(&seat.provider.name, || match head {
            Ok(head) => evidence::Said::Answer(evidence::digest(head)),
            Err(error) => evidence::Said::failed(error),
        });
    }

    /// A provider that is late again and again loses its vote for a while, if the others are enough.
    fn late(&self, seat: &Arc<Seat>) {
        let habit = seat.conduct(|conduct| conduct.late(Instant::now()));
        let others = self.seats.iter().filter(|other| !Arc::ptr_eq(other, seat));
        if habit && others.filter(|other| other.counts()).count() >= self.required {
            seat.dispute("late head", Weight::Doubt);
        }
    }

    async fn look(&self, seat: &Arc<Seat>, head: &Block) {
        if seat.conduct(|conduct| conduct.look(Instant::now())) {
            self.judge(seat, head).await;
        }
    }

    async fn judge(&self, seat: &Arc<Seat>, head: &Block) {
        let mut verdict = self.verdict(seat, head).await;
        let claim = seat.conduct(|conduct| conduct.claim().cloned());
        if let Some(claim) = claim.filter(|_| verdict == Verdict::Ahead) {
            match self.beside(seat, &claim).await {
                Verdict::Ahead | Verdict::OtherFork => {}
                Verdict::Fine => seat.conduct(Conduct::reached),
                Verdict::Unknown => verdict = Verdict::Unknown,
            }
        }
        let now = Instant::now();
        let weight = seat.conduct(|conduct| match verdict {
            Verdict::Unknown => None,
            Verdict::OtherFork => conduct.forked(now),
            Verdict::Ahead => conduct.ahead(head, now),
            Verdict::Fine => {
                conduct.fine();
                None
            }
        });
        if let Some(weight) = weight {
            seat.dispute("head", weight);
        }
    }

    async fn verdict(&self, seat: &Arc<Seat>, head: &Block) -> Verdict {
        if *head == self.agreed {
            return Verdict::Fine;
        }
        if head.number > self.agreed.number {
            match sight(seat, &self.agreed).await {
                Some(Sight::Other) => return Verdict::OtherFork,
                Some(Sight::Short) => return Verdict::Unknown,
                Some(Sight::Holds) if !self.is_far(head) => return Verdict::Fine,
                Some(Sight::Holds) | None => {}
            }
        }
        self.beside(seat, head).await
    }

    /// What the other providers say about `seat`'s head. A lower head that they know is fine.
    async fn beside(&self, seat: &Arc<Seat>, head: &Block) -> Verdict {
        let others = self.seats.iter().filter(|other| !Arc::ptr_eq(other, seat));
        let mut others: FuturesUnordered<_> = others.map(|other| sight(other, head)).collect();
        let (mut other, mut short) = (0, 0);
        while let Some(sight) = others.next().await {
            match sight {
                Some(Sight::Holds) => return Verdict::Fine,
                Some(Sight::Other) => other += 1,
                Some(Sight::Short) => short += 1,
                None => {}
            }
        }
        if other >= self.required {
            return Verdict::OtherFork;
        }
        if self.is_far(head) && other + short >= self.required {
            return Verdict::Ahead;
        }
        Verdict::Unknown
    }

    fn is_far(&self, head: &Block) -> bool {
        head.number.saturating_sub(self.agreed.number) > CLOSE
    }
}

async fn sight(seat: &Seat, block: &Block) -> Option<Sight> {
    let asked = Sight::of(&*seat.provider.reader, block);
    timeout(CONFIRMATION, asked).await.ok()?.ok()
}
