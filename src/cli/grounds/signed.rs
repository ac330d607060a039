//! What an answer of the oracle has signed, in words.

use serde_json::{Map, Value};
use vm::protocol::action::Action;

use crate::attest::document::SIGNATURES;

/// The field of an execution with its actions.
const ACTIONS: &str = "actions";
/// What is no field of a signed message, or is shown by itself.
const BESIDE: [&str; 3] = [SIGNATURES, "metadata", ACTIONS];
/// What of a signature is not its domain.
const SIGNATURE: [&str; 2] = ["oracleSigner", "signature"];

/// Every signed message of `answer`: its name and its fields as they stand there, its domain where its signatures name
/// one, and the actions of an execution in words.
pub fn lines(answer: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    add("", answer, &mut lines);
    lines
}

fn add(name: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Array(signatures)) = fields.get(SIGNATURES) {
                lines.extend(message(name, fields, signatures));
            }
            for (name, value) in fields.iter().filter(|(name, _)| *name != SIGNATURES) {
                add(name, value, lines);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add(name, item, lines)),
        _ => {}
    }
}

fn message(name: &str, fields: &Map<String, Value>, signatures: &[Value]) -> Vec<String> {
    let name = match name {
        "" => String::new(),
        name => format!("{name} "),
    };
    let domain = signatures.first().and_then(Value::as_object);
    let domain = domain.map(|signature| without(signature, &SIGNATURE));
    let domain = domain.filter(|domain| !domain.is_empty());
    let actions = fields.get(ACTIONS).and_then(Value::as_array);
    let actions = actions.into_iter().flatten().filter_map(Value::as_str);
    let shown = Value::Object(without(fields, &BESIDE));
    let mut lines = vec![format!("message     {name}{shown}")];
    lines.extend(domain.map(|domain| format!("              for {}", Value::Object(domain))));
    lines.extend(actions.map(action));
    lines
}

fn without(fields: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let others = fields
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()));
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn action(text: &str) -> String {
    let decoded = alloy::hex::decode(text).ok();
    let decoded = decoded.and_then(|bytes| Action::decode(&bytes).ok());
    match decoded {
        Some(Action::Mint { to, token, amount }) => {
            format!("action      mint {amount} of token {token} to {to:#x}")
        }
        Some(Action::FastMint {
            to, token, amount, ..
        }) => {
            format!("action      mint {amount} of token {token} to {to:#x}, fast")
        }
        Some(Action::Burn {
            from,
            token,
            amount,
        }) => {
            format!("action      burn {amount} of token {token} of {from:#x}")
        }
        Some(Action::Transfer {
            from,
            to,
            token,
            amount,
        }) => format!("action      transfer {amount} of token {token} from {from:#x} to {to:#x}"),
        None => format!("action      {text}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A message of the oracle's with one signature of this domain.
    fn signed(mut fields: Value, domain: &Value) -> Value {
        let mut signature = domain.clone();
        signature["oracleSigner"] = json!("0xaa");
        signature["signature"] = json!("0xbb");
        fields["signatures"] = json!([signature]);
        fields
    }

    #[test]
    fn every_signed_message_is_shown_with_its_domain_and_without_what_is_not_signed() {
        let domain = json!({"oracleChainId": "1", "oracleContract": "0xcc"});
        let execution =
            json!({"idempotencyKey": "0x1", "actions": ["0x02"], "metadata": [{"a": 1}]});
        let answer = json!({
            "status": 1,
            "execution": signed(execution, &domain),
            "trigger": signed(json!({"triggerHash": "0x3"}), &json!({})),
        });
        let shown = [
            r#"message     execution {"idempotencyKey":"0x1"}"#,
            r#"              for {"oracleChainId":"1","oracleContract":"0xcc"}"#,
            "action      0x02",
            r#"message     trigger {"triggerHash":"0x3"}"#,
        ];
        assert_eq!(lines(&answer), shown);
        // One that is the whole answer, and one whose signing is halted.
        let whole = signed(json!({"request": {"a": 1}}), &json!({}));
        assert_eq!(lines(&whole), [r#"message     {"request":{"a":1}}"#]);
        let halted = json!({"genericMapping": {"id": "0x4", "signatures": []}});
        assert_eq!(
            lines(&halted),
            [r#"message     genericMapping {"id":"0x4"}"#]
        );
    }

    #[test]
    fn what_is_not_signed_is_no_message() {
        for answer in [
            json!({"status": 0}),
            json!({"message": "no", "code": "NO"}),
            json!({"messages": [{"data": {}, "result": {}}]}),
            json!({"signatures": "none"}),
            json!({"signatures": {"execution": {"actions": ["0x02"], "signatures": []}}}),
            Value::Null,
        ] {
            assert_eq!(lines(&answer), [""; 0], "{answer}");
        }
        let inside = json!({"id": "0x4", "signatures": [{"trigger": {"signatures": []}}]});
        let shown = lines(&inside);
        let messages = shown.iter().filter(|line| line.starts_with("message "));
        assert_eq!(messages.count(), 1, "{shown:?}");
    }
}
