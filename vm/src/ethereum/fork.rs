//! The headers of one provider's chain that are known to belong to one fork. Pure.
//!
//! A run of newest headers is linked parent by parent. Older headers were read by number while that
//! run was the provider's chain, or fell off its end; all are forgotten when the run is broken.

use std::collections::VecDeque;

use moka::sync::Cache;

use crate::types::Block;

/// Headers kept in the linked run: two minutes of a fast chain, hours of a slow one.
const RUN: usize = 512;
/// Older headers kept, about a hundred bytes each.
const OLDER: u64 = 16_384;

/// Headers of one provider's chain, all of one fork: a run of the newest ones, and older ones by height.
#[derive(Debug)]
pub struct Fork {
    /// Contiguous heights, oldest first; never empty.
    run: VecDeque<Block>,
    older: Cache<u64, Block>,
    /// Changes when headers were forgotten, so that a late answer of the old fork is not added.
    generation: u64,
}

/// Headers that do not follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("headers of different forks")]
pub struct Unlinked;

impl Fork {
    pub fn new(head: Block) -> Self {
        Self {
            run: VecDeque::from([head]),
            older: Cache::new(OLDER),
            generation: 0,
        }
    }

    pub fn head(&self) -> &Block {
        &self.run[self.run.len() - 1]
    }

    pub fn oldest(&self) -> &Block {
        &self.run[0]
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The canonical header at `number`, if it is known.
    pub fn at(&self, number: u64) -> Option<Block> {
        match number.checked_sub(self.oldest().number) {
            Some(offset) => self.run.get(usize::try_from(offset).ok()?).cloned(),
            None => self.older.get(&number),
        }
    }

    /// Whether `block` is known to be canonical, with its parent and time.
    pub fn contains(&self, block: &Block) -> bool {
        self.at(block.number).is_some_and(|known| known == *block)
    }

    /// Whether `segment` (ascending, linked) continues a block of the run.
    pub fn joins(&self, segment: &[Block]) -> bool {
        let Some(low) = segment.first() else {
            return false;
        };
        let Some(below) = low.number.checked_sub(1) else {
            return false;
        };
        below >= self.oldest().number
            && self.at(below).is_some_and(|known| known.hash == low.parent)
    }

    /// Replaces everything above the segment's parent by the segment.
    pub fn join(&mut self, segment: Vec<Block>) -> Result<(), Unlinked> {
        if !self.joins(&segment) {
            return Err(Unlinked);
        }
        let low = segment[0].number;
        if low <= self.head().number {
            self.generation += 1;
            self.run.retain(|block| block.number < low);
        }
        self.run.extend(segment);
        while self.run.len() > RUN {
            if let Some(block) = self.run.pop_front() {
                self.older.insert(block.number, block);
            }
        }
        Ok(())
    }

    /// Makes `block`, known and below the head, the head.
    pub fn roll_back(&mut self, block: &Block) -> Result<(), Unlinked> {
        if block.number < self.oldest().number || !self.contains(block) {
            return Err(Unlinked);
        }
        self.generation += 1;
        self.run.retain(|known| known.number <= block.number);
        Ok(())
    }

    /// Starts a new run. `kept`: the old head is still canonical below it, so everything known is.
    pub fn restart(&mut self, segment: Vec<Block>, kept: bool) {
        let old = std::mem::replace(&mut self.run, segment.into());
        if kept {
            for block in old {
                self.older.insert(block.number, block);
            }
        } else {
            self.generation += 1;
            self.older = Cache::new(OLDER);
        }
    }

    /// Puts headers under the run that its oldest block names as ancestors.
    pub fn deepen(&mut self, segment: Vec<Block>) -> Result<(), Unlinked> {
        let top = segment.last().ok_or(Unlinked)?;
        if top.hash != self.oldest().parent
            || top.number.checked_add(1) != Some(self.oldest().number)
        {
            return Err(Unlinked);
        }
        for block in segment.into_iter().rev() {
            if self.run.len() < RUN {
                self.run.push_front(block);
            } else {
                self.older.insert(block.number, block);
            }
        }
        Ok(())
    }

    /// Adds a header below the run that was read by number while `generation` was current.
    pub fn remember(&self, block: Block, generation: u64) {
        if generation == self.generation && block.number < self.oldest().number {
            self.older.insert(block.number, block);
        }
    }

    /// Average seconds between blocks of the run.
    pub fn pace(&self) -> Option<u64> {
        let blocks = self.head().number.checked_sub(self.oldest().number)?;
        let seconds = self.head().time.checked_sub(self.oldest().time)?;
        seconds.checked_div(blocks)
    }
}

/// Checks that ascending headers follow each other.
pub fn linked(segment: &[Block]) -> Result<(), Unlinked> {
    segment
        .windows(2)
        .all(|pair| {
            pair[0].number.checked_add(1) == Some(pair[1].number) && pair[0].hash == pair[1].parent
        })
        .then_some(())
        .ok_or(Unlinked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::B256;

    /// Blocks `from..=to` of fork `name`, on top of fork `below`.
    fn chain(from: u64, to: u64, name: u8, below: u8) -> Vec<Block> {
        let hash = |number: u64, name: u8| {
            let mut bytes = [name; 32];
            bytes[24..].copy_from_slice(&number.to_be_bytes());
            B256::new(bytes)
        };
        (from..=to)
            .map(|number| Block {
                number,
                hash: hash(number, name),
                parent: hash(
                    number.saturating_sub(1),
                    if number == from { below } else { name },
                ),
                time: number * 12,
            })
            .collect()
    }

    fn fork(from: u64, to: u64) -> Fork {
        let blocks = chain(from, to, 1, 1);
        let mut fork = Fork::new(blocks[0].clone());
        fork.join(blocks[1..].to_vec()).unwrap();
        fork
    }

    #[test]
    fn run_grows_and_hands_old_headers_on() {
        let fork = fork(1, 1000);
        assert_eq!(fork.head().number, 1000);
        assert_eq!(fork.oldest().number, 1000 - RUN as u64 + 1);
        assert_eq!(fork.at(3).unwrap().number, 3);
        assert_eq!(fork.at(1001), None);
        assert_eq!(fork.pace(), Some(12));
    }

    #[test]
    fn reorg_replaces_only_what_is_above_the_fork_point() {
        let mut fork = fork(1, 50);
        let generation = fork.generation();
        let other = chain(41, 55, 2, 1);
        assert!(!fork.joins(&chain(41, 55, 2, 3)));
        fork.join(other.clone()).unwrap();
        assert!(fork.generation() > generation);
        assert_eq!(fork.head(), other.last().unwrap());
        assert!(fork.contains(&chain(40, 40, 1, 1)[0]));
        assert!(!fork.contains(&chain(41, 41, 1, 1)[0]));
        let mut early = chain(40, 40, 1, 1).remove(0);
        early.time -= 1;
        assert!(!fork.contains(&early), "a hash with another time");
        fork.remember(chain(0, 0, 1, 1)[0].clone(), generation);
        assert_eq!(fork.at(0), None, "read on the old fork");
    }

    #[test]
    fn lost_continuity_forgets_everything() {
        let mut kept = fork(1, 50);
        kept.restart(chain(900, 900, 1, 1), true);
        assert_eq!(kept.at(7).unwrap().number, 7);
        let mut lost = fork(1, 50);
        lost.restart(chain(900, 900, 2, 2), false);
        assert_eq!(lost.at(7), None);
    }

    #[test]
    fn only_ancestors_go_under_the_run() {
        let mut fork = fork(100, 110);
        assert_eq!(fork.deepen(chain(90, 99, 2, 2)), Err(Unlinked));
        assert_eq!(fork.deepen(chain(90, 98, 1, 1)), Err(Unlinked));
        fork.deepen(chain(90, 99, 1, 1)).unwrap();
        assert_eq!(fork.oldest().number, 90);
    }

    #[test]
    fn chain_can_go_back_to_a_known_block() {
        let mut fork = fork(1, 50);
        let block = fork.at(30).unwrap();
        fork.roll_back(&block).unwrap();
        assert_eq!(fork.head(), &block);
        assert_eq!(fork.roll_back(&chain(20, 20, 2, 2)[0]), Err(Unlinked));
    }

    #[test]
    fn unlinked_headers_are_seen() {
        assert_eq!(linked(&chain(1, 5, 1, 1)), Ok(()));
        let mixed = [chain(1, 2, 1, 1), chain(3, 4, 2, 2)].concat();
        assert_eq!(linked(&mixed), Err(Unlinked));
    }
}
