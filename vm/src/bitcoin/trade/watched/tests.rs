use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bitcoin::hashes::Hash;

use super::*;
use crate::{
    ChainEntry, ChainSpec, Endpoint,
    bitcoin::{
        FAMILY,
        network::LOCAL,
        read::{Opened, opened as open},
        trade::scan_source::{Blocks, Whose},
    },
    http::inside::{self, Asked},
};

const OWN: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
const DEPOSITORY: &str = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry";
const TIP: u64 = 500;

/// A Bitcoin Core node.
#[derive(Default)]
struct Core {
    /// It was built without wallets.
    plain: bool,
    /// Wallets that exist, with their descriptors.
    wallets: HashMap<String, Vec<Value>>,
    loaded: Vec<String>,
    scanning: bool,
    /// Searches that come while it makes one for somebody else.
    busy: usize,
    /// Satoshis and heights of the account's outputs.
    outputs: Vec<(u64, u64)>,
    /// Methods that were called, and their parameters.
    calls: Vec<(String, Value)>,
}

type Shared = Arc<Mutex<Core>>;

fn txid(number: usize) -> Txid {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Txid::from_byte_array(bytes)
}

fn script() -> ScriptBuf {
    LOCAL.script(OWN).unwrap()
}

fn bitcoins_of(satoshis: u64) -> Value {
    serde_json::from_str(&format!(
        "{}.{:08}",
        satoshis / 100_000_000,
        satoshis % 100_000_000
    ))
    .unwrap()
}

impl Core {
    fn best() -> bitcoin::BlockHash {
        bitcoin::BlockHash::from_byte_array([9; 32])
    }

    /// The wallet's own methods.
    fn wallet(&mut self, name: &str, method: &str, params: &Value) -> Result<Value, i32> {
        if self.plain {
            return Err(-32_601);
        }
        if !self.loaded.iter().any(|one| one == name) {
            return Err(-18);
        }
        Ok(match method {
            "listdescriptors" => json!({ "descriptors": self.wallets[name] }),
            "importdescriptors" => {
                let one = json!({"desc": params[0][0]["desc"], "timestamp": 1});
                self.wallets.get_mut(name).unwrap().push(one);
                json!([{ "success": true }])
            }
            "getwalletinfo" => {
                let scanning = match self.scanning {
                    true => json!({"duration": 5, "progress": 0.5}),
                    false => json!(false),
                };
                let last = json!({"hash": Self::best(), "height": TIP});
                json!({"scanning": scanning, "lastprocessedblock": last})
            }
            "listunspent" => {
                let least = params[4]["minimumAmount"].as_str().unwrap();
                let least = bitcoin::Amount::from_str_in(least, bitcoin::Denomination::Bitcoin);
                let least = least.unwrap().to_sat();
                let all = self.outputs.iter().enumerate();
                let all = all.filter(|(_, (value, _))| *value >= least);
                let all = all.map(|(at, (value, height))| {
                    json!({"txid": txid(at), "vout": 1, "scriptPubKey": script(),
                        "amount": bitcoins_of(*value), "confirmations": TIP - height + 1})
                });
                all.collect()
            }
            _ => return Err(-32_601),
        })
    }

    fn answer(&mut self, wallet: Option<&str>, method: &str, params: &Value) -> Result<Value, i32> {
        self.calls.push((method.to_owned(), params.clone()));
        let name = || params[0].as_str().unwrap().to_owned();
        Ok(match method {
            "loadwallet" | "createwallet" if self.plain => return Err(-32_601),
            "loadwallet" if self.loaded.contains(&name()) => return Err(-35),
            "loadwallet" if !self.wallets.contains_key(&name()) => return Err(-18),
            "loadwallet" | "createwallet" => {
                self.wallets.entry(name()).or_default();
                self.loaded.push(name());
                json!({ "name": name() })
            }
            "getblockhash" => {
                let genesis = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
                json!(genesis.block_hash())
            }
            "getdescriptorinfo" => json!({"descriptor": format!("{}#abcdefgh", name())}),
            "getblockheader" => {
                json!({"hash": Self::best(), "height": TIP, "time": 1, "previousblockhash": Self::best()})
            }
            "scantxoutset" if self.busy > 0 => {
                self.busy -= 1;
                return Err(-8);
            }
            "scantxoutset" => {
                let all = self
                    .outputs
                    .iter()
                    .enumerate()
                    .map(|(at, (value, height))| {
                        json!({"txid": txid(at), "vout": 1, "scriptPubKey": script(),
                        "amount": bitcoins_of(*value), "height": height, "coinbase": false})
                    });
                json!({"success": true, "height": TIP, "unspents": all.collect::<Vec<_>>()})
            }
            "gettxspendingprevout" => json!([]),
            "gettxout" => {
                let all = self.outputs.iter().enumerate();
                let mut same = all.filter(|(at, _)| json!(txid(*at)) == params[0]);
                same.next().map_or(Value::Null, |(_, (value, height))| {
                    json!({"bestblock": Self::best(), "confirmations": TIP - height + 1,
                        "value": bitcoins_of(*value), "scriptPubKey": {"hex": script()},
                        "coinbase": *value == 5_000})
                })
            }
            _ => return self.wallet(wallet.unwrap_or_default(), method, params),
        })
    }

    fn one(&mut self, wallet: Option<&str>, asked: &Value) -> (u16, Value) {
        let (id, method) = (&asked["id"], asked["method"].as_str().unwrap());
        match self.answer(wallet, method, &asked["params"]) {
            Ok(result) => (200, json!({"id": id, "result": result, "error": null})),
            Err(code) => {
                let message = match code {
                    -8 => "Scan already in progress, use action \"abort\" or \"status\"",
                    _ => "no",
                };
                let error = json!({"code": code, "message": message});
                let status = if code == -32_601 { 404 } else { 500 };
                (status, json!({"id": id, "result": null, "error": error}))
            }
        }
    }

    fn calls(&self, method: &str) -> Vec<Value> {
        let calls = self.calls.iter().filter(|(called, _)| called == method);
        calls.map(|(_, params)| params.clone()).collect()
    }
}

/// The node behind a host, and the chain's entry with `more`.
fn node(host: &str, core: &Shared, more: Value) -> Node {
    node_at(endpoint(host), core, more)
}

/// The same at an endpoint.
fn node_at(endpoint: Endpoint, core: &Shared, more: Value) -> Node {
    let shared = core.clone();
    let answer = move |asked: &Asked<'_>| {
        let wallet = asked.path.strip_prefix("/wallet/");
        let body: Value = serde_json::from_slice(asked.body).unwrap();
        let mut core = shared.lock().unwrap();
        let (status, said) = match body.as_array() {
            Some(all) => {
                let all = all.iter().map(|one| core.one(wallet, one).1);
                (200, all.collect())
            }
            None => core.one(wallet, &body),
        };
        Some((status, serde_json::to_vec(&said).unwrap()))
    };
    inside::register(endpoint.url.host_str().unwrap(), Arc::new(answer));
    let mut additional = json!({"network": "regtest"});
    let map = additional.as_object_mut().unwrap();
    map.extend(more.as_object().unwrap().clone());
    match open(&spec(&additional), &endpoint).unwrap() {
        Opened::Node(node) => *node,
        Opened::Index(_) => panic!("an index"),
    }
}

fn spec(additional: &Value) -> Arc<ChainSpec> {
    let entry = json!({
        "id": "bitcoin", "hubChainId": "7", "depository": DEPOSITORY,
        "additionalData": additional,
    });
    let entry: ChainEntry = serde_json::from_value(entry).unwrap();
    entry.spec(&FAMILY, false).unwrap()
}

fn endpoint(host: &str) -> Endpoint {
    Endpoint {
        position: 1,
        url: format!("http://{host}/").parse().unwrap(),
        timeout: Duration::from_secs(5),
        longest: 100_000,
        allows: None,
        client: Endpoint::client().unwrap(),
    }
}

fn payee() -> Payee {
    Payee {
        address: OWN.into(),
        script: script(),
    }
}

/// What the entry of a network says that is not local.
const NOT_LOCAL: fn() -> Value = || json!({ "scanUnspentOutputs": false });

async fn shown(node: &Node, whose: Whose) -> Result<Vec<(u64, u64)>, ReadError> {
    let coins = node.unspent(&payee(), whose).await?;
    Ok(coins.iter().map(|coin| (coin.value, coin.height)).collect())
}

#[tokio::test]
async fn an_account_of_ours_is_watched_by_a_wallet_that_is_made_once() {
    let core = Shared::default();
    core.lock().unwrap().outputs = vec![(4_000, 490), (90_000, 500), (999, 1)];
    let own = node("watched.inside", &core, NOT_LOCAL());
    for _ in 0..2 {
        assert_eq!(
            shown(&own, Whose::Own).await,
            Ok(vec![(90_000, 500), (4_000, 490)])
        );
    }
    {
        let core = core.lock().unwrap();
        let name = format!("intentd-{OWN}");
        // Without private keys and blank; of descriptors, and opened again at the node's start.
        let made = json!([name, true, true, "", false, true, true]);
        assert_eq!(core.calls("createwallet"), [made]);
        let watched = json!([[{"desc": format!("addr({OWN})#abcdefgh"), "timestamp": "now"}]]);
        assert_eq!(core.calls("importdescriptors"), [watched]);
        let listed = core.calls("listunspent");
        // In a block at least, and nothing unsafe.
        assert_eq!((&listed[0][0], &listed[0][3]), (&json!(1), &json!(false)));
        assert!(core.calls("scantxoutset").is_empty());
    }
    // After starts of the daemon, and of the node.
    for close in [false, true] {
        if close {
            core.lock().unwrap().loaded.clear();
        }
        let own = node("watched.inside", &core, NOT_LOCAL());
        assert_eq!(shown(&own, Whose::Own).await.unwrap().len(), 2);
    }
    // The wallet is closed meanwhile: the next read opens it.
    core.lock().unwrap().loaded.clear();
    assert!(shown(&own, Whose::Own).await.is_err());
    assert_eq!(shown(&own, Whose::Own).await.unwrap().len(), 2);
    let core = core.lock().unwrap();
    assert_eq!(core.calls("importdescriptors").len(), 1);
    assert_eq!(core.calls("createwallet").len(), 1);
}

#[tokio::test]
async fn a_wallet_that_looks_through_old_blocks_shows_nothing_yet() {
    let core = Shared::default();
    core.lock().unwrap().outputs = vec![(4_000, 490)];
    core.lock().unwrap().scanning = true;
    let own = node(
        "old.inside",
        &core,
        json!({"scanUnspentOutputs": false, "walletSince": 1_700_000_000}),
    );
    assert!(shown(&own, Whose::Own).await.is_err());
    let asked = core.lock().unwrap().calls("importdescriptors");
    assert_eq!(asked[0][0][0]["timestamp"], 1_700_000_000);
    core.lock().unwrap().scanning = false;
    assert_eq!(shown(&own, Whose::Own).await, Ok(vec![(4_000, 490)]));
}

/// The answer would be longer than any that is read.
#[tokio::test]
async fn many_small_outputs_do_not_hide_the_large_ones() {
    let core = Shared::default();
    let small = (0..2_000).map(|_| (1_500, 400));
    core.lock().unwrap().outputs = small.chain([(80_000, 450)]).collect();
    let own = node("dust.inside", &core, NOT_LOCAL());
    assert_eq!(shown(&own, Whose::Own).await, Ok(vec![(80_000, 450)]));
    let few = (0..3).map(|_| (1_500, 400));
    core.lock().unwrap().outputs = few.collect();
    assert_eq!(shown(&own, Whose::Own).await.unwrap().len(), 3);
}

/// A search of all outputs takes minutes on the main network, and the node makes one at a time.
#[tokio::test]
async fn nobody_s_outputs_are_searched_where_that_is_not_allowed() {
    let core = Shared::default();
    core.lock().unwrap().outputs = vec![(4_000, 490)];
    core.lock().unwrap().plain = true;
    let closed = node("closed.inside", &core, NOT_LOCAL());
    for whose in [Whose::Own, Whose::Others] {
        let refused = shown(&closed, whose).await;
        assert!(
            matches!(refused, Err(ReadError::Unavailable(_))),
            "{refused:?}"
        );
    }
    assert!(core.lock().unwrap().calls("scantxoutset").is_empty());
    // Where it is: on a network of one's own, and by the operator's word.
    for more in [json!({}), json!({"scanUnspentOutputs": true})] {
        let local = node("closed.inside", &core, more);
        for whose in [Whose::Own, Whose::Others] {
            assert_eq!(shown(&local, whose).await, Ok(vec![(4_000, 490)]));
        }
    }
    // Never for our own account where the node has wallets.
    core.lock().unwrap().plain = false;
    core.lock().unwrap().calls.clear();
    let local = node("closed.inside", &core, json!({}));
    assert_eq!(shown(&local, Whose::Own).await, Ok(vec![(4_000, 490)]));
    assert!(core.lock().unwrap().calls("scantxoutset").is_empty());
}

/// Without those that are left out, a user would seem to have too little.
#[tokio::test]
async fn a_search_shows_all_outputs_of_others_or_none() {
    let core = Shared::default();
    core.lock().unwrap().plain = true;
    let endpoint = Endpoint {
        longest: 1 << 20,
        ..endpoint("crowd.inside")
    };
    let local = node_at(endpoint, &core, json!({}));
    for (outputs, whose, wanted) in [
        (MOST_COINS, Whose::Others, Ok(MOST_COINS)),
        (MOST_COINS + 1, Whose::Others, Err(ReadError::TooLarge)),
        (MOST_COINS + 1, Whose::Own, Ok(MOST_COINS)),
    ] {
        core.lock().unwrap().outputs = vec![(1_500, 400); outputs];
        let found = shown(&local, whose).await;
        assert_eq!(
            found.map(|coins| coins.len()),
            wanted,
            "{outputs} {whose:?}"
        );
    }
}

/// Another part of this daemon, and whoever else uses the node, may have it search.
#[tokio::test]
async fn a_node_that_searches_for_somebody_else_is_asked_again() {
    let core = Shared::default();
    core.lock().unwrap().plain = true;
    core.lock().unwrap().outputs = vec![(4_000, 490)];
    core.lock().unwrap().busy = 3;
    let local = node("busy.inside", &core, json!({}));
    assert_eq!(shown(&local, Whose::Others).await, Ok(vec![(4_000, 490)]));
    assert_eq!(core.lock().unwrap().calls("scantxoutset").len(), 4);
}

/// The index may say anything of a node's votes.
#[tokio::test]
async fn what_an_index_says_of_our_own_account_is_as_the_node_has_it() {
    let core = Shared::default();
    core.lock().unwrap().plain = true;
    // The last one is a coinbase's.
    core.lock().unwrap().outputs = vec![(4_000, 490), (9_000, 480), (5_000, 470)];
    let own = node("voting.inside", &core, NOT_LOCAL());
    let said = [
        (0, 7_000, 100),
        (1, 9_000, 480),
        (2, 5_000, 470),
        (8, 70_000, 100),
    ];
    let said = said.map(|(at, value, height)| Coin {
        outpoint: OutPoint::new(txid(at), 1),
        value,
        height,
    });
    let held = own.held(&payee(), said.to_vec()).await.unwrap();
    let held: Vec<_> = held.iter().map(|coin| (coin.value, coin.height)).collect();
    assert_eq!(held, [(9_000, 480), (4_000, 490)]);
}

#[test]
fn an_entry_that_is_misspelled_opens_nothing() {
    for wrong in [
        json!({"scanUnspentOutputs": 1}),
        json!({"walletSince": "now"}),
    ] {
        let mut additional = json!({"network": "regtest"});
        let map = additional.as_object_mut().unwrap();
        map.extend(wrong.as_object().unwrap().clone());
        assert!(open(&spec(&additional), &endpoint("wrong.inside")).is_err());
    }
}
