//! `GET /requests/v3`, `/requests/v2` and `/requests`: one query, three renderings.

use hyper::header::AUTHORIZATION;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Shared,
    retirement::{self, Notice},
};
use crate::{
    http::{ApiError, Request, Response, auth::KEY},
    request::{
        filter::{Asked, Caller, Edition, Wrong},
        listing::{self, Case, V1, V2, V3},
    },
    store::listing::{Cut, ListingError},
};

/// A page of the listing.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedRequests)]
pub struct ListV3 {
    requests: Vec<V3>,
    /// Absent when there is nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<String>,
    /// Only with `includeTotal=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

/// A page of the listing, as version 2 said it.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedRequestsV2)]
pub struct ListV2 {
    requests: Vec<V2>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<String>,
    deprecation: Notice,
}

/// A page of the listing, as version 1 said it.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedRequestsV1)]
pub struct ListV1 {
    requests: Vec<V1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<String>,
}

pub async fn v3(state: Shared, request: Request) -> Result<Response, ApiError> {
    let page = page(&state, &request, Edition::V3, listing::v3).await?;
    Response::json(&ListV3 {
        requests: page.requests,
        continuation: page.continuation,
        total: page.total,
    })
}

pub async fn v2(state: Shared, request: Request) -> Result<Response, ApiError> {
    let (throttle, now) = (&state.retiring, (state.clock)());
    if throttle.dates.over(now / 1000) {
        return retirement::gone();
    }
    throttle.check(request.key.as_ref(), request.client, now)?;
    let page = page(&state, &request, Edition::V2, listing::v2).await?;
    Response::json(&ListV2 {
        requests: page.requests,
        continuation: page.continuation,
        deprecation: throttle.dates.notice(),
    })
}

pub async fn v1(state: Shared, request: Request) -> Result<Response, ApiError> {
    let page = page(&state, &request, Edition::V1, listing::v1).await?;
    Response::json(&ListV1 {
        requests: page.requests,
        continuation: page.continuation,
    })
}

struct Rendered<T> {
    requests: Vec<T>,
    continuation: Option<String>,
    total: Option<u64>,
}

async fn page<T>(
    state: &Shared,
    request: &Request,
    edition: Edition,
    render: fn(&Case<'_>) -> T,
) -> Result<Rendered<T>, ApiError> {
    let label = request.label();
    let asked = asked(state, request, edition, label)?;
    let cut = Cut {
        limit: asked.limit,
        continuation: asked.continuation.as_deref(),
        total: asked.total,
    };
    let page = state.listing.page(&asked.query, cut).await?;
    let records = state.listing.records(&page.found).await?;
    let number = |name: &str| Some(state.market.by_name(name)?.chain_id);
    let rendered = records.iter().map(|record| {
        let own = label.is_some() && record.request.api_key.as_deref() == label;
        render(&Case {
            request: &record.request,
            facts: &record.facts,
            tx_details: &record.tx_details,
            number: &number,
            own,
            authenticated: asked.authenticated && own,
            order: asked.order,
        })
    });
    Ok(Rendered {
        requests: rendered.collect(),
        continuation: page.continuation,
        total: page.total,
    })
}

fn asked(
    state: &Shared,
    request: &Request,
    edition: Edition,
    label: Option<&str>,
) -> Result<Asked, ApiError> {
    let bearer = request.header(AUTHORIZATION.as_str());
    let bearer = bearer
        .and_then(|text| text.split_once(' '))
        .map(|(_, key)| key.trim());
    let caller = Caller {
        label,
        key: request.header(KEY.as_str()).or(bearer),
    };
    let networks = state.market.networks().iter();
    let private = networks.filter(|network| network.private);
    let private: Vec<_> = private.map(|network| network.chain_id).collect();
    let pairs = request.parameters();
    Ok(Asked::parse(edition, pairs, &caller, &private)?)
}

impl From<Wrong> for ApiError {
    fn from(wrong: Wrong) -> Self {
        let message = wrong.to_string();
        Self::refused(wrong.code, message)
    }
}

impl From<ListingError> for ApiError {
    fn from(error: ListingError) -> Self {
        match error {
            ListingError::Requests(error) => error.into(),
            ListingError::Incomplete => Self::unavailable(
                "SERVICE_UNAVAILABLE",
                "The listing is being made after an update",
                error,
            ),
            ListingError::Foreign => Self::refused(
                "INVALID_CONTINUATION",
                "continuation: expected the one of an answer to the same query",
            ),
        }
    }
}
