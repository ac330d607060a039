//! What the destination does besides paying.

use alloy::primitives::U256;
use serde::Deserialize;
use serde_json::{Value, json};
use vm::{
    B256, EvmAddress, OrderCall,
    protocol::{limits, text as wire},
    trade::Authorization,
};

use super::{
    super::{
        body::{Body, Tx},
        code::{Code, Refused},
    },
    Side, text,
};
use crate::request::TradeType;

const MOST_CALLS: usize = 50;
const _: () = assert!(MOST_CALLS <= limits::ITEMS, "what is quoted can be claimed");
/// Bytes of calldata over all calls.
const MOST_DATA: usize = limits::TRANSACTION;
const MOST_AUTHORIZATIONS: usize = 10;

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
    if !total.is_zero() && !super::is_native(side) {
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
    let to = text::account(&side.spec, "to", &tx.to)
        .map_err(|_| wrong("to: expected 0x and 40 hex digits"))?;
    let value = text::number(tx.value.as_deref().unwrap_or("0"))
        .ok_or_else(|| wrong("value: expected digits of at most 2^256 - 1"))?;
    let data = wire::bytes(tx.data.as_deref().unwrap_or("0x"))
        .map_err(|_| wrong("data: expected 0x and an even number of hex digits"))?;
    let original = tx.original_tx_value.as_deref().unwrap_or("0");
    if text::number(original).is_none() {
        return Err(wrong("originalTxValue: expected digits"));
    }
    if data.is_empty() && value.is_zero() {
        return Err(wrong("data: expected data or a value"));
    }
    Ok(OrderCall { to, data, value })
}

/// Gas that the calls may use together.
pub fn gas(body: &Body, trade: TradeType) -> Result<Option<u64>, Refused> {
    let calls = body.txs.as_ref().is_some_and(|txs| !txs.is_empty());
    let wrong = |code, what: &str| Err(Refused::new(code, what));
    if let Some(limit) = body.gas_limit_for_deposit_specified_txs
        && (limit == 0 || !calls || trade == TradeType::ExpectedOutput)
    {
        let code = Code::InvalidGasLimitForDepositSpecifiedTxs;
        let what = "gasLimitForDepositSpecifiedTxs: expected a positive limit with txs and an exact \
                    trade type";
        return wrong(code, what);
    }
    if body.txs_gas_limit == Some(0) {
        let what = "txsGasLimit: expected more than 0";
        return wrong(Code::InvalidExtraTxs, what);
    }
    let limit = body
        .txs_gas_limit
        .or(body.gas_limit_for_deposit_specified_txs);
    text::gas("txsGasLimit", limit)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    chain_id: u64,
    address: EvmAddress,
    nonce: u64,
    y_parity: u8,
    r: String,
    s: String,
}

/// The EIP-7702 authorizations of a body.
pub fn authorizations(body: &Body) -> Result<Vec<Authorization>, Refused> {
    let list = body.authorization_list.as_deref().unwrap_or_default();
    if list.len() > MOST_AUTHORIZATIONS {
        let what = format!("authorizationList: expected at most {MOST_AUTHORIZATIONS}");
        return Err(invalid(what));
    }
    list.iter()
        .enumerate()
        .map(|(at, item)| authorization(at, item))
        .collect()
}

/// An authorization as bodies have it.
pub fn wire(one: &Authorization) -> Value {
    json!({
        "chainId": one.chain_id, "address": one.address.text(), "nonce": one.nonce,
        "yParity": one.y_parity, "r": U256::from_be_bytes(one.r.0), "s": U256::from_be_bytes(one.s.0),
    })
}

fn authorization(at: usize, item: &Value) -> Result<Authorization, Refused> {
    let wrong = |what: String| invalid(format!("authorizationList[{at}]: {what}"));
    let wire = Wire::deserialize(item).map_err(|error| wrong(error.to_string()))?;
    if wire.y_parity > 1 {
        return Err(wrong("yParity: expected 0 or 1".into()));
    }
    let scalar = |name: &str, text: &str| -> Result<B256, Refused> {
        let number = wire::number(text).map_err(|error| wrong(format!("{name}: {error}")))?;
        Ok(B256::from(number))
    };
    let address = format!("{:#x}", wire.address);
    Ok(Authorization {
        chain_id: wire.chain_id,
        address: vm::Address::from_parts(&address, wire.address.to_vec()),
        nonce: wire.nonce,
        y_parity: wire.y_parity,
        r: scalar("r", &wire.r)?,
        s: scalar("s", &wire.s)?,
    })
}
