//! The deliveries of one endpoint: which one is tried next, and how many at a time. Pure.
//!
//! The queue holds a limited number in memory. The rest stays in the store; the worker reads it in pages, by number.

use std::collections::{BTreeSet, HashMap};

/// The most deliveries of an endpoint in memory.
pub const HELD: usize = 1_024;
/// The most concurrent tries of an endpoint that has answered.
pub const AT_ONCE: usize = 8;
/// An endpoint is slow when an answer takes longer than this, in milliseconds.
pub const PROMPT: u64 = 1_000;

/// How a try ended, as far as it shows the endpoint's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Unix milliseconds.
    pub at: u64,
    /// The duration of the try in milliseconds.
    pub took: u64,
    /// The error, if the try failed.
    pub failure: Option<String>,
    /// The receiver asked for no tries before this time (unix milliseconds).
    pub quiet_until: u64,
}

/// The deliveries of one endpoint.
#[derive(Debug, Default)]
pub struct Queue {
    /// Since when (unix milliseconds) each delivery in memory is owed, by its number.
    held: HashMap<u64, u64>,
    /// The deliveries that wait, by due time and number.
    waiting: BTreeSet<(u64, u64)>,
    /// All rows of the endpoint, in memory or not.
    owed: u64,
    running: usize,
    /// The most concurrent tries; zero counts as one.
    allowed: usize,
    unwell: bool,
    quiet_until: u64,
    /// Every row up to this number is in memory or finished.
    read: u64,
    /// The newest number that has a row.
    written: u64,
    paging: bool,
    /// The least number that was added during a page and is not in memory: the page may have been read without it.
    missed: Option<u64>,
    /// Deliveries to send again before the last outcome is recorded, with their due times.
    anew: HashMap<u64, u64>,
    /// Unix milliseconds.
    pub last_success: Option<u64>,
    /// Unix milliseconds, and what failed.
    pub last_failure: Option<(u64, String)>,
}

impl Queue {
    /// Adds the row of event `number` without reading it yet.
    pub fn left(&mut self, number: u64) {
        self.owed += 1;
        self.written = self.written.max(number);
    }

    /// Adds the new row of event `number`, owed since `since` and due at `due` (unix milliseconds).
    pub fn add(&mut self, number: u64, since: u64, due: u64) {
        self.owed += 1;
        let all_read = self.read >= self.written;
        self.written = self.written.max(number);
        if self.held.contains_key(&number) {
            self.anew.insert(number, due);
        } else if number <= self.read {
            self.hold(number, since, due);
        } else if all_read && self.held.len() < HELD {
            self.hold(number, since, due);
            self.read = number;
        } else if self.paging {
            let missed = self.missed.map_or(number, |missed| missed.min(number));
            self.missed = Some(missed);
        }
    }

    /// The number after which the worker reads rows, and how many at most. Asks for no second page before
    /// [`Self::page`].
    pub fn wants(&mut self) -> Option<(u64, usize)> {
        let wants = !self.paging && self.read < self.written && self.held.len() < HELD / 2;
        self.paging |= wants;
        wants.then(|| (self.read, HELD - self.held.len()))
    }

    /// Adds a page of rows (number, since, due), read when `written` was the newest. Fewer rows than `asked` means
    /// that there are no more. From the least number on that was added meanwhile, the next page reads the rows.
    pub fn page(&mut self, rows: &[(u64, u64, u64)], asked: usize, written: u64) {
        self.paging = false;
        let last = rows.iter().map(|(number, ..)| *number).max();
        let end = match rows.len() < asked {
            true => last.unwrap_or_default().max(written),
            false => last.unwrap_or_default(),
        };
        let missed = self.missed.take();
        let end = missed.map_or(end, |missed| end.min(missed.saturating_sub(1)));
        self.read = self.read.max(end);
        for (number, since, due) in rows {
            if *number <= self.read {
                self.hold(*number, *since, *due);
            }
        }
    }

    /// The newest number that has a row.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The page could not be read; [`Self::wants`] asks for it again.
    pub fn page_failed(&mut self) {
        self.paging = false;
        self.missed = None;
    }

    fn hold(&mut self, number: u64, since: u64, due: u64) {
        if self.held.insert(number, since).is_none() {
            self.waiting.insert((due, number));
        }
    }

    /// Takes the delivery to try at `now` (unix milliseconds); the try runs until [`Self::ended`].
    pub fn start(&mut self, now: u64) -> Option<u64> {
        if self.wake()? > now {
            return None;
        }
        let (_, number) = self.waiting.pop_first()?;
        self.running += 1;
        Some(number)
    }

    /// When (unix milliseconds) a delivery can start, if nothing else happens.
    pub fn wake(&self) -> Option<u64> {
        let (due, _) = self.waiting.first()?;
        let free = self.running < self.allowed.max(1);
        free.then_some(self.quiet_until.max(*due))
    }

    /// Records the end of a try. A failing endpoint gets one try at a time until it answers again.
    pub fn ended(&mut self, ended: Ended) {
        self.running = self.running.saturating_sub(1);
        self.quiet_until = self.quiet_until.max(ended.quiet_until);
        match ended.failure {
            None => {
                self.allowed = (self.allowed.max(1) * 2).min(AT_ONCE);
                self.unwell = ended.took > PROMPT;
                self.last_success = Some(ended.at);
            }
            Some(why) => {
                (self.allowed, self.unwell) = (1, true);
                self.last_failure = Some((ended.at, why));
            }
        }
    }

    /// Records that no try was made: the row is gone, or could not be read.
    pub fn skipped(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Schedules the delivery for another try at `due` (unix milliseconds).
    pub fn again(&mut self, number: u64, due: u64) {
        if self.held.contains_key(&number) {
            self.waiting.insert((due, number));
        }
    }

    /// Removes a finished delivery.
    pub fn remove(&mut self, number: u64) {
        self.owed = self.owed.saturating_sub(1);
        self.held.remove(&number);
        if let Some(due) = self.anew.remove(&number) {
            self.hold(number, due, due);
        }
    }

    /// The deliveries that wait or run, in memory or not.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Whether the last try failed or was slow.
    pub fn unwell(&self) -> bool {
        self.unwell
    }

    /// The number of deliveries in memory, and since when (unix milliseconds) the oldest of them is owed.
    pub fn load(&self) -> (usize, Option<u64>) {
        (self.held.len(), self.held.values().min().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success(took: u64) -> Ended {
        Ended {
            at: 5,
            took,
            failure: None,
            quiet_until: 0,
        }
    }

    fn failure(quiet_until: u64) -> Ended {
        Ended {
            failure: Some("no".into()),
            quiet_until,
            ..success(1)
        }
    }

    #[test]
    fn no_page_is_wanted_while_more_than_the_limit_is_in_memory() {
        let mut queue = Queue::default();
        let many = HELD as u64 + 1;
        queue.page(&[], 1, many);
        for number in 1..=many {
            queue.add(number, 0, 0);
        }
        queue.left(many + 1);
        assert_eq!(queue.wants(), None);
    }

    #[test]
    fn the_earliest_due_is_first_and_one_at_a_time_until_something_succeeds() {
        let mut queue = Queue::default();
        assert_eq!((queue.wake(), queue.start(9)), (None, None));
        queue.add(1, 0, 7);
        queue.add(2, 0, 3);
        queue.add(3, 0, 4);
        assert_eq!((queue.start(2), queue.wake()), (None, Some(3)));
        assert_eq!(queue.start(9), Some(2));
        assert_eq!((queue.start(9), queue.wake()), (None, None));
        queue.ended(success(1));
        queue.remove(2);
        assert_eq!([queue.start(9), queue.start(9)], [Some(3), Some(1)]);
        queue.ended(failure(0));
        queue.again(3, 20);
        assert!(queue.unwell());
        assert_eq!((queue.start(30), queue.wake()), (None, None));
        queue.ended(success(1));
        queue.remove(1);
        assert!(!queue.unwell());
        assert_eq!((queue.wake(), queue.start(30)), (Some(20), Some(3)));
        assert_eq!(queue.load(), (1, Some(0)));
        assert_eq!(queue.last_failure, Some((5, "no".into())));
    }

    #[test]
    fn it_opens_up_to_eight_and_slow_ones_are_unwell() {
        let mut queue = Queue::default();
        for number in 1..=40 {
            queue.add(number, 0, 0);
        }
        for wanted in [1, 2, 8, 8] {
            let mut running = Vec::new();
            while let Some(number) = queue.start(0) {
                running.push(number);
            }
            assert_eq!(running.len(), wanted);
            for number in running {
                queue.ended(success(1));
                queue.remove(number);
            }
        }
        queue.start(0);
        queue.ended(success(PROMPT + 1));
        assert!(queue.unwell());
    }

    #[test]
    fn a_receiver_that_asks_for_quiet_has_it() {
        let mut queue = Queue::default();
        queue.add(1, 0, 0);
        queue.add(2, 0, 0);
        queue.start(0);
        queue.ended(failure(50));
        queue.again(1, 10);
        assert_eq!((queue.wake(), queue.start(49)), (Some(50), None));
        assert_eq!(queue.start(50), Some(2));
    }

    #[test]
    fn what_does_not_fit_is_read_later_and_nothing_twice() {
        let mut queue = Queue::default();
        queue.left(3);
        // Rows of the last run first.
        queue.add(4, 0, 0);
        assert_eq!(queue.load().0, 0);
        assert_eq!(queue.wants(), Some((0, HELD)));
        assert_eq!(queue.wants(), None);
        queue.page_failed();
        assert_eq!(queue.wants(), Some((0, HELD)));
        queue.page(&[(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0)], HELD, 4);
        assert_eq!((queue.load().0, queue.wants()), (4, None));
        let full = u64::try_from(HELD).unwrap();
        for number in 5..=full + 10 {
            queue.add(number, 0, 0);
        }
        assert_eq!(queue.load().0, HELD);
        let mut finished = Vec::new();
        while queue.load().0 >= HELD / 2 {
            assert_eq!(queue.wants(), None);
            let number = queue.start(0).unwrap();
            queue.ended(success(1));
            queue.remove(number);
            finished.push(number);
        }
        let (after, limit) = queue.wants().unwrap();
        assert_eq!((after, limit), (full, HELD / 2 + 1));
        let rows: Vec<_> = (full + 1..=full + 10).map(|n| (n, 0, 0)).collect();
        queue.page(&rows, limit, queue.written());
        while let Some(number) = queue.start(0) {
            queue.ended(success(1));
            queue.remove(number);
            finished.push(number);
        }
        assert!(finished.into_iter().eq(1..=full + 10));
        assert_eq!(queue.load(), (0, None));
    }

    /// Tries all that is in memory, successfully.
    fn tried(queue: &mut Queue) -> Vec<u64> {
        let mut tried = Vec::new();
        while let Some(number) = queue.start(0) {
            queue.ended(success(1));
            queue.remove(number);
            tried.push(number);
        }
        tried
    }

    #[test]
    fn what_comes_while_a_page_is_read_is_read_by_the_next_one() {
        // The numbers of replays are below others that wait.
        for (written, asked) in [(200, HELD), (200, 2), (190, HELD)] {
            for added in [vec![120], vec![180, 120, 160]] {
                let mut queue = Queue::default();
                queue.left(150);
                queue.left(written);
                assert_eq!(queue.wants(), Some((0, HELD)));
                for number in &added {
                    queue.add(*number, 0, 0);
                }
                queue.page(&[(150, 0, 0), (written, 0, 0)], asked, written);
                assert_eq!(queue.wants(), Some((119, HELD)));
                let mut rows = [&added[..], &[150, written]].concat();
                rows.sort_unstable();
                let all: Vec<_> = rows.iter().map(|number| (*number, 0, 0)).collect();
                queue.page(&all, HELD, written);
                assert_eq!(queue.wants(), None);
                assert_eq!(tried(&mut queue), rows, "{written} {asked} {added:?}");
                assert_eq!(queue.owed(), 0);
            }
        }
    }

    #[test]
    fn a_page_is_held_up_to_what_came_meanwhile_and_one_that_failed_is_read_anew() {
        let mut queue = Queue::default();
        queue.left(100);
        queue.left(200);
        assert_eq!(queue.wants(), Some((0, HELD)));
        // A new event.
        queue.add(300, 0, 0);
        queue.page(&[(100, 0, 0), (200, 0, 0)], HELD, 200);
        assert_eq!(tried(&mut queue), [100, 200]);
        assert_eq!(queue.wants(), Some((200, HELD)));
        // A replay, before a page that fails: the next one has it.
        queue.add(250, 0, 0);
        queue.page_failed();
        assert_eq!(queue.wants(), Some((200, HELD)));
        queue.page(&[(250, 0, 0), (300, 0, 0)], HELD, 300);
        assert_eq!(queue.wants(), None);
        assert_eq!(tried(&mut queue), [250, 300]);
        // What comes below all that was read is held at once.
        queue.left(400);
        assert_eq!(queue.wants(), Some((300, HELD)));
        queue.add(120, 0, 0);
        queue.page(&[(400, 0, 0)], HELD, 400);
        assert_eq!(queue.wants(), None);
        assert_eq!(tried(&mut queue), [120, 400]);
        assert_eq!(queue.owed(), 0);
    }

    #[test]
    fn what_is_wanted_anew_comes_anew_even_before_it_is_recorded_that_it_was_over() {
        let mut queue = Queue::default();
        queue.add(1, 0, 0);
        assert_eq!(queue.start(0), Some(1));
        queue.ended(success(1));
        queue.add(1, 7, 7);
        assert_eq!(queue.start(9), None);
        queue.remove(1);
        assert_eq!(queue.start(9), Some(1));
        queue.ended(success(1));
        queue.remove(1);
        assert_eq!(queue.start(9), None);
        queue.add(1, 8, 8);
        assert_eq!(queue.start(9), Some(1));
    }
}
