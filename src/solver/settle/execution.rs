//! An oracle's execution as the settlement contract takes it (guide: protocol 5). Pure.

use alloy::{
    primitives::{B256, Bytes},
    sol_types::{SolCall, SolError},
};
use serde::Deserialize;
use serde_json::Value;
use vm::protocol::id;

use crate::request::fact::Deposit;

#[allow(missing_docs)]
mod abi {
    alloy::sol! {
        function execute(bytes32 idempotencyKey, bytes[] actions, bytes[] signatures);
        function isExecuted(bytes32 idempotencyKey) external view returns (bool);
        error AlreadyExecuted(bytes32 idempotencyKey);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    idempotency_key: B256,
    actions: Vec<Bytes>,
    signatures: Vec<Signed>,
}

#[derive(Deserialize)]
struct Signed {
    signature: Bytes,
}

/// What an oracle answered, and cannot be submitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("an unreadable execution: {0}")]
    Unreadable(String),
    #[error("the execution of something else: {0}")]
    Other(B256),
}

/// The idempotency key of a deposit's execution (guide: protocol 5.2).
pub fn deposit_key(deposit: &Deposit) -> B256 {
    id::deterministic(&[&deposit.network, &deposit.transaction])
}

/// The idempotency key of an order's fill or refund.
pub fn outcome_key(order: B256, deposit: &Deposit) -> B256 {
    id::outcome(&[deposit.onchain_id], order)
}

/// The data of the call that submits `execution`, the `execution` of an oracle's answer; its key must be `key`.
pub fn encode(execution: &Value, key: B256) -> Result<Bytes, Unusable> {
    let execution = Execution::deserialize(execution)
        .map_err(|error| Unusable::Unreadable(error.to_string()))?;
    if execution.idempotency_key != key {
        return Err(Unusable::Other(execution.idempotency_key));
    }
    let signatures = execution.signatures.into_iter();
    let call = abi::executeCall {
        idempotencyKey: execution.idempotency_key,
        actions: execution.actions,
        signatures: signatures.map(|signed| signed.signature).collect(),
    };
    Ok(call.abi_encode().into())
}

/// The data of the call that asks the contract whether it has acted on `key`.
pub fn question(key: B256) -> Bytes {
    let call = abi::isExecutedCall {
        idempotencyKey: key,
    };
    call.abi_encode().into()
}

/// Whether the answer to [`question`] is yes.
pub fn is_yes(answer: &[u8]) -> bool {
    abi::isExecutedCall::abi_decode_returns(answer).unwrap_or(false)
}

/// Whether a revert says that the execution has acted already.
pub fn is_executed(revert: &[u8]) -> bool {
    revert.starts_with(&abi::AlreadyExecuted::SELECTOR)
}

#[cfg(test)]
mod tests {
    use alloy::{primitives::hex, sol_types::SolValue};
    use serde_json::json;

    use super::*;

    #[test]
    fn executions_are_encoded_with_every_signature() {
        let execution = json!({
            "idempotencyKey": B256::repeat_byte(7),
            "actions": ["0x01", "0x0203"],
            "signatures": [
                { "oracleChainId": "1", "oracleContract": "0x", "oracleSigner": "0x", "signature": "0xaa" },
                { "signature": "0xbb" },
            ],
            "metadata": [],
        });
        let key = B256::repeat_byte(7);
        let call = abi::executeCall::abi_decode(&encode(&execution, key).unwrap()).unwrap();
        assert_eq!(call.idempotencyKey, key);
        assert_eq!(call.actions, [hex!("01").to_vec(), hex!("0203").to_vec()]);
        assert_eq!(call.signatures, [hex!("aa").to_vec(), hex!("bb").to_vec()]);
        assert!(encode(&json!({ "actions": [] }), key).is_err());
        assert!(encode(&Value::Null, key).is_err());
        let other = encode(&execution, B256::repeat_byte(8));
        assert_eq!(other, Err(Unusable::Other(key)));
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes(&true.abi_encode()));
        assert!(!is_yes(&false.abi_encode()));
        assert!(!is_yes(&[]));
        assert!(!is_yes(&[1; 31]));
    }

    #[test]
    fn only_the_contracts_own_word_means_executed() {
        let said = abi::AlreadyExecuted {
            idempotencyKey: B256::ZERO,
        };
        assert!(is_executed(&said.abi_encode()));
        assert!(!is_executed(&[]));
        assert!(!is_executed(&[0; 36]));
    }
}
