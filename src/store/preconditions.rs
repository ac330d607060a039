//! Preconditions of commits that were applied, to be looked at again later.

use super::{Batch, Expect, Key, Store, StoreError};

/// What a precondition takes besides its key and its row, about.
const EACH: usize = 64;

/// Preconditions of one or more commits.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    keys: Vec<Key>,
    expects: Vec<Expect>,
}

impl Preconditions {
    /// Adds those of `batch`.
    pub fn extend(&mut self, batch: &Batch) {
        let (keys, expects): (Vec<_>, Vec<_>) = batch.expects.iter().cloned().unzip();
        self.keys.extend(keys);
        self.expects.extend(expects);
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The bytes that they take, about.
    pub fn size(&self) -> usize {
        let keys = self.keys.iter().map(|key| EACH + key.name.len());
        let rows = self.expects.iter().map(|expect| match expect {
            Expect::Absent => 0,
            Expect::Equals(row) | Expect::AbsentOrEquals(row) => row.len(),
        });
        keys.chain(rows).sum()
    }

    /// Whether all hold, by rows that are read one after the other: a commit meanwhile may be seen in part.
    pub async fn hold(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let rows = store.read_all(&self.keys).await?;
        let mut all = self.expects.iter().zip(&rows);
        Ok(all.all(|(expect, row)| expect.met(row.as_deref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Kind, memory::MemoryStore};

    #[tokio::test]
    async fn hold_as_long_as_every_row_is_as_expected() {
        let store = MemoryStore::new();
        let key = |name: &str| Key::new(Kind(7), name);
        let put = |name: &str, row: &[u8]| Batch::new().put(key(name), row.to_vec());
        let delete = |name: &str| Batch::new().delete(key(name));
        let batch = Batch::new()
            .expect(key("a"), Expect::Absent)
            .expect(key("b"), Expect::Equals(b"1".to_vec()));
        let mut both = Preconditions::default();
        assert!(both.is_empty() && both.hold(&store).await.unwrap());
        both.extend(&batch);
        both.extend(&Batch::new().claim(key("c"), b"2".to_vec()));
        assert_eq!(both.size(), 3 * EACH + 5);
        for (change, holds) in [
            (put("b", b"1"), true),
            (put("c", b"2"), true),
            (put("c", b"3"), false),
            (delete("c"), true),
            (put("a", b""), false),
            (delete("a"), true),
            (put("b", b"2"), false),
            (delete("b"), false),
        ] {
            store.commit(change.clone()).await.unwrap();
            assert_eq!(both.hold(&store).await, Ok(holds), "{change:?}");
        }
    }
}
