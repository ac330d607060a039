//! What a proxy may say instead of the truth.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use url::Url;

/// One JSON-RPC call as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub params: &'a Value,
    /// 1 for the first call of this method since start or reset.
    pub nth: usize,
}

/// Decides about a call; `None` leaves it to the next rule.
pub type Rule = Box<dyn Fn(&Call<'_>) -> Option<Lie> + Send + Sync>;

/// Changes a true result.
pub type Patch = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What happens to a call.
#[derive(Clone)]
pub enum Lie {
    /// This result; the node is not asked.
    Result(Value),
    /// The true result, changed.
    Patch(Patch),
    /// A JSON-RPC error; the node is not asked.
    Error(i64, String),
    /// The node is asked this method with these parameters instead.
    Ask(String, Value),
    /// The answer of another node.
    From(Url),
    /// The truth, later.
    Delay(Duration),
    /// The whole HTTP exchange: this status, these headers, this body.
    Answer(StatusCode, HeaderMap, Bytes),
    /// The whole exchange: no answer while the connection lives.
    Hang,
    /// The whole exchange: the connection closes without an answer.
    Drop,
}

impl Lie {
    /// `change` is made to the true result.
    pub fn patch(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Patch(Arc::new(change))
    }
}

/// A rule about one method.
pub fn on(method: &str, decide: impl Fn(&Call<'_>) -> Lie + Send + Sync + 'static) -> Rule {
    let method = method.to_owned();
    Box::new(move |call| (call.method == method).then(|| decide(call)))
}

/// The lies that many tests want.
pub mod rules {
    use super::{Call, Duration, HeaderMap, Lie, Rule, StatusCode, Url, Value, json, on};

    /// Every call meets the same fate.
    pub fn always(lie: Lie) -> Rule {
        Box::new(move |_| Some(lie.clone()))
    }

    /// Honest for the first `n` calls of a method, then `rule`.
    pub fn after(n: usize, rule: Rule) -> Rule {
        Box::new(move |call: &Call<'_>| if call.nth > n { rule(call) } else { None })
    }

    /// Another chain's id.
    pub fn chain_id(id: u64) -> Rule {
        on("eth_chainId", move |_| Lie::Result(hex(id)))
    }

    /// The tip stands still at `height`; what was asked for `latest` is answered from there.
    pub fn stale_tip(height: u64) -> Rule {
        Box::new(move |call| match call.method {
            "eth_blockNumber" => Some(Lie::Result(hex(height))),
            "eth_getBlockByNumber" if call.params[0] == "latest" => {
                let params = json!([hex(height), call.params[1]]);
                Some(Lie::Ask(call.method.to_owned(), params))
            }
            _ => None,
        })
    }

    /// Sets one field of every receipt, for example `/status` or `/logs/0/address`.
    pub fn receipt_field(pointer: &str, value: Value) -> Rule {
        let pointer = pointer.to_owned();
        receipts(move |receipt| {
            if let Some(field) = receipt.pointer_mut(&pointer) {
                *field = value.clone();
            }
        })
    }

    /// Leaves out the log at `index` of every receipt's list.
    pub fn drop_log(index: usize) -> Rule {
        receipts(move |receipt| {
            if let Some(logs) = receipt["logs"].as_array_mut()
                && index < logs.len()
            {
                logs.remove(index);
            }
        })
    }

    /// Adds a log to every receipt: a copy of its last one with the fields of `changes`, one log
    /// index higher. A receipt without logs is left alone.
    pub fn forge_log(changes: Value) -> Rule {
        receipts(move |receipt| {
            let Some(logs) = receipt["logs"].as_array_mut() else {
                return;
            };
            let Some(mut log) = logs.last().cloned() else {
                return;
            };
            let index = log["logIndex"].as_str().map_or(0, number) + 1;
            log["logIndex"] = hex(index);
            for (name, value) in changes.as_object().into_iter().flatten() {
                log[name] = value.clone();
            }
            logs.push(log);
        })
    }

    /// Any change to every receipt that exists.
    pub fn receipts(change: impl Fn(&mut Value) + Clone + Send + Sync + 'static) -> Rule {
        on("eth_getTransactionReceipt", move |_| {
            let change = change.clone();
            Lie::patch(move |receipt| {
                if !receipt.is_null() {
                    change(receipt);
                }
            })
        })
    }

    /// Transactions, receipts and blocks come from another node.
    pub fn other_fork(node: &Url) -> Rule {
        always(Lie::From(node.clone()))
    }

    /// The truth, `delay` later.
    pub fn delayed(delay: Duration) -> Rule {
        always(Lie::Delay(delay))
    }

    /// HTTP 429 with `Retry-After`.
    pub fn too_many_requests(retry_after: &'static str) -> Rule {
        let mut headers = HeaderMap::new();
        headers.insert(
            hyper::header::RETRY_AFTER,
            hyper::http::HeaderValue::from_static(retry_after),
        );
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"too many"}}"#;
        always(Lie::Answer(
            StatusCode::TOO_MANY_REQUESTS,
            headers,
            body.into(),
        ))
    }

    fn hex(number: u64) -> Value {
        json!(format!("{number:#x}"))
    }

    fn number(text: &str) -> u64 {
        u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
    }
}
