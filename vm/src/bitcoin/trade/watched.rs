//! Accounts of our own in a Bitcoin Core node: a wallet without keys watches each by its descriptor (`createwallet`,
//! `importdescriptors`, `listunspent`). A search of all unspent outputs would take the node minutes.

use std::cmp::Reverse;

use bitcoin::{OutPoint, ScriptBuf, Txid};
use bitcoincore_rpc::{Client, RpcApi, jsonrpc};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    coin::Coin,
    crowded::LEAST,
    scan_node::{MOST_COINS, NO_METHOD},
    scan_source::{MATURITY, Payee},
};
use crate::{
    ReadError,
    bitcoin::{
        node::Node,
        question::{Fault, header, together},
        raw::{RawScript, bitcoins},
        source::moved,
    },
    http::PostError,
};

/// Bitcoin Core's codes: there is no such wallet (RPC_WALLET_NOT_FOUND), or it is open already
/// (RPC_WALLET_ALREADY_LOADED).
const NO_WALLET: i32 = -18;
const OPEN: i32 = -35;
/// What HTTP says of methods that a node offers to others only.
const CLOSED: [u16; 3] = [401, 403, 405];
/// Satoshis below which outputs are left out: the first where the answer is not too long. Anybody can pay the account
/// many small ones.
const FLOORS: [u64; 4] = [LEAST, 10 * LEAST, 100 * LEAST, 1_000 * LEAST];
/// Confirmations that a wallet is asked for at most.
const DEEPEST: u64 = 9_999_999;

#[derive(Deserialize)]
struct Descriptor {
    #[serde(alias = "descriptor")]
    desc: String,
}

#[derive(Deserialize)]
struct Descriptors {
    descriptors: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Imported {
    success: bool,
}

/// How far a wallet is.
#[derive(Deserialize)]
struct Info {
    /// `false`, or how far it is.
    scanning: Value,
    /// Unset by nodes before version 26.
    lastprocessedblock: Option<Processed>,
}

#[derive(PartialEq, Eq, Deserialize)]
struct Processed {
    hash: bitcoin::BlockHash,
    height: u64,
}

#[derive(Deserialize)]
struct Listed {
    txid: Txid,
    vout: u32,
    #[serde(rename = "scriptPubKey")]
    script: ScriptBuf,
    #[serde(deserialize_with = "bitcoins")]
    amount: bitcoin::Amount,
    confirmations: u64,
}

/// An output that is unspent in blocks.
#[derive(Deserialize)]
struct Held {
    bestblock: bitcoin::BlockHash,
    confirmations: u64,
    #[serde(deserialize_with = "bitcoins")]
    value: bitcoin::Amount,
    #[serde(rename = "scriptPubKey")]
    script: RawScript,
    coinbase: bool,
}

impl Node {
    /// The account's outputs by a wallet of the node, which is made where there is none; `None` where the node has no
    /// wallets.
    pub(super) async fn watched(&self, payee: &Payee) -> Result<Option<Vec<Coin>>, ReadError> {
        let Some(wallet) = self.wallet(payee).await? else {
            return Ok(None);
        };
        for floor in FLOORS {
            let payee = payee.clone();
            let listed = move |client: &Client| listed(client, &payee, floor);
            match self.ask_wallet(Some(&wallet), listed).await {
                Err(ReadError::TooLarge) => {}
                Ok(coins) => return Ok(Some(coins)),
                Err(error) => {
                    // It may have been closed.
                    self.wallets.lock().await.remove(&wallet);
                    return Err(error);
                }
            }
        }
        Err(ReadError::TooLarge)
    }

    /// The name of the wallet that watches the account. One is made at a time.
    async fn wallet(&self, payee: &Payee) -> Result<Option<String>, ReadError> {
        let name = format!("intentd-{}", payee.address);
        let mut known = self.wallets.lock().await;
        if known.contains(&name) {
            return Ok(Some(name));
        }
        let wanted = name.clone();
        if !self.ask(move |client| opened(client, &wanted)).await? {
            return Ok(None);
        }
        let (address, since) = (payee.address.clone(), self.access.since);
        let imported = move |client: &Client| imported(client, &address, since);
        self.ask_wallet(Some(&name), imported).await?;
        known.insert(name.clone());
        Ok(Some(name))
    }

    /// Those that the node itself has, as it has them.
    pub(super) async fn held(
        &self,
        payee: &Payee,
        mut coins: Vec<Coin>,
    ) -> Result<Vec<Coin>, ReadError> {
        coins.sort_by_key(|coin| Reverse(coin.value));
        coins.truncate(MOST_COINS);
        let script = payee.script.clone();
        self.ask(move |client| held(client, &script, coins)).await
    }
}

/// Opens a wallet, which is made where there is none; false where the node has no wallets for us.
fn opened(client: &Client, name: &str) -> Result<bool, Fault> {
    let error = match client.call::<IgnoredAny>("loadwallet", &[json!(name), json!(true)]) {
        Ok(_) => return Ok(true),
        Err(error) => error,
    };
    match &error {
        bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(said)) => match said.code {
            NO_METHOD => return Ok(false),
            OPEN => return Ok(true),
            NO_WALLET => {}
            _ => return Err(error.into()),
        },
        bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Transport(said)) => {
            return match said.downcast_ref::<PostError>() {
                Some(PostError::Status { status, .. }) if CLOSED.contains(status) => Ok(false),
                _ => Err(error.into()),
            };
        }
        _ => return Err(error.into()),
    }
    // Without private keys and blank; descriptors, opened again when the node starts.
    let made = [
        json!(name),
        json!(true),
        json!(true),
        json!(""),
        json!(false),
        json!(true),
        json!(true),
    ];
    client.call::<IgnoredAny>("createwallet", &made)?;
    tracing::info!(wallet = name, "a wallet without keys watches the account");
    Ok(true)
}

/// Has the wallet watch the account, where it does not yet: outputs in blocks from `since` on (unix seconds).
fn imported(client: &Client, address: &str, since: Option<u64>) -> Result<(), Fault> {
    let plain = json!(format!("addr({address})"));
    let ours: Descriptor = client.call("getdescriptorinfo", &[plain])?;
    let known: Descriptors = client.call("listdescriptors", &[])?;
    if known.descriptors.iter().any(|one| one.desc == ours.desc) {
        return Ok(());
    }
    let since = since.map_or_else(|| json!("now"), |since| json!(since));
    let asked = json!([{"desc": ours.desc, "timestamp": since}]);
    let said: Vec<Imported> = client.call("importdescriptors", &[asked])?;
    match said.iter().all(|one| one.success) {
        true => Ok(()),
        false => {
            let why = "the node's wallet does not watch the account";
            Err(ReadError::Unavailable(why.into()).into())
        }
    }
}

/// What the wallet lists, without what waiting transactions spend.
fn listed(client: &Client, payee: &Payee, floor: u64) -> Result<Vec<Coin>, Fault> {
    let before = processed(client)?;
    let least = bitcoin::Amount::from_sat(floor).to_string_in(bitcoin::Denomination::Bitcoin);
    let asked = [
        json!(1),
        json!(DEEPEST),
        json!([payee.address]),
        json!(false),
        json!({ "minimumAmount": least }),
    ];
    let found: Vec<Listed> = client.call("listunspent", &asked)?;
    if processed(client)? != before {
        return Err(moved().into());
    }
    if found.iter().any(|it| it.script != payee.script) {
        return Err(Fault::Doubtful("not the outputs of the account"));
    }
    let coins = found.into_iter().map(|it| {
        let depth = it.confirmations.checked_sub(1);
        let height = depth.and_then(|depth| before.height.checked_sub(depth));
        Ok(Coin {
            outpoint: OutPoint::new(it.txid, it.vout),
            value: it.amount.to_sat(),
            height: height.ok_or(Fault::Doubtful("an output in no block"))?,
        })
    });
    let mut coins: Vec<Coin> = coins.collect::<Result<_, Fault>>()?;
    coins.sort_by_key(|coin| Reverse(coin.value));
    coins.truncate(MOST_COINS);
    Ok(coins)
}

/// The block up to which the wallet knows everything.
fn processed(client: &Client) -> Result<Processed, Fault> {
    let info: Info = client.call("getwalletinfo", &[])?;
    if info.scanning != Value::Bool(false) {
        let why = "the node's wallet still looks through old blocks";
        return Err(ReadError::Unavailable(why.into()).into());
    }
    let old = || ReadError::Unavailable("the node's wallet does not say how far it is".into());
    Ok(info.lastprocessedblock.ok_or_else(old)?)
}

fn held(client: &Client, script: &ScriptBuf, coins: Vec<Coin>) -> Result<Vec<Coin>, Fault> {
    let params = coins.iter().map(|coin| {
        let OutPoint { txid, vout } = coin.outpoint;
        // Also not spent by what waits.
        json!([txid, vout, true])
    });
    let params: Vec<Value> = params.collect();
    let found: Vec<Option<Held>> = together(client, "gettxout", &params)?;
    let best = found.iter().flatten().map(|it| it.bestblock).next();
    let Some(best) = best else {
        return Ok(Vec::new());
    };
    if found.iter().flatten().any(|it| it.bestblock != best) {
        return Err(moved().into());
    }
    let tip = header(client, &best)?.number;
    let each = coins.into_iter().zip(found).filter_map(|(coin, held)| {
        let held = held.filter(|it| it.script.hex == *script && it.confirmations > 0)?;
        let height = tip.checked_sub(held.confirmations - 1)?;
        let ripe = !held.coinbase || height.saturating_add(MATURITY) <= tip.saturating_add(1);
        ripe.then_some(Coin {
            value: held.value.to_sat(),
            height,
            ..coin
        })
    });
    Ok(each.collect())
}

#[cfg(test)]
mod tests;
