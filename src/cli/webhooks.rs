//! `intentd webhooks`: deliveries to integrators' endpoints, and those that failed.

use std::{fmt::Write, path::Path};

use anyhow::ensure;
use clap::{Args, Subcommand};

use super::{asked, lines};
use crate::{
    admin::{
        self,
        webhooks::{Answer, Question},
    },
    store::rows::delivery::{Delivery, Try},
    webhook::admin::{Endpoint, REPLAYED, Shown, Tested},
};

#[derive(Debug, Subcommand)]
pub enum Webhooks {
    /// Endpoints: what waits, what was given up, and how it went last (since the daemon started).
    List {
        /// Only that of this integrator.
        #[arg(long)]
        label: Option<String>,
    },
    /// An event: its body, and every try to deliver it that is not over.
    Show { event: u64 },
    /// Have an event, or what was given up, sent again.
    Replay(Replay),
    /// Send a signed event that never happened, number 0, and say how that went.
    Test { label: String },
}

#[derive(Debug, Args)]
pub struct Replay {
    /// The event's number, as in `X-Event-Id`.
    #[arg(required_unless_present = "dead", conflicts_with = "dead")]
    event: Option<u64>,
    /// What was given up, the oldest first.
    #[arg(long)]
    dead: bool,
    /// Only what concerns this integrator.
    #[arg(long)]
    label: Option<String>,
}

impl Webhooks {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match self {
            Self::List { label } => Question::List { label },
            Self::Show { event } => Question::Show { event },
            Self::Replay(Replay { event, label, .. }) => match event {
                Some(event) => Question::Replay { event, label },
                None => Question::ReplayDead { label },
            },
            Self::Test { label } => Question::Test { label },
        };
        let question = admin::Question::Webhooks(question);
        match asked(data_dir, &question).await? {
            admin::Answer::Webhooks(answer) => text(answer),
            other => Err(super::unexpected(&other)),
        }
    }
}

fn text(answer: Answer) -> anyhow::Result<String> {
    Ok(match answer {
        Answer::List { endpoints } => lines(&endpoints, endpoint, "nobody has an endpoint"),
        Answer::Shown(shown) => event(&shown)?,
        Answer::Replayed { label } => format!("it is sent to {label} again"),
        Answer::ReplayedDead { count } if count >= REPLAYED as u64 => {
            format!("{count} are sent again; there may be more")
        }
        Answer::ReplayedDead { count } => format!("{count} are sent again"),
        Answer::Tested(Tested {
            said,
            took,
            delivered,
        }) => {
            ensure!(delivered, "{said}, after {took} ms");
            format!("{said}, after {took} ms")
        }
    })
}

fn endpoint(endpoint: &Endpoint) -> String {
    let Endpoint {
        label,
        url,
        waiting,
        dead,
        last_success,
        last_failure,
    } = endpoint;
    let url = url.as_deref().unwrap_or("no endpoint");
    let mut line = format!("{label}  {url}  waiting {waiting}  dead {dead}");
    if let Some(at) = last_success {
        line += &format!("  last success {}", time(*at));
    }
    if let Some((at, why)) = last_failure {
        line += &format!("  last failure {}: {why}", time(*at));
    }
    line
}

fn event(shown: &Shown) -> anyhow::Result<String> {
    let mut text = format!("event {}\n{}\n", shown.number, shown.body);
    match (&shown.label, &shown.waiting, &shown.dead) {
        (None, ..) => write!(text, "it concerns no key")?,
        (Some(label), None, None) => write!(text, "nothing is owed to {label}")?,
        (Some(label), Some(delivery), _) => {
            let due = time(delivery.due);
            write!(text, "on its way to {label}, due {due}{}", tries(delivery))?;
        }
        (Some(label), None, Some(dead)) => {
            let (at, why) = (time(dead.at), &dead.why);
            let tries = tries(&dead.delivery);
            write!(text, "given up for {label} at {at}: {why}{tries}")?;
        }
    }
    Ok(text)
}

fn tries(delivery: &Delivery) -> String {
    let line = |Try { at, took, said }: &Try| format!("\n  {}  {said}, after {took} ms", time(*at));
    delivery.tries.iter().map(line).collect()
}

/// Unix milliseconds as HTTP writes a date.
fn time(millis: u64) -> String {
    let since = std::time::Duration::from_millis(millis);
    let time = std::time::UNIX_EPOCH.checked_add(since);
    time.map_or_else(|| millis.to_string(), httpdate::fmt_http_date)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{cli::Arguments, store::rows::dead::Dead};

    #[test]
    fn a_replay_is_of_one_event_or_of_all_that_is_dead() {
        let parsed = |line: &str| Arguments::try_parse_from(line.split(' ')).is_ok();
        for line in ["7", "7 --label app", "--dead", "--dead --label app"] {
            assert!(parsed(&format!("intentd webhooks replay {line}")), "{line}");
        }
        for line in ["--label app", "7 --dead", "seven", "-1"] {
            assert!(
                !parsed(&format!("intentd webhooks replay {line}")),
                "{line}"
            );
        }
        assert!(!parsed("intentd webhooks replay"));
    }

    #[test]
    fn an_event_is_shown_with_its_tries() {
        let mut delivery = Delivery::fresh(0);
        delivery.tries.push(Try {
            at: 1_000,
            took: 5,
            said: "status 500".into(),
        });
        let shown = Shown {
            number: 7,
            label: Some("app".into()),
            body: "{}".into(),
            waiting: None,
            dead: Some(Dead {
                why: "it is over".into(),
                at: 2_000,
                delivery,
            }),
        };
        let wanted = "event 7\n{}\ngiven up for app at Thu, 01 Jan 1970 00:00:02 GMT: it is over\
            \n  Thu, 01 Jan 1970 00:00:01 GMT  status 500, after 5 ms";
        assert_eq!(event(&shown).unwrap(), wanted);
    }

    #[test]
    fn a_test_that_was_not_heard_is_an_error() {
        let tested = |delivered| {
            text(Answer::Tested(Tested {
                said: "status 401".into(),
                took: 5,
                delivered,
            }))
        };
        assert_eq!(tested(true).unwrap(), "status 401, after 5 ms");
        let error = tested(false).unwrap_err();
        assert_eq!(error.to_string(), "status 401, after 5 ms");
    }
}
