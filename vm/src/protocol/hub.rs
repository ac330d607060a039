//! Hub identifiers: aliases, token ids, order and withdrawal addresses (guide: protocol 2.4).
//!
//! The hub knows a chain by its name's UTF-8 bytes and everything on it by the family's bytes. The
//! `safe` variants are `abi.encode` instead of packed, so that no two inputs share one preimage.

use alloy::{primitives::keccak256, sol_types::SolValue};

use crate::{Address, B256, Bytes, ChainId, EvmAddress, U256};

/// The account that stands for `address` of `chain` at the hub.
pub fn alias(chain: &ChainId, address: &Address) -> EvmAddress {
    last20(qualified(chain, address))
}

/// The id of `currency` of `chain` at the hub.
pub fn token_id(chain: &ChainId, currency: &Address) -> U256 {
    qualified(chain, currency).into()
}

/// The hub account that holds a deposit for its order until it is filled or refunded.
pub struct OrderAccount<'a> {
    pub chain: &'a ChainId,
    pub depositor: &'a Address,
    /// Of the deposit's block, in Unix seconds.
    pub timestamp: U256,
    /// The id that the deposit names.
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

    /// The same over `abi.encode(string,bytes,uint256,bytes32)`.
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

/// The hub account that holds what an owner withdraws until the withdrawal is executed.
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

    /// The nonce whose first 16 bytes are the account's nonce's, and whose last 16 bytes commit to the
    /// account and to `settlement`: those of `keccak(settlement ++ address)`, the address being that of
    /// the same account with zeros there. A withdrawer signs amount and nonce: with this one, who gets
    /// what, where, too.
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

    /// The same over `abi.encode(string,bytes,bytes,bytes,address,bytes32,bytes)`.
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
