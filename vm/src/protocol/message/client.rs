//! Messages that clients sign for oracles: nonce mapping (two versions), no fill or refund.

use super::{TypedMessage, hash};
use crate::types::{B256, EvmAddress, U256};

mod wire {
    alloy::sol! {
        struct NonceMapping { string chainId; address wallet; address depositor; bytes32 id; uint256 nonce; }
        struct NoFillOrRefund { string chainId; address solver; bytes32 orderId; }
    }
    /// A module of its own, because both versions share one type name.
    pub mod first {
        alloy::sol! {
            struct NonceMapping { string chainId; address wallet; bytes32 id; uint256 nonce; }
        }
    }
}

/// A wallet's statement that its transfer with `nonce` is the deposit for `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonceMapping {
    /// The name of the wallet's chain.
    pub chain_id: String,
    pub wallet: EvmAddress,
    /// `None` makes it a message of the first version, whose domain is another one.
    pub depositor: Option<EvmAddress>,
    pub id: B256,
    pub nonce: U256,
}

impl TypedMessage for NonceMapping {
    fn struct_hash(&self) -> B256 {
        let (chain, wallet, id, nonce) = (self.chain_id.clone(), self.wallet, self.id, self.nonce);
        match self.depositor {
            Some(depositor) => hash(&wire::NonceMapping {
                chainId: chain,
                wallet,
                depositor,
                id,
                nonce,
            }),
            None => hash(&wire::first::NonceMapping {
                chainId: chain,
                wallet,
                id,
                nonce,
            }),
        }
    }
}

/// A solver's statement that it will neither fill nor refund an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFillOrRefund {
    /// The name of the solver's chain.
    pub chain_id: String,
    pub solver: EvmAddress,
    pub order_id: B256,
}

impl TypedMessage for NoFillOrRefund {
    fn struct_hash(&self) -> B256 {
        hash(&wire::NoFillOrRefund {
            chainId: self.chain_id.clone(),
            solver: self.solver,
            orderId: self.order_id,
        })
    }
}
