//! `intentd integrators webhook`: what is named changes, everything else stays. Secrets come on standard
//! input: a command line is shown to every user of the machine.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use clap::Args;

use crate::{admin::integrators::Order, integrator::change::HookChange};

#[derive(Debug, Args)]
pub struct Hook {
    label: String,
    /// `-`: the first line of standard input, https://…
    #[arg(long, conflicts_with = "remove")]
    url: Option<String>,
    /// `-`: the lines of standard input (behind the URL, if that is read too), name:value each, sent
    /// along with every event, in place of the header of that name.
    #[arg(long, conflicts_with = "remove")]
    header: Option<String>,
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
        let (url, headers) = (piped("--url", self.url)?, piped("--header", self.header)?);
        let input = match url || headers {
            true => std::io::read_to_string(std::io::stdin())?,
            false => String::new(),
        };
        let mut lines = input.lines();
        let url = url.then(|| lines.next().unwrap_or_default().trim().parse());
        let mut set = BTreeMap::new();
        for line in lines.filter(|line| headers && !line.trim().is_empty()) {
            let (name, value) = header(line)?;
            let new = set.insert(name, value).is_none();
            ensure!(new, "a header stands there twice");
        }
        let change = HookChange {
            url: url.transpose().context("--url: expected a URL")?,
            set,
            removed: self.remove_header.into_iter().collect(),
        };
        ensure!(
            change != HookChange::default(),
            "nothing to change: give `--url -` or `--header -`"
        );
        Ok(Order::Webhook { label, change })
    }
}

/// Whether `option` is asked for. Its value comes on standard input, whatever it is: a path is a secret
/// as often as a header.
fn piped(option: &str, value: Option<String>) -> anyhow::Result<bool> {
    ensure!(
        value.as_deref().is_none_or(|value| value == "-"),
        "a command line is shown to every user of the machine: pipe it into `{option} -`"
    );
    Ok(value.is_some())
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once(':').context("expected name:value")?;
    // What surrounds a value is no part of it (RFC 9110, 5.5).
    Ok((name.to_owned(), value.trim_matches(' ').to_owned()))
}
