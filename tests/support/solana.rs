//! The recorded Solana node, as `vm/fixtures/recorded/solana.json` holds it: one block stands at every slot.

use std::sync::LazyLock;

use serde_json::{Value, json};

static WORLD: LazyLock<Value> = LazyLock::new(|| super::vm_fixture("recorded/solana.json"));

/// The answer to one JSON-RPC question.
pub fn answer(question: &Value) -> Value {
    let first = &question["params"][0];
    let named = |list: &str| {
        let found = first.as_str().and_then(|name| WORLD[list].get(name));
        found.cloned().unwrap_or_default()
    };
    let block = || {
        let mut block = WORLD["block"].clone();
        block["parentSlot"] = json!(first.as_u64()? - 1);
        Some(block)
    };
    let found = match question["method"].as_str().unwrap_or_default() {
        "getSlot" => Some(WORLD["slot"].clone()),
        "getBlock" => block(),
        "getBlockTime" => Some(WORLD["slotTime"].clone()),
        "getTransaction" => Some(named("transactions")),
        "getAccountInfo" => {
            let context = json!({"slot": WORLD["slot"]});
            Some(json!({"context": context, "value": named("accounts")}))
        }
        _ => None,
    };
    let id = &question["id"];
    match found {
        Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        None => {
            let error = json!({"code": -32601, "message": "the method is not recorded"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}
