//! Messages for the hub's own contracts: execution, generic mapping, trigger.

use super::{TypedMessage, hash};
use crate::types::{B256, Bytes, EvmAddress, U256};

pub(super) mod wire {
    alloy::sol! {
        struct Execution { bytes32 idempotencyKey; bytes[] actions; }
        struct SetEntry { address user; bytes32 id; bytes data; bytes32 nonce; }
        struct Trigger { uint256 chainId; address depositAddressManager; bytes inputDepository; bytes32 triggerHash; }
    }
}

/// Actions for the hub, which applies them at most once per idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    pub idempotency_key: B256,
    /// Encoded by [`action`](crate::protocol::action).
    pub actions: Vec<Bytes>,
}

impl TypedMessage for Execution {
    /// Also the `getExecutionMessageId` of the settlement SDK.
    fn struct_hash(&self) -> B256 {
        hash(&wire::Execution {
            idempotencyKey: self.idempotency_key,
            actions: self.actions.clone(),
        })
    }
}

/// An entry of the generic mapping contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericMapping {
    /// A hub alias.
    pub user: EvmAddress,
    pub id: B256,
    pub data: Bytes,
    pub nonce: B256,
}

impl TypedMessage for GenericMapping {
    /// Also the `getGenericMappingMessageId` of the settlement SDK.
    fn struct_hash(&self) -> B256 {
        hash(&wire::SetEntry {
            user: self.user,
            id: self.id,
            data: self.data.clone(),
            nonce: self.nonce,
        })
    }
}

/// Permission to trigger a deposit address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The hub's EVM chain id.
    pub chain_id: U256,
    pub deposit_address_manager: EvmAddress,
    /// The address bytes of the input chain's depository.
    pub input_depository: Bytes,
    pub trigger_hash: B256,
}

impl TypedMessage for Trigger {
    fn struct_hash(&self) -> B256 {
        hash(&wire::Trigger {
            chainId: self.chain_id,
            depositAddressManager: self.deposit_address_manager,
            inputDepository: self.input_depository.clone(),
            triggerHash: self.trigger_hash,
        })
    }
}
