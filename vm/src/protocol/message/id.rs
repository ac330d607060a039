//! The v2.1 message ids (guide: protocol 6.5): struct hashes without a domain, by which older clients identify
//! messages. Nothing signs them any more.

use super::{TypedMessage, hash};
use crate::{
    protocol::order::typed::Order,
    types::{B256, Bytes, U256, WithdrawalStatus},
};

pub use alloy::primitives::I256;

mod wire {
    pub mod deposit {
        alloy::sol! {
            struct Data { string chainId; bytes transactionId; }
            struct Result { bytes32 onchainId; bytes depository; bytes32 depositId; bytes depositor; bytes currency; uint256 amount; }
            struct DepositoryDeposit { Data data; Result result; }
        }
    }
    pub mod withdrawal {
        alloy::sol! {
            struct Data { string chainId; bytes withdrawal; }
            struct Result { bytes32 withdrawalId; bytes depository; uint8 status; }
            struct DepositoryWithdrawal { Data data; Result result; }
        }
    }
    pub mod fill {
        use crate::protocol::order::typed::Order;
        alloy::sol! {
            struct InputEntry { bytes transactionId; bytes32 onchainId; uint32 inputIndex; }
            struct FillEntry { bytes transactionId; }
            struct Data { Order order; bytes orderSignature; InputEntry[] inputs; FillEntry fill; }
            struct Result { bytes32 orderId; uint8 status; int256 totalWeightedInputPaymentBpsDiff; }
            struct SolverFill { Data data; Result result; }
        }
    }
    pub mod refund {
        use crate::protocol::order::typed::Order;
        alloy::sol! {
            struct InputEntry { bytes transactionId; bytes32 onchainId; uint32 inputIndex; }
            struct RefundEntry { bytes transactionId; uint32 inputIndex; uint32 refundIndex; }
            struct Data { Order order; bytes orderSignature; InputEntry[] inputs; RefundEntry[] refunds; }
            struct Result { bytes32 orderId; uint8 status; int256 totalWeightedInputPaymentBpsDiff; }
            struct SolverRefund { Data data; Result result; }
        }
    }
}

/// A deposit, its addresses as family bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositoryDeposit {
    pub chain_id: String,
    pub transaction_id: Bytes,
    pub onchain_id: B256,
    pub depository: Bytes,
    pub deposit_id: B256,
    pub depositor: Bytes,
    pub currency: Bytes,
    pub amount: U256,
}

impl TypedMessage for DepositoryDeposit {
    fn struct_hash(&self) -> B256 {
        hash(&wire::deposit::DepositoryDeposit {
            data: wire::deposit::Data {
                chainId: self.chain_id.clone(),
                transactionId: self.transaction_id.clone(),
            },
            result: wire::deposit::Result {
                onchainId: self.onchain_id,
                depository: self.depository.clone(),
                depositId: self.deposit_id,
                depositor: self.depositor.clone(),
                currency: self.currency.clone(),
                amount: self.amount,
            },
        })
    }
}

/// A withdrawal; `withdrawal` is its family's encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositoryWithdrawal {
    pub chain_id: String,
    pub withdrawal: Bytes,
    pub withdrawal_id: B256,
    pub depository: Bytes,
    pub status: WithdrawalStatus,
}

impl TypedMessage for DepositoryWithdrawal {
    fn struct_hash(&self) -> B256 {
        hash(&wire::withdrawal::DepositoryWithdrawal {
            data: wire::withdrawal::Data {
                chainId: self.chain_id.clone(),
                withdrawal: self.withdrawal.clone(),
            },
            result: wire::withdrawal::Result {
                withdrawalId: self.withdrawal_id,
                depository: self.depository.clone(),
                status: self.status as u8,
            },
        })
    }
}

/// A deposit that paid an input of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputEntry {
    pub transaction_id: Bytes,
    pub onchain_id: B256,
    pub input_index: u32,
}

/// The shared result of a fill or refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub order_id: B256,
    pub status: u8,
    /// Parts in 1e18 by which the payments exceed (negative: miss) what the order asked for.
    pub total_weighted_input_payment_bps_diff: I256,
}

/// A filled order.
#[derive(Clone)]
pub struct SolverFill {
    pub order: Order,
    pub order_signature: Bytes,
    pub inputs: Vec<InputEntry>,
    pub fill_transaction_id: Bytes,
    pub outcome: Outcome,
}

impl TypedMessage for SolverFill {
    fn struct_hash(&self) -> B256 {
        let input = |input: &InputEntry| wire::fill::InputEntry {
            transactionId: input.transaction_id.clone(),
            onchainId: input.onchain_id,
            inputIndex: input.input_index,
        };
        hash(&wire::fill::SolverFill {
            data: wire::fill::Data {
                order: self.order.clone(),
                orderSignature: self.order_signature.clone(),
                inputs: self.inputs.iter().map(input).collect(),
                fill: wire::fill::FillEntry {
                    transactionId: self.fill_transaction_id.clone(),
                },
            },
            result: wire::fill::Result {
                orderId: self.outcome.order_id,
                status: self.outcome.status,
                totalWeightedInputPaymentBpsDiff: self
                    .outcome
                    .total_weighted_input_payment_bps_diff,
            },
        })
    }
}

/// A refund payment to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundEntry {
    pub transaction_id: Bytes,
    pub input_index: u32,
    pub refund_index: u32,
}

/// A refunded order.
#[derive(Clone)]
pub struct SolverRefund {
    pub order: Order,
    pub order_signature: Bytes,
    pub inputs: Vec<InputEntry>,
    pub refunds: Vec<RefundEntry>,
    pub outcome: Outcome,
}

impl TypedMessage for SolverRefund {
    fn struct_hash(&self) -> B256 {
        let input = |input: &InputEntry| wire::refund::InputEntry {
            transactionId: input.transaction_id.clone(),
            onchainId: input.onchain_id,
            inputIndex: input.input_index,
        };
        let refund = |refund: &RefundEntry| wire::refund::RefundEntry {
            transactionId: refund.transaction_id.clone(),
            inputIndex: refund.input_index,
            refundIndex: refund.refund_index,
        };
        hash(&wire::refund::SolverRefund {
            data: wire::refund::Data {
                order: self.order.clone(),
                orderSignature: self.order_signature.clone(),
                inputs: self.inputs.iter().map(input).collect(),
                refunds: self.refunds.iter().map(refund).collect(),
            },
            result: wire::refund::Result {
                orderId: self.outcome.order_id,
                status: self.outcome.status,
                totalWeightedInputPaymentBpsDiff: self
                    .outcome
                    .total_weighted_input_payment_bps_diff,
            },
        })
    }
}
