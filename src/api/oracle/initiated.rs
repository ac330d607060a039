//! `POST /attestations/withdrawal-initiated/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Shared;
use crate::{
    attest::service::{AddressClaim, InitiationClaim},
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

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let claim = InitiationClaim {
        settlement: ask.settlement_chain_id.0.clone(),
        amount: ask.expected_amount.0.clone(),
        address: AddressClaim {
            chain: ask.chain_id.0.clone(),
            currency: ask.currency.0.clone(),
            withdrawer: ask.withdrawer.0.clone(),
            withdrawer_chain: ask.withdrawer_chain_id.0.clone(),
            recipient: ask.recipient.0.clone(),
            nonce: ask.withdrawal_nonce.0.clone(),
        },
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
