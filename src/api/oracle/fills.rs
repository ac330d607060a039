//! `POST /attestations/solver-fills/v1`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    hints::{FillHints, InputHint},
    order::{InputEntry, Order, OutcomeResult, inputs, weight},
    question::weighing,
};
use crate::{
    attest::service::{FillClaim, OrderClaim},
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body, which the answer echoes.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FillRequest)]
pub struct Ask {
    pub order: Order,
    pub order_signature: Text,
    /// One for each input of the order. One of an input that the order does not have is refused; without `force` a
    /// second one of an input, too.
    #[schema(max_items = 64)]
    pub inputs: Vec<InputEntry>,
    pub fill: FillEntry,
    /// Trusts the caller about the payments; needs a key that the operator allows it. The order's
    /// signature and a deposit of the order are needed all the same. Of the peers only those are
    /// asked that are shown the caller's own key.
    pub force: Option<Flag>,
    /// The solver's word for this claim: personal_sign over the 32 bytes of
    /// `sha256("claim:fill:" + idempotencyKey)`, the key being that of the execution (`0x` hex, lower
    /// case), which is made of the onchain ids and the order id. Needed where a deposit falls short of
    /// the order by more than the oracle tolerates (1 % by default), and where the order's salt begins
    /// with the 16 bytes `0xb7064203155a802ad4966746909a3047`, by which a solver asks for it in every
    /// claim; else 400 with the code `SOLVER_SIGNATURE_REQUIRED`.
    pub solver_signature: Option<Text>,
    pub hints: Option<FillHints>,
    #[schema(max_items = 64)]
    pub input_hints: Option<Vec<InputHint>>,
    pub request_peer_signatures: Option<Flag>,
}

/// Where the order was filled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FillEntry {
    pub transaction_id: Text,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = FillAttestation)]
pub struct Body {
    pub message: Message,
    pub execution: Execution,
}

/// The request and what is true about it.
#[derive(Serialize, ToSchema)]
#[schema(as = FillMessage)]
pub struct Message {
    pub data: Ask,
    pub result: OutcomeResult,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let force = state.forced(ask.force, &request)?;
    // Only forced refunds may name another chain for an input.
    let mut entries = inputs(&ask.inputs, ask.input_hints.as_deref())?;
    entries.iter_mut().for_each(|entry| entry.chain = None);
    let claim = FillClaim {
        order: OrderClaim {
            order: ask.order.wire()?,
            signature: ask.order_signature.0.clone(),
            inputs: entries,
            solver_signature: ask.solver_signature.as_ref().map(|text| text.0.clone()),
            force,
        },
        transaction: ask.fill.transaction_id.0.clone(),
        hints: ask.hints.as_ref().map(FillHints::value).transpose()?,
    };
    // One more is the fill's.
    let weight = weight(claim.order.inputs.len() + 1);
    request.weigh(weight);
    let question = weighing(&request, ask.request_peer_signatures, (force, weight));
    let answer = state.oracle.fill(&claim, question.as_ref()).await?;
    let body = Body {
        message: Message {
            result: OutcomeResult::of(&answer),
            data: Ask {
                inputs: ask.inputs.into_iter().map(without_chain).collect(),
                ..ask
            },
        },
        execution: Execution::of(&answer.attested),
    };
    respond(&state, &body, Some(&body.execution))
}

/// The inputs of a fill have no chain of their own: unknown fields are not echoed.
fn without_chain(entry: InputEntry) -> InputEntry {
    InputEntry {
        chain_id: None,
        ..entry
    }
}
