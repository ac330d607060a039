//! `intentd explain`: why a statement was signed.

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use vm::{
    B256, Transaction,
    evidence::{self, Read},
};

use super::{
    asked, attest,
    grounds::{self, Grounds},
    unexpected,
};
use crate::{
    admin::{Answer, Question, Reason},
    attest::{
        document::{Asked, Document, FORMAT, SCHEMA, put_signature},
        evidence::{Claim, Evidence},
        statement::{DEPOSIT, canonical},
    },
    config::Config,
    format::iso,
    run::{
        judging::{Judged, Judging},
        rules::Rules,
    },
    solver::settle::outcome_claim::OutcomeClaim,
};

/// Who explains cannot tell which other claims are about a transaction that ends no order of the daemon's.
const OTHERS: &str = "others      whether it fills, refunds or executes anything: intentd attest --route <route> --body <claim>";

#[derive(Debug, Args)]
pub struct Explain {
    /// A statement's key (`deposit/<chain>/<tx>/…`), or a chain, with a transaction.
    #[arg(required_unless_present = "schema")]
    statement: Option<String>,
    /// The transaction that statements are about.
    transaction: Option<String>,
    /// Print one JSON document for each statement, which `intentd verify` reads.
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of these documents, and ask nobody.
    #[arg(long, exclusive = true)]
    schema: bool,
}

impl Explain {
    pub async fn answer(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<String> {
        if self.schema {
            return Ok(SCHEMA.trim_end().to_owned());
        }
        let named = self.statement.as_deref().context("name a statement")?;
        let (config, mistakes) = grounds::config(variables);
        let rules = Rules::of(&config, mistakes)?;
        let keys = self.keys(named, &config, &rules).await?;
        let mut told = Vec::new();
        for key in &keys {
            for reason in reasons(&config, key).await? {
                told.push(self.told(&config, &rules, key, reason).await?);
            }
        }
        if !told.is_empty() {
            return Ok(told.join(if self.json { "\n" } else { "\n\n" }));
        }
        let (stands, (chain, transaction)) = match &self.transaction {
            Some(transaction) => ("about this transaction", (named, &**transaction)),
            None => {
                let unknown =
                    || format!("nothing was signed under {named}: intentd attest judges claims");
                let deposits = deposits(&rules, named);
                ("under this key", deposits.with_context(unknown)?)
            }
        };
        let claim = attest::deposits(chain, transaction);
        let judged = attest::judge(&config, &rules, &claim).await?;
        let would = attest::would_be(&rules, &claim, &judged);
        let outcome = outcome(&config, &rules, (chain, &judged.reads)).await?;
        let further = outcome.unwrap_or_else(|| OTHERS.to_owned());
        Ok(format!(
            "no statement stands {stands}; judged as a deposit:\n{would}\n{further}"
        ))
    }

    /// The statements that are asked about: the one that is `named`, or those about a transaction of the chain that is.
    async fn keys(
        &self,
        named: &str,
        config: &Config,
        rules: &Rules,
    ) -> anyhow::Result<Vec<String>> {
        let Some(transaction) = &self.transaction else {
            return Ok(vec![named.to_owned()]);
        };
        let chain = named;
        let loaded = rules.chains.get(chain);
        let family = loaded.and_then(|loaded| loaded.family());
        let family = family.with_context(|| format!("chain {chain} is not configured"))?;
        let transaction = family
            .tx(transaction, None)
            .map_err(|why| anyhow::anyhow!("{why}"))?;
        let question = Question::About {
            chain: chain.to_owned(),
            transaction: canonical(&transaction),
        };
        match asked(&config.data_dir, &question).await? {
            Answer::About { keys } => Ok(keys),
            other => Err(unexpected(&other)),
        }
    }

    async fn told(
        &self,
        config: &Config,
        rules: &Rules,
        key: &str,
        reason: Reason,
    ) -> anyhow::Result<String> {
        let Some(evidence) = &reason.evidence else {
            let none = "evidence    none: an earlier version signed it".to_owned();
            return Ok(grounds::text(head(key, &reason).into_iter().chain([none])));
        };
        let mut document = document(key, &reason, evidence);
        let answer = answered(config, rules, &document).await;
        if self.json {
            document.answer = answer.ok().map(|judged| judged.answer);
            return Ok(serde_json::to_string_pretty(&document)?);
        }
        let (answer, met, why) = match answer {
            Ok(judged) => (judged.answer, judged.met, None),
            Err(why) => {
                let why = format!("message     cannot be made again: {why}");
                (Value::Null, Vec::new(), Some(why))
            }
        };
        let grounds = Grounds {
            rules,
            reads: &evidence.reads,
            met: &met,
            answer: &answer,
        };
        let mut lines = head(key, &reason).to_vec();
        let same = rules.judge.configuration == evidence.configuration;
        let other = if same { "" } else { " (not those of now)" };
        let (version, configuration) = (&evidence.version, evidence.configuration);
        lines.push(format!(
            "version     {version}, rules {configuration}{other}"
        ));
        let key = evidence.key.as_deref();
        lines.extend(grounds::request(&evidence.target, &evidence.body, key));
        lines.extend(grounds.lines_by(&evidence.rules));
        lines.extend(why);
        Ok(grounds::text(lines))
    }
}

/// What would be signed about a transaction of `chain` that was read, as a payment that ended the order it names; `None`
/// where it ended none of the daemon's.
async fn outcome(
    config: &Config,
    rules: &Rules,
    (chain, reads): (&str, &[Read]),
) -> anyhow::Result<Option<String>> {
    let Some((order, transaction)) = ordered(reads) else {
        return Ok(None);
    };
    let question = Question::Outcome {
        order,
        chain: chain.to_owned(),
        transaction,
    };
    let OutcomeClaim {
        route,
        body,
        signature,
    } = match asked(&config.data_dir, &question).await? {
        Answer::Outcome { claim: Some(claim) } => claim,
        Answer::Outcome { claim: None } => return Ok(None),
        other => return Err(unexpected(&other)),
    };
    let target = format!("/attestations/{route}/v1");
    let claimed = |body: &Value| Claim {
        target: target.clone(),
        body: body.to_string().into_bytes().into(),
        key: None,
    };
    let mut signed = body.clone();
    if let Some(signature) = signature {
        signed["solverSignature"] = signature.into();
    }
    let judged = attest::judge(config, rules, &claimed(&signed)).await?;
    // What is shown has no signature: whoever had it could make the claim.
    let would = attest::would_be(rules, &claimed(&body), &judged);
    let kind = match body.get("fill") {
        Some(_) => "fill",
        None => "refund",
    };
    Ok(Some(format!(
        "judged as the {kind} of order {order}, whose request is here:\n{would}"
    )))
}

/// The one order that the transaction names which was read, and that transaction.
fn ordered(reads: &[Read]) -> Option<(B256, String)> {
    let mut found = reads
        .iter()
        .filter_map(|read| match (&read.question, &read.answer) {
            (
                evidence::Question::Transaction { transaction, .. },
                evidence::Answer::Transaction(found),
            ) => Some((&transaction.text, &**found)),
            _ => None,
        });
    let (transaction, found) = found.next()?;
    let Transaction::Succeeded(receipt) = found else {
        return None;
    };
    match &receipt.references[..] {
        [order] => Some((order.parse().ok()?, transaction.to_string())),
        _ => None,
    }
}

/// The chain and the transaction in the key of a statement about deposits, where both can be claimed.
fn deposits<'a>(rules: &Rules, key: &'a str) -> Option<(&'a str, &'a str)> {
    let (slot, _) = key.strip_prefix(DEPOSIT)?.rsplit_once('/')?;
    let (named, _) = slot.rsplit_once('/')?;
    let (chain, transaction) = named.rsplit_once('/')?;
    let family = rules.chains.get(chain)?.family()?;
    let known = family.tx(transaction, None).ok()?;
    (canonical(&known) == transaction).then_some((chain, transaction))
}

async fn reasons(config: &Config, key: &str) -> anyhow::Result<Vec<Reason>> {
    let question = Question::Why { key: key.into() };
    match asked(&config.data_dir, &question).await? {
        Answer::Why { reasons } => Ok(reasons),
        other => Err(unexpected(&other)),
    }
}

fn head(key: &str, reason: &Reason) -> [String; 3] {
    let (at, signer) = (iso(reason.entry.at * 1_000), reason.signer);
    let state = match (&reason.void, &reason.signature) {
        (Some(why), _) => format!(", void: {why}"),
        (None, None) => ", and signing is halted".to_owned(),
        (None, Some(_)) => String::new(),
    };
    [
        format!("statement   {key}"),
        format!("digest      {}", reason.entry.digest),
        format!("signed      {at} by {signer:#x}{state}"),
    ]
}

/// What the claim is judged to be over the evidence, the oracle's answer with the signature of then.
async fn answered(config: &Config, rules: &Rules, document: &Document) -> anyhow::Result<Judged> {
    let judging = Judging::over(config, rules, &document.reads, document.signed_at)?;
    let mut judged = judging.judge(&claim(&document.request)).await?;
    if !judged.status.is_success() {
        bail!("{}", judged.answer);
    }
    sign(&mut judged, document);
    Ok(judged)
}

/// Puts the document's signature in place of nobody's in the oracle's answer.
pub fn sign(judged: &mut Judged, document: &Document) {
    if let Some(nobody) = Judging::nobody() {
        put_signature(&mut judged.answer, nobody, document);
    }
}

/// The claim of a document's request.
pub fn claim(request: &Asked) -> Claim {
    Claim {
        target: request.target.clone(),
        body: request.body.as_bytes().to_vec().into(),
        key: request.key.clone(),
    }
}

fn document(key: &str, reason: &Reason, evidence: &Evidence) -> Document {
    Document {
        format: FORMAT.into(),
        statement: key.into(),
        digest: reason.entry.digest,
        signed_at: reason.entry.at,
        signer: reason.signer,
        signature: reason.signature.clone(),
        void: reason.void.clone(),
        version: evidence.version.clone(),
        configuration: evidence.configuration,
        request: Asked {
            target: evidence.target.clone(),
            key: evidence.key.clone(),
            body: evidence.body.clone(),
        },
        reads: evidence.reads.clone(),
        rules: evidence.rules.clone(),
        answer: None,
    }
}
