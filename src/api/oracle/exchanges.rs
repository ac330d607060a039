//! `POST /attestations/withdraw-and-fill/v1` and `/attestations/withdraw-and-refund/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vm::protocol::message::{ExecuteAndWithdraw, Fee};

use super::{
    Shared,
    answer::{Execution, respond},
    hints::DepositHints,
    order::Order,
    question::question,
};
use crate::{
    attest::{
        peers::answer::Corroborated,
        service::{ExchangeAnswer, ExchangeClaim},
        statement::Outcome,
    },
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExchangeRequest)]
pub struct Ask {
    /// The deposit's chain.
    pub chain_id: Text,
    pub transaction_id: Text,
    /// Which deposit of the transaction.
    pub onchain_id: Text,
    /// The order that the deposit names: one input of weight 1, one refund option in the input's currency, one payment,
    /// no calls, and fees in the input's currency.
    pub order: Order,
    /// The solver's, of the order.
    pub order_signature: Text,
    /// The solver's, for this claim, where the order asks for it: personal_sign over the raw bytes of the sha256 of
    /// `claim:withdraw-and-fill:KEY`, or `claim:withdraw-and-refund:KEY`, with the key that a fill of the deposit has.
    pub solver_signature: Option<Text>,
    /// 32 bytes. The deposit has one request of each kind for a nonce.
    pub nonce: Text,
    pub hints: Option<DepositHints>,
    pub request_peer_signatures: Option<Flag>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExchangeAttestation)]
pub struct Body {
    pub execute_and_withdraw_request: Exchange,
    /// The deposit's.
    pub execution: Execution,
}

/// What the executor at the hub is to do with the deposit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExecuteAndWithdrawRequest)]
pub struct Exchange {
    pub in_chain_id: String,
    /// The currency's bytes, `0x` hex.
    pub in_currency: String,
    pub out_chain_id: String,
    /// The currency's bytes, `0x` hex.
    pub out_currency: String,
    pub out_amount_minimum: String,
    /// The bytes of the depository that pays, `0x` hex.
    pub depository: String,
    /// The hub account that has the deposit.
    pub order_address: String,
    /// The receiver's bytes, `0x` hex.
    pub receiver: String,
    pub data: String,
    pub fees: Vec<ExchangeFee>,
    pub nonce: String,
    /// Unix seconds.
    pub deadline: String,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<ExchangeSignature>,
}

/// What the executor pays besides.
#[derive(Serialize, ToSchema)]
pub struct ExchangeFee {
    /// A hub account.
    pub recipient: String,
    pub amount: String,
}

/// One oracle's signature over the request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeSignature {
    pub executor_chain_id: String,
    pub executor_contract: String,
    pub oracle_signer: String,
    /// 65 bytes, `r ++ s ++ v`.
    pub signature: String,
}

/// `outcome` says which of the two routes it is.
pub async fn attest(
    state: Shared,
    request: Request,
    outcome: Outcome,
) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let question = question(&request, ask.request_peer_signatures);
    let claim = ExchangeClaim {
        outcome,
        chain: ask.chain_id.0,
        transaction: ask.transaction_id.0,
        onchain_id: ask.onchain_id.0,
        order: ask.order.wire()?,
        signature: ask.order_signature.0,
        solver_signature: ask.solver_signature.map(|text| text.0),
        nonce: ask.nonce.0,
        hints: ask.hints.as_ref().map(DepositHints::value).transpose()?,
    };
    let answer = state.oracle.exchange(&claim, question.as_ref()).await?;
    let body = Body {
        execution: Execution::of(&answer.attested).describing(&state, &answer.messages),
        execute_and_withdraw_request: Exchange::of(answer),
    };
    respond(&state, &body, Some(&body.execution))
}

impl Exchange {
    fn of(answer: ExchangeAnswer) -> Self {
        let ExecuteAndWithdraw {
            in_chain_id,
            in_currency,
            out_chain_id,
            out_currency,
            out_amount_minimum,
            depository,
            order_address,
            receiver,
            data,
            fees,
            nonce,
            deadline,
        } = answer.request;
        Self {
            in_chain_id,
            in_currency: in_currency.to_string(),
            out_chain_id,
            out_currency: out_currency.to_string(),
            out_amount_minimum: out_amount_minimum.to_string(),
            depository: depository.to_string(),
            order_address: format!("{order_address:#x}"),
            receiver: receiver.to_string(),
            data: data.to_string(),
            fees: fees.iter().map(ExchangeFee::of).collect(),
            nonce: nonce.to_string(),
            deadline: deadline.to_string(),
            signatures: answer
                .signatures
                .iter()
                .map(ExchangeSignature::of)
                .collect(),
        }
    }
}

impl ExchangeFee {
    fn of(fee: &Fee) -> Self {
        Self {
            recipient: fee.recipient.to_checksum(None),
            amount: fee.amount.to_string(),
        }
    }
}

impl ExchangeSignature {
    fn of(by: &Corroborated) -> Self {
        let [chain, contract] = by.domain.clone().unwrap_or_default();
        Self {
            executor_chain_id: chain,
            executor_contract: contract,
            oracle_signer: by.signer.clone(),
            signature: by.signature.to_string(),
        }
    }
}
