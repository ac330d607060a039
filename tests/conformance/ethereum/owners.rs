//! How owners of `ethereum-vm` accounts sign.

use alloy::{
    primitives::B256,
    signers::{SignerSync, local::PrivateKeySigner},
};

use crate::family::{Offered, Owner, OwnerForm, greater_s, owner};

/// Changes a signature, which is `r`, `s` and `v`.
type Change = fn(&mut [u8; 65]);

pub fn owners(form: OwnerForm, key: u8) -> Offered<Vec<Owner>> {
    let signer = PrivateKeySigner::from_bytes(&B256::repeat_byte(key)).unwrap();
    let (lower, mixed) = (
        format!("{:#x}", signer.address()),
        signer.address().to_string(),
    );
    let signed = |what: &'static str, account: &str, change: Change| {
        let signer = signer.clone();
        owner((what, account), true, move |digest| {
            let mut bytes = signer.sign_message_sync(digest).unwrap().as_bytes();
            change(&mut bytes);
            bytes.to_vec()
        })
    };
    Ok(match form {
        OwnerForm::Good => vec![
            signed("v of 27 or 28", &lower, |_| {}),
            signed("v of 0 or 1", &lower, |bytes| bytes[64] -= 27),
            signed("an account in both cases", &mixed, |_| {}),
        ],
        OwnerForm::HighS => vec![signed("the greater s", &lower, high)],
        OwnerForm::Transaction | OwnerForm::OtherKind => {
            return Err("an account signs messages in one way");
        }
    })
}

/// The other `s` of the same signature, and the other parity with it.
fn high(bytes: &mut [u8; 65]) {
    let high = greater_s(&bytes[32..64]);
    bytes[32..64].copy_from_slice(&high);
    bytes[64] = 27 + 28 - bytes[64];
}
