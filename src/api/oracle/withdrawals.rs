//! `POST /attestations/depository-withdrawals/v1`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    question::question,
};
use crate::{
    attest::service::{AddressClaim, WithdrawalClaim},
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WithdrawalRequest)]
pub struct Ask {
    pub chain_id: Text,
    /// The family's encoding of the withdrawal, `0x` hex.
    pub withdrawal: Text,
    pub withdrawal_address_request: AddressRequest,
    /// What the allocator was told besides, under the name of the chain's family: of chains whose
    /// withdrawals spend outputs, `allocatorUtxos` and `feeRate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub additional_data: Option<Map<String, Value>>,
    /// The transaction that executed it. Of chains whose withdrawals spend outputs, the transaction that
    /// spent them, whichever it is: without it providers may be unable to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_peer_signatures: Option<Flag>,
}

/// For whom and for what the withdrawal address was made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WithdrawalAddressRequest)]
pub struct AddressRequest {
    pub chain_id: Text,
    pub currency: Text,
    pub withdrawer: Text,
    pub withdrawer_chain_id: Text,
    pub recipient: Text,
    pub withdrawal_nonce: Text,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = WithdrawalAttestation)]
pub struct Body {
    pub message: Message,
    /// Absent while the withdrawal is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// The request and what is true about it.
#[derive(Serialize, ToSchema)]
#[schema(as = WithdrawalMessage)]
pub struct Message {
    pub data: Ask,
    pub result: WithdrawalResult,
}

/// Where the withdrawal stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawalResult {
    pub withdrawal_id: String,
    pub depository: String,
    /// 0 pending (also while the allocator has recorded nothing for the request), 1 executed,
    /// 2 expired.
    pub status: u8,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let of = &ask.withdrawal_address_request;
    let claim = WithdrawalClaim {
        chain: ask.chain_id.0.clone(),
        withdrawal: ask.withdrawal.0.clone(),
        transaction: ask.transaction_id.as_ref().map(|id| id.0.clone()),
        address: AddressClaim {
            chain: of.chain_id.0.clone(),
            currency: of.currency.0.clone(),
            withdrawer: of.withdrawer.0.clone(),
            withdrawer_chain: of.withdrawer_chain_id.0.clone(),
            recipient: of.recipient.0.clone(),
            nonce: of.withdrawal_nonce.0.clone(),
        },
        additional: ask.additional_data.clone(),
        hints: None,
    };
    let question = question(&request, ask.request_peer_signatures);
    let answer = state.oracle.withdrawal(&claim, question.as_ref()).await?;
    let body = Body {
        message: Message {
            data: ask,
            result: WithdrawalResult {
                withdrawal_id: answer.id.to_string(),
                depository: answer.depository,
                status: answer.status as u8,
            },
        },
        execution: answer.attested.as_ref().map(Execution::of),
    };
    respond(&state, &body, body.execution.as_ref())
}
