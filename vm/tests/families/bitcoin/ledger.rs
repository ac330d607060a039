//! A scripted Bitcoin chain: what Bitcoin Core's RPC and an Esplora index say about it. No consensus rule: tests put
//! there what they want. The daemon's tests have this file, too.
#![allow(dead_code, reason = "each test program uses a part")]

use serde_json::{Map, Value, json};

/// Blocks and transactions as Bitcoin Core shows them. A transaction without `blockhash` is in the memory pool.
#[derive(Clone, Debug)]
pub struct Ledger {
    height: u64,
    blocks: Map<String, Value>,
    pub transactions: Map<String, Value>,
    /// Blocks made so far: two blocks of one height have different hashes.
    made: u64,
    /// What the index answers besides, by path.
    pub more: Map<String, Value>,
}

/// Bitcoins of satoshis, as a node writes them.
pub fn bitcoins(satoshis: u64) -> Value {
    let text = format!("{}.{:08}", satoshis / 100_000_000, satoshis % 100_000_000);
    serde_json::from_str(&text).unwrap()
}

/// Satoshis of a node's bitcoins.
fn satoshis(value: &Value) -> u64 {
    let bitcoins: f64 = value.to_string().parse().unwrap();
    let text = format!("{bitcoins:.8}");
    text.replace('.', "").parse().unwrap()
}

/// An output that pays a script.
pub fn output(script: &str, satoshis: u64) -> Value {
    json!({"value": bitcoins(satoshis), "scriptPubKey": {"hex": script}})
}

/// An output that says something.
pub fn note(text: &str) -> Value {
    let push = match text.len() {
        short @ ..=75 => format!("{short:02x}"),
        long @ ..=255 => format!("4c{long:02x}"),
        long => format!("4d{:02x}{:02x}", long % 256, long / 256),
    };
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    output(&format!("6a{push}{hex}"), 0)
}

/// A transaction that spends outputs (id, place) and makes others.
pub fn transaction(id: &str, inputs: &[(&str, u32)], outputs: Vec<Value>) -> Value {
    let vin = inputs.iter().map(|(txid, vout)| {
        json!({"txid": txid, "vout": vout, "scriptSig": {"hex": ""}, "txinwitness": []})
    });
    let vout = (0..).zip(outputs).map(|(n, mut output)| {
        output["n"] = json!(n);
        output
    });
    let (vin, vout): (Vec<_>, Vec<_>) = (vin.collect(), vout.collect());
    json!({"txid": id, "vin": vin, "vout": vout})
}

impl Ledger {
    /// A chain of a first block and nothing else.
    pub fn new() -> Self {
        let mut ledger = Self {
            height: 0,
            blocks: Map::new(),
            transactions: Map::new(),
            made: 0,
            more: Map::new(),
        };
        ledger.add(0, 1_760_000_000);
        ledger
    }

    /// The recorded world.
    pub fn recorded(world: &Value) -> Self {
        let map = |name: &str| world[name].as_object().cloned().unwrap();
        Self {
            height: world["height"].as_u64().unwrap(),
            blocks: map("blocks"),
            transactions: map("transactions"),
            made: 0,
            more: Map::new(),
        }
    }

    /// Empty blocks at the heights of a recorded world that has only some.
    pub fn complete(&mut self) {
        let blocks = self.blocks.values();
        let known = blocks.map(|block| (block["height"].as_u64(), block["time"].as_u64()));
        let known: Vec<_> = known
            .map(|(height, time)| (height.unwrap(), time.unwrap()))
            .collect();
        let (top, lowest) = (self.height, known.iter().min().copied().unwrap());
        let missing = |height: &u64| known.iter().all(|block| block.0 != *height);
        for height in (lowest.0..top).filter(missing) {
            self.add(height, lowest.1 + 600 * (height - lowest.0));
        }
        self.height = top;
    }

    pub fn height(&self) -> u64 {
        self.height
    }

    /// The hash at a height.
    pub fn hash_at(&self, height: &Value) -> Option<Value> {
        let mut blocks = self.blocks.values();
        let block = blocks.find(|block| block["height"] == *height && block["stale"].is_null());
        Some(block?["hash"].clone())
    }

    fn add(&mut self, height: u64, time: u64) -> String {
        self.made += 1;
        let hash = format!("{:032x}{height:032x}", self.made);
        let parent = height.checked_sub(1).and_then(|n| self.hash_at(&json!(n)));
        let mut block = json!({"hash": hash, "height": height, "time": time});
        if let Some(parent) = parent {
            block["previousblockhash"] = parent;
        }
        self.blocks.insert(hash.clone(), block);
        self.height = height;
        hash
    }

    /// A block with these transactions on top.
    pub fn mine(&mut self, transactions: Vec<Value>) -> String {
        let tip = self.hash_at(&json!(self.height)).unwrap();
        let time = self.blocks[tip.as_str().unwrap()]["time"].as_u64().unwrap();
        let hash = self.add(self.height + 1, time + 600);
        for mut transaction in transactions {
            transaction["blockhash"] = json!(hash);
            self.put(transaction);
        }
        hash
    }

    /// Empty blocks on top.
    pub fn bury(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.mine(Vec::new());
        }
    }

    /// A transaction in the memory pool, or wherever it says.
    pub fn put(&mut self, transaction: Value) {
        let id = transaction["txid"].as_str().unwrap().to_owned();
        self.transactions.insert(id, transaction);
    }

    /// Takes blocks off the top; their transactions go back to the memory pool.
    pub fn undo(&mut self, blocks: u64) {
        let left = self.height - blocks;
        for block in self.blocks.values_mut() {
            if block["height"].as_u64().unwrap() > left {
                block["stale"] = json!(true);
            }
        }
        self.height = left;
        for transaction in self.transactions.values_mut() {
            let hash = transaction["blockhash"].as_str().unwrap_or_default();
            if self
                .blocks
                .get(hash)
                .is_some_and(|it| !it["stale"].is_null())
            {
                transaction.as_object_mut().unwrap().remove("blockhash");
            }
        }
    }

    fn is_mined(&self, transaction: &Value) -> bool {
        let hash = transaction["blockhash"].as_str().unwrap_or_default();
        let block = self.blocks.get(hash);
        block.is_some_and(|block| block["stale"].is_null())
    }

    /// The transactions that spend an output, those in blocks first.
    fn spender(&self, txid: &str, vout: &Value) -> Option<&Value> {
        let spends = |transaction: &&Value| {
            let mut inputs = transaction["vin"].as_array().unwrap().iter();
            inputs.any(|input| input["txid"] == txid && input["vout"] == *vout)
        };
        let all = || self.transactions.values().filter(spends);
        all().find(|it| self.is_mined(it)).or_else(|| all().next())
    }

    /// What Bitcoin Core answers; `None` for what it does not know.
    pub fn rpc(&self, method: &str, params: &Value) -> Option<Value> {
        let first = &params[0];
        match method {
            "getblockcount" => Some(json!(self.height)),
            "getblockhash" => self.hash_at(first),
            "getblockheader" => self.blocks.get(first.as_str()?).cloned(),
            "getrawtransaction" => self.transactions.get(first.as_str()?).cloned(),
            "getmempoolentry" => {
                let found = self.transactions.get(first.as_str()?)?;
                (!self.is_mined(found)).then(|| json!({"vsize": 100}))
            }
            "gettxout" => Some(
                self.unspent(first.as_str()?, &params[1])
                    .unwrap_or_default(),
            ),
            _ => None,
        }
    }

    /// The whole answer to a JSON-RPC question.
    pub fn answer(&self, question: &Value) -> Value {
        let method = question["method"].as_str().unwrap_or_default();
        let error = json!({"code": -5, "message": "unknown"});
        match self.rpc(method, &question["params"]) {
            Some(result) => json!({"result": result, "error": null, "id": question["id"]}),
            None => json!({"result": null, "error": error, "id": question["id"]}),
        }
    }

    fn unspent(&self, txid: &str, vout: &Value) -> Option<Value> {
        let creator = self.transactions.get(txid).filter(|it| self.is_mined(it))?;
        let spender = self.spender(txid, vout).filter(|it| self.is_mined(it));
        let output = creator["vout"].get(usize::try_from(vout.as_u64()?).ok()?)?;
        let script = &output["scriptPubKey"]["hex"];
        let shown = json!({"value": output["value"], "scriptPubKey": {"hex": script}});
        spender.is_none().then_some(shown)
    }

    /// What an Esplora index answers at a path; `None` for 404.
    pub fn index(&self, path: &str) -> Option<String> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["blocks", "tip", "hash"] => self.text_at(self.height),
            ["block-height", height] => self.text_at(height.parse().ok()?),
            ["block", hash] => self.blocks.get(*hash).map(indexed_block),
            ["tx", id] => Some(self.indexed(self.transactions.get(*id)?).to_string()),
            ["tx", id, "outspend", vout] => {
                self.transactions.get(*id)?;
                let vout: u64 = vout.parse().ok()?;
                let spent = self.spender(id, &json!(vout)).map(|spender| {
                    let status = self.status(spender);
                    json!({"spent": true, "txid": spender["txid"], "vin": 0, "status": status})
                });
                Some(spent.unwrap_or_else(|| json!({"spent": false})).to_string())
            }
            _ => self.more.get(path).map(|answer| match answer.as_str() {
                Some(text) => text.to_owned(),
                None => answer.to_string(),
            }),
        }
    }

    fn text_at(&self, height: u64) -> Option<String> {
        Some(self.hash_at(&json!(height))?.as_str()?.to_owned())
    }

    fn status(&self, transaction: &Value) -> Value {
        match self.is_mined(transaction) {
            true => json!({"confirmed": true, "block_hash": transaction["blockhash"]}),
            false => json!({"confirmed": false}),
        }
    }

    fn indexed(&self, transaction: &Value) -> Value {
        let output = |output: &Value| {
            let script = &output["scriptPubKey"]["hex"];
            json!({"scriptpubkey": script, "value": satoshis(&output["value"])})
        };
        let input = |input: &Value| {
            let Some(txid) = input["txid"].as_str() else {
                return json!({"txid": "00".repeat(32), "vout": u32::MAX, "prevout": null,
                    "scriptsig": "00", "is_coinbase": true});
            };
            let previous = self.transactions.get(txid);
            let place = usize::try_from(input["vout"].as_u64().unwrap()).unwrap();
            let previous = previous.and_then(|it| it["vout"].get(place)).map(output);
            json!({"txid": txid, "vout": input["vout"], "prevout": previous,
                "scriptsig": input["scriptSig"]["hex"].as_str().unwrap_or_default(),
                "witness": input.get("txinwitness").cloned().unwrap_or(json!([])),
                "is_coinbase": false})
        };
        let list = |name: &str| transaction[name].as_array().unwrap().iter();
        json!({"txid": transaction["txid"], "version": 2, "locktime": 0,
            "vin": list("vin").map(input).collect::<Vec<_>>(),
            "vout": list("vout").map(output).collect::<Vec<_>>(),
            "status": self.status(transaction)})
    }
}

fn indexed_block(block: &Value) -> String {
    let mut shown = json!({"id": block["hash"], "height": block["height"],
        "timestamp": block["time"], "tx_count": 1});
    if let Some(parent) = block.get("previousblockhash") {
        shown["previousblockhash"] = parent.clone();
    }
    shown.to_string()
}
