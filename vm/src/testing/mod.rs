//! A chain that answers from a script, for tests of what stands above readers and providers; in [`scripted`] a family
//! that trades, for tests of what stands above families; in [`solana`] and [`bitcoin`] a chain of a
//! real one. Not for production: built only for tests and with the
//! feature `testing`.

mod answers;
#[cfg(feature = "bitcoin")]
pub mod bitcoin;
mod board;
mod manners;
mod provider;
mod script;
pub mod scripted;
#[cfg(feature = "solana")]
pub mod solana;

pub use self::{
    answers::{Answer, Answers, said},
    board::Says,
    manners::Manners,
    script::Script,
};
use crate::types::{B256, Block, Failure, Receipt, TxRef, U256};

/// Seconds between the blocks of a script.
pub const PACE: u64 = 12;

/// Block `number` of fork `name`; every script of that fork has the same one.
pub fn block(number: u64, name: u8) -> Block {
    let hash = |number: u64| {
        let mut bytes = [name; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        B256::new(bytes)
    };
    Block {
        number,
        hash: hash(number),
        parent: hash(number.wrapping_sub(1)),
        time: 1_760_000_000 + number * PACE,
    }
}

/// Transaction `number` of a family with ids of 32 bytes.
pub fn tx(number: u64) -> TxRef {
    let id = B256::from(U256::from(number));
    TxRef {
        text: id.to_string().into(),
        bytes: id.0.to_vec().into(),
        hint: None,
    }
}

/// A successful transaction in `block` without effects.
pub fn receipt(block: Block) -> Receipt {
    Receipt {
        block,
        sender: None,
        deposits: Ok(Vec::new()),
        payments: Vec::new(),
        calls: Vec::new(),
        executions: Vec::new(),
        references: Vec::new(),
        outer_call: None,
    }
}

/// A transaction that failed in `block`.
pub fn failure(block: Block) -> Failure {
    Failure {
        block,
        references: Vec::new(),
        outer_call: None,
    }
}
