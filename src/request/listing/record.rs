//! `GET /requests/v3`.

mod older;

pub use older::{V1, V2, v1, v2};

use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{
    Case, CaseView,
    fees::{AppFees, Fees, PlatformFee},
    protocol::Protocol,
    route::{Actual, Legs},
    transactions::{CallData, Moved, StateChange},
};
use crate::{
    format,
    request::{
        fact::{Deposit, Ending},
        quoted::Amount,
        reason::RefundFailReason,
        render,
        summary::{Feature, Kind},
        words,
    },
};

/// A request. What is not known, or comes with another feature, is null where the documentation's own
/// example or the published type has null (guide: protocol 11.11), and left out elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordRequest)]
pub struct V3 {
    id: String,
    #[schema(schema_with = words::states)]
    status: &'static str,
    user: String,
    sender: String,
    recipient: String,
    refund_to: Option<String>,
    deposit_address: Option<DepositAddress>,
    #[schema(schema_with = words::kinds)]
    request_type: &'static str,
    data: Data,
    protocol: Protocol,
    features: Vec<&'static str>,
    superseded_by_request_id: Option<String>,
    created_at: String,
    updated_at: String,
}

/// Where the deposit of a request without a wallet goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordDepositAddress)]
struct DepositAddress {
    address: String,
    r#type: String,
    depositor: Option<String>,
    deposit_tx_hash: Option<String>,
    recovery_address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordData)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    slippage_tolerance: Option<String>,
    fail_reason: Option<String>,
    refund_fail_reason: Option<String>,
    failed_tx_hash: Option<String>,
    failed_tx_block_number: Option<u64>,
    failed_call_data: Option<CallData>,
    uses_external_liquidity: bool,
    time_estimate: Option<u64>,
    triggered_by_fast_fill: Option<bool>,
    in_txs: Vec<Transaction>,
    out_txs: Vec<Transaction>,
    app_fees: AppFees,
    fees: Option<Fees>,
    #[schema(value_type = Option<Object>)]
    fee_sponsorship: Option<()>,
    route: Option<Route>,
    /// The service's own share, as quoted. Only for the owner of the request's key, with
    /// `includeAuthenticatedData=true`; null otherwise.
    platform_fee: Option<PlatformFee>,
    #[schema(value_type = Option<Object>)]
    quote_oracle_price: Option<()>,
    /// Only for the owner of the request's key, with `includeAuthenticatedData=true`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    referrer: Option<Option<String>>,
    /// The label of the request's key; as `referrer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    api_key_name: Option<Option<String>>,
    refund_currency_data: Option<Amount>,
    /// Deposits that are neither filled nor given back; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parked_deposits: Vec<Parked>,
    external_metadata: ExternalMetadata,
}

/// A deposit that is neither filled nor given back; most can be taken back through the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordParkedDeposit)]
struct Parked {
    chain_id: Option<u64>,
    tx_hash: String,
    onchain_id: String,
    depositor: String,
    currency: String,
    amount: String,
    fail_reason: String,
    refund_fail_reason: Option<String>,
    /// The oracles' route; null where no oracle gives it back, and the operator has to.
    recover_route: Option<&'static str>,
    /// From when on it needs no signature of the solver's.
    recover_from: Option<String>,
}

fn parked(sheet: &CaseView<'_>, (deposit, ending, from): (&Deposit, &Ending, u64)) -> Parked {
    let recoverable = render::stuck(deposit).is_none();
    Parked {
        chain_id: sheet.chain(&deposit.network),
        tx_hash: deposit.transaction.clone(),
        onchain_id: deposit.onchain_id.to_string(),
        depositor: deposit.depositor.clone(),
        currency: deposit.currency.clone(),
        amount: deposit.amount.to_string(),
        fail_reason: ending.reason.text(),
        refund_fail_reason: ending.refused.map(RefundFailReason::text),
        recover_route: recoverable.then_some(render::RECOVER),
        recover_from: recoverable.then(|| format::iso(from.saturating_mul(1_000))),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordExternalMetadata)]
struct ExternalMetadata {
    moonpay_id: Option<String>,
}

/// The lists of swap sources are as the quote's body had them; empty where it had none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordRoute)]
struct Route {
    included_swap_sources: Vec<String>,
    included_origin_swap_sources: Vec<String>,
    included_destination_swap_sources: Vec<String>,
    /// Absent where none was excluded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded_swap_sources: Vec<String>,
    quoted: Option<Legs>,
    actual: Option<Actual>,
}

/// What has not been seen of a transaction yet is left out.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordTransaction)]
struct Transaction {
    tx_hash: String,
    /// Smallest units of the chain's native currency.
    fee: Option<String>,
    /// At the price of then; left out where nobody told one.
    fee_usd: Option<String>,
    block: Option<u64>,
    /// `onchain`.
    r#type: &'static str,
    chain_id: Option<u64>,
    /// Unix seconds.
    timestamp: Option<u64>,
    #[schema(schema_with = words::outcomes)]
    status: Option<&'static str>,
    data: Option<CallData>,
    state_changes: Option<Vec<StateChange>>,
}

impl Transaction {
    fn of(moved: &Moved<'_>) -> Self {
        Self {
            tx_hash: moved.hash.to_owned(),
            fee: moved.fee(),
            fee_usd: moved.fee_usd(),
            block: moved.block(),
            r#type: "onchain",
            chain_id: moved.chain,
            timestamp: moved.place.map(|place| place.time),
            status: moved.status,
            data: moved.data(),
            state_changes: moved.changes(),
        }
    }
}

/// The record of a request.
pub fn v3(case: &Case<'_>) -> V3 {
    record(&CaseView::of(case))
}

fn record(sheet: &CaseView<'_>) -> V3 {
    let request = sheet.case.request;
    V3 {
        id: request.id.to_string(),
        status: sheet.verdict.status.text(),
        user: request.user.clone(),
        sender: request.user.clone(),
        recipient: request.recipient.clone(),
        refund_to: Some(request.refund_to.clone()),
        deposit_address: None,
        request_type: Kind::of(request, &sheet.quoted).text(),
        data: data(sheet),
        protocol: sheet.protocol(),
        features: Feature::of(&sheet.quoted).map(Feature::text).collect(),
        superseded_by_request_id: None,
        created_at: format::iso(request.created_at),
        updated_at: format::iso(render::updated_at(request, sheet.case.facts)),
    }
}

fn data(sheet: &CaseView<'_>) -> Data {
    let (case, verdict, failed) = (sheet.case, sheet.verdict, sheet.failed());
    let owned = |text: &Option<String>| case.authenticated.then(|| text.clone());
    Data {
        slippage_tolerance: sheet.slippage(),
        fail_reason: verdict.fail_reason.map(|reason| reason.text()),
        refund_fail_reason: verdict.refund_fail_reason.map(|reason| reason.text()),
        failed_tx_hash: failed.as_ref().map(|failed| failed.hash.to_owned()),
        failed_tx_block_number: failed.as_ref().and_then(Moved::block),
        failed_call_data: failed.as_ref().and_then(Moved::data),
        uses_external_liquidity: false,
        time_estimate: sheet.details().map(|details| details.time_estimate),
        triggered_by_fast_fill: None,
        in_txs: sheet.incoming().iter().map(Transaction::of).collect(),
        out_txs: sheet.outgoing().iter().map(Transaction::of).collect(),
        app_fees: sheet.app_fees(),
        fees: sheet.fees(),
        fee_sponsorship: None,
        route: sheet.details().map(|_| route(sheet)),
        platform_fee: sheet.platform_fee().filter(|_| case.authenticated),
        quote_oracle_price: None,
        referrer: owned(&case.request.referrer),
        api_key_name: owned(&case.request.api_key),
        refund_currency_data: sheet.refunded(),
        parked_deposits: render::left(case.facts)
            .map(|left| parked(sheet, left))
            .collect(),
        external_metadata: ExternalMetadata { moonpay_id: None },
    }
}

fn route(sheet: &CaseView<'_>) -> Route {
    let sources = &sheet.quoted.swap_sources;
    Route {
        included_swap_sources: sources.included.clone(),
        included_origin_swap_sources: sources.origin.clone(),
        included_destination_swap_sources: sources.destination.clone(),
        excluded_swap_sources: sources.excluded.clone(),
        quoted: sheet.quoted_legs(),
        actual: sheet.actual_legs(),
    }
}
