//! The signatures in a document's answer, against those that the same claim has when it is judged again. Pure: no I/O,
//! no clock.

use serde_json::Value;
use vm::{B256, EvmAddress};

use super::{Flaw, compare, short, signature_flaw, signature_lists, signer_and_signature};

/// Fields that depend on the signer. The judged answer has other values in them, so they are not compared.
const OF_SIGNER: [&str; 2] = ["oracleSigner", "signature"];

/// What is wrong with the signatures in `answer`: each is `signer`'s, over the one of `digests` that the signature at
/// its place in `judged` is over, and has the same domain. Nothing else stands among them. What only one of the two
/// answers has is a difference between them, and no flaw here.
pub fn check(
    (answer, judged): (&Value, &Value),
    signer: EvmAddress,
    digests: &[B256],
) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    Expected { signer, digests }.check("", (answer, judged), &mut flaws);
    flaws
}

/// Whose signatures may stand in an answer, and the digests of its messages.
struct Expected<'a> {
    signer: EvmAddress,
    digests: &'a [B256],
}

impl Expected<'_> {
    fn check(&self, path: &str, (found, judged): (&Value, &Value), flaws: &mut Vec<Flaw>) {
        match (found, judged) {
            (Value::Object(found), Value::Object(judged)) => {
                for (name, found) in found {
                    let pair = (found, judged.get(name).unwrap_or(&Value::Null));
                    let path = format!("{path}/{name}");
                    match signature_lists(name, pair) {
                        Some(lists) => flaws.extend(self.list(&path, lists)),
                        None => self.check(&path, pair, flaws),
                    }
                }
            }
            (Value::Array(found), Value::Array(judged)) => {
                for (at, pair) in found.iter().zip(judged).enumerate() {
                    self.check(&format!("{path}/{at}"), pair, flaws);
                }
            }
            _ => {}
        }
    }

    fn list(&self, path: &str, (found, judged): (&[Value], &[Value])) -> Vec<Flaw> {
        let found = found.iter().enumerate();
        let flaws = found.filter_map(|(at, found)| {
            let pair = (found, judged.get(at).unwrap_or(&Value::Null));
            self.item(&format!("{path}/{at}"), pair)
        });
        flaws.collect()
    }

    fn item(&self, path: &str, (found, judged): (&Value, &Value)) -> Option<Flaw> {
        let place = format!("answer{path}");
        let Some((signer, signature)) = found.as_object().and_then(signer_and_signature) else {
            let found = short(found);
            return Some(Flaw::NoSignature { place, found });
        };
        let flaw = match signer.parse::<EvmAddress>() {
            Ok(signer) if signer == self.signer => {
                signature_flaw(&place, signature, signer, &self.digests_of(judged))
            }
            Ok(found) => Some(Flaw::Signer {
                place,
                found,
                signer: self.signer,
            }),
            Err(_) => Some(Flaw::Signature {
                place,
                why: format!("{signer} is no address"),
            }),
        };
        flaw.or_else(|| {
            let mut first = Vec::new();
            compare(path, (&domain(found), &domain(judged)), 1, &mut first);
            first.pop().map(Flaw::Answer)
        })
    }

    /// The digest that the judged signature at a place is over. All digests where none stands there: the comparison of the
    /// other fields then names the difference.
    fn digests_of(&self, judged: &Value) -> Vec<B256> {
        let Some((signer, signature)) = judged.as_object().and_then(signer_and_signature) else {
            return self.digests.to_vec();
        };
        let Ok(signer) = signer.parse::<EvmAddress>() else {
            return Vec::new();
        };
        let all = self.digests.iter().copied();
        all.filter(|digest| signature_flaw("", signature, signer, &[*digest]).is_none())
            .collect()
    }
}

/// The fields of a signature but for those of its signer.
fn domain(signature: &Value) -> Value {
    let mut domain = signature.clone();
    if let Value::Object(fields) = &mut domain {
        for name in OF_SIGNER {
            fields.remove(name);
        }
    }
    domain
}

#[cfg(test)]
mod tests {
    use alloy::signers::{SignerSync, local::PrivateKeySigner};
    use serde_json::json;

    use super::*;
    use crate::attest::document::remove_signatures;

    /// The keys of the judge, of the document's signer and of a peer.
    const NOBODY: u8 = 1;
    const OWN: u8 = 2;
    const PEER: u8 = 3;

    fn key(byte: u8) -> PrivateKeySigner {
        PrivateKeySigner::from_bytes(&B256::repeat_byte(byte)).unwrap()
    }

    fn address(byte: u8) -> String {
        format!("{:#x}", key(byte).address())
    }

    fn digests() -> [B256; 2] {
        [8, 9].map(B256::repeat_byte)
    }

    fn signature(by: u8, digest: B256) -> Value {
        let made = key(by).sign_hash_sync(&digest).unwrap();
        json!({
            "oracleChainId": "1", "oracleContract": "0xcc", "oracleSigner": address(by),
            "signature": alloy::hex::encode_prefixed(made.as_bytes()),
        })
    }

    /// An answer with two messages, each signed with this key.
    fn answer(by: u8) -> Value {
        let [first, second] = digests().map(|digest| signature(by, digest));
        json!({
            "execution": {"actions": ["0x01"], "signatures": [first]},
            "messages": [{"trigger": {"id": "0x02", "signatures": [second]}}],
        })
    }

    /// What is wrong with an answer whose signer should be [`OWN`].
    fn flaws(found: &Value) -> Vec<String> {
        let flaws = check((found, &answer(NOBODY)), key(OWN).address(), &digests());
        flaws.iter().map(ToString::to_string).collect()
    }

    /// The signatures of the first message.
    fn listed(answer: &mut Value) -> &mut Vec<Value> {
        answer["execution"]["signatures"].as_array_mut().unwrap()
    }

    #[test]
    fn the_signers_signatures_of_the_judged_domain_are_accepted_and_so_are_none() {
        let whole = answer(OWN);
        assert_eq!(flaws(&whole), [""; 0]);
        let mut halved = whole.clone();
        listed(&mut halved).clear();
        assert_eq!(flaws(&halved), [""; 0]);
        let mut none = whole;
        remove_signatures(&mut none);
        assert_eq!(flaws(&none), [""; 0]);
        assert_eq!(flaws(&Value::Null), [""; 0]);
    }

    #[test]
    fn what_stands_beside_the_judged_signature_or_in_it_is_named() {
        type Case = (fn(&mut Value), &'static str);
        let at = "answer/execution/signatures";
        let cases: &[Case] = &[
            (
                |answer| listed(answer)[0]["oracleContract"] = json!("0xdd"),
                r#"/0/oracleContract: "0xdd", judged again "0xcc""#,
            ),
            (
                |answer| listed(answer)[0]["oracleChainId"] = json!(1),
                r#"/0/oracleChainId: 1, judged again "1""#,
            ),
            (
                |answer| listed(answer)[0]["oracleContract"] = Value::Null,
                r#"/0/oracleContract: null, judged again "0xcc""#,
            ),
            (
                |answer| listed(answer)[0]["signatures"] = json!([]),
                "/0/signatures: [], judged again null",
            ),
            (
                |answer| listed(answer)[0]["execution"] = json!({"actions": []}),
                r#"/0/execution: {"actions":[]}, judged again null"#,
            ),
            (
                |answer| listed(answer).insert(0, json!({"oracleContract": "0xdd"})),
                r#"/0: {"oracleContract":"0xdd"} is no signature: it lacks the text oracleSigner"#,
            ),
            (
                |answer| listed(answer)[0]["oracleSigner"] = json!(7),
                r#"/0: {"oracleChainId":"1","oracleContract":"0xcc","oracleSigner":7,"signature":"0x"#,
            ),
            (
                |answer| listed(answer).push(json!("0x")),
                r#"/1: "0x" is no signature: "#,
            ),
            (
                |answer| listed(answer).push(signature(OWN, digests()[0])),
                r#"/1: {"oracleChainId":"1","oracleContract":"0xcc"}, judged again null"#,
            ),
            (
                |answer| listed(answer)[0]["oracleSigner"] = json!("0x12"),
                "/0: the signature cannot be read: 0x12 is no address",
            ),
            (
                |answer| listed(answer)[0]["signature"] = json!("0x12"),
                "/0: the signature cannot be read: ",
            ),
        ];
        for (change, wanted) in cases {
            let mut changed = answer(OWN);
            change(&mut changed);
            let found = flaws(&changed);
            let first = found.first().expect(wanted);
            assert!(first.starts_with(&format!("{at}{wanted}")), "{found:?}");
        }
        let mut deep = answer(OWN);
        deep["messages"][0]["trigger"]["signatures"][0]["oracleContract"] = json!("0xdd");
        let path = "answer/messages/0/trigger/signatures/0/oracleContract";
        let wanted = format!(r#"{path}: "0xdd", judged again "0xcc""#);
        assert_eq!(flaws(&deep), [wanted]);
    }

    #[test]
    fn a_peers_signature_and_one_over_another_message_are_not_the_signers() {
        let (own, peer) = (address(OWN), address(PEER));
        let mut both = answer(OWN);
        listed(&mut both).push(signature(PEER, digests()[0]));
        let place = "answer/execution/signatures";
        let wanted = format!("{place}/1: the signature is of {peer}, not of {own}");
        assert_eq!(flaws(&both), [wanted]);
        let mut swapped = answer(OWN);
        listed(&mut swapped)[0] = signature(OWN, digests()[1]);
        let found = flaws(&swapped);
        let is_named = |flaw: &String| {
            flaw.starts_with(&format!("{place}/0: the signature is of 0x"))
                && flaw.ends_with(&format!(", not of {own}"))
        };
        assert!(found.len() == 1 && found.iter().all(is_named), "{found:?}");
    }
}
