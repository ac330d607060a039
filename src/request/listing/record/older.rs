//! `GET /requests/v2` and `GET /requests`: views of the newest record, under the names of before
//! (guide: protocol 11.12). What is not known is left out; null stands only where the published type
//! has it.

use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use vm::protocol::order::Order;

use super::{V3, record};
use crate::request::{
    listing::{
        Case, CaseView, fees,
        fees::PlatformFee,
        protocol::Protocol,
        route::{Leg, Legs},
        transactions::{CallData, StateChange},
    },
    quoted::{Amount, Currency, Usd},
    status::Status,
    words,
};

const NONE: &str = "N/A";

/// A request, as version 2 said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordRequestV2)]
pub struct V2 {
    id: String,
    #[schema(schema_with = words::second_states)]
    status: &'static str,
    #[serde(flatten)]
    body: Body,
}

/// A request, as version 1 said it: its statuses, and otherwise version 2's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordRequestV1)]
pub struct V1 {
    id: String,
    #[schema(schema_with = words::first_listed_states)]
    status: &'static str,
    #[serde(flatten)]
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordBodyV2)]
struct Body {
    user: String,
    recipient: String,
    #[schema(value_type = Option<Object>)]
    deposit_address: Option<()>,
    data: Data,
    protocol: Protocol,
    /// Only with `includeOrderData=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    order_data: Option<Order>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referrer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moonpay_id: Option<String>,
    created_at: String,
    updated_at: String,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordDataV2)]
struct Data {
    slippage_tolerance: Option<String>,
    fail_reason: String,
    refund_fail_reason: String,
    #[serialize_always]
    superseded_by_request_id: Option<String>,
    failed_tx_hash: Option<String>,
    failed_tx_block_number: Option<u64>,
    failed_call_data: Option<CallData>,
    subsidized_request: bool,
    fees: Option<Fees>,
    fees_usd: Option<Fees>,
    in_txs: Vec<Transaction>,
    out_txs: Vec<Transaction>,
    currency: Option<String>,
    currency_object: Option<Currency>,
    fee_currency: Option<String>,
    fee_currency_object: Option<Currency>,
    app_fee_currency_object: Option<Currency>,
    refund_currency_data: Option<Amount>,
    app_fees: Vec<AppFee>,
    paid_app_fees: Vec<AppFee>,
    #[schema(value_type = Option<Object>)]
    subsidized_fee: Option<()>,
    #[schema(value_type = Option<Object>)]
    fee_sponsorship: Option<()>,
    #[serialize_always]
    expanded_price_impact: Option<Expanded>,
    /// As in version 3.
    #[serialize_always]
    platform_fee: Option<PlatformFee>,
    metadata: Metadata,
    /// What was to be deposited, smallest units.
    price: String,
    uses_external_liquidity: bool,
    time_estimate: Option<u64>,
    triggered_by_fast_fill: Option<bool>,
}

/// Of the quote, in the deposited currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordFeesV2)]
struct Fees {
    gas: String,
    fixed: String,
    price: String,
    gateway: String,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordTransactionV2)]
struct Transaction {
    fee: Option<String>,
    data: Option<CallData>,
    state_changes: Option<Vec<StateChange>>,
    hash: String,
    block: Option<u64>,
    r#type: &'static str,
    chain_id: Option<u64>,
    /// Unix seconds.
    timestamp: Option<u64>,
    #[schema(schema_with = words::outcomes)]
    status: Option<&'static str>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordAppFeeV2)]
struct AppFee {
    recipient: String,
    bps: String,
    amount: String,
    amount_usd: Option<String>,
    /// Prices of now are not looked up: left out.
    amount_usd_current: Option<String>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordExpandedV2)]
struct Expanded {
    quoted: Option<Parts>,
    actual: Option<Parts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordExpandedPartsV2)]
struct Parts {
    swap: Usd,
    execution: Usd,
    relay: Usd,
    app: Usd,
    sponsored: Usd,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordMetadataV2)]
struct Metadata {
    sender: String,
    recipient: String,
    currency_in: Option<Amount>,
    currency_out: Option<Amount>,
    currency_gas_topup: Option<Amount>,
    rate: Option<String>,
    #[schema(value_type = Option<Object>)]
    quote_oracle_price: Option<()>,
    route: Option<Legs>,
}

impl From<super::Transaction> for Transaction {
    fn from(newest: super::Transaction) -> Self {
        Self {
            fee: newest.fee,
            data: newest.data,
            state_changes: newest.state_changes,
            hash: newest.tx_hash,
            block: newest.block,
            r#type: newest.r#type,
            chain_id: newest.chain_id,
            timestamp: newest.timestamp,
            status: newest.status,
        }
    }
}

impl From<fees::AppFee> for AppFee {
    fn from(newest: fees::AppFee) -> Self {
        Self {
            recipient: newest.recipient,
            bps: newest.bps,
            amount: newest.amount,
            amount_usd: newest.amount_usd,
            amount_usd_current: None,
        }
    }
}

impl From<fees::Parts> for Parts {
    fn from(newest: fees::Parts) -> Self {
        let part = |fee: fees::Fee| Usd { usd: fee.usd };
        Self {
            swap: part(newest.swap),
            execution: part(newest.execution),
            relay: part(newest.platform),
            app: part(newest.app),
            sponsored: part(newest.sponsored),
        }
    }
}

/// The record of version 2.
pub fn v2(case: &Case<'_>) -> V2 {
    let sheet = CaseView::of(case);
    V2 {
        id: case.request.id.to_string(),
        status: match sheet.verdict.status {
            Status::Submitted => Status::Pending.text(),
            other => other.text(),
        },
        body: body(record(&sheet), &sheet),
    }
}

/// The record of version 1.
pub fn v1(case: &Case<'_>) -> V1 {
    let sheet = CaseView::of(case);
    V1 {
        id: case.request.id.to_string(),
        status: match sheet.verdict.status {
            Status::Pending if sheet.deposit().is_some() => "received",
            Status::Waiting | Status::Pending | Status::Submitted => "pending",
            Status::Refund => "fallback",
            other => other.text(),
        },
        body: body(record(&sheet), &sheet),
    }
}

/// `newest` under the names of before, with what it no longer has from `sheet` (the case).
fn body(newest: V3, sheet: &CaseView<'_>) -> Body {
    let request = sheet.case.request;
    Body {
        data: data(newest.data, sheet),
        user: newest.user,
        recipient: newest.recipient,
        deposit_address: None,
        protocol: newest.protocol,
        order_data: sheet.case.order.then(|| request.order.clone()),
        referrer: request.referrer.clone().filter(|_| sheet.case.own),
        moonpay_id: None,
        created_at: newest.created_at,
        updated_at: newest.updated_at,
    }
}

fn data(newest: super::Data, sheet: &CaseView<'_>) -> Data {
    let details = sheet.details();
    let input = details.map(|details| details.currency_in.currency.clone());
    let paid = details.map(|details| details.refund_currency.currency.clone());
    let symbol = |currency: &Option<Currency>| {
        let symbol = currency.as_ref().map(|it| it.symbol.to_lowercase());
        symbol.filter(|symbol| !symbol.is_empty())
    };
    let none = || NONE.to_owned();
    Data {
        slippage_tolerance: newest.slippage_tolerance,
        fail_reason: newest.fail_reason.unwrap_or_else(none),
        refund_fail_reason: newest.refund_fail_reason.unwrap_or_else(none),
        superseded_by_request_id: None,
        failed_tx_hash: newest.failed_tx_hash,
        failed_tx_block_number: newest.failed_tx_block_number,
        failed_call_data: newest.failed_call_data,
        subsidized_request: false,
        fees: quoted_fees(sheet, |amount| amount.amount.clone()),
        fees_usd: quoted_fees(sheet, |amount| amount.amount_usd.clone()),
        in_txs: older(newest.in_txs),
        out_txs: older(newest.out_txs),
        currency: symbol(&input),
        currency_object: input,
        fee_currency: symbol(&paid),
        fee_currency_object: paid.clone(),
        app_fee_currency_object: paid,
        refund_currency_data: newest.refund_currency_data,
        app_fees: older(newest.app_fees.quoted),
        paid_app_fees: older(newest.app_fees.actual),
        subsidized_fee: None,
        fee_sponsorship: None,
        expanded_price_impact: newest.fees.map(|fees| Expanded {
            quoted: Some(fees.quoted.into()),
            actual: fees.actual.map(Into::into),
        }),
        platform_fee: newest.platform_fee,
        metadata: metadata(newest.route, sheet),
        price: sheet.case.request.origin.amount.to_string(),
        uses_external_liquidity: newest.uses_external_liquidity,
        time_estimate: newest.time_estimate,
        triggered_by_fast_fill: newest.triggered_by_fast_fill,
    }
}

fn older<New, Old: From<New>>(newest: Vec<New>) -> Vec<Old> {
    newest.into_iter().map(Into::into).collect()
}

fn quoted_fees(sheet: &CaseView<'_>, text: impl Fn(&Amount) -> String) -> Option<Fees> {
    let fees = sheet.quoted.fees.as_ref()?;
    Some(Fees {
        gas: text(&fees.relayer_gas),
        fixed: "0".to_owned(),
        price: text(&fees.relayer_service),
        gateway: "0".to_owned(),
    })
}

/// What came of the request, as far as it has been seen; as quoted where nothing has.
fn metadata(newest: Option<super::Route>, sheet: &CaseView<'_>) -> Metadata {
    let (request, details) = (sheet.case.request, sheet.details());
    let (quoted, actual) = newest.map_or((None, None), |route| (route.quoted, route.actual));
    let (origin, destination) = actual.map_or((None, None), |all| (all.origin, all.destination));
    let there = destination.as_ref().or(origin.as_ref());
    let output = there.and_then(|leg| leg.output_currency.clone());
    let input = origin.and_then(|leg| leg.input_currency);
    let sources = &sheet.quoted.swap_sources;
    let filtered = |leg: Option<Leg>, origin: bool| {
        leg.map(|leg| Leg {
            included_swap_sources: Some(sources.of_side(origin).to_vec()),
            ..leg
        })
    };
    Metadata {
        sender: request.user.clone(),
        recipient: request.recipient.clone(),
        currency_in: input.or_else(|| details.map(|details| details.currency_in.clone())),
        currency_out: output.or_else(|| details.map(|details| details.currency_out.clone())),
        currency_gas_topup: None,
        rate: details.map(|details| details.rate.clone()),
        quote_oracle_price: None,
        route: quoted.map(|legs| Legs {
            origin: filtered(legs.origin, true),
            destination: filtered(legs.destination, false),
        }),
    }
}
