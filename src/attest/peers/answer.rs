//! Extracts the valid signatures of a peer's answer: those of other signers over our digests, in our domains. Pure: no
//! I/O, no clock.

mod fields;

use std::collections::HashSet;

use serde_json::{Map, Value, value::RawValue};
use vm::{
    B256, EvmAddress,
    protocol::{limits, signature::Signature},
};

use crate::attest::document::SIGNATURES;

/// The most signatures of one answer that are checked.
const MOST_SIGNATURES: usize = limits::SIGNATURES;
/// The most bytes of JSON of a signature, and of an answer's surplus over ours.
const ROOM: usize = 4 << 10;

/// A message to be signed, as answers spell it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelled {
    /// The EIP-712 digest that oracles sign.
    pub digest: B256,
    /// The field of the answer that has the message's fields and `signatures`; `None` where the answer itself has them.
    pub field: Option<&'static str>,
    /// The message's fields.
    pub message: Map<String, Value>,
    /// `None` where signatures do not name their domain.
    pub seal: Option<Seal>,
}

/// A domain as signatures spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The fields of chain and contract.
    pub fields: [&'static str; 2],
    /// The decimal EVM chain id.
    pub chain: String,
    /// The contract on it, `0x` hex.
    pub contract: String,
}

/// A valid signature, with domain and signer in the spelling of who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corroborated {
    /// Chain and contract; `None` where signatures do not name their domain.
    pub domain: Option<[String; 2]>,
    pub signer: String,
    pub signature: Signature,
}

/// Collects valid signatures, one per signer and message. A signer counts that signed every message of an answer.
#[derive(Debug)]
pub struct Tally<'a> {
    messages: &'a [Spelled],
    members: Option<&'a [EvmAddress]>,
    known: HashSet<EvmAddress>,
    /// The peer, with its signature of each message.
    found: Vec<(usize, Vec<Corroborated>)>,
}

impl<'a> Tally<'a> {
    /// Collects signatures over all of `messages`. `own` is our signer, which does not count again. With `members` only
    /// their signatures count.
    pub fn new(
        messages: &'a [Spelled],
        own: EvmAddress,
        members: Option<&'a [EvmAddress]>,
    ) -> Self {
        Self {
            messages,
            members,
            known: HashSet::from([own]),
            found: Vec::new(),
        }
    }

    /// Adds the signatures of an answer (a JSON text) of peer number `peer`.
    pub fn add(&mut self, peer: usize, answer: &[u8]) {
        let said = self.messages.iter().map(|message| message.said(answer));
        let Some(said) = said.collect::<Option<Vec<_>>>() else {
            tracing::warn!(peer, "a peer answers with another message");
            return;
        };
        let mut signers: Vec<Vec<(EvmAddress, Corroborated)>> = Vec::new();
        for (message, signatures) in self.messages.iter().zip(said) {
            let checked = signatures.into_iter().take(MOST_SIGNATURES);
            let checked = checked.map(|signature| message.check(signature));
            let good =
                checked.filter_map(|checked| checked.inspect_err(|why| ignored(peer, why)).ok());
            signers.push(good.collect());
        }
        let Some((first, others)) = signers.split_first() else {
            return;
        };
        for (signer, corroborated) in first {
            let of = |list: &Vec<(EvmAddress, Corroborated)>| {
                let mut list = list.iter();
                list.find_map(|(by, found)| (by == signer).then(|| found.clone()))
            };
            let Some(others) = others.iter().map(of).collect::<Option<Vec<_>>>() else {
                ignored(peer, "not over every message");
                continue;
            };
            match self.admit(*signer) {
                Ok(()) => {
                    let each = [vec![corroborated.clone()], others].concat();
                    self.found.push((peer, each));
                }
                Err(why) => ignored(peer, why),
            }
        }
    }

    /// The number of distinct signers.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether no signer was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The signatures of each message, in the order of the peers.
    pub fn signatures(mut self) -> Vec<Vec<Corroborated>> {
        self.found.sort_by_key(|(peer, _)| *peer);
        let of = |at: usize| {
            let found = self.found.iter();
            found
                .filter_map(|(_, each)| each.get(at).cloned())
                .collect()
        };
        (0..self.messages.len()).map(of).collect()
    }

    fn admit(&mut self, signer: EvmAddress) -> Result<(), &'static str> {
        if self
            .members
            .is_some_and(|members| !members.contains(&signer))
        {
            return Err("not a member");
        }
        if !self.known.insert(signer) {
            return Err("a signer that stands there already");
        }
        Ok(())
    }
}

fn ignored(peer: usize, why: &str) {
    tracing::warn!(peer, why, "the tally ignores a peer's signature");
}

impl Spelled {
    /// The undecoded signatures of an answer that has this message; `None` if it has another one.
    fn said<'b>(&self, answer: &'b [u8]) -> Option<Vec<&'b RawValue>> {
        let answer = str::from_utf8(answer).ok()?;
        let answer = match self.field {
            Some(field) => fields::of(answer, &[field])?.remove(field)?.get(),
            None => answer,
        };
        let own = self.message.keys().map(String::as_str);
        let names: Vec<&str> = own.chain([SIGNATURES]).collect();
        let fields = fields::of(answer, &names)?;
        let is_ours = |(name, own): (&String, &Value)| {
            let room = 2 * own.to_string().len() + ROOM;
            let theirs = fields.get(name.as_str());
            let theirs = theirs.and_then(|theirs| read(theirs, room));
            theirs.is_some_and(|theirs| same(own, &theirs))
        };
        let signatures = fields.get(SIGNATURES).map_or("[]", |list| list.get());
        match self.message.iter().all(is_ours) {
            true => serde_json::from_str(signatures).ok(),
            false => None,
        }
    }

    fn check(&self, signature: &RawValue) -> Result<(EvmAddress, Corroborated), &'static str> {
        let signature = &read(signature, ROOM).ok_or("too long")?;
        let named = match &self.seal {
            Some(seal) => {
                let named = Seal::of(seal.fields, signature).filter(|named| named.is(seal));
                Some(named.ok_or("another domain")?)
            }
            None => None,
        };
        let text = |field: &str| signature[field].as_str().ok_or("a field is missing");
        let claimed = text("oracleSigner")?;
        let signer: EvmAddress = claimed.parse().map_err(|_| "no signer")?;
        let parsed: Signature = text("signature")?.parse().map_err(|_| "malformed")?;
        if parsed.recover(&self.digest) != Ok(signer) {
            return Err("not the claimed signer's over our statement");
        }
        let corroborated = Corroborated {
            domain: named.map(|seal| [seal.chain, seal.contract]),
            signer: claimed.to_owned(),
            signature: parsed,
        };
        Ok((signer, corroborated))
    }
}

impl Seal {
    /// The domain that an object names in `fields`, in its own spelling.
    pub fn of(fields: [&'static str; 2], object: &Value) -> Option<Self> {
        let [chain, contract] = fields.map(|field| &object[field]);
        Some(Self {
            fields,
            chain: chain_text(chain)?,
            contract: contract.as_str()?.to_owned(),
        })
    }

    /// Whether both are one domain: the contract in any case, the chain as text.
    pub fn is(&self, other: &Self) -> bool {
        self.chain == other.chain && self.contract.eq_ignore_ascii_case(&other.contract)
    }
}

/// Whether two values say the same; the case of hex says nothing.
fn same(own: &Value, theirs: &Value) -> bool {
    match (own, theirs) {
        (Value::String(own), Value::String(theirs)) if own.starts_with("0x") => {
            own.eq_ignore_ascii_case(theirs)
        }
        (Value::Array(own), Value::Array(theirs)) => {
            let mut pairs = own.iter().zip(theirs);
            own.len() == theirs.len() && pairs.all(|(own, theirs)| same(own, theirs))
        }
        (Value::Object(own), Value::Object(theirs)) => own
            .iter()
            .all(|(name, own)| theirs.get(name).is_some_and(|theirs| same(own, theirs))),
        _ => own == theirs,
    }
}

/// Decodes a text of at most `most` bytes: a value may take a hundred times the memory of its text.
fn read(text: &RawValue, most: usize) -> Option<Value> {
    let text = Some(text.get()).filter(|text| text.len() <= most)?;
    serde_json::from_str(text).ok()
}

fn chain_text(of: &Value) -> Option<String> {
    match of {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloy::signers::{SignerSync, local::PrivateKeySigner};
    use serde_json::json;
    use vm::{
        U256,
        protocol::message::{Domain, Execution, TypedMessage},
    };

    use super::*;

    fn key(byte: u8) -> PrivateKeySigner {
        PrivateKeySigner::from_bytes(&B256::repeat_byte(byte)).unwrap()
    }

    const CONTRACT: EvmAddress = EvmAddress::repeat_byte(9);

    fn digest() -> B256 {
        execution().digest(&Domain::oracle("2", U256::from(1), CONTRACT))
    }

    fn spelled() -> Spelled {
        let message = json!({
            "idempotencyKey": execution().idempotency_key, "actions": execution().actions,
        });
        Spelled {
            digest: digest(),
            field: Some("execution"),
            message: message.as_object().cloned().unwrap(),
            seal: Some(Seal {
                fields: ["oracleChainId", "oracleContract"],
                chain: "1".into(),
                contract: format!("{CONTRACT:#x}"),
            }),
        }
    }

    fn execution() -> Execution {
        Execution {
            idempotency_key: B256::repeat_byte(7),
            actions: vec![vm::Bytes::from_static(b"\x01")],
        }
    }

    /// A valid answer of these keys, modified by `change`.
    fn answer(keys: &[u8], change: impl Fn(&mut Value)) -> Value {
        let signature = |byte: &u8| {
            let signature = key(*byte).sign_hash_sync(&digest()).unwrap();
            let mut one = json!({
                "oracleChainId": "1", "oracleContract": format!("{CONTRACT:#x}"),
                "oracleSigner": format!("{:#x}", key(*byte).address()),
                "signature": alloy::hex::encode_prefixed(signature.as_bytes()),
            });
            change(&mut one);
            one
        };
        json!({ "execution": {
            "idempotencyKey": execution().idempotency_key, "actions": execution().actions,
            "signatures": keys.iter().map(signature).collect::<Vec<_>>(),
        }})
    }

    type Case = (&'static str, fn(&mut Value));

    fn counted(members: Option<&[EvmAddress]>, answers: &[Value]) -> Vec<String> {
        let own = key(1).address();
        let messages = [spelled()];
        let mut tally = Tally::new(&messages, own, members);
        for (peer, answer) in answers.iter().enumerate().rev() {
            tally.add(peer, answer.to_string().as_bytes());
        }
        let [of_execution] = &tally.signatures()[..] else {
            panic!("one message has one list");
        };
        of_execution.iter().map(|s| s.signer.clone()).collect()
    }

    fn names(keys: &[u8]) -> Vec<String> {
        keys.iter()
            .map(|byte| format!("{:#x}", key(*byte).address()))
            .collect()
    }

    #[test]
    fn signers_count_once_in_the_order_of_the_peers_and_ours_never() {
        let answers = [answer(&[2], |_| {}), answer(&[1, 2, 3], |_| {})];
        assert_eq!(counted(None, &answers[1..]), names(&[2, 3]));
        assert_eq!(counted(None, &answers[..1]), names(&[2]));
        let two = [answer(&[2], |_| {}), answer(&[3], |_| {})];
        assert_eq!(counted(None, &two), names(&[2, 3]));
    }

    #[test]
    fn with_members_nobody_else_counts() {
        let members = [key(3).address()];
        let answers = [answer(&[2, 3], |_| {})];
        assert_eq!(counted(Some(&members), &answers), names(&[3]));
    }

    #[test]
    fn what_is_not_the_claimed_signers_over_our_statement_is_left_out() {
        let cases: &[Case] = &[
            ("another signer", |s| {
                s["oracleSigner"] = names(&[3])[0].clone().into();
            }),
            ("no signer", |s| s["oracleSigner"] = Value::Null),
            ("not an address", |s| s["oracleSigner"] = "0x12".into()),
            ("other domain", |s| s["oracleChainId"] = "2".into()),
            ("other contract", |s| {
                s["oracleContract"] = names(&[3])[0].clone().into();
            }),
            ("no signature", |s| s["signature"] = "0x".into()),
            ("foreign v", |s| {
                let text = s["signature"].as_str().unwrap_or_default().to_owned();
                s["signature"] = format!("{}25", &text[..130]).into();
            }),
            ("high s", |s| {
                let text = s["signature"].as_str().unwrap_or_default().to_owned();
                s["signature"] =
                    format!("{}{}{}", &text[..66], "ff".repeat(32), &text[130..]).into();
            }),
        ];
        for (name, change) in cases {
            assert!(counted(None, &[answer(&[2], change)]).is_empty(), "{name}");
        }
        let mut other = answer(&[2], |_| {});
        other["execution"]["actions"][0] = "0x02".into();
        assert!(counted(None, &[other]).is_empty(), "other actions");
        assert!(counted(None, &[json!({}), json!([]), json!("x")]).is_empty());
    }

    #[test]
    fn what_is_much_longer_than_ours_is_not_looked_at() {
        let (empty, few, many) = ("{\"\":0},", ROOM / 16, ROOM / 7 + 1);
        let filler = |times: usize| {
            let items = empty.repeat(times);
            serde_json::from_str::<Value>(&format!("[{}]", items.trim_end_matches(','))).unwrap()
        };
        for (times, counts) in [(few, true), (many, false)] {
            let answers = [answer(&[2], |signature| signature["more"] = filler(times))];
            assert_eq!(!counted(None, &answers).is_empty(), counts, "{times}");
        }
        let text = |times: usize| serde_json::value::to_raw_value(&filler(times)).unwrap();
        assert!(super::read(&text(few), ROOM).is_some());
        assert!(super::read(&text(many), ROOM).is_none());
    }

    #[test]
    fn how_an_answer_is_written_is_nothing() {
        let answer = answer(&[2], |_| {});
        let messages = [spelled()];
        let mut tally = Tally::new(&messages, key(1).address(), None);
        tally.add(0, serde_json::to_string_pretty(&answer).unwrap().as_bytes());
        assert_eq!(tally.len(), 1);
    }

    #[test]
    fn only_so_many_signatures_of_an_answer_are_looked_at() {
        let mut flood = answer(&[3], |_| {});
        let honest = flood["execution"]["signatures"][0].clone();
        let mut signatures = vec![json!({}); MOST_SIGNATURES];
        signatures.push(honest);
        flood["execution"]["signatures"] = signatures.into();
        assert!(counted(None, &[flood]).is_empty());
    }

    /// An answer with a second message, at its top and without a domain, which `keys` signed.
    fn both(first: &[u8], keys: &[u8]) -> ([Spelled; 2], Value) {
        let digest = B256::repeat_byte(3);
        let message = json!({"chainId": 31337, "request": {"hash": "0xab", "list": ["0xCD", 1]}});
        let second = Spelled {
            digest,
            field: None,
            message: message.as_object().cloned().unwrap(),
            seal: None,
        };
        let mut said = answer(first, |_| {});
        let signature = |byte: &u8| {
            let signature = key(*byte).sign_hash_sync(&digest).unwrap();
            json!({
                "oracleSigner": format!("{:#x}", key(*byte).address()),
                "signature": alloy::hex::encode_prefixed(signature.as_bytes()),
            })
        };
        said["signatures"] = keys.iter().map(signature).collect();
        said["chainId"] = 31337.into();
        said["request"] = json!({"hash": "0xAB", "list": ["0xcd", 1], "more": null});
        ([spelled(), second], said)
    }

    fn counted_twice(messages: &[Spelled], answer: &Value) -> Vec<Vec<String>> {
        let mut tally = Tally::new(messages, key(1).address(), None);
        tally.add(0, answer.to_string().as_bytes());
        let lists = tally.signatures().into_iter();
        let names = |list: Vec<Corroborated>| list.into_iter().map(|one| one.signer).collect();
        lists.map(names).collect()
    }

    #[test]
    fn who_signs_every_message_of_an_answer_counts_and_nobody_else() {
        let (messages, said) = both(&[2, 3, 4], &[4, 2]);
        let wanted = vec![names(&[2, 4]); 2];
        assert_eq!(counted_twice(&messages, &said), wanted);
        let (messages, said) = both(&[2], &[3]);
        assert_eq!(counted_twice(&messages, &said), vec![names(&[]); 2]);
    }

    #[test]
    fn every_field_of_every_message_is_compared() {
        let (messages, said) = both(&[2], &[2]);
        let changes: &[fn(&mut Value)] = &[
            |said| said["chainId"] = "31337".into(),
            |said| said["chainId"] = 31338.into(),
            |said| said["request"]["hash"] = "0xac".into(),
            |said| said["request"]["list"] = json!(["0xcd"]),
            |said| said["request"]["list"] = json!(["0xcd", 2]),
            |said| said["request"] = Value::Null,
            |said| drop(said.as_object_mut().unwrap().remove("request")),
            |said| said["execution"]["actions"] = json!([]),
            |said| drop(said.as_object_mut().unwrap().remove("signatures")),
        ];
        for change in changes {
            let mut other = said.clone();
            change(&mut other);
            let found = counted_twice(&messages, &other);
            assert_eq!(found, vec![names(&[]); 2], "{other}");
        }
    }

    #[test]
    fn a_field_that_stands_twice_is_no_answer() {
        let text = answer(&[2], |_| {}).to_string();
        let twice = format!("{{\"execution\":null,{}", &text[1..]);
        let messages = [spelled()];
        let mut tally = Tally::new(&messages, key(1).address(), None);
        tally.add(0, twice.as_bytes());
        assert!(tally.is_empty());
    }
}
