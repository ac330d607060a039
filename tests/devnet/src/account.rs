//! Accounts that exist only for the devnet: keys derived from names, so that two runs agree.

use alloy::{
    network::EthereumWallet,
    primitives::{Address, B256, Bytes, keccak256},
    signers::{SignerSync, local::PrivateKeySigner},
};
use anyhow::Result;

/// A named key. Never give one of these anything of value: the name is the secret.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    signer: PrivateKeySigner,
}

impl Account {
    pub fn named(name: &str) -> Result<Self> {
        let secret = keccak256(format!("intentd devnet account {name}"));
        Ok(Self {
            name: name.to_owned(),
            signer: PrivateKeySigner::from_bytes(&secret)?,
        })
    }

    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// The private key: 32 bytes as `0x` hex.
    pub fn key(&self) -> String {
        self.signer.to_bytes().to_string()
    }

    /// What signs this account's transactions.
    pub fn wallet(&self) -> EthereumWallet {
        self.signer.clone().into()
    }

    /// Signs 32 bytes as they are: `r || s || v`, v 27 or 28, low s.
    pub fn sign_digest(&self, digest: B256) -> Result<Bytes> {
        let signature = self.signer.sign_hash_sync(&digest)?;
        Ok(signature.as_bytes().to_vec().into())
    }

    /// EIP-191 `personal_sign` of raw bytes.
    pub fn sign_message(&self, message: &[u8]) -> Result<Bytes> {
        let signature = self.signer.sign_message_sync(message)?;
        Ok(signature.as_bytes().to_vec().into())
    }
}
