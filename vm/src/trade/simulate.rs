//! What would happen if somebody sent a transaction: with its real sender, and its real fees where the sender
//! has them.

use async_trait::async_trait;

use super::{Authorization, Call, Fees};
use crate::{oracle::ReadError, types::Bytes};

/// A transaction that somebody means to send.
#[derive(Clone, Copy, Debug)]
pub struct Intended<'a> {
    pub call: &'a Call,
    pub authorizations: &'a [Authorization],
    /// What its sender would pay for gas: contracts can see it, and nodes hold it against the sender's
    /// balance. Unset for a sender that nobody knows to have any.
    pub fees: Option<Fees>,
    /// Gas units that it may take at most.
    pub most: Option<u64>,
}

impl<'a> Intended<'a> {
    /// A call whose sender need not have anything.
    pub const fn free(call: &'a Call) -> Self {
        Self {
            call,
            authorizations: &[],
            fees: None,
            most: None,
        }
    }
}

/// Tries transactions that need others before them.
#[async_trait]
pub trait Simulator: Send + Sync {
    /// Gas units that one transaction of the first call's sender would take at the head which makes all
    /// of `calls`, in order, each as its own sender. `Err` inside: one of them reverts, and this is what
    /// it says. Nothing is sent.
    async fn rehearse(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError>;
}

/// Why a call did not do what it was for (guide: protocol 11.17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revert {
    /// What the contract said, readable: an error string, `Panic(0x11)`, an error's selector; empty
    /// when it said nothing.
    pub reason: String,
    pub data: Bytes,
}
