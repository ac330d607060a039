//! `GET /requests/v2` and `GET /requests`: the record before its fields were renamed
//! (guide: protocol 11.12). What is not known is left out; null stands only where the published type
//! has it.

use serde::Serialize;
use utoipa::ToSchema;
use vm::protocol::order::Order;

use super::{
    Case, Sheet,
    fees::{Impacts, PlatformFee},
    protocol::Protocol,
    route::{Leg, Legs},
    transactions::{CallData, Failed, Moved, StateChange},
};
use crate::{
    request::{
        quoted::{Amount, Currency, Usd},
        render,
        status::Status,
        words,
    },
    show,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordDataV2)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    slippage_tolerance: Option<String>,
    fail_reason: String,
    refund_fail_reason: String,
    superseded_by_request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_tx_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_tx_block_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_call_data: Option<CallData>,
    subsidized_request: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fees: Option<Fees>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fees_usd: Option<Fees>,
    in_txs: Vec<Transaction>,
    out_txs: Vec<Transaction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_object: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_currency_object: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_fee_currency_object: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_currency_data: Option<Amount>,
    app_fees: Vec<AppFee>,
    paid_app_fees: Vec<AppFee>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    subsidized_fee: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    fee_sponsorship: Option<()>,
    expanded_price_impact: Option<Expanded>,
    /// As in version 3.
    platform_fee: Option<PlatformFee>,
    metadata: Metadata,
    /// What was to be deposited, smallest units.
    price: String,
    uses_external_liquidity: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_estimate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordTransactionV2)]
struct Transaction {
    #[serde(skip_serializing_if = "Option::is_none")]
    fee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<CallData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_changes: Option<Vec<StateChange>>,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::outcomes)]
    status: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordAppFeeV2)]
struct AppFee {
    recipient: String,
    bps: String,
    amount: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_usd: Option<String>,
    /// Prices of now are not looked up: left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_usd_current: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordExpandedV2)]
struct Expanded {
    #[serde(skip_serializing_if = "Option::is_none")]
    quoted: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordMetadataV2)]
struct Metadata {
    sender: String,
    recipient: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_in: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_out: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_gas_topup: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    quote_oracle_price: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<Legs>,
}

impl Transaction {
    fn of(moved: &Moved<'_>) -> Self {
        Self {
            fee: moved.fee(),
            data: moved.data(),
            state_changes: moved.changes(),
            hash: moved.hash.to_owned(),
            block: moved.place.map(|place| place.number),
            r#type: "onchain",
            chain_id: moved.chain,
            timestamp: moved.place.map(|place| place.time),
            status: moved.status,
        }
    }
}

impl Parts {
    fn of(impacts: Impacts) -> Self {
        let part = |micro| Usd {
            usd: show::usd_short(show::whole(micro)),
        };
        Self {
            swap: part(impacts.swap),
            execution: part(impacts.execution),
            relay: part(impacts.platform),
            app: part(impacts.app),
            sponsored: part(0),
        }
    }
}

/// The record of version 2.
pub fn v2(case: &Case<'_>) -> V2 {
    let sheet = Sheet::of(case);
    V2 {
        id: case.request.id.to_string(),
        status: match sheet.verdict.status {
            Status::Submitted => Status::Pending.text(),
            other => other.text(),
        },
        body: body(&sheet),
    }
}

/// The record of version 1.
pub fn v1(case: &Case<'_>) -> V1 {
    let sheet = Sheet::of(case);
    V1 {
        id: case.request.id.to_string(),
        status: match sheet.verdict.status {
            Status::Pending if sheet.deposit().is_some() => "received",
            Status::Waiting | Status::Pending | Status::Submitted => "pending",
            Status::Refund => "fallback",
            other => other.text(),
        },
        body: body(&sheet),
    }
}

fn body(sheet: &Sheet<'_>) -> Body {
    let request = sheet.case.request;
    Body {
        user: request.user.clone(),
        recipient: request.recipient.clone(),
        deposit_address: None,
        data: data(sheet),
        protocol: sheet.protocol(),
        order_data: sheet.case.order.then(|| request.order.clone()),
        referrer: request.referrer.clone().filter(|_| sheet.case.own),
        moonpay_id: None,
        created_at: show::iso(request.created_at),
        updated_at: show::iso(render::updated_at(request, sheet.case.facts)),
    }
}

fn data(sheet: &Sheet<'_>) -> Data {
    let (verdict, failed, details) = (sheet.verdict, sheet.failed(), sheet.details());
    let input = details.map(|details| details.currency_in.currency.clone());
    let paid = details.map(|details| details.refund_currency.currency.clone());
    let symbol = |currency: &Option<Currency>| {
        let symbol = currency.as_ref().map(|it| it.symbol.to_lowercase());
        symbol.filter(|symbol| !symbol.is_empty())
    };
    let none = || NONE.to_owned();
    let (app_fees, paid_app_fees) = app_fees(sheet);
    Data {
        slippage_tolerance: sheet.slippage(),
        fail_reason: verdict
            .fail_reason
            .map_or_else(none, |reason| reason.text()),
        refund_fail_reason: verdict
            .refund_fail_reason
            .map_or_else(none, |reason| reason.text()),
        superseded_by_request_id: None,
        failed_tx_hash: failed.as_ref().map(|failed| failed.hash.to_owned()),
        failed_tx_block_number: failed.as_ref().map(|failed| failed.block),
        failed_call_data: failed.as_ref().and_then(Failed::data),
        subsidized_request: false,
        fees: fees(sheet, |amount| amount.amount.clone()),
        fees_usd: fees(sheet, |amount| amount.amount_usd.clone()),
        in_txs: sheet.incoming().iter().map(Transaction::of).collect(),
        out_txs: sheet.outgoing().iter().map(Transaction::of).collect(),
        currency: symbol(&input),
        currency_object: input,
        fee_currency: symbol(&paid),
        fee_currency_object: paid.clone(),
        app_fee_currency_object: paid,
        refund_currency_data: sheet.refunded(),
        app_fees,
        paid_app_fees,
        subsidized_fee: None,
        fee_sponsorship: None,
        expanded_price_impact: sheet.impacts().map(|quoted| Expanded {
            quoted: Some(Parts::of(quoted)),
            actual: sheet.actual_impacts().map(Parts::of),
        }),
        platform_fee: sheet.platform_fee(),
        metadata: metadata(sheet),
        price: sheet.case.request.origin.amount.to_string(),
        uses_external_liquidity: false,
        time_estimate: details.map(|details| details.time_estimate),
        triggered_by_fast_fill: None,
    }
}

fn fees(sheet: &Sheet<'_>, text: impl Fn(&Amount) -> String) -> Option<Fees> {
    let fees = sheet.quoted.fees.as_ref()?;
    Some(Fees {
        gas: text(&fees.relayer_gas),
        fixed: "0".to_owned(),
        price: text(&fees.relayer_service),
        gateway: "0".to_owned(),
    })
}

fn app_fees(sheet: &Sheet<'_>) -> (Vec<AppFee>, Vec<AppFee>) {
    let old = |fee: super::fees::AppFee| AppFee {
        recipient: fee.recipient,
        bps: fee.bps,
        amount: fee.amount,
        amount_usd: fee.amount_usd,
        amount_usd_current: None,
    };
    let all = sheet.app_fees();
    let [quoted, actual] = [all.quoted, all.actual].map(|fees| fees.into_iter().map(old).collect());
    (quoted, actual)
}

/// What came of the request, as far as it has been seen.
fn metadata(sheet: &Sheet<'_>) -> Metadata {
    let (request, details) = (sheet.case.request, sheet.details());
    let actual = sheet.actual_legs();
    let (origin, destination) = actual.map_or((None, None), |all| (all.origin, all.destination));
    let input = origin
        .as_ref()
        .and_then(|leg: &Leg| leg.input_currency.clone());
    let there = destination.as_ref().or(origin.as_ref());
    let output = there.and_then(|leg| leg.output_currency.clone());
    Metadata {
        sender: request.user.clone(),
        recipient: request.recipient.clone(),
        currency_in: input.or_else(|| details.map(|details| details.currency_in.clone())),
        currency_out: output.or_else(|| details.map(|details| details.currency_out.clone())),
        currency_gas_topup: None,
        rate: details.map(|details| details.rate.clone()),
        quote_oracle_price: None,
        route: sheet.filtered_legs(),
    }
}
