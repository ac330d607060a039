//! `POST /attestations/depository-deposits/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Execution, respond},
    hints::DepositHints,
    question::question,
};
use crate::{
    attest::{deposit::Message, service::DepositClaim, statement},
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DepositRequest)]
pub struct Ask {
    pub chain_id: Text,
    pub transaction_id: Text,
    /// `fast` asks for the weaker finality of the chain's tiers, where it has any. Where the hub takes
    /// a fee for that, or a deposit of the transaction names an order, it needs a key.
    pub mode: Option<Mode>,
    pub hints: Option<DepositHints>,
    pub request_peer_signatures: Option<Flag>,
}

/// How much finality is waited for.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Fast,
    Slow,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = DepositAttestation)]
pub struct Body {
    /// Empty where the transaction holds no deposit.
    pub messages: Vec<DepositMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// One deposit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DepositMessage {
    pub data: DepositData,
    pub result: DepositResult,
    pub extra_data: DepositExtra,
}

/// Where the deposit is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DepositData {
    pub chain_id: String,
    pub transaction_id: String,
}

/// What the deposit is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DepositResult {
    pub onchain_id: String,
    pub depository: String,
    pub depositor: String,
    pub currency: String,
    /// In the smallest unit, decimal.
    pub amount: String,
    /// The order that the deposit names; 64 zeros for none.
    pub deposit_id: String,
}

/// When the deposit was.
#[derive(Serialize, ToSchema)]
pub struct DepositExtra {
    /// Unix seconds.
    pub timestamp: String,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let question = question(&request, ask.request_peer_signatures);
    let claim = DepositClaim {
        chain: ask.chain_id.0,
        transaction: ask.transaction_id.0,
        mode: match ask.mode {
            Some(Mode::Fast) => statement::Mode::Fast,
            Some(Mode::Slow) | None => statement::Mode::Slow,
        },
        keyed: request.key.is_some(),
        hints: ask.hints.as_ref().map(DepositHints::value).transpose()?,
    };
    let answer = state.oracle.deposit(&claim, question.as_ref()).await?;
    let body = Body {
        messages: answer.messages.iter().map(DepositMessage::of).collect(),
        execution: answer
            .attested
            .as_ref()
            .map(|attested| Execution::of(attested).describing(&state, &answer.messages)),
    };
    respond(&state, &body, body.execution.as_ref())
}

impl DepositMessage {
    fn of(message: &Message) -> Self {
        let deposit = &message.deposit;
        Self {
            data: DepositData {
                chain_id: message.chain.to_string(),
                transaction_id: message.transaction.to_string(),
            },
            result: DepositResult {
                onchain_id: message.onchain_id.to_string(),
                depository: deposit.depository.text().to_owned(),
                depositor: deposit.depositor.text().to_owned(),
                currency: deposit.currency.text().to_owned(),
                amount: deposit.amount.to_string(),
                deposit_id: deposit.id.to_string(),
            },
            extra_data: DepositExtra {
                timestamp: message.timestamp.to_string(),
            },
        }
    }
}
