//! The grounds of a statement in words: what was read, what each provider said, the rules that were applied, and what
//! follows.

use std::collections::HashMap;

use hyper::StatusCode;
use serde_json::Value;
use vm::{
    Block, Finality, FinalityTag, Head, Transaction,
    evidence::{Answer, Question, Read, Said, Vote},
    protocol::action::Action,
};

use crate::{
    config::{Config, Mistakes},
    run::Rules,
};

/// The configuration of whoever judges without a key.
pub fn config(variables: impl IntoIterator<Item = (String, String)>) -> (Config, Mistakes) {
    let mut variables: HashMap<_, _> = variables.into_iter().collect();
    // Nothing is signed with it, and a configuration without a key is a mistake of whoever serves.
    for name in ["SIGNING_MODULE", "SOLVER_SIGNING_MODULE"] {
        variables.remove(name);
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

/// A request in a line.
pub fn request(target: &str, body: &str) -> String {
    match body {
        "" => format!("request     POST {target}, too large to keep"),
        body => format!("request     POST {target} {body}"),
    }
}

/// What a statement rests on.
pub struct Grounds<'a> {
    pub rules: &'a Rules,
    pub reads: &'a [Read],
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

    /// What was read, the rules, and what follows.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for read in self.reads {
            lines.push(format!("read        {}: {}", read.chain, said(read)));
            lines.extend(read.votes.iter().map(|vote| voted(read, vote)));
            if read.votes.is_empty() {
                lines.push("              read for an earlier claim; it never changes".to_owned());
            }
            lines.extend(self.rule(read));
        }
        let actions = self
            .answer
            .pointer("/execution/actions")
            .and_then(Value::as_array);
        let actions = actions.into_iter().flatten().filter_map(Value::as_str);
        lines.extend(actions.map(action));
        lines
    }

    /// The finality that a transaction's block had, and what the chain requires.
    fn rule(&self, read: &Read) -> Option<String> {
        let (Question::Transaction { head, .. }, Answer::Transaction(found)) =
            (&read.question, &read.answer)
        else {
            return None;
        };
        let block = match &**found {
            Transaction::Succeeded(receipt) => &receipt.block,
            Transaction::Failed(failure) => &failure.block,
            Transaction::Missing => return None,
        };
        let mut heads = self.reads.iter().filter_map(|read| match &read.answer {
            Answer::Head(head) => Some((&read.chain, head)),
            _ => None,
        });
        let (_, head) =
            heads.find(|(chain, found)| **chain == read.chain && found.block.hash == *head)?;
        let mut opened = self.rules.chains.opened();
        let opened = opened.find(|opened| opened.chain.spec.id == read.chain)?;
        Some(finality(&opened.chain.spec.finality, block, head))
    }
}

fn finality(rule: &Finality, block: &Block, head: &Head) -> String {
    let depth = head.block.number.saturating_sub(block.number);
    let age = head.block.time.saturating_sub(block.time);
    let tag = match (rule.tag, head.tagged) {
        (None, _) => String::new(),
        (Some(tag), at) => {
            let name = match tag {
                FinalityTag::Safe => "safe",
                FinalityTag::Finalized => "finalized",
            };
            let at = at.map_or("none".to_owned(), |at| at.to_string());
            format!(", {name} block {at}")
        }
    };
    let met = if rule.met(block, head) {
        "final"
    } else {
        "not final"
    };
    let (blocks, seconds) = (rule.blocks, rule.seconds);
    format!("rule        {depth} of {blocks} blocks deep, {age} of {seconds} s old{tag}: {met}")
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

fn action(text: &str) -> String {
    let decoded = alloy::hex::decode(text).ok();
    let decoded = decoded.and_then(|bytes| Action::decode(&bytes).ok());
    match decoded {
        Some(Action::Mint { to, token, amount }) => {
            format!("action      mint {amount} of token {token} to {to:#x}")
        }
        Some(Action::FastMint {
            to, token, amount, ..
        }) => {
            format!("action      mint {amount} of token {token} to {to:#x}, fast")
        }
        Some(Action::Burn {
            from,
            token,
            amount,
        }) => {
            format!("action      burn {amount} of token {token} of {from:#x}")
        }
        Some(Action::Transfer {
            from,
            to,
            token,
            amount,
        }) => format!("action      transfer {amount} of token {token} from {from:#x} to {to:#x}"),
        None => format!("action      {text}"),
    }
}
