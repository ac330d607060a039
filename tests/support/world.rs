//! The recorded EVM chain behind JSON-RPC, as `vm/fixtures/recorded/evm.json` holds it. Every path
//! leads to the same chain, except `/bitcoin` and `/solana`. No chain logic beyond looking things up.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::http::{self, Server};

/// Starts the world; it ends with the returned server.
pub async fn world() -> Server {
    http::serve(|asked| async move {
        if let Some(path) = asked.target.strip_prefix("/esplora/") {
            let found = super::bitcoin::index(path);
            let status = match found {
                Some(_) => StatusCode::OK,
                None => StatusCode::NOT_FOUND,
            };
            return Some(http::json(status, found.unwrap_or_default().into_bytes()));
        }
        let question: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let one = |question: &Value| match asked.target.as_str() {
            "/bitcoin" => super::bitcoin::answer(question),
            "/solana" => super::solana::answer(question),
            _ => chain().answer(question),
        };
        let answer = match question.as_array() {
            Some(batch) => batch.iter().map(one).collect(),
            None => one(&question),
        };
        Some(http::json(StatusCode::OK, answer.to_string().into_bytes()))
    })
    .await
}

fn chain() -> &'static Chain {
    static CHAIN: OnceLock<Arc<Chain>> = OnceLock::new();
    CHAIN.get_or_init(|| Arc::new(Chain::load(&super::vm_fixture("recorded/evm.json"))))
}

struct Chain {
    id: Value,
    tags: Map<String, Value>,
    blocks: Vec<Value>,
    by_hash: HashMap<String, usize>,
    /// Transaction and receipt.
    transactions: HashMap<String, (Value, Value)>,
    calls: HashMap<String, Vec<(u64, Value)>>,
    defaults: Vec<Value>,
}

type Answer = Result<Value, (i64, &'static str)>;

impl Chain {
    fn load(world: &Value) -> Self {
        let list = |name: &str| world[name].as_array().cloned().unwrap_or_default();
        let mut blocks: Vec<Value> = Vec::new();
        for (number, own) in list("blocks").into_iter().enumerate() {
            let parent = match blocks.last() {
                Some(block) => block["hash"].clone(),
                None => format!("0x{}", "00".repeat(32)).into(),
            };
            let mut block = world["blockTemplate"].clone();
            let fields = block.as_object_mut().unwrap();
            fields.extend(own.as_object().cloned().unwrap_or_default());
            fields.insert("number".into(), format!("0x{number:x}").into());
            fields.insert("parentHash".into(), parent);
            fields.insert("transactions".into(), json!([]));
            blocks.push(block);
        }
        let mut transactions = HashMap::new();
        for entry in list("transactions") {
            let (transaction, receipt) = (entry["transaction"].clone(), entry["receipt"].clone());
            let block = number(&transaction["blockNumber"]).unwrap();
            let all = blocks[block as usize]["transactions"]
                .as_array_mut()
                .unwrap();
            all.push(transaction["hash"].clone());
            transactions.insert(lower(&transaction["hash"]), (transaction, receipt));
        }
        let history = |call: &Value| {
            let steps = call["history"].as_array().cloned().unwrap_or_default();
            let step = |step: &Value| (step["from"].as_u64().unwrap(), step["result"].clone());
            steps.iter().map(step).collect()
        };
        Self {
            id: world["chainId"].clone(),
            tags: world["tags"].as_object().cloned().unwrap_or_default(),
            by_hash: blocks.iter().map(|b| lower(&b["hash"])).zip(0..).collect(),
            blocks,
            transactions,
            calls: list("calls")
                .iter()
                .map(|call| (lower(&call["to"]) + &lower(&call["data"]), history(call)))
                .collect(),
            defaults: list("callDefaults"),
        }
    }

    fn answer(&self, question: &Value) -> Value {
        let params = question["params"].as_array().cloned().unwrap_or_default();
        let method = question["method"].as_str().unwrap_or_default();
        let id = &question["id"];
        match self.call(method, &params) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        }
    }

    fn call(&self, method: &str, params: &[Value]) -> Answer {
        let first = params.first().cloned().unwrap_or_default();
        let found = || self.transactions.get(&lower(&first));
        match method {
            "eth_chainId" => Ok(self.id.clone()),
            "eth_syncing" => Ok(false.into()),
            "eth_blockNumber" => Ok(format!("0x{:x}", self.at(&"latest".into()).unwrap()).into()),
            "eth_getBlockByNumber" => Ok(self.block(self.at(&first))),
            "eth_getBlockByHash" => Ok(self.block(self.by_hash.get(&lower(&first)).copied())),
            "eth_getTransactionByHash" => Ok(found().map(|f| f.0.clone()).unwrap_or_default()),
            "eth_getTransactionReceipt" => Ok(found().map(|f| f.1.clone()).unwrap_or_default()),
            "eth_call" => self.view(&first, params.get(1)),
            _ => Err((-32601, "the method is not recorded")),
        }
    }

    fn view(&self, call: &Value, at: Option<&Value>) -> Answer {
        let payload = [&call["data"], &call["input"]]
            .into_iter()
            .find(|p| p.is_string());
        let (to, payload) = (lower(&call["to"]), payload.map(lower).unwrap_or_default());
        let latest = Value::from("latest");
        let number = self
            .at(at.unwrap_or(&latest))
            .ok_or((-32001, "block not found"))? as u64;
        let recorded = self.calls.get(&format!("{to}{payload}"));
        let recorded = recorded.and_then(|steps| steps.iter().rfind(|(from, _)| *from <= number));
        if let Some((_, result)) = recorded {
            return Ok(result.clone());
        }
        let fallback = self.defaults.iter().find(|default| {
            let prefix = default["dataPrefix"].as_str().unwrap_or_default();
            (default["to"].is_null() || default["to"] == to) && payload.starts_with(prefix)
        });
        let fallback = fallback.ok_or((-32000, "call not recorded"))?;
        Ok(fallback["result"].clone())
    }

    fn block(&self, number: Option<usize>) -> Value {
        number
            .and_then(|n| self.blocks.get(n))
            .cloned()
            .unwrap_or_default()
    }

    /// The block that a tag, a number or an EIP-1898 object means.
    fn at(&self, at: &Value) -> Option<usize> {
        if let Some(hash) = at.get("blockHash") {
            return self.by_hash.get(&lower(hash)).copied();
        }
        if let Some(number) = at.get("blockNumber") {
            return self.at(number);
        }
        let tag = self.tags.get(at.as_str()?).and_then(Value::as_u64);
        let number = tag.or_else(|| number(at))?;
        usize::try_from(number)
            .ok()
            .filter(|n| *n < self.blocks.len())
    }
}

fn lower(text: &Value) -> String {
    text.as_str().unwrap_or_default().to_lowercase()
}

fn number(text: &Value) -> Option<u64> {
    u64::from_str_radix(text.as_str()?.strip_prefix("0x")?, 16).ok()
}
