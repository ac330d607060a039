//! Log lines: their format, and where they are sent besides standard error.

use std::{collections::BTreeMap, fmt, str::FromStr};

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::read::Reader;

/// The environment whose lines stay on this machine.
const DEVELOPMENT: &str = "development";
const KEY: &str = "DATADOG_API_KEY";
const ENDPOINT: &str = "DATADOG_ENDPOINT";
/// OpenTelemetry's own variables, whose headers would replace those that are sent with the key.
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
/// The default of `DATADOG_ENDPOINT`: the OTLP logs intake of Datadog's first site.
const DATADOG: &str = "https://otlp.datadoghq.com/v1/logs";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected auto, text or json"),
        }
    }
}

/// An intake of log records over OTLP/HTTP.
#[derive(Clone)]
pub struct LogIntake {
    pub url: Url,
    /// The API key.
    pub key: SecretString,
}

impl fmt::Debug for LogIntake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        write!(f, "LogIntake({host})")
    }
}

impl LogIntake {
    /// The variables that have no effect: both in development, the endpoint without a key.
    pub(super) fn unused(
        variables: &BTreeMap<String, String>,
        environment: &str,
    ) -> impl Iterator<Item = &'static str> {
        let without = is_development(environment) || !variables.contains_key(KEY);
        let names = [KEY, ENDPOINT].into_iter();
        names.filter(move |name| without && variables.contains_key(*name))
    }
}

/// Whether lines stay here. They do where nobody said where this is.
fn is_development(environment: &str) -> bool {
    environment.is_empty() || environment.eq_ignore_ascii_case(DEVELOPMENT)
}

impl Reader<'_> {
    /// Where lines are sent; `None` without a key, in development, and after a mistake.
    pub fn log_intake(
        &mut self,
        (key, endpoint): (Option<SecretString>, Option<String>),
        environment: &str,
        variables: &BTreeMap<String, String>,
    ) -> Option<LogIntake> {
        let key = key.filter(|_| !is_development(environment))?;
        let key = SecretString::from(key.expose_secret().trim());
        let mut sound = true;
        if !key
            .expose_secret()
            .bytes()
            .all(|byte| byte.is_ascii_graphic())
        {
            self.mistake(KEY, "expected a key of visible ASCII characters");
            sound = false;
        }
        for name in HEADERS
            .into_iter()
            .filter(|name| variables.contains_key(*name))
        {
            self.mistake(name, "must not be set with DATADOG_API_KEY");
            sound = false;
        }
        let endpoint = endpoint.unwrap_or_else(|| DATADOG.into());
        let url = self.endpoint(ENDPOINT, Some(endpoint), true)??;
        if !url.username().is_empty() || url.password().is_some() {
            self.mistake(ENDPOINT, "must have no user and no password");
            sound = false;
        }
        sound.then_some(LogIntake { url, key })
    }
}
