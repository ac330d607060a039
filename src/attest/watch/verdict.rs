//! Decides what one look says about a signed fact's block, and when to look again. Pure.

use std::time::Duration;

use vm::{Block, ChainSpec, FinalityTag, Head};

/// A block counts as gone when two looks miss it that lie at least this many seconds apart.
pub const CONFIRM: u64 = 5;
/// The shortest pause between two looks at a chain.
pub const FASTEST: Duration = Duration::from_secs(6);
/// The longest such pause.
pub const SLOWEST: Duration = Duration::from_secs(30);

/// One block as one look finds it.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    pub block: &'a Block,
    /// Whether the quorum shows it on the chain.
    pub on_chain: bool,
    /// When a look first missed it (unix seconds), if every look since has missed it.
    pub missed: Option<u64>,
}

/// What a look says about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is on the chain, too deep for a reorg.
    Past,
    /// It is on the chain.
    Stands,
    /// The providers show the chain before this block, so they say nothing about it.
    Early,
    /// It has been missing since that unix second.
    Missing(u64),
    /// Two looks have missed it.
    Gone,
}

impl Sight<'_> {
    /// Judges the block at a look from `head` at `now` (unix seconds).
    pub fn judge(&self, spec: &ChainSpec, head: &Head, now: u64) -> Verdict {
        let span = spec.finality.blocks.saturating_add(spec.watch_blocks);
        let (tip, number) = (head.block.number, self.block.number);
        if self.on_chain {
            let deep = tip.checked_sub(number).is_some_and(|depth| depth >= span);
            let tagged = spec.finality.tag == Some(FinalityTag::Finalized)
                && head.tagged.is_some_and(|tagged| number <= tagged);
            return match deep || tagged {
                true => Verdict::Past,
                false => Verdict::Stands,
            };
        }
        // A tip far below the block is a different chain, not a late provider.
        if number > tip && number - tip <= span {
            return Verdict::Early;
        }
        match self.missed {
            None => Verdict::Missing(now),
            Some(since) if now.saturating_sub(since) >= CONFIRM => Verdict::Gone,
            Some(since) => Verdict::Missing(since),
        }
    }
}

/// The result of a look, for [`pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A block is missing: look again soon.
    Alarmed,
    /// The head has moved since the last look.
    Moving,
    /// The head has not moved, nothing is watched, or no provider answered.
    Still,
}

/// The pause after a look; `before` is the pause before it.
pub fn pause(before: Duration, pace: Pace) -> Duration {
    match pace {
        Pace::Alarmed => FASTEST,
        Pace::Moving => (before / 2).max(FASTEST),
        Pace::Still => (before * 2).min(SLOWEST),
    }
}

#[cfg(test)]
mod tests {
    use vm::{B256, Finality};

    use super::*;
    use crate::attest::fixtures;

    fn spec(tag: Option<FinalityTag>) -> ChainSpec {
        let mut spec = fixtures::spec("base");
        spec.finality = Finality {
            blocks: 10,
            seconds: 60,
            tag,
        };
        spec.watch_blocks = 128;
        spec
    }

    fn at(number: u64) -> Block {
        Block {
            number,
            hash: B256::with_last_byte(1),
            parent: B256::ZERO,
            time: 0,
        }
    }

    #[test]
    fn a_block_is_past_gone_or_watched_on() {
        use Verdict::{Early, Gone, Missing, Past, Stands};
        let (safe, finalized) = (Some(FinalityTag::Safe), Some(FinalityTag::Finalized));
        // (tag, tip, tagged, on the chain, missed since, verdict); the block is 1000, now is 500.
        let cases = [
            (None, 1000, None, true, None, Stands),
            (None, 1137, None, true, None, Stands),
            (None, 1138, None, true, None, Past),
            // One answer that the block is there clears earlier misses.
            (None, 1020, None, true, Some(1), Stands),
            (finalized, 1020, Some(999), true, None, Stands),
            (finalized, 1020, Some(1000), true, None, Past),
            (finalized, 1138, Some(1), true, None, Past),
            (safe, 1020, Some(1000), true, None, Stands),
            (None, 1020, None, false, None, Missing(500)),
            (None, 1020, None, false, Some(496), Missing(496)),
            (None, 1020, None, false, Some(495), Gone),
            // A clock that was set back confirms nothing.
            (None, 1020, None, false, Some(501), Missing(501)),
            // At any depth, because the statement is signed.
            (None, 9999, None, false, Some(1), Gone),
            (finalized, 1020, Some(1010), false, Some(1), Gone),
            // Late providers, and a chain that starts anew.
            (None, 999, None, false, Some(1), Early),
            (None, 862, None, false, Some(1), Early),
            (None, 861, None, false, None, Missing(500)),
            (None, 0, None, false, Some(1), Gone),
        ];
        for (row, (tag, tip, tagged, on_chain, missed, verdict)) in cases.into_iter().enumerate() {
            let head = Head {
                block: at(tip),
                tagged,
            };
            let block = at(1000);
            let sight = Sight {
                block: &block,
                on_chain,
                missed,
            };
            assert_eq!(sight.judge(&spec(tag), &head, 500), verdict, "row {row}");
        }
    }

    #[test]
    fn looks_come_soon_after_a_miss_and_rarely_when_nothing_moves() {
        let second = Duration::from_secs;
        let cases = [
            (second(30), Pace::Alarmed, FASTEST),
            (second(30), Pace::Moving, second(15)),
            (FASTEST, Pace::Moving, FASTEST),
            (second(12), Pace::Still, second(24)),
            (SLOWEST, Pace::Still, SLOWEST),
        ];
        for (before, pace, after) in cases {
            assert_eq!(pause(before, pace), after, "{before:?} {pace:?}");
        }
        assert!(FASTEST.as_secs() > CONFIRM);
    }
}
