//! The answers of one vote, grouped by what they say.

use std::sync::Arc;

use super::{
    copy,
    dissent::{Answer, Said, is_same},
    seat::Seat,
};
use crate::{Kept, ReadError, aside, evidence};

/// An answer, and the providers that gave it.
pub type Group<T> = (Kept<T>, Vec<Arc<Seat>>);

/// The answers so far.
pub struct Votes<T: Answer> {
    pub groups: Vec<Group<T>>,
    pub errors: Vec<(Arc<Seat>, ReadError)>,
}

impl<T: Answer> Votes<T> {
    pub fn new() -> Self {
        Self {
            groups: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub fn add(&mut self, (seat, answer): Said<T>) {
        match answer {
            Ok(answer) => {
                let answer = Kept::new(answer);
                let mut groups = self.groups.iter_mut();
                match groups.find(|(said, _)| is_same(said, &answer)) {
                    Some((_, seats)) => seats.push(seat),
                    None => self.groups.push((answer, vec![seat])),
                }
            }
            Err(error) => self.errors.push((seat, error)),
        }
    }

    /// Takes out an answer that enough providers gave: `required`, or all of `seats` where it is no proof.
    pub fn agreed(&mut self, required: usize, seats: usize) -> Option<Group<T>> {
        let agreed = |(said, of): &Group<T>| {
            let needed = if said.is_proof() { required } else { seats };
            of.len() >= needed
        };
        let found = self.groups.iter().position(agreed)?;
        Some(self.groups.swap_remove(found))
    }

    /// What the provider of `seat` said, for the evidence of the agreed answer with this `digest` that `agreed` gave.
    pub fn said(
        &self,
        (digest, agreed): (crate::B256, &[Arc<Seat>]),
        seat: &Arc<Seat>,
    ) -> evidence::Said {
        let has = |seats: &[Arc<Seat>]| seats.iter().any(|other| Arc::ptr_eq(other, seat));
        if has(agreed) {
            return evidence::Said::Answer(digest);
        }
        if let Some((other, _)) = self.groups.iter().find(|(_, seats)| has(seats)) {
            let other = aside(other.is_large(), || other.shown().digest());
            return evidence::Said::Answer(other);
        }
        let mut errors = self.errors.iter();
        match errors.find(|(other, _)| Arc::ptr_eq(other, seat)) {
            Some((_, error)) => evidence::Said::failed(error),
            None if seat.counts() => evidence::Said::Late,
            None => evidence::Said::SetAside,
        }
    }

    /// Each provider's answer by itself.
    pub fn each(self) -> Vec<Said<T>> {
        let groups = self.groups.iter().flat_map(|(said, seats)| {
            let each = move |seat: &Arc<Seat>| (seat.clone(), Ok(copy(said)));
            seats.iter().map(each)
        });
        let errors = self.errors.into_iter();
        let errors = errors.map(|(seat, error)| (seat, Err(error)));
        groups.chain(errors).collect()
    }

    /// The error about the question itself that `required` providers gave.
    pub fn by_question(&self, required: usize) -> Option<&ReadError> {
        let is_said = |said: &ReadError| {
            let same = self.errors.iter().filter(|(_, error)| error == said);
            same.count() >= required
        };
        let by_question =
            |error: &ReadError| matches!(error, ReadError::TooLarge | ReadError::Foreign(_));
        let mut said = self.errors.iter().map(|(_, error)| error);
        said.find(|error| by_question(error) && is_said(error))
    }
}
