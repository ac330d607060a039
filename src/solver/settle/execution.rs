//! An oracle's execution as the settlement contract takes it (settlement.md 5). Pure.

use alloy::{
    primitives::{B256, Bytes},
    sol_types::{SolCall, SolError},
};
use serde::Deserialize;
use serde_json::Value;

#[allow(missing_docs)]
mod abi {
    alloy::sol! {
        function execute(bytes32 idempotencyKey, bytes[] actions, bytes[] signatures);
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

/// The calldata that submits `execution`, the `execution` of an oracle's answer.
pub fn encode(execution: &Value) -> Result<Bytes, serde_json::Error> {
    let execution = Execution::deserialize(execution)?;
    let signatures = execution.signatures.into_iter();
    let call = abi::executeCall {
        idempotencyKey: execution.idempotency_key,
        actions: execution.actions,
        signatures: signatures.map(|signed| signed.signature).collect(),
    };
    Ok(call.abi_encode().into())
}

/// Whether a revert says that the execution has acted already.
pub fn is_executed(revert: &[u8]) -> bool {
    revert.starts_with(&abi::AlreadyExecuted::SELECTOR)
}

#[cfg(test)]
mod tests {
    use alloy::primitives::hex;
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
        let call = abi::executeCall::abi_decode(&encode(&execution).unwrap()).unwrap();
        assert_eq!(call.idempotencyKey, B256::repeat_byte(7));
        assert_eq!(call.actions, [hex!("01").to_vec(), hex!("0203").to_vec()]);
        assert_eq!(call.signatures, [hex!("aa").to_vec(), hex!("bb").to_vec()]);
        assert!(encode(&json!({ "actions": [] })).is_err());
        assert!(encode(&Value::Null).is_err());
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
