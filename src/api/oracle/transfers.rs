//! `POST /attestations/transfer/v1`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use vm::protocol::owner::Kind;

use super::{
    Shared,
    answer::{Execution, respond},
    question::question,
};
use crate::{
    attest::{
        owner::{OwnerSignature, Requested},
        service::TransferClaim,
    },
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransferRequest)]
pub struct Ask {
    /// The currency's chain.
    pub chain_id: Text,
    pub currency: Text,
    pub amount: Text,
    /// A hub account.
    pub recipient: Text,
    /// Any text; a nonce of an owner serves one transfer.
    pub nonce: Text,
    pub owner_chain_id: Text,
    pub owner: Text,
    /// The owner's signature of these fields, with the operation `transfer`.
    pub owner_signature: Text,
    /// How the signature was made, under the name of its owner's family: `ton-vm` with `timestamp` (unix seconds) and
    /// `domain` (of the app that asked the wallet).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub signature_metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_peer_signatures: Option<Flag>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = TransferAttestation)]
pub struct Body {
    pub execution: Execution,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let question = question(&request, ask.request_peer_signatures);
    let claim = TransferClaim {
        requested: Requested {
            kind: Kind::Transfer,
            chain: ask.chain_id.0,
            currency: ask.currency.0,
            amount: ask.amount.0,
            owner_chain: ask.owner_chain_id.0,
            owner: ask.owner.0,
            recipient: ask.recipient.0,
            nonce: ask.nonce.0,
            additional: None,
        },
        signature: OwnerSignature {
            text: ask.owner_signature.0,
            metadata: ask.signature_metadata,
        },
    };
    let attested = state.oracle.transfer(&claim, question.as_ref()).await?;
    let body = Body {
        execution: Execution::of(&attested),
    };
    respond(&state, &body, Some(&body.execution))
}
