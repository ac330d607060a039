//! Nonces of the solver's account on one chain, and the transactions that have them.
//!
//! Key: the lane's name (see [`further`]) for its [`Lane`]; the name, a zero byte and the nonce as 8
//! bytes big endian for a [`Slot`]. Names hold no zero byte. Values, format 1: postcard.
//!
//! A lane's row stays; a nonce's lives until its payment is final. Some 1 KB for each payment on its way.

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::{LANE, RowError, decode, encode};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

/// A chain's lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// The nonce that the next transaction takes.
    pub next: u64,
    /// Nonces that were somebody else's when the lane passed them.
    pub skipped: Vec<u64>,
    /// Whose nonces they are.
    pub account: String,
}

/// What the lane of a further account on a network is called; the first one has the network's name.
pub fn further(network: &str, account: &str) -> String {
    format!("{network}/{account}")
}

/// A nonce that was taken, until what became of it is final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub owner: Owner,
    /// Address texts as the family spells them.
    pub to: String,
    pub data: Bytes,
    pub value: U256,
    pub authorizations: Vec<Authorization>,
    /// Gas units.
    pub gas: u64,
    /// Most that the chain takes for the bytes besides gas.
    pub data_fee: U256,
    /// Currencies besides the native one that it takes from the solver.
    pub spends: Vec<(String, U256)>,
    /// What was signed with this nonce, oldest first; any may land.
    pub versions: Vec<Version>,
    /// Unix seconds of the newest version.
    pub sent_at: u64,
    /// How often nodes refused it since one took it.
    pub refused: u32,
}

/// What a nonce is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A payment of this request's claim.
    Request(B256),
    /// What `spender` may take of a currency.
    Allowance { spender: String, currency: String },
    /// An execution at the settlement contract for this request.
    Settlement(B256),
    /// Nobody: it only has to be used up.
    Gap,
}

/// One signed transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub hash: B256,
    pub raw: Bytes,
    /// Gas units.
    pub gas: u64,
    /// Wei per gas unit.
    pub max_fee: u128,
    pub max_priority_fee: u128,
    /// It pays nobody: it only uses the nonce up.
    pub cancels: bool,
}

/// An EIP-7702 authorization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    pub chain_id: u64,
    pub address: String,
    pub nonce: u64,
    pub y_parity: u8,
    pub r: B256,
    pub s: B256,
}

pub fn key(network: &str) -> Key {
    Key::new(LANE, network)
}

pub fn slot_key(network: &str, nonce: u64) -> Key {
    Key::new(
        LANE,
        [prefix(network).as_slice(), &nonce.to_be_bytes()].concat(),
    )
}

/// The nonce of the slot under `key`.
pub fn nonce(network: &str, key: &Key) -> Result<u64, RowError> {
    key.name
        .strip_prefix(prefix(network).as_slice())
        .and_then(|nonce| nonce.try_into().ok())
        .map(u64::from_be_bytes)
        .ok_or_else(|| RowError::new("slot", "not a slot of the network"))
}

/// A network's slots, lowest nonce first.
pub fn slots(network: &str, limit: usize) -> Range {
    Range {
        kind: LANE,
        prefix: prefix(network),
        after: None,
        limit,
        reverse: false,
    }
}

fn prefix(network: &str) -> Vec<u8> {
    [network.as_bytes(), &[0]].concat()
}

impl Lane {
    /// Of an account that nobody else uses.
    pub fn new(next: u64, account: &str) -> Self {
        Self {
            next,
            skipped: Vec::new(),
            account: account.into(),
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode("lane", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode("lane", FORMAT, bytes)
    }
}

impl Slot {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode("slot", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode("slot", FORMAT, bytes)
    }
}
