//! One signed statement with its evidence as a JSON document, and the checks of it that need no chain (guide:
//! evidence). Pure: no I/O, no clock.

mod signatures;
mod votes;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vm::{
    B256, EvmAddress,
    evidence::{Read, Rule},
    protocol::signature::{Signature, signature_hex},
};

pub use self::votes::agreeing;

/// What the documents of this version are called.
pub const FORMAT: &str = "intentd-attestation/1";
/// The JSON Schema of [`Document`], as it is printed.
pub const SCHEMA: &str = include_str!("document.schema.json");

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
    /// The rules by which blocks counted as final, by chain; empty where an earlier version signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
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
    #[error("{place}: {found} is no signature: it lacks the text oracleSigner or signature")]
    NoSignature { place: String, found: String },
    #[error("the request was too large to keep: it cannot be judged again")]
    Request,
    #[error(
        "reads/{at}: {agree} providers of {chain} agree about {what}, {required} are required by {by}"
    )]
    Votes {
        at: usize,
        chain: String,
        what: &'static str,
        agree: usize,
        required: usize,
        by: &'static str,
    },
    #[error("reads/{at}: provider {provider} has two votes")]
    Twice { at: usize, provider: String },
    #[error("reads/{at}: nobody's word for {what} of {chain}")]
    Unvoted {
        at: usize,
        chain: String,
        what: &'static str,
    },
    #[error(
        "reads/{at}: what {chain} says of {what} never changes, and differs from reads/{other}"
    )]
    Changed {
        at: usize,
        chain: String,
        what: &'static str,
        other: usize,
    },
    #[error("reads/{at}: chain {chain} is not configured")]
    Chain { at: usize, chain: String },
    #[error("rules/{at}: {found}, judged again by {wanted}")]
    Rule {
        at: usize,
        found: String,
        wanted: String,
    },
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
    /// Checks format and signature.
    pub fn check_format_and_signature(&self) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        if self.format != FORMAT {
            flaws.push(Flaw::Format(self.format.clone()));
        }
        match &self.signature {
            None => flaws.push(Flaw::Unsigned),
            Some(text) => flaws.extend(signature_flaw(
                "signature",
                text,
                self.signer,
                &[self.digest],
            )),
        }
        flaws
    }

    /// Checks each item of each list of signatures in the answer: it is the document's signer's, over the digest that
    /// the item at the same place of `judged` is over (over any of `digests` where `judged` has none there), and its
    /// other fields are equal to that item's. A list may be empty.
    pub fn check_signatures(&self, judged: &Value, digests: &[B256]) -> Vec<Flaw> {
        let answer = self.answer.as_ref().unwrap_or(&Value::Null);
        signatures::check((answer, judged), self.signer, digests)
    }

    /// Where the rules differ from those that were `applied` when the same claim was judged again. A document without
    /// rules is not compared.
    pub fn check_rules(&self, applied: &[Rule]) -> Option<Flaw> {
        let kept = &self.rules;
        let mut all = 0..kept.len().max(applied.len());
        let at = all.find(|at| !kept.is_empty() && kept.get(*at) != applied.get(*at))?;
        let word = |rules: &[Rule]| rules.get(at).map_or("none".to_owned(), Rule::to_string);
        let (found, wanted) = (word(kept), word(applied));
        Some(Flaw::Rule { at, found, wanted })
    }

    /// Where the answer differs from `judged`, the answer that the same claim has when it is judged again. Lists of
    /// signatures are not compared ([`Document::check_signatures`]).
    pub fn check_answer(&self, judged: &Value) -> Option<Flaw> {
        let mut first = differences(self.answer.as_ref()?, judged, 1);
        first.pop().map(Flaw::Answer)
    }
}

/// What is wrong with a signature that should be `signer`'s over one of `digests`.
fn signature_flaw(place: &str, text: &str, signer: EvmAddress, digests: &[B256]) -> Option<Flaw> {
    let place = place.to_owned();
    let unreadable = |why: &dyn ToString| Flaw::Signature {
        place: place.clone(),
        why: why.to_string(),
    };
    let bytes = match signature_hex(text) {
        Ok(bytes) => bytes,
        Err(error) => return Some(unreadable(&error)),
    };
    let made = match Signature::from_bytes(&bytes) {
        Ok(made) => made,
        Err(error) => return Some(unreadable(&error)),
    };
    let found = digests.iter();
    let found: Vec<EvmAddress> = found
        .filter_map(|digest| made.recover(digest).ok())
        .collect();
    match found.first() {
        _ if found.contains(&signer) => None,
        None => Some(unreadable(&"no key made it")),
        Some(first) => Some(Flaw::Signer {
            found: *first,
            place,
            signer,
        }),
    }
}

/// The texts of signer and signature of an object that is a signature.
fn signer_and_signature(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    text("oracleSigner").zip(text("signature"))
}

/// The field of signatures.
pub const SIGNATURES: &str = "signatures";

/// The first `most` places where two answers differ, lists of signatures aside, in the order of their paths. Lists of
/// different lengths are one place.
pub fn differences(found: &Value, wanted: &Value, most: usize) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", (found, wanted), most, &mut all);
    all
}

fn compare(path: &str, (found, wanted): (&Value, &Value), most: usize, all: &mut Vec<Difference>) {
    if all.len() >= most {
        return;
    }
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let pair = (&found[name], &wanted[name]);
                if signature_lists(name, pair).is_none() {
                    compare(&format!("{path}/{name}"), pair, most, all);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, pair) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}/{at}"), pair, most, all);
            }
        }
        (one, other) if one == other => {}
        (one, other) => all.push(Difference {
            path: path.to_owned(),
            found: short(one),
            wanted: short(other),
        }),
    }
}

/// The lists of signatures that two answers have in the field `name`; `None` where it is no such list in one of them.
fn signature_lists<'a>(
    name: &str,
    pair: (&'a Value, &'a Value),
) -> Option<(&'a [Value], &'a [Value])> {
    match pair {
        (Value::Array(one), Value::Array(other)) if name == SIGNATURES => {
            Some((one.as_slice(), other.as_slice()))
        }
        _ => None,
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
pub fn remove_signatures(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    SIGNATURES => *value = Value::Array(Vec::new()),
                    _ => remove_signatures(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_signatures),
        _ => {}
    }
}

/// Puts the document's signature in place of the one that `nobody` made over the same digest, and takes out those that
/// `nobody` made over others, wherever they stand in `answer`.
pub fn put_signature(answer: &mut Value, nobody: EvmAddress, document: &Document) {
    match answer {
        Value::Object(fields) => {
            if let Some(signature) = &document.signature
                && is_over(fields, nobody, document.digest)
            {
                let signer = format!("{:#x}", document.signer);
                fields.insert("oracleSigner".into(), signer.into());
                fields.insert("signature".into(), signature.as_str().into());
            }
            fields
                .values_mut()
                .for_each(|value| put_signature(value, nobody, document));
        }
        Value::Array(items) => {
            items.retain_mut(|value| {
                put_signature(value, nobody, document);
                let by = value
                    .as_object()
                    .and_then(signer_and_signature)
                    .map(|(signer, _)| signer.parse());
                by != Some(Ok(nobody))
            });
        }
        _ => {}
    }
}

/// Whether an object is a signature of `signer` over `digest`.
fn is_over(fields: &Map<String, Value>, signer: EvmAddress, digest: B256) -> bool {
    let Some((by, signature)) = signer_and_signature(fields) else {
        return false;
    };
    by.parse() == Ok(signer) && signature_flaw("", signature, signer, &[digest]).is_none()
}

#[cfg(test)]
mod tests {
    use alloy::sol_types::SolCall;
    use serde_json::json;
    use vm::{
        Address, Bytes, ChainId, Deposit, Execution, Finality, FinalityTag, Head, Payment,
        PaymentKind, Receipt, Refusal, RouterCall, Transaction, U256, WithdrawalStatus,
        evidence::{Answer, Question, Said, Vote},
        testing,
    };

    use super::*;
    use crate::hub;

    fn address() -> Address {
        Address::from_parts("0xAa", vec![0xaa])
    }

    /// Everything that a transaction can be and have.
    fn transactions() -> [Transaction; 4] {
        let block = testing::block(9, 0);
        let payment = |kind| Payment {
            index: 1,
            kind,
            recipient: address(),
            currency: address(),
            amount: U256::from(31),
        };
        let kinds = [
            PaymentKind::Transfer,
            PaymentKind::TransferBy(address()),
            PaymentKind::Router(address()),
            PaymentKind::Direct { order: block.hash },
        ];
        let whole = Receipt {
            sender: Some(address()),
            deposits: Ok(vec![Deposit {
                index: 0,
                depository: address(),
                depositor: address(),
                currency: address(),
                amount: U256::ZERO,
                id: format!("0x{}", "Ab".repeat(32)).into(),
                named_by_other: true,
                by_depositor: true,
            }]),
            payments: kinds.map(payment).into(),
            calls: vec![RouterCall {
                router: address(),
                to: address(),
                data: Bytes::new(),
                value: U256::MAX,
            }],
            executions: vec![Execution {
                depository: address(),
                id: block.hash,
            }],
            references: vec!["0x01".into()],
            outer_call: Some(block.hash),
            block: block.clone(),
        };
        let unread = Receipt {
            deposits: Err(Refusal("ambiguous".into())),
            ..testing::receipt(block.clone())
        };
        [
            Transaction::Missing,
            Transaction::Failed(testing::failure(block)),
            Transaction::Succeeded(whole),
            Transaction::Succeeded(unread),
        ]
    }

    /// Every kind of question with all that can be answered.
    fn answered() -> Vec<(Question, Answer)> {
        let (block, tx) = (testing::block(9, 0), testing::tx(7));
        let (owner, bytes) = (address(), Bytes::from(vec![1]));
        let head = |tagged| Head {
            block: block.clone(),
            tagged,
        };
        let asked = Question::transaction(&tx, &head(None));
        let settled = || Question::settled(&head(None));
        let withdrawal = |tx| Question::withdrawal(&bytes, tx, &block);
        let key = || Question::owner_key(&owner);
        let ended = Answer::Withdrawal(WithdrawalStatus::Executed);
        let mut all = vec![
            (Question::Head { fresh: true }, Answer::Head(head(None))),
            (Question::Head { fresh: false }, Answer::Head(head(Some(3)))),
            (Question::Contains(block.clone()), Answer::Contains(true)),
            (asked.clone(), Answer::Large(block.hash)),
            (settled(), Answer::Settled(None)),
            (settled(), Answer::Settled(Some(block.clone()))),
            (withdrawal(None), ended.clone()),
            (withdrawal(Some(&tx)), ended),
            (Question::sequence(&owner, &block), Answer::Sequence(5)),
            (
                Question::view(&owner, &bytes, &block),
                Answer::View(bytes.clone()),
            ),
            (key(), Answer::OwnerKey(None)),
            (key(), Answer::OwnerKey(Some(bytes.clone()))),
            (Question::outputs(&bytes), Answer::Outputs(true)),
        ];
        let found = transactions().map(|found| Answer::Transaction(Box::new(found)));
        all.extend(found.map(|found| (asked.clone(), found)));
        all
    }

    fn document() -> Document {
        let (hash, chain) = (B256::repeat_byte(1), ChainId::new("base"));
        let said = [
            Said::Answer(hash),
            Said::Failed("why".into()),
            Said::Late,
            Said::SetAside,
        ];
        let votes = said.map(|said| Vote {
            provider: "a".into(),
            said,
        });
        let reads = answered().into_iter().map(|(question, answer)| Read {
            chain: chain.clone(),
            question,
            answer,
            required: 1,
            votes: votes.to_vec(),
        });
        Document {
            format: FORMAT.into(),
            statement: "deposit/base/0x1".into(),
            digest: hash,
            signed_at: 9,
            signer: EvmAddress::repeat_byte(0xab),
            signature: Some(format!("0x{}", "1b".repeat(65))),
            void: Some("gone".into()),
            version: "1.2.3".into(),
            configuration: hash,
            request: Asked {
                target: "/attestations/transfer/v1".into(),
                key: Some("label".into()),
                body: "{}".into(),
            },
            reads: reads.collect(),
            rules: vec![Rule {
                chain: chain.clone(),
                finality: Finality {
                    blocks: 1,
                    seconds: 2,
                    tag: Some(FinalityTag::Safe),
                },
                fast: false,
            }],
            answer: Some(json!({"execution": {}})),
        }
    }

    #[test]
    fn lists_of_signatures_are_not_compared_and_what_else_has_their_name_is() {
        let judged = json!({"execution": {"actions": ["0x01"], "signatures": [{"a": 1}]}});
        let flaw = |change: &dyn Fn(&mut Value)| {
            let mut answer = judged.clone();
            change(&mut answer);
            let document = Document {
                answer: Some(answer),
                ..document()
            };
            document.check_answer(&judged).map(|flaw| flaw.to_string())
        };
        let execution = || json!({"actions": ["0x02"], "signatures": []});
        for list in [json!([]), json!([{"a": 2}, {}])] {
            let found = flaw(&|answer| answer["execution"]["signatures"] = list.clone());
            assert_eq!(found, None, "{list}");
        }
        for other in [json!({"execution": execution()}), json!("0x"), Value::Null] {
            let found = flaw(&|answer| answer["execution"]["signatures"] = other.clone());
            let wanted =
                format!(r#"answer/execution/signatures: {other}, judged again [{{"a":1}}]"#);
            assert_eq!(found, Some(wanted));
        }
        for added in [json!({"execution": execution()}), json!([execution()])] {
            let found = flaw(&|answer| answer["signatures"] = added.clone());
            let wanted = format!("answer/signatures: {added}, judged again null");
            assert_eq!(found, Some(wanted));
        }
    }

    /// A read of a chain that needs one vote, with the digests that its providers said.
    fn read(question: Question, answer: &Answer, said: &[B256]) -> Read {
        let votes = said.iter().enumerate().map(|(at, digest)| Vote {
            provider: at.to_string().into(),
            said: Said::Answer(*digest),
        });
        Read {
            chain: ChainId::new("base"),
            question,
            answer: answer.clone(),
            required: 1,
            votes: votes.collect(),
        }
    }

    /// What is wrong with the votes of these reads.
    fn miscounted(reads: Vec<Read>) -> Vec<String> {
        let document = Document {
            reads,
            ..document()
        };
        let flaws = document.check_votes(|_| Some(0));
        flaws.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_head_is_the_one_of_all_providers_where_they_show_the_same() {
        let head = Answer::Head(Head {
            block: testing::block(9, 0),
            tagged: None,
        });
        let [own, one, two] = [head.digest(), B256::repeat_byte(1), B256::repeat_byte(2)];
        let found =
            |said: &[B256]| miscounted(vec![read(Question::Head { fresh: false }, &head, said)]);
        for said in [&[own][..], &[own, own], &[own, one], &[one, two]] {
            assert_eq!(found(said), [""; 0], "{said:?}");
        }
        for said in [&[one][..], &[one, one]] {
            let wanted =
                "reads/0: 0 providers of base agree about the head, 1 are required by the document";
            assert_eq!(found(said), [wanted], "{said:?}");
        }
    }

    #[test]
    fn what_never_changes_is_the_same_in_each_read_of_it() {
        let call = Bytes::from(hub::HUBCall {}.abi_encode());
        let [one, two] = [1_u8, 2].map(|byte| Answer::View(vec![byte].into()));
        let asked = |of: &Address, at| Question::view(of, &call, &testing::block(at, 0));
        let voted = || read(asked(&address(), 9), &one, &[one.digest()]);
        let other = Address::from_parts("0xBb", vec![0xbb]);
        for unvoted in [
            read(asked(&address(), 8), &one, &[]),
            read(asked(&other, 9), &two, &[]),
        ] {
            assert_eq!(miscounted(vec![voted(), unvoted]), [""; 0]);
        }
        let unvoted = read(asked(&address(), 8), &two, &[]);
        let wanted =
            "reads/1: what base says of a contract's state never changes, and differs from reads/0";
        assert_eq!(miscounted(vec![voted(), unvoted]), [wanted]);
    }

    /// The paths of all objects in `value`, which is at `path`.
    fn objects(path: &str, value: &Value) -> Vec<String> {
        let inside: Vec<_> = match value {
            Value::Object(fields) => {
                let fields = fields.iter();
                fields.map(|(name, value)| (name.clone(), value)).collect()
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| (at.to_string(), item)).collect()
            }
            _ => Vec::new(),
        };
        let inside = inside.into_iter();
        let inside = inside.flat_map(|(name, value)| objects(&format!("{path}/{name}"), value));
        let own = value.is_object().then(|| path.to_owned());
        own.into_iter().chain(inside).collect()
    }

    #[test]
    fn the_schema_describes_every_document_and_nothing_else() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert!(jsonschema::meta::is_valid(&schema));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let whole = serde_json::to_value(document()).unwrap();
        let complaints = validator.iter_errors(&whole);
        let complaints: Vec<_> = complaints.map(|error| error.to_string()).collect();
        assert_eq!(complaints, [""; 0]);
        let least = Document {
            signature: None,
            void: None,
            rules: Vec::new(),
            answer: None,
            ..document()
        };
        assert!(validator.is_valid(&serde_json::to_value(least).unwrap()));
        // No object has more, but for the oracle's answer.
        let all = objects("", &whole);
        let own = all.iter().filter(|path| !path.starts_with("/answer"));
        for path in own {
            let mut more = whole.clone();
            more.pointer_mut(path).unwrap()["more"] = json!(true);
            assert!(!validator.is_valid(&more), "{path}");
        }
        assert!(all.len() > 100, "{all:?}");
        // No question has an answer of another kind.
        let kind = |value: &Value| value.as_object().unwrap().keys().next().cloned();
        let reads = whole["reads"].as_array().unwrap();
        for (at, read) in reads.iter().enumerate() {
            for answer in reads.iter().map(|read| &read["answer"]) {
                let (asked, found) = (kind(&read["question"]), kind(answer));
                let large =
                    asked.as_deref() == Some("transaction") && found.as_deref() == Some("large");
                let mut mixed = whole.clone();
                mixed["reads"][at]["answer"] = answer.clone();
                let fits = asked == found || large;
                assert_eq!(validator.is_valid(&mixed), fits, "{asked:?} {found:?}");
            }
        }
    }
}
