//! Lookup tables: accounts that list addresses, which messages name by their places.

use anyhow::{Context, Result, anyhow};
use solana_address_lookup_table_interface::state::{AddressLookupTable, LookupTableMeta};
use solana_keypair::Keypair;
use solana_message::AddressLookupTableAccount;
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer as _;

use super::{Cluster, put};

const LOOKUP_TABLES: Pubkey = pubkey!("AddressLookupTab1e1111111111111111111111111");

impl Cluster {
    /// A lookup table of `addresses`.
    pub fn lookup_table(&self, addresses: Vec<Pubkey>) -> Result<AddressLookupTableAccount> {
        let key = Keypair::new().pubkey();
        let table = AddressLookupTable {
            meta: LookupTableMeta::default(),
            addresses: addresses.clone().into(),
        };
        let data = table.serialize_for_tests();
        let data = data.map_err(|error| anyhow!("no lookup table: {error}"))?;
        let mut done = Ok(());
        self.ledger.lock().change(|state| {
            done = put(state, key, LOOKUP_TABLES, data);
        });
        done.map(|()| AddressLookupTableAccount { key, addresses })
    }

    /// The lookup table at an address.
    pub fn table(&self, key: &Pubkey) -> Result<AddressLookupTableAccount> {
        let account = self.ledger.lock().tip().state.get_account(key);
        let account = account.with_context(|| format!("no lookup table at {key}"))?;
        let table = AddressLookupTable::deserialize(&account.data);
        let table = table.map_err(|error| anyhow!("no lookup table at {key}: {error}"))?;
        Ok(AddressLookupTableAccount {
            key: *key,
            addresses: table.addresses.to_vec(),
        })
    }
}
