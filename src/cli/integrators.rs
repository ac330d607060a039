//! `intentd integrators`: keys of the integrator API, what they open, where their events go.

mod hook;

use std::{
    collections::BTreeSet,
    io::{BufRead, IsTerminal},
    sync::Arc,
};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};

use crate::{
    admin::{
        self, Answer, AskError, Question,
        integrators::{IntegratorAdmin, Listed, Order, Outcome, Proof},
    },
    config::{Config, Mistakes, Names},
    integrator::{Scope, Tier, change::usual_scopes},
    run::{self, clock::unix_millis},
    store::{Making, Store, integrators::Integrators as Rows, pair::Pair},
};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

#[derive(Debug, Subcommand)]
pub enum Integrators {
    /// Make an integrator and print its key, this once: only a digest is kept.
    Add {
        label: String,
        /// What its key opens; may be repeated. By default quote and requests:read.
        #[arg(long)]
        scope: Vec<Scope>,
        /// How much it may ask for: default, elevated or unlimited.
        #[arg(long, default_value_t)]
        tier: Tier,
        /// Make a store where DATA_DIR has none; otherwise only `serve` does.
        #[arg(long)]
        create: bool,
    },
    /// Every integrator: scopes, tier, keys with their age, webhook, wallet.
    List,
    /// Change scopes or tier.
    Set {
        label: String,
        /// Instead of those that it has; may be repeated.
        #[arg(long)]
        scope: Vec<Scope>,
        #[arg(long)]
        tier: Option<Tier>,
    },
    /// End all its keys now and for good. The label is not given again. Asks before.
    Revoke {
        label: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Print a new key that counts at once; older ones end after the grace.
    Rotate {
        label: String,
        /// A number with s, m, h or d; 0 ends them at once.
        #[arg(long, default_value = "24h", value_parser = milliseconds)]
        grace: u64,
    },
    /// Say where its events go, or what is sent along. What is not named stays.
    Webhook(hook::Hook),
    /// Link the wallet that pays for what its key sponsors: without a signature, print what the
    /// wallet must sign.
    Wallet(Link),
}

#[derive(Debug, Args)]
pub struct Link {
    label: String,
    /// The wallet's address.
    #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
    address: Option<String>,
    /// The time that the signed message names.
    #[arg(long, requires_all = ["address", "signature"])]
    time: Option<u64>,
    /// The wallet's signature (personal_sign) over the message.
    #[arg(long, requires = "time")]
    signature: Option<String>,
    /// Forget the wallet.
    #[arg(long)]
    remove: bool,
}

impl Integrators {
    /// Carries it out through the daemon that runs with this environment's DATA_DIR, or over its
    /// store where none runs.
    pub async fn answer(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<String> {
        // What else is wrong with the environment is not this command's business.
        let (config, _) = Config::draft(variables);
        let create = matches!(self, Self::Add { create: true, .. });
        let order = self.order()?;
        let question = Question::Integrators(order.clone());
        let outcome = match admin::ask(&config.data_dir, &question).await {
            Ok(Answer::Integrators(outcome)) => outcome,
            Ok(other) => return Err(super::unexpected(&other)),
            Err(AskError::NoDaemon(_)) => alone(&config, order.clone(), create).await?,
            Err(error) => return Err(error.into()),
        };
        text(&order, outcome)
    }

    fn order(self) -> anyhow::Result<Order> {
        Ok(match self {
            Self::Add {
                label, scope, tier, ..
            } => Order::Add {
                label,
                scopes: named(scope).unwrap_or_else(usual_scopes),
                tier,
            },
            Self::List => Order::List {},
            Self::Set { label, scope, tier } => {
                let scopes = named(scope);
                ensure!(scopes.is_some() || tier.is_some(), "nothing to set");
                Order::Set {
                    label,
                    scopes,
                    tier,
                }
            }
            Self::Revoke { label, yes } => {
                ensure!(yes || agreed(&label)?, "nothing is revoked");
                Order::Revoke { label }
            }
            Self::Rotate { label, grace } => Order::Rotate { label, grace },
            Self::Webhook(hook) => hook.order()?,
            Self::Wallet(link) => link.order(),
        })
    }
}

fn named(scopes: Vec<Scope>) -> Option<BTreeSet<Scope>> {
    (!scopes.is_empty()).then(|| scopes.into_iter().collect())
}

/// Asks the operator for a yes. Fails without a terminal.
#[allow(clippy::print_stderr)]
fn agreed(label: &str) -> anyhow::Result<bool> {
    let mut stdin = std::io::stdin().lock();
    ensure!(
        stdin.is_terminal(),
        "this ends all keys of {label} for good: say --yes"
    );
    eprint!(
        "This ends all keys of {label} for good, and the label is not given again. Type it to go on: "
    );
    meant(label, &mut stdin)
}

fn meant(label: &str, input: &mut impl BufRead) -> anyhow::Result<bool> {
    let mut said = String::new();
    input.read_line(&mut said)?;
    Ok(said.trim() == label)
}

impl Link {
    fn order(self) -> Order {
        let label = self.label;
        let Some(address) = self.address else {
            return Order::Unlink { label };
        };
        let proof = self.time.zip(self.signature);
        Order::Link {
            label,
            address,
            proof: proof.map(|(time, signature)| Proof { time, signature }),
        }
    }
}

/// Over the store itself. In the wrong environment there is none, and none is made unless asked for.
async fn alone(config: &Config, order: Order, create: bool) -> anyhow::Result<Outcome> {
    let making = if create {
        Making::Allowed
    } else {
        Making::Refused
    };
    let pair = Pair::open(&run::directories(config), making)
        .with_context(|| "`intentd serve` makes a store, and `add --create`")?;
    let outcome = carried_out(config, pair.store.clone(), order).await;
    pair.close().await;
    outcome
}

async fn carried_out(
    config: &Config,
    store: Arc<dyn Store>,
    order: Order,
) -> anyhow::Result<Outcome> {
    let signer = run::signer(&config.signing, Names::ORACLE, &mut Mistakes::default()).await;
    let integrator_admin = IntegratorAdmin {
        integrators: Rows::open(store).await?,
        service: signer.map(|signer| run::service(config, signer.address())),
        plain: config.plain_webhooks(),
        clock: unix_millis,
    };
    Ok(integrator_admin.carry_out(order).await?)
}

fn text(order: &Order, outcome: Outcome) -> anyhow::Result<String> {
    Ok(match (order, outcome) {
        (Order::List {}, Outcome::Listed { integrators }) => table(&integrators, unix_millis()),
        (Order::Add { .. } | Order::Rotate { .. }, Outcome::Key { key }) => key.expose().to_owned(),
        (Order::Link { label, address, .. }, Outcome::Sign { message, time }) => format!(
            "{message}\n\n\
             Sign this text, from its first word to its last full stop, with personal_sign, then within 5 minutes:\n\
             intentd integrators wallet {label} --address {address} --time {time} --signature 0x…"
        ),
        (Order::Set { label, .. }, Outcome::Done {}) => format!("{label} has been changed"),
        (Order::Revoke { label }, Outcome::Done {}) => format!("no key of {label} counts any more"),
        (Order::Webhook { label, .. }, Outcome::Done {}) => {
            format!("events of {label} go there from now on")
        }
        (Order::Unhook { label }, Outcome::Done {}) => format!("events of {label} go nowhere"),
        (Order::Link { label, address, .. }, Outcome::Done {}) => {
            format!("{address} is linked to {label}")
        }
        (Order::Unlink { label }, Outcome::Done {}) => format!("{label} has no wallet"),
        (_, other) => bail!("the daemon answered something else: {other:?}"),
    })
}

const HEAD: [&str; 8] = [
    "label", "scopes", "tier", "keys", "webhook", "wallet", "created", "revoked",
];

fn table(integrators: &[Listed], now: u64) -> String {
    if integrators.is_empty() {
        return "there is no integrator".into();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(integrators.iter().map(|one| row(one, now)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..HEAD.len()).filter_map(width).collect();
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(one: &Listed, now: u64) -> [String; 8] {
    let none = || "-".to_owned();
    let joined = |words: Vec<String>| match words.is_empty() {
        true => none(),
        false => words.join(","),
    };
    let ago = |at: u64| span(now.saturating_sub(at));
    let keys = one.keys.iter().map(|key| {
        let ends = key.expires_at.map(|end| span(end.saturating_sub(now)));
        let ends = ends.map(|left| format!(", ends in {left}"));
        format!(
            "{} ({} old{})",
            key.digest,
            ago(key.created_at),
            ends.unwrap_or_default()
        )
    });
    [
        one.label.clone(),
        joined(one.scopes.iter().map(ToString::to_string).collect()),
        one.tier.to_string(),
        joined(keys.collect()),
        one.webhook.clone().unwrap_or_else(none),
        one.wallet.clone().unwrap_or_else(none),
        format!("{} ago", ago(one.created_at)),
        one.revoked_at
            .map_or_else(none, |at| format!("{} ago", ago(at))),
    ]
}

/// Milliseconds in their greatest whole unit.
fn span(ms: u64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "m")];
    let fitting = units.into_iter().find(|(unit, _)| ms >= *unit);
    let (unit, name) = fitting.unwrap_or((SECOND, "s"));
    format!("{}{name}", ms / unit)
}

/// `90s`, `15m`, `24h`, `7d`, `0`.
fn milliseconds(text: &str) -> anyhow::Result<u64> {
    if text == "0" {
        return Ok(0);
    }
    let expected = "expected a number with s, m, h or d, such as 24h";
    let end = text.len().saturating_sub(1);
    let (number, unit) = text.split_at_checked(end).context(expected)?;
    let unit = match unit {
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        _ => bail!(expected),
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<u64> = number.parse().ok().filter(|_| digits);
    number
        .and_then(|number| number.checked_mul(unit))
        .context(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::integrators::ListedKey;

    #[test]
    fn only_the_label_is_a_yes() {
        for (typed, ends) in [
            ("app\n", true),
            (" app \n", true),
            ("app", true),
            ("", false),
            ("\n", false),
            ("y\n", false),
            ("yes\napp\n", false),
            ("App\n", false),
            ("app2\n", false),
        ] {
            assert_eq!(
                meant("app", &mut typed.as_bytes()).unwrap(),
                ends,
                "{typed:?}"
            );
        }
    }

    #[test]
    fn graces_table() {
        for (text, expected) in [
            ("0", Some(0)),
            ("90s", Some(90_000)),
            ("15m", Some(900_000)),
            ("24h", Some(DAY)),
            ("7d", Some(7 * DAY)),
            ("0s", Some(0)),
            ("", None),
            ("h", None),
            ("24", None),
            ("-1h", None),
            ("+1h", None),
            ("1.5h", None),
            ("1w", None),
            ("1é", None),
            ("999999999999999d", None),
        ] {
            assert_eq!(milliseconds(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_table_has_a_line_each() {
        let app = Listed {
            label: "app".into(),
            scopes: usual_scopes(),
            tier: Tier::Elevated,
            keys: vec![ListedKey {
                digest: "01234567".into(),
                created_at: 0,
                expires_at: Some(3 * DAY),
            }],
            webhook: Some("example.org".into()),
            wallet: None,
            created_at: 0,
            revoked_at: Some(2 * DAY - MINUTE),
        };
        let table = table(&[app], 2 * DAY);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        let words = lines[1].split("  ").map(str::trim);
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        assert_eq!(
            words,
            [
                "app",
                "quote,requests:read",
                "elevated",
                "01234567 (2d old, ends in 1d)",
                "example.org",
                "-",
                "2d ago",
                "1m ago"
            ]
        );
    }
}
