//! How owners of `solana-vm` accounts sign.

use alloy::{
    hex,
    primitives::{B256, U256, b256},
};
use ed25519_dalek::{Signer, SigningKey};

use super::base58;
use crate::family::{Offered, Owner, OwnerForm, owner};

/// The order of the curve's group.
const ORDER: B256 = b256!("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed");

pub fn owners(form: OwnerForm, key: u8) -> Offered<Vec<Owner>> {
    let key = SigningKey::from_bytes(&[key; 32]);
    let account = base58(key.verifying_key().as_bytes());
    let signed = move |digest: &[u8; 32]| key.sign(hex::encode(digest).as_bytes()).to_bytes();
    Ok(match form {
        OwnerForm::Good => vec![owner(("64 bytes", &account), true, move |digest| {
            signed(digest).to_vec()
        })],
        OwnerForm::HighS => vec![owner(("the greater s", &account), false, move |digest| {
            high(signed(digest)).to_vec()
        })],
        OwnerForm::Transaction | OwnerForm::OtherKind => {
            return Err("an account signs messages in one way");
        }
    })
}

/// The same signature with an `s` that is not below the group's order.
fn high(mut signature: [u8; 64]) -> [u8; 64] {
    let low = U256::from_le_slice(&signature[32..]);
    let high = low + U256::from_be_bytes(ORDER.0);
    signature[32..].copy_from_slice(&high.to_le_bytes::<32>());
    signature
}
