//! A chain whose node has every answer as text before anything is measured: it finds one by the method and the first
//! parameter of a call.

use std::{borrow::Cow, collections::HashMap, fmt::Display};

use bytes::Bytes;
use serde_json::{Value, json};

use super::node::{Answers, Call};

/// Calls that read a head, or what comes before the first one. What else a head takes, transactions ask for as well.
const OF_HEADS: [&str; 4] = ["getblockcount", "getSlot", "getBlockTime", "getGenesisHash"];

/// The chain, and a request for each of its deposits.
pub struct Prepared {
    /// The chain's entry in the chains file.
    pub entry: Value,
    /// Bodies of requests, each about another transaction.
    pub deposits: Vec<Bytes>,
    /// Results as JSON, by method and first parameter.
    results: HashMap<String, String>,
}

impl Prepared {
    pub fn new(entry: Value) -> Self {
        Self {
            entry,
            deposits: Vec::new(),
            results: HashMap::new(),
        }
    }

    /// Has `method` answer a call whose first parameter is `about`, which is empty for a call without one.
    pub fn say(&mut self, method: &str, about: impl Display, result: &Value) {
        let known = format!("{method} {about}");
        self.results.insert(known, result.to_string());
    }

    /// Adds a request for the deposits of a transaction.
    pub fn request(&mut self, transaction: &str) {
        let body = json!({ "chainId": self.entry["id"], "transactionId": transaction });
        self.deposits.push(body.to_string().into());
    }
}

impl Answers for Prepared {
    fn result(&self, _: &str, call: &Call<'_>) -> Option<Cow<'_, str>> {
        let mut params = call.params.get().trim_start_matches('[').split([',', ']']);
        let first = params.next().unwrap_or_default();
        let named = first.starts_with(|c: char| c == '"' || c.is_ascii_digit());
        let about = if named { first.trim_matches('"') } else { "" };
        let known = self.results.get(&format!("{} {about}", call.method));
        known.map(|text| text.as_str().into())
    }

    fn is_of_head(&self, call: &Call<'_>) -> bool {
        OF_HEADS.contains(&call.method)
    }
}
