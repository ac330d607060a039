//! Tries a transaction behind others that it needs. The node is told, for one question, that code
//! stands at the accounts of those who call which makes one call after the other: nothing of it is
//! ever signed.

use std::sync::Arc;

use alloy::primitives::hex;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    accounts::{account, outcome},
    raw::Quantity,
    rpc::{self, Rpc, doubt},
};
use crate::{
    ReadError,
    trade::{self, Call, Revert},
    types::{Bytes, EvmAddress, U256},
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

/// See the module.
pub struct Simulator(pub Arc<Rpc>);

/// A call as [`BATCH`] reads it.
fn step(to: EvmAddress, value: U256, data: &[u8]) -> Vec<u8> {
    let length = U256::from(data.len()).to_be_bytes::<32>();
    [to.as_slice(), &value.to_be_bytes::<32>(), &length, data].concat()
}

#[async_trait]
impl trade::Simulator for Simulator {
    async fn rehearse(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
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
        let asked = self.0.round(vec![rpc::call("eth_estimateGas", params)]);
        let answer = asked.await?.pop();
        let answer = answer.ok_or_else(|| doubt("an answer is missing"))?;
        match outcome::<Quantity>("eth_estimateGas", answer)? {
            Ok(gas) => Ok(Ok(gas.small().ok_or_else(|| doubt("gas out of range"))?)),
            Err(revert) => Ok(Err(revert)),
        }
    }
}
