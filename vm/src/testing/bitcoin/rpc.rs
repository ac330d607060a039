//! What a node answers (Bitcoin Core's JSON-RPC API).

use alloy::hex;
use bitcoin::{Address, Block, OutPoint, ScriptBuf, Transaction, consensus::encode};
use serde_json::{Value, json};

use super::{
    view::{Inclusion, View, bitcoins},
    world::World,
};
use crate::testing::Manners;

/// Bitcoin Core's codes.
const NO_METHOD: i64 = -32_601;
const UNKNOWN: i64 = -5;
const OUT_OF_RANGE: i64 = -8;
const NO_WALLET: i64 = -18;
const OPEN_ALREADY: i64 = -35;
const WRONG_INPUTS: i64 = -25;
const REFUSED: i64 = -26;
const IN_CHAIN: i64 = -27;

/// A refusal: a code, and what is said.
type Refused = (i64, String);

/// A wallet of a node, which watches accounts.
#[derive(Clone, Debug, Default)]
pub struct Wallet {
    /// Descriptors, and the scripts of their accounts.
    watched: Vec<(String, ScriptBuf)>,
}

/// One question.
struct Question<'a> {
    view: View<'a>,
    params: &'a Value,
}

/// The answer to a body of one question or of several; `None` where it is no JSON.
pub fn answer(
    world: &World,
    manners: Manners,
    (provider, path, body): (&str, &str, &[u8]),
) -> Option<(u16, Vec<u8>)> {
    let asked: Value = serde_json::from_slice(body).ok()?;
    let wallet = path.strip_prefix("wallet/");
    let one = |asked: &Value| said(world, manners, (provider, wallet, asked));
    let answer = match asked.as_array() {
        Some(all) => all.iter().map(one).collect(),
        None => one(&asked),
    };
    let failed = answer.is_object() && !answer["error"].is_null();
    Some((
        if failed { 500 } else { 200 },
        answer.to_string().into_bytes(),
    ))
}

fn said(
    world: &World,
    manners: Manners,
    (provider, wallet, asked): (&str, Option<&str>, &Value),
) -> Value {
    let (method, params) = (
        asked["method"].as_str().unwrap_or_default(),
        &asked["params"],
    );
    let answered = match method {
        "sendrawtransaction" => send(world, params),
        "loadwallet" | "createwallet" | "importdescriptors" => {
            changed(world, method, (provider, wallet, params))
        }
        _ => {
            let state = world.lock();
            let watching = wallet.and_then(|name| {
                let name = (provider.to_owned(), name.to_owned());
                state.wallets.get(&name)
            });
            let question = Question {
                view: View {
                    state: &state,
                    manners,
                },
                params,
            };
            match (wallet, watching) {
                (Some(_), None) => refused(NO_WALLET, "Requested wallet does not exist"),
                (_, Some(watching)) => question.of_wallet(method, watching),
                (None, None) => question.answer(method),
            }
        }
    };
    match answered {
        Ok(result) => json!({"result": result, "error": null, "id": asked["id"]}),
        Err((code, message)) => {
            let error = json!({"code": code, "message": message});
            json!({"result": null, "error": error, "id": asked["id"]})
        }
    }
}

fn refused<T>(code: i64, message: &str) -> Result<T, Refused> {
    Err((code, message.to_owned()))
}

fn unknown() -> Refused {
    (UNKNOWN, "no such thing".into())
}

fn send(world: &World, params: &Value) -> Result<Value, Refused> {
    let raw = hex::decode(params[0].as_str().unwrap_or_default());
    let raw = raw.map_err(|_| (-22, "TX decode failed".to_owned()))?;
    match world.send(&raw) {
        Ok(txid) => Ok(json!(txid)),
        Err(why) if why.contains("already in utxo set") => refused(IN_CHAIN, why),
        Err(why) if why.contains("missingorspent") => refused(WRONG_INPUTS, why),
        Err(why) => refused(REFUSED, why),
    }
}

/// Methods that change the node's wallets.
fn changed(
    world: &World,
    method: &str,
    (provider, wallet, params): (&str, Option<&str>, &Value),
) -> Result<Value, Refused> {
    let mut state = world.lock();
    let named = |name: &str| (provider.to_owned(), name.to_owned());
    let given = params[0].as_str().unwrap_or_default();
    match method {
        "loadwallet" if state.wallets.contains_key(&named(given)) => {
            refused(OPEN_ALREADY, "Wallet is already loaded")
        }
        "loadwallet" => refused(NO_WALLET, "Wallet file verification failed"),
        "createwallet" => {
            state.wallets.insert(named(given), Wallet::default());
            Ok(json!({"name": given}))
        }
        _ => {
            let found = wallet.and_then(|name| state.wallets.get_mut(&named(name)));
            let found = found.ok_or_else(|| (NO_WALLET, "no wallet".to_owned()))?;
            let wanted = params[0].as_array().into_iter().flatten();
            let said = wanted.map(|one| {
                let watched = one["desc"].as_str().and_then(described);
                let success = watched.is_some();
                found.watched.extend(watched);
                json!({"success": success})
            });
            Ok(said.collect())
        }
    }
}

/// The descriptor of an address with its account's script.
fn described(text: &str) -> Option<(String, ScriptBuf)> {
    let inner = text.strip_prefix("addr(")?.split(')').next()?;
    Some((text.to_owned(), script(inner)?))
}

/// The script that pays an address.
pub fn script(address: &str) -> Option<ScriptBuf> {
    let address: Address<_> = address.parse().ok()?;
    Some(address.assume_checked().script_pubkey())
}

impl Question<'_> {
    fn text(&self, at: usize) -> &str {
        self.params[at].as_str().unwrap_or_default()
    }

    fn answer(&self, method: &str) -> Result<Value, Refused> {
        let view = &self.view;
        match method {
            "getblockcount" => Ok(json!(view.tip())),
            "getblockhash" => {
                let found = self.params[0].as_u64().and_then(|height| view.hash(height));
                found.map_or_else(
                    || refused(OUT_OF_RANGE, "Block height out of range"),
                    |hash| Ok(json!(hash)),
                )
            }
            "getblockheader" => {
                let (block, height) = view.block_of(self.text(0)).ok_or_else(unknown)?;
                Ok(header(block, height))
            }
            "getblock" if !view.manners.blind => {
                let (block, _) = view.block_of(self.text(0)).ok_or_else(unknown)?;
                Ok(json!(encode::serialize_hex(block)))
            }
            "getblock" => Err(unknown()),
            "getrawtransaction" => self.transaction(),
            "gettxout" => Ok(self.unspent()),
            "getrawmempool" => {
                let all = view.waiting().into_iter();
                Ok(all.map(|one| json!(one.compute_txid())).collect())
            }
            "getmempoolentry" => match view.find(self.text(0)) {
                Some((_, Inclusion::Waits)) => Ok(json!({})),
                _ => refused(UNKNOWN, "Transaction not in mempool"),
            },
            "getmempoolinfo" => Ok(json!({"mempoolminfee": bitcoins(1_000)})),
            "estimatesmartfee" => Ok(json!({"feerate": bitcoins(view.state.rate * 1_000)})),
            "getdescriptorinfo" => Ok(json!({"descriptor": self.text(0)})),
            _ => refused(NO_METHOD, "Method not found"),
        }
    }

    fn of_wallet(&self, method: &str, wallet: &Wallet) -> Result<Value, Refused> {
        let view = &self.view;
        match method {
            "listdescriptors" => {
                let known = wallet.watched.iter().map(|(text, _)| json!({"desc": text}));
                Ok(json!({"descriptors": known.collect::<Value>()}))
            }
            "getwalletinfo" => {
                let (height, hash) = (view.tip(), view.hash(view.tip()));
                let processed = json!({"hash": hash, "height": height});
                Ok(json!({"scanning": false, "lastprocessedblock": processed}))
            }
            "listunspent" => {
                let least = self.params[4]["minimumAmount"].as_str();
                let least = least.and_then(|text| text.parse::<bitcoin::Amount>().ok());
                let wanted = self.params[2][0].as_str().and_then(script);
                let watched = wallet.watched.iter().map(|(_, script)| script);
                let mut watched = watched.filter(|it| wanted.as_ref() == Some(*it));
                let unspent = watched.next().map(|it| view.unspent(it));
                let unspent = unspent.unwrap_or_default().into_iter();
                let large = unspent.filter(|it| least.is_none_or(|least| it.output.value >= least));
                let listed = large.map(|it| {
                    json!({
                        "txid": it.at.txid, "vout": it.at.vout,
                        "scriptPubKey": it.output.script_pubkey.to_hex_string(),
                        "amount": bitcoins(it.output.value.to_sat()),
                        "confirmations": view.tip() + 1 - it.height,
                    })
                });
                Ok(listed.collect())
            }
            _ => self.answer(method),
        }
    }

    fn transaction(&self) -> Result<Value, Refused> {
        let (found, place) = self.view.find(self.text(0)).ok_or_else(unknown)?;
        let hash = match place {
            Inclusion::Block(height) => self.view.hash(height),
            Inclusion::Waits => None,
        };
        let wanted = self.params[2].as_str();
        if wanted.is_some() && wanted != hash.map(|hash| hash.to_string()).as_deref() {
            return Err(unknown());
        }
        let verbosity = match &self.params[1] {
            Value::Bool(verbose) => u64::from(*verbose),
            other => other.as_u64().unwrap_or_default(),
        };
        if verbosity == 0 {
            return Ok(json!(encode::serialize_hex(found)));
        }
        let mut shown = self.shown(found, verbosity > 1 && hash.is_some());
        if let Some(hash) = hash {
            shown["blockhash"] = json!(hash);
        }
        Ok(shown)
    }

    /// `spent`: with what it spends.
    fn shown(&self, one: &Transaction, spent: bool) -> Value {
        let inputs = one.input.iter().map(|input| {
            let at = input.previous_output;
            if at.is_null() {
                return json!({"coinbase": input.script_sig.to_hex_string()});
            }
            let witness: Vec<_> = input.witness.iter().map(hex::encode).collect();
            let mut shown = json!({
                "txid": at.txid, "vout": at.vout, "txinwitness": witness,
                "scriptSig": {"hex": input.script_sig.to_hex_string()},
            });
            if let Some((output, _)) = self.view.output(&at).filter(|_| spent) {
                let script = output.script_pubkey.to_hex_string();
                shown["prevout"] = json!({"scriptPubKey": {"hex": script}});
            }
            shown
        });
        let inputs: Vec<_> = inputs.collect();
        let outputs = (0_u32..).zip(&one.output).map(|(n, output)| {
            json!({
                "value": bitcoins(output.value.to_sat()), "n": n,
                "scriptPubKey": {"hex": output.script_pubkey.to_hex_string()},
            })
        });
        let outputs: Vec<_> = outputs.collect();
        json!({"txid": one.compute_txid(), "vin": inputs, "vout": outputs})
    }

    /// `gettxout`: null where the output is spent.
    fn unspent(&self) -> Value {
        let (txid, vout) = (self.text(0).parse(), self.params[1].as_u64());
        let (Ok(txid), Some(Ok(vout))) = (txid, vout.map(u32::try_from)) else {
            return Value::Null;
        };
        let at = OutPoint::new(txid, vout);
        let with_pool = self.params[2].as_bool().unwrap_or(true);
        let spent = match self.view.spender(&at) {
            Some((_, Inclusion::Waits)) => with_pool,
            Some((_, Inclusion::Block(_))) => true,
            None => false,
        };
        let Some((output, Inclusion::Block(height))) = self.view.output(&at).filter(|_| !spent)
        else {
            return Value::Null;
        };
        let tip = self.view.tip();
        let coinbase = self.view.transaction(&txid);
        json!({
            "bestblock": self.view.hash(tip), "confirmations": tip + 1 - height,
            "value": bitcoins(output.value.to_sat()),
            "scriptPubKey": {"hex": output.script_pubkey.to_hex_string()},
            "coinbase": coinbase.is_some_and(|(it, _)| it.is_coinbase()),
        })
    }
}

fn header(block: &Block, height: u64) -> Value {
    let mut shown = json!({
        "hash": block.block_hash(), "height": height, "time": block.header.time,
    });
    if height > 0 {
        shown["previousblockhash"] = json!(block.header.prev_blockhash);
    }
    shown
}
