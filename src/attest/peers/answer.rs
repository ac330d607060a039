//! What of a peer's answer counts: a signature of its own over our digest, under our domain.
//! Pure: no I/O, no clock.

use std::collections::HashSet;

use serde_json::Value;
use vm::{
    B256, EvmAddress,
    protocol::{
        message::{Domain, Execution, TypedMessage},
        signature::Signature,
    },
};

/// The most signatures of one answer that are looked at.
const MOST_SIGNATURES: usize = 64;

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
