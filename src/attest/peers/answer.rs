//! What of a peer's answer counts: a signature of its own over our digest, under our domain.
//! Pure: no I/O, no clock.

use std::collections::HashSet;

use serde_json::Value;
use vm::{
    B256, EvmAddress,
    protocol::{
        limits,
        message::{Domain, Execution, TypedMessage},
        signature::Signature,
    },
};

/// The most signatures of one answer that are looked at.
const MOST_SIGNATURES: usize = limits::SIGNATURES;

/// Where executions are valid, as the answers spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    pub domain: Domain,
    /// Decimal EVM chain id of the settlement chain.
    pub chain: String,
    /// The oracle contract on it, `0x` hex.
    pub contract: String,
}

/// A peer's signature that holds, in the peer's own spelling of domain and signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corroborated {
    pub chain: String,
    pub contract: String,
    pub signer: String,
    pub signature: Signature,
}

/// Collects what counts, each signer once.
#[derive(Debug)]
pub struct Tally<'a> {
    digest: B256,
    /// Idempotency key and actions as answers spell them.
    message: Value,
    reference: Value,
    members: Option<&'a [EvmAddress]>,
    known: HashSet<EvmAddress>,
    found: Vec<(usize, Corroborated)>,
}

impl<'a> Tally<'a> {
    /// Signatures over `execution` under `seal`; `own` is ours and never counts again. With
    /// `members`, nobody else counts.
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

    /// Adds what counts of the answer of the `peer`-th peer.
    pub fn add(&mut self, peer: usize, answer: &Value) {
        let execution = &answer["execution"];
        let same = |field: &str| execution[field] == self.message[field];
        if !same("idempotencyKey") || !same("actions") {
            tracing::warn!(peer, "a peer does not say what we say");
            return;
        }
        let signatures = execution["signatures"].as_array();
        for signature in signatures.into_iter().flatten().take(MOST_SIGNATURES) {
            match self.check(signature) {
                Ok(corroborated) => self.found.push((peer, corroborated)),
                Err(why) => tracing::warn!(peer, why, "a peer's signature is left out"),
            }
        }
    }

    /// How many distinct signers were found.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether no signer was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// In the order of the peers.
    pub fn signatures(mut self) -> Vec<Corroborated> {
        self.found.sort_by_key(|(peer, _)| *peer);
        self.found.into_iter().map(|(_, found)| found).collect()
    }

    fn check(&mut self, signature: &Value) -> Result<Corroborated, &'static str> {
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

/// Whether a signature object is for the same contract (in any case) on the same chain (as text) as
/// `reference`.
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

    /// An honest answer of these keys, spoilt by `change`.
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
            tally.add(peer, answer);
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
    fn only_so_many_signatures_of_an_answer_are_looked_at() {
        let mut flood = answer(&[3], |_| {});
        let honest = flood["execution"]["signatures"][0].clone();
        let mut signatures = vec![json!({}); MOST_SIGNATURES];
        signatures.push(honest);
        flood["execution"]["signatures"] = signatures.into();
        assert!(counted(None, &[flood]).is_empty());
    }
}
