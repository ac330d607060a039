//! `intentd verify`: whether a signed statement is what its evidence proves.

use std::{collections::BTreeMap, iter, path::PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use vm::{B256, ChainId, EvmAddress, evidence::Read};

use super::{
    explain,
    grounds::{self, Grounds},
};
use crate::{
    attest::document::{Document, Flaw, agreeing},
    config::Config,
    json::Flag,
    run::{
        judging::{Judged, Judging},
        rules::Rules,
    },
};

#[derive(Debug, Args)]
pub struct Verify {
    /// The file with the document; `-` reads it from the standard input.
    document: PathBuf,
    /// Accept this signer (an address), and others that are named so; without it, those of ORACLE_SIGNERS.
    #[arg(long = "signer", value_name = "ADDRESS")]
    signers: Vec<EvmAddress>,
    /// Judge the claim over the chains too; needs their providers.
    #[arg(long)]
    chains: bool,
    /// Accept a document that was judged by other rules than those of this configuration.
    #[arg(long)]
    other_rules: bool,
}

/// What is found about a document.
struct Findings {
    /// Why it proves nothing.
    wrong: Vec<String>,
    /// What its reader should know.
    remarks: Vec<String>,
    /// The rules besides finality that its claim meets, in words.
    met: Vec<String>,
    /// The oracle's answer, judged again over the evidence, with the document's signature.
    answer: Value,
}

impl Verify {
    pub async fn answer(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<String> {
        let document = self.read()?;
        let (mut config, mistakes) = grounds::config(variables);
        let rules = Rules::of(&config, mistakes)?;
        let mut found = self.found(&document, &config, &rules);
        found.remarks.extend(forced(&document, &mut config));
        let claim = explain::claim(&document.request);
        if claim.body.is_empty() {
            found.wrong.push(Flaw::Request.to_string());
        } else {
            let judging = Judging::over(&config, &rules, &document.reads, document.signed_at)?;
            let mut judged = judging.judge(&claim).await?;
            let evidence = self.compared(&document, "the evidence", &judged);
            found.wrong.extend(evidence);
            explain::sign(&mut judged, &document);
            found.met = judged.met;
            found.answer = judged.answer;
            if self.chains {
                let judged = Judging::over_chains(&config, &rules)?.judge(&claim).await?;
                let chains = self.compared(&document, "the chains", &judged);
                found.wrong.extend(chains);
            }
        }
        if !found.wrong.is_empty() {
            let wrong = found.wrong.iter().map(|why| format!("  {why}"));
            let first = "the document does not prove its statement".to_owned();
            bail!(grounds::text(iter::once(first).chain(wrong)));
        }
        Ok(grounds::text(told(&document, &rules, &found)?))
    }

    fn read(&self) -> anyhow::Result<Document> {
        let name = self.document.display().to_string();
        let text = match name.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()),
            _ => std::fs::read_to_string(&self.document),
        };
        let text = text.context(name.clone())?;
        let mut text = serde_json::Deserializer::from_str(&text).into_iter();
        let first = text.next().with_context(|| format!("{name} is empty"))?;
        let document: serde_json::Value = first.with_context(|| name.clone())?;
        if text.next().is_some() {
            bail!("{name} has more than one document: verify them one by one");
        }
        serde_path_to_error::deserialize(document)
            .with_context(|| format!("{name} is not a signed statement with its evidence"))
    }

    /// What is found without judging the claim.
    fn found(&self, document: &Document, config: &Config, rules: &Rules) -> Findings {
        let mut flaws = document.check_format_and_signature();
        flaws.extend(document.check_votes(|chain| rules.chains.required(chain)));
        let mut found = Findings {
            wrong: flaws.iter().map(ToString::to_string).collect(),
            remarks: Vec::new(),
            met: Vec::new(),
            answer: Value::Null,
        };
        let signer = document.signer;
        match self.accepted(config) {
            None => found
                .remarks
                .push("signer not checked: name it with --signer".into()),
            Some((by, signers)) if signers.contains(&signer) => found
                .remarks
                .push(format!("signer {signer:#x} is named by {by}")),
            Some((by, _)) => found
                .wrong
                .push(format!("signer: {signer:#x} is not named by {by}")),
        }
        match rules.compare(&document.version, document.configuration) {
            Ok(()) => {}
            Err(other) if self.other_rules => found.remarks.push(other.to_string()),
            Err(other) => found
                .wrong
                .push(format!("configuration: {other} (--other-rules)")),
        }
        found
    }

    /// What is wrong with a document by what its claim is judged to be over `what`.
    fn compared(&self, document: &Document, what: &str, judged: &Judged) -> Vec<String> {
        if !judged.status.is_success() {
            let (status, answer) = (judged.status.as_u16(), &judged.answer);
            let refused =
                format!("judged again over {what}, the claim is refused: {status} {answer}");
            return [vec![refused], judged.lacking.clone()].concat();
        }
        let statements = &judged.statements;
        let digests: Vec<B256> = statements.iter().map(|one| one.digest).collect();
        let mut wrong = Vec::new();
        let found = statements.iter().find(|one| one.key == document.statement);
        match found {
            None => {
                let keys: Vec<&str> = statements.iter().map(|one| &*one.key).collect();
                let found = &document.statement;
                let wanted = keys.join(", ");
                wrong.push(format!(
                    "statement: {found}, judged again over {what} {wanted}"
                ));
            }
            Some(one) if one.digest != document.digest => {
                let (found, wanted) = (document.digest, one.digest);
                wrong.push(format!(
                    "digest: {found}, judged again over {what} {wanted}"
                ));
            }
            Some(_) => {}
        }
        let mut flaws = document.check_signatures(&judged.answer, &digests);
        if let Some(one) = found.filter(|_| !self.other_rules) {
            flaws.extend(document.check_rules(&one.rules));
        }
        flaws.extend(document.check_answer(&judged.answer));
        wrong.extend(flaws.iter().map(ToString::to_string));
        wrong
    }

    /// The signers that are accepted, and who names them; `None` where nobody does.
    fn accepted<'a>(&'a self, config: &'a Config) -> Option<(&'static str, &'a [EvmAddress])> {
        if !self.signers.is_empty() {
            return Some(("--signer", &self.signers[..]));
        }
        let multisig = config.multisig.as_ref()?;
        Some(("ORACLE_SIGNERS", &multisig.members[..]))
    }
}

/// Lets the caller of a forced claim force it where this configuration has no keys of callers; what to say of that.
fn forced(document: &Document, config: &mut Config) -> Option<String> {
    let key = document.request.key.as_ref()?;
    let body: Value = serde_json::from_str(&document.request.body).ok()?;
    let force: Flag = serde_json::from_value(body.get("force")?.clone()).ok()?;
    if !force.0 || config.api_keys.is_some() {
        return None;
    }
    config.claims.force.push(key.clone());
    Some(format!(
        "forced by the caller {key}: who may is not checked, FORCE_API_KEYS is not set"
    ))
}

/// What is said of a document that proves its statement.
fn told(document: &Document, rules: &Rules, found: &Findings) -> anyhow::Result<Vec<String>> {
    let (digest, signer) = (document.digest, document.signer);
    let mut lines = vec![
        format!("verified    {}", document.statement),
        format!("digest      {digest}, signed by {signer:#x}"),
    ];
    let void = document.void.iter();
    lines.extend(void.map(|why| format!("void        {why}")));
    let remarks = found.remarks.iter();
    lines.extend(remarks.map(|what| format!("remark      {what}")));
    lines.extend(quorums(&document.reads, rules));
    let rules = rules.unasked()?;
    let grounds = Grounds {
        rules: &rules,
        reads: &document.reads,
        met: &found.met,
        answer: &found.answer,
    };
    lines.extend(grounds.lines_by(&document.rules));
    Ok(lines)
}

/// How many providers agree about each chain: of its reads, the one that the fewest agree about. The document says how
/// many had to; what this configuration requires is told where it is something else.
fn quorums(reads: &[Read], rules: &Rules) -> Vec<String> {
    let mut weakest: BTreeMap<&ChainId, &Read> = BTreeMap::new();
    for read in reads.iter().filter(|read| !read.votes.is_empty()) {
        let known = weakest.entry(&read.chain).or_insert(read);
        if agreeing(read) < agreeing(known) {
            *known = read;
        }
    }
    let line = |(chain, read): (&ChainId, &Read)| {
        let (agree, providers, then) = (agreeing(read), read.votes.len(), read.required);
        let own = rules.chains.required(chain.as_str()).unwrap_or_default();
        let differs = own > 0 && u32::try_from(own) != Ok(then);
        let more = match differs {
            true => format!(", {then} had to; this configuration requires {own}"),
            false => String::new(),
        };
        format!("quorum      {chain}: agreed by {agree} of {providers} providers{more}")
    };
    weakest.into_iter().map(line).collect()
}
