//! `POST /attestations/signatures/nonce-mapping/v1`, `/v2` and `/attestations/signatures/no-fill-or-refund/v1`.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::{Shared, answer::respond_signed, question::question};
use crate::{
    attest::{
        mapping::{NoFillOrRefundClaim, NonceMappingClaim},
        peers::answer::Corroborated,
    },
    http::{ApiError, Flag, Request, Response, Text},
};

/// The body of the first version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FirstNonceMappingRequest)]
pub struct FirstAsk {
    pub wallet_chain_id: Text,
    pub wallet: Text,
    /// Decimal digits.
    pub nonce: Text,
    /// The order that the transfer is the deposit for, 32 bytes.
    pub id: Text,
    /// The EVM chain whose number the signature names.
    pub signature_chain_id: Text,
    /// The wallet's, of the typed data `NonceMapping` under version 1.
    pub signature: Text,
    pub request_peer_signatures: Option<Flag>,
}

/// The body of the second version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NonceMappingRequest)]
pub struct Ask {
    pub wallet_chain_id: Text,
    pub wallet: Text,
    /// Decimal digits.
    pub nonce: Text,
    /// The order that the transfer is the deposit for, 32 bytes.
    pub id: Text,
    /// Whose deposit it is; the zero address for the wallet's own.
    pub depositor: Text,
    /// The EVM chain whose number the signature names.
    pub signature_chain_id: Text,
    /// The wallet's, of the typed data `NonceMapping` under version 2.
    pub signature: Text,
    pub request_peer_signatures: Option<Flag>,
}

/// The body about an order that its solver gives up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NoFillOrRefundRequest)]
pub struct GivenUp {
    pub solver_chain_id: Text,
    pub solver: Text,
    /// 32 bytes of hex in lower case.
    pub order_id: Text,
    /// The solver's, of the typed data `NoFillOrRefund`.
    pub signature: Text,
    pub request_peer_signatures: Option<Flag>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MappingAttestation)]
pub struct Body {
    pub generic_mapping: GenericMapping,
}

/// An entry of the hub's generic mapping.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenericMapping {
    /// The hub account that signed for it.
    pub user: String,
    pub id: String,
    pub data: String,
    pub nonce: String,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<MappingSignature>,
}

/// One oracle's signature over the entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MappingSignature {
    pub generic_mapping_chain_id: String,
    pub generic_mapping_contract: String,
    pub oracle_signer: String,
    /// 65 bytes, `r ++ s ++ v`.
    pub signature: String,
}

/// What a body claims.
pub enum Claim<'a> {
    Nonce(NonceMappingClaim<'a>),
    GivenUp(NoFillOrRefundClaim<'a>),
}

/// A body that claims something.
pub trait Claims: DeserializeOwned + Send + Sync {
    fn asks_peers(&self) -> Option<Flag>;
    fn claim(&self) -> Claim<'_>;
}

pub async fn attest<A: Claims>(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: A = request.json()?;
    let question = question(&request, ask.asks_peers());
    let (oracle, question) = (&state.oracle, question.as_ref());
    let answer = match ask.claim() {
        Claim::Nonce(claim) => oracle.nonce_mapping(&claim, question).await?,
        Claim::GivenUp(claim) => oracle.no_fill_or_refund(&claim, question).await?,
    };
    let mapping = &answer.entry.mapping;
    let body = Body {
        generic_mapping: GenericMapping {
            user: mapping.user.to_checksum(None),
            id: mapping.id.to_string(),
            data: answer.entry.data,
            nonce: mapping.nonce.to_string(),
            signatures: answer.signatures.iter().map(MappingSignature::of).collect(),
        },
    };
    let signatures = body.generic_mapping.signatures.iter();
    respond_signed(&state, &body, signatures.map(|by| &by.oracle_signer))
}

impl MappingSignature {
    fn of(by: &Corroborated) -> Self {
        let [chain, contract] = by.domain.clone().unwrap_or_default();
        Self {
            generic_mapping_chain_id: chain,
            generic_mapping_contract: contract,
            oracle_signer: by.signer.clone(),
            signature: by.signature.to_string(),
        }
    }
}

impl Claims for FirstAsk {
    fn asks_peers(&self) -> Option<Flag> {
        self.request_peer_signatures
    }

    fn claim(&self) -> Claim<'_> {
        Claim::Nonce(NonceMappingClaim {
            wallet_chain_id: &self.wallet_chain_id.0,
            wallet: &self.wallet.0,
            nonce: &self.nonce.0,
            id: &self.id.0,
            depositor: None,
            signature_chain_id: &self.signature_chain_id.0,
            signature: &self.signature.0,
        })
    }
}

impl Claims for Ask {
    fn asks_peers(&self) -> Option<Flag> {
        self.request_peer_signatures
    }

    fn claim(&self) -> Claim<'_> {
        Claim::Nonce(NonceMappingClaim {
            wallet_chain_id: &self.wallet_chain_id.0,
            wallet: &self.wallet.0,
            nonce: &self.nonce.0,
            id: &self.id.0,
            depositor: Some(&self.depositor.0),
            signature_chain_id: &self.signature_chain_id.0,
            signature: &self.signature.0,
        })
    }
}

impl Claims for GivenUp {
    fn asks_peers(&self) -> Option<Flag> {
        self.request_peer_signatures
    }

    fn claim(&self) -> Claim<'_> {
        Claim::GivenUp(NoFillOrRefundClaim {
            solver_chain_id: &self.solver_chain_id.0,
            solver: &self.solver.0,
            order_id: &self.order_id.0,
            signature: &self.signature.0,
        })
    }
}
