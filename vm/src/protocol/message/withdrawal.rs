//! Messages for allocators and executors, which move value out of the hub.

use alloy::{primitives::keccak256, sol_types::SolValue};

use super::{TypedMessage, hash};
use crate::types::{B256, Bytes, EvmAddress, U256};

pub(super) mod wire {
    alloy::sol! {
        struct SubmitWithdrawRequest { uint256 chainId; string depository; string currency; uint256 amount; address spender; string receiver; bytes data; bytes32 nonce; }
        struct Fee { address recipient; uint256 amount; }
        struct ExecuteAndWithdrawRequest { string inChainId; bytes inCurrency; string outChainId; bytes outCurrency; uint256 outAmountMinimum; bytes depository; address orderAddress; bytes receiver; bytes data; Fee[] fees; bytes32 nonce; uint256 deadline; }
    }
    /// A module of its own, because two messages share one type name.
    pub mod inclusion {
        alloy::sol! {
            struct WithdrawRequest { uint256 chainId; address allocator; bytes32 withdrawRequestHash; bytes32[] hashesToSign; }
        }
    }
    pub mod allocator {
        alloy::sol! {
            struct WithdrawRequest { string chainId; bytes depository; bytes currency; uint256 amount; string spenderChainId; bytes spender; bytes receiver; bytes data; bytes32 nonce; }
        }
    }
}

/// A v2.2 withdraw request for the allocator on Aurora, normalised (guide: protocol 8.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadParams {
    /// The hub's number of the withdrawal's chain.
    pub chain_id: U256,
    pub depository: String,
    pub currency: String,
    pub amount: U256,
    pub spender: EvmAddress,
    pub recipient: String,
    pub data: Bytes,
    pub nonce: B256,
}

impl PayloadParams {
    /// The payload id under which the allocator records the request: the hash of `abi.encode(request)`.
    pub fn payload_id(&self) -> B256 {
        keccak256(self.wire().abi_encode())
    }

    fn wire(&self) -> wire::SubmitWithdrawRequest {
        wire::SubmitWithdrawRequest {
            chainId: self.chain_id,
            depository: self.depository.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
            spender: self.spender,
            receiver: self.recipient.clone(),
            data: self.data.clone(),
            nonce: self.nonce,
        }
    }
}

impl TypedMessage for PayloadParams {
    fn struct_hash(&self) -> B256 {
        hash(&self.wire())
    }
}

/// A fee that an executor takes from an order's amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fee {
    pub recipient: EvmAddress,
    pub amount: U256,
}

/// A swap at the hub with a withdrawal of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteAndWithdraw {
    pub in_chain_id: String,
    pub in_currency: Bytes,
    pub out_chain_id: String,
    pub out_currency: Bytes,
    pub out_amount_minimum: U256,
    pub depository: Bytes,
    pub order_address: EvmAddress,
    pub receiver: Bytes,
    pub data: Bytes,
    pub fees: Vec<Fee>,
    pub nonce: B256,
    /// Unix seconds.
    pub deadline: U256,
}

impl TypedMessage for ExecuteAndWithdraw {
    fn struct_hash(&self) -> B256 {
        let fee = |fee: &Fee| wire::Fee {
            recipient: fee.recipient,
            amount: fee.amount,
        };
        hash(&wire::ExecuteAndWithdrawRequest {
            inChainId: self.in_chain_id.clone(),
            inCurrency: self.in_currency.clone(),
            outChainId: self.out_chain_id.clone(),
            outCurrency: self.out_currency.clone(),
            outAmountMinimum: self.out_amount_minimum,
            depository: self.depository.clone(),
            orderAddress: self.order_address,
            receiver: self.receiver.clone(),
            data: self.data.clone(),
            fees: self.fees.iter().map(fee).collect(),
            nonce: self.nonce,
            deadline: self.deadline,
        })
    }
}

/// The statement that the allocator has these hashes for a withdraw request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// The hub's EVM chain id.
    pub chain_id: U256,
    pub allocator: EvmAddress,
    pub withdraw_request_hash: B256,
    pub hashes_to_sign: Vec<B256>,
}

impl TypedMessage for Inclusion {
    fn struct_hash(&self) -> B256 {
        hash(&wire::inclusion::WithdrawRequest {
            chainId: self.chain_id,
            allocator: self.allocator,
            withdrawRequestHash: self.withdraw_request_hash,
            hashesToSign: self.hashes_to_sign.clone(),
        })
    }
}

/// A v2.3 withdraw request for the hub's allocator, normalised (guide: protocol 8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub chain_id: String,
    pub depository: Bytes,
    pub currency: Bytes,
    pub amount: U256,
    pub spender_chain_id: String,
    pub spender: Bytes,
    pub receiver: Bytes,
    pub data: Bytes,
    pub nonce: B256,
}

impl Authorization {
    /// The request hash under which the allocator records the request: the hash of `abi.encode(request)`.
    pub fn request_hash(&self) -> B256 {
        keccak256(self.wire().abi_encode())
    }

    fn wire(&self) -> wire::allocator::WithdrawRequest {
        wire::allocator::WithdrawRequest {
            chainId: self.chain_id.clone(),
            depository: self.depository.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
            spenderChainId: self.spender_chain_id.clone(),
            spender: self.spender.clone(),
            receiver: self.receiver.clone(),
            data: self.data.clone(),
            nonce: self.nonce,
        }
    }
}

impl TypedMessage for Authorization {
    fn struct_hash(&self) -> B256 {
        hash(&self.wire())
    }
}
