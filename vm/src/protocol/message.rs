//! The typed data (EIP-712) that oracles sign, and that clients sign for oracles (guide: protocol 6).
//!
//! Pure: values in, digests out. The contracts and chains of the domains come from the caller's configuration. These
//! functions parse text strictly, so that no malformed text reaches a digest.

mod client;
mod hub;
pub mod id;
#[cfg(test)]
mod tests;
mod withdrawal;

use alloy::{
    primitives::{U256, keccak256},
    sol_types::{Eip712Domain, SolStruct},
};

pub use client::{NoFillOrRefund, NonceMapping};
pub use hub::{Execution, GenericMapping, Trigger};
pub use withdrawal::{Authorization, ExecuteAndWithdraw, Fee, Inclusion, PayloadParams};

use super::text;
use crate::types::{B256, Bytes, EvmAddress};

/// Something with an EIP-712 struct hash.
pub trait TypedMessage {
    /// The hash of the message alone.
    fn struct_hash(&self) -> B256;

    /// The signed digest: `keccak(0x1901 ++ domain separator ++ struct hash)`.
    fn digest(&self, domain: &Domain) -> B256 {
        let mut bytes = [0; 66];
        bytes[..2].copy_from_slice(&[0x19, 0x01]);
        bytes[2..34].copy_from_slice(&domain.separator[..]);
        bytes[34..].copy_from_slice(&self.struct_hash()[..]);
        keccak256(bytes)
    }
}

/// An EIP-712 domain: name, version, chain and contract, all four always present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    chain: U256,
    contract: EvmAddress,
    separator: B256,
}

impl Domain {
    fn new(name: &'static str, version: &str, chain: U256, contract: EvmAddress) -> Self {
        let domain = Eip712Domain::new(
            Some(name.into()),
            Some(version.to_owned().into()),
            Some(chain),
            Some(contract),
            None,
        );
        Self {
            chain,
            contract,
            separator: domain.separator(),
        }
    }

    /// The domain of [`Execution`]: the hub file's `oracleVersion`, `evmChainId`, `oracleAddress`.
    pub fn oracle(version: &str, chain: U256, contract: EvmAddress) -> Self {
        Self::new("RelayOracle", version, chain, contract)
    }

    /// The domain of [`GenericMapping`]: `evmChainId`, `genericMappingAddress`.
    pub fn generic_mapping(chain: U256, contract: EvmAddress) -> Self {
        Self::new("RelayGenericMapping", "1", chain, contract)
    }

    /// The domain of [`PayloadParams`]: `auroraEvmChainId`, `auroraAllocatorSpenderAddress`.
    pub fn allocator_spender(chain: U256, contract: EvmAddress) -> Self {
        Self::new("RelayAllocatorSpender", "1", chain, contract)
    }

    /// The domain of [`Trigger`]: `evmChainId`.
    pub fn trigger(chain: U256) -> Self {
        Self::new("Trigger", "1", chain, EvmAddress::ZERO)
    }

    /// The domain of [`ExecuteAndWithdraw`]: `evmChainId`, `executorAddress`.
    pub fn executor(chain: U256, contract: EvmAddress) -> Self {
        Self::new("RelayExecutor", "1", chain, contract)
    }

    /// The domain of [`Inclusion`]: `evmChainId`.
    pub fn withdraw_request(chain: U256) -> Self {
        Self::new("WithdrawRequest", "1", chain, EvmAddress::ZERO)
    }

    /// The domain of [`Authorization`]: `evmChainId`, `allocatorAddress`.
    pub fn allocator(chain: U256, contract: EvmAddress) -> Self {
        Self::new("RelayAllocator", "1", chain, contract)
    }

    /// The domain of [`NonceMapping`]: the hub's number of the chain that the wallet signs on.
    pub fn nonce_mapping(chain: U256) -> Self {
        Self::new("RelayNonceMapping", "2", chain, EvmAddress::ZERO)
    }

    /// The same of a [`NonceMapping`] of the first version.
    pub fn first_nonce_mapping(chain: U256) -> Self {
        Self::new("RelayNonceMapping", "1", chain, EvmAddress::ZERO)
    }

    /// The domain of [`NoFillOrRefund`]: the hub's number of the solver's chain.
    pub fn no_fill_or_refund(chain: U256) -> Self {
        Self::new("RelayNoFillOrRefund", "1", chain, EvmAddress::ZERO)
    }

    pub fn chain(&self) -> U256 {
        self.chain
    }

    pub fn contract(&self) -> EvmAddress {
        self.contract
    }

    pub fn separator(&self) -> B256 {
        self.separator
    }
}

/// A text that a typed message cannot contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error(
        "{0:?} is not an address: expected 0x and 40 hex digits, with a correct checksum if of mixed case"
    )]
    Address(String),
    #[error("{0:?} is not 32 bytes: expected 0x and 64 hex digits")]
    Word(String),
    #[error("{0:?} is not bytes: expected 0x and an even number of hex digits")]
    Bytes(String),
}

/// Parses an EVM account for typed data: one case throughout, or a correct checksum.
pub fn address(text: &str) -> Result<EvmAddress, TextError> {
    let wrong = || TextError::Address(text.to_owned());
    let bytes = text::bytes(text).map_err(|_| wrong())?;
    let address = EvmAddress::try_from(&bytes[..]).map_err(|_| wrong())?;
    let digits = &text[2..];
    let lower = !digits.bytes().any(|b| b.is_ascii_uppercase());
    let upper = !digits.bytes().any(|b| b.is_ascii_lowercase());
    let sound = lower || upper || address.to_checksum(None) == text;
    sound.then_some(address).ok_or_else(wrong)
}

/// Parses `0x` and exactly 32 bytes of hex.
pub fn word(text: &str) -> Result<B256, TextError> {
    text::bytes(text)
        .ok()
        .and_then(|bytes| B256::try_from(&bytes[..]).ok())
        .ok_or_else(|| TextError::Word(text.to_owned()))
}

/// Parses `0x` and whole bytes of hex.
pub fn bytes(text: &str) -> Result<Bytes, TextError> {
    text::bytes(text).map_err(|_| TextError::Bytes(text.to_owned()))
}

fn hash(message: &impl SolStruct) -> B256 {
    message.eip712_hash_struct()
}
