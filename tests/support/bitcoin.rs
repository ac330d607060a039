//! The recorded Bitcoin node, as `vm/fixtures/recorded/bitcoin.json` holds it.

use std::sync::LazyLock;

use serde_json::{Value, json};

static WORLD: LazyLock<Value> = LazyLock::new(|| super::vm_fixture("recorded/bitcoin.json"));

/// The answer to one JSON-RPC question.
pub fn answer(question: &Value) -> Value {
    let first = &question["params"][0];
    let named = |list: &str| WORLD[list].get(first.as_str()?).cloned();
    let at_height = || {
        let mut blocks = WORLD["blocks"].as_object()?.values();
        let block = blocks.find(|block| block["height"] == *first)?;
        Some(block["hash"].clone())
    };
    let found = match question["method"].as_str().unwrap_or_default() {
        "getblockcount" => Some(WORLD["height"].clone()),
        "getblockhash" => at_height(),
        "getblockheader" => named("blocks"),
        "getrawtransaction" => named("transactions"),
        _ => None,
    };
    let error = json!({"code": -5, "message": "not recorded"});
    match found {
        Some(result) => json!({"result": result, "error": null, "id": question["id"]}),
        None => json!({"result": null, "error": error, "id": question["id"]}),
    }
}
