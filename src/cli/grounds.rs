//! The grounds of a statement in words: what was read, what each provider said, the rules that were applied, and what
//! follows.

mod signed;

use std::collections::HashMap;

use hyper::StatusCode;
use serde_json::Value;
use vm::{
    B256, Block, Head, Transaction,
    evidence::{Answer, Question, Read, Rule, Said, Vote},
};

use crate::{
    config::{Config, Mistakes, Names},
    run::rules::Rules,
};

/// The configuration of whoever judges without a key.
pub fn config(variables: impl IntoIterator<Item = (String, String)>) -> (Config, Mistakes) {
    let mut variables: HashMap<_, _> = variables.into_iter().collect();
    // Nothing is signed with it, and a configuration without a key is a mistake of whoever serves.
    for key in [Names::ORACLE, Names::SOLVER] {
        for name in [key.module, key.gcp_version, key.aws_key, key.aws_region] {
            variables.remove(name);
        }
    }
    let nobody = format!("0x{:064x}", 1);
    for name in ["ECDSA_PRIVATE_KEY", "SOLVER_PRIVATE_KEY"] {
        let named = name == "ECDSA_PRIVATE_KEY" || variables.contains_key("INTEGRATOR_HTTP_PORT");
        if named {
            variables.insert(name.into(), nobody.clone());
        }
    }
    Config::draft(variables)
}

/// Lines as one text. What others wrote in a line neither ends it nor changes how others look: such characters are shown
/// as `\u009b` is.
pub fn text(lines: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<_> = lines.into_iter().map(|line| visible(&line)).collect();
    lines.join("\n")
}

fn visible(line: &str) -> String {
    let mut all = String::with_capacity(line.len());
    for one in line.chars() {
        let directs = matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match one.is_control() || directs {
            true => all.push_str(&format!("\\u{:04x}", u32::from(one))),
            false => all.push(one),
        }
    }
    all
}

/// A request in a line, and in another one the label of its caller's key, where there was one.
pub fn request(target: &str, body: &str, key: Option<&str>) -> Vec<String> {
    let request = match body {
        "" => format!("request     POST {target}, too large to keep"),
        body => format!("request     POST {target} {body}"),
    };
    let caller = key.map(|label| format!("caller      {label}"));
    [request].into_iter().chain(caller).collect()
}

/// What a statement rests on.
pub struct Grounds<'a> {
    pub rules: &'a Rules,
    pub reads: &'a [Read],
    /// The rules besides finality that were met, in words.
    pub met: &'a [String],
    /// The oracle's answer.
    pub answer: &'a Value,
}

impl Grounds<'_> {
    /// Why nothing would be signed.
    pub fn unsigned(&self, status: StatusCode) -> String {
        let text = |name: &str| self.answer.get(name).and_then(Value::as_str);
        match (status.is_success(), text("code"), text("message")) {
            (true, ..) => "signed      nothing would be: there is nothing to sign".to_owned(),
            (false, Some(code), Some(message)) => {
                format!(
                    "signed      nothing would be: {} {code}: {message}",
                    status.as_u16()
                )
            }
            _ => format!(
                "signed      nothing would be: {} {}",
                status.as_u16(),
                self.answer
            ),
        }
    }

    /// What was read, the rules of this configuration, and what is signed.
    pub fn lines(&self) -> Vec<String> {
        self.told(None)
    }

    /// What was read, the rules that were kept with the statement, and what is signed.
    pub fn lines_by(&self, kept: &[Rule]) -> Vec<String> {
        self.told(Some(kept))
    }

    fn told(&self, kept: Option<&[Rule]>) -> Vec<String> {
        let mut lines = Vec::new();
        for read in self.reads {
            lines.push(format!("read        {}: {}", read.chain, said(read)));
            lines.push(match read.votes.len() {
                0 => "              read for an earlier claim; it never changes".to_owned(),
                all => format!(
                    "              required {} of {all} providers",
                    read.required
                ),
            });
            lines.extend(read.votes.iter().map(|vote| voted(read, vote)));
            lines.extend(self.rule(read, kept));
        }
        let met = self.met.iter();
        lines.extend(met.map(|rule| format!("rule        {rule}")));
        lines.extend(signed::lines(self.answer));
        lines
    }

    /// The finality that the block of a read had, and the rule for it: of `kept`, or else of this configuration.
    fn rule(&self, read: &Read, kept: Option<&[Rule]>) -> Option<String> {
        let (block, head) = judged(read)?;
        let mut heads = self.reads.iter().filter_map(|read| match &read.answer {
            Answer::Head(head) => Some((&read.chain, head)),
            _ => None,
        });
        let (_, head) =
            heads.find(|(chain, found)| **chain == read.chain && found.block.hash == head)?;
        let mut kept_rules = kept.into_iter().flatten();
        if let Some(rule) = kept_rules.find(|rule| rule.chain == read.chain) {
            return Some(format!("rule        {}", finality(rule, block, head)));
        }
        let mut opened = self.rules.chains.opened();
        let spec = opened.find(|opened| opened.chain.spec.id == read.chain);
        let now = spec.map(|opened| {
            let own = Rule {
                chain: read.chain.clone(),
                finality: opened.chain.spec.finality.clone(),
                fast: false,
            };
            finality(&own, block, head)
        });
        match (kept, now) {
            (None, now) => now.map(|now| format!("rule        {now}")),
            (Some(_), Some(now)) => Some(format!("rule        not kept; by that of now {now}")),
            (Some(_), None) => Some("rule        not kept".to_owned()),
        }
    }
}

/// The block of a read that has to be final, and the hash of the head from which it was seen.
fn judged(read: &Read) -> Option<(&Block, B256)> {
    match (&read.question, &read.answer) {
        (Question::Transaction { head, .. }, Answer::Transaction(found)) => match &**found {
            Transaction::Succeeded(receipt) => Some((&receipt.block, *head)),
            Transaction::Failed(failure) => Some((&failure.block, *head)),
            Transaction::Missing => None,
        },
        (Question::Settled { head }, Answer::Settled(Some(block))) => Some((block, *head)),
        _ => None,
    }
}

fn finality(rule: &Rule, block: &Block, head: &Head) -> String {
    let depth = head.block.number.saturating_sub(block.number);
    let age = head.block.time.saturating_sub(block.time);
    let tag = match (rule.tag(), head.tagged) {
        (None, _) => String::new(),
        (Some(name), at) => {
            let at = at.map_or("none".to_owned(), |at| at.to_string());
            format!(", {name} block {at}")
        }
    };
    let fast = if rule.fast { ", fast mode" } else { "" };
    let met = if rule.finality.met(block, head) {
        "final"
    } else {
        "not final"
    };
    let (blocks, seconds) = (rule.finality.blocks, rule.finality.seconds);
    format!("{depth} of {blocks} blocks deep, {age} of {seconds} s old{tag}{fast}: {met}")
}

fn said(read: &Read) -> String {
    match (&read.question, &read.answer) {
        (Question::Head { .. }, Answer::Head(head)) => {
            format!("head {} {}", head.block.number, head.block.hash)
        }
        (Question::Transaction { transaction, .. }, Answer::Transaction(found)) => {
            format!("transaction {}: {}", transaction.text, shown(found))
        }
        (Question::Transaction { transaction, .. }, Answer::Large(digest)) => {
            format!(
                "transaction {}: too large to keep, {digest}",
                transaction.text
            )
        }
        (Question::Settled { .. }, Answer::Settled(Some(block))) => {
            format!("final block {} {}", block.number, block.hash)
        }
        (Question::Settled { .. }, Answer::Settled(None)) => "no final block".to_owned(),
        (Question::Contains(block), Answer::Contains(holds)) => {
            let holds = if *holds {
                "in the chain"
            } else {
                "not in the chain"
            };
            format!("block {} {}: {holds}", block.number, block.hash)
        }
        (Question::Withdrawal { .. }, Answer::Withdrawal(status)) => {
            format!("withdrawal {status:?}")
        }
        (Question::Sequence { owner, .. }, Answer::Sequence(number)) => {
            format!("{number} transactions of {owner}")
        }
        (Question::View { to, data, .. }, Answer::View(bytes)) => {
            format!("call {to} {data}: {bytes}")
        }
        (Question::OwnerKey { owner }, Answer::OwnerKey(Some(key))) => {
            format!("the owner's key of {owner}: {key}")
        }
        (Question::OwnerKey { owner }, Answer::OwnerKey(None)) => {
            format!("no owner's key of {owner}")
        }
        (Question::Outputs { said }, Answer::Outputs(same)) => {
            let are = if *same { "are" } else { "are not" };
            let bytes = said.len();
            format!(
                "the outputs to spend {are} what is said of them ({bytes} bytes, in the evidence)"
            )
        }
        (question, answer) => format!("{}: {}", question.subject(), answer.digest()),
    }
}

fn shown(found: &Transaction) -> String {
    match found {
        Transaction::Missing => "not in the chain".to_owned(),
        Transaction::Failed(failure) => format!("failed in block {}", failure.block.number),
        Transaction::Succeeded(receipt) => {
            let deposits = match &receipt.deposits {
                Ok(deposits) => format!("{} deposits", deposits.len()),
                Err(why) => why.to_string(),
            };
            format!(
                "block {} {} on {}, {deposits}, {} payments",
                receipt.block.number,
                receipt.block.hash,
                receipt.block.parent,
                receipt.payments.len(),
            )
        }
    }
}

fn voted(read: &Read, vote: &Vote) -> String {
    let said = match &vote.said {
        Said::Answer(digest) if *digest == read.answer.digest() => format!("agrees, {digest}"),
        Said::Answer(digest) => match read.question {
            Question::Head { .. } => format!("has another tip, {digest}"),
            _ => format!("DIFFERS, {digest}"),
        },
        Said::Failed(why) => format!("fails: {why}"),
        Said::Late => "had not answered yet".to_owned(),
        Said::SetAside => "is set aside and was not asked".to_owned(),
    };
    format!("              {}: {said}", vote.provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong for whoever judges, with the integrator API and these variables.
    fn mistakes(set: &[(&str, &str)]) -> Mistakes {
        let fixed = [
            ("ENVIRONMENT", "testnets.prod"),
            ("INTEGRATOR_HTTP_PORT", "3001"),
        ];
        let all = fixed.iter().chain(set);
        config(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).1
    }

    #[test]
    fn who_judges_needs_no_key_wherever_the_daemons_keys_are() {
        let version = "projects/p/locations/eu/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
        let market = ("MARKET_FILE", "market.json");
        let gcp = [
            market,
            ("SIGNING_MODULE", "gcp-kms"),
            ("GCP_KMS_KEY_VERSION", version),
            ("SOLVER_SIGNING_MODULE", "gcp-kms"),
            ("SOLVER_GCP_KMS_KEY_VERSION", version),
        ];
        let aws = [
            market,
            ("SIGNING_MODULE", "aws-kms"),
            ("AWS_KMS_SIGNER_KEY_ID", "k"),
            ("AWS_KMS_SIGNER_KEY_REGION", "eu-west-1"),
            ("SOLVER_SIGNING_MODULE", "aws-kms"),
            ("SOLVER_AWS_KMS_KEY_ID", "k"),
            ("SOLVER_AWS_KMS_KEY_REGION", "eu-west-1"),
        ];
        let raw = [market, ("SOLVER_PRIVATE_KEY", "0x02")];
        for set in [&gcp[..], &aws, &raw, &[market]] {
            assert_eq!(mistakes(set), Mistakes::default(), "{set:?}");
        }
        // All else is still told.
        assert!(mistakes(&gcp[1..]).concern("MARKET_FILE"));
        let module = "SOLVER_ED25519_SIGNING_MODULE";
        assert!(mistakes(&[market, (module, "other")]).concern(module));
    }

    #[test]
    fn outputs_are_counted_in_bytes_and_not_written_out() {
        let read = |same| Read {
            chain: vm::ChainId::new("base"),
            question: Question::outputs(&vec![7; 16_000].into()),
            answer: Answer::Outputs(same),
            required: 1,
            votes: Vec::new(),
        };
        for (same, are) in [(true, "are"), (false, "are not")] {
            let line = said(&read(same));
            let expected = format!(
                "the outputs to spend {are} what is said of them (16000 bytes, in the evidence)"
            );
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn what_others_wrote_ends_no_line_and_moves_no_cursor() {
        let lines = ["void  a\nb\u{1b}[2K", "\u{9b}1F\u{202e}é", ""].map(str::to_owned);
        let expected = "void  a\\u000ab\\u001b[2K\n\\u009b1F\\u202eé\n";
        assert_eq!(text(lines), expected);
    }
}
