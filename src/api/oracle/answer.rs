//! What several answers have in common. Field orders are the recorded ones.

use std::collections::HashSet;

use hyper::header::HeaderValue;
use serde::Serialize;
use utoipa::ToSchema;
use vm::protocol::hub::token_id;

use super::State;
use crate::{
    attest::{deposit::Message, peers::answer::Corroborated, service::Attested},
    http::{ApiError, Response},
};

/// What the hub is to do, and who says so.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// `0x` and 64 hex digits.
    pub idempotency_key: String,
    /// ABI-encoded actions, `0x` hex.
    pub actions: Vec<String>,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<ExecutionSignature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Vec<Metadata>>,
}

/// One oracle's signature over the execution.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSignature {
    pub oracle_chain_id: String,
    pub oracle_contract: String,
    pub oracle_signer: String,
    /// 65 bytes, `r ++ s ++ v`.
    pub signature: String,
}

/// One oracle's signature over a message whose domain the answer names.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OracleSignature)]
pub struct Signature {
    pub oracle_signer: String,
    /// 65 bytes, `r ++ s ++ v`.
    pub signature: String,
}

impl Signature {
    pub fn of(by: &Corroborated) -> Self {
        Self {
            oracle_signer: by.signer.clone(),
            signature: by.signature.to_string(),
        }
    }
}

/// What an action's token is on its own chain.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Decimal.
    pub hub_token_id: String,
    pub origin: Origin,
    pub oracle_chain_id: String,
    pub oracle_contract: String,
}

/// A currency on its own chain.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub address: String,
    pub chain_id: String,
    pub family: String,
}

impl Execution {
    pub fn of(attested: &Attested) -> Self {
        let signature = |by: &Corroborated| {
            let [oracle_chain_id, oracle_contract] = by.domain.clone().unwrap_or_default();
            ExecutionSignature {
                oracle_chain_id,
                oracle_contract,
                oracle_signer: by.signer.clone(),
                signature: by.signature.to_string(),
            }
        };
        let execution = &attested.execution;
        Self {
            idempotency_key: execution.idempotency_key.to_string(),
            actions: execution.actions.iter().map(ToString::to_string).collect(),
            signatures: attested.signatures.iter().map(signature).collect(),
            metadata: None,
        }
    }

    /// With what each message's currency is on its own chain.
    pub fn describing(mut self, state: &State, messages: &[Message]) -> Self {
        let settings = &state.oracle.hub.settings;
        let describe = |message: &Message| {
            let chain = message.chain.as_str();
            let currency = &message.deposit.currency;
            let family = state.oracle.family(chain).map(|family| family.name);
            Metadata {
                hub_token_id: token_id(&message.chain, currency).to_string(),
                origin: Origin {
                    address: currency.text().to_owned(),
                    chain_id: chain.to_owned(),
                    family: family.unwrap_or_default().to_owned(),
                },
                oracle_chain_id: settings.chain.clone(),
                oracle_contract: settings.oracle.clone(),
            }
        };
        self.metadata = Some(messages.iter().map(describe).collect());
        self
    }
}

/// 200, with how many distinct signers stand in the answer where there is something signed.
pub fn respond<T: Serialize>(
    state: &State,
    body: &T,
    execution: Option<&Execution>,
) -> Result<Response, ApiError> {
    match execution {
        Some(execution) => {
            let signers = execution.signatures.iter();
            respond_signed(state, body, signers.map(|by| &by.oracle_signer))
        }
        None => Response::json(body),
    }
}

/// 200, with how many distinct ones of `signers` stand in the answer.
pub fn respond_signed<'a, T: Serialize>(
    state: &State,
    body: &T,
    signers: impl Iterator<Item = &'a String>,
) -> Result<Response, ApiError> {
    let signers: HashSet<String> = signers.map(|by| by.to_ascii_lowercase()).collect();
    let count = format!("{}/{}", signers.len(), state.oracle.peers.threshold());
    let count = HeaderValue::from_str(&count).map_err(ApiError::internal)?;
    Ok(Response::json(body)?.with("x-oracle-signers", count))
}
