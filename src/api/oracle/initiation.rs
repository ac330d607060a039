//! `POST /attestations/withdrawal-initiation/v1` and `v2`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    owned,
    question::question,
    withdrawals::AddressRequest,
};
use crate::{
    attest::service::InitiationClaim,
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = InitiationRequest)]
pub struct Ask {
    /// The hub's name.
    pub settlement_chain_id: Text,
    pub expected_amount: Text,
    /// The withdrawer's word.
    pub signature: Text,
    pub chain_id: Text,
    pub currency: Text,
    pub withdrawer: Text,
    pub withdrawer_chain_id: Text,
    pub recipient: Text,
    /// 32 bytes. Where real money is at stake they have to commit to the withdrawal, since the
    /// signature is over account, amount and nonce only: the first 16 are the withdrawer's choice, the
    /// last 16 are the last of `keccak256(settlementChainId ++ address)`, where `address` is the
    /// withdrawal address (20 bytes) for the nonce with zeros in its last 16 bytes. Else 400 with the code
    /// `WITHDRAWAL_NONCE_UNBOUND`.
    pub withdrawal_nonce: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_peer_signatures: Option<Flag>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = InitiationAttestation)]
pub struct Body {
    pub message: Message,
    pub execution: Execution,
}

/// The request and what is true about it.
#[derive(Serialize, ToSchema)]
#[schema(as = InitiationMessage)]
pub struct Message {
    pub data: Ask,
    pub result: InitiationResult,
}

/// Where the money is to wait.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitiationResult {
    pub withdrawal_address: String,
}

/// The answer of version 2.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OwnedInitiationAttestation)]
pub struct OwnedBody {
    /// Where the money is to wait.
    pub withdrawal_address: String,
    pub execution: Execution,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let claim = InitiationClaim {
        settlement: ask.settlement_chain_id.0.clone(),
        amount: ask.expected_amount.0.clone(),
        address: request.json::<AddressRequest>()?.claim(),
        signature: ask.signature.0.clone(),
    };
    let question = question(&request, ask.request_peer_signatures);
    let answer = state.oracle.initiation(&claim, question.as_ref()).await?;
    let body = Body {
        message: Message {
            data: ask,
            result: InitiationResult {
                withdrawal_address: format!("{:#x}", answer.address),
            },
        },
        execution: Execution::of(&answer.attested),
    };
    respond(&state, &body, Some(&body.execution))
}

pub async fn attest_owned(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = owned::Ask::read(&request)?;
    let question = question(&request, ask.withdrawal.request_peer_signatures);
    let claim = ask.claim()?;
    let answer = state.oracle.owned_initiation(&claim, question.as_ref());
    let answer = answer.await?;
    let body = OwnedBody {
        withdrawal_address: format!("{:#x}", answer.address),
        execution: Execution::of(&answer.attested),
    };
    respond(&state, &body, Some(&body.execution))
}
