//! A node in this process with a chain under the test's control, honest or not.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
};
use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use vm::{ChainEntry, ChainSpec, Endpoint, Provider, trade::TradingProvider};

use super::bank::{self, Bank};

use crate::server::{Server, serve};

pub const PROGRAM: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
pub const GENESIS: &str = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";

pub fn spec(additional: Value) -> Arc<ChainSpec> {
    let entry: ChainEntry = serde_json::from_value(json!({
        "id": "solana", "vmType": "solana-vm", "hubChainId": "7", "depository": PROGRAM,
        "additionalData": additional,
    }))
    .unwrap();
    entry.spec(vm::family("solana-vm").unwrap(), false).unwrap()
}

/// What a node shows. Slots without a block are skipped.
#[derive(Clone, Default)]
pub struct World {
    pub finalized: u64,
    pub blocks: BTreeMap<u64, Value>,
    /// What stands beside a block; else its own time.
    pub times: BTreeMap<u64, Value>,
    /// By their ids. One above the finalized slot is only confirmed.
    pub transactions: HashMap<String, Value>,
    pub accounts: HashMap<String, Value>,
    pub bank: Bank,
}

impl World {
    /// Blocks up to `finalized`, and some that are only confirmed.
    pub fn up_to(finalized: u64) -> Self {
        let mut world = Self {
            finalized,
            ..Self::default()
        };
        (1..=finalized + 4).for_each(|slot| world.put_block(slot, slot - 1, 0));
        world
    }

    /// A block of fork `fork` at `slot` on the one at `parent`.
    pub fn put_block(&mut self, slot: u64, parent: u64, fork: u8) {
        let block = json!({
            "blockhash": hash(slot, fork), "previousBlockhash": hash(parent, fork), "parentSlot": parent,
            "blockTime": 1_760_000_000 + slot, "blockHeight": slot,
        });
        self.blocks.insert(slot, block);
    }

    /// Skips a slot: the next block stands on the one before.
    pub fn skip(&mut self, slot: u64) {
        self.blocks.remove(&slot);
        if self.blocks.contains_key(&(slot + 1)) {
            self.put_block(slot + 1, slot - 1, 0);
        }
    }
}

/// The hash of the block at `slot` in fork `fork`.
pub fn hash(slot: u64, fork: u8) -> String {
    let mut bytes = [fork + 1; 32];
    bytes[24..].copy_from_slice(&slot.to_be_bytes());
    Pubkey::new_from_array(bytes).to_string()
}

/// Changes an answer: method, parameters, `result` or `error`.
type Lie = Arc<dyn Fn(&str, &Value, &mut Value) + Send + Sync>;

#[derive(Default)]
pub struct State {
    pub world: Mutex<World>,
    lie: Mutex<Option<Lie>>,
    pub calls: Mutex<Vec<String>>,
    /// Requests that arrive get no answer.
    pub hanging: AtomicBool,
    /// Status 429 for all, with a wait of 20 seconds.
    pub busy: AtomicBool,
}

pub struct Node {
    pub state: Arc<State>,
    server: Server,
}

pub async fn node(world: World) -> Node {
    let state: Arc<State> = Arc::default();
    *state.world.lock().unwrap() = world;
    let shared = state.clone();
    let server = serve(move |request| answer(shared.clone(), request)).await;
    Node { state, server }
}

impl Node {
    pub fn open(&self, spec: &Arc<ChainSpec>) -> Provider {
        (spec.family.open.unwrap())(spec, &self.endpoint()).unwrap()
    }

    pub fn trade(&self, spec: &Arc<ChainSpec>) -> TradingProvider {
        (spec.family.trade.unwrap())(spec, &self.endpoint()).unwrap()
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            position: 1,
            url: format!("http://user:secret@127.0.0.1:{}/", self.server.port)
                .parse()
                .unwrap(),
            timeout: Duration::from_secs(2),
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        }
    }

    pub fn lie(&self, lie: impl Fn(&str, &Value, &mut Value) + Send + Sync + 'static) {
        *self.state.lie.lock().unwrap() = Some(Arc::new(lie));
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.state.world.lock().unwrap());
    }

    pub fn calls(&self, method: &str) -> usize {
        let calls = self.state.calls.lock().unwrap();
        calls.iter().filter(|call| *call == method).count()
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if state.hanging.load(SeqCst) {
        return std::future::pending().await;
    }
    if state.busy.load(SeqCst) {
        let busy = Response::builder().status(429).header("retry-after", "20");
        return Ok(busy.body(Full::default()).unwrap());
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question: Value = serde_json::from_slice(&body).unwrap();
    let method = question["method"].as_str().unwrap();
    state.calls.lock().unwrap().push(method.to_owned());
    let mut answer = honest(
        &mut state.world.lock().unwrap(),
        method,
        &question["params"],
    );
    if let Some(lie) = &*state.lie.lock().unwrap() {
        lie(method, &question["params"], &mut answer);
    }
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = question["id"].clone();
    Ok(Response::new(Full::new(Bytes::from(answer.to_string()))))
}

fn honest(world: &mut World, method: &str, params: &Value) -> Value {
    let newest = world.finalized;
    let finalized = |config: &Value| match config["commitment"].as_str() {
        None | Some("finalized") => newest,
        Some(_) => newest + 4,
    };
    let refuse = |code: i64| json!({"error": {"code": code, "message": "refused"}});
    let result = |value: Value| json!({"result": value});
    match method {
        "getGenesisHash" => result(json!(GENESIS)),
        "getSlot" => result(json!(finalized(&params[0]))),
        "getBlock" => {
            let slot = params[0].as_u64().unwrap();
            match world.blocks.get(&slot) {
                _ if slot > finalized(&params[1]) => refuse(-32004),
                Some(block) => result(detailed(world, slot, block, &params[1])),
                None => refuse(-32007),
            }
        }
        "getBlocks" => {
            let (from, to) = (params[0].as_u64().unwrap(), params[1].as_u64().unwrap());
            let to = to.min(finalized(&params[2]));
            let slots = world
                .blocks
                .keys()
                .filter(|slot| (from..=to).contains(*slot));
            result(slots.copied().collect())
        }
        "getBlockTime" => {
            let slot = params[0].as_u64().unwrap();
            let own = world
                .blocks
                .get(&slot)
                .map(|block| block["blockTime"].clone());
            let beside = world.times.get(&slot).cloned();
            beside.or(own).map_or_else(|| refuse(-32007), result)
        }
        "getTransaction" => {
            let found = world.transactions.get(params[0].as_str().unwrap());
            let found = found.filter(|it| it["slot"].as_u64() <= Some(finalized(&params[1])));
            result(found.cloned().unwrap_or_default())
        }
        "getAccountInfo" => {
            let slot = finalized(&params[1]);
            if params[1]["minContextSlot"].as_u64() > Some(slot) {
                return refuse(-32016);
            }
            let found = world.accounts.get(params[0].as_str().unwrap()).cloned();
            result(json!({"context": {"slot": slot}, "value": found}))
        }
        "getSignaturesForAddress" => {
            let slot = finalized(&params[1]);
            if params[1]["minContextSlot"].as_u64() > Some(slot) {
                return refuse(-32016);
            }
            result(naming(world, slot, params))
        }
        _ => bank::answer(world, method, params),
    }
}

/// The transactions in the block of a slot, in its order.
fn inside(world: &World, slot: u64) -> Vec<(&String, &Value)> {
    let all = world.transactions.iter();
    let mut inside: Vec<_> = all.filter(|(_, it)| it["slot"] == slot).collect();
    inside.sort_by_key(|(id, _)| *id);
    inside
}

/// A block with what the question asks for.
fn detailed(world: &World, slot: u64, block: &Value, asked: &Value) -> Value {
    let (mut block, inside) = (block.clone(), inside(world, slot));
    match asked["transactionDetails"].as_str() {
        Some("signatures") => {
            block["signatures"] = inside.iter().map(|(id, _)| json!(id)).collect();
        }
        Some("full") => {
            let shown = |it: &Value| json!({"transaction": it["transaction"], "meta": it["meta"], "version": 0});
            block["transactions"] = inside.iter().map(|(_, it)| shown(it)).collect();
        }
        Some("accounts") => {
            block["transactions"] = inside.iter().map(|(_, it)| accounts(it)).collect();
        }
        _ => {}
    }
    block
}

/// A transaction with its accounts alone.
fn accounts(shown: &Value) -> Value {
    let (meta, signed) = (&shown["meta"], &shown["transaction"]);
    let loaded = ["writable", "readonly"].map(|kind| meta["loadedAddresses"][kind].as_array());
    let keys = signed["message"]["accountKeys"].as_array().into_iter();
    let keys = keys.chain(loaded.into_iter().flatten()).flatten();
    let keys = keys.map(|key| json!({"pubkey": key, "signer": false, "writable": true}));
    json!({
        "transaction": {"signatures": signed["signatures"], "accountKeys": keys.collect::<Vec<_>>()},
        "meta": {
            "err": meta["err"], "fee": meta["fee"], "preBalances": meta["preBalances"],
            "postBalances": meta["postBalances"], "preTokenBalances": meta["preTokenBalances"],
            "postTokenBalances": meta["postTokenBalances"],
        },
        "version": 0,
    })
}

/// The transactions that name an account, the newest first.
fn naming(world: &World, newest: u64, params: &Value) -> Value {
    let names = |it: &Value| {
        let message = it["transaction"]["message"]["accountKeys"].as_array();
        let loaded = ["writable", "readonly"];
        let loaded = loaded.map(|kind| it["meta"]["loadedAddresses"][kind].as_array());
        let mut keys = message.into_iter().chain(loaded.into_iter().flatten());
        keys.any(|keys| keys.contains(&params[0]))
    };
    let all = world.transactions.iter();
    let mut all: Vec<_> = all.filter(|(_, it)| names(it)).collect();
    all.retain(|(_, it)| it["slot"].as_u64() <= Some(newest));
    all.sort_by_key(|(id, it)| (it["slot"].as_u64(), *id));
    if let Some(before) = params[1]["before"].as_str() {
        // Nothing is older than what nobody knows.
        let known = world.transactions.get(before);
        let known = known.map(|it| (it["slot"].as_u64(), before));
        all.retain(|(id, it)| {
            known.is_some_and(|known| (it["slot"].as_u64(), id.as_str()) < known)
        });
    }
    let older = all.into_iter().rev();
    let limit = usize::try_from(params[1]["limit"].as_u64().unwrap()).unwrap();
    let shown = older.into_iter().take(limit);
    let shown = shown
        .map(|(id, it)| json!({"signature": id, "slot": it["slot"], "err": it["meta"]["err"]}));
    shown.collect()
}
