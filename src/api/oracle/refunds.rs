//! `POST /attestations/solver-refunds/v1`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    hints::{FillHints, InputHint},
    order::{InputEntry, Order, OutcomeResult, index, inputs, weight},
    question::weighing,
};
use crate::{
    attest::{
        claim::bounded,
        refund::Refund,
        service::{OrderClaim, RefundClaim, RefundPayment},
    },
    http::{ApiError, Flag, Number, Request, Response, Text},
};

/// The body, which the answer echoes.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RefundRequest)]
pub struct Ask {
    pub order: Order,
    pub order_signature: Text,
    /// One for each input of the order. One of an input that the order does not have is refused; without `force` a
    /// second one of an input, too.
    #[schema(max_items = 64)]
    pub inputs: Vec<InputEntry>,
    #[schema(max_items = 64)]
    pub refunds: Vec<RefundEntry>,
    /// Trusts the caller about the payments; needs a key that the operator allows it. The order's
    /// signature and a deposit of the order are needed all the same. Of the peers only those are
    /// asked that are shown the caller's own key.
    pub force: Option<Flag>,
    /// The solver's word for this claim: personal_sign over the 32 bytes of
    /// `sha256("claim:refund:" + idempotencyKey)`, the key being that of the execution (`0x` hex, lower
    /// case), which is made of the onchain ids and the order id. Needed where a deposit falls short of
    /// the order by more than the oracle tolerates (1 % by default), and where the order's salt begins
    /// with the 16 bytes `0xb7064203155a802ad4966746909a3047`, by which a solver asks for it in every
    /// claim; else 400 with the code `SOLVER_SIGNATURE_REQUIRED`. Needed, too, where others than the
    /// solver paid the refund, and for every refund on Bitcoin, where no input is the solver's account.
    pub solver_signature: Option<Text>,
    pub hints: Option<FillHints>,
    #[schema(max_items = 64)]
    pub input_hints: Option<Vec<InputHint>>,
    pub request_peer_signatures: Option<Flag>,
}

/// Where one input was given back, and by which of its options.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundEntry {
    pub transaction_id: Text,
    pub input_index: Number,
    pub refund_index: Number,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = RefundAttestation)]
pub struct Body {
    pub message: Message,
    pub execution: Execution,
}

/// The request and what is true about it.
#[derive(Serialize, ToSchema)]
#[schema(as = RefundMessage)]
pub struct Message {
    pub data: Ask,
    pub result: OutcomeResult,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let force = state.forced(ask.force, &request)?;
    let refund = |entry: &RefundEntry| RefundPayment {
        refund: Refund {
            input: index(entry.input_index),
            option: index(entry.refund_index),
        },
        transaction: entry.transaction_id.0.clone(),
    };
    bounded("refunds", ask.refunds.len())?;
    let claim = RefundClaim {
        order: OrderClaim {
            order: ask.order.wire()?,
            signature: ask.order_signature.0.clone(),
            inputs: inputs(&ask.inputs, ask.input_hints.as_deref())?,
            solver_signature: ask.solver_signature.as_ref().map(|text| text.0.clone()),
            force,
        },
        refunds: ask.refunds.iter().map(refund).collect(),
        hints: ask.hints.as_ref().map(FillHints::value).transpose()?,
    };
    let weight = weight(claim.order.inputs.len() + claim.refunds.len());
    request.weigh(weight);
    let question = weighing(&request, ask.request_peer_signatures, (force, weight));
    let answer = state.oracle.refund(&claim, question.as_ref()).await?;
    let body = Body {
        message: Message {
            result: OutcomeResult::of(&answer),
            data: ask,
        },
        execution: Execution::of(&answer.attested),
    };
    respond(&state, &body, Some(&body.execution))
}
