//! `POST /attestations/depository-withdrawals/v1`, `v2` and `v3`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{
    Shared, State,
    answer::{Execution, respond},
    hints::DepositHints,
    owned,
    question::question,
};
use crate::{
    attest::service::{
        AddressClaim, EndedAnswer, OwnedWithdrawalClaim, RequestClaim, WithdrawalClaim,
    },
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
    /// withdrawals spend outputs, `allocatorUtxos` (at most 1,000) and `feeRate`.
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

/// Which transaction ended it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WithdrawalTransaction)]
pub struct Ending {
    /// The transaction that executed it. Of chains whose withdrawals spend outputs, the transaction that
    /// spent them, whichever it is: without it providers may be unable to tell.
    pub transaction_id: Option<Text>,
    pub hints: Option<DepositHints>,
}

/// The body of version 2: the allocator has the withdrawal.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OwnedWithdrawalClaim)]
pub struct OwnedAsk {
    #[serde(flatten)]
    pub owned: owned::Ask,
    #[serde(flatten)]
    pub ending: Ending,
}

/// A withdraw request of the hub's own allocator.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WithdrawRequestFields)]
pub struct RequestFields {
    pub chain_id: Text,
    /// The chain's primary one where it is left out. Of chains whose depositories are contracts no other one is
    /// taken.
    pub depository: Option<Text>,
    pub currency: Text,
    pub amount: Text,
    /// A chain, or the hub.
    pub spender_chain_id: Text,
    pub spender: Text,
    pub receiver: Text,
    /// `0x` and 64 hex digits.
    pub nonce: Text,
    /// What the allocator was told besides, under the name of the chain's family: of chains whose withdrawals spend
    /// outputs, `allocatorUtxos` and `feeUtxos` (at most 1,000 each; of an authorization 32 together), `feeRate` and
    /// `feeChangeAddress`.
    #[schema(value_type = Option<Object>)]
    pub additional_data: Option<Map<String, Value>>,
    pub request_peer_signatures: Option<Flag>,
}

/// The body of version 3.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RequestedWithdrawalClaim)]
pub struct RequestedAsk {
    #[serde(flatten)]
    pub request: RequestFields,
    #[serde(flatten)]
    pub ending: Ending,
}

/// The answer of versions 2 and 3.
#[derive(Serialize, ToSchema)]
#[schema(as = EndedWithdrawalAttestation)]
pub struct EndedBody {
    /// 0 pending, 1 executed, 2 expired.
    pub status: u8,
    /// Absent while the withdrawal is pending; of version 3 only where it expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let claim = WithdrawalClaim {
        chain: ask.chain_id.0.clone(),
        withdrawal: ask.withdrawal.0.clone(),
        transaction: ask.transaction_id.as_ref().map(|id| id.0.clone()),
        address: ask.withdrawal_address_request.clone().claim(),
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

pub async fn attest_owned(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = OwnedAsk {
        owned: owned::Ask::read(&request)?,
        ending: request.json()?,
    };
    let wanted = ask.owned.withdrawal.request_peer_signatures;
    let question = question(&request, wanted);
    let claim = OwnedWithdrawalClaim {
        owned: ask.owned.claim()?,
        hints: ask.ending.hints()?,
        transaction: ask.ending.transaction_id.map(|id| id.0),
    };
    let answer = state.oracle.owned_withdrawal(&claim, question.as_ref());
    ended(&state, &answer.await?)
}

pub async fn attest_requested(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = RequestedAsk {
        request: request.json()?,
        ending: request.json()?,
    };
    let question = question(&request, ask.request.request_peer_signatures);
    let claim = RequestClaim {
        hints: ask.ending.hints()?,
        transaction: ask.ending.transaction_id.map(|id| id.0),
        ..ask.request.claim()
    };
    let answer = state.oracle.requested_withdrawal(&claim, question.as_ref());
    ended(&state, &answer.await?)
}

impl AddressRequest {
    /// The same fields as the claim has them.
    pub fn claim(self) -> AddressClaim {
        AddressClaim {
            chain: self.chain_id.0,
            currency: self.currency.0,
            withdrawer: self.withdrawer.0,
            withdrawer_chain: self.withdrawer_chain_id.0,
            recipient: self.recipient.0,
            nonce: self.withdrawal_nonce.0,
        }
    }
}

impl RequestFields {
    /// The claim without the transaction that ended the request.
    pub fn claim(self) -> RequestClaim {
        RequestClaim {
            chain: self.chain_id.0,
            depository: self.depository.map(|text| text.0),
            currency: self.currency.0,
            amount: self.amount.0,
            spender_chain: self.spender_chain_id.0,
            spender: self.spender.0,
            receiver: self.receiver.0,
            nonce: self.nonce.0,
            additional: self.additional_data,
            transaction: None,
            hints: None,
        }
    }
}

impl Ending {
    fn hints(&self) -> Result<Option<Value>, ApiError> {
        self.hints.as_ref().map(DepositHints::value).transpose()
    }
}

fn ended(state: &State, answer: &EndedAnswer) -> Result<Response, ApiError> {
    let body = EndedBody {
        status: answer.status as u8,
        execution: answer.attested.as_ref().map(Execution::of),
    };
    respond(state, &body, body.execution.as_ref())
}
