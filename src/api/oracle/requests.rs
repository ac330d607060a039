//! `POST /attestations/withdraw-requests/v1` and `/attestations/withdraw-request-authorization/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vm::protocol::owner::Kind;

use super::{
    Shared,
    answer::{Signature, respond_signed},
    owned::ProofFields,
    question::{question, weighing},
    withdrawals::RequestFields,
};
use crate::{
    attest::{claim::bounded, owner::Requested, service::OwnedClaim},
    http::{ApiError, Number, Request, Response},
};

/// Which hashes of a withdraw request are asked for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HashIndexes {
    /// At least one, each once.
    #[schema(min_items = 1, max_items = 64)]
    pub hash_indexes: Vec<Number>,
}

/// The body about the hashes of a withdraw request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = InclusionRequest)]
pub struct InclusionAsk {
    #[serde(flatten)]
    pub request: RequestFields,
    #[serde(flatten)]
    pub indexes: HashIndexes,
}

/// The answer about them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = InclusionAttestation)]
pub struct InclusionBody {
    pub withdraw_request: Inclusion,
}

/// What the allocator has for a withdraw request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WithdrawRequestInclusion)]
pub struct Inclusion {
    /// The settlement chain's EVM chain id.
    pub chain_id: u64,
    pub allocator: String,
    pub withdraw_request_hash: String,
    /// In the order of `hashIndexes`.
    pub hashes_to_sign: Vec<String>,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<Signature>,
}

/// The body of a withdraw request that its spender asks for.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AuthorizationRequest)]
pub struct AuthorizationAsk {
    #[serde(flatten)]
    pub request: RequestFields,
    #[serde(flatten)]
    pub proof: ProofFields,
}

/// The answer to that.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuthorizationAttestation)]
pub struct AuthorizationBody {
    pub withdraw_request: WithdrawRequest,
    /// The settlement chain's EVM chain id.
    pub allocator_chain_id: u64,
    pub allocator_contract: String,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<Signature>,
}

/// A withdraw request in the spelling that the allocator hashes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawRequest {
    pub chain_id: String,
    /// Bytes, as all that follow but amount and chain: `0x` hex.
    pub depository: String,
    pub currency: String,
    pub amount: String,
    pub spender_chain_id: String,
    pub spender: String,
    pub receiver: String,
    pub data: String,
    pub nonce: String,
}

/// As how many requests a claim about so many hashes counts: each is one call of the allocator, and a claim of one input,
/// which counts as one, takes some eight calls.
fn weight(indexes: usize) -> usize {
    indexes.div_ceil(8).max(1)
}

pub async fn include(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = InclusionAsk {
        request: request.json()?,
        indexes: request.json()?,
    };
    bounded("hashIndexes", ask.indexes.hash_indexes.len())?;
    let weight = weight(ask.indexes.hash_indexes.len());
    request.weigh(weight);
    let wanted = ask.request.request_peer_signatures;
    let question = weighing(&request, wanted, (false, weight));
    let indexes = ask.indexes.hash_indexes.iter();
    let indexes: Vec<u64> = indexes.map(|index| index.0).collect();
    let claim = ask.request.claim();
    let answer = state.oracle.inclusion(&claim, &indexes, question.as_ref());
    let answer = answer.await?;
    let inclusion = &answer.inclusion;
    let hashes = inclusion.hashes_to_sign.iter();
    let body = InclusionBody {
        withdraw_request: Inclusion {
            chain_id: inclusion.chain_id.saturating_to(),
            allocator: format!("{:#x}", inclusion.allocator),
            withdraw_request_hash: inclusion.withdraw_request_hash.to_string(),
            hashes_to_sign: hashes.map(ToString::to_string).collect(),
            signatures: answer.signatures.iter().map(Signature::of).collect(),
        },
    };
    let signatures = body.withdraw_request.signatures.iter();
    respond_signed(&state, &body, signatures.map(|by| &by.oracle_signer))
}

pub async fn authorize(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask = AuthorizationAsk {
        request: request.json()?,
        proof: request.json()?,
    };
    let question = question(&request, ask.request.request_peer_signatures);
    // Said before a signature is asked for, which would not help.
    state.oracle.check_authorizable(&ask.request.chain_id)?;
    let proof = ask.proof.proof()?;
    let claim = ask.request.claim();
    let claim = OwnedClaim {
        depository: claim.depository,
        requested: Requested {
            kind: Kind::Withdrawal,
            chain: claim.chain,
            currency: claim.currency,
            amount: claim.amount,
            owner_chain: claim.spender_chain,
            owner: claim.spender,
            recipient: claim.receiver,
            nonce: claim.nonce,
            additional: claim.additional,
        },
        proof,
    };
    let answer = state.oracle.authorization(&claim, question.as_ref());
    let answer = answer.await?;
    let (domain, of) = (&answer.domain, answer.request);
    let body = AuthorizationBody {
        withdraw_request: WithdrawRequest {
            chain_id: of.chain_id,
            depository: of.depository.to_string(),
            currency: of.currency.to_string(),
            amount: of.amount.to_string(),
            spender_chain_id: of.spender_chain_id,
            spender: of.spender.to_string(),
            receiver: of.receiver.to_string(),
            data: of.data.to_string(),
            nonce: of.nonce,
        },
        allocator_chain_id: domain.chain().saturating_to(),
        allocator_contract: format!("{:#x}", domain.contract()),
        signatures: answer.signatures.iter().map(Signature::of).collect(),
    };
    let signatures = body.signatures.iter();
    respond_signed(&state, &body, signatures.map(|by| &by.oracle_signer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hashes_count_as_several_requests_and_a_usual_request_as_one() {
        for (indexes, expected) in [(0, 1), (1, 1), (8, 1), (9, 2), (33, 5), (64, 8)] {
            assert_eq!(weight(indexes), expected, "{indexes}");
        }
    }
}
