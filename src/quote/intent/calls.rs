//! What the destination does besides paying.

use alloy::primitives::U256;
use vm::{
    B256, OrderCall,
    protocol::{limits, text as wire},
    trade::Authorization,
};

use super::{
    super::{
        body::{self, Body, Tx},
        code::{Code, Refused},
    },
    side::Side,
    text,
};
use crate::{json::Number, request::TradeType};

const MOST_CALLS: usize = 50;
const _: () = assert!(MOST_CALLS <= limits::ITEMS, "what is quoted can be claimed");
/// Bytes of data over all calls.
const MOST_DATA: usize = limits::TRANSACTION;
const MOST_AUTHORIZATIONS: usize = 10;
const _: () = assert!(
    MOST_CALLS == 50 && MOST_DATA == 131_072 && MOST_AUTHORIZATIONS == 10,
    "the description says so"
);

fn invalid(what: impl Into<String>) -> Refused {
    Refused::new(Code::InvalidExtraTxs, what)
}

/// The calls of a body, in order.
pub fn read(body: &Body, trade: TradeType, side: &Side<'_>) -> Result<Vec<OrderCall>, Refused> {
    let txs = body.txs.as_deref().unwrap_or_default();
    if txs.is_empty() {
        return Ok(Vec::new());
    }
    let router = side.network.fill_router.is_some() && side.spec.family.orders.is_some();
    if trade == TradeType::ExpectedOutput || !router {
        let what = if router {
            "txs: expected EXACT_INPUT or EXACT_OUTPUT with them"
        } else {
            "txs: the destination chain has no contract that makes calls"
        };
        return Err(Refused::new(Code::ExtraTxsNotSupported, what));
    }
    if txs.len() > MOST_CALLS {
        return Err(invalid(format!("txs: expected at most {MOST_CALLS}")));
    }
    let calls = txs
        .iter()
        .enumerate()
        .map(|(at, tx)| call(at, tx, side))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes: usize = calls.iter().map(|call| call.data.len()).sum();
    if bytes > MOST_DATA {
        let what = format!("txs.data: expected at most {MOST_DATA} bytes together");
        return Err(invalid(what));
    }
    let total = total(&calls).ok_or_else(|| invalid("txs.value: the sum is above 2^256 - 1"))?;
    if !total.is_zero() && !side.is_native() {
        let what = "txs.value: expected 0 where the output is not the native currency";
        return Err(invalid(what));
    }
    Ok(calls)
}

/// What the calls are sent together.
pub fn total(calls: &[OrderCall]) -> Option<U256> {
    calls
        .iter()
        .try_fold(U256::ZERO, |sum, call| sum.checked_add(call.value))
}

fn call(at: usize, tx: &Tx, side: &Side<'_>) -> Result<OrderCall, Refused> {
    let wrong = |what: &str| invalid(format!("txs[{at}].{what}"));
    let to = text::owner(&side.spec, "to", &tx.to).map_err(|_| {
        let what = text::misspelled(&tx.to).unwrap_or("expected 0x and 40 hex digits");
        wrong(&format!("to: {what}"))
    })?;
    let above = |field: &str| {
        let what = format!("txs[{at}].{field}: expected at most 2^256 - 1");
        Refused::new(Code::InvalidAmount, what)
    };
    let value = text::number(tx.value.as_deref().unwrap_or("0")).ok_or_else(|| above("value"))?;
    let data = wire::bytes(tx.data.as_deref().unwrap_or("0x"))
        .map_err(|_| wrong("data: expected 0x and an even number of hex digits"))?;
    let original = tx.original_tx_value.as_deref().unwrap_or("0");
    if text::number(original).is_none() {
        return Err(above("originalTxValue"));
    }
    if data.is_empty() && value.is_zero() {
        return Err(wrong("data: expected data or a value"));
    }
    Ok(OrderCall { to, data, value })
}

/// Work that the calls may take together. They run in the fill, on every route: a limit that is meant for the
/// deposit's transaction limits them there. Of two limits the lower one counts.
pub fn work(body: &Body, trade: TradeType) -> Result<Option<u64>, Refused> {
    let calls = body.txs.as_ref().is_some_and(|txs| !txs.is_empty());
    let wrong = |code, what: &str| Err(Refused::new(code, what));
    let deposit = body.gas_limit_for_deposit_specified_txs;
    if let Some(limit) = deposit
        && (limit.0 == 0 || !calls || trade == TradeType::ExpectedOutput)
    {
        let code = Code::InvalidGasLimitForDepositSpecifiedTxs;
        let what = "gasLimitForDepositSpecifiedTxs: expected a positive limit with txs and an exact \
                    trade type";
        return wrong(code, what);
    }
    if body.txs_gas_limit == Some(Number(0)) {
        let what = "txsGasLimit: expected more than 0";
        return wrong(Code::InvalidExtraTxs, what);
    }
    let limits = [
        ("txsGasLimit", body.txs_gas_limit),
        ("gasLimitForDepositSpecifiedTxs", deposit),
    ];
    let mut least = None;
    for (field, limit) in limits {
        let limit = text::gas(field, limit.map(|limit| limit.0))?;
        least = least.into_iter().chain(limit).min();
    }
    Ok(least)
}

/// The EIP-7702 authorizations of a body.
pub fn authorizations(body: &Body, side: &Side<'_>) -> Result<Vec<Authorization>, Refused> {
    let list = body.authorization_list.as_deref().unwrap_or_default();
    if !list.is_empty() && side.spec.family.orders.is_none() {
        let what = "authorizationList: the destination chain's accounts run no code of others";
        return Err(Refused::new(Code::ExtraTxsNotSupported, what));
    }
    if list.len() > MOST_AUTHORIZATIONS {
        let what = format!("authorizationList: expected at most {MOST_AUTHORIZATIONS}");
        return Err(invalid(what));
    }
    list.iter()
        .enumerate()
        .map(|(at, item)| authorization(at, item))
        .collect()
}

fn authorization(at: usize, given: &body::Authorization) -> Result<Authorization, Refused> {
    let wrong = |what: &str| invalid(format!("authorizationList[{at}].{what}"));
    let y_parity = u8::try_from(given.y_parity.0)
        .ok()
        .filter(|parity| *parity <= 1)
        .ok_or_else(|| wrong("yParity: expected 0 or 1"))?;
    let address = text::evm_address(&given.address).map_err(|_| {
        let what = text::misspelled(&given.address).unwrap_or("expected 0x and 40 hex digits");
        wrong(&format!("address: {what}"))
    })?;
    let scalar = |name: &str, digits: &str| -> Result<B256, Refused> {
        let number = text::number(digits)
            .ok_or_else(|| wrong(&format!("{name}: expected at most 2^256 - 1")))?;
        Ok(B256::from(number))
    };
    Ok(Authorization {
        chain_id: given.chain_id.0,
        address: vm::Address::from_parts(&format!("{address:#x}"), address.to_vec()),
        nonce: given.nonce.0,
        y_parity,
        r: scalar("r", &given.r)?,
        s: scalar("s", &given.s)?,
    })
}
