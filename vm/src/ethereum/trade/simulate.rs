//! Simulates transactions at one node, also behind others that they need. For these, one question overrides the
//! callers' accounts with code that makes the calls in order. Nothing of it is ever signed.

use std::sync::Arc;

use alloy::primitives::hex;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    accounts::{outcome, request},
    parts,
};
use crate::{
    ReadError,
    ethereum::{
        address::account,
        raw::Quantity,
        rpc::{self, Rpc, doubt},
        rpc_error,
    },
    trade::{self, Authorization, Call, Revert, Trial},
    types::{B256, Bytes, EvmAddress, U256},
};

/// Calls are `to` (20 bytes), `value` (32), length of the data (32), data, one behind the other. The
/// first that reverts reverts all, with its own data.
///
/// ```text
/// 00 at = 0
/// 01 loop: if !(at < calldatasize) stop
/// 0a go:   length = calldata[at + 52]; calldatacopy(0, at + 84, length)
/// 17       call(gas, calldata[at] >> 96, calldata[at + 20], 0, length, 0, 0)
/// 27       if ok goto 31; returndatacopy(0, 0, returndatasize); revert(0, returndatasize)
/// 31       at = at + length + 84; goto 01
/// ```
const BATCH: [u8; 57] = hex!(
    "5f5b368110600a5700fe5b806034013580826054015f375f5f825f856014013586"
    "3560601c5af16031573d5f5f3e3d5ffd5b01605401600156"
);

/// Estimates and simulates transactions at one node; nothing is signed or sent.
pub struct Simulator(pub Arc<Rpc>);

/// A call as [`BATCH`] reads it.
fn step(to: EvmAddress, value: U256, data: &[u8]) -> Vec<u8> {
    let length = U256::from(data.len()).to_be_bytes::<32>();
    [to.as_slice(), &value.to_be_bytes::<32>(), &length, data].concat()
}

#[async_trait]
impl trade::Simulator for Simulator {
    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let (call, authorizations) =
            parts(trial.draft).map_err(|error| ReadError::Unavailable(error.to_string()))?;
        let mut request = request(&call)?;
        authorized(&mut request, authorizations)?;
        priced(&mut request, trial);
        let at = |tag| rpc::call("eth_estimateGas", json!([request, tag]));
        let mut answer = self.0.one(at("pending")).await?;
        if matches!(&answer, Err(refused) if rpc_error::reverted(refused).is_none()) {
            // Not every node has a pending block.
            answer = self.0.one(at("latest")).await?;
        }
        if let Err(refused) = &answer
            && rpc_error::is_short_of_gas(refused, trial.most)
        {
            return Err(ReadError::Unavailable(
                "the sender cannot pay for the gas".into(),
            ));
        }
        match outcome::<Quantity>("eth_estimateGas", answer)? {
            Ok(gas) => Ok(Ok(gas.small().ok_or_else(|| doubt("gas out of range"))?)),
            Err(revert) => Ok(Err(revert)),
        }
    }

    async fn simulate(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        let Some(first) = calls.first() else {
            return Ok(Ok(0));
        };
        let sender = account(&first.from)?;
        let (mut data, mut code) = (Vec::new(), serde_json::Map::new());
        let mut caller = |who: EvmAddress| {
            let stands = json!({"code": Bytes::from_static(&BATCH)});
            code.insert(format!("{who:#x}"), stands);
        };
        caller(sender);
        for call in calls {
            let (from, to) = (account(&call.from)?, account(&call.to)?);
            let step = step(to, call.value, &call.data);
            if from == sender {
                data.extend_from_slice(&step);
            } else {
                // The sender has the other account make it.
                caller(from);
                data.extend(self::step(from, U256::ZERO, &step));
            }
        }
        let request = json!({"to": sender, "data": Bytes::from(data)});
        let params = json!([request, "latest", Value::Object(code)]);
        let answer = self.0.one(rpc::call("eth_estimateGas", params)).await?;
        match outcome::<Quantity>("eth_estimateGas", answer)? {
            Ok(gas) => Ok(Ok(gas.small().ok_or_else(|| doubt("gas out of range"))?)),
            Err(revert) => Ok(Err(revert)),
        }
    }
}

/// Puts the price of gas into a request, with room for the next block's, and how much of it there may
/// be.
fn priced(request: &mut Value, trial: &Trial<'_>) {
    if let Some(rate) = trial.rate {
        let base = rate.high();
        let most = base.saturating_add(base / 4).saturating_add(rate.priority);
        request["maxFeePerGas"] = json!(U256::from(most));
        request["maxPriorityFeePerGas"] = json!(U256::from(rate.priority));
    }
    if let Some(most) = trial.most {
        request["gas"] = json!(U256::from(most));
    }
}

/// Puts EIP-7702 authorizations into a request.
fn authorized(request: &mut Value, list: &[Authorization]) -> Result<(), ReadError> {
    if !list.is_empty() {
        let list: Result<Vec<_>, _> = list.iter().map(authorization).collect();
        request["authorizationList"] = Value::Array(list?);
    }
    Ok(())
}

fn authorization(given: &Authorization) -> Result<Value, ReadError> {
    let number = |word: &B256| U256::from_be_bytes(word.0);
    Ok(json!({
        "chainId": U256::from(given.chain_id),
        "address": account(&given.address)?,
        "nonce": U256::from(given.nonce),
        "yParity": U256::from(given.y_parity),
        "r": number(&given.r),
        "s": number(&given.s),
    }))
}
