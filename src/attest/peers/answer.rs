//! Extracts the valid signatures of a peer's answer: those of other signers over our digest, in our domain. Pure: no
//! I/O, no clock.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use vm::{
    B256, EvmAddress,
    protocol::{
        limits,
        message::{Domain, Execution, TypedMessage},
        signature::Signature,
    },
};

/// The most signatures of one answer that are checked.
const MOST_SIGNATURES: usize = limits::SIGNATURES;
/// The most bytes of JSON of a signature, and of an answer's surplus over ours.
const ROOM: usize = 4 << 10;

/// The domain of executions, as answers spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    pub domain: Domain,
    /// Decimal EVM chain id of the settlement chain.
    pub chain: String,
    /// The oracle contract on it, `0x` hex.
    pub contract: String,
}

/// A peer's valid signature, with domain and signer in the peer's spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corroborated {
    pub chain: String,
    pub contract: String,
    pub signer: String,
    pub signature: Signature,
}

/// The relevant parts of an answer, undecoded, because a part that is much longer than ours is not decoded.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    execution: Said<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    #[serde(borrow)]
    idempotency_key: &'a RawValue,
    #[serde(borrow)]
    actions: &'a RawValue,
    #[serde(borrow, default)]
    signatures: Vec<&'a RawValue>,
}

/// Collects valid signatures, one per signer.
#[derive(Debug)]
pub struct Tally<'a> {
    digest: B256,
    /// Idempotency key and actions in the spelling of answers.
    message: Value,
    reference: Value,
    members: Option<&'a [EvmAddress]>,
    known: HashSet<EvmAddress>,
    found: Vec<(usize, Corroborated)>,
}

impl<'a> Tally<'a> {
    /// Collects signatures over `execution` in the domain of `seal`. `own` is our signer, which does not count again.
    /// With `members` only their signatures count.
    pub fn new(
        execution: &Execution,
        seal: &Seal,
        own: EvmAddress,
        members: Option<&'a [EvmAddress]>,
    ) -> Self {
        let message = serde_json::json!({
            "idempotencyKey": execution.idempotency_key, "actions": execution.actions,
        });
        let reference = serde_json::json!({
            "oracleChainId": seal.chain, "oracleContract": seal.contract,
        });
        Self {
            digest: execution.digest(&seal.domain),
            message,
            reference,
            members,
            known: HashSet::from([own]),
            found: Vec::new(),
        }
    }

    /// Adds the signatures of an answer (a JSON text) of peer number `peer`.
    pub fn add(&mut self, peer: usize, answer: &[u8]) {
        let answer = serde_json::from_slice::<Answer<'_>>(answer).ok();
        let said = answer.map(|answer| answer.execution);
        let Some(said) = said.filter(|said| self.is_ours(said)) else {
            tracing::warn!(peer, "a peer answers with another execution");
            return;
        };
        for signature in said.signatures.into_iter().take(MOST_SIGNATURES) {
            match self.check(signature) {
                Ok(corroborated) => self.found.push((peer, corroborated)),
                Err(why) => tracing::warn!(peer, why, "the tally ignores a peer's signature"),
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

    /// The signatures in the order of the peers.
    pub fn signatures(mut self) -> Vec<Corroborated> {
        self.found.sort_by_key(|(peer, _)| *peer);
        self.found.into_iter().map(|(_, found)| found).collect()
    }

    fn is_ours(&self, said: &Said<'_>) -> bool {
        let same = |text: &RawValue, field: &str| {
            let own = &self.message[field];
            read(text, 2 * own.to_string().len() + ROOM).as_ref() == Some(own)
        };
        same(said.idempotency_key, "idempotencyKey") && same(said.actions, "actions")
    }

    fn check(&mut self, signature: &RawValue) -> Result<Corroborated, &'static str> {
        let signature = &read(signature, ROOM).ok_or("too long")?;
        if !same_domain(signature, &self.reference) {
            return Err("another domain");
        }
        let text = |field: &str| signature[field].as_str().ok_or("a field is missing");
        let claimed = text("oracleSigner")?;
        let signer: EvmAddress = claimed.parse().map_err(|_| "no signer")?;
        let parsed: Signature = text("signature")?.parse().map_err(|_| "malformed")?;
        if parsed.recover(&self.digest) != Ok(signer) {
            return Err("not the claimed signer's over our statement");
        }
        if self
            .members
            .is_some_and(|members| !members.contains(&signer))
        {
            return Err("not a member");
        }
        if !self.known.insert(signer) {
            return Err("a signer that stands there already");
        }
        Ok(Corroborated {
            chain: chain_text(signature).unwrap_or_default(),
            contract: text("oracleContract")?.to_owned(),
            signer: claimed.to_owned(),
            signature: parsed,
        })
    }
}

/// Decodes a text of at most `most` bytes: a value may take a hundred times the memory of its text.
fn read(text: &RawValue, most: usize) -> Option<Value> {
    let text = Some(text.get()).filter(|text| text.len() <= most)?;
    serde_json::from_str(text).ok()
}

/// Whether a signature object names the same contract (in any case) on the same chain (as text) as `reference`.
pub fn same_domain(signature: &Value, reference: &Value) -> bool {
    let contract = |of: &Value| of["oracleContract"].as_str().map(str::to_ascii_lowercase);
    let same = |a: Option<String>, b: Option<String>| a.is_some() && a == b;
    same(contract(signature), contract(reference))
        && same(chain_text(signature), chain_text(reference))
}

fn chain_text(of: &Value) -> Option<String> {
    match &of["oracleChainId"] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloy::signers::{SignerSync, local::PrivateKeySigner};
    use serde_json::json;
    use vm::U256;

    use super::*;

    fn key(byte: u8) -> PrivateKeySigner {
        PrivateKeySigner::from_bytes(&B256::repeat_byte(byte)).unwrap()
    }

    fn seal() -> Seal {
        let contract = EvmAddress::repeat_byte(9);
        Seal {
            domain: Domain::oracle("2", U256::from(1), contract),
            chain: "1".into(),
            contract: format!("{contract:#x}"),
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
        let digest = execution().digest(&seal().domain);
        let signature = |byte: &u8| {
            let signature = key(*byte).sign_hash_sync(&digest).unwrap();
            let mut one = json!({
                "oracleChainId": "1", "oracleContract": seal().contract,
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
        let mut tally = Tally::new(&execution(), &seal(), own, members);
        for (peer, answer) in answers.iter().enumerate().rev() {
            tally.add(peer, answer.to_string().as_bytes());
        }
        tally.signatures().into_iter().map(|s| s.signer).collect()
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
        let mut tally = Tally::new(&execution(), &seal(), key(1).address(), None);
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
}
