//! How many blocks are asked for at once, learned from what the provider answers.

/// Blocks of the first range.
const FIRST: u64 = 1_000;
/// Blocks of the largest range.
const MOST: u64 = 10_000;

/// The present number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(u64);

impl Default for Span {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Span {
    /// Blocks to ask for at most; at least one.
    pub fn blocks(self) -> u64 {
        self.0
    }

    /// Notes that `blocks` were too many. False when it cannot ask for less.
    pub fn refused(&mut self, blocks: u64) -> bool {
        self.0 = (blocks / 2).max(1);
        blocks > 1
    }

    /// Notes that `blocks` were answered fast: if that was the most that may be asked, a little more next time.
    pub fn borne(&mut self, blocks: u64) {
        if blocks >= self.0 {
            self.0 = (self.0 + self.0 / 8 + 1).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_halves_when_refused_and_grows_slowly() {
        let mut span = Span::default();
        assert!(span.refused(1_000));
        assert_eq!(span.blocks(), 500);
        span.borne(10);
        assert_eq!(span.blocks(), 500, "a short range proves nothing");
        span.borne(500);
        assert_eq!(span.blocks(), 563);
        for _ in 0..100 {
            span.borne(MOST);
        }
        assert_eq!(span.blocks(), MOST);
        assert!(span.refused(2));
        assert!(!span.refused(1));
        assert_eq!(span.blocks(), 1);
        span.borne(1);
        assert_eq!(span.blocks(), 2);
    }
}
