//! Lookup tables: accounts that list addresses, which a message names by their places in the list (Solana's address
//! lookup table program).

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use solana_address_lookup_table_interface::{program, state::AddressLookupTable};
use solana_message::AddressLookupTableAccount;
use solana_pubkey::Pubkey;

use super::{super::raw::RawAccount, node::Node};
use crate::{
    ReadError,
    trade::{Failover, TradingProvider},
};

/// How long a table is believed to be as it was read. Addresses are only ever added.
const AGE: Duration = Duration::from_secs(300);
/// Tables that are remembered; each has 8 KiB at most.
const REMEMBERED: u64 = 512;
/// The most tables of one transaction: each takes 34 bytes of it at least.
const MOST: usize = 36;
/// The slot of deactivation of a table that is in use.
const ACTIVE: u64 = u64::MAX;

/// The tables of a chain that were read lately.
pub struct Tables(Cache<Pubkey, Arc<[Pubkey]>>);

impl Default for Tables {
    fn default() -> Self {
        let tables = Cache::builder().max_capacity(REMEMBERED).time_to_live(AGE);
        Self(tables.build())
    }
}

impl Tables {
    /// The tables in the order of their addresses, by the word of one provider: what rests on it is shown, or refused.
    pub async fn read(
        &self,
        failover: &Failover,
        keys: &[Pubkey],
    ) -> Result<Vec<AddressLookupTableAccount>, ReadError> {
        let unknown = keys.iter().filter(|key| !self.0.contains_key(*key));
        let unknown: Vec<Pubkey> = unknown.copied().collect();
        if !unknown.is_empty() {
            let asked = &unknown;
            let ask =
                |provider: TradingProvider| async move { read(Node::of(&provider)?, asked).await };
            for table in failover.first(ask).await? {
                self.0.insert(table.key, table.addresses.into());
            }
        }
        let known = keys.iter().map(|key| {
            let addresses = self.0.get(key).ok_or_else(|| missing(key))?;
            Ok::<_, ReadError>(AddressLookupTableAccount {
                key: *key,
                addresses: addresses.to_vec(),
            })
        });
        known.collect()
    }
}

/// The tables in the order of their addresses, by the word of one node. An error where one of them is none, or is not
/// in use any more: no message can be compiled with it.
pub async fn read(
    node: &Node,
    keys: &[Pubkey],
) -> Result<Vec<AddressLookupTableAccount>, ReadError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    if keys.len() > MOST {
        return Err(ReadError::Unavailable("too many lookup tables".into()));
    }
    let asked = node.link.questions.accounts(keys);
    let found = node.link.read(Box::pin(asked)).await?;
    let tables = keys.iter().zip(&found).map(|(key, account)| {
        let table = account.as_ref().and_then(|account| table(key, account));
        table.ok_or_else(|| missing(key))
    });
    tables.collect()
}

/// The table that an account is; `None` where it is none, or none that is in use.
fn table(key: &Pubkey, account: &RawAccount) -> Option<AddressLookupTableAccount> {
    let data = account.bytes()?;
    let table = AddressLookupTable::deserialize(&data).ok()?;
    let usable = account.owner.0 == program::ID && table.meta.deactivation_slot == ACTIVE;
    usable.then(|| AddressLookupTableAccount {
        key: *key,
        addresses: table.addresses.to_vec(),
    })
}

fn missing(key: &Pubkey) -> ReadError {
    ReadError::Unavailable(format!("no lookup table in use at {key}"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use serde_json::json;

    use super::*;

    /// As the program writes it: the kind, the slots of deactivation and of the last addition, the place where those
    /// begin, an authority, two bytes of nothing, and the addresses.
    fn account(owner: &Pubkey, kind: u32, deactivated: u64, addresses: &[Pubkey]) -> RawAccount {
        let mut data = kind.to_le_bytes().to_vec();
        data.extend(deactivated.to_le_bytes());
        data.extend(7_u64.to_le_bytes());
        data.push(0);
        data.push(1);
        data.extend([9; 32]);
        data.extend([0; 2]);
        data.extend(addresses.iter().flat_map(Pubkey::to_bytes));
        let account = json!({"owner": owner.to_string(), "lamports": 1,
                             "data": [BASE64_STANDARD.encode(&data), "base64"]});
        serde_json::from_value(account).unwrap()
    }

    #[test]
    fn table_in_use_is_read_and_nothing_else() {
        let key = Pubkey::new_from_array([1; 32]);
        let addresses = [2, 3].map(|byte| Pubkey::new_from_array([byte; 32]));
        let read = table(&key, &account(&program::ID, 1, ACTIVE, &addresses)).unwrap();
        assert_eq!((read.key, &read.addresses[..]), (key, &addresses[..]));
        let empty = table(&key, &account(&program::ID, 1, ACTIVE, &[]));
        assert_eq!(empty.unwrap().addresses, []);
        for wrong in [
            account(&program::ID, 1, 5, &addresses),
            account(&program::ID, 0, ACTIVE, &addresses),
            account(&program::ID, 2, ACTIVE, &addresses),
            account(&key, 1, ACTIVE, &addresses),
        ] {
            assert!(table(&key, &wrong).is_none());
        }
    }
}
