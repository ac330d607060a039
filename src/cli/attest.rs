//! `intentd attest`: what the oracle would sign, judged in this process.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use super::grounds::{self, Grounds};
use crate::{
    attest::evidence::Claim,
    config::Config,
    run::{
        judging::{Judged, Judging, Statement},
        rules::Rules,
    },
};

/// The route of deposits.
pub const DEPOSITS: &str = "/attestations/depository-deposits/v1";

#[derive(Debug, Args)]
pub struct Attest {
    /// The chain of the deposits.
    #[arg(required_unless_present = "route")]
    chain: Option<String>,
    /// The transaction of the deposits.
    #[arg(required_unless_present = "route")]
    transaction: Option<String>,
    /// Another claim: the route that it is for (`/attestations/solver-fills/v1`); needs --body.
    #[arg(long, requires = "body", conflicts_with_all = ["chain", "transaction"])]
    route: Option<String>,
    /// The file with the claim's JSON.
    #[arg(long, requires = "route")]
    body: Option<PathBuf>,
    /// Judge the claim as of the caller whose key has this label in API_KEYS: `force` and some fast deposits need a key.
    #[arg(long, value_name = "LABEL")]
    key: Option<String>,
    /// Print the oracle's answer and everything that was read as JSON.
    #[arg(long)]
    json: bool,
}

impl Attest {
    pub async fn answer(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<String> {
        let claim = match (&self.route, &self.body, &self.chain, &self.transaction) {
            (Some(route), Some(body), ..) => {
                let read = std::fs::read(body);
                Claim {
                    target: route.clone(),
                    body: read.with_context(|| body.display().to_string())?.into(),
                    key: None,
                }
            }
            (.., Some(chain), Some(transaction)) => deposits(chain, transaction),
            _ => bail!("name a chain and a transaction, or a route and a body"),
        };
        let (config, mistakes) = grounds::config(variables);
        let rules = Rules::of(&config, mistakes)?;
        let claim = Claim {
            key: self.caller(&config)?,
            ..claim
        };
        let judged = judge(&config, &rules, &claim).await?;
        if self.json {
            let whole = json!({
                "status": judged.status.as_u16(),
                "statements": judged.statements.iter().map(stated).collect::<Vec<_>>(),
                "answer": judged.answer,
                "reads": judged.reads,
            });
            return Ok(serde_json::to_string_pretty(&whole)?);
        }
        Ok(would_be(&rules, &claim, &judged))
    }

    /// The label of the caller's key. What is no label may be a key itself, and is not repeated.
    fn caller(&self, config: &Config) -> anyhow::Result<Option<String>> {
        let Some(label) = &self.key else {
            return Ok(None);
        };
        let mut known = config.api_keys.iter().flatten();
        match known.any(|key| key.label == *label) {
            true => Ok(Some(label.clone())),
            false => bail!("--key: no key in API_KEYS has this label"),
        }
    }
}

fn stated(one: &Statement) -> Value {
    json!({"statement": one.key, "digest": one.digest})
}

/// The claim that all deposits of a transaction be credited.
pub fn deposits(chain: &str, transaction: &str) -> Claim {
    let body = json!({"chainId": chain, "transactionId": transaction});
    Claim {
        target: DEPOSITS.into(),
        body: body.to_string().into_bytes().into(),
        key: None,
    }
}

/// Judges `claim` over the chains.
pub async fn judge(config: &Config, rules: &Rules, claim: &Claim) -> anyhow::Result<Judged> {
    Ok(Judging::over_chains(config, rules)?.judge(claim).await?)
}

/// What would be signed, in words.
pub fn would_be(rules: &Rules, claim: &Claim, judged: &Judged) -> String {
    let grounds = Grounds {
        rules,
        reads: &judged.reads,
        met: &judged.met,
        answer: &judged.answer,
    };
    let mut lines = Vec::new();
    for one in &judged.statements {
        lines.push(format!("statement   {}", one.key));
        lines.push(format!("digest      {}", one.digest));
    }
    lines.push(match judged.statements.is_empty() {
        false => "signed      not yet: this is what would be".to_owned(),
        true => grounds.unsigned(judged.status),
    });
    lines.extend(grounds::request(
        &claim.target,
        &String::from_utf8_lossy(&claim.body),
        claim.key.as_deref(),
    ));
    lines.extend(match judged.statements.first() {
        Some(one) => grounds.lines_by(&one.rules),
        None => grounds.lines(),
    });
    grounds::text(lines)
}
