//! The only thread that writes: it takes the waiting commits as a group, decides them in order, and answers all of
//! them after one flush and one sync.

use std::collections::BTreeMap;

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

/// The rows that a group changes; its later commits see them instead of the tree's.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

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
        let mut changes = Changes::new();
        let outcomes = guarded(|| {
            let decided = batches.into_iter();
            let decided = decided.map(|batch| decide(&self.tree, batch, &mut changes));
            decided.collect()
        })?;
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

fn decide(tree: &::sled::Tree, batch: Batch, changes: &mut Changes) -> ::sled::Result<Outcome> {
    if let Some(refused) = batch.refusal(|key| current(tree, changes, &flat(key)))? {
        return Ok(refused);
    }
    // A batch of unchanged rows costs no sync. One with a new row does anyway, and saves the looks at the others.
    let changes_anyway = batch.writes_new_row();
    for (key, value) in batch.writes {
        let key = flat(&key);
        if changes_anyway || current(tree, changes, &key)? != value {
            changes.insert(key, value);
        }
    }
    let number = match batch.append {
        None => None,
        Some(append) => {
            let number = last(tree, changes, append.log)? + 1;
            let ((key, value), lead) = append.at(number);
            changes.insert(flat(&key), Some(value));
            changes.extend(lead.map(|(key, value)| (flat(&key), Some(value))));
            Some(number)
        }
    };
    Ok(Outcome::Applied { number })
}

/// The greatest number of a log; zero when it is empty.
fn last(tree: &::sled::Tree, changes: &Changes, log: Kind) -> ::sled::Result<u64> {
    let all = flat_name(log, &[])..=flat_name(log, &u64::MAX.to_be_bytes());
    let stored = tree.range(all.clone()).next_back().transpose()?;
    let stored = stored.and_then(|(key, _)| number(&key[1..]));
    let fresh = changes.range(all).rev().find(|(_, value)| value.is_some());
    let fresh = fresh.and_then(|(key, _)| number(&key[1..]));
    Ok(stored.max(fresh).unwrap_or(0))
}

fn current(tree: &::sled::Tree, changes: &Changes, key: &[u8]) -> ::sled::Result<Option<Vec<u8>>> {
    match changes.get(key) {
        Some(changed) => Ok(changed.clone()),
        None => Ok(tree.get(key)?.map(|value| value.to_vec())),
    }
}
