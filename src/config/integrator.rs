//! The variables of the integrator API and its solver.

use std::{collections::BTreeMap, path::PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::{
    Raw,
    read::Reader,
    signing::{self, PreviousKey, Signing},
};

/// The integrator API and the solver behind it.
#[derive(Clone, Debug)]
pub struct Integrator {
    pub http_port: u16,
    pub market_file: PathBuf,
    /// [`Config::is_production`](super::Config::is_production): also true of a testnet that others use.
    pub production: bool,
    /// Seconds for which a quote's price holds.
    pub quote_validity: u64,
    /// The secp256k1 key that orders are signed and filled with.
    pub solver_signing: Signing,
    /// The key of its accounts on networks whose accounts have ed25519 keys; `None`: it has none.
    pub ed25519_signing: Option<Signing>,
    /// Keys that it had before.
    pub previous_keys: Vec<PreviousKey>,
    /// The network on whose account the solver is paid; `None`: the market's first one with EVM accounts.
    pub solver_chain: Option<String>,
    /// The oracle that attests what the solver did; `None`: nothing is settled.
    pub oracle: Option<SolverOracle>,
    /// Webhooks may go to plain HTTP and into private networks; never in production.
    pub webhook_allow_private: bool,
    /// Dollars that the solver may have paid without being owed them, before it begins no more fills.
    pub gap_limit: u64,
    pub requests_v2: RequestsV2,
}

/// The oracle that the settlement worker asks.
#[derive(Clone, Debug)]
pub struct SolverOracle {
    pub url: url::Url,
    pub key: Option<SecretString>,
}

/// When the listing's second version is retired, unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestsV2 {
    pub deprecated_at: u64,
    pub throttled_from: u64,
    pub sunset_at: u64,
}

/// The default of `QUOTE_VALIDITY`, in seconds.
const QUOTE_VALIDITY: u64 = 60;
const MOST_VALIDITY: u64 = 3_600;

/// The keys of a comma-separated list. A key may be a JSON array, whose commas separate nothing.
fn split(list: Option<&SecretString>) -> Vec<SecretString> {
    let list = list.map_or("", |list| list.expose_secret());
    let mut inside = false;
    let keys = list.split(|letter| {
        inside = match letter {
            '[' => true,
            ']' => false,
            _ => inside,
        };
        letter == ',' && !inside
    });
    let keys = keys.map(str::trim).filter(|key| !key.is_empty());
    keys.map(SecretString::from).collect()
}

/// The dates of the listing's second version (guide: protocol 11.12).
const DATES: [(&str, &str); 3] = [
    ("REQUESTS_V2_DEPRECATED_AT", "2026-07-22"),
    ("REQUESTS_V2_THROTTLED_FROM", "2026-09-01"),
    ("REQUESTS_V2_SUNSET_AT", "2026-11-24"),
];

/// The default of the gap limit, in dollars.
const GAP_LIMIT: u64 = 1_000;

/// The variables, as text.
pub(super) struct Texts {
    pub http_port: Option<String>,
    pub market_file: Option<String>,
    pub solver_signing: signing::Texts,
    pub ed25519_signing: signing::Texts,
    pub previous_keys: Option<SecretString>,
    /// Of Google's and of Amazon's key service.
    pub endpoints: [Option<String>; 2],
    pub solver_chain: Option<String>,
    pub oracle_url: Option<String>,
    pub oracle_key: Option<SecretString>,
    pub webhook_allow_private: Option<String>,
    pub quote_validity: Option<String>,
    pub production: bool,
    pub gap_limit: Option<String>,
    /// In the order of [`DATES`].
    pub requests_v2: [Option<String>; 3],
}

impl Raw {
    /// Takes what is about the integrator API.
    pub(super) fn integrator(&mut self, production: bool) -> Texts {
        Texts {
            http_port: self.integrator_http_port.take(),
            market_file: self.market_file.take(),
            solver_signing: self.solver_signing(),
            ed25519_signing: self.ed25519_signing(),
            previous_keys: self.solver_previous_keys.take(),
            endpoints: [self.gcp_kms_endpoint.take(), self.aws_kms_endpoint.take()],
            solver_chain: self.solver_chain.take(),
            oracle_url: self.solver_oracle_url.take(),
            oracle_key: self.solver_oracle_key.take(),
            gap_limit: self.solver_gap_limit_usd.take(),
            webhook_allow_private: self.webhook_allow_private.take(),
            quote_validity: self.quote_validity.take(),
            production,
            requests_v2: [
                self.requests_v2_deprecated_at.take(),
                self.requests_v2_throttled_from.take(),
                self.requests_v2_sunset_at.take(),
            ],
        }
    }
}

impl Reader<'_> {
    /// The integrator API is on when `INTEGRATOR_HTTP_PORT` is set; it then needs a market and a solver.
    /// `variables` are those of the environment.
    pub fn integrator(
        &mut self,
        texts: Texts,
        variables: &BTreeMap<String, String>,
    ) -> Option<Integrator> {
        let port = texts.http_port?;
        let http_port = self.parse("INTEGRATOR_HTTP_PORT", Some(port), 3001);
        let market_file = self.needed("MARKET_FILE", texts.market_file);
        let solver_signing = self.signing(texts.solver_signing, texts.production, variables);
        let (production, ed25519) = (texts.production, texts.ed25519_signing);
        let ed25519_signing = self.optional_signing(ed25519, production, variables);
        let previous = split(texts.previous_keys.as_ref());
        let previous = previous
            .iter()
            .filter_map(|key| self.previous_key(key, &texts.endpoints, production, variables));
        let previous_keys = previous.collect();
        let oracle = texts.oracle_url.and_then(|url| {
            let url = url.trim().trim_end_matches('/');
            Some(SolverOracle {
                url: self.http_url("SOLVER_ORACLE_URL", url)?,
                key: texts.oracle_key,
            })
        });
        let open = self.parse("WEBHOOK_ALLOW_PRIVATE", texts.webhook_allow_private, false);
        if open && texts.production {
            self.mistake(
                "WEBHOOK_ALLOW_PRIVATE",
                "is for development, not for production",
            );
        }
        let quote_validity = self.quote_validity(texts.quote_validity);
        let requests_v2 = self.requests_v2(texts.requests_v2);
        Some(Integrator {
            webhook_allow_private: open,
            gap_limit: self.parse("SOLVER_GAP_LIMIT_USD", texts.gap_limit, GAP_LIMIT),
            http_port,
            production: texts.production,
            quote_validity,
            market_file: market_file?.into(),
            solver_signing,
            ed25519_signing,
            previous_keys,
            solver_chain: texts.solver_chain,
            oracle,
            requests_v2,
        })
    }

    /// The longest validity is limited: a price that holds for hours is a free option.
    fn quote_validity(&mut self, text: Option<String>) -> u64 {
        let seconds = self.parse("QUOTE_VALIDITY", text, QUOTE_VALIDITY);
        if !(1..=MOST_VALIDITY).contains(&seconds) {
            let what = format!("expected 1 to {MOST_VALIDITY} seconds");
            self.mistake("QUOTE_VALIDITY", &what);
        }
        seconds
    }

    fn needed<T>(&mut self, variable: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.mistake(variable, "must be set with INTEGRATOR_HTTP_PORT");
        }
        value
    }

    fn requests_v2(&mut self, texts: [Option<String>; 3]) -> RequestsV2 {
        let mut texts = texts.into_iter();
        let [deprecated_at, throttled_from, sunset_at] = DATES.map(|(variable, usual)| {
            let text = texts.next().flatten();
            let date = |text: &str| {
                let date: jiff::civil::Date = text.trim().parse().ok()?;
                let begun = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
                u64::try_from(begun.timestamp().as_second()).ok()
            };
            let read = text.as_deref().map(|text| (text, date(text)));
            if let Some((_, None)) = read {
                self.mistake(variable, "expected a date such as 2026-11-24");
            }
            let own = read.and_then(|(_, date)| date);
            own.or_else(|| date(usual)).unwrap_or_default()
        });
        RequestsV2 {
            deprecated_at,
            throttled_from,
            sunset_at,
        }
    }
}
