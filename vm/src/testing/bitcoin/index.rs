//! What an index answers (the HTTP API of Blockstream's Esplora).

use alloy::hex;
use bitcoin::{
    OutPoint, ScriptBuf, Transaction, TxOut,
    consensus::{encode::serialize_hex, serialize},
};
use serde_json::{Value, json};

use super::{
    rpc::script,
    view::{Inclusion, View},
    world::World,
};
use crate::testing::Manners;

/// The most unspent outputs of an account that an index lists by default.
pub const LISTED: usize = 500;
/// Transactions of a page.
const PAGE: usize = 25;

/// A status and a body.
pub type Answer = (u16, Vec<u8>);

fn text(text: impl ToString) -> Answer {
    (200, text.to_string().into_bytes())
}

fn missing() -> Answer {
    (404, b"Not found".to_vec())
}

/// The answer to a path, or to a transaction that is posted.
pub fn answer(world: &World, manners: Manners, (path, body): (&str, &[u8])) -> Answer {
    if path == "tx" {
        let raw = hex::decode(body).unwrap_or_default();
        return match world.send(&raw) {
            Ok(txid) => text(txid),
            Err(why) => {
                let said = format!(r#"sendrawtransaction RPC error: {{"message":"{why}"}}"#);
                (400, said.into_bytes())
            }
        };
    }
    let state = world.lock();
    let view = View {
        state: &state,
        manners,
    };
    let parts: Vec<_> = path.split('/').collect();
    view.page(&parts).unwrap_or_else(missing)
}

impl View<'_> {
    /// `None` where the index does not know the thing.
    fn page(&self, parts: &[&str]) -> Option<Answer> {
        match parts {
            ["blocks", "tip", "hash"] => self.hash(self.tip()).map(text),
            ["block-height", height] => self.hash(height.parse().ok()?).map(text),
            ["block", hash] => self.header(hash).map(text),
            ["block", hash, "raw"] if !self.manners.blind => {
                Some((200, serialize(self.block_of(hash)?.0)))
            }
            ["fee-estimates"] => Some(text(json!({"2": self.state.rate}))),
            ["tx", txid] => {
                let (found, place) = self.find(txid)?;
                Some(text(self.shown(found, place)))
            }
            ["tx", txid, "raw"] => Some((200, serialize(self.find(txid)?.0))),
            ["tx", txid, "hex"] => Some(text(serialize_hex(self.find(txid)?.0))),
            ["tx", txid, "status"] => {
                let place = self.find(txid).map_or(Inclusion::Waits, |(_, place)| place);
                Some(text(self.status(place)))
            }
            ["tx", txid, "outspend", vout] => {
                let at = OutPoint::new(txid.parse().ok()?, vout.parse().ok()?);
                self.output(&at)?;
                Some(text(self.outspend(&at)))
            }
            ["address", address, "utxo"] => Some(self.listed(&script(address)?)),
            ["address", address, "txs", "mempool"] => {
                let script = script(address)?;
                let all = self.waiting().into_iter();
                let own = all.filter(|one| self.touches(one, &script));
                let shown: Value = own.map(|one| self.shown(one, Inclusion::Waits)).collect();
                Some(text(shown))
            }
            ["address", address, "txs", "chain"] => self.mined(&script(address)?, None).map(text),
            ["address", address, "txs", "chain", below] => {
                self.mined(&script(address)?, Some(below)).map(text)
            }
            _ => None,
        }
    }

    fn header(&self, hash: &str) -> Option<Value> {
        let (block, height) = self.block_of(hash)?;
        let parent = (height > 0).then_some(block.header.prev_blockhash);
        Some(json!({
            "id": block.block_hash(), "height": height, "timestamp": block.header.time,
            "previousblockhash": parent,
        }))
    }

    fn status(&self, place: Inclusion) -> Value {
        let Inclusion::Block(height) = place else {
            return json!({"confirmed": false});
        };
        json!({"confirmed": true, "block_height": height, "block_hash": self.hash(height)})
    }

    fn outspend(&self, at: &OutPoint) -> Value {
        match self.spender(at) {
            None => json!({"spent": false}),
            Some((txid, place)) => {
                json!({"spent": true, "txid": txid, "status": self.status(place)})
            }
        }
    }

    /// Refused where there are too many.
    fn listed(&self, script: &ScriptBuf) -> Answer {
        let unspent = self.unspent(script);
        if unspent.len() > self.state.listed {
            return (400, b"Too many unspent transaction outputs".to_vec());
        }
        let listed = unspent.into_iter().map(|it| {
            json!({
                "txid": it.at.txid, "vout": it.at.vout, "value": it.output.value.to_sat(),
                "status": self.status(Inclusion::Block(it.height)),
            })
        });
        text(listed.collect::<Value>())
    }

    /// A page of an account's transactions in blocks, the newest first, `below` one of them.
    fn mined(&self, script: &ScriptBuf, below: Option<&str>) -> Option<Value> {
        let blocks = self.state.ledger.blocks().rev();
        let blocks = blocks.filter(|(height, _)| *height <= self.tip() && !self.manners.blind);
        let all = blocks.flat_map(|(height, block)| {
            let all = block.txdata.iter().rev();
            all.map(move |one| (one, height))
        });
        let own: Vec<_> = all.filter(|(one, _)| self.touches(one, script)).collect();
        let from = match below {
            None => 0,
            Some(below) => {
                let is_it =
                    |(one, _): &(&Transaction, u64)| one.compute_txid().to_string() == below;
                own.iter().position(is_it)? + 1
            }
        };
        let page = own.iter().skip(from).take(PAGE);
        Some(
            page.map(|(one, height)| self.shown(one, Inclusion::Block(*height)))
                .collect(),
        )
    }

    fn shown(&self, one: &Transaction, place: Inclusion) -> Value {
        let output = |output: &TxOut| {
            let script = output.script_pubkey.to_hex_string();
            json!({"scriptpubkey": script, "value": output.value.to_sat()})
        };
        let inputs = one.input.iter().map(|input| {
            let at = input.previous_output;
            let witness: Vec<_> = input.witness.iter().map(hex::encode).collect();
            json!({
                "txid": at.txid, "vout": at.vout, "is_coinbase": at.is_null(), "witness": witness,
                "scriptsig": input.script_sig.to_hex_string(),
                "prevout": self.output(&at).map(|(it, _)| output(it)),
            })
        });
        let inputs: Vec<_> = inputs.collect();
        let outputs: Vec<_> = one.output.iter().map(output).collect();
        json!({
            "txid": one.compute_txid(), "vin": inputs, "vout": outputs,
            "status": self.status(place),
        })
    }
}
