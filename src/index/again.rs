//! When a network is read again from a block on, and how far back that is possible. Pure.
//!
//! A provider that showed a deposit which a quorum calls gone may have left out others, and the quorum may have been
//! wrong for a moment. So the blocks are read once more: the confirmer notes the block in the cursor's row, in the
//! commit that calls the deposit gone, and the tail takes the cursor back. The pause between two such times doubles,
//! so a provider that goes on showing such deposits does not stop the index.

use crate::store::rows::cursor::{Again, Cursor, Mark};

/// Milliseconds between two times that a network is read again, at first.
const SHORTEST: u64 = 60_000;
/// The longest of these pauses; with the time that finality takes it is shorter than marks reach back.
const LONGEST: u64 = 1_800_000;
/// How many of the newest marks are all kept.
const NEW: usize = 128;
/// The most marks of a cursor. It can be taken back to each of them.
pub const MARKS: usize = 256;
/// Seconds between two of the older marks, so that all marks together reach back more than an hour.
const APART: u64 = 32;

impl Again {
    /// Notes that block `number` has to be read again. Returns whether no block as low was noted before.
    pub fn owe(&mut self, number: u64) -> bool {
        let news = self.block.is_none_or(|block| number < block);
        self.block = Some(self.block.map_or(number, |block| block.min(number)));
        news
    }

    /// The block from which it is read again now. `now` in unix milliseconds.
    pub fn due(&self, now: u64) -> Option<u64> {
        self.block.filter(|_| self.next <= now)
    }

    /// Notes that it is read again at `now`, and when the next time may be.
    pub fn done(&mut self, now: u64) {
        // After an equally long quiet time the pause starts from the shortest again.
        let quiet = now >= self.next.saturating_add(self.pause);
        self.pause = match quiet {
            true => SHORTEST,
            false => self.pause.saturating_mul(2).clamp(SHORTEST, LONGEST),
        };
        (self.block, self.next) = (None, now.saturating_add(self.pause));
    }

    /// What remains to be read again when everything from height `next` on is read anyway.
    #[must_use]
    pub fn below(mut self, next: u64) -> Self {
        self.block = self.block.filter(|block| *block < next);
        self
    }
}

/// The cursor as it was at its mark `kept`.
pub fn rewound(cursor: &Cursor, kept: usize) -> Cursor {
    let marks = cursor.marks.get(..=kept).unwrap_or(&cursor.marks).to_vec();
    let next = marks.last().map_or(cursor.next, |mark| mark.number + 1);
    let again = cursor.again.below(next);
    Cursor { next, marks, again }
}

/// Adds a mark, higher than all before. Of the older ones only those stay that are `APART`, for a chain with a block
/// every `block_seconds`.
pub fn marked(marks: &mut Vec<Mark>, mark: Mark, block_seconds: u64) {
    marks.push(mark);
    // A chain with a block every second or less makes up to four blocks in a second.
    let apart = match block_seconds {
        0 | 1 => APART * 4,
        seconds => (APART / seconds).max(1),
    };
    let old = marks.len().checked_sub(NEW + 2);
    if let Some(at) = old
        && let Some([before, mark]) = marks.get(at..at + 2)
        && mark.number < before.number.saturating_add(apart)
    {
        marks.remove(at + 1);
    }
    marks.drain(..marks.len().saturating_sub(MARKS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_ever_more_rarely_while_it_goes_on() {
        let mut again = Again::default();
        let mut times = Vec::new();
        // A deposit is invented every second for a day.
        for now in (0..86_400_000).step_by(1_000) {
            again.owe(100 + now);
            if again.due(now).is_some() {
                again.done(now);
                times.push(now);
            }
        }
        assert_eq!(times[..4], [0, 60_000, 180_000, 420_000]);
        assert!((48..60).contains(&times.len()), "{}", times.len());
        // The lowest is not forgotten while it waits, and later it is as at first.
        let last = 86_400_000;
        again.block = None;
        assert!(again.owe(9) && again.owe(7) && !again.owe(8));
        assert_eq!(again.due(last + 2 * LONGEST), Some(7));
        again.done(last + 3 * LONGEST);
        again.owe(9);
        assert_eq!(again.due(last + 3 * LONGEST + SHORTEST), Some(9));
        assert_eq!(again.due(last + 3 * LONGEST + SHORTEST - 1), None);
        assert_eq!(
            (again.below(9).block, again.below(10).block),
            (None, Some(9))
        );
    }

    #[test]
    fn marks_reach_back_an_hour_on_every_chain() {
        for (block_seconds, quarters) in [(0, 1), (1, 1), (1, 4), (2, 8), (12, 48), (60, 240)] {
            let mut marks = Vec::new();
            for number in 0..30_000 {
                let hash = Default::default();
                marked(&mut marks, Mark { number, hash }, block_seconds);
                assert!(marks.len() <= MARKS);
                let newest = marks.iter().rev().map(|mark| mark.number);
                assert!(
                    newest
                        .zip(0..NEW as u64)
                        .all(|(at, back)| at == number - back)
                );
            }
            let reach = (29_999 - marks[0].number) * quarters / 4;
            assert!(reach >= 3_600, "{block_seconds} {reach}");
        }
        // Where a step is many blocks, each is remembered.
        let mut marks = Vec::new();
        for step in 0..1_000 {
            let mark = Mark {
                number: step * 500,
                hash: Default::default(),
            };
            marked(&mut marks, mark, 2);
        }
        assert_eq!(marks[0].number, (1_000 - MARKS as u64) * 500);
    }
}
