//! The order and what goes with it, as bodies bring it and answers echo it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vm::protocol::order as wire;

use super::hints::InputHint;
use crate::{
    attest::{claim::bounded, order::Input as OrderInput, service::InputClaim},
    http::{ApiError, Number, Text},
};

/// What a user pays on which chain, what a solver delivers, and what is refunded otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub version: Version,
    pub solver_chain_id: Text,
    pub solver: Text,
    pub salt: Text,
    #[schema(max_items = 64)]
    pub inputs: Vec<Input>,
    pub output: Output,
    #[schema(max_items = 64)]
    pub fees: Vec<Fee>,
}

/// The only version of orders.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub enum Version {
    #[serde(rename = "v1")]
    V1,
}

/// One payment into a depository, and the ways to give it back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderInput)]
pub struct Input {
    pub payment: InputPayment,
    #[schema(max_items = 64)]
    pub refunds: Vec<Refund>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderInputPayment)]
pub struct InputPayment {
    pub chain_id: Text,
    pub currency: Text,
    pub amount: Text,
    pub weight: Text,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderRefund)]
pub struct Refund {
    pub chain_id: Text,
    pub recipient: Text,
    pub currency: Text,
    pub minimum_amount: Text,
    /// Unix seconds, below 2^32.
    pub deadline: Number,
    pub extra_data: Text,
}

/// What the solver delivers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderOutput)]
pub struct Output {
    pub chain_id: Text,
    #[schema(max_items = 64)]
    pub payments: Vec<OutputPayment>,
    #[schema(max_items = 64)]
    pub calls: Vec<Text>,
    /// Unix seconds, below 2^32.
    pub deadline: Number,
    pub extra_data: Text,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderOutputPayment)]
pub struct OutputPayment {
    pub recipient: Text,
    pub currency: Text,
    pub minimum_amount: Text,
    pub expected_amount: Text,
}

/// What the solver owes to others at the hub once the order is filled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderFee)]
pub struct Fee {
    pub recipient_chain_id: Text,
    pub recipient: Text,
    pub currency_chain_id: Text,
    pub currency: Text,
    pub amount: Text,
}

/// Where one input of the order was paid.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputEntry {
    pub transaction_id: Text,
    pub onchain_id: Text,
    pub input_index: Number,
    /// Only looked at in a forced refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<Text>,
}

/// What a fill or refund attestation says about its order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeResult {
    pub order_id: String,
    /// Always 1.
    pub status: u8,
    /// By how much the weighted deposits differ from the requested ones, times 1e18, signed.
    pub total_weighted_input_payment_bps_diff: String,
}

impl OutcomeResult {
    pub fn of(answer: &crate::attest::service::OutcomeAnswer) -> Self {
        Self {
            order_id: answer.order_id.to_string(),
            status: 1,
            total_weighted_input_payment_bps_diff: answer.difference.to_string(),
        }
    }
}

/// An index into a list of the order.
pub fn index(number: Number) -> usize {
    usize::try_from(number.0).unwrap_or(usize::MAX)
}

/// As how many requests a claim counts that names so many transactions: as one where its order has one input.
pub fn weight(transactions: usize) -> usize {
    transactions.saturating_sub(1).max(1)
}

/// The claims about the inputs; `hints` are matched by input index.
pub fn inputs(
    entries: &[InputEntry],
    input_hints: Option<&[InputHint]>,
) -> Result<Vec<InputClaim>, ApiError> {
    bounded("inputs", entries.len())?;
    let known = input_hints.unwrap_or_default();
    bounded("inputHints", known.len())?;
    let claim = |entry: &InputEntry| {
        let hint = known
            .iter()
            .find(|hint| hint.input_index == entry.input_index);
        Ok(InputClaim {
            input: OrderInput {
                onchain_id: entry.onchain_id.0.clone(),
                index: index(entry.input_index),
            },
            transaction: entry.transaction_id.0.clone(),
            chain: entry.chain_id.as_ref().map(|chain| chain.0.clone()),
            hints: hint.map(InputHint::value).transpose()?,
        })
    };
    entries.iter().map(claim).collect()
}

impl Order {
    /// The order as its id is computed from.
    pub fn wire(&self) -> Result<wire::Order, ApiError> {
        let fees = self.fees.iter().map(Fee::wire).collect();
        let inputs = self.inputs.iter().enumerate().map(Input::wire);
        let output = &self.output;
        Ok(wire::Order {
            version: wire::VERSION.to_owned(),
            solver_chain_id: self.solver_chain_id.0.clone(),
            solver: self.solver.0.clone(),
            salt: self.salt.0.clone(),
            inputs: inputs.collect::<Result<_, ApiError>>()?,
            output: wire::Output {
                chain_id: output.chain_id.0.clone(),
                payments: output.payments.iter().map(OutputPayment::wire).collect(),
                calls: output.calls.iter().map(|call| call.0.clone()).collect(),
                deadline: deadline("order.output.deadline", output.deadline)?,
                extra_data: output.extra_data.0.clone(),
            },
            fees,
        })
    }
}

impl Input {
    fn wire((at, input): (usize, &Self)) -> Result<wire::Input, ApiError> {
        let refund = |refund: &Refund| {
            Ok(wire::Refund {
                chain_id: refund.chain_id.0.clone(),
                recipient: refund.recipient.0.clone(),
                currency: refund.currency.0.clone(),
                minimum_amount: refund.minimum_amount.0.clone(),
                deadline: deadline(
                    &format!("order.inputs[{at}].refunds.deadline"),
                    refund.deadline,
                )?,
                extra_data: refund.extra_data.0.clone(),
            })
        };
        let payment = &input.payment;
        Ok(wire::Input {
            payment: wire::InputPayment {
                chain_id: payment.chain_id.0.clone(),
                currency: payment.currency.0.clone(),
                amount: payment.amount.0.clone(),
                weight: payment.weight.0.clone(),
            },
            refunds: input
                .refunds
                .iter()
                .map(refund)
                .collect::<Result<_, ApiError>>()?,
        })
    }
}

impl OutputPayment {
    fn wire(&self) -> wire::OutputPayment {
        wire::OutputPayment {
            recipient: self.recipient.0.clone(),
            currency: self.currency.0.clone(),
            minimum_amount: self.minimum_amount.0.clone(),
            expected_amount: self.expected_amount.0.clone(),
        }
    }
}

impl Fee {
    fn wire(&self) -> wire::Fee {
        wire::Fee {
            recipient_chain_id: self.recipient_chain_id.0.clone(),
            recipient: self.recipient.0.clone(),
            currency_chain_id: self.currency_chain_id.0.clone(),
            currency: self.currency.0.clone(),
            amount: self.amount.0.clone(),
        }
    }
}

fn deadline(path: &str, number: Number) -> Result<u32, ApiError> {
    u32::try_from(number.0)
        .map_err(|_| crate::http::parse::invalid_field(path, "expected unix seconds below 2^32"))
}
