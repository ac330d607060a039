//! `GET /requests/v3`, `/requests/v2` and `/requests`: one query, three renderings.

use hyper::header::AUTHORIZATION;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

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

/// What `/requests/v3` reads of the query; all of it must hold. Anything else is refused.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV3 {
    /// Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more to
    /// come: go on until there is no `continuation`.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    /// The one of the answer before, with all other parameters unchanged.
    continuation: Option<String>,
    /// Tells how many requests there are, unless more than 10,000 would have to be looked at.
    include_total: Option<bool>,
    /// Request id, account, deposit address or any transaction hash.
    #[param(min_length = 1)]
    term: Option<String>,
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    order_id: Option<String>,
    #[param(min_length = 1)]
    deposit_tx_hash: Option<String>,
    #[param(min_length = 1)]
    fill_tx_hash: Option<String>,
    #[param(min_length = 1)]
    refund_tx_hash: Option<String>,
    origin_chain_id: Option<u64>,
    destination_chain_id: Option<u64>,
    /// Either side's; not looked at beside one of the others.
    chain_id: Option<u64>,
    /// A comma list of private chains, whose requests are left out otherwise.
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    /// The sender, or who paid into the deposit address.
    #[param(min_length = 1)]
    user: Option<String>,
    #[param(min_length = 1)]
    deposit_address: Option<String>,
    #[param(min_length = 1)]
    recipient: Option<String>,
    /// `success`, `failure`, `refund`, `pending` (which is also `submitted`), `depositing` or `waiting`.
    /// Quotes that nobody acted on are left out unless `waiting` or an id asks for them; they are in no
    /// order of amounts. `waiting` lists those that were quoted with the caller's own key, or those of the `user`
    /// that is named as well.
    #[param(pattern = "^(success|failure|refund|pending|depositing|waiting)$")]
    status: Option<String>,
    #[param(min_length = 1)]
    fail_reason: Option<String>,
    #[param(min_length = 1)]
    refund_fail_reason: Option<String>,
    /// A comma list of the caller's own key, or better its label: addresses are logged.
    #[param(min_length = 1)]
    api_key: Option<String>,
    /// `Bridge` (one asset on two chains), `Crosschain Swap`, `Same-chain Swap`, `Send`, `Wrap`, `Unwrap` or `Call`.
    #[param(min_length = 1)]
    request_type: Option<String>,
    currency_in_chain_id: Option<u64>,
    currency_out_chain_id: Option<u64>,
    #[param(min_length = 1)]
    currency_in_address: Option<String>,
    #[param(min_length = 1)]
    currency_out_address: Option<String>,
    #[param(min_length = 1)]
    currency_in_symbol: Option<String>,
    #[param(min_length = 1)]
    currency_out_symbol: Option<String>,
    /// Unix seconds of the creation, or of the last change when that is sorted by.
    start_timestamp: Option<u64>,
    /// As `startTimestamp`.
    end_timestamp: Option<u64>,
    /// Of any of its transactions; with `originChainId` of those there.
    start_block: Option<u64>,
    /// As `startBlock`.
    end_block: Option<u64>,
    /// Dollars, of what was to be deposited.
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    amount_usd_min: Option<String>,
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    amount_usd_max: Option<String>,
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    app_fees_amount_usd_min: Option<String>,
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    app_fees_amount_usd_max: Option<String>,
    /// Seconds from the deposit's block to the fill's.
    fill_time_min: Option<u64>,
    fill_time_max: Option<u64>,
    /// A comma list, of which one must be there: `gasless_execution`, `gasless_swap`, `fast_fill`,
    /// `gas_top_up`, `fixed_rate`, `app_fees`, `deposit_address`.
    #[param(min_length = 1)]
    features: Option<String>,
    /// Shows `data.referrer` and `data.apiKeyName` of the caller's own requests.
    include_authenticated_data: Option<bool>,
    /// With `id`: regenerated requests, too.
    include_child_requests: Option<bool>,
    /// A JSON array of groups, of which one must hold: objects of the fields above (not of ranges and
    /// `features`), all of which must hold; no status `waiting`. `not:` before a key turns it round; a value may be
    /// an array, of which one must hold, or null, for nothing (never of `apiKey`). At most 16 groups of 32 fields of 64 values, and 256 values in all.
    #[param(min_length = 2, max_length = 8192)]
    filters: Option<String>,
    /// `createdAt`, `updatedAt` or `amountUsd`.
    #[param(pattern = "^(createdAt|updatedAt|amountUsd)$")]
    sort_by: Option<String>,
    /// `asc` or `desc`; by default `desc` for times and `asc` for amounts.
    #[param(pattern = "^(asc|desc)$")]
    sort_direction: Option<String>,
}

/// What `/requests/v2` reads of the query; as in version 3 where nothing is said.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV2 {
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    continuation: Option<String>,
    /// The sender or the recipient.
    #[param(min_length = 1)]
    user: Option<String>,
    /// Any transaction's.
    #[param(min_length = 1)]
    hash: Option<String>,
    origin_chain_id: Option<u64>,
    destination_chain_id: Option<u64>,
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    order_id: Option<String>,
    include_order_data: Option<bool>,
    start_timestamp: Option<u64>,
    end_timestamp: Option<u64>,
    start_block: Option<u64>,
    end_block: Option<u64>,
    chain_id: Option<u64>,
    /// Of the caller's own requests only: needs the key that they were quoted with.
    #[param(min_length = 1)]
    referrer: Option<String>,
    #[param(min_length = 1)]
    deposit_address: Option<String>,
    include_child_requests: Option<bool>,
    include_authenticated_data: Option<bool>,
    /// As in version 3: quotes that nobody acted on are left out unless `waiting` or an id asks for them. `waiting`
    /// is refused without a key.
    #[param(pattern = "^(success|failure|refund|pending|depositing|waiting)$")]
    status: Option<String>,
    #[param(min_length = 1)]
    api_key: Option<String>,
    #[param(pattern = "^(createdAt|updatedAt)$")]
    sort_by: Option<String>,
    #[param(pattern = "^(asc|desc)$")]
    sort_direction: Option<String>,
}

/// What `/requests` reads of the query; as in version 2.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV1 {
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    continuation: Option<String>,
    #[param(min_length = 1)]
    user: Option<String>,
    #[param(min_length = 1)]
    hash: Option<String>,
    origin_chain_id: Option<u64>,
    destination_chain_id: Option<u64>,
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    start_timestamp: Option<u64>,
    end_timestamp: Option<u64>,
}

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
    let label = request.key.as_ref().map(|label| label.as_str());
    let asked = asked(state, request, edition, label)?;
    let cut = Cut {
        limit: asked.limit,
        continuation: asked.continuation.as_deref(),
        total: asked.total,
    };
    let page = state.listing.page(&asked.query, cut).await?;
    let records = state.listing.records(&page.found).await?;
    let rendered = records.iter().map(|record| {
        let own = label.is_some() && record.request.api_key.as_deref() == label;
        render(&Case {
            request: &record.request,
            facts: &record.facts,
            witnesses: &record.witnesses,
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
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned();
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
