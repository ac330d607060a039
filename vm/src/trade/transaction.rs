//! Transactions before they are signed, and what nodes take.

use super::Call;
use crate::{
    CodecError,
    protocol::limits,
    types::{Address, B256, Bytes},
};

/// A transaction before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub call: Call,
    /// EIP-7702; empty for a transaction without.
    pub authorizations: Vec<Authorization>,
    pub nonce: u64,
    /// Gas units.
    pub gas: u64,
    /// Wei per gas unit, at most.
    pub max_fee: u128,
    pub max_priority_fee: u128,
}

/// An EIP-7702 authorization with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub chain_id: u64,
    pub address: Address,
    pub nonce: u64,
    pub y_parity: u8,
    pub r: B256,
    pub s: B256,
}

/// What the nodes of a chain take, and what its operator lets a transaction cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a signed transaction.
    pub bytes: usize,
    /// Gas units of a transaction.
    pub gas: u64,
    /// Wei per gas unit.
    pub max_fee: u128,
    /// Whether transactions can carry authorizations.
    pub authorizations: bool,
    /// The contract that says what the chain charges for a transaction's bytes besides gas.
    pub data_fees: Option<Address>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: limits::TRANSACTION,
            gas: 1 << 24,
            max_fee: 1_000_000_000_000,
            authorizations: false,
            data_fees: None,
        }
    }
}

/// Why no node of a chain would take a transaction, whatever the state of the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the transaction has {bytes} bytes, the chain takes {most}")]
    Large { bytes: usize, most: usize },
    #[error("the transaction may take {gas} gas, the chain allows {most}")]
    Gas { gas: u64, most: u64 },
    #[error("the chain takes no transactions with authorizations")]
    Type,
    /// Which of them (from 0), and what is wrong with it.
    #[error("authorization {0}: {1}")]
    Authorization(usize, String),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Transactions of a family as bytes. Pure.
pub trait TransactionCodec: Send + Sync {
    /// Whether nodes take it, as far as it tells itself; whose authorizations it carries, in order.
    fn admit(&self, chain: u64, draft: &Draft, limits: &Limits) -> Result<Vec<Address>, Unfit>;
    /// The call that asks `contract` ([`Limits::data_fees`]) what the chain charges for the bytes; the
    /// answer's first 32 bytes are the number. `None`: the contract that most such chains have.
    fn data_fee(
        &self,
        chain: u64,
        draft: &Draft,
        contract: Option<&Address>,
    ) -> Result<Call, CodecError>;
    /// The call that asks an approval proxy which contract it hands calls to, and what it answers when
    /// that is `router`.
    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError>;
    /// What the sender signs.
    fn digest(&self, chain: u64, draft: &Draft) -> Result<B256, CodecError>;
    /// The signed transaction as it goes over the wire, and its id. The signature is `r || s || v`.
    fn seal(
        &self,
        chain: u64,
        draft: &Draft,
        signature: &[u8; 65],
    ) -> Result<(Bytes, B256), CodecError>;
}
