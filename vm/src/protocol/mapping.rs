//! Generic mapping entries: nonce mapping, no fill or refund (guide: protocol 9.1).
//!
//! Pure. The hashes cover the given texts, so their spelling matters.

use sha2::{Digest, Sha256};

use super::message::{self, GenericMapping, TextError};
use crate::types::{B256, Bytes, EvmAddress};

/// The id of the entry for a transfer's `nonce` (decimal text), under its wallet's alias.
pub fn nonce_mapping_id(nonce: &str) -> B256 {
    sha256(&["NONCE_MAPPING:", nonce])
}

/// The id of the entry for an order, under its solver's alias.
pub fn no_fill_or_refund_id(order_id: &str) -> B256 {
    sha256(&["NO_FILL_OR_REFUND:", order_id])
}

/// Maps the transfer with `nonce` to the deposit `id`; `user` is the wallet's alias.
pub fn nonce_mapping(
    user: &str,
    nonce: &str,
    id: B256,
    depositor: Option<EvmAddress>,
) -> Result<GenericMapping, TextError> {
    let mut data = id.to_vec();
    data.extend(depositor.iter().flatten());
    Ok(GenericMapping {
        user: message::address(user)?,
        id: nonce_mapping_id(nonce),
        data: data.into(),
        nonce: sha256(&[user, ":", nonce]),
    })
}

/// The data of a nonce mapping in the spelling of answers: the caller's own digits and case, because oracles compare
/// answers as text.
pub fn nonce_mapping_text(id: &str, depositor: Option<&str>) -> String {
    let depositor = depositor.unwrap_or_default();
    format!("{id}{}", depositor.strip_prefix("0x").unwrap_or(depositor))
}

/// Marks an order for ever as neither filled nor refunded; `user` is the solver's alias.
pub fn no_fill_or_refund(user: &str, order_id: &str) -> Result<GenericMapping, TextError> {
    Ok(GenericMapping {
        user: message::address(user)?,
        id: no_fill_or_refund_id(order_id),
        data: Bytes::from_static(&[1]),
        nonce: sha256(&[user, ":", order_id]),
    })
}

fn sha256(parts: &[&str]) -> B256 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    B256::new(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use alloy::primitives::{address, b256};

    use super::*;

    const USER: &str = "0xbfbfc1e98f06d1fecc5bc12dcb8110f051127b26";

    #[test]
    fn an_entry_says_which_deposit_a_nonce_is() {
        let id = b256!("59b812b6ec6959947f3536dab183ac3beecc454643224f66778631a1ee748edc");
        let depositor = address!("e915714726cb33e1ea87e17ea3d205246a52ae1a");
        let entry = nonce_mapping(USER, "2924838243291794780", id, Some(depositor)).unwrap();
        assert_eq!(
            entry.id,
            b256!("85988828c4b3f1000c5db80a6e83f53d7cb53c2ce09b95407052e47d813e003f")
        );
        assert_eq!(entry.data[..32], id[..]);
        assert_eq!(entry.data[32..], depositor[..]);
        let text = nonce_mapping_text(&id.to_string(), Some(&depositor.to_checksum(None)));
        assert_eq!(message::bytes(&text).unwrap(), entry.data);
        assert_eq!(nonce_mapping_text("0xAb", None), "0xAb");
        let bare = nonce_mapping(USER, "2924838243291794780", id, None).unwrap();
        assert_eq!(bare.data[..], id[..]);
        assert_eq!(bare.nonce, entry.nonce);
    }

    #[test]
    fn the_spelling_of_the_alias_counts() {
        let sums = message::address(USER).unwrap().to_checksum(None);
        let lower = no_fill_or_refund(USER, "0xab").unwrap();
        let summed = no_fill_or_refund(&sums, "0xab").unwrap();
        assert_eq!(lower.user, summed.user);
        assert_ne!(lower.nonce, summed.nonce);
        assert_ne!(no_fill_or_refund(USER, "0xAB").unwrap().id, lower.id);
    }

    #[test]
    fn a_user_that_is_no_account_is_refused() {
        assert!(no_fill_or_refund("0x1", "0xab").is_err());
        assert!(nonce_mapping("", "1", B256::ZERO, None).is_err());
    }
}
