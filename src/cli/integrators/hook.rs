//! `intentd integrators webhook`: what is named changes, everything else stays. Secrets come on standard
//! input: a command line is shown to every user of the machine.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, ensure};
use clap::Args;

use crate::{admin::integrators::Order, integrator::change::HookChange};

#[derive(Debug, Args)]
pub struct Hook {
    label: String,
    /// https://…; `-` reads it from standard input.
    #[arg(long, conflicts_with = "remove")]
    url: Option<String>,
    /// name:value, sent along with every event, in place of the header of that name; may be repeated.
    /// `-` reads lines of them from standard input, behind the URL if that is read, too: whatever
    /// stands on a command line is shown to every user of the machine.
    #[arg(long, conflicts_with = "remove")]
    header: Vec<String>,
    /// A name: its header is not sent any more; may be repeated.
    #[arg(long, conflicts_with = "remove")]
    remove_header: Vec<String>,
    /// Send them nowhere.
    #[arg(long)]
    remove: bool,
}

impl Hook {
    pub(super) fn order(self) -> anyhow::Result<Order> {
        let label = self.label;
        if self.remove {
            return Ok(Order::Unhook { label });
        }
        let piped = self.url.as_deref() == Some("-") || self.header.iter().any(|it| it == "-");
        let mut piped = match piped {
            true => std::io::read_to_string(std::io::stdin())?,
            false => String::new(),
        }
        .lines()
        .map(str::to_owned)
        .collect::<VecDeque<_>>();
        let url = match self.url.as_deref() {
            Some("-") => piped.pop_front(),
            _ => self.url.clone(),
        };
        let url = url.map(|url| url.trim().parse()).transpose();
        let mut set = BTreeMap::new();
        let mut put = |(name, value)| {
            ensure!(
                set.insert(name, value).is_none(),
                "a header stands there twice"
            );
            Ok(())
        };
        for text in &self.header {
            match text.as_str() {
                "-" => piped
                    .drain(..)
                    .filter(|line| !line.trim().is_empty())
                    .try_for_each(|line| put(header(&line)?))?,
                text => put(open_header(text)?)?,
            }
        }
        let change = HookChange {
            url: url.context("--url: expected a URL")?,
            set,
            removed: self.remove_header.into_iter().collect(),
        };
        ensure!(
            change != HookChange::default(),
            "nothing to change: give --url or --header"
        );
        Ok(Order::Webhook { label, change })
    }
}

/// Parts of the names of headers that hold secrets.
const SECRET: [&str; 6] = ["authorization", "cookie", "key", "pass", "secret", "token"];

/// A header of the command line, which everybody on the machine can read.
fn open_header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = header(text)?;
    let lower = name.to_lowercase();
    ensure!(
        !SECRET.iter().any(|part| lower.contains(part)),
        "header {name} looks like a secret, which a command line would show: pipe `{name}: …` into \
         --header -"
    );
    Ok((name, value))
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once(':').context("expected name:value")?;
    // What surrounds a value is no part of it (RFC 9110, 5.5).
    Ok((name.to_owned(), value.trim_matches(' ').to_owned()))
}
