//! Hub identifiers: aliases, token ids, order and withdrawal addresses (guide: protocol 2.4).
//!
//! The hub identifies a chain by the UTF-8 bytes of its name, and everything on it by the family's bytes. The `safe`
//! variants hash `abi.encode` instead of packed bytes, so that no two inputs have one preimage.

use alloy::{primitives::keccak256, sol_types::SolValue};

use crate::{Address, B256, Bytes, ChainId, EvmAddress, U256};

/// The hub account of `address` of `chain`.
pub fn alias(chain: &ChainId, address: &Address) -> EvmAddress {
    last20(qualified(chain, address))
}

/// The hub's id of `currency` of `chain`.
pub fn token_id(chain: &ChainId, currency: &Address) -> U256 {
    qualified(chain, currency).into()
}

/// The hub account that holds a deposit until its order is filled or refunded.
pub struct OrderAccount<'a> {
    pub chain: &'a ChainId,
    pub depositor: &'a Address,
    /// The time of the deposit's block in unix seconds.
    pub timestamp: U256,
    /// The order id that the deposit names.
    pub deposit: B256,
}

impl OrderAccount<'_> {
    /// `keccak(chain ++ depositor ++ timestamp ++ deposit)`, the last 20 bytes.
    pub fn address(&self) -> EvmAddress {
        hashed(&[
            self.chain.as_str().as_bytes(),
            self.depositor.bytes(),
            &self.timestamp.to_be_bytes::<32>(),
            self.deposit.as_slice(),
        ])
    }

    /// The account in the `safe` form: over `abi.encode(string,bytes,uint256,bytes32)`.
    pub fn safe_address(&self) -> EvmAddress {
        let fields = (
            self.chain.as_str(),
            bytes(self.depositor),
            self.timestamp,
            self.deposit,
        );
        last20(keccak256(fields.abi_encode_params()))
    }
}

/// The hub account that holds an owner's withdrawal until it is executed.
pub struct WithdrawalAccount<'a> {
    pub chain: &'a ChainId,
    pub depository: &'a Address,
    pub currency: &'a Address,
    pub recipient: &'a Address,
    pub owner: EvmAddress,
    pub nonce: U256,
}

impl WithdrawalAccount<'_> {
    /// `keccak(chain ++ depository ++ currency ++ recipient ++ owner ++ nonce)`, the last 20 bytes.
    pub fn address(&self) -> EvmAddress {
        hashed(&[
            self.chain.as_str().as_bytes(),
            self.depository.bytes(),
            self.currency.bytes(),
            self.recipient.bytes(),
            self.owner.as_slice(),
            &self.nonce.to_be_bytes::<32>(),
        ])
    }

    /// A nonce with the first 16 bytes of the account's nonce, whose last 16 bytes commit to the account and to
    /// `settlement`: they are those of `keccak(settlement ++ address)`, with the address of the same account with
    /// zeros in their place. A withdrawer signs amount and nonce, so this nonce makes the signature cover recipient,
    /// currency and chain too.
    pub fn bound_nonce(&self, settlement: &str) -> U256 {
        let mut nonce = self.nonce.to_be_bytes::<32>();
        nonce[16..].fill(0);
        let unbound = Self {
            nonce: U256::from_be_bytes(nonce),
            ..*self
        };
        let address = unbound.address();
        let hash = keccak256([settlement.as_bytes(), address.as_slice()].concat());
        nonce[16..].copy_from_slice(&hash[16..]);
        U256::from_be_bytes(nonce)
    }

    /// The account in the `safe` form: over `abi.encode(string,bytes,bytes,bytes,address,bytes32,bytes)`.
    pub fn safe_address(&self, additional: &[u8]) -> EvmAddress {
        let fields = (
            self.chain.as_str(),
            bytes(self.depository),
            bytes(self.currency),
            bytes(self.recipient),
            self.owner,
            B256::from(self.nonce),
            Bytes::copy_from_slice(additional),
        );
        last20(keccak256(fields.abi_encode_params()))
    }
}

fn qualified(chain: &ChainId, address: &Address) -> B256 {
    keccak256([chain.as_str().as_bytes(), address.bytes()].concat())
}

fn hashed(parts: &[&[u8]]) -> EvmAddress {
    last20(keccak256(parts.concat()))
}

fn last20(hash: B256) -> EvmAddress {
    EvmAddress::from_word(hash)
}

fn bytes(address: &Address) -> Bytes {
    Bytes::copy_from_slice(address.bytes())
}
