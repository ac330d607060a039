//! A quote as the request that is stored. Pure.

use alloy::primitives::{B256, Bytes, U256};
use serde_json::{Value, json};
use vm::{
    protocol::order::Order,
    trade::{Authorization, Draft},
};

use super::{
    amounts::Amounts,
    answer::{Details, Fees},
    fees,
    fill::Priced,
    intent::{Intent, Side},
    steps::Planned,
};
use crate::request::{Call, Execution, Leg, Request};

/// What was promised besides the amounts.
pub struct Promised<'a> {
    pub id: B256,
    pub order_id: B256,
    pub order: Order,
    pub signature: Bytes,
    /// The user's transactions, first to last.
    pub steps: &'a [Planned],
    /// Unix seconds until which the price holds.
    pub valid_until: u64,
    pub mined_until: Option<u64>,
    pub key: Option<&'a str>,
    pub fees: &'a Fees,
    pub details: &'a Details,
}

/// The request of a quote.
pub fn record(priced: &Priced<'_>, promised: Promised<'_>) -> Request {
    let (case, amounts, fee) = (&priced.case, &priced.amounts, &priced.fee);
    let intent = &case.intent;
    let quoted = quoted(intent, amounts, &promised).into();
    let authorizations = intent.authorizations.iter();
    let calls = intent.calls.iter().map(|call| Call {
        to: call.to.to_string(),
        value: call.value,
        data: call.data.clone(),
    });
    Request {
        id: promised.id,
        order_id: promised.order_id,
        order: promised.order,
        order_signature: promised.signature,
        operation: intent.operation,
        execution: if intent.own {
            Execution::User
        } else {
            Execution::Solver
        },
        trade_type: intent.trade_type,
        user: intent.user.to_string(),
        recipient: intent.recipient.to_string(),
        refund_to: intent.refund_to.to_string(),
        origin: leg(&intent.origin, amounts.input, amounts.input),
        destination: leg(&intent.destination, amounts.output, amounts.minimum),
        calls: calls.collect(),
        calls_work: intent.calls_work,
        authorizations: authorizations.map(Authorization::json).collect(),
        late_slippage_bps: intent.late_slippage,
        true_exact_output: intent.true_exact_output,
        fill_work: fee.work,
        fill_rate: U256::from(case.market.destination_rate.expected()),
        fill_besides: fee.besides,
        own_call: own_call(intent, promised.steps),
        referrer: intent.referrer.clone(),
        api_key: promised.key.map(str::to_owned),
        created_at: case.now,
        valid_until: promised.valid_until,
        mined_until: promised.mined_until,
        expires_at: intent.ttl.map(|ttl| case.seconds().saturating_add(ttl)),
        quoted,
    }
}

/// What listings of requests show of the quote. `swapSources` stands there only where the caller named some.
fn quoted(intent: &Intent<'_>, amounts: &Amounts, promised: &Promised<'_>) -> Value {
    let mut quoted = json!({
        "fees": promised.fees,
        "details": promised.details,
        "appFees": app_fees(intent, amounts),
        "referrerAddress": intent.referrer_address,
        "oneAsset": intent.origin.currency.group == intent.destination.currency.group,
    });
    if !intent.sources.is_open() {
        quoted["swapSources"] = json!(intent.sources);
    }
    quoted
}

/// The user's own transaction that does what was asked for: the last step. An approval before it does nothing of that.
fn own_call(intent: &Intent<'_>, steps: &[Planned]) -> Option<B256> {
    let last = steps.last().filter(|_| intent.own)?;
    let told = intent.origin.spec.family.own_call;
    let told = told.unwrap_or(Draft::digest);
    Some(told(&last.step.draft))
}

/// Whom the service will owe what, in units of the deposited currency. Of the user's own transaction
/// nobody takes anything, and nothing is owed.
fn app_fees(intent: &Intent<'_>, amounts: &Amounts) -> Vec<Value> {
    let taken = intent.app_fees.iter().filter(|_| !intent.own);
    let owed = taken.map(|fee| {
        let amount = fees::share(amounts.sum.paid, fee).unwrap_or_default();
        json!({"recipient": fee.recipient, "bps": fee.bps, "amount": amount.to_string()})
    });
    owed.collect()
}

fn leg(side: &Side<'_>, amount: U256, minimum: U256) -> Leg {
    Leg {
        chain: side.network.chain_id,
        network: side.network.name.clone(),
        currency: side.address.to_string(),
        amount,
        minimum,
    }
}
