//! Which deposits of one order are listed for the operator, and how many more may be.

use std::collections::{BTreeMap, BTreeSet};

use vm::B256;

use crate::store::{
    Key, Store,
    requests::RequestsError,
    rows::parked::{self, Parked},
};

/// Deposits of one order that are listed for the same reason: of those that are worth something, and of the
/// others.
pub const MOST: usize = 32;
/// More parked deposits than one order has.
const MOST_SCANNED: usize = 2_048;

/// See the module. Read once for a commit.
#[derive(Debug, Default)]
pub struct Listed {
    known: BTreeSet<Key>,
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

    /// Whether nobody has asked about this row, and it is not listed.
    pub fn is_new(&mut self, key: &Key) -> bool {
        self.known.insert(key.clone())
    }

    /// Whether one more like this is listed; it then is.
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
