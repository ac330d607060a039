//! `intentd verify`: whether a signed statement is what its evidence proves.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use vm::B256;

use super::{
    explain,
    grounds::{self, Grounds},
};
use crate::{
    attest::{
        document::{Document, Flaw},
        evidence::Claim,
    },
    config::Config,
    run::{
        Rules,
        judging::{Judged, Judging},
    },
};

#[derive(Debug, Args)]
pub struct Verify {
    /// The file with the document; `-` reads it from the standard input.
    document: PathBuf,
    /// Judge the claim over the chains too; needs their providers.
    #[arg(long)]
    chains: bool,
    /// Accept a document that was judged by other rules than those of this configuration.
    #[arg(long)]
    other_rules: bool,
}

impl Verify {
    pub async fn answer(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<String> {
        let document = self.read()?;
        let (config, mistakes) = grounds::config(variables);
        let rules = Rules::of(&config, mistakes)?;
        let mut wrong = self.flaws(&document, &rules);
        let claim = explain::claim(&document.request);
        if claim.body.is_empty() {
            wrong.push(Flaw::Request.to_string());
        } else {
            let judging = Judging::over(&config, &rules, &document.reads, document.signed_at)?;
            wrong.extend(compared(
                &document,
                "the evidence",
                &judging.judge(&claim).await?,
            ));
            if self.chains {
                wrong.extend(over_chains(&config, &rules, &document, &claim).await?);
            }
        }
        if !wrong.is_empty() {
            bail!(
                "the document does not prove its statement\n  {}",
                wrong.join("\n  ")
            );
        }
        let answer = document.answer.clone().unwrap_or_default();
        let grounds = Grounds {
            rules: &rules,
            reads: &document.reads,
            answer: &answer,
        };
        let mut lines = vec![
            format!("verified    {}", document.statement),
            format!(
                "digest      {}, signed by {:#x}",
                document.digest, document.signer
            ),
        ];
        lines.extend(document.void.map(|why| format!("void        {why}")));
        lines.extend(grounds.lines());
        Ok(lines.join("\n"))
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

    fn flaws(&self, document: &Document, rules: &Rules) -> Vec<String> {
        let mut flaws = document.check_signature();
        flaws.extend(document.check_votes(|chain| rules.chains.required(chain)));
        let mut wrong: Vec<String> = flaws.iter().map(ToString::to_string).collect();
        let (then, now) = (document.configuration, rules.judge.configuration);
        if then != now && !self.other_rules {
            wrong.push(format!(
                "configuration: judged by rules {then}, this configuration has {now} (--other-rules)"
            ));
        }
        wrong
    }
}

/// What is wrong with a document by what its claim is judged to be over `what`.
fn compared(document: &Document, what: &str, judged: &Judged) -> Vec<String> {
    if !judged.status.is_success() {
        let (status, answer) = (judged.status.as_u16(), &judged.answer);
        let refused = format!("judged again over {what}, the claim is refused: {status} {answer}");
        return [vec![refused], judged.lacking.clone()].concat();
    }
    let statements = &judged.statements;
    let digests: Vec<B256> = statements.iter().map(|one| one.digest).collect();
    let mut wrong = Vec::new();
    match statements.iter().find(|one| one.key == document.statement) {
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
    let mut flaws = document.check_signatures(&digests);
    flaws.extend(document.check_answer(&judged.answer));
    wrong.extend(flaws.iter().map(ToString::to_string));
    wrong
}

async fn over_chains(
    config: &Config,
    rules: &Rules,
    document: &Document,
    claim: &Claim,
) -> anyhow::Result<Vec<String>> {
    let judged = Judging::over_chains(config, rules)?.judge(claim).await?;
    Ok(compared(document, "the chains", &judged))
}
