//! What a node answers (Solana's JSON-RPC API), from the chain as one provider shows it.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use solana_pubkey::Pubkey;

use super::{
    bank::{Bank, Done, RENT},
    wire::{Compiled, Sent},
    world::{FINAL, Mined, State, World},
};
use crate::{
    http::inside::Asked,
    solana::programs::{SYSTEM, TOKEN, WRAPPED},
    testing::Manners,
};

/// Compute units of every transaction.
const UNITS: u64 = 30_000;
/// The token's decimals.
const DECIMALS: u8 = 6;
/// Transactions of an answer about an account.
const PAGE: usize = 1_000;
/// Bytes of a mint and of a token account.
const MINT: usize = 82;
const ACCOUNT: usize = 165;

/// A refusal: a code, and what is said.
type Refused = (i64, String);

/// The chain as a provider shows it to one call.
struct View<'a> {
    world: &'a World,
    state: &'a State,
    manners: Manners,
    params: &'a Value,
}

pub fn answer(world: &World, asked: &Asked<'_>) -> Option<(u16, Vec<u8>)> {
    let provider = asked.path.trim_matches('/');
    let question: Value = serde_json::from_slice(asked.body).ok()?;
    let method = question["method"].as_str()?;
    let manners = world.lock().manners.get(provider).copied();
    let manners = manners.unwrap_or_default();
    if manners.down {
        return None;
    }
    let answered = match method {
        "sendTransaction" => send(world, &question["params"]),
        _ => View {
            world,
            state: &world.lock(),
            manners,
            params: &question["params"],
        }
        .answer(method),
    };
    let answer = match answered {
        Ok(result) => json!({"jsonrpc": "2.0", "id": question["id"], "result": result}),
        Err((code, message)) => {
            let error = json!({"code": code, "message": message});
            json!({"jsonrpc": "2.0", "id": question["id"], "error": error})
        }
    };
    Some((200, answer.to_string().into_bytes()))
}

fn refused<T>(code: i64, message: &str) -> Result<T, Refused> {
    Err((code, message.to_owned()))
}

fn text(key: &[u8]) -> String {
    bs58::encode(key).into_string()
}

fn send(world: &World, params: &Value) -> Result<Value, Refused> {
    let raw = BASE64_STANDARD.decode(params[0].as_str().unwrap_or_default());
    let raw = raw.map_err(|_| (-32_602, "not base64".to_owned()))?;
    match world.send(&raw) {
        Ok(id) => Ok(json!(id)),
        Err(why) if why.contains("signature verification") => refused(-32_003, why),
        Err(why) => refused(-32_002, &format!("Transaction simulation failed: {why}")),
    }
}

impl View<'_> {
    fn answer(&self, method: &str) -> Result<Value, Refused> {
        let least = self.option("minContextSlot").as_u64();
        if least.is_some_and(|least| self.newest().slot < least) {
            return refused(-32_016, "Minimum context slot has not been reached");
        }
        match method {
            "getGenesisHash" => Ok(json!(text(&self.state.at(0).hash))),
            "getSlot" => Ok(json!(self.newest().slot)),
            "getFirstAvailableBlock" => Ok(json!(0)),
            "getBlock" => self.block(),
            "getBlocks" => Ok(self.blocks()),
            "getBlockTime" => Ok(json!(self.at(self.number(0))?.time)),
            "getTransaction" => Ok(self.transaction()),
            "getSignatureStatuses" => Ok(self.statuses()),
            "getSignaturesForAddress" => Ok(self.naming()),
            "getAccountInfo" => Ok(self.stated(self.account(&self.params[0]))),
            "getMultipleAccounts" => {
                let keys = self.params[0].as_array().into_iter().flatten();
                Ok(self.stated(keys.map(|key| self.account(key)).collect()))
            }
            "getBalance" => {
                let lamports = key(&self.params[0]).map(|key| self.bank().lamports_of(&key));
                Ok(self.stated(json!(lamports.unwrap_or_default())))
            }
            "getMinimumBalanceForRentExemption" => Ok(json!(match self.number(0) {
                165 => RENT,
                bytes => (128 + bytes) * 6_960,
            })),
            "getEpochInfo" => {
                let (slot, height) = (self.newest().slot, self.newest().height);
                Ok(json!({
                    "epoch": 0, "slotIndex": slot, "slotsInEpoch": 432_000, "absoluteSlot": slot,
                    "blockHeight": height, "transactionCount": null,
                }))
            }
            "getRecentPrioritizationFees" => Ok(self.bids()),
            "simulateTransaction" => Ok(self.stated(self.trial())),
            _ => refused(-32_601, "Method not found"),
        }
    }

    fn option(&self, name: &str) -> &Value {
        let mut all = self.params.as_array().into_iter().flatten();
        all.find(|one| one.is_object())
            .map_or(&Value::Null, |options| &options[name])
    }

    fn number(&self, at: usize) -> u64 {
        self.params[at].as_u64().unwrap_or_default()
    }

    /// The newest block that the provider shows as final.
    fn newest(&self) -> &Mined {
        self.state.at(self.seen().saturating_sub(FINAL))
    }

    /// The newest slot that the provider has.
    fn seen(&self) -> u64 {
        self.state.slot.saturating_sub(self.manners.lag)
    }

    fn bank(&self) -> &Bank {
        &self.newest().after
    }

    fn stated(&self, value: Value) -> Value {
        json!({"context": {"slot": self.newest().slot}, "value": value})
    }

    fn at(&self, slot: u64) -> Result<&Mined, Refused> {
        if slot > self.newest().slot {
            return refused(-32_004, "Block not available");
        }
        match self.state.at(slot) {
            mined if mined.slot == slot => Ok(mined),
            _ => refused(-32_007, "Slot was skipped"),
        }
    }

    fn block(&self) -> Result<Value, Refused> {
        let mined = self.at(self.number(0))?;
        let mut shown = json!({
            "blockhash": text(&mined.hash), "previousBlockhash": text(&mined.previous),
            "parentSlot": mined.parent, "blockTime": mined.time, "blockHeight": mined.height,
        });
        let done = mined.done.iter().filter(|_| !self.manners.blind);
        match self.option("transactionDetails").as_str() {
            Some("none") => {}
            Some("signatures") => shown["signatures"] = done.map(|done| done.sent.id()).collect(),
            _ => shown["transactions"] = done.map(|done| self.shown(done)).collect(),
        }
        Ok(shown)
    }

    fn blocks(&self) -> Value {
        let (from, to) = (self.number(0), self.number(1).min(self.newest().slot));
        let slots = self.state.blocks.iter().map(|mined| mined.slot);
        slots.filter(|slot| (from..=to).contains(slot)).collect()
    }

    /// Those of the newest block.
    fn bids(&self) -> Value {
        let slot = self.newest().slot;
        let shown = |bid| json!({"slot": slot, "prioritizationFee": bid});
        self.state.bids.map(shown).into_iter().collect()
    }

    fn find(&self, id: &Value) -> Option<(&Mined, &Done)> {
        let id = bs58::decode(id.as_str()?).into_vec().ok()?;
        let found = self.state.find(id[..].try_into().ok()?)?;
        (found.0.slot <= self.seen() && !self.manners.blind).then_some(found)
    }

    fn transaction(&self) -> Value {
        let found = self.find(&self.params[0]);
        let found = found.filter(|(mined, _)| mined.slot <= self.newest().slot);
        let Some((mined, done)) = found else {
            return Value::Null;
        };
        let mut shown = self.shown(done);
        shown["slot"] = json!(mined.slot);
        shown["blockTime"] = json!(mined.time);
        shown
    }

    fn statuses(&self) -> Value {
        let ids = self.params[0].as_array().into_iter().flatten();
        let statuses = ids.map(|id| {
            let found = self.find(id).map(|(mined, done)| {
                let is_final = mined.slot <= self.newest().slot;
                let sureness = if is_final { "finalized" } else { "confirmed" };
                json!({"slot": mined.slot, "err": error(done), "confirmationStatus": sureness})
            });
            found.unwrap_or_default()
        });
        let statuses: Value = statuses.collect();
        json!({"context": {"slot": self.seen()}, "value": statuses})
    }

    /// The newest first.
    fn naming(&self) -> Value {
        let Some(account) = key(&self.params[0]) else {
            return json!([]);
        };
        let newest = self.newest().slot;
        let blocks = self.state.blocks.iter().rev();
        let blocks = blocks.filter(|mined| mined.slot <= newest && !self.manners.blind);
        let all = blocks.flat_map(|mined| mined.done.iter().rev().map(move |done| (mined, done)));
        let all: Vec<_> = all.collect();
        let before = self.option("before").as_str();
        let older = match before {
            None => &all[..],
            // Nothing is older than what nobody knows.
            Some(before) => {
                let at = all.iter().position(|(_, done)| done.sent.id() == before);
                at.map_or(&[][..], |at| &all[at + 1..])
            }
        };
        let named = older.iter();
        let named = named.filter(|(_, done)| done.sent.keys.contains(&account));
        let named = named.map(|(mined, done)| {
            json!({"signature": done.sent.id(), "slot": mined.slot, "err": error(done)})
        });
        let limit = self.option("limit").as_u64();
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        named.take(limit.unwrap_or(PAGE)).collect()
    }

    fn account(&self, named: &Value) -> Value {
        let Some(key) = key(named) else {
            return Value::Null;
        };
        let parsed = self.option("encoding") == "jsonParsed";
        let shown = |owner: &Pubkey, data: &[u8]| {
            let data = json!([BASE64_STANDARD.encode(data), "base64"]);
            json!({"owner": owner.to_string(), "data": data, "lamports": 1})
        };
        if key == self.world.rules.token || WRAPPED.contains(&key) {
            return shown(&TOKEN, &mint());
        }
        if let Some((owner, data)) = self.state.fixed.get(&key) {
            return shown(owner, data);
        }
        match self.bank().tokens.get(&key) {
            Some((_, mint, _)) if parsed => {
                let data = json!({"parsed": {"info": {"mint": mint.to_string()}}});
                json!({"owner": TOKEN.to_string(), "data": data})
            }
            Some(held) => shown(&TOKEN, &tokens(held)),
            None if self.bank().lamports_of(&key) > 0 => shown(&SYSTEM, &[]),
            None => Value::Null,
        }
    }

    /// On the newest block that the provider has.
    fn trial(&self) -> Value {
        let raw = self.params[0].as_str().unwrap_or_default();
        let raw = BASE64_STANDARD.decode(raw).unwrap_or_default();
        let failed = |error: Value| json!({"err": error, "logs": [], "unitsConsumed": 0});
        let Some(sent) = Sent::read(&raw) else {
            return failed(json!("SanitizeFailure"));
        };
        let mut programs = self.state.programs.clone();
        programs.closed.clear();
        match self.state.at(self.seen()).after.execute(&sent, &programs) {
            None => failed(json!("InsufficientFundsForFee")),
            Some(done) if !done.success => failed(error(&done)),
            Some(_) => json!({"err": null, "logs": [], "unitsConsumed": UNITS}),
        }
    }

    /// As `getTransaction` shows it.
    fn shown(&self, done: &Done) -> Value {
        let Done { sent, .. } = done;
        let keys: Vec<_> = sent.keys.iter().map(Pubkey::to_string).collect();
        let lamports = |bank: &Bank| -> Vec<u64> {
            let all = sent.keys.iter().map(|key| bank.lamports_of(key));
            all.collect()
        };
        let held = |bank: &Bank| -> Vec<Value> {
            let all = (0_u8..).zip(&sent.keys);
            let all = all.filter_map(|(at, key)| Some((at, bank.tokens.get(key)?)));
            let shown = |(at, (owner, mint, amount)): (u8, &(Pubkey, Pubkey, u64))| {
                json!({
                    "accountIndex": at, "mint": mint.to_string(), "owner": owner.to_string(),
                    "uiTokenAmount": {"amount": amount.to_string(), "decimals": DECIMALS},
                })
            };
            all.map(shown).collect()
        };
        let instruction = |one: &Compiled| {
            json!({
                "programIdIndex": one.program, "accounts": one.accounts, "data": text(&one.data),
                "stackHeight": null,
            })
        };
        let instructions: Vec<_> = sent.instructions.iter().map(instruction).collect();
        json!({
            "version": 0,
            "meta": {
                "err": error(done), "fee": done.fee, "preBalances": lamports(&done.before),
                "postBalances": lamports(&done.after), "innerInstructions": [],
                "preTokenBalances": held(&done.before), "postTokenBalances": held(&done.after),
                "loadedAddresses": {"writable": [], "readonly": []}, "computeUnitsConsumed": UNITS,
            },
            "transaction": {
                "signatures": [sent.id()],
                "message": {
                    "header": {"numRequiredSignatures": sent.signers}, "accountKeys": keys,
                    "instructions": instructions, "recentBlockhash": text(&sent.blockhash),
                },
            },
        })
    }
}

fn error(done: &Done) -> Value {
    match done.success {
        true => Value::Null,
        false => json!({"InstructionError": [0, {"Custom": 1}]}),
    }
}

fn key(named: &Value) -> Option<Pubkey> {
    named.as_str()?.parse().ok()
}

/// A mint of the older token program, without authorities.
fn mint() -> Vec<u8> {
    let mut data = vec![0; MINT];
    data[36..44].copy_from_slice(&u64::MAX.to_le_bytes());
    data[44] = DECIMALS;
    data[45] = 1;
    data
}

fn tokens((owner, mint, amount): &(Pubkey, Pubkey, u64)) -> Vec<u8> {
    let mut data = vec![0; ACCOUNT];
    data[..32].copy_from_slice(mint.as_ref());
    data[32..64].copy_from_slice(owner.as_ref());
    data[64..72].copy_from_slice(&amount.to_le_bytes());
    data[108] = 1;
    data
}
