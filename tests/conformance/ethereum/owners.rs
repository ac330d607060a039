//! How owners of `ethereum-vm` accounts sign.

use alloy::{
    primitives::{Address, B256, Bytes},
    signers::{SignerSync, local::PrivateKeySigner},
    sol_types::SolValue,
};

use crate::family::{Offered, Owner, OwnerForm, greater_s, owner};

/// Changes a signature, which is `r`, `s` and `v`.
type Change = fn(&mut [u8; 65]);
/// Makes a contract's signature of a key's.
type Wrap = fn(Vec<u8>) -> Vec<u8>;

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
    let contract = format!("{:#x}", Address::repeat_byte(0xc0));
    let wrapped = |what: &'static str, account: &str, wrap: Wrap| {
        let signer = signer.clone();
        owner((what, account), false, move |digest| {
            let signature = signer.sign_message_sync(digest).unwrap();
            wrap(signature.as_bytes().to_vec())
        })
    };
    Ok(match form {
        OwnerForm::Good => vec![
            signed("v of 27 or 28", &lower, |_| {}),
            signed("v of 0 or 1", &lower, |bytes| bytes[64] -= 27),
            signed("an account in both cases", &mixed, |_| {}),
        ],
        OwnerForm::HighS => vec![signed("the greater s", &lower, high)],
        OwnerForm::Transaction => return Err("an account signs messages in one way"),
        // Contracts are not asked whether they signed.
        OwnerForm::OtherKind => vec![
            wrapped("EIP-1271 for a contract", &contract, |plain| plain),
            wrapped("EIP-6492 for a contract", &contract, undeployed),
            wrapped("EIP-6492 for the key itself", &lower, undeployed),
        ],
    })
}

/// The form of EIP-6492: who makes the contract, with which call, and what the contract would say is its signature.
fn undeployed(signature: Vec<u8>) -> Vec<u8> {
    let (factory, call) = (Address::repeat_byte(0xfa), Bytes::from(vec![0x12_u8; 4]));
    let mut all = (factory, call, Bytes::from(signature)).abi_encode_params();
    all.extend([0x64_u8, 0x92].repeat(16));
    all
}

/// The other `s` of the same signature, and the other parity with it.
fn high(bytes: &mut [u8; 65]) {
    let high = greater_s(&bytes[32..64]);
    bytes[32..64].copy_from_slice(&high);
    bytes[64] = 27 + 28 - bytes[64];
}
