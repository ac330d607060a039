//! Turns texts of variables into values and gathers mistakes. It reads no environment itself.

use std::{fmt, str::FromStr, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};
use vm::EvmAddress;

use super::{ApiKey, KeylessLimit, Mistakes, Multisig, PeerKey, PeerSetting};

/// The longest time that a peer may take: half of the time of a request.
const LONGEST_PEER_MS: u64 = 30_000;

/// Turns texts into values and gathers the mistakes.
pub(super) struct Reader<'a> {
    mistakes: &'a mut Mistakes,
}

impl<'a> Reader<'a> {
    pub fn mistake(&mut self, variable: &str, what: &str) {
        self.mistakes.add(variable, what);
    }

    pub fn new(mistakes: &'a mut Mistakes) -> Self {
        Self { mistakes }
    }

    pub fn required<T>(&mut self, variable: &str, text: Option<T>) -> Option<T> {
        if text.is_none() {
            self.mistakes.add(variable, "must be set");
        }
        text
    }

    pub fn parse<T: FromStr<Err: fmt::Display>>(
        &mut self,
        variable: &str,
        text: Option<String>,
        default: T,
    ) -> T {
        let Some(text) = text else { return default };
        text.trim().parse().unwrap_or_else(|error| {
            self.mistakes.add(variable, format!("{error}"));
            default
        })
    }

    pub fn api_keys(&mut self, variable: &str, text: Option<SecretString>) -> Option<Vec<ApiKey>> {
        let text = text?;
        let mut keys = Vec::new();
        for (at, entry) in entries(text.expose_secret()).enumerate() {
            let mut parts = entry.split(':');
            let key = parts.next().unwrap_or_default().trim();
            if key.is_empty() {
                self.mistakes
                    .add(variable, format!("entry {} has no key", at + 1));
                continue;
            }
            let label = parts.next().unwrap_or_default().trim().to_owned();
            keys.push(ApiKey {
                key: key.to_owned().into(),
                label,
            });
        }
        Some(keys)
    }

    pub fn keyless_limit(
        &mut self,
        max: Option<String>,
        window: Option<String>,
    ) -> Option<KeylessLimit> {
        let window: u64 = self.parse("UNAUTHENTICATED_RATE_LIMIT_WINDOW_MS", window, 1000);
        if window == 0 {
            self.mistakes
                .add("UNAUTHENTICATED_RATE_LIMIT_WINDOW_MS", "must be above 0");
        }
        let max = max?;
        let max = self.parse("UNAUTHENTICATED_RATE_LIMIT_MAX", Some(max), 0);
        if max == 0 {
            self.mistakes.add(
                "UNAUTHENTICATED_RATE_LIMIT_MAX",
                "must be above 0; leave it unset to refuse callers without a key",
            );
        }
        Some(KeylessLimit {
            max,
            window: Duration::from_millis(window),
        })
    }

    /// A peer must not delay our own answer past its deadline.
    pub fn peer_timeout(&mut self, text: Option<String>) -> Duration {
        let timeout = self.parse("PEER_REQUEST_TIMEOUT_MS", text, 5000);
        if !(1..=LONGEST_PEER_MS).contains(&timeout) {
            let what = format!("expected 1 to {LONGEST_PEER_MS}");
            self.mistakes.add("PEER_REQUEST_TIMEOUT_MS", what);
        }
        Duration::from_millis(timeout)
    }

    pub fn peers(&mut self, text: Option<SecretString>) -> Vec<PeerSetting> {
        let mut peers: Vec<PeerSetting> = Vec::new();
        let text = text.unwrap_or_default();
        for (at, entry) in entries(text.expose_secret()).enumerate() {
            let (url, key) = entry.split_once('|').unwrap_or((entry, ""));
            let Some(url) = http_url(url.trim().trim_end_matches('/')) else {
                self.mistakes
                    .add("PEERS", format!("entry {} has no http(s) URL", at + 1));
                continue;
            };
            let key = match key.trim() {
                "" => PeerKey::None,
                "pass-through" => PeerKey::PassThrough,
                key => PeerKey::Own(key.to_owned().into()),
            };
            // The last entry of a URL wins, at the position of the first.
            match peers.iter_mut().find(|peer| peer.url == url) {
                Some(peer) => peer.key = key,
                None => peers.push(PeerSetting { url, key }),
            }
        }
        peers
    }

    pub fn multisig(
        &mut self,
        signers: Option<String>,
        threshold: Option<String>,
    ) -> Option<Multisig> {
        let threshold = self.parse("ORACLE_SIGNERS_THRESHOLD", threshold, 0);
        let mut members: Vec<EvmAddress> = Vec::new();
        for entry in entries(&signers?) {
            match entry.parse() {
                Ok(address) if address == EvmAddress::ZERO => {
                    self.mistakes
                        .add("ORACLE_SIGNERS", "the zero address signs nothing");
                }
                Ok(address) if members.contains(&address) => {
                    self.mistakes
                        .add("ORACLE_SIGNERS", format!("{entry} stands there twice"));
                }
                Ok(address) => members.push(address),
                Err(_) => self
                    .mistakes
                    .add("ORACLE_SIGNERS", format!("{entry} is no address")),
            }
        }
        Some(Multisig { members, threshold })
    }

    /// The URL of a service, if the variable is set; `None` after a mistake. `guarded`: plain HTTP stays on this machine.
    pub fn endpoint(
        &mut self,
        variable: &str,
        text: Option<String>,
        guarded: bool,
    ) -> Option<Option<Url>> {
        let Some(text) = text else { return Some(None) };
        let url = self.http_url(variable, &text)?;
        if guarded && url.scheme() == "http" && !is_local(&url) {
            self.mistake(variable, "must be https, or http on this machine");
            return None;
        }
        Some(Some(url))
    }

    /// The http(s) URL that a text is; `None` after a mistake.
    pub fn http_url(&mut self, variable: &str, text: &str) -> Option<Url> {
        let url = http_url(text);
        if url.is_none() {
            self.mistake(variable, "expected an http(s) URL");
        }
        url
    }
}

fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether the host is this machine.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The entries of a comma-separated list, trimmed, without empty ones.
pub(super) fn list(text: &str) -> Vec<String> {
    let entries = text.split(',').map(str::trim);
    let entries = entries.filter(|entry| !entry.is_empty());
    entries.map(str::to_owned).collect()
}

/// The entries of a list separated by semicolons, trimmed, without empty ones.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}
