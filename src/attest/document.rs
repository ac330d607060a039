//! One signed statement with its evidence as a JSON document, and the checks of it that need no chain (guide:
//! evidence). Pure: no I/O, no clock.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vm::{
    B256, EvmAddress,
    evidence::{Question, Read, Said},
    protocol::signature::{Signature, signature_hex},
};

use crate::hub;

/// What the documents of this version are called.
pub const FORMAT: &str = "intentd-attestation/1";

/// A signed statement, and why it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// [`FORMAT`].
    pub format: String,
    /// The statement's key in the journal.
    pub statement: String,
    /// The EIP-712 digest of the signed message.
    pub digest: B256,
    /// Unix seconds of the first request.
    pub signed_at: u64,
    pub signer: EvmAddress,
    /// `0x` hex of 65 bytes: r, s, v; absent while signing is halted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Why the statement holds no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The version of the daemon.
    pub version: String,
    /// The digest of the rules by which it judged.
    pub configuration: B256,
    pub request: Asked,
    pub reads: Vec<Read>,
    /// The oracle's answer with this signature; its peers' are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// The request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asked {
    /// Path and query.
    pub target: String,
    /// The label of the caller's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// As it was sent; empty where it was too large to keep.
    pub body: String,
}

/// Why a document proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("format {0} is not known: this version reads {FORMAT}")]
    Format(String),
    #[error("the document has no signature: signing is halted")]
    Unsigned,
    #[error("{place}: the signature cannot be read: {why}")]
    Signature { place: String, why: String },
    #[error("{place}: the signature is of {found:#x}, not of {signer:#x}")]
    Signer {
        place: String,
        found: EvmAddress,
        signer: EvmAddress,
    },
    #[error("the request was too large to keep: it cannot be judged again")]
    Request,
    #[error("reads/{at}: {agree} providers of {chain} agree about {what}, {required} are required")]
    Votes {
        at: usize,
        chain: String,
        what: &'static str,
        agree: usize,
        required: usize,
    },
    #[error("reads/{at}: provider {provider} has two votes")]
    Twice { at: usize, provider: String },
    #[error("reads/{at}: nobody's word for {what} of {chain}")]
    Unvoted {
        at: usize,
        chain: String,
        what: &'static str,
    },
    #[error("reads/{at}: chain {chain} is not configured")]
    Chain { at: usize, chain: String },
    #[error("answer{}: {}, judged again {}", .0.path, .0.found, .0.wanted)]
    Answer(Difference),
}

/// A place where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field.
    pub path: String,
    /// What stands there, shortened.
    pub found: String,
    pub wanted: String,
}

impl Document {
    /// Checks format and signatures, those of the answer included.
    pub fn check_signatures(&self) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        if self.format != FORMAT {
            flaws.push(Flaw::Format(self.format.clone()));
        }
        match &self.signature {
            None => flaws.push(Flaw::Unsigned),
            Some(text) => flaws.extend(self.check_signature("signature", text, self.signer)),
        }
        if let Some(answer) = &self.answer {
            self.check_signed("answer", answer, &mut flaws);
        }
        flaws
    }

    fn check_signature(&self, place: &str, text: &str, signer: EvmAddress) -> Option<Flaw> {
        let place = place.to_owned();
        let bytes = match signature_hex(text) {
            Ok(bytes) => bytes,
            Err(error) => {
                let why = error.to_string();
                return Some(Flaw::Signature { place, why });
            }
        };
        let found = Signature::from_bytes(&bytes).and_then(|made| made.recover(&self.digest));
        match found {
            Ok(found) if found == signer => None,
            Ok(found) => Some(Flaw::Signer {
                place,
                found,
                signer,
            }),
            Err(error) => {
                let why = error.to_string();
                Some(Flaw::Signature { place, why })
            }
        }
    }

    /// Checks every signature in `value`: objects with `oracleSigner` and `signature`.
    fn check_signed(&self, place: &str, value: &Value, flaws: &mut Vec<Flaw>) {
        match value {
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                if let (Some(signer), Some(signature)) = (text("oracleSigner"), text("signature")) {
                    let flaw = match signer.parse() {
                        Ok(signer) => self.check_signature(place, signature, signer),
                        Err(_) => Some(Flaw::Signature {
                            place: place.to_owned(),
                            why: format!("{signer} is no address"),
                        }),
                    };
                    flaws.extend(flaw);
                }
                for (name, value) in fields {
                    self.check_signed(&format!("{place}/{name}"), value, flaws);
                }
            }
            Value::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    self.check_signed(&format!("{place}/{at}"), value, flaws);
                }
            }
            _ => {}
        }
    }

    /// Checks that enough providers said each answer. `required` tells how many a chain needs by the reader's own
    /// configuration.
    pub fn check_votes(&self, required: impl Fn(&str) -> Option<usize>) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        for (at, read) in self.reads.iter().enumerate() {
            let chain = read.chain.to_string();
            match required(&chain) {
                Some(required) => flaws.extend(check_read(at, read, required)),
                None => flaws.push(Flaw::Chain { at, chain }),
            }
        }
        flaws
    }

    /// Where the answer differs from `judged`, the answer that the same claim has when it is judged again. Signatures
    /// are not compared.
    pub fn check_answer(&self, judged: &Value) -> Option<Flaw> {
        differing("", self.answer.as_ref()?, judged).map(Flaw::Answer)
    }
}

fn check_read(at: usize, read: &Read, required: usize) -> Option<Flaw> {
    let (chain, what) = (read.chain.to_string(), read.question.subject());
    if read.votes.is_empty() {
        return (!hub::is_constant(&read.question)).then_some(Flaw::Unvoted { at, chain, what });
    }
    let mut providers = HashSet::new();
    for vote in &read.votes {
        if !providers.insert(&vote.provider) {
            let provider = vote.provider.to_string();
            return Some(Flaw::Twice { at, provider });
        }
    }
    let digest = read.answer.digest();
    let agrees = |said: &Said| match (&read.question, said) {
        // Each provider has its own tip; the agreed one is the highest that enough of them can know.
        (Question::Head { .. }, Said::Answer(_)) => true,
        (_, Said::Answer(said)) => *said == digest,
        _ => false,
    };
    let agree = read.votes.iter().filter(|vote| agrees(&vote.said)).count();
    let required = required.max(1);
    (agree < required).then_some(Flaw::Votes {
        at,
        chain,
        what,
        agree,
        required,
    })
}

/// Which signatures an answer has is not compared.
const SIGNATURES: &str = "signatures";

/// The first place where two answers differ, signatures aside.
pub fn differing(path: &str, found: &Value, wanted: &Value) -> Option<Difference> {
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let compared = names.into_iter().filter(|name| *name != SIGNATURES);
            let mut each = compared.filter_map(|name| {
                let of = |fields: &Map<String, Value>| fields.get(name).cloned();
                let (one, other) = (of(one).unwrap_or_default(), of(other).unwrap_or_default());
                differing(&format!("{path}/{name}"), &one, &other)
            });
            each.next()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| differing(&format!("{path}/{at}"), one, other))
        }
        (one, other) if one == other => None,
        (one, other) => Some(Difference {
            path: path.to_owned(),
            found: short(one),
            wanted: short(other),
        }),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Takes all signatures out of an answer.
pub fn unsigned(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    SIGNATURES => *value = Value::Array(Vec::new()),
                    _ => unsigned(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unsigned),
        _ => {}
    }
}

/// Puts a signature and its signer in place of those that `nobody` made, wherever they stand in `answer`.
pub fn signed_by(answer: &mut Value, nobody: EvmAddress, (signer, signature): (EvmAddress, &str)) {
    match answer {
        Value::Object(fields) => {
            let by_nobody = fields.get("oracleSigner").and_then(Value::as_str);
            if by_nobody.is_some_and(|by| by.parse() == Ok(nobody)) {
                fields.insert("oracleSigner".into(), format!("{signer:#x}").into());
                fields.insert("signature".into(), signature.into());
            }
            for value in fields.values_mut() {
                signed_by(value, nobody, (signer, signature));
            }
        }
        Value::Array(items) => {
            for value in items {
                signed_by(value, nobody, (signer, signature));
            }
        }
        _ => {}
    }
}
