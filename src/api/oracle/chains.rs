//! `GET /chains/v1`.

use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use crate::http::{ApiError, Request, Response};

/// A configured chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Chain)]
pub struct Listed {
    /// The network's name.
    pub id: String,
    /// The family, for example `ethereum-vm`.
    pub vm_type: String,
    /// The primary depository as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depository: Option<String>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Chains)]
pub struct Body {
    pub chains: Vec<Listed>,
}

pub async fn list(state: Shared, _: Request) -> Result<Response, ApiError> {
    Response::json(&Body {
        chains: state.listed.clone(),
    })
}
