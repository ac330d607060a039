//! The recorded Bitcoin node and index, as `vm/fixtures/recorded/bitcoin.json` holds them.

use std::sync::LazyLock;

use serde_json::Value;

use self::ledger::Ledger;

#[path = "../../vm/tests/families/bitcoin/ledger.rs"]
pub mod ledger;

static WORLD: LazyLock<Ledger> =
    LazyLock::new(|| Ledger::recorded(&super::vm_fixture("recorded/bitcoin.json")));

/// The answer to one JSON-RPC question.
pub fn answer(question: &Value) -> Value {
    WORLD.answer(question)
}

/// What the index has at a path; `None` for 404.
pub fn index(path: &str) -> Option<String> {
    WORLD.index(path)
}
