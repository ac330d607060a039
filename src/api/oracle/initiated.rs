//! `POST /attestations/withdrawal-initiated/v1` and `v2`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared, answer::respond_signed, owned, question::question, withdrawals::AddressRequest,
};
use crate::{
    attest::{peers::answer::Corroborated, service::InitiationClaim},
    http::{ApiError, Request, Response, Text},
};

/// The body.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = InitiatedRequest)]
pub struct Ask {
    /// The hub's name.
    pub settlement_chain_id: Text,
    pub expected_amount: Text,
    pub chain_id: Text,
    pub currency: Text,
    pub withdrawer: Text,
    pub withdrawer_chain_id: Text,
    pub recipient: Text,
    pub withdrawal_nonce: Text,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = InitiatedAttestation)]
pub struct Body {
    pub message: Message,
}

/// The request and what is true about it.
#[derive(Serialize, ToSchema)]
#[schema(as = InitiatedMessage)]
pub struct Message {
    pub data: Ask,
    pub result: InitiatedResult,
}

/// Where the money waits, and how much of it for which withdrawal.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitiatedResult {
    pub withdrawal_address: String,
    /// `0x` hex of address, amount (32 bytes) and nonce (32 bytes).
    pub proof_of_withdrawal_address_balance: String,
}

/// The answer of version 2.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PayloadAttestation)]
pub struct PayloadBody {
    pub payload_params: Payload,
}

/// What the allocator is told, in its spelling.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PayloadParams)]
pub struct Payload {
    /// The chain's number at the hub.
    pub chain_id: String,
    pub depository: String,
    pub currency: String,
    pub amount: String,
    /// The owner's hub account.
    pub spender: String,
    pub recipient: String,
    pub nonce: String,
    /// `0x` hex.
    pub data: String,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<PayloadSignature>,
}

/// One oracle's signature over the payload params.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PayloadSignature {
    pub allocator_spender_chain_id: String,
    pub allocator_spender_contract: String,
    pub oracle_signer: String,
    /// 65 bytes, `r ++ s ++ v`.
    pub signature: String,
}

pub async fn attest_owned(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = owned::Ask::read(&request)?;
    let question = question(&request, ask.withdrawal.request_peer_signatures);
    let claim = ask.claim()?;
    let answer = state.oracle.owned_initiated(&claim, question.as_ref());
    let answer = answer.await?;
    let params = answer.params;
    let body = PayloadBody {
        payload_params: Payload {
            chain_id: params.chain_id,
            depository: params.depository,
            currency: params.currency,
            amount: params.amount.to_string(),
            spender: params.spender,
            recipient: params.recipient,
            nonce: params.nonce,
            data: params.data.to_string(),
            signatures: answer.signatures.iter().map(PayloadSignature::of).collect(),
        },
    };
    let signatures = body.payload_params.signatures.iter();
    respond_signed(&state, &body, signatures.map(|by| &by.oracle_signer))
}

impl PayloadSignature {
    fn of(by: &Corroborated) -> Self {
        let [chain, contract] = by.domain.clone().unwrap_or_default();
        Self {
            allocator_spender_chain_id: chain,
            allocator_spender_contract: contract,
            oracle_signer: by.signer.clone(),
            signature: by.signature.to_string(),
        }
    }
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let claim = InitiationClaim {
        settlement: ask.settlement_chain_id.0.clone(),
        amount: ask.expected_amount.0.clone(),
        address: request.json::<AddressRequest>()?.claim(),
        signature: String::new(),
    };
    let answer = state.oracle.initiated(&claim).await?;
    Response::json(&Body {
        message: Message {
            data: ask,
            result: InitiatedResult {
                withdrawal_address: format!("{:#x}", answer.address),
                proof_of_withdrawal_address_balance: answer.proof,
            },
        },
    })
}
