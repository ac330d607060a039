//! An account of nonces, and a payment of it that may still land.

use alloy::primitives::{Bytes, U256};
use vm::{
    ethereum::trade::{Carried, CarriedTx, carried_account, carried_id},
    trade::{Call, Intent},
};

use super::{NONCE, b, id};
use crate::{
    request::scene,
    store::rows::{
        attempt::{Attempt, Owner, Signed},
        lane::Lane,
    },
};

/// The id of the attempt that has a nonce.
pub fn attempt_id(nonce: u64) -> Bytes {
    carried_id(nonce)
}

/// An account whose next nonce this is.
pub fn lane(next: u64) -> Lane {
    Lane {
        account: "a".into(),
        family: vm::SETTLEMENT.name.into(),
        own: carried_account(next, Vec::new()),
    }
}

pub fn attempt() -> Attempt {
    let to = vm::SETTLEMENT.address(scene::USER).unwrap();
    let carried = Carried {
        nonce: NONCE,
        intent: Intent {
            call: Call {
                from: to.clone(),
                to,
                data: Bytes::new(),
                value: U256::from(5),
            },
            authorizations: Vec::new(),
            limit: 21_000,
            spends: Vec::new(),
        },
        data_fee: U256::ZERO,
        signed: vec![CarriedTx {
            hash: b(5),
            raw: vec![1].into(),
            gas: 21_000,
            max_fee: 1,
            max_priority_fee: 1,
            cancels: false,
        }],
    };
    let made = carried.attempt(vm::SETTLEMENT.native().unwrap()).unwrap();
    Attempt {
        owner: Owner::Request(id()),
        resources: made.resources,
        spends: vec![(vm::SETTLEMENT.codec.native().into(), made.spends[0].1)],
        signed: vec![Signed {
            id: made.signed[0].id.clone(),
            cancels: false,
        }],
        own: made.own,
        sent_at: 4,
        refused: 0,
    }
}
