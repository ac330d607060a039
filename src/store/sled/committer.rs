//! The only thread that writes: it takes the waiting commits as a group, decides them in order, and answers all of
//! them after one flush and one sync.

use std::{collections::BTreeMap, ops::Bound};

use ::sled::IVec;
use tokio::sync::{mpsc, oneshot};

use super::{Failure, Key, Kind, OWN, disk::Disk, flat, flat_name, guarded, pace};
use crate::store::{Batch, Outcome, StoreError, number};

/// The most commits of a group, which bounds the wait of the first one.
const GROUP: usize = 256;

/// A commit and the channel for its answer.
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

pub(super) struct Committer {
    tree: ::sled::Db,
    disk: Disk,
    failure: Failure,
}

/// The rows that a group writes.
type Changes = Vec<(IVec, Option<IVec>)>;

impl Committer {
    pub(super) fn new(tree: ::sled::Db, disk: Disk, failure: Failure) -> Self {
        Self {
            tree,
            disk,
            failure,
        }
    }

    /// Works until every sender is gone and the queue is empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        let mut group = Vec::with_capacity(GROUP);
        while queue.blocking_recv_many(&mut group, GROUP) > 0 {
            let (batches, replies): (Vec<_>, Vec<_>) = group
                .drain(..)
                .map(|request| (request.batch, request.reply))
                .unzip();
            let answers = self.answer(batches);
            for (reply, answer) in replies.into_iter().zip(answers) {
                // The caller may have stopped waiting; the commit stands all the same.
                let _gone = reply.send(answer);
            }
        }
        // sled syncs when it is dropped, and panics when that fails.
        let tree = self.tree;
        let dropped = guarded(move || {
            drop(tree);
            Ok(())
        });
        if let Err(why) = dropped {
            self.failure.set(&why);
        }
    }

    fn answer(&mut self, batches: Vec<Batch>) -> Vec<Result<Outcome, StoreError>> {
        let count = batches.len();
        let decided = self.failure.check().and_then(|()| {
            let committed = self.commit(batches);
            committed.map_err(|why| self.failure.set(&why))
        });
        match decided {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(e) => vec![Err(e); count],
        }
    }

    /// Any error here leaves the disk in doubt, for every commit of the group.
    fn commit(&mut self, batches: Vec<Batch>) -> Result<Vec<Outcome>, String> {
        let mut group = Group::new(&self.tree);
        let outcomes = guarded(|| {
            let decided = batches.into_iter();
            decided.map(|batch| group.decide(batch)).collect()
        })?;
        let changes = group.changes();
        if !changes.is_empty() {
            self.write(changes)?;
        }
        Ok(outcomes)
    }

    fn write(&mut self, changes: Changes) -> Result<(), String> {
        let sequence = self.disk.sequence + 1;
        let mut rows = ::sled::Batch::default();
        rows.insert(flat(&Key::new(OWN, "sequence")), &sequence.to_be_bytes());
        for (key, value) in changes {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(key),
            }
        }
        self.disk.room().map_err(|error| error.to_string())?;
        let written = guarded(|| {
            pace::batch(|| self.tree.apply_batch(rows))?;
            self.tree.flush().map(drop)
        });
        // Also after a failed write, because only a sync tells whether earlier pages are lost.
        let synced = self.disk.sync().map_err(|error| error.to_string());
        written.and(synced)?;
        self.disk
            .attest(sequence)
            .map_err(|error| error.to_string())
    }
}

/// The rows that the commits of a group have written so far, and those that they have looked for in vain. Nothing else
/// writes meanwhile: later commits of the group read them here.
struct Group<'a> {
    tree: &'a ::sled::Tree,
    rows: BTreeMap<IVec, Seen>,
    /// The key that is looked up, as the tree has it.
    key: Vec<u8>,
}

/// A row as the group has it.
struct Seen {
    value: Option<IVec>,
    /// Whether a commit of the group wrote it.
    changed: bool,
}

impl<'a> Group<'a> {
    fn new(tree: &'a ::sled::Tree) -> Self {
        Self {
            tree,
            rows: BTreeMap::new(),
            key: Vec::new(),
        }
    }

    fn decide(&mut self, batch: Batch) -> ::sled::Result<Outcome> {
        if let Some(refused) = batch.refusal(|key| self.read(key))? {
            return Ok(refused);
        }
        // A batch of unchanged rows costs no sync. One with a new row does anyway, and saves the looks at the others.
        let changes_anyway = batch.writes_new_row();
        for (key, value) in batch.writes {
            if changes_anyway || self.read(&key)?.as_deref() != value.as_deref() {
                self.write(&key, value);
            }
        }
        let number = match batch.append {
            None => None,
            Some(append) => {
                let number = self.last(append.log)? + 1;
                let ((key, value), lead) = append.at(number);
                self.write(&key, Some(value));
                if let Some((key, value)) = lead {
                    self.write(&key, Some(value));
                }
                Some(number)
            }
        };
        Ok(Outcome::Applied { number })
    }

    fn read(&mut self, key: &Key) -> ::sled::Result<Option<IVec>> {
        self.name(key);
        if let Some(seen) = self.rows.get(self.key.as_slice()) {
            return Ok(seen.value.clone());
        }
        let value = self.tree.get(&self.key)?;
        // Most rows that many commits look for are absent, and these take no memory.
        if value.is_none() {
            self.put(Seen {
                value: None,
                changed: false,
            });
        }
        Ok(value)
    }

    fn write(&mut self, key: &Key, value: Option<Vec<u8>>) {
        self.name(key);
        self.put(Seen {
            value: value.map(IVec::from),
            changed: true,
        });
    }

    fn name(&mut self, key: &Key) {
        self.key.clear();
        self.key.push(key.kind.0);
        self.key.extend_from_slice(&key.name);
    }

    /// Has the row under the named key.
    fn put(&mut self, row: Seen) {
        match self.rows.get_mut(self.key.as_slice()) {
            Some(seen) => *seen = row,
            None => {
                self.rows.insert(IVec::from(self.key.as_slice()), row);
            }
        }
    }

    /// The greatest number of a log; zero when it is empty.
    fn last(&self, log: Kind) -> ::sled::Result<u64> {
        let all = flat_name(log, &[])..=flat_name(log, &u64::MAX.to_be_bytes());
        let (from, to) = (all.start().as_slice(), all.end().as_slice());
        let fresh = self
            .rows
            .range::<[u8], _>((Bound::Included(from), Bound::Included(to)));
        let fresh = fresh.rev().find(|(_, seen)| seen.value.is_some());
        let fresh = fresh.and_then(|(key, _)| number(&key[1..]));
        let stored = self.tree.range(all).next_back().transpose()?;
        let stored = stored.and_then(|(key, _)| number(&key[1..]));
        Ok(stored.max(fresh).unwrap_or(0))
    }

    /// The rows that the group writes.
    fn changes(self) -> Changes {
        let rows = self.rows.into_iter();
        let changed = rows.filter(|(_, seen)| seen.changed);
        changed.map(|(key, seen)| (key, seen.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Expect, sled::open_tree};

    #[test]
    fn later_commits_of_a_group_see_what_earlier_ones_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let tree = open_tree(directory.path()).unwrap();
        let key = |name: &str| Key::new(Kind(200), name);
        let signs = |name: &str| {
            let batch = Batch::new().expect(key("halt"), Expect::Absent);
            batch.put(key(name), vec![1])
        };
        let refused = Outcome::Refused {
            key: key("halt"),
            found: Some(vec![9]),
        };
        let mut group = Group::new(&tree);
        for (batch, outcome) in [
            (signs("a"), Outcome::APPLIED),
            (signs("b"), Outcome::APPLIED),
            (Batch::new().put(key("halt"), vec![9]), Outcome::APPLIED),
            (signs("c"), refused),
            (Batch::new().delete(key("halt")), Outcome::APPLIED),
            (signs("d"), Outcome::APPLIED),
            (
                Batch::new().append(Kind(201), vec![2]),
                Outcome::Applied { number: Some(1) },
            ),
            (
                Batch::new().append(Kind(201), vec![3]),
                Outcome::Applied { number: Some(2) },
            ),
        ] {
            assert_eq!(group.decide(batch).unwrap(), outcome);
        }
        let changes = group.changes();
        let names = changes.iter().filter(|(key, _)| key[0] == 200);
        let names: Vec<_> = names
            .map(|(key, value)| (&key[1..], value.is_some()))
            .collect();
        let expected: [(&[u8], bool); 4] =
            [(b"a", true), (b"b", true), (b"d", true), (b"halt", false)];
        assert_eq!(names, expected);
        assert_eq!(changes.len(), 6);
    }

    #[test]
    fn what_is_only_looked_for_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let tree = open_tree(directory.path()).unwrap();
        let mut group = Group::new(&tree);
        let batch = Batch::new().expect(Key::new(Kind(200), "a"), Expect::Absent);
        for _ in 0..2 {
            assert_eq!(group.decide(batch.clone()).unwrap(), Outcome::APPLIED);
        }
        assert!(group.changes().is_empty());
    }
}
