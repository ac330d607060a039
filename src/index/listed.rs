//! Which deposits of one request are listed for the operator, and how many more may be.

use std::collections::{BTreeMap, BTreeSet};

use vm::B256;

use crate::store::{
    Key, Store,
    requests::RequestsError,
    rows::parked::{self, Parked},
};

/// Deposits of one request that are listed for the same reason: so many that are worth something, and so many minor
/// ones.
pub const MOST: usize = 32;
/// More than the parked deposits that one request has.
const MOST_SCANNED: usize = 2_048;

/// The listed deposits of one request, read once for a commit.
#[derive(Debug, Default)]
pub struct Listed {
    /// Rows that are listed, or were asked about.
    known: BTreeSet<Key>,
    /// Listed ones, by their note and whether they are minor.
    alike: BTreeMap<(String, bool), usize>,
}

impl Listed {
    pub async fn of(store: &dyn Store, request: &B256) -> Result<Self, RequestsError> {
        let mut listed = Self::default();
        for (key, row) in store.scan(parked::of(request, MOST_SCANNED)).await? {
            *listed.alike(&Parked::decode(&row)?) += 1;
            listed.known.insert(key);
        }
        Ok(listed)
    }

    /// Whether a row is not listed and was not asked about before.
    pub fn is_new(&mut self, key: &Key) -> bool {
        self.known.insert(key.clone())
    }

    /// Whether there is room for one more such row; if so, it counts as listed.
    pub fn takes(&mut self, row: &Parked) -> bool {
        let alike = self.alike(row);
        let room = *alike < MOST;
        *alike += usize::from(room);
        room
    }

    fn alike(&mut self, row: &Parked) -> &mut usize {
        self.alike.entry((row.note.clone(), row.minor)).or_default()
    }
}
