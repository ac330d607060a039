//! `POST /attestations/recover/v1`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    hints::DepositHints,
    order::Order,
    question::question,
};
use crate::{
    attest::service::RecoverClaim,
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecoverRequest)]
pub struct Ask {
    /// The deposit's chain.
    pub chain_id: Text,
    pub transaction_id: Text,
    /// Which deposit of the transaction; the hub has to have minted it.
    pub onchain_id: Text,
    /// The order that the deposit names; needed, with its signature, until seven days after the
    /// deposit. A deposit in another currency or on another chain than the order's then goes back at
    /// once, any other once its solver has said at the hub that it neither filled nor refunded it.
    pub order: Option<Order>,
    /// The solver's, of the order.
    pub order_signature: Option<Text>,
    pub hints: Option<DepositHints>,
    pub request_peer_signatures: Option<Flag>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = RecoverAttestation)]
pub struct Body {
    pub execution: Execution,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let question = question(&request, ask.request_peer_signatures);
    let order = ask.order.as_ref().map(Order::wire).transpose()?;
    let claim = RecoverClaim {
        chain: ask.chain_id.0,
        transaction: ask.transaction_id.0,
        onchain_id: ask.onchain_id.0,
        order: order.zip(ask.order_signature.map(|text| text.0)),
        hints: ask.hints.as_ref().map(DepositHints::value).transpose()?,
    };
    let attested = state.oracle.recover(&claim, question.as_ref()).await?;
    let body = Body {
        execution: Execution::of(&attested),
    };
    respond(&state, &body, Some(&body.execution))
}
