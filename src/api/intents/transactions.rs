//! `POST /transactions/index`, `/transactions/single`, `GET /transactions/status`
//! (guide: protocol 11.13).

use serde::{Deserialize, Serialize};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{RefOr, Schema},
};

use super::{Shared, status::request_id};
use crate::{
    chains::asking,
    http::{ApiError, Number, Request, Response, Text},
    index::submitted::{Known, Submission},
    json,
    request::render::{self, V3},
    store::rows::transaction::Outcome,
};

/// Body of `/transactions/index`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionIndex)]
pub struct Index {
    chain_id: Number,
    /// As its chain spells it, 32 to 64 bytes.
    tx_hash: Text,
    /// `0x` and 64 hex digits.
    request_id: Option<Text>,
}

/// Body of `/transactions/single`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionSingle)]
pub struct Single {
    /// `0x` and 64 hex digits.
    request_id: Text,
    chain_id: Number,
    /// The transaction as a JSON text, with `txHash` or `replacementTxHash`.
    tx: Text,
}

/// It was taken note of.
#[derive(Serialize, ToSchema)]
#[schema(as = TransactionNoted)]
pub struct Done {
    message: &'static str,
}

const DONE: Done = Done { message: "Success" };

/// What is known of a transaction; where a request is known, also everything that
/// `/intents/status/v3` tells of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionStanding)]
pub struct Standing {
    chain_id: u64,
    tx_hash: String,
    #[schema(schema_with = outcomes)]
    transaction_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(flatten)]
    #[schema(ignore)]
    request: Option<V3>,
}

fn outcomes() -> RefOr<Schema> {
    json::schema::one_of(
        "What became of the transaction.",
        ["pending", "success", "failure"],
    )
}

/// What `/transactions/status` reads of the query.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The transaction.
    tx_hash: String,
    /// Its chain's number, where it is known.
    #[param(value_type = Option<u64>)]
    chain_id: Option<Number>,
}

pub async fn index(state: Shared, request: Request) -> Result<Response, ApiError> {
    let body: Index = request.json()?;
    let named = body.request_id.filter(|text| !text.is_empty());
    let named = named.map(|text| request_id(&text)).transpose()?;
    let submission = Submission {
        chain: body.chain_id.0,
        transaction: &body.tx_hash,
        request: named,
    };
    let noted = state.transactions.index(submission, (state.clock)());
    asking::by(request.key.is_some(), noted).await?;
    Response::json(&DONE)
}

pub async fn single(state: Shared, request: Request) -> Result<Response, ApiError> {
    let body: Single = request.json()?;
    let id = request_id(&body.request_id)?;
    let now = (state.clock)();
    let noted = state
        .transactions
        .single(id, body.chain_id.0, &body.tx, now);
    asking::by(request.key.is_some(), noted).await?;
    Response::json(&DONE)
}

pub async fn status(state: Shared, request: Request) -> Result<Response, ApiError> {
    let asked: Asked = request.query()?;
    let chain = asked.chain_id.map(|number| number.0);
    let known = state.transactions.status(&asked.tx_hash, chain).await?;
    let network = state.market.by_name(&known.network);
    Response::json(&Standing::of(
        &known,
        network.map_or(0, |found| found.chain_id),
    ))
}

impl Standing {
    fn of(known: &Known, chain_id: u64) -> Self {
        let request = known.request.as_ref();
        Self {
            chain_id,
            tx_hash: known.transaction.clone(),
            transaction_status: match known.outcome {
                Outcome::Waiting => "pending",
                Outcome::Included => "success",
                Outcome::Failed | Outcome::GivenUp => "failure",
            },
            request_id: request.map(|(request, _)| request.id.to_string()),
            request: request.map(|(request, facts)| render::v3(request, facts)),
        }
    }
}
