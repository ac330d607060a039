//! Takes the cursor back to read blocks again; `index::again` says when.

use super::{Step, Stored, Tail};
use crate::{
    index::{IndexError, again::rewound},
    store::{Batch, Expect, rows::cursor::Mark},
};

impl Tail {
    /// Takes the cursor back to below block `number`, in which a deposit was shown that does not exist.
    pub(super) async fn read_again(
        &self,
        stored: &Stored,
        number: u64,
        now: u64,
    ) -> Result<Step, IndexError> {
        let cursor = &stored.cursor;
        let below = |mark: &Mark| mark.number < number;
        let mut back = match cursor.marks.iter().rposition(below) {
            // The cursor has not passed it.
            _ if number >= cursor.next => cursor.clone(),
            Some(kept) => rewound(cursor, kept),
            // No mark is that low: what is above the oldest mark is read again.
            None => {
                self.unread(number);
                match cursor.marks.is_empty() {
                    true => cursor.clone(),
                    false => rewound(cursor, 0),
                }
            }
        };
        back.again.done(now);
        let before = Expect::Equals(stored.bytes.clone());
        self.commit(before, &back, Batch::new()).await?;
        let to = back.next.saturating_sub(1);
        Ok(Step::Rewound { to })
    }

    /// Reports that `block` cannot be read again: no mark is below it.
    fn unread(&self, block: u64) {
        let network = self.network.name.clone();
        tracing::error!(
            %network, block,
            "deposits may be missing from this block on: `intentd index rewind` to before it reads it again"
        );
        metrics::counter!("intentd_index_not_read_again_total", "chain" => network).increment(1);
    }
}
