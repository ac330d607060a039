//! What chains and store say at the end. The only file that knows the store's rows.

use std::{collections::BTreeMap, sync::Arc};

use alloy::primitives::{Address, B256, U256};
use intentd::store::{
    Range, Store,
    requests::Requests,
    rows::{self, settlement::Settlement},
};
use serde_json::Value;
use vm::protocol::{hub::OrderAccount, id};

use crate::{chain::Chain, clock, world::World};

/// Seconds after the end of a pause until which a refund is tried again.
const SLACK: u64 = 120;

/// A deposit in a block.
#[derive(Clone, Debug)]
pub struct Placed {
    pub chain: &'static str,
    pub order: B256,
    /// The onchain id.
    pub id: B256,
    /// As its chain spells it.
    pub transaction: Arc<str>,
    pub depositor: Address,
    pub currency: Address,
    pub amount: U256,
    /// Unix seconds of its block.
    pub time: u64,
    /// The hub's account for it.
    pub account: Address,
}

/// Every deposit on an EVM chain that names an order.
pub fn deposits(chain: &Chain) -> Vec<Placed> {
    let world = chain.lock();
    let mut all = Vec::new();
    for (block, done) in world.history() {
        let text: Arc<str> = format!("{:#x}", done.tx.hash).into();
        for deposit in chain.deposits(block, done) {
            let order: B256 = deposit.id.parse().unwrap();
            let account = OrderAccount {
                chain: &chain.spec.id,
                depositor: &deposit.depositor,
                timestamp: U256::from(block.time),
                deposit: order,
            };
            all.push(Placed {
                chain: chain.name,
                order,
                id: id::deterministic(&[chain.name, &text, &deposit.index.to_string()]),
                transaction: text.clone(),
                depositor: Address::from_slice(deposit.depositor.bytes()),
                currency: Address::from_slice(deposit.currency.bytes()),
                amount: deposit.amount,
                time: block.time,
                account: account.address(),
            });
        }
    }
    all
}

async fn scan(world: &World, kind: intentd::store::Kind) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = Range {
        kind,
        prefix: Vec::new(),
        after: None,
        limit: usize::MAX,
        reverse: false,
    };
    let rows = world.store.scan(range).await.unwrap();
    rows.into_iter()
        .map(|(key, value)| (key.name, value))
        .collect()
}

/// Whether anything is on its way.
pub async fn is_open(world: &World) -> bool {
    if !slots(world).await.is_empty() {
        return true;
    }
    for (name, _) in scan(world, rows::OPEN).await {
        if !rests(&claim(world, B256::from_slice(&name)).await) {
            return true;
        }
    }
    // What the oracle refuses for good stays listed: that is an end.
    let settling = |value: &[u8]| !Settlement::decode(value).unwrap().refused;
    let settlements = scan(world, rows::SETTLEMENT).await;
    settlements.iter().any(|(_, value)| settling(value))
        || world
            .chains
            .iter()
            .any(|chain| !chain.lock().pool().is_empty())
}

/// Whether all that a request still waits for is a refund that cannot be afforded now: it is tried
/// until its deadline, days from here. A try that is long due says that something else is waited for,
/// as a price that nobody knows at the moment; so does a deposit for which the order could be decided.
fn rests(claim: &Value) -> bool {
    let each = |field: &str| claim[field].as_array().cloned().unwrap_or_default();
    let ended = |leg: &Value| leg["stage"] == "Final" || leg["stage"] == "Failed";
    let (pauses, legs) = (each("pauses"), each("legs"));
    let paid = |pause: &Value| legs.iter().any(|leg| leg["deposit"] == pause["deposit"]);
    let due = |pause: &Value| pause["until"].as_u64().is_some_and(is_long_due);
    let late = pauses.iter().any(|pause| due(pause) && !paid(pause));
    let paused = |one: &Value| {
        pauses
            .iter()
            .any(|pause| pause["deposit"] == one["deposit"])
    };
    let waiting = each("waiting");
    let waits = waiting.iter().any(|one| !paid(one) && !paused(one));
    !pauses.is_empty() && !late && !waits && legs.iter().all(ended)
}

/// Whether what was to be tried at this time should have been.
pub fn is_long_due(until: u64) -> bool {
    clock::seconds() > until + SLACK
}

/// What keeps a history from its rest, for people.
pub async fn open(world: &World) -> String {
    let open = scan(world, rows::OPEN).await.len();
    let slots = slots(world).await;
    let settlements = scan(world, rows::SETTLEMENT).await;
    let settlements: Vec<String> = settlements
        .iter()
        .map(|(_, value)| {
            String::from_utf8_lossy(&value[1..])
                .chars()
                .take(300)
                .collect()
        })
        .collect();
    let pools = world
        .chains
        .each_ref()
        .map(|chain| chain.lock().pool().len());
    format!("{open} open, slots {slots:?}, settlements {settlements:?}, pools {pools:?}")
}

/// The nonces that are not done with.
async fn slots(world: &World) -> Vec<String> {
    let rows = scan(world, rows::ATTEMPT).await;
    let slot = |name: &[u8]| {
        let at = name.iter().position(|byte| *byte == 0)?;
        let nonce = u64::from_be_bytes(name.get(at + 1..)?.try_into().ok()?);
        Some(format!("{} {nonce}", String::from_utf8_lossy(&name[..at])))
    };
    rows.iter().filter_map(|(name, _)| slot(name)).collect()
}

/// The deposits of a request whose payments the operator has listed as not settled.
pub async fn listed(world: &World, request: B256) -> Vec<B256> {
    let Some(process) = &world.process else {
        return Vec::new();
    };
    let rows = process.handle().unsettled().await.unwrap();
    let own = rows.iter().filter(|row| row.request == request);
    own.map(|row| row.deposit).collect()
}

/// The deposits of a request that the operator has listed as neither filled nor given back.
pub async fn parked(world: &World, request: B256) -> Vec<B256> {
    let Some(process) = &world.process else {
        return Vec::new();
    };
    let rows = process.handle().parked(true).await.unwrap();
    let own = rows.iter().filter(|row| row.request == request);
    own.map(|row| row.deposit).collect()
}

/// Transactions that gave back what was deposited too much, and of which deposit.
pub async fn excesses(world: &World, request: B256) -> BTreeMap<B256, B256> {
    let claim = claim(world, request).await;
    let legs = claim["legs"].as_array().into_iter().flatten();
    let excess = legs.filter(|leg| leg["purpose"] == "Excess");
    let word = |value: &Value| value.as_str()?.parse().ok();
    excess
        .filter_map(|leg| Some((word(&leg["transaction"])?, word(&leg["deposit"])?)))
        .collect()
}

/// Whether a deposit is paid for, for good: it is filled or given back.
pub fn is_paid(claim: &Value, deposit: B256) -> bool {
    let mut legs = claim["legs"].as_array().into_iter().flatten();
    legs.any(|leg| {
        leg["deposit"] == deposit.to_string()
            && leg["purpose"] != "Excess"
            && leg["stage"] == "Final"
    })
}

/// Unix seconds at which it is tried again to give a deposit back.
pub fn again(claim: &Value, deposit: B256) -> Option<u64> {
    let mut pauses = claim["pauses"].as_array().into_iter().flatten();
    let found = pauses.find(|pause| pause["deposit"] == deposit.to_string());
    found.and_then(|pause| pause["until"].as_u64())
}

/// What was told of a request, in order.
pub async fn events(world: &World, request: B256) -> Vec<Value> {
    let range = rows::event::after(0, usize::MAX);
    let rows = world.store.scan(range).await.unwrap();
    let events = rows
        .iter()
        .map(|(key, value)| rows::event::row(key, value).unwrap().1);
    let own = events.filter(|event| event.request == request);
    own.map(|event| serde_json::from_str(&event.data).unwrap())
        .collect()
}

/// What moves a deposit back to its depositor at the hub.
pub fn recovery(placed: &Placed) -> B256 {
    id::deterministic(&[&placed.id.to_string(), "recover"])
}

/// The fills and refunds that may pay for a request's deposits: transactions, where there are some, and
/// deposits.
pub async fn uses(world: &World, request: B256) -> Vec<(Option<B256>, B256)> {
    let claim = claim(world, request).await;
    let legs = claim["legs"].as_array().into_iter().flatten();
    let live = legs.filter(|leg| leg["stage"] != "Failed" && leg["purpose"] != "Excess");
    let word = |value: &Value| value.as_str()?.parse().ok();
    live.filter_map(|leg| Some((word(&leg["transaction"]), word(&leg["deposit"])?)))
        .collect()
}

/// The deposits of a request that are left to their depositors, whether an operator has them listed still or
/// not.
pub async fn left(world: &World, request: B256) -> Vec<B256> {
    let requests = Requests::new(world.store.clone());
    let facts = requests.facts(&request).await.unwrap();
    let left = facts.endings.iter().filter(|one| one.refused.is_some());
    left.map(|one| one.deposit).collect()
}

/// How many fills were begun, by request.
pub async fn fills(world: &World) -> BTreeMap<B256, usize> {
    let rows = scan(world, rows::CLAIM).await;
    let begun = rows.iter().map(|(name, value)| {
        let claim: Value = serde_json::from_slice(&value[1..]).unwrap_or(Value::Null);
        let legs = claim["legs"].as_array().into_iter().flatten();
        let fills = legs.filter(|leg| leg["purpose"] == "Fill").count();
        (B256::from_slice(name), fills)
    });
    begun.filter(|(_, fills)| *fills > 0).collect()
}

/// What the solver decided about a request.
pub async fn claim(world: &World, request: B256) -> Value {
    let rows = scan(world, rows::CLAIM).await;
    let mut rows = rows.iter().filter(|(name, _)| *name == request.as_slice());
    let found = rows.next();
    found.map_or(Value::Null, |(_, value)| {
        serde_json::from_slice(&value[1..]).unwrap_or(Value::Null)
    })
}
